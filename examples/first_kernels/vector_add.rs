//! 1.2 vector_add: c = a + b, with an output that starts out poisoned.
//!
//! Shows: two inputs and an output of another buffer; lengths that are no multiple of the block.
//! Look at: `get_mut` is `None` for the threads beyond the end, so the grid may cover more than the
//! buffer holds.
//!
//! `cargo ferrogrid run vector_add`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// c[i] = a[i] + b[i].
    #[kernel]
    pub fn vector_add(t: Thread<1>, a: &[i32], b: &[i32], mut c: DisjointSlice<i32>) {
        let i = t.index();
        if let Some(c) = c.get_mut(i) {
            *c = a[i.get()].wrapping_add(b[i.get()]);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    println!("device  {}", device.name());

    let mut random = fastrand::Rng::new();
    for n in [0, 1, 255, 256, 257, 1_000_003] {
        let a: Vec<i32> = (0..n).map(|_| random.i32(..)).collect();
        let b: Vec<i32> = (0..n).map(|_| random.i32(..)).collect();
        let device_a = stream.upload(&a)?;
        let device_b = stream.upload(&b)?;
        let mut device_c = stream.upload(&vec![i32::MIN; n])?;
        kernels::vector_add(&stream, Grid::cover(n), &device_a, &device_b, &mut device_c)?;

        let expected: Vec<i32> = a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect();
        if stream.download(&device_c)? != expected {
            return Err(format!("the sum of {n} elements is wrong").into());
        }
        println!("{n:>9} elements: equal to the CPU's");
    }
    println!("PASS");
    Ok(())
}
