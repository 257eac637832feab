//! 1.9 blur: every pixel becomes a weighted mean of the 3 x 3 around it.
//!
//! Shows: a stencil, whose threads read their neighbours' elements. That is safe because input and output are
//! two buffers: passing one as both does not compile. And constant memory: the weights, which the host
//! changes halfway.
//! Look at: the pictures, target/gallery/sharp.png and target/gallery/blurred.png, and their edges, where the
//! nearest pixel replaces those outside.
//!
//! `cargo ferrogrid run blur`

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// The weights of the 3 x 3 pixels: equal, until the host sets others.
    #[constant]
    pub static WEIGHTS: Constant<[[u32; 3]; 3]> = Constant::new([[1; 3]; 3]);

    /// output(x, y) <- the mean, rounded, of `input` at most one pixel away; as wide and high as `output`.
    #[kernel]
    pub fn blur(t: Thread<2>, input: &[u8], mut output: DisjointSlice<u8, 2>) {
        let i = t.index();
        let (width, height) = (output.width(), output.height());
        let Some(output) = output.get_mut(i) else { return };
        let rows = [i.y().saturating_sub(1), i.y(), (i.y() + 1).min(height - 1)];
        let columns = [i.x().saturating_sub(1), i.x(), (i.x() + 1).min(width - 1)];
        let (mut sum, mut weights) = (0, 0);
        for (y, row) in rows.into_iter().zip(WEIGHTS) {
            for (x, weight) in columns.into_iter().zip(row) {
                sum += weight * u32::from(input[y * width + x]);
                weights += weight;
            }
        }
        *output = ((sum + weights / 2) / weights) as u8;
    }
}

const WIDTH: usize = 640;
const HEIGHT: usize = 400;
/// How often the picture is blurred.
const PASSES: usize = 6;
/// The weights of the first half of the passes, and of the second.
const SQUARE: [[u32; 3]; 3] = [[1; 3]; 3];
const ROUND: [[u32; 3]; 3] = [[1, 2, 1], [2, 4, 2], [1, 2, 1]];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let sharp = rings();
    // Two buffers take turns: what one pass writes, the next reads.
    let mut from = stream.upload(&sharp)?;
    let mut to = stream.zeros::<u8>(sharp.len())?;
    for pass in 0..PASSES {
        if pass == PASSES / 2 {
            kernels::WEIGHTS.set(&stream, &ROUND)?;
        }
        kernels::blur(&stream, Grid::cover([WIDTH, HEIGHT]), &from, to.view_2d_mut(WIDTH, HEIGHT)?)?;
        std::mem::swap(&mut from, &mut to);
    }
    let blurred = stream.download(&from)?;

    let folder = Path::new("target/gallery");
    fs::create_dir_all(folder)?;
    write_png(&folder.join("sharp.png"), &sharp)?;
    write_png(&folder.join("blurred.png"), &blurred)?;

    let mut expected = sharp;
    for pass in 0..PASSES {
        expected = blurred_by_loops(&expected, if pass < PASSES / 2 { SQUARE } else { ROUND });
    }
    let different = blurred.iter().zip(&expected).filter(|(a, b)| a != b).count();
    println!("device     {}", device.name());
    println!("picture    {}: {WIDTH} x {HEIGHT}, {PASSES} passes", folder.join("blurred.png").display());
    println!("different  {different} pixels from the host's");
    if different > 0 {
        return Err("the picture is wrong".into());
    }
    println!("PASS");
    Ok(())
}

/// Black and white rings, with the corner of a square.
fn rings() -> Vec<u8> {
    let pixel = |i: usize| {
        let (x, y) = (i % WIDTH, i / WIDTH);
        let distance = ((x * x + y * y) as f32).sqrt();
        let ring = ((distance / 12.0) as usize).is_multiple_of(2);
        if ring != (x > WIDTH / 2 && y > HEIGHT / 2) { 255 } else { 0 }
    };
    (0..WIDTH * HEIGHT).map(pixel).collect()
}

/// The same by its definition: the sum over all offsets, edges clamped.
fn blurred_by_loops(input: &[u8], weights: [[u32; 3]; 3]) -> Vec<u8> {
    let at = |x: isize, y: isize| {
        let (x, y) = (x.clamp(0, WIDTH as isize - 1), y.clamp(0, HEIGHT as isize - 1));
        f64::from(input[y as usize * WIDTH + x as usize])
    };
    let mut output = Vec::with_capacity(input.len());
    for y in 0..HEIGHT as isize {
        for x in 0..WIDTH as isize {
            let offsets = (0..9).map(|k| (k % 3, k / 3));
            let all = offsets
                .map(|(dx, dy)| (f64::from(weights[dy][dx]), at(x + dx as isize - 1, y + dy as isize - 1)));
            let (sum, total) = all.fold((0.0, 0.0), |(sum, total), (w, pixel)| (sum + w * pixel, total + w));
            output.push((sum / total).round() as u8);
        }
    }
    output
}

fn write_png(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), WIDTH as u32, HEIGHT as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(bytes)?;
    Ok(())
}
