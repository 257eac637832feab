//! A generic host function that launches a generic kernel needs the bound that the kernel's module gives.

use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(T = [f32, f64])]
    pub fn double<T: DeviceCopy + core::ops::Add<Output = T>>(t: Thread<1>, mut x: DisjointSlice<T>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = *x + *x;
        }
    }
}

fn twice<T: DeviceCopy + std::ops::Add<Output = T>>(
    stream: &Stream,
    x: &mut DeviceBuffer<T>,
) -> ferrogrid::Result<()> {
    kernels::double(stream, kernels::double::grid(x.len()), x)
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    twice(&stream, &mut stream.zeros::<f32>(8)?)
}
