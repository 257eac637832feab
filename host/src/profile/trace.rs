//! The spans of a timeline: name, stream, start and duration.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::chrome;

/// The work that ran on a device between the start of a [`Timeline`](super::Timeline) and its end.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use std::time::Duration;
///
/// use ferrogrid::profile::{Timeline, Track};
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let timeline = Timeline::start(&device)?;
/// let ones = stream.fill(1_u32, 1000)?;
/// stream.download(&ones)?;
/// let trace = timeline.finish();
///
/// let busy: Duration = trace.device_spans().map(|span| span.duration).sum();
/// println!("{} was busy for {busy:?}", trace.device());
/// assert_eq!(trace.lost(), 0); // every piece of work has a time
/// for span in trace.spans() {
///     if let Track::Thread(number) = span.track {
///         println!("{} called {}", trace.thread_name(number).unwrap_or("a thread"), span.name);
///     }
/// }
/// assert!(trace.to_json().contains("traceEvents")); // what `write` writes
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    device: Box<str>,
    spans: Vec<Span>,
    threads: Vec<(u64, Box<str>)>,
    lost: usize,
}

/// A piece of work, or the call that requested it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::profile::{SpanKind, Timeline, Track};
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let timeline = Timeline::start(&device)?;
/// let ones = stream.fill(1_u32, 1000)?;
/// let trace = timeline.finish();
///
/// let fill = trace.device_spans().find(|span| span.kind == SpanKind::Fill).unwrap();
/// assert_eq!((&*fill.name, fill.bytes), (SpanKind::Fill.name(), Some(4000)));
/// assert_eq!((fill.track, fill.end()), (Track::Stream(stream.id()), fill.start + fill.duration));
/// // The call that asked for it has the same number.
/// let call = trace.spans().iter().find(|span| span.call == fill.call && span.track != fill.track);
/// assert!(call.is_some());
/// # drop(ones);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The kernel with its path ([`Kernel::name`](crate::Kernel::name)), the range's name, or what
    /// [`SpanKind::name`] says.
    pub name: Box<str>,
    /// Its kind.
    pub kind: SpanKind,
    /// Where it ran.
    pub track: Track,
    /// When it began, from the start of the timeline on.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
    /// How many bytes a copy or fill moved.
    pub bytes: Option<usize>,
    /// How many nodes a graph has.
    pub nodes: Option<usize>,
    /// The shape of a kernel's launch.
    pub launch: Option<LaunchShape>,
    /// The same number for a piece of work of a device and the call that requested it; `None` if the host
    /// did it alone.
    pub call: Option<u64>,
}

impl Span {
    pub(super) fn new(name: &str, kind: SpanKind, track: Track, start: Duration, duration: Duration) -> Self {
        let name = name.into();
        Span { name, kind, track, start, duration, bytes: None, nodes: None, launch: None, call: None }
    }

    /// When it ended, from the start of the timeline on.
    pub fn end(&self) -> Duration {
        self.start + self.duration
    }
}

/// Where a span ran.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::profile::{Timeline, Track};
///
/// let device = Device::cpu();
/// let (first, second) = (device.new_stream()?, device.new_stream()?);
/// let timeline = Timeline::start(&device)?;
/// let work = (first.fill(1_u32, 10)?, second.fill(2_u32, 10)?);
/// let trace = timeline.finish();
/// // What ran on one of them, by the device's clock.
/// let of_second = trace.spans().iter().filter(|span| span.track == Track::Stream(second.id()));
/// assert_eq!(of_second.count(), 1);
/// # drop(work);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Track {
    /// On the device, in the order of the stream with this [`id`](crate::Stream::id): times of the device.
    Stream(u64),
    /// On this thread of the host: a call, or a range; times of the host.
    Thread(u64),
}

/// The kind of a span.
///
/// ```
/// use ferrogrid::profile::SpanKind;
///
/// let copies = [SpanKind::Upload, SpanKind::Download, SpanKind::Copy];
/// assert_eq!(copies.map(SpanKind::name), ["upload", "download", "copy"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpanKind {
    /// A kernel.
    Kernel,
    /// A copy from the host to the device. On the CPU device the calling thread does it itself, but for
    /// copies in the background.
    Upload,
    /// A copy from the device to the host. On the CPU device as for [`SpanKind::Upload`].
    Download,
    /// A copy within the device.
    Copy,
    /// A fill of memory, with zeros or any value.
    Fill,
    /// Managed memory that is moved ahead of its use.
    Prefetch,
    /// All nodes of a graph.
    Graph,
    /// A function of the host in the order of a stream.
    HostFn,
    /// The host waits for a stream, an event or the device.
    Synchronize,
    /// A stage that the program has named, by [`range`](super::range).
    Range,
}

impl SpanKind {
    /// Its name in files: `kernel`, `upload`, `download`, `copy`, `fill`, `prefetch`, `graph`, `host_fn`,
    /// `synchronize`, `range`.
    pub const fn name(self) -> &'static str {
        match self {
            SpanKind::Kernel => "kernel",
            SpanKind::Upload => "upload",
            SpanKind::Download => "download",
            SpanKind::Copy => "copy",
            SpanKind::Fill => "fill",
            SpanKind::Prefetch => "prefetch",
            SpanKind::Graph => "graph",
            SpanKind::HostFn => "host_fn",
            SpanKind::Synchronize => "synchronize",
            SpanKind::Range => "range",
        }
    }
}

/// The shape of a launch.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # #[kernel]
/// # pub fn step(t: Thread<1>, mut y: DisjointSlice<u32>) {
/// #     if let Some(y) = y.get_mut(t.index()) {
/// #         *y += 1;
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::profile::Timeline;
///
/// let timeline = Timeline::start(stream.device())?;
/// let mut y = stream.zeros(1000)?;
/// kernels::step(&stream, Grid::cover(1000), &mut y)?;
/// let trace = timeline.finish();
/// let launch = trace.device_spans().find_map(|span| span.launch).unwrap();
/// assert_eq!((launch.grid, launch.block, launch.shared_bytes), ([4, 1, 1], [256, 1, 1], 0));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory for each block.
    pub shared_bytes: usize,
}

impl Trace {
    pub(super) fn new(
        device: Box<str>,
        spans: Vec<Span>,
        threads: Vec<(u64, Box<str>)>,
        lost: usize,
    ) -> Self {
        Trace { device, spans, threads, lost }
    }

    /// All spans, by their start; of those that start together the longest first.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The spans of the device itself.
    pub fn device_spans(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(|span| matches!(span.track, Track::Stream(_)))
    }

    /// How much work has no span, because its events have no times: the device failed, or runs work of a stream
    /// that another library has ended.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The name of a thread, or `None` if the trace has no spans of it.
    pub fn thread_name(&self, number: u64) -> Option<&str> {
        self.threads.iter().find(|(known, _)| *known == number).map(|(_, name)| &**name)
    }

    /// The trace in the Trace Event Format (JSON): the host's threads as one process, the device's streams as
    /// another, and an arrow from each call to the work that it requested. Times are microseconds.
    pub fn to_json(&self) -> String {
        chrome::json(self)
    }

    /// Writes [`Trace::to_json`] to a file, which [Perfetto](https://ui.perfetto.dev) and chrome://tracing
    /// open.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.to_json())
    }
}
