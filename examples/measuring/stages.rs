//! 3.4 stages: where the time of a small program goes, stage by stage.
//!
//! Shows: events between the stages of a stream's work, read after all of it has run, so that measuring
//! does not make the host wait in between.
//! Look at: target/gallery/stages.svg, and the share of the copies: for a kernel that touches each element
//! once, the copies to a GPU and back cost more than it saves. The same as a timeline, with the host's calls
//! and the device's times, is target/gallery/stages.json: open it at https://ui.perfetto.dev.
//!
//! `cargo ferrogrid run stages`

use std::fs;

use ferrogrid::{Event, prelude::*, profile, profile::Timeline};
use plotters::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x <- (x - mean) * scale.
    #[kernel]
    pub fn normalise(t: Thread<1>, mean: f32, scale: f32, mut x: DisjointSlice<f32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = (*x - mean) * scale;
        }
    }

    /// y[i] = a polynomial of degree 40 in x[i], with coefficients 1/1, 1/2, 1/3, ...
    #[kernel]
    pub fn series(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let mut sum = 0.0_f32;
        for k in (1..=41).rev() {
            sum = sum.mul_add(x[i.get()], 1.0 / k as f32);
        }
        *y = sum;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n: usize = if device.is_cuda() { 1 << 24 } else { 1 << 17 };
    let mut random = fastrand::Rng::with_seed(9);
    let input: Vec<f32> = (0..n).map(|_| 10.0 * random.f32()).collect();
    let mut output = vec![f32::NAN; n];

    // The first time loads the kernels and fills the memory pool.
    work(&stream, &input, &mut output)?;
    output.fill(f32::NAN);
    let marks = work(&stream, &input, &mut output)?;

    let total = marks[marks.len() - 1].1.elapsed_since(&marks[0].1)?.as_secs_f64();
    println!("device     {}", device.name());
    println!("elements   {n}");
    println!("{:<9}  {:>9}  {:>6}", "stage", "ms", "share");
    let mut stages = Vec::new();
    for pair in marks.windows(2) {
        let (name, seconds) = (pair[1].0, pair[1].1.elapsed_since(&pair[0].1)?.as_secs_f64());
        println!("{name:<9}  {:9.3}  {:5.1}%", seconds * 1e3, 100.0 * seconds / total);
        stages.push((name, seconds * 1e3));
    }
    println!("plot       {}", plot(device.name(), &stages)?);
    let timeline = Timeline::start(&device)?;
    let run = profile::range("work");
    work(&stream, &input, &mut output)?;
    drop(run);
    let trace = timeline.finish();
    trace.write("target/gallery/stages.json")?;
    println!("timeline   target/gallery/stages.json, {} spans", trace.spans().len());
    check(&input, &output)?;
    println!("PASS");
    Ok(())
}

/// The program itself, with an event at the end of each stage.
fn work(stream: &Stream, input: &[f32], output: &mut [f32]) -> ferrogrid::Result<Vec<(&'static str, Event)>> {
    let grid = Grid::cover(input.len());
    let mut marks = vec![("start", stream.record()?)];
    let mut x = stream.upload(input)?;
    marks.push(("upload", stream.record()?));
    kernels::normalise(stream, grid, 5.0, 0.1, &mut x)?;
    marks.push(("normalise", stream.record()?));
    let mut y = stream.zeros::<f32>(input.len())?;
    marks.push(("zeros", stream.record()?));
    kernels::series(stream, grid, &x, &mut y)?;
    marks.push(("series", stream.record()?));
    stream.download_into(&y, output)?;
    marks.push(("download", stream.record()?));
    Ok(marks)
}

/// Compares with the sum of the series' terms in double precision.
fn check(input: &[f32], output: &[f32]) -> Result<(), Box<dyn std::error::Error>> {
    // Every 7th: the host's loop is the slow part of this program.
    for i in (0..input.len()).step_by(7) {
        let x = (f64::from(input[i]) - 5.0) * 0.1;
        let mut power = 1.0;
        let mut expected = 0.0;
        for k in 1..=41 {
            expected += power / f64::from(k);
            power *= x;
        }
        let error = (expected - f64::from(output[i])).abs();
        if error.is_nan() || error > 1e-6 {
            return Err(format!("element {i} is {}, expected {expected}", output[i]).into());
        }
    }
    Ok(())
}

/// The stages one after the other, as bars along the time.
fn plot(device: &str, stages: &[(&str, f64)]) -> Result<&'static str, Box<dyn std::error::Error>> {
    let path = "target/gallery/stages.svg";
    fs::create_dir_all("target/gallery")?;
    let total: f64 = stages.iter().map(|stage| stage.1).sum();
    let area = SVGBackend::new(path, (800, 260)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("Stages, {device}"), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .build_cartesian_2d(0.0..total, 0.0..stages.len() as f64)?;
    chart.configure_mesh().disable_y_mesh().light_line_style(WHITE).x_desc("ms").draw()?;
    let mut start = 0.0;
    for (row, (name, time)) in stages.iter().enumerate() {
        let (bottom, colour) = ((stages.len() - row) as f64, Palette99::pick(row));
        let bar = Rectangle::new([(start, bottom), (start + time, bottom - 0.8)], colour.filled());
        let left = start.min(0.85 * total);
        chart.draw_series([bar])?;
        chart.draw_series([Text::new(
            format!("{name} {time:.2} ms"),
            (left, bottom - 0.2),
            ("sans-serif", 14),
        )])?;
        start += time;
    }
    area.present()?;
    Ok(path)
}
