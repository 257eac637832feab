//! `#[device]` statics that code accesses without a launch that orders them.

#[ferrogrid::module(host_only)]
mod mutable {
    use ferrogrid::device::prelude::*;

    #[device]
    pub static mut COUNT: DeviceAtomic<u32> = DeviceAtomic::new(0);
}

#[ferrogrid::module(host_only)]
mod public {
    use ferrogrid::device::prelude::*;

    #[device]
    pub static COUNT: DeviceAtomic<u32> = DeviceAtomic::new(0);

    pub fn count() {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

#[ferrogrid::module(host_only)]
mod both {
    use ferrogrid::device::prelude::*;

    #[constant]
    #[device]
    pub static COUNT: DeviceAtomic<u32> = DeviceAtomic::new(0);
}

use ferrogrid::device::prelude::device;

#[device]
static OUTSIDE: u32 = 0;

fn main() {}
