//! 3.1 thread_configuration: the same work with blocks of 32 to 1024 threads.
//!
//! Shows: `Grid::cover(n).with_block(threads)`, times by events (`stream.time`), and a plot.
//! Look at: target/gallery/thread_configuration.svg. Results do not depend on the block; speed does: too
//! small blocks do not fill a multiprocessor, and between 128 and 512 there is often no difference at all.
//!
//! `cargo ferrogrid run thread_configuration`

use std::fs;

use ferrogrid::prelude::*;
use plotters::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y[i] = the square root of x[i], by five steps of Newton's method.
    #[kernel]
    pub fn square_roots(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let x = x[i.get()];
        let mut root = 0.5 * (1.0 + x);
        for _ in 0..5 {
            root = 0.5 * (root + x / root);
        }
        *y = root;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n: usize = if device.is_cuda() { 1 << 24 } else { 1 << 17 };
    let mut random = fastrand::Rng::with_seed(7);
    let x: Vec<f32> = (0..n).map(|_| 1.0 + random.f32()).collect();
    let device_x = stream.upload(&x)?;
    println!("device    {}", device.name());
    println!("elements  {n}");
    println!("{:>7}  {:>8}  {:>9}  {:>8}", "threads", "blocks", "ms", "GB/s");

    let mut points = Vec::new();
    for threads in [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024] {
        let mut y = stream.fill(f32::NAN, n)?;
        let grid = Grid::cover(n).with_block(threads);
        let timing = stream.time(5, |stream| kernels::square_roots(stream, grid, &device_x, &mut y))?;
        let seconds = timing.median().as_secs_f64();
        let bandwidth = 8.0 * n as f64 / seconds / 1e9;
        let blocks = n.div_ceil(threads as usize);
        println!("{threads:7}  {blocks:8}  {:9.3}  {bandwidth:8.2}", seconds * 1e3);
        points.push((f64::from(threads), bandwidth));
        check(&x, &stream.download(&y)?)?;
    }
    println!("plot      {}", plot(device.name(), &points)?);
    println!("PASS");
    Ok(())
}

fn check(x: &[f32], y: &[f32]) -> Result<(), Box<dyn std::error::Error>> {
    for (&x, &y) in x.iter().zip(y) {
        let error = (f64::from(y) - f64::from(x).sqrt()).abs();
        // The method has converged; what is left is the rounding of its last step.
        if error.is_nan() || error > 2.0 * f64::from(f32::EPSILON) {
            return Err(format!("the root of {x} is {y}, with an error of {error:e}").into());
        }
    }
    Ok(())
}

fn plot(device: &str, points: &[(f64, f64)]) -> Result<&'static str, Box<dyn std::error::Error>> {
    let path = "target/gallery/thread_configuration.svg";
    fs::create_dir_all("target/gallery")?;
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let area = SVGBackend::new(path, (800, 450)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("Threads in a block, {device}"), ("sans-serif", 20))
        .margin(24)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((32.0..1024.0).log_scale().base(2.0), 0.0..1.1 * highest)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_label_formatter(&|threads| format!("{threads:.0}"))
        .x_desc("threads")
        .y_desc("GB/s")
        .draw()?;
    chart.draw_series(LineSeries::new(points.iter().copied(), BLUE.stroke_width(2)))?;
    chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, BLUE.filled())))?;
    area.present()?;
    Ok(path)
}
