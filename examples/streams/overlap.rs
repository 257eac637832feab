//! 4.2 overlap: copy and compute at the same time.
//!
//! Shows: data in parts, each of which is uploaded, processed and downloaded; on three streams one part is
//! copied while another is processed. Copies in the background own their host memory (`upload_async`,
//! `download_async`), and events record when each step began and ended.
//! Look at: target/gallery/overlap.svg: the same work on one stream (the lowest row) and on three.
//!
//! `cargo ferrogrid run overlap`

use std::fs;

use ferrogrid::{Event, PinnedBuffer, prelude::*};
use plotters::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x[i] <- the logistic map applied `steps` times to x[i].
    #[kernel]
    pub fn iterate(t: Thread<1>, steps: u32, mut x: DisjointSlice<f32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = iterated(*x, steps);
        }
    }

    fn iterated(mut x: f32, steps: u32) -> f32 {
        for _ in 0..steps {
            x = 3.5 * x * (1.0 - x);
        }
        x
    }
}

/// A step of a part: the row of its stream, which step it is, start and end in milliseconds.
type Bar = (f64, usize, [f64; 2]);
/// Host memory of a part: the input and the output.
type Part = (PinnedBuffer<f32>, PinnedBuffer<f32>);

const PARTS: usize = 9;
const STEPS: [(&str, RGBColor); 3] = [
    ("upload", RGBColor(30, 136, 229)),
    ("compute", RGBColor(189, 189, 189)),
    ("download", RGBColor(245, 124, 0)),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let (n, steps): (usize, u32) = if device.is_cuda() { (1 << 21, 1500) } else { (1 << 13, 100) };
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let parts = (0..PARTS).map(|part| {
        let mut host = device.pinned_zeros::<f32>(n)?;
        host.iter_mut().enumerate().for_each(|(i, x)| *x = start_value(part * n + i));
        Ok((host, device.pinned_zeros(n)?))
    });
    let parts: Vec<Part> = parts.collect::<ferrogrid::Result<_>>()?;

    // No steps, so the data stays: this loads the kernel and fills the memory pool, and is not measured.
    let (parts, _) = pipeline(&streams, 0.0, 0, parts)?;
    // Each run continues from the results of the previous one.
    let (parts, mut bars) = pipeline(&streams[..1], 0.0, steps, parts)?;
    let (parts, overlapped) = pipeline(&streams, 1.0, steps, parts)?;
    let [one, three] = [&bars, &overlapped].map(|bars| bars.iter().map(|bar| bar.2[1]).fold(0.0, f64::max));
    bars.extend(overlapped);

    println!("device         {}", device.name());
    println!("parts          {PARTS} of {n} elements");
    println!("one stream     {one:.3} ms");
    println!("three streams  {three:.3} ms, faster by {:.2}", one / three);
    println!("plot           {}", plot(device.name(), one.max(three), &bars)?);
    for i in (0..PARTS * n).step_by(1 + PARTS * n / 2000) {
        let mut expected = start_value(i);
        (0..2 * steps).for_each(|_| expected = 3.5 * expected * (1.0 - expected));
        let found = parts[i / n].0[i % n];
        if found != expected {
            return Err(format!("element {i} is {found}, expected {expected}").into());
        }
    }
    println!("PASS");
    Ok(())
}

fn start_value(i: usize) -> f32 {
    (i % 1000) as f32 / 1000.0
}

/// Sends all parts through, alternating between the streams; returns them, input and output exchanged, with
/// the times of each step.
fn pipeline(
    streams: &[Stream],
    first_row: f64,
    steps: u32,
    parts: Vec<Part>,
) -> ferrogrid::Result<(Vec<Part>, Vec<Bar>)> {
    let start = streams[0].record()?;
    streams[1..].iter().try_for_each(|stream| stream.wait(&start))?;
    let mut copies = Vec::new();
    let mut marks: Vec<(usize, [Event; 4])> = Vec::new();
    for (number, (input, output)) in parts.into_iter().enumerate() {
        let row = number % streams.len();
        let (stream, n) = (&streams[row], input.len());
        let mut x = stream.zeros::<f32>(n)?;
        let begin = stream.record()?;
        let upload = stream.upload_async(input, &mut x)?;
        let uploaded = stream.record()?;
        kernels::iterate(stream, Grid::cover(n), steps, &mut x)?;
        let computed = stream.record()?;
        copies.push((stream.download_async(&x, output)?, upload));
        marks.push((row, [begin, uploaded, computed, stream.record()?]));
    }
    let wait = copies.into_iter().map(|(download, upload)| Ok((download.wait()?, upload.wait()?)));
    let parts = wait.collect::<ferrogrid::Result<_>>()?;
    let mut bars = Vec::new();
    for (row, events) in &marks {
        for (step, pair) in events.windows(2).enumerate() {
            let (from, to) = (pair[0].elapsed_since(&start)?, pair[1].elapsed_since(&start)?);
            bars.push((first_row + *row as f64, step, [from, to].map(|time| time.as_secs_f64() * 1e3)));
        }
    }
    Ok((parts, bars))
}

fn plot(device: &str, end: f64, bars: &[Bar]) -> Result<&'static str, Box<dyn std::error::Error>> {
    let path = "target/gallery/overlap.svg";
    fs::create_dir_all("target/gallery")?;
    let area = SVGBackend::new(path, (1000, 300)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("One stream (below) and three, {device}"), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .build_cartesian_2d(0.0..1.15 * end, 0.0..4.0)?;
    chart.configure_mesh().disable_y_mesh().light_line_style(WHITE).x_desc("ms").draw()?;
    for (step, (name, colour)) in STEPS.into_iter().enumerate() {
        let of_step = bars.iter().filter(|bar| bar.1 == step);
        let bar = |&(row, _, [from, to]): &Bar| {
            Rectangle::new([(from, row + 0.1), (to, row + 0.9)], colour.filled())
        };
        let legend = move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled());
        chart.draw_series(of_step.map(bar))?.label(name).legend(legend);
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    area.present()?;
    Ok(path)
}
