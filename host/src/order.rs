//! The order of work on one allocation across streams, kept without the user asking. It must not
//! know which backend runs: all it asks of a stream is to start later work after what another
//! stream holds so far.
//!
//! # The rule
//!
//! Work on one stream runs in order. So an allocation has to be ordered only where two streams use
//! it: a read waits for the writes before it, a write waits for all uses before it. Waiting means
//! waiting for the *tail* of the other stream, taken when the wait is asked for; every use that was
//! enqueued there before lies before that tail. No event is recorded per use.
//!
//! While a single stream uses the allocation, `owner` holds that stream's number, and a use costs one
//! atomic load. Otherwise a mutex guards the record of who used it.
//!
//! # Why it is sound
//!
//! [`Order::begin`] is called just before the work is enqueued, not together with it, so another
//! thread may call it in between, for its own use of the same allocation. The call that enqueues
//! holds the borrow of its view until it has enqueued. So the borrow checker leaves these overlaps:
//!
//! - *read with read*: neither removes a stream from the record, so a later write finds both, and by
//!   then both have enqueued (the write needs `&mut`). The shortcut "this reader has waited for the
//!   writer" is about [`Use::Write`] only, which cannot overlap anything.
//! - *read or part-write with part-write*, of disjoint parts (`split_at_mut`), or of the same elements
//!   where threads change them atomically (`as_atomic`, whose views are `Copy`): a part-write is
//!   always entered into the record under the mutex (never on the fast path), removes nobody, and
//!   is waited for by every later use on another stream, with no shortcut.
//! - [`Use::Write`] has the whole allocation to itself: when it begins, every earlier use has
//!   been enqueued. It waits for them all, and may therefore forget them.
//!
//! The fast path leaves the record as it is; it is taken only when the record holds that one stream,
//! for reads (which a later writer will find by that entry) and for exclusive writes.
//!
//! A stream that is closed (its handle is gone, so no call can be enqueueing on it) may leave the
//! record once another stream in the record has been made to run after it.
//!
//! Pointers taken with `as_device_ptr` are outside all this; that is what their `unsafe` says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;

/// What the order needs of a stream.
pub(crate) trait OrderedStream {
    /// A number that no other stream of the process has or had; never 0.
    fn id(&self) -> u64;

    /// Whether no more work can be enqueued here, nor is a call about to.
    fn is_closed(&self) -> bool;

    /// Makes work enqueued here from now on start after all that `earlier` holds so far.
    fn run_after(&self, earlier: &Self) -> Result<()>;
}

/// Readers in a record before those that are closed are sought out.
const MANY_READERS: usize = 8;

/// How work uses an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It only reads, perhaps at the same time as others.
    Read,
    /// It writes, and nothing else uses any part of the allocation meanwhile.
    Write,
    /// It writes a part, while other parts may be in use elsewhere; or it changes elements atomically,
    /// while others may be about to do the same.
    WritePart,
}

/// The order of work on one allocation.
#[derive(Debug)]
pub(crate) struct Order<S> {
    /// The only stream in the record, or 0 if there are several.
    owner: AtomicU64,
    record: Mutex<Record<S>>,
}

#[derive(Debug)]
struct Record<S> {
    /// The last exclusive writer; at first the stream that allocated.
    writer: Arc<S>,
    /// Streams that wrote parts since.
    parts: Vec<Arc<S>>,
    /// Streams that read since, each of which has waited for `writer`.
    readers: Vec<Arc<S>>,
}

impl<S: OrderedStream> Order<S> {
    /// The order of an allocation made on `stream`.
    pub(crate) fn new(stream: Arc<S>) -> Self {
        Order {
            owner: AtomicU64::new(stream.id()),
            record: Mutex::new(Record { writer: stream, parts: Vec::new(), readers: Vec::new() }),
        }
    }

    /// Makes what `stream` is about to be given wait for what it must come after.
    ///
    /// On an error nothing is entered, and nothing may be enqueued.
    #[inline]
    pub(crate) fn begin(&self, stream: &Arc<S>, usage: Use) -> Result<()> {
        if usage != Use::WritePart && self.owner.load(Ordering::Acquire) == stream.id() {
            return Ok(());
        }
        self.begin_shared(stream, usage)
    }

    #[cold]
    fn begin_shared(&self, stream: &Arc<S>, usage: Use) -> Result<()> {
        let mut record = self.lock();
        match usage {
            Use::Read => record.read(stream)?,
            Use::Write => record.write(stream)?,
            Use::WritePart => record.write_part(stream)?,
        }
        self.owner.store(record.only_stream(), Ordering::Release);
        Ok(())
    }

    /// The streams whose work so far a use by the host must come after.
    pub(crate) fn earlier(&self, usage: Use) -> Vec<Arc<S>> {
        let record = self.lock();
        let readers = if usage == Use::Read { &[][..] } else { &record.readers[..] };
        let earlier = std::iter::once(&record.writer).chain(&record.parts).chain(readers);
        earlier.cloned().collect()
    }

    /// The stream on which the allocation is to be freed, made to wait for all uses: one that has used it and
    /// `fits`, else what `other` makes.
    pub(crate) fn end(
        &mut self,
        fits: impl Fn(&S) -> bool,
        other: impl FnOnce() -> Result<Arc<S>>,
    ) -> Result<Arc<S>> {
        let record = self.record.get_mut().unwrap_or_else(PoisonError::into_inner);
        let used = record.parts.iter().rev().chain(record.readers.iter().rev()).chain([&record.writer]);
        let last = match used.into_iter().find(|stream| fits(stream)) {
            Some(stream) => stream.clone(),
            None => other()?,
        };
        record.write(&last)?;
        Ok(last)
    }

    fn lock(&self) -> MutexGuard<'_, Record<S>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: OrderedStream> Record<S> {
    fn read(&mut self, stream: &Arc<S>) -> Result<()> {
        for part in &self.parts {
            wait(stream, part)?;
        }
        if same(&self.writer, stream) || self.readers.iter().any(|reader| same(reader, stream)) {
            return Ok(());
        }
        wait(stream, &self.writer)?;
        if self.readers.len() >= MANY_READERS {
            let (closed, open) = self.readers.iter().cloned().partition(|reader| reader.is_closed());
            let closed: Vec<Arc<S>> = closed;
            closed.iter().try_for_each(|reader| wait(stream, reader))?;
            self.readers = open;
        }
        self.readers.push(stream.clone());
        Ok(())
    }

    fn write(&mut self, stream: &Arc<S>) -> Result<()> {
        self.wait_for_all(stream)?;
        self.parts.clear();
        self.readers.clear();
        self.writer = stream.clone();
        Ok(())
    }

    fn write_part(&mut self, stream: &Arc<S>) -> Result<()> {
        let closed: Vec<u64> =
            self.streams().filter(|stream| stream.is_closed()).map(|stream| stream.id()).collect();
        self.wait_for_all(stream)?;
        self.readers.retain(|reader| !closed.contains(&reader.id()));
        self.parts.retain(|part| !closed.contains(&part.id()));
        if !self.parts.iter().any(|part| same(part, stream)) {
            self.parts.push(stream.clone());
        }
        Ok(())
    }

    fn wait_for_all(&self, stream: &Arc<S>) -> Result<()> {
        let mut waited: Vec<u64> = Vec::new();
        for other in self.streams() {
            if !waited.contains(&other.id()) {
                wait(stream, other)?;
                waited.push(other.id());
            }
        }
        Ok(())
    }

    fn only_stream(&self) -> u64 {
        let id = self.writer.id();
        if self.streams().all(|stream| stream.id() == id) { id } else { 0 }
    }

    fn streams(&self) -> impl Iterator<Item = &Arc<S>> {
        std::iter::once(&self.writer).chain(&self.parts).chain(&self.readers)
    }
}

fn wait<S: OrderedStream>(stream: &Arc<S>, earlier: &Arc<S>) -> Result<()> {
    if same(stream, earlier) { Ok(()) } else { stream.run_after(earlier) }
}

fn same<S: OrderedStream>(a: &Arc<S>, b: &Arc<S>) -> bool {
    a.id() == b.id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// A stream as vector clock: what work of each stream its next work comes after.
    struct Model {
        id: u64,
        clock: Mutex<[u64; 16]>,
        waits: AtomicU64,
        closed: AtomicBool,
    }

    impl OrderedStream for Model {
        fn id(&self) -> u64 {
            self.id
        }

        fn is_closed(&self) -> bool {
            self.closed.load(Ordering::Relaxed)
        }

        fn run_after(&self, earlier: &Self) -> Result<()> {
            let theirs = *earlier.clock.lock().unwrap();
            let mut ours = self.clock.lock().unwrap();
            for (ours, theirs) in ours.iter_mut().zip(theirs) {
                *ours = (*ours).max(theirs);
            }
            self.waits.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    impl Model {
        fn stream(id: u64) -> Arc<Model> {
            let (waits, closed) = (AtomicU64::new(0), AtomicBool::new(false));
            Arc::new(Model { id, clock: Mutex::new([0; 16]), waits, closed })
        }

        fn streams() -> Vec<Arc<Model>> {
            (1..=4).map(Model::stream).collect()
        }

        /// Enqueues work; returns (stream, number) of it and the clock it started at.
        fn enqueue(&self) -> (usize, u64, [u64; 16]) {
            let mut clock = self.clock.lock().unwrap();
            let before = *clock;
            let slot = self.id as usize - 1;
            clock[slot] += 1;
            (slot, clock[slot], before)
        }

        fn waits(&self) -> u64 {
            self.waits.load(Ordering::Relaxed)
        }
    }

    fn comes_after(clock: &[u64; 16], work: (usize, u64)) -> bool {
        clock[work.0] >= work.1
    }

    #[test]
    fn one_stream_never_waits() {
        let streams = Model::streams();
        let order = Order::new(streams[0].clone());
        for usage in [Use::Read, Use::Write, Use::WritePart, Use::Read, Use::Write] {
            order.begin(&streams[0], usage).unwrap();
        }
        assert_eq!(streams[0].waits(), 0);
        assert_eq!(order.owner.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_shared_input_waits_once_per_reader() {
        let streams = Model::streams();
        let order = Order::new(streams[0].clone());
        for _ in 0..100 {
            order.begin(&streams[1], Use::Read).unwrap();
            order.begin(&streams[0], Use::Read).unwrap();
        }
        assert_eq!(streams[1].waits(), 1);
        assert_eq!(streams[0].waits(), 0);
    }

    #[test]
    fn readers_that_are_closed_do_not_pile_up() {
        let order = Order::new(Model::stream(1));
        for id in 2..16 {
            for _ in 0..20 {
                let reader = Model::stream(id);
                order.begin(&reader, Use::Read).unwrap();
                reader.closed.store(true, Ordering::Relaxed);
            }
        }
        assert!(order.lock().readers.len() <= MANY_READERS, "{} readers", order.lock().readers.len());
    }

    #[test]
    fn a_write_takes_ownership_back() {
        let streams = Model::streams();
        let order = Order::new(streams[0].clone());
        order.begin(&streams[1], Use::Read).unwrap();
        order.begin(&streams[1], Use::Write).unwrap();
        assert_eq!(order.owner.load(Ordering::Relaxed), 2);
    }

    /// Against a model: every sequence of uses, on any streams, orders each write with all uses before
    /// it, and each read with all writes before it.
    #[test]
    fn conflicting_uses_are_always_ordered() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |n: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % n
        };
        for _ in 0..2_000 {
            let mut streams = Model::streams();
            let mut order = Order::new(streams[0].clone());
            let mut history: Vec<(Use, (usize, u64))> = Vec::new();
            for step in 0..24 {
                let slot = random(4) as usize;
                if step % 2 == 0 {
                    streams[slot].closed.store(true, Ordering::Relaxed);
                    streams[slot] = Model::stream(5 + step / 2);
                }
                let stream = &streams[slot];
                let usage = match random(12) {
                    0 => Use::Write,
                    1 | 2 => Use::WritePart,
                    _ => Use::Read,
                };
                order.begin(stream, usage).unwrap();
                let (slot, number, clock) = stream.enqueue();
                for (earlier, work) in &history {
                    let conflict = *earlier != Use::Read || usage != Use::Read;
                    assert!(!conflict || comes_after(&clock, *work), "{usage:?} after {earlier:?}");
                }
                history.push((usage, (slot, number)));
            }
            let last = order.end(|stream| !stream.is_closed(), || Ok(Model::stream(16))).unwrap();
            let (_, _, clock) = last.enqueue();
            assert!(history.iter().all(|(_, work)| comes_after(&clock, *work)), "free after all uses");
        }
    }

    /// The overlaps that the borrow checker allows: `begin` of two parts (or of two reads) before
    /// either is enqueued, then a use of the whole.
    #[test]
    fn uses_that_begin_together_are_all_waited_for() {
        let begins = [
            (Use::WritePart, Use::WritePart),
            (Use::Read, Use::WritePart),
            (Use::WritePart, Use::Read),
            (Use::Read, Use::Read),
        ];
        for (first, second) in begins {
            for (a, b, c) in (0..64).map(|n| (n % 4, n / 4 % 4, n / 16)) {
                let streams = Model::streams();
                let order = Order::new(streams[0].clone());
                order.begin(&streams[c], Use::Read).unwrap();
                order.begin(&streams[a], first).unwrap();
                order.begin(&streams[b], second).unwrap();
                let first_work = streams[a].enqueue();
                let second_work = streams[b].enqueue();
                for usage in [Use::Read, Use::Write] {
                    order.begin(&streams[c], usage).unwrap();
                    let (_, _, clock) = streams[c].enqueue();
                    for (earlier, work) in [(first, first_work), (second, second_work)] {
                        if usage == Use::Write || earlier != Use::Read {
                            let ordered = comes_after(&clock, (work.0, work.1));
                            assert!(ordered, "{usage:?} on {c} after {first:?} {a}, {second:?} {b}");
                        }
                    }
                }
            }
        }
    }
}
