//! 3.2 coalescing: neighbouring threads that read neighbouring elements, or distant ones.
//!
//! Shows: the cost of a distance between the elements of neighbouring threads. Every element is read once,
//! and the amount of work is the same at every distance: only the order differs.
//! Look at: target/gallery/coalescing.svg. A GPU moves 32 bytes at least: of a warp that reads every 8th
//! number of 4 bytes, each access brings 32 bytes for 4 that are used.
//!
//! `cargo ferrogrid run coalescing`

use std::fs;

use ferrogrid::prelude::*;
use plotters::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y[i] = x[j] + 1, where neighbouring i have j that are 2^shift apart; there are 2^log_n elements.
    #[kernel]
    pub fn gather(t: Thread<1>, log_n: u32, shift: u32, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[place(i.get(), log_n, shift)].wrapping_add(1);
        }
    }

    /// The i-th index in an order that steps by 2^shift, in rounds that each start one further.
    fn place(i: usize, log_n: u32, shift: u32) -> usize {
        let in_row = i & ((1 << (log_n - shift)) - 1);
        (in_row << shift) + (i >> (log_n - shift))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let log_n = if device.is_cuda() { 25 } else { 17 };
    let n = 1_usize << log_n;
    let x: Vec<u32> = (0..n as u32).collect();
    let device_x = stream.upload(&x)?;
    println!("device    {}", device.name());
    println!("elements  {n}");
    println!("{:>8}  {:>9}  {:>8}", "distance", "ms", "GB/s");

    let mut points = Vec::new();
    for shift in 0..=7 {
        let mut y = stream.zeros::<u32>(n)?;
        let timing = stream
            .time(5, |stream| kernels::gather(stream, Grid::cover(n), log_n, shift, &device_x, &mut y))?;
        let (distance, seconds) = (1_usize << shift, timing.median().as_secs_f64());
        let bandwidth = 8.0 * n as f64 / seconds / 1e9;
        println!("{distance:8}  {:9.3}  {bandwidth:8.2}", seconds * 1e3);
        points.push((distance as f64, bandwidth));

        // The same order as two nested loops.
        let expected = (0..distance).flat_map(|first| x[first..].iter().step_by(distance).map(|x| x + 1));
        if !stream.download(&y)?.into_iter().eq(expected) {
            return Err(format!("the elements at distance {distance} are wrong").into());
        }
    }
    println!("plot      {}", plot(device.name(), &points)?);
    println!("PASS");
    Ok(())
}

fn plot(device: &str, points: &[(f64, f64)]) -> Result<&'static str, Box<dyn std::error::Error>> {
    let path = "target/gallery/coalescing.svg";
    fs::create_dir_all("target/gallery")?;
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let area = SVGBackend::new(path, (800, 450)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("Distance between neighbouring threads' elements, {device}"), ("sans-serif", 20))
        .margin(24)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((1.0..128.0).log_scale().base(2.0), 0.0..1.1 * highest)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_label_formatter(&|distance| format!("{distance:.0}"))
        .x_desc("elements of 4 bytes")
        .y_desc("useful GB/s")
        .draw()?;
    chart.draw_series(LineSeries::new(points.iter().copied(), BLUE.stroke_width(2)))?;
    chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, BLUE.filled())))?;
    area.present()?;
    Ok(path)
}
