//! Writes a trace in the Trace Event Format, for Perfetto and chrome://tracing.
//!
//! The JSON is written here: with serde_json among the dependencies, `assert_eq!(stream.download(&x)?, [])`
//! would not compile in programs that use this crate, because it compares numbers with its own values.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write};
use std::time::Duration;

use super::trace::{LaunchShape, Span, SpanKind, Trace, Track};

/// The "processes" of the file.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

pub(super) fn json(trace: &Trace) -> String {
    format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", events(trace).join(",\n"))
}

fn events(trace: &Trace) -> Vec<String> {
    let mut events = vec![name(HOST, None, "host"), name(DEVICE, None, trace.device())];
    let tracks: BTreeSet<Track> = trace.spans().iter().map(|span| span.track).collect();
    events.extend(tracks.into_iter().map(|track| match track {
        Track::Stream(number) => name(DEVICE, Some(number), &format!("stream {number}")),
        Track::Thread(number) => name(HOST, Some(number), trace.thread_name(number).unwrap_or("thread")),
    }));
    // A call whose work has no span needs no arrow.
    let with_work: BTreeSet<u64> = trace.device_spans().filter_map(|span| span.call).collect();
    // Of events at one time, readers take the first in the file first: an arrow that ends before it has begun is
    // not drawn.
    let host_spans = trace.spans().iter().filter(|span| matches!(span.track, Track::Thread(_)));
    for span in host_spans.chain(trace.device_spans()) {
        events.push(complete(span));
        let call = span.call.filter(|call| with_work.contains(call));
        events.extend(call.map(|call| arrow(span, call)));
    }
    events
}

fn place(track: Track) -> (u32, u64) {
    match track {
        Track::Thread(number) => (HOST, number),
        Track::Stream(number) => (DEVICE, number),
    }
}

/// The name of a process, or of one of its threads.
fn name(process: u32, thread: Option<u64>, text: &str) -> String {
    let (what, thread) = (if thread.is_some() { "thread_name" } else { "process_name" }, thread.unwrap_or(0));
    let text = Quoted(text);
    format!(r#"{{"ph":"M","name":"{what}","pid":{process},"tid":{thread},"args":{{"name":{text}}}}}"#)
}

fn complete(span: &Span) -> String {
    let (process, number) = place(span.track);
    let title = match (span.kind, process) {
        (SpanKind::Kernel, DEVICE) => short(&span.name).to_owned(),
        // A call of a kernel is not the kernel.
        (SpanKind::Kernel, _) => format!("launch {}", short(&span.name)),
        _ => span.name.to_string(),
    };
    let (title, category) = (Quoted(&title), span.kind.name());
    let (start, duration) = (Microseconds(span.start), Microseconds(span.duration));
    let arguments = arguments(span).join(",");
    format!(
        r#"{{"ph":"X","name":{title},"cat":"{category}","pid":{process},"tid":{number},"ts":{start},"dur":{duration},"args":{{{arguments}}}}}"#
    )
}

fn arguments(span: &Span) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(bytes) = span.bytes {
        arguments.push(format!(r#""bytes":{bytes}"#));
        let seconds = span.duration.as_secs_f64();
        arguments.extend((seconds > 0.0).then(|| format!(r#""GB/s":{:.3}"#, bytes as f64 / seconds / 1e9)));
    }
    arguments.extend(span.nodes.map(|nodes| format!(r#""nodes":{nodes}"#)));
    if let Some(LaunchShape { grid, block, shared_bytes }) = span.launch {
        arguments.push(format!(r#""kernel":{}"#, Quoted(&span.name)));
        arguments.push(format!(r#""grid":{grid:?},"block":{block:?},"shared_bytes":{shared_bytes}"#));
    }
    arguments
}

/// A kernel's name without the path to it: `fill::<f32, 4>` of `program::kernels::fill::<f32, 4>`.
fn short(name: &str) -> &str {
    let path = name.split('<').next().unwrap_or(name).trim_end_matches("::");
    &name[path.rfind("::").map_or(0, |colons| colons + 2)..]
}

/// The start of an arrow at a call, or its end at the work: at the span that is there, not at the next.
fn arrow(span: &Span, call: u64) -> String {
    let (process, number) = place(span.track);
    let phase = if process == HOST { r#""s""# } else { r#""f","bp":"e""# };
    let start = Microseconds(span.start);
    format!(
        r#"{{"ph":{phase},"name":"call","cat":"call","id":{call},"pid":{process},"tid":{number},"ts":{start}}}"#
    )
}

/// A string of JSON.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                control if u32::from(control) < 0x20 => write!(f, "\\u{:04x}", u32::from(control))?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

/// A time in microseconds, to the nanosecond.
struct Microseconds(Duration);

impl Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        write!(f, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_called_by_its_last_name() {
        assert_eq!(short("program::kernels::saxpy"), "saxpy");
        assert_eq!(short("program::fill::<f32, [u8; 4]>"), "fill::<f32, [u8; 4]>");
        assert_eq!(short("program::fill<a::B>"), "fill<a::B>");
        assert_eq!(short("saxpy"), "saxpy");
    }

    #[test]
    fn an_arrow_begins_before_it_ends_though_the_work_began_at_once() {
        let span = |track| {
            let (start, duration) = (Duration::from_micros(5), Duration::from_micros(9));
            Span { call: Some(1), ..Span::new("saxpy", SpanKind::Kernel, track, start, duration) }
        };
        let spans = vec![span(Track::Stream(1)), span(Track::Thread(1))];
        let text = json(&Trace::new("a device".into(), spans, Vec::new(), 0));
        let place = |event: &str| text.find(event).unwrap();
        let (work, call) = (place(r#""X","name":"saxpy""#), place(r#""X","name":"launch saxpy""#));
        let (start, end) = (place(r#""ph":"s""#), place(r#""ph":"f""#));
        assert!(call < start && start < end && work < end, "{text}");
    }

    #[test]
    fn strings_and_times_are_written_as_json_has_them() {
        assert_eq!(Quoted("a\"b\\c\n\u{1}\u{e4}").to_string(), "\"a\\\"b\\\\c\\u000a\\u0001\u{e4}\"");
        assert_eq!(Microseconds(Duration::from_nanos(1_002_003)).to_string(), "1002.003");
    }
}
