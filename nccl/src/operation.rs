//! [`Operation`]: what a rank contributes to one collective operation, before it is enqueued.

use std::fmt;

use ferrogrid_host::__private::{Access, DeviceView, DeviceViewMut, ExternalWork};
use ferrogrid_host::{NcclError, Result, Stream};

use crate::call::{Call, Kind};
use crate::communicator::{Backend, Communicator};
use crate::element::{Element, ElementType};
use crate::gpu;
use crate::group::{Group, check_stream};

/// One rank's part of an operation among all ranks, or of a message between two. It borrows its buffers, and does nothing until
/// it is enqueued, by itself or in a [`Group`]. Wrong lengths and ranks are errors then.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::nccl::{Communicator, Operation, ReduceOp};
///
/// let [alone] = Communicator::all(&[Device::cpu()])?.try_into().unwrap();
/// let stream = alone.device().new_stream()?;
/// let (x, mut y) = (stream.upload(&[1.0_f32, 2.0])?, stream.zeros(2)?);
/// let sum: Operation = alone.all_reduce(ReduceOp::Sum, &x, &mut y); // nothing happens yet
/// assert_eq!(format!("{sum:?}"), "Operation { rank: 0, call: all_reduce (sum) of 2 f32 }");
/// sum.enqueue(&stream)?;
/// assert_eq!(stream.download(&y)?, [1.0, 2.0]);
///
/// let error = alone.all_reduce(ReduceOp::Sum, x.slice(1..)?, &mut y).enqueue(&stream).unwrap_err();
/// assert_eq!(error.to_string(), "all_reduce among 1 ranks: the target has 2 elements; expected 1, as the source has");
/// # Ok(()) }
/// ```
#[must_use = "it does nothing until it is enqueued, by `enqueue` or in a `Group`"]
pub struct Operation<'a> {
    pub(crate) communicator: &'a Communicator,
    pub(crate) prepared: Result<Prepared<'a>>,
}

/// A call that has been checked, and the memory that it uses.
pub(crate) struct Prepared<'a> {
    pub(crate) call: Call,
    accesses: [Option<Access<'a>>; 2],
}

impl<'a> Prepared<'a> {
    /// Orders the memory on `stream`.
    pub(crate) fn begin(&self, stream: &'a Stream) -> Result<ExternalWork<'a>> {
        ExternalWork::begin(stream, self.accesses.into_iter().flatten())
    }
}

impl Operation<'_> {
    /// Enqueues it on `stream`, which is of the communicator's device, and returns without waiting for other ranks. If one
    /// thread has several ranks, their operations are in one [`Group`].
    ///
    /// On a stream of a recording ([`Stream::capture`]) it becomes a node of the graph, and takes buffers that the graph holds. Each
    /// launch of the graph is then the rank's part of the operation; the others launch theirs, or enqueue it.
    ///
    /// # Errors
    /// A wrong length or rank; [`GraphError::NotRecordable`](ferrogrid_host::GraphError::NotRecordable) in the body of a
    /// conditional node, and for memory that nodes of the graph allocate; [`NcclError`] if the communicator has failed; or if the device fails. What other
    /// ranks do wrong, or fail to do, is an error of the next call that waits for the stream, within the communicator's
    /// time-out.
    #[inline]
    pub fn enqueue(self, stream: &Stream) -> Result<()> {
        if let Backend::Gpu(rank) = self.communicator.backend()
            && let Ok(prepared) = &self.prepared
            && let Some(enqueued) = gpu::enqueue_next(rank, &prepared.call, stream, &prepared.accesses)
        {
            return enqueued;
        }
        self.enqueue_first(stream)
    }

    /// As `enqueue`, if it is not the next operation of a burst.
    #[cold]
    #[inline(never)]
    fn enqueue_first(self, stream: &Stream) -> Result<()> {
        if let Backend::Gpu(rank) = self.communicator.backend()
            && ExternalWork::recording_of(stream).is_none()
        {
            let prepared = self.prepared?;
            rank.works()?;
            check_stream(self.communicator, stream, prepared.call.kind.name())?;
            return gpu::enqueue_one(rank, prepared.call, prepared.begin(stream)?);
        }
        let mut group = Group::new();
        group.push(stream, self);
        group.run()
    }
}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Operation");
        shown.field("rank", &self.communicator.rank());
        match &self.prepared {
            Ok(prepared) => shown.field("call", &format_args!("{}", prepared.call)),
            Err(error) => shown.field("error", error),
        };
        shown.finish()
    }
}

/// The buffers of a call, with their lengths.
pub(crate) struct Buffers<'a> {
    source: Option<(*const u8, usize)>,
    target: Option<(*mut u8, usize)>,
    accesses: [Option<Access<'a>>; 2],
}

impl<'a> Buffers<'a> {
    /// Of elements that are read and written.
    pub(crate) fn in_place<T: Element>(mut data: DeviceViewMut<'a, T>) -> Self {
        let (start, len) = (data.as_device_ptr_mut().as_raw().cast::<u8>(), data.len());
        let accesses = [Some(data.into_access()), None];
        Buffers { source: Some((start, len)), target: Some((start, len)), accesses }
    }

    /// Of those that this rank has.
    pub(crate) fn of<T: Element>(
        source: Option<DeviceView<'a, T>>,
        target: Option<DeviceViewMut<'a, T>>,
    ) -> Self {
        let mut accesses = [None, None];
        let source = source.map(|view| {
            accesses[0] = Some(view.into_access());
            (view.as_device_ptr().as_raw().cast::<u8>(), view.len())
        });
        let target = target.map(|mut view| {
            let start = view.as_device_ptr_mut().as_raw().cast::<u8>();
            let len = view.len();
            accesses[1] = Some(view.into_access());
            (start, len)
        });
        Buffers { source, target, accesses }
    }

    /// Without those that a rank gives although it is not the root.
    pub(crate) fn without_target(self) -> Self {
        Buffers { target: None, ..self }
    }
}

/// How many elements a buffer has: `count`, or that of each rank.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    PerRank,
}

impl Communicator {
    /// The operation `kind` on `buffers`, of which source and target have the given extents.
    pub(crate) fn operation<'a, T: Element>(
        &'a self,
        kind: Kind,
        buffers: Buffers<'a>,
        (source, target): (Extent, Extent),
    ) -> Operation<'a> {
        let prepared = self.prepare(kind, T::TYPE, buffers, source, target);
        Operation { communicator: self, prepared }
    }

    #[inline] // Where the kind is known, most of it goes.
    fn prepare<'a>(
        &self,
        kind: Kind,
        element: ElementType,
        buffers: Buffers<'a>,
        source: Extent,
        target: Extent,
    ) -> Result<Prepared<'a>> {
        if let Some((role, rank)) = kind.named_rank()
            && rank >= self.size()
        {
            return Err(NcclError::Rank { operation: kind.name(), role, rank, size: self.size() }.into());
        }
        let lengths =
            [(buffers.source.map(|(_, len)| len), source), (buffers.target.map(|(_, len)| len), target)];
        let count = self.count(kind.name(), lengths)?;
        let call = Call {
            kind,
            element,
            count,
            source: buffers.source.map_or(std::ptr::null(), |(start, _)| start),
            target: buffers.target.map_or(std::ptr::null_mut(), |(start, _)| start),
        };
        Ok(Prepared { call, accesses: buffers.accesses })
    }

    /// The count that follows from the source, or if there is none from the target; both must agree.
    #[inline]
    fn count(&self, operation: &'static str, lengths: [(Option<usize>, Extent); 2]) -> Result<usize> {
        let size = self.size();
        match lengths {
            [(Some(source), Extent::Whole), (Some(target), Extent::Whole)] if source == target => Ok(source),
            // Multiplied: a division takes as long as twenty other instructions.
            [(Some(part), Extent::Whole), (Some(whole), Extent::PerRank)]
            | [(Some(whole), Extent::PerRank), (Some(part), Extent::Whole)]
                if part.checked_mul(size) == Some(whole) =>
            {
                Ok(part)
            }
            _ => self.count_checked(operation, lengths),
        }
    }

    #[cold]
    fn count_checked(&self, operation: &'static str, lengths: [(Option<usize>, Extent); 2]) -> Result<usize> {
        let size = self.size();
        let error = |buffer, length, expected: String| NcclError::Length {
            operation,
            size,
            buffer,
            length,
            expected: expected.into(),
        };
        let [(source, _), (target, _)] = lengths;
        let first = if source.is_some() { 0 } else { 1 };
        let (Some(length), extent) = lengths[first] else { return Ok(0) };
        if extent == Extent::PerRank && length % size != 0 {
            let buffer = ["source", "target"][first];
            return Err(error(buffer, length, format!("a multiple of {size}, the same for each rank")).into());
        }
        let count = if extent == Extent::PerRank { length / size } else { length };
        let (Some(source), Some(length)) = (source, target) else { return Ok(count) };
        let expected = match (lengths[0].1, lengths[1].1) {
            // As many as memory can have are a wrong length, too.
            (Extent::Whole, Extent::PerRank) => count.saturating_mul(size),
            (Extent::PerRank, Extent::Whole) => count,
            _ => source,
        };
        if length == expected {
            return Ok(count);
        }
        let reason = match (lengths[0].1, lengths[1].1) {
            (Extent::Whole, Extent::PerRank) => format!("{size} times the source's {source}"),
            (Extent::PerRank, Extent::Whole) => format!("one part of the source's {source}"),
            _ => "as the source has".to_owned(),
        };
        Err(error("target", length, format!("{expected}, {reason}")).into())
    }
}
