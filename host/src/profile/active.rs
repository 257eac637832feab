//! The hook that every call to a device passes: it informs observers if there are any, and otherwise costs
//! one load.

#[cfg(feature = "tracing")]
use std::mem::ManuallyDrop;
#[cfg(feature = "tracing")]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::recorder::Recorder;
use super::work::Work;
use crate::device::Device;
use crate::error::Result;
use crate::order::OrderedStream;
use crate::stream::StreamInner;
use crate::sync::lock;

/// The timelines that are being recorded, of all devices.
static RECORDERS: Mutex<Vec<Arc<Recorder>>> = Mutex::new(Vec::new());
/// The number of entries, readable without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether calls to devices are observed.
#[inline]
pub(crate) fn is_observed() -> bool {
    cfg!(any(feature = "tracing", feature = "nvtx")) || COUNT.load(Ordering::Relaxed) != 0
}

/// Runs `enqueue`, which enqueues the described work on `stream`.
#[inline]
pub(crate) fn observe<R>(stream: &StreamInner, work: Work, enqueue: impl FnOnce() -> Result<R>) -> Result<R> {
    let _call = Call::of(stream, work);
    if COUNT.load(Ordering::Relaxed) == 0 { enqueue() } else { observe_slowly(stream, work, enqueue) }
}

/// Runs `call`, in which the host itself does the described work, or waits for it; no stream gets work.
#[inline]
pub(crate) fn observe_host<R>(device: &Device, work: Work, call: impl FnOnce() -> Result<R>) -> Result<R> {
    let _call = Call::new(work);
    if COUNT.load(Ordering::Relaxed) == 0 {
        return call();
    }
    let start = Instant::now();
    let result = call();
    let end = Instant::now();
    for recorder in of_device(device) {
        recorder.note_call(work, start, end);
    }
    result
}

/// Notes a range that the user has named in all timelines.
pub(super) fn note_range(name: &str, start: Instant) {
    if COUNT.load(Ordering::Relaxed) > 0 {
        let end = Instant::now();
        let recorders = recorders().clone();
        recorders.iter().for_each(|recorder| recorder.note_range(name, start, end));
    }
}

#[cold]
#[inline(never)]
fn observe_slowly<R>(stream: &StreamInner, work: Work, enqueue: impl FnOnce() -> Result<R>) -> Result<R> {
    let recorders = of_device(stream.device());
    // What is recorded into a graph does not run now.
    if recorders.is_empty() || stream.recording().is_some() {
        return enqueue();
    }
    // Before the mark: no work begins before the call that asks for it.
    let start = Instant::now();
    let before = stream.mark();
    let result = enqueue();
    let end = Instant::now();
    let after = if result.is_ok() { stream.mark() } else { return result };
    let marks = before.and_then(|before| after.map(|after| (Arc::new(before), Arc::new(after)))).ok();
    for recorder in recorders {
        recorder.note_work(work, stream.id(), (start, end), marks.clone());
    }
    result
}

pub(super) fn register(recorder: Arc<Recorder>) {
    let mut recorders = recorders();
    recorders.push(recorder);
    COUNT.store(recorders.len(), Ordering::Relaxed);
}

pub(super) fn unregister(recorder: &Arc<Recorder>) {
    let mut recorders = recorders();
    recorders.retain(|other| !Arc::ptr_eq(other, recorder));
    COUNT.store(recorders.len(), Ordering::Relaxed);
}

fn of_device(device: &Device) -> Vec<Arc<Recorder>> {
    recorders().iter().filter(|recorder| recorder.device() == device).cloned().collect()
}

fn recorders() -> MutexGuard<'static, Vec<Arc<Recorder>>> {
    lock(&RECORDERS)
}

/// The span and the range around a call; empty without the features.
struct Call {
    #[cfg(feature = "tracing")]
    span: ManuallyDrop<tracing::span::EnteredSpan>,
    #[cfg(feature = "nvtx")]
    _range: super::nvtx::Pushed,
}

impl Call {
    #[inline]
    fn of(stream: &StreamInner, work: Work) -> Option<Self> {
        // What is recorded into a graph does not run now.
        let observed = cfg!(any(feature = "tracing", feature = "nvtx")) && stream.recording().is_none();
        observed.then(|| Call::new(work))
    }

    #[inline]
    #[allow(unused_variables, reason = "without the features")]
    fn new(work: Work) -> Self {
        Call {
            #[cfg(feature = "tracing")]
            span: ManuallyDrop::new(work.span().entered()),
            #[cfg(feature = "nvtx")]
            _range: super::nvtx::push(work.name()),
        }
    }
}

#[cfg(feature = "tracing")]
impl Drop for Call {
    /// A subscriber that panics at the end of a span must not unwind here: a copy may be under way, of memory
    /// that the caller would free.
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is taken once, here.
        let span = unsafe { ManuallyDrop::take(&mut self.span) };
        let _panicked = catch_unwind(AssertUnwindSafe(|| drop(span)));
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::{Timeline, Track};
    use crate::{Device, Result};

    /// On the CPU device, whose clock is the host's: an arrow from a call to its work never leads back in time.
    #[test]
    fn no_work_begins_before_its_call() -> Result<()> {
        let device = Device::cpu();
        let stream = device.new_stream()?;
        let mut data = stream.zeros::<u32>(64)?;
        let timeline = Timeline::start(&device)?;
        for value in 0..200 {
            stream.fill_into(value, &mut data)?;
            stream.synchronize()?; // the next fill finds the stream idle
        }
        let trace = timeline.finish();
        let calls: Vec<_> =
            trace.spans().iter().filter(|span| matches!(span.track, Track::Thread(_))).collect();
        let mut compared = 0;
        for work in trace.device_spans() {
            let Some(call) = calls.iter().find(|call| call.call.is_some() && call.call == work.call) else {
                continue;
            };
            assert!(call.start <= work.start, "{call:?} asks for {work:?}");
            compared += 1;
        }
        assert!(compared >= 200, "{compared}");
        Ok(())
    }
}
