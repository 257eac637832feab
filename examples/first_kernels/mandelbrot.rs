//! 1.7 mandelbrot: a picture, one thread per pixel.
//!
//! Shows: rank 2 (`Thread<2>`, `Grid::cover([width, height])`, a 2-D view of a buffer), a struct as
//! a kernel parameter, and an ordinary Rust function called from a kernel and from the host.
//! Look at: the picture, target/gallery/mandelbrot.png unless a path is given.
//!
//! `cargo ferrogrid run mandelbrot [FILE.png]`

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// The part of the complex plane that the picture shows.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Plane {
        /// The real part at the left edge.
        pub left: f32,
        /// The imaginary part at the top edge.
        pub top: f32,
        /// The distance between neighbouring pixels.
        pub step: f32,
        /// Where to stop iterating.
        pub limit: u16,
    }

    /// How many iterations the point of pixel (x, y) needs to escape, at most `plane.limit`.
    pub fn iterations(plane: Plane, x: usize, y: usize) -> u16 {
        let (re, im) = (plane.left + x as f32 * plane.step, plane.top - y as f32 * plane.step);
        let (mut a, mut b, mut count) = (0.0_f32, 0.0_f32, 0);
        while a * a + b * b <= 4.0 && count < plane.limit {
            (a, b) = (a * a - b * b + re, 2.0 * a * b + im);
            count += 1;
        }
        count
    }

    /// Each thread computes its own pixel.
    #[kernel]
    pub fn mandelbrot(t: Thread<2>, plane: Plane, mut picture: DisjointSlice<u16, 2>) {
        let i = t.index();
        if let Some(pixel) = picture.get_mut(i) {
            *pixel = iterations(plane, i.x(), i.y());
        }
    }
}

const WIDTH: usize = 900;
const HEIGHT: usize = 600;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path =
        std::env::args_os().nth(1).map_or_else(|| "target/gallery/mandelbrot.png".into(), PathBuf::from);
    let plane = kernels::Plane { left: -2.25, top: 1.0, step: 3.0 / WIDTH as f32, limit: 400 };

    let device = Device::best()?;
    let stream = device.new_stream()?;
    let mut picture = stream.upload(&vec![u16::MAX; WIDTH * HEIGHT])?;
    kernels::mandelbrot(&stream, Grid::cover([WIDTH, HEIGHT]), plane, picture.view_2d_mut(WIDTH, HEIGHT)?)?;
    let result = stream.download(&picture)?;

    let expected: Vec<u16> =
        (0..WIDTH * HEIGHT).map(|i| kernels::iterations(plane, i % WIDTH, i / WIDTH)).collect();
    let different = result.iter().zip(&expected).filter(|(a, b)| a != b).count();
    write_png(&path, &result, plane.limit)?;

    println!("device     {}", device.name());
    println!("picture    {} ({WIDTH} x {HEIGHT})", path.display());
    println!("different  {different} pixels from the host's");
    if different > 0 {
        return Err("the picture is wrong: device and host compute the same operations".into());
    }
    println!("PASS");
    Ok(())
}

/// Grey by the logarithm of the iterations; points that never escape are black.
fn write_png(path: &Path, counts: &[u16], limit: u16) -> Result<(), Box<dyn std::error::Error>> {
    let scale = 255.0 / f64::from(limit).ln();
    let shade = |&count: &u16| if count == limit { 0 } else { (f64::from(count.max(1)).ln() * scale) as u8 };
    let pixels: Vec<u8> = counts.iter().map(shade).collect();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), WIDTH as u32, HEIGHT as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(())
}
