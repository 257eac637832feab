//! Whether a struct's operators are the same in all threads cannot be known.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Mode(u32);

    #[kernel]
    pub fn by_mode(t: Thread<1>, mode: Mode, other: Mode) {
        if mode == other {
            t.sync_threads();
        }
    }
}

fn main() {}
