//! Timelines: the place, time and duration of work. Other cases run on the same device meanwhile, so each
//! looks only at its own streams and threads.

use std::collections::HashMap;
use std::time::Duration;

use ferrogrid::prelude::*;
use ferrogrid::profile::{self, Span, SpanKind, Timeline, Trace, Track};
use tinyjson::JsonValue;

use crate::failure::failure_kernels::panics;
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("a_timeline_has_kernels_with_times_of_the_device", a_timeline_has_kernels_with_times_of_the_device),
    ("a_timeline_has_copies_and_fills_with_bytes", a_timeline_has_copies_and_fills_with_bytes),
    ("a_timeline_has_calls_and_ranges_of_the_host", a_timeline_has_calls_and_ranges_of_the_host),
    ("a_timeline_has_graphs_but_no_recordings", a_timeline_has_graphs_but_no_recordings),
    ("a_timeline_sees_its_own_time_and_device", a_timeline_sees_its_own_time_and_device),
    ("a_timeline_of_much_work_is_complete", a_timeline_of_much_work_is_complete),
    ("a_timeline_leaves_failures_to_the_stream", a_timeline_leaves_failures_to_the_stream),
    ("a_timeline_is_written_for_perfetto", a_timeline_is_written_for_perfetto),
];

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x <- x * 3 + 1, `rounds` times.
    #[kernel]
    pub fn churn(t: Thread<1>, rounds: u32, mut x: DisjointSlice<u32>) {
        let Some(x) = x.get_mut(t.index()) else { return };
        for _ in 0..rounds {
            *x = x.wrapping_mul(3).wrapping_add(1);
        }
    }

    /// Each element twice.
    #[kernel(block = 32)]
    pub fn double(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = x.wrapping_mul(2);
        }
    }
}

/// The accuracy of the alignment of host and device clocks, and the delay of a busy machine between two lines.
const SLACK: Duration = Duration::from_millis(20);

fn on_stream(trace: &Trace, stream: &Stream) -> Vec<Span> {
    let track = Track::Stream(stream.id());
    trace.device_spans().filter(|span| span.track == track).cloned().collect()
}

/// Their names without paths.
fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().filter_map(|span| span.name.rsplit("::").next()).collect()
}

fn a_timeline_has_kernels_with_times_of_the_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut x = stream.zeros::<u32>(1000)?;
    kernels::churn(&stream, Grid::cover(1000), 1, &mut x)?;
    kernels::double(&stream, Grid::cover(1000), &mut x)?;
    stream.synchronize()?;
    let timeline = Timeline::start(device)?;
    let before = stream.record()?;
    kernels::churn(&stream, Grid::cover(1000), 20_000, &mut x)?;
    kernels::double(&stream, Grid::cover(1000), &mut x)?;
    let after = stream.record()?;
    let trace = timeline.finish();

    let spans = on_stream(&trace, &stream);
    expect("kernels in order", names(&spans), vec!["churn", "double"])?;
    let [long, short] = [&spans[0], &spans[1]];
    expect("kind", long.kind, SpanKind::Kernel)?;
    let shape = short.launch.ok_or("a kernel has a shape")?;
    expect("shape", (shape.grid, shape.block, shape.shared_bytes), ([32, 1, 1], [32, 1, 1], 0))?;
    expect("one after the other", long.end() <= short.start + Duration::from_micros(2), true)?;
    let between = after.elapsed_since(&before)?;
    let sum = long.duration + short.duration;
    expect("time by events as well", sum <= between + Duration::from_micros(2), true)?;
    expect("the long one is the longer", long.duration > short.duration, true)?;
    expect("lost", trace.lost(), 0)
}

fn a_timeline_has_copies_and_fills_with_bytes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let timeline = Timeline::start(device)?;
    let a = stream.upload(&[1_u32; 1001])?;
    let mut b = stream.fill(7_u16, 1003)?;
    let mut c = stream.zeros::<u32>(1001)?;
    stream.copy(&a, &mut c)?;
    stream.fill_into(9_u16, b.slice_mut(..10)?)?;
    let pinned = stream.upload_async(device.pinned_zeros::<u32>(5)?, c.slice_mut(..5)?)?.wait()?;
    let image = c.view().pitched(10, 100, 10)?.slice(..5, ..)?;
    let mut part = vec![0_u32; 500];
    stream.download_2d(image, &mut part, 5)?;
    expect("copied", (pinned[0], part[0], part[499]), (0, 0, 1))?;
    expect("downloaded", stream.download(&b)?.len(), 1003)?;
    let trace = timeline.finish();

    let has = |kind, bytes| trace.spans().iter().any(|span| span.kind == kind && span.bytes == Some(bytes));
    expect("upload", has(SpanKind::Upload, 4004), true)?;
    expect("download", has(SpanKind::Download, 2006), true)?;
    let spans = on_stream(&trace, &stream);
    let on_device = |kind, bytes| spans.iter().any(|span| span.kind == kind && span.bytes == Some(bytes));
    expect("fill", on_device(SpanKind::Fill, 2006), true)?;
    expect("part of a fill", on_device(SpanKind::Fill, 20), true)?;
    expect("copy", on_device(SpanKind::Copy, 4004), true)?;
    expect("upload in the background", on_device(SpanKind::Upload, 20), true)?;
    expect("download of rows", on_device(SpanKind::Download, 2000), true)?;
    // On the CPU device the calling thread does these.
    expect("upload on the device", on_device(SpanKind::Upload, 4004), device.is_cuda())?;
    expect("zeros on the device", on_device(SpanKind::Fill, 4004), device.is_cuda())
}

fn a_timeline_has_calls_and_ranges_of_the_host(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut x = stream.zeros::<u32>(100)?;
    stream.synchronize()?;
    let timeline = Timeline::start(device)?;
    let stage = profile::range("the stage of this case");
    kernels::double(&stream, Grid::cover(100), &mut x)?;
    let (sender, receiver) = std::sync::mpsc::channel();
    stream.launch_host_func(move || sender.send(()).unwrap_or(()))?;
    stream.synchronize()?;
    drop(stage);
    receiver.recv()?;
    let trace = timeline.finish();

    let find = |name: &str| trace.spans().iter().find(|span| &*span.name == name).cloned();
    let stage = find("the stage of this case").ok_or("no range")?;
    expect("kind", stage.kind, SpanKind::Range)?;
    let spans = on_stream(&trace, &stream);
    let kinds: Vec<SpanKind> = spans.iter().map(|span| span.kind).collect();
    expect("work", kinds, vec![SpanKind::Kernel, SpanKind::HostFn])?;
    for work in &spans {
        let is_call = |span: &&Span| span.call == work.call && span.track == stage.track;
        let call = trace.spans().iter().find(is_call).ok_or("no call")?;
        expect("same work", (call.kind, &call.name), (work.kind, &work.name))?;
        expect("the call is in the range", stage.start <= call.start && call.end() <= stage.end(), true)?;
        expect("the call comes first", call.start <= work.start + SLACK, true)?;
        expect("the work is in the range", work.end() <= stage.end() + SLACK, true)?;
    }
    let waits = |span: &&Span| span.kind == SpanKind::Synchronize && span.track == stage.track;
    let wait = trace.spans().iter().find(waits).ok_or("no synchronisation")?;
    expect("the work ends before the wait", spans[1].end() <= wait.end() + SLACK, true)?;
    let Track::Thread(thread) = stage.track else { return Err("a range is on a thread".into()) };
    expect("the thread is named", trace.thread_name(thread).is_some(), true)
}

fn a_timeline_has_graphs_but_no_recordings(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let timeline = Timeline::start(device)?;
    let mut recorded = 0;
    let (graph, ()) = stream.capture(|capture| {
        recorded = capture.id();
        let mut x = capture.keep(stream.zeros::<u32>(100)?)?;
        kernels::double(capture, Grid::cover(100), &mut x)?;
        capture.fill_into(3_u32, &mut x)
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    let trace = timeline.finish();

    let is_recorded = |span: &Span| span.track == Track::Stream(recorded);
    expect("no span of a recording", trace.spans().iter().any(is_recorded), false)?;
    let launches = on_stream(&trace, &stream).into_iter().filter(|span| span.kind == SpanKind::Graph);
    expect("nodes", launches.map(|span| span.nodes).collect(), vec![Some(2), Some(2)])
}

fn a_timeline_sees_its_own_time_and_device(device: &Device) -> Outcome {
    let other = Device::cpu_with(ferrogrid::CpuOptions::new().workers(1))?;
    let (stream, elsewhere) = (device.new_stream()?, other.new_stream()?);
    let mut x = stream.fill(1_u32, 100)?;
    stream.synchronize()?;
    let first = Timeline::start(device)?;
    kernels::double(&stream, Grid::cover(100), &mut x)?;
    let second = Timeline::start(device)?;
    elsewhere.download(&elsewhere.fill(1_u32, 100)?)?;
    kernels::churn(&stream, Grid::cover(100), 1, &mut x)?;
    let first = first.finish();
    kernels::double(&stream, Grid::cover(100), &mut x)?;
    drop(Timeline::start(device)?);
    let second = second.finish();
    kernels::double(&stream, Grid::cover(100), &mut x)?;

    expect("first", names(&on_stream(&first, &stream)), vec!["double", "churn"])?;
    expect("second", names(&on_stream(&second, &stream)), vec!["churn", "double"])?;
    expect("of another device", on_stream(&first, &elsewhere).len(), 0)?;
    expect("the work itself", stream.download(&x)?[0], (2 * 3 + 1) * 2 * 2)
}

fn a_timeline_of_much_work_is_complete(device: &Device) -> Outcome {
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let mut x = [a.zeros::<u32>(10)?, b.zeros::<u32>(10)?];
    let timeline = Timeline::start(device)?;
    for _ in 0..2000 {
        kernels::double(&a, Grid::cover(10), &mut x[0])?;
        kernels::churn(&b, Grid::cover(10), 1, &mut x[1])?;
    }
    let trace = timeline.finish();
    for stream in [&a, &b] {
        let spans: Vec<Span> = on_stream(&trace, stream);
        let kernels: Vec<&Span> = spans.iter().filter(|span| span.kind == SpanKind::Kernel).collect();
        expect("all", kernels.len(), 2000)?;
        let overlap = |pair: &[&Span]| pair[0].end() > pair[1].start + Duration::from_micros(2);
        expect("in order", kernels.windows(2).any(overlap), false)?;
    }
    expect("lost", trace.lost(), 0)
}

fn a_timeline_leaves_failures_to_the_stream(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data = stream.upload(&[1_u32; 4])?;
    let mut x = stream.zeros::<u32>(64)?;
    stream.synchronize()?;
    let timeline = Timeline::start(device)?;
    panics::constant(&stream, Grid::cover(64), 33, &data, &mut x)?;
    let trace = timeline.finish();
    let panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    expect_error("the failure", stream.synchronize(), panic)?;
    expect("spans", on_stream(&trace, &stream).len() + trace.lost(), 1)
}

fn a_timeline_is_written_for_perfetto(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let timeline = Timeline::start(device)?;
    let mut x = stream.upload(&[5_u32; 100])?;
    let stage = profile::range("a \"stage\"\n\u{e4}");
    kernels::double(&stream, Grid::cover(100), &mut x)?;
    drop(stage);
    stream.download(&x)?;
    let trace = timeline.finish();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("timeline.json");
    trace.write(&path)?;

    let file: JsonValue = std::fs::read_to_string(path)?.parse()?;
    let events: &Vec<JsonValue> = file["traceEvents"].get().ok_or("no events")?;
    let text =
        |event: &JsonValue, key: &str| field(event, key).and_then(|value| value.get::<String>().cloned());
    let number =
        |event: &JsonValue, key: &str| field(event, key).and_then(|value| value.get::<f64>().copied());
    let find = |phase: &str, name: &str| -> Vec<&JsonValue> {
        let is_it = |event: &&JsonValue| {
            text(event, "ph").as_deref() == Some(phase) && text(event, "name").as_deref() == Some(name)
        };
        events.iter().filter(is_it).collect()
    };
    let on_stream_here = |event: &&&JsonValue| {
        number(event, "pid") == Some(2.0) && number(event, "tid") == Some(stream.id() as f64)
    };
    let kernels = find("X", "double");
    let kernel = kernels.iter().find(on_stream_here).ok_or("no kernel")?;
    let grid = &kernel["args"]["grid"];
    expect("grid", [0, 1, 2].map(|axis| grid[axis].get().copied()), [Some(4.0), Some(1.0), Some(1.0)])?;
    let span = on_stream(&trace, &stream)
        .into_iter()
        .find(|span| span.name.ends_with("::double"))
        .ok_or("no span")?;
    expect("microseconds", number(kernel, "ts"), Some(span.start.as_nanos() as f64 / 1e3))?;
    expect("duration", number(kernel, "dur"), Some(span.duration.as_nanos() as f64 / 1e3))?;
    expect("call", find("X", "launch double").is_empty(), false)?;
    expect("range", find("X", "a \"stage\"\n\u{e4}").len(), 1)?;
    let id = span.call.map(|call| call as f64);
    let arrows = |phase| find(phase, "call").iter().filter(|event| number(event, "id") == id).count();
    expect("an arrow from the call to the kernel", (arrows("s"), arrows("f")), (1, 1))?;
    let names = find("M", "thread_name");
    let name = names.iter().find(on_stream_here).ok_or("no name")?;
    expect("track", text(&name["args"], "name"), Some(format!("stream {}", stream.id())))
}

fn field<'a>(event: &'a JsonValue, key: &str) -> Option<&'a JsonValue> {
    event.get::<HashMap<String, JsonValue>>()?.get(key)
}
