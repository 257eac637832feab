//! 3.3 transfers: one large copy against many small ones, from ordinary and from page-locked memory.
//!
//! Shows: copies of parts of a buffer (`slice_mut`), page-locked memory (`pinned_copy`), and copies that
//! borrow it in the background (`stream.scope`).
//! Look at: target/gallery/transfers.svg. Each copy has a fixed cost, so small ones are slow; and a GPU
//! reads page-locked memory by itself, without a copy by the processor before.
//!
//! `cargo ferrogrid run transfers`

use std::fs;

use ferrogrid::prelude::*;
use plotters::prelude::*;

/// A line of the plot: its name, its colour, and the bandwidth in GB/s for each number of KiB in a copy.
type Series = (&'static str, RGBColor, Vec<(f64, f64)>);

/// Bytes of every transfer in all.
const BYTES: usize = 1 << 24;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let mut ordinary = vec![0_u8; BYTES];
    fastrand::Rng::with_seed(8).fill(&mut ordinary);
    let pinned = device.pinned_copy(&ordinary)?;
    println!("device     {}", device.name());
    println!("bytes      {BYTES} in all");
    println!("{:>9}  {:>7}  {:>16}  {:>16}", "in a copy", "copies", "ordinary GB/s", "page-locked GB/s");

    let mut series: [Series; 2] =
        [("ordinary memory", RED, Vec::new()), ("page-locked memory", BLUE, Vec::new())];
    for log_bytes in (12..=24).step_by(2) {
        let part = 1_usize << log_bytes;
        print!("{part:9}  {:7}", BYTES / part);
        for (memory, (name, _, points)) in [&ordinary[..], &pinned[..]].into_iter().zip(&mut series) {
            let seconds = upload(&stream, memory, part).map_err(|error| format!("{name}: {error}"))?;
            let bandwidth = BYTES as f64 / seconds / 1e9;
            print!("  {bandwidth:16.2}");
            points.push((part as f64 / 1024.0, bandwidth));
        }
        println!();
    }
    println!("plot       {}", plot(device.name(), &series)?);
    println!("PASS");
    Ok(())
}

/// Uploads `memory` in parts of `part` bytes, three times; the time of the fastest, in seconds.
fn upload(stream: &Stream, memory: &[u8], part: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut buffer = stream.zeros::<u8>(memory.len())?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        stream.fill_into(0, &mut buffer)?;
        let start = stream.record()?;
        // The copies borrow `memory`; the end of the scope waits for them.
        let end = stream.scope(|scope| {
            for (host, device) in memory.chunks(part).zip(buffer.chunks_mut(part)?) {
                scope.upload_into(host, device)?;
            }
            stream.record()
        })??;
        best = best.min(end.elapsed_since(&start)?.as_secs_f64());
    }
    if stream.download(&buffer)? != memory {
        return Err(format!("the data received in parts of {part} bytes differ from the data sent").into());
    }
    Ok(best)
}

fn plot(device: &str, series: &[Series]) -> Result<&'static str, Box<dyn std::error::Error>> {
    let path = "target/gallery/transfers.svg";
    fs::create_dir_all("target/gallery")?;
    let highest = series.iter().flat_map(|(_, _, points)| points).map(|point| point.1).fold(0.0, f64::max);
    let area = SVGBackend::new(path, (800, 450)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("16 MiB in copies of different sizes, {device}"), ("sans-serif", 20))
        .margin(24)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((4.0..16384.0).log_scale().base(4.0), 0.0..1.1 * highest)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_label_formatter(&|size| format!("{size:.0}"))
        .x_desc("KiB in a copy")
        .y_desc("GB/s")
        .draw()?;
    for (name, colour, points) in series {
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3);
        let legend = |(x, y)| PathElement::new([(x, y), (x + 20, y)], *colour);
        chart.draw_series(line)?.label(*name).legend(legend);
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    area.present()?;
    Ok(path)
}
