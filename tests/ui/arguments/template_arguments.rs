use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[elementwise]
    pub fn axpy(a: f32, x: &f32, y: &mut f32) {
        *y += a * x;
    }

    #[reduction(T = [f32, f64], identity = T::ZERO, combine = |a, b| a + b)]
    pub fn sum<T: Float + DeviceCopy + SharedElement>(x: &T) -> T {
        *x
    }
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let (x, mut y) = (stream.zeros::<f64>(4)?, stream.zeros::<f32>(4)?);
    let integers = stream.zeros::<u32>(4)?;
    kernels::axpy(&stream, 1.0, &x, &mut y)?;
    kernels::axpy(&stream, Grid::cover(4), 1.0, &y, &mut y)?;
    kernels::sum(&stream, &integers)?;
    Ok(())
}
