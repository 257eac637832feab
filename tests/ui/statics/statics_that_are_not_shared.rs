//! `#[device]` statics that threads cannot share.

#[ferrogrid::module(host_only)]
mod numbers {
    use ferrogrid::device::prelude::*;

    #[device]
    pub static NUMBER: u32 = 5;

    #[device]
    pub static OF_BLOCKS: DeviceAtomic<u32, atomic::Block> = DeviceAtomic::new(0);

    #[device]
    pub static FLAG: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);
}

fn main() {}
