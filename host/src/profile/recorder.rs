//! Collects the spans of one timeline and converts pairs of events to times.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::trace::{Span, SpanKind, Trace, Track};
use super::work::Work;
use crate::backend::EventBackend;
use crate::device::Device;
use crate::error::Result;
use crate::sync::lock;

/// So many pairs of events wait to be read at least before any is read: reading them is left for later.
const MANY_PENDING: usize = 1024;
/// After so many seconds times are measured from a new event: CUDA returns them in 32-bit
/// milliseconds, which after a second have a resolution below a tenth of a microsecond.
const ANCHOR_SECONDS: f64 = 0.5;

/// The events before and after a piece of work.
pub(super) type Marks = (Arc<EventBackend>, Arc<EventBackend>);

/// The records of a timeline so far.
pub(super) struct Recorder {
    device: Device,
    /// The host's time that is 0.
    base: Instant,
    collected: Mutex<Collected>,
}

struct Collected {
    spans: Vec<Span>,
    /// Whose events have not been read, in the order of the calls.
    pending: VecDeque<Pending>,
    /// The event from which times are measured, and its own time in seconds.
    anchor: (Arc<EventBackend>, f64),
    threads: Vec<(u64, Box<str>)>,
    next_call: u64,
    lost: usize,
}

struct Pending {
    work: Work,
    stream: u64,
    call: u64,
    /// When the call began.
    asked: Duration,
    marks: Marks,
}

impl Recorder {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let (base, event) = clocks(device)?;
        let collected = Collected {
            spans: Vec::new(),
            pending: VecDeque::new(),
            anchor: (Arc::new(event), 0.0),
            threads: Vec::new(),
            next_call: 1,
            lost: 0,
        };
        Ok(Recorder { device: device.clone(), base, collected: Mutex::new(collected) })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Records a call that enqueued work on `stream` between the marks; without marks, its times are unknown.
    pub(super) fn note_work(&self, work: Work, stream: u64, host: (Instant, Instant), marks: Option<Marks>) {
        let mut collected = lock(&self.collected);
        let call = collected.next_call;
        collected.next_call += 1;
        let span = self.call(work, host.0, host.1, &mut collected);
        let asked = span.start;
        collected.spans.push(Span { call: Some(call), ..span });
        match marks {
            Some(marks) => collected.pending.push_back(Pending { work, stream, call, asked, marks }),
            None => collected.lost += 1,
        }
        if collected.pending.len() >= MANY_PENDING {
            collected.read_complete();
        }
    }

    /// Records a call in which the host did the work itself.
    pub(super) fn note_call(&self, work: Work, start: Instant, end: Instant) {
        let mut collected = lock(&self.collected);
        let span = self.call(work, start, end, &mut collected);
        collected.spans.push(span);
    }

    pub(super) fn note_range(&self, name: &str, start: Instant, end: Instant) {
        let mut collected = lock(&self.collected);
        let span = self.on_thread(name, SpanKind::Range, start, end, &mut collected);
        collected.spans.push(span);
    }

    /// All spans, once what was recorded has run.
    pub(super) fn trace(&self) -> Trace {
        let mut collected = lock(&self.collected);
        // While events are waited for, others may still be at the end of a call.
        while let Some(pending) = collected.pending.pop_front() {
            drop(collected);
            let happened = pending.marks.1.wait_unreported();
            collected = lock(&self.collected);
            collected.read(pending, happened);
        }
        let mut spans = std::mem::take(&mut collected.spans);
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.duration)));
        let threads = std::mem::take(&mut collected.threads);
        Trace::new(self.device.to_string().into(), spans, threads, collected.lost)
    }

    fn call(&self, work: Work, start: Instant, end: Instant, collected: &mut Collected) -> Span {
        describe(work, self.on_thread(work.name(), work.kind(), start, end, collected))
    }

    fn on_thread(
        &self,
        name: &str,
        kind: SpanKind,
        start: Instant,
        end: Instant,
        collected: &mut Collected,
    ) -> Span {
        let track = Track::Thread(collected.this_thread());
        let (start, duration) = self.times(start, end);
        Span::new(name, kind, track, start, duration)
    }

    /// Since the base; what began earlier begins there.
    fn times(&self, start: Instant, end: Instant) -> (Duration, Duration) {
        let (start, end) = (start.max(self.base), end.max(self.base));
        (start - self.base, end - start)
    }
}

impl Collected {
    /// Reads what has run, up to the first that has not.
    fn read_complete(&mut self) {
        while let Some(pending) = self.pending.front() {
            match pending.marks.1.is_complete() {
                Ok(false) => return,
                happened => {
                    if let Some(pending) = self.pending.pop_front() {
                        self.read(pending, happened.map(drop));
                    }
                }
            }
        }
    }

    fn read(&mut self, pending: Pending, happened: Result<()>) {
        let times = happened.and_then(|()| self.times(&pending.marks));
        let Ok((start, seconds)) = times else {
            self.lost += 1;
            return;
        };
        let start = self.no_earlier(start, pending.asked);
        let work = pending.work;
        let track = Track::Stream(pending.stream);
        let span = Span::new(work.name(), work.kind(), track, duration(start), duration(seconds));
        self.spans.push(Span { call: Some(pending.call), ..describe(work, span) });
        if start - self.anchor.1 > ANCHOR_SECONDS {
            self.anchor = (pending.marks.0, start);
        }
    }

    /// `start`, which is not before `asked`: nothing begins before its call. Where it seems to, the clocks are
    /// apart by at least as much, and all that comes later is later, too, or spans of one stream would overlap.
    fn no_earlier(&mut self, start: f64, asked: Duration) -> f64 {
        let apart = (asked.as_secs_f64() - start).max(0.0);
        self.anchor.1 += apart;
        start + apart
    }

    /// When the work began, and how long it took, in seconds.
    fn times(&self, (before, after): &Marks) -> Result<(f64, f64)> {
        let (anchor, offset) = &self.anchor;
        Ok((offset + before.seconds_since(anchor)?, after.seconds_since(before)?))
    }

    /// The number of the calling thread, whose name is noted.
    fn this_thread(&mut self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static NUMBER: Cell<u64> = const { Cell::new(0) };
        }
        let number = NUMBER.try_with(|number| {
            if number.get() == 0 {
                number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            number.get()
        });
        // A thread that is ending has no number any more.
        let number = number.unwrap_or(0);
        if !self.threads.iter().any(|(known, _)| *known == number) {
            let name = std::thread::current().name().map(Box::from);
            self.threads.push((number, name.unwrap_or_else(|| format!("thread {number}").into())));
        }
        number
    }
}

/// The span with what is known of the work.
fn describe(work: Work, span: Span) -> Span {
    Span { bytes: work.bytes(), nodes: work.nodes(), launch: work.launch(), ..span }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default()
}

/// An event, and the time of the host's clock at which it happened: on a GPU the closest of several tries.
fn clocks(device: &Device) -> Result<(Instant, EventBackend)> {
    let stream = device.new_stream()?;
    let mut best: Option<(Duration, Instant, EventBackend)> = None;
    for _ in 0..5 {
        let before = Instant::now();
        let event = stream.inner().mark()?;
        event.wait_unreported()?;
        let span = before.elapsed();
        if let Some(at) = event.host_time() {
            return Ok((at, event));
        }
        if best.as_ref().is_none_or(|(least, ..)| span < *least) {
            best = Some((span, before + span / 2, event));
        }
    }
    let (_, base, event) = best.expect("there were several tries");
    Ok((base, event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_one_stream_stay_apart_if_the_clocks_are_found_to_be() -> Result<()> {
        let recorder = Recorder::new(&Device::cpu())?;
        let mut collected = lock(&recorder.collected);
        let anchor = collected.anchor.0.clone();
        // By the device's clock, the first takes from 1 s to 2 s, the second from 2 s on.
        let first = collected.no_earlier(1.0, Duration::from_millis(1500));
        let offset = collected.times(&(anchor.clone(), anchor))?.0;
        let second = collected.no_earlier(offset + 2.0, Duration::ZERO);
        assert_eq!((first, second), (1.5, 2.5));
        Ok(())
    }
}
