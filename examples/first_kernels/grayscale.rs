//! 1.8 grayscale: from colour to grey, one thread per pixel.
//!
//! Shows: pixels of three bytes as elements of a buffer (`[u8; 3]`), and whole numbers instead of floating
//! point.
//! Look at: the pictures, target/gallery/colour.png and target/gallery/grey.png. Green counts most, as for
//! the eye.
//!
//! `cargo ferrogrid run grayscale`

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// The luma of ITU-R BT.601: 0.299 red + 0.587 green + 0.114 blue, in 256ths.
    #[kernel]
    pub fn luma(t: Thread<1>, colour: &[[u8; 3]], mut grey: DisjointSlice<u8>) {
        let i = t.index();
        if let Some(grey) = grey.get_mut(i) {
            let [red, green, blue] = colour[i.get()].map(u32::from);
            *grey = ((77 * red + 150 * green + 29 * blue + 128) >> 8) as u8;
        }
    }
}

const WIDTH: usize = 640;
const HEIGHT: usize = 400;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let colour = colour_wheel();
    let device_colour = stream.upload(&colour)?;
    let mut device_grey = stream.zeros::<u8>(WIDTH * HEIGHT)?;
    kernels::luma(&stream, Grid::cover(WIDTH * HEIGHT), &device_colour, &mut device_grey)?;
    let grey = stream.download(&device_grey)?;

    let folder = Path::new("target/gallery");
    fs::create_dir_all(folder)?;
    write_png(&folder.join("colour.png"), png::ColorType::Rgb, colour.as_flattened())?;
    write_png(&folder.join("grey.png"), png::ColorType::Grayscale, &grey)?;

    let exact = colour.iter().map(|&[red, green, blue]| {
        0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue)
    });
    let error = exact.zip(&grey).map(|(exact, &grey)| (exact - f64::from(grey)).abs()).fold(0.0, f64::max);
    println!("device     {}", device.name());
    println!("picture    {}: {WIDTH} x {HEIGHT}", folder.join("grey.png").display());
    println!("max error  {error:.2} of 255 shades");
    // Half a shade by rounding, and what the weights in 256ths are off.
    if error > 1.0 {
        return Err("the picture is wrong".into());
    }
    println!("PASS");
    Ok(())
}

/// All hues around the centre, white in the middle, darker outwards.
fn colour_wheel() -> Vec<[u8; 3]> {
    let mut pixels = Vec::with_capacity(WIDTH * HEIGHT);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let (x, y) = (x as f32 - WIDTH as f32 / 2.0, y as f32 - HEIGHT as f32 / 2.0);
            let (angle, distance) = (y.atan2(x), x.hypot(y) / (HEIGHT as f32 / 2.0));
            let third = 2.0 * std::f32::consts::PI / 3.0;
            let channel = |turn: f32| {
                let hue = 0.5 + 0.5 * (angle - turn * third).cos();
                let light = (1.0 - distance).max(0.0);
                (255.0 * (hue * (1.0 - light) + light) / (1.0 + 0.5 * distance * distance)) as u8
            };
            pixels.push([channel(0.0), channel(1.0), channel(2.0)]);
        }
    }
    pixels
}

fn write_png(path: &Path, colours: png::ColorType, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), WIDTH as u32, HEIGHT as u32);
    encoder.set_color(colours);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(bytes)?;
    Ok(())
}
