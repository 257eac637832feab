//! Listings of the chapter "Profiling".

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x[i] <- x[i] * x[i].
    #[kernel]
    pub fn square(t: Thread<1>, mut x: DisjointSlice<f32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x *= *x;
        }
    }
}

#[test]
fn a_timeline_is_written() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("timeline.json");
    // ANCHOR: timeline
    use ferrogrid::profile::{self, SpanKind, Timeline};

    let device = Device::best()?;
    let stream = device.new_stream()?;
    let timeline = Timeline::start(&device)?;

    let mut x = {
        let _stage = profile::range("input"); // a stage of the program, by name
        stream.upload(&vec![3.0_f32; 100_000])?
    };
    kernels::square(&stream, Grid::cover(x.len()), &mut x)?;
    assert_eq!(stream.download(&x)?[0], 9.0);

    let trace = timeline.finish();
    trace.write(&path)?; // for https://ui.perfetto.dev, or chrome://tracing
    for span in trace.device_spans().filter(|span| span.kind == SpanKind::Kernel) {
        println!("{} took {:?}", span.name, span.duration);
    }
    // ANCHOR_END: timeline
    assert!(trace.device_spans().any(|span| span.name.ends_with("::square")));
    assert!(std::fs::read_to_string(path)?.contains("launch square"));
    Ok(())
}

#[test]
fn closures_are_timed() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut x = stream.fill(1.0_f32, 100_000)?;
    // ANCHOR: time
    let timing = stream.time(11, |stream| kernels::square(stream, Grid::cover(x.len()), &mut x))?;
    println!("median {:?}, fastest {:?}", timing.median(), timing.min());
    // ANCHOR_END: time
    assert_eq!(timing.runs().len(), 11);
    Ok(())
}
