//! 1.6 matrix_2d: A <- A + u v^T, one thread per element of a matrix.
//!
//! Shows: rank 2: `Thread<2>`, `Grid::cover([width, height])`, and a buffer seen as rows and columns
//! (`view_2d_mut`).
//! Look at: neither side of the matrix is a multiple of the block, and no index is computed by hand. A
//! `Grid<1>` here does not compile.
//!
//! `cargo ferrogrid run matrix_2d`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// a[row][column] += u[row] * v[column].
    #[kernel]
    pub fn rank_one_update(t: Thread<2>, u: &[f32], v: &[f32], mut a: DisjointSlice<f32, 2>) {
        let i = t.index();
        if let Some(a) = a.get_mut(i) {
            *a += u[i.y()] * v[i.x()];
        }
    }
}

const WIDTH: usize = 1021;
const HEIGHT: usize = 389;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(2);
    let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| random.f32() - 0.5).collect() };
    let (a, u, v) = (numbers(WIDTH * HEIGHT), numbers(HEIGHT), numbers(WIDTH));

    let (device_u, device_v) = (stream.upload(&u)?, stream.upload(&v)?);
    let mut device_a = stream.upload(&a)?;
    let matrix = device_a.view_2d_mut(WIDTH, HEIGHT)?;
    kernels::rank_one_update(&stream, Grid::cover([WIDTH, HEIGHT]), &device_u, &device_v, matrix)?;
    let result = stream.download(&device_a)?;

    let mut errors = Vec::with_capacity(a.len());
    for (row, &u) in u.iter().enumerate() {
        for (column, &v) in v.iter().enumerate() {
            let i = row * WIDTH + column;
            let expected = f64::from(a[i]) + f64::from(u) * f64::from(v);
            errors.push((f64::from(result[i]) - expected).abs());
        }
    }
    // By this order a NaN is the largest.
    let error = errors.into_iter().max_by(f64::total_cmp).unwrap_or(0.0);
    println!("device     {}", device.name());
    println!("matrix     {HEIGHT} rows, {WIDTH} columns");
    println!("max error  {error:.1e}");
    // Two roundings of values below 1.
    if error.is_nan() || error > f64::from(f32::EPSILON) {
        return Err("the matrix is wrong".into());
    }
    println!("PASS");
    Ok(())
}
