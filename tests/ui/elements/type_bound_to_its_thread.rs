//! A type may be sound only because it stays on its thread. Kernels of the CPU device run on other threads,
//! and what is in a constant or a buffer is read by any.

mod arena {
    use std::marker::PhantomData;

    #[derive(Clone, Copy, ferrogrid::DeviceCopy)]
    #[repr(C)]
    pub struct Token {
        index: u32,
        _this_thread: PhantomData<*const ()>,
    }
}

mod wrapped {
    #[derive(Clone, Copy, ferrogrid::DeviceCopy)]
    #[repr(C)]
    pub struct Wrapper<T: Copy>(std::marker::PhantomData<T>);

    fn travels<T: ferrogrid::DeviceCopy>() {}

    pub fn check() {
        travels::<Wrapper<std::cell::Cell<u32>>>();
        travels::<std::marker::PhantomData<std::rc::Rc<u32>>>();
    }
}

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C, u32)]
    pub enum Slot {
        Empty,
        Full(crate::arena::Token),
    }

    #[constant]
    pub static SLOT: Constant<Slot> = Constant::new(Slot::Empty);

    #[kernel]
    pub fn read(_t: Thread<1>, _token: crate::arena::Token) {}
}

fn main() {}
