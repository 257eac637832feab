//! The record of uses of an allocation, and the waits that follow from it by the rule in `order/mod.rs`.
//! Depends on nothing but its locks: `host/tests/loom/order.rs` includes it by path and explores all
//! interleavings.

use std::sync::PoisonError;

use crate::error::Result;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};

/// What the order needs of a stream.
pub(crate) trait OrderedStream {
    /// A number that no other stream of the process has or had; never 0.
    fn id(&self) -> u64;

    /// Whether no more work can be enqueued here, nor is a call about to.
    fn is_closed(&self) -> bool;

    /// Makes work enqueued here from now on start after all that `earlier` holds so far.
    fn run_after(&self, earlier: &Self) -> Result<()>;
}

/// The number of readers in a record from which closed ones are removed.
pub(super) const MANY_READERS: usize = 8;

/// How work uses an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It only reads; others may read at the same time.
    Read = 0,
    /// It writes, and nothing else uses any part of the allocation meanwhile.
    Write = 1,
    /// It writes a part, while other work may use other parts. Or it changes elements atomically, as other work may at the
    /// same time.
    WritePart = 2,
}

/// The order of work on one allocation. In most cases a launch reads only the first word.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Order<S> {
    /// The only stream in the record, or 0 if there are several, or it is a guest.
    pub(super) owner: AtomicU64,
    record: Mutex<Record<S>>,
}

#[derive(Debug)]
pub(super) struct Record<S> {
    /// The last exclusive writer; at first the stream that allocated, if one has.
    writer: Option<Arc<S>>,
    /// Streams that wrote parts since.
    parts: Vec<Arc<S>>,
    /// Streams that read since, each of which has waited for `writer`.
    pub(super) readers: Vec<Arc<S>>,
}

impl<S: OrderedStream> Order<S> {
    /// The order of an allocation made on `stream`.
    pub(crate) fn new(stream: Arc<S>) -> Self {
        Order::of(stream.id(), Some(stream))
    }

    /// As `new`, where `stream` is a guest: see `begin_as_guest`.
    pub(crate) fn of_guest(stream: Arc<S>) -> Self {
        Order::of(0, Some(stream))
    }

    /// The order of memory that no stream has used yet.
    pub(crate) fn unused() -> Self {
        Order::of(0, None)
    }

    fn of(owner: u64, writer: Option<Arc<S>>) -> Self {
        let record = Record { writer, parts: Vec::new(), readers: Vec::new() };
        Order { owner: AtomicU64::new(owner), record: Mutex::new(record) }
    }

    /// Whether `begin` has nothing to do: no other stream is in the record, and this one has begun a use before.
    #[inline]
    pub(crate) fn is_alone(&self, stream: &S, usage: Use) -> bool {
        usage != Use::WritePart && self.owner() == stream.id()
    }

    /// The id of the only stream in the record, or 0.
    #[inline]
    pub(crate) fn owner(&self) -> u64 {
        self.owner.load(Ordering::Acquire)
    }

    /// Makes the next work on `stream` wait for the work that it must come after.
    ///
    /// On an error nothing is entered, and nothing may be enqueued.
    #[inline]
    pub(crate) fn begin(&self, stream: &Arc<S>, usage: Use) -> Result<()> {
        if self.is_alone(stream, usage) {
            return Ok(());
        }
        self.enter(stream, usage, S::id)
    }

    /// As `begin`, for a stream that may not use the memory in every way: nothing follows from its being alone, so
    /// `is_alone` never says so.
    pub(crate) fn begin_as_guest(&self, stream: &Arc<S>, usage: Use) -> Result<()> {
        self.enter(stream, usage, |_| 0)
    }

    /// Enters a use; `owner` identifies the stream if no other is in the record.
    #[cold]
    fn enter(&self, stream: &Arc<S>, usage: Use, owner: impl FnOnce(&S) -> u64) -> Result<()> {
        let mut record = self.lock();
        match usage {
            Use::Read => record.read(stream)?,
            Use::Write => record.write(stream)?,
            Use::WritePart => record.write_part(stream)?,
        }
        let owner = if record.has_only(stream) { owner(stream) } else { 0 };
        self.owner.store(owner, Ordering::Release);
        Ok(())
    }

    /// The streams whose work so far a use by the host must come after.
    pub(crate) fn earlier(&self, usage: Use) -> Vec<Arc<S>> {
        let record = self.lock();
        let readers = if usage == Use::Read { &[][..] } else { &record.readers[..] };
        let earlier = record.writer.iter().chain(&record.parts).chain(readers);
        earlier.cloned().collect()
    }

    /// The stream on which the allocation is freed, after it has been made to wait for all uses. It is one that has used
    /// the allocation and `fits`, else the one that `other` makes.
    pub(crate) fn end(
        &mut self,
        fits: impl Fn(&S) -> bool,
        other: impl FnOnce() -> Result<Arc<S>>,
    ) -> Result<Arc<S>> {
        let record = self.record.get_mut().unwrap_or_else(PoisonError::into_inner);
        let used = record.parts.iter().rev().chain(record.readers.iter().rev()).chain(&record.writer);
        let last = match used.into_iter().find(|stream| fits(stream)) {
            Some(stream) => stream.clone(),
            None => other()?,
        };
        record.write(&last)?;
        Ok(last)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Record<S>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: OrderedStream> Record<S> {
    fn read(&mut self, stream: &Arc<S>) -> Result<()> {
        for part in &self.parts {
            wait(stream, part)?;
        }
        if self.writer.iter().chain(&self.readers).any(|known| same(known, stream)) {
            return Ok(());
        }
        if let Some(writer) = &self.writer {
            wait(stream, writer)?;
        }
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
        self.writer = Some(stream.clone());
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

    /// Not before there is a writer: a stream that is alone writes without being entered as one.
    fn has_only(&self, stream: &Arc<S>) -> bool {
        self.writer.is_some() && self.streams().all(|other| same(other, stream))
    }

    fn streams(&self) -> impl Iterator<Item = &Arc<S>> {
        self.writer.iter().chain(&self.parts).chain(&self.readers)
    }
}

fn wait<S: OrderedStream>(stream: &Arc<S>, earlier: &Arc<S>) -> Result<()> {
    if same(stream, earlier) { Ok(()) } else { stream.run_after(earlier) }
}

fn same<S: OrderedStream>(a: &Arc<S>, b: &Arc<S>) -> bool {
    a.id() == b.id()
}
