//! A struct of atomics names the plain one, and is `repr(C)`.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Bin {
        pub flag: bool,
        pub count: u32,
    }

    #[derive(AtomicForm)]
    #[atomic_form(Bin)]
    pub struct OfNoLayout {
        flag: bool,
        count: DeviceAtomic<u32>,
    }

    #[derive(AtomicForm)]
    #[repr(C)]
    pub struct OfNothing {
        count: DeviceAtomic<u32>,
    }

    #[derive(AtomicForm)]
    #[atomic_form(Bin)]
    #[repr(C)]
    pub struct OfAnyScope<S: atomic::Scope> {
        flag: bool,
        count: DeviceAtomic<u32, S>,
    }

    #[derive(AtomicForm)]
    #[atomic_form(Bin)]
    #[repr(C)]
    pub enum OfVariants {
        Count(DeviceAtomic<u32>),
    }
}

fn main() {}
