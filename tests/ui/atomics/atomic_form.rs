//! A struct of atomics has the fields of the plain struct in the buffer, and the launch takes the plain one.

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
    #[repr(C)]
    pub struct OfOtherTypes {
        flag: u8,
        count: DeviceAtomic<i32>,
    }

    #[derive(AtomicForm)]
    #[atomic_form(Bin)]
    #[repr(C)]
    pub struct OfFewerFields {
        count: DeviceAtomic<u32>,
    }

    #[derive(AtomicForm)]
    #[atomic_form(Bin)]
    #[repr(C)]
    pub struct OpenBin {
        flag: bool,
        count: DeviceAtomic<u32>,
    }

    #[kernel]
    pub fn count(t: Thread<1>, bins: &[OpenBin]) {
        bins[t.index().get()].count.fetch_add(1, atomic::Ordering::Relaxed);
    }
}

fn main() -> ferrogrid::Result<()> {
    use ferrogrid::prelude::*;

    let stream = Device::cpu().new_stream()?;
    let (mut bins, mut numbers) = (stream.zeros::<kernels::Bin>(4)?, stream.zeros::<u32>(4)?);
    kernels::count(&stream, Grid::cover(4), bins.as_atomic())?;
    kernels::count(&stream, Grid::cover(4), numbers.as_atomic())?;
    kernels::count(&stream, Grid::cover(4), &bins)
}
