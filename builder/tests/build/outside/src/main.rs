//! A user's program: kernels in the main file, in nested module files, with a no_std dependency.
use ferrogrid::prelude::*;

mod physics;
mod plain;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;
    use with_kernels::kernels::Step;

    #[kernel]
    pub fn walk(t: Thread<1>, step: Step, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = step.from(*y);
        }
    }

    #[kernel]
    pub fn scale(t: Thread<1>, factor: u32, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()] * factor + 0;
        }
    }

    #[kernel]
    pub fn common_divisor(t: Thread<1>, with: u32, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = numbers::gcd(*y, with) + super::physics::fields::constants::ZERO;
        }
    }
}

fn main() -> ferrogrid::Result<()> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1_u32, 2, 3, 4])?;
    let mut y = stream.upload(&[0_u32; 4])?;
    kernels::scale(&stream, Grid::cover(4), 10, &x, &mut y)?;
    println!("scaled {:?}", stream.download(&y)?);
    kernels::common_divisor(&stream, Grid::cover(4), 12, &mut y)?;
    println!("divisors {:?}", stream.download(&y)?);
    kernels::walk(&stream, Grid::cover(4), with_kernels::kernels::Step { by: 5 }, &mut y)?;
    println!("walked {:?}", stream.download(&y)?);
    let mut field = stream.upload(&[0.0_f32; 3])?;
    physics::fields::kernels::fill(&stream, Grid::cover(3), &mut field)?;
    println!("field {:?}", stream.download(&field)?);
    println!("plain {}", plain::answer());
    Ok(())
}
