use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(T = [f32, f64], N = [4, 8])]
    pub fn fill<T: DeviceCopy, const N: usize>(t: Thread<1>, value: [T; N], mut y: DisjointSlice<[T; N]>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = value;
        }
    }
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut y = stream.upload(&[[1_i32; 4]; 8])?;
    kernels::fill(&stream, Grid::cover(8), [0_i32; 4], &mut y)?;
    let mut z = stream.upload(&[[1.0_f32; 5]; 8])?;
    kernels::fill(&stream, Grid::cover(8), [0.0_f32; 5], &mut z)?;
    Ok(())
}
