//! 2.9 trait_objects: which function runs is found out by each thread.
//!
//! Shows: `dyn Trait` in a kernel. The implementations are compiled for the device, and called through a
//! vtable, as on the host; threads of a warp that call different ones diverge.
//! Look at: the references are created in the kernel. A vtable of the host is invalid on a device, so a `&dyn
//! Trait` cannot be a parameter; pass a value that selects the type (an enum, a number). On a GPU, panic
//! messages and prints of a program with `dyn` in its kernels omit the values.
//!
//! `cargo ferrogrid run trait_objects`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// A shape with an area.
    pub trait Shape {
        /// In square units.
        fn area(&self) -> f32;
    }

    /// A square by its side.
    pub struct Square(pub f32);

    /// A triangle by its base and height.
    pub struct Triangle(pub f32, pub f32);

    impl Shape for Square {
        fn area(&self) -> f32 {
            self.0 * self.0
        }
    }

    impl Shape for Triangle {
        fn area(&self) -> f32 {
            self.0 * self.1 / 2.0
        }
    }

    /// Twice the area of any shape.
    #[inline(never)]
    pub fn doubled(shape: &dyn Shape) -> f32 {
        2.0 * shape.area()
    }

    /// areas[i] <- twice the area of a square or a triangle of this size, as `is_square` selects.
    #[kernel]
    pub fn areas(t: Thread<1>, is_square: &[bool], sizes: &[f32], mut areas: DisjointSlice<f32>) {
        let i = t.index();
        let Some(area) = areas.get_mut(i) else { return };
        let size = sizes[i.get()];
        let (square, triangle) = (Square(size), Triangle(size, size + 1.0));
        let shape: &dyn Shape = if is_square[i.get()] { &square } else { &triangle };
        *area = doubled(shape);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let sizes: Vec<f32> = (0..1000).map(|i| i as f32 / 8.0).collect();
    let is_square: Vec<bool> = (0..1000).map(|i| i % 3 == 0).collect();
    let mut areas = stream.zeros::<f32>(sizes.len())?;
    kernels::areas(
        &stream,
        Grid::cover(sizes.len()),
        &stream.upload(&is_square)?,
        &stream.upload(&sizes)?,
        &mut areas,
    )?;
    let areas = stream.download(&areas)?;

    for i in 0..sizes.len() {
        let size = sizes[i];
        let expected = if is_square[i] { 2.0 * size * size } else { size * (size + 1.0) };
        if areas[i] != expected {
            return Err(format!("twice the area of shape {i} is {expected}, not {}", areas[i]).into());
        }
    }
    println!("device     {}", device.name());
    println!("shapes     {}, each by its own function", sizes.len());
    println!("squares    {}", is_square.iter().filter(|&&it| it).count());
    println!("PASS");
    Ok(())
}
