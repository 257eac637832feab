//! Named ranges: stages of a program.

use std::fmt;
use std::marker::PhantomData;
use std::time::Instant;

use super::active;

/// A stage of the program, from [`range`] until this is dropped.
///
/// ```
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::Device;
/// use ferrogrid::profile::{self, Range, SpanKind, Timeline};
///
/// /// A stage, counted from 1.
/// fn stage(name: &str) -> Range<'_> {
///     profile::range(name)
/// }
/// let timeline = Timeline::start(&Device::cpu())?;
/// let prepare = stage("prepare");
/// drop(prepare); // it ends here
/// let trace = timeline.finish();
/// let span = trace.spans().iter().find(|span| span.kind == SpanKind::Range).unwrap();
/// assert_eq!(&*span.name, "prepare");
/// # Ok(()) }
/// ```
#[must_use = "the range ends when this is dropped"]
pub struct Range<'a> {
    name: &'a str,
    start: Instant,
    #[cfg(feature = "tracing")]
    _span: tracing::span::EnteredSpan,
    #[cfg(feature = "nvtx")]
    _range: super::nvtx::Pushed,
    /// It belongs to the thread that began it.
    thread: PhantomData<*const ()>,
}

/// Begins a stage of the program that is called `name`: a span of the calling thread in all timelines that
/// are being recorded when it ends, and, with the features, a `tracing` span (`range`) and an NVTX range
/// (`nvtxRangePush`, `nvtxRangePop`).
///
/// ```
/// let stage = ferrogrid_host::profile::range("prepare");
/// // ... launches, copies, work of the host ...
/// drop(stage);
/// ```
pub fn range(name: &str) -> Range<'_> {
    Range {
        name,
        start: Instant::now(),
        #[cfg(feature = "tracing")]
        _span: tracing::debug_span!(target: "ferrogrid", "range", name).entered(),
        #[cfg(feature = "nvtx")]
        _range: super::nvtx::push(name),
        thread: PhantomData,
    }
}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        active::note_range(self.name, self.start);
    }
}

impl fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("name", &self.name).finish_non_exhaustive()
    }
}
