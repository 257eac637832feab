//! Gives NCCL operations whose memory is ordered, on streams and for graphs.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::slice::from_ref;
use std::sync::Arc;

use ferrogrid_host::__private::{Access, ExternalWork, Participant};
use ferrogrid_host::{Error, Result, Stream};

use super::graph_share::GraphShare;
use super::joining::in_group;
use super::library::{Code, Comm, Nccl};
use super::rank::{Guard, Operations, Rank, in_order_of_locks};
use super::watchdog;
use crate::call::{Call, Kind};
use crate::communicator::{Backend, Communicator};
use crate::group::{Ready, Recorded};
use crate::reduce_op::{Reduction, Scalar};

/// Where a factor is: on the host, read by the call that is given it (`ncclScalarHostImmediate`).
const ON_THE_HOST: c_int = 1;

/// For how many bytes NCCL has a block of the kernel that scales the elements of a single rank.
const BYTES_OF_BLOCK: usize = 16 << 10;

/// A call, its rank, and the stream that NCCL is to enqueue it on.
struct Target<'a> {
    rank: &'a Arc<Rank>,
    stream: *mut c_void,
    call: Call,
}

impl<'a> Target<'a> {
    fn of(ready: &Ready<'a>, locked: &mut Locked<'_>) -> Result<Self> {
        let rank = rank_of(ready.communicator);
        let stream = ready.work.handle(&locked.operations(rank).line)?;
        Ok(Target { rank, stream, call: ready.call })
    }
}

/// Ranks whose operations are locked, each once.
pub(super) struct Locked<'a>(Vec<(&'a Arc<Rank>, Guard<'a>)>);

impl<'a> Locked<'a> {
    pub(super) fn new(ranks: Vec<&'a Arc<Rank>>) -> Self {
        let ranks = in_order_of_locks(ranks).into_iter();
        let locked: Vec<_> = ranks.map(|rank| (rank, rank.lock_operations())).collect();
        locked.iter().for_each(|(rank, operations)| rank.end_returned(operations));
        Locked(locked)
    }

    pub(super) fn ranks(&self) -> Vec<&'a Arc<Rank>> {
        self.0.iter().map(|(rank, _)| *rank).collect()
    }

    pub(super) fn operations(&mut self, rank: &Arc<Rank>) -> &mut Operations {
        let found = self.0.iter_mut().find(|(known, _)| Arc::ptr_eq(known, rank));
        &mut found.expect("all are locked").1
    }
}

/// A call, its rank, and the handles that NCCL takes.
struct Enqueued<'a> {
    rank: &'a Arc<Rank>,
    comm: Comm,
    stream: *mut c_void,
    call: &'a Call,
}

/// Enqueues calls whose memory is ordered, and has them watched.
pub(crate) fn enqueue(ready: Vec<Ready<'_>>) -> Result<()> {
    if ready.is_empty() {
        return Ok(());
    }
    let mut locked = Locked::new(ready.iter().map(|ready| rank_of(ready.communicator)).collect());
    let targets = ready.iter().map(|ready| Target::of(ready, &mut locked)).collect::<Result<Vec<_>>>()?;
    give_all(locked, &targets, |locked| watch(ready, locked))
}

/// As `enqueue`, of one call: without lists, and without a group if NCCL has a function for it.
pub(crate) fn enqueue_one(rank: &Arc<Rank>, call: Call, work: ExternalWork<'_>) -> Result<()> {
    let mut operations = rank.lock_operations();
    rank.end_returned(&operations);
    let (stream, comm) = (work.handle(&operations.line)?, rank.comm(&operations)?);
    let enqueued = Enqueued { rank, comm, stream, call: &call };
    let result = Operator::of(&enqueued).and_then(|operator| {
        watchdog::during(&[rank], call.kind.number(), || give(from_ref(&enqueued), from_ref(&operator)))
    });
    let result =
        result.and_then(|()| watchdog::watch(rank, call.kind.name(), work.watch(&mut operations.line)?));
    drop(operations);
    result.map_err(|error| end(&[rank], error))
}

/// Enqueues a call that goes on with a burst (`WorkLine::next_handle`): between calls of NCCL, each line of code and data that is read
/// is one that the processor's caches have lost. `None` if it must go the long way; then nothing has been done.
pub(crate) fn enqueue_next(
    rank: &Arc<Rank>,
    call: &Call,
    stream: &Stream,
    accesses: &[Option<Access<'_>>; 2],
) -> Option<Result<()>> {
    let number = Operator::built_in(call.kind)?;
    if call.kind.is_several() {
        return None;
    }
    let operations = rank.lock_operations();
    // A rank that is not looked at has to be listed first.
    if rank.has_returned() || !rank.activity().is_listed() {
        return None;
    }
    let handle = operations.line.next_handle(stream, accesses)?;
    let enqueued = Enqueued { rank, comm: rank.comm(&operations).ok()?, stream: handle, call };
    rank.activity().begin(call.kind.number());
    // SAFETY: the communicator is live and locked; buffers are as long as the kind and count say, and need no order on the stream,
    // which is live.
    let given = unsafe { enqueued.give(rank.nccl(), number) };
    rank.activity().end();
    if given.is_ok() && operations.line.add() && rank.works().is_ok() {
        return Some(Ok(()));
    }
    Some(settle_next(rank, call.kind, given, operations, stream, accesses))
}

/// What is left of `enqueue_next` if the call has failed, or the rank, or the burst has been closed meanwhile. A call may be counted in
/// the burst and here, which makes no difference to a rank that has failed.
#[cold]
fn settle_next(
    rank: &Arc<Rank>,
    kind: Kind,
    given: Result<()>,
    mut operations: Guard<'_>,
    stream: &Stream,
    accesses: &[Option<Access<'_>>; 2],
) -> Result<()> {
    let watch = |()| watchdog::watch(rank, kind.name(), operations.line.watch_next(stream, accesses)?);
    let result = given.and_then(watch);
    drop(operations);
    result.map_err(|error| end(&[rank], error))
}

/// Adds calls to graphs, those of each graph as one node: what NCCL enqueues for them on a stream that is captured.
pub(crate) fn record(recorded: Vec<Recorded<'_>>) -> Result<()> {
    if recorded.is_empty() {
        return Ok(());
    }
    let (mut targets, mut captured) = (Vec::new(), Vec::new());
    for recorded in recorded {
        let label = recorded.label();
        let work = recorded.work.capture()?;
        let ranks: Vec<&Arc<Rank>> = recorded.calls.iter().map(|(it, _)| rank_of(it)).collect();
        for (rank, (_, call)) in ranks.iter().zip(recorded.calls) {
            targets.push(Target { rank, stream: work.handle(), call });
        }
        captured.push((work, label, ranks));
    }
    let locked = Locked::new(targets.iter().map(|target| target.rank).collect());
    give_all(locked, &targets, |_| {
        captured.into_iter().try_for_each(|(work, label, ranks)| {
            let share = |rank| Arc::new(GraphShare::new(rank)) as Arc<dyn Participant>;
            work.finish(label, ranks.into_iter().map(share).collect())
        })
    })
}

/// Gives NCCL the calls as one group, and then calls `keep`. If it fails, so do the ranks.
fn give_all(
    mut locked: Locked<'_>,
    targets: &[Target<'_>],
    keep: impl FnOnce(&mut Locked<'_>) -> Result<()>,
) -> Result<()> {
    let (ranks, calls) = (locked.ranks(), calls(targets, &mut locked)?);
    let given = Operator::of_all(&calls).and_then(|operators| {
        watchdog::during(&ranks, calls[0].call.kind.number(), || give(&calls, &operators))
    });
    // Before others can end the communicators: then they find the work. What is not kept is dropped here, before they are ended: a
    // communicator waits for its graphs.
    let result = given.and_then(|()| keep(&mut locked));
    drop(locked);
    result.map_err(|error| end(&ranks, error))
}

/// Ends ranks of which a call has failed; gives the error.
pub(super) fn end(ranks: &[&Arc<Rank>], error: Error) -> Error {
    // That of a call which has been ended says less.
    let error = ranks.iter().find_map(|rank| rank.works().err()).unwrap_or(error);
    // Some of it may have been enqueued, and may never end.
    ranks.iter().for_each(|rank| watchdog::fail(rank, &error));
    error
}

/// The calls, with the communicators of their ranks.
fn calls<'a>(targets: &'a [Target<'_>], locked: &mut Locked<'_>) -> Result<Vec<Enqueued<'a>>> {
    let call = |target: &'a Target<'_>| {
        let comm = target.rank.comm(locked.operations(target.rank))?;
        Ok(Enqueued { rank: target.rank, comm, stream: target.stream, call: &target.call })
    };
    targets.iter().map(call).collect()
}

fn rank_of(communicator: &Communicator) -> &Arc<Rank> {
    match communicator.backend() {
        Backend::Gpu(rank) => rank,
        Backend::Cpu(_) => unreachable!("they are ranks on GPUs"),
    }
}

/// Hands all calls that have been enqueued to the watchdog, also those after one whose rank has failed.
fn watch(ready: Vec<Ready<'_>>, locked: &mut Locked<'_>) -> Result<()> {
    let watch = |ready: Ready<'_>| {
        let (rank, operation) = (rank_of(ready.communicator), ready.call.kind.name());
        let work = ready.work.watch(&mut locked.operations(rank).line)?;
        watchdog::watch(rank, operation, work)
    };
    ready.into_iter().map(watch).fold(Ok(()), Result::and)
}

/// Gives NCCL the calls, as one group if they are several to it.
fn give(calls: &[Enqueued<'_>], operators: &[Operator<'_>]) -> Result<()> {
    let nccl = calls[0].rank.nccl();
    let give = || {
        calls.iter().zip(operators).try_for_each(|(call, operator)| {
            // SAFETY: the communicators are live and locked; buffers are as long as the kind and count say, and ordered on the
            // streams, which are live.
            unsafe { call.give(nccl, operator.number) }
        })
    };
    match calls {
        [call] if !call.call.kind.is_several() => give(),
        _ => in_group(nccl, calls[0].rank.rank(), give),
    }
}

impl Enqueued<'_> {
    /// Gives NCCL the call.
    ///
    /// # Safety
    /// As NCCL's functions require of the communicator, the buffers and the stream.
    #[inline]
    unsafe fn give(&self, nccl: &Nccl, operator: c_int) -> Result<()> {
        // SAFETY: passed on.
        unsafe {
            match self.rank.size() {
                1 => self.give_alone(nccl, operator),
                _ => self.give_part(nccl, operator, 0..self.call.count),
            }
        }
    }

    /// As `give`, of the only rank. The kernel with which NCCL scales the elements of a single rank leaves the last ones of some lengths
    /// as they are: it divides the length by its number of blocks, one for each [`BYTES_OF_BLOCK`], and drops the remainder. So elements
    /// past a multiple of that have a call of their own, for which there is one block.
    ///
    /// # Safety
    /// As for `give`.
    #[cold]
    unsafe fn give_alone(&self, nccl: &Nccl, operator: c_int) -> Result<()> {
        let &Call { kind, element, count, .. } = self.call;
        let is_scaled = matches!(kind.reduction(), Some(Reduction::ScaledSum(_) | Reduction::Average));
        let end = if is_scaled { count % (BYTES_OF_BLOCK / element.size()) } else { 0 };
        let whole = count - end;
        // SAFETY: passed on; both are parts of the buffers.
        unsafe {
            if whole > 0 || end == 0 {
                self.give_part(nccl, operator, 0..whole)?;
            }
            if end > 0 { self.give_part(nccl, operator, whole..count) } else { Ok(()) }
        }
    }

    /// Gives NCCL the call for some of its elements.
    ///
    /// # Safety
    /// As for `give`.
    unsafe fn give_part(&self, nccl: &Nccl, operator: c_int, part: Range<usize>) -> Result<()> {
        let &Call { kind, element, source, target, .. } = self.call;
        let (count, start) = (part.len(), part.start * element.size());
        let (comm, stream, element) = (self.comm, self.stream, element as c_int);
        let from = source.wrapping_add(start).cast::<c_void>();
        let to = target.wrapping_add(start).cast::<c_void>();
        // SAFETY: passed on.
        let (function, code) = unsafe {
            match kind {
                Kind::AllReduce(_) => {
                    ("ncclAllReduce", (nccl.all_reduce)(from, to, count, element, operator, comm, stream))
                }
                Kind::Reduce(_, root) => {
                    let root = root as c_int;
                    ("ncclReduce", (nccl.reduce)(from, to, count, element, operator, root, comm, stream))
                }
                Kind::Broadcast(root) => {
                    // Ignored on other ranks than the root.
                    let from = if from.is_null() { to.cast_const() } else { from };
                    let root = root as c_int;
                    ("ncclBroadcast", (nccl.broadcast)(from, to, count, element, root, comm, stream))
                }
                Kind::AllGather => {
                    ("ncclAllGather", (nccl.all_gather)(from, to, count, element, comm, stream))
                }
                Kind::ReduceScatter(_) => {
                    let code = (nccl.reduce_scatter)(from, to, count, element, operator, comm, stream);
                    ("ncclReduceScatter", code)
                }
                Kind::Send(_) | Kind::Recv(_) | Kind::AllToAll | Kind::Gather(_) | Kind::Scatter(_) => {
                    return self.give_messages(nccl);
                }
            }
        };
        nccl.check(function, self.rank.rank(), code)
    }

    /// An operation that NCCL has as messages.
    ///
    /// # Safety
    /// As for `give`.
    #[inline(never)]
    unsafe fn give_messages(&self, nccl: &Nccl) -> Result<()> {
        let (rank, all) = (self.rank.rank(), 0..self.rank.size());
        // SAFETY: passed on; where there is a part for each rank, the buffers have that.
        let (send, recv) = (
            |peer, part| unsafe { self.send(nccl, peer, part) },
            |peer, part| unsafe { self.recv(nccl, peer, part) },
        );
        match self.call.kind {
            Kind::Send(peer) => send(peer, 0),
            Kind::Recv(peer) => recv(peer, 0),
            Kind::AllToAll => all.into_iter().try_for_each(|peer| {
                send(peer, peer)?;
                recv(peer, peer)
            }),
            Kind::Gather(root) => {
                send(root, 0)?;
                if root == rank { all.into_iter().try_for_each(|peer| recv(peer, peer)) } else { Ok(()) }
            }
            Kind::Scatter(root) => {
                if root == rank {
                    all.into_iter().try_for_each(|peer| send(peer, peer))?;
                }
                recv(root, 0)
            }
            _ => unreachable!("NCCL has functions for these"),
        }
    }

    /// # Safety
    /// As for `give`; the source has that part.
    unsafe fn send(&self, nccl: &Nccl, peer: usize, part: usize) -> Result<()> {
        let (element, count) = (self.call.element, self.call.count);
        let from = self.call.source.wrapping_add(part * count * element.size()).cast();
        // SAFETY: passed on.
        let code =
            unsafe { (nccl.send)(from, count, element as c_int, peer as c_int, self.comm, self.stream) };
        nccl.check("ncclSend", self.rank.rank(), code)
    }

    /// # Safety
    /// As for `give`; the target has that part.
    unsafe fn recv(&self, nccl: &Nccl, peer: usize, part: usize) -> Result<()> {
        let (element, count) = (self.call.element, self.call.count);
        let to = self.call.target.wrapping_add(part * count * element.size()).cast();
        // SAFETY: passed on.
        let code = unsafe { (nccl.recv)(to, count, element as c_int, peer as c_int, self.comm, self.stream) };
        nccl.check("ncclRecv", self.rank.rank(), code)
    }
}

/// The number of a reduction in NCCL (`ncclRedOp_t`); one that was made for a call is destroyed after it.
struct Operator<'a> {
    number: c_int,
    made: Option<&'a Enqueued<'a>>,
}

impl<'a> Operator<'a> {
    /// Those of all calls. What was made is destroyed when NCCL has done with the group.
    fn of_all(calls: &'a [Enqueued<'a>]) -> Result<Vec<Self>> {
        calls.iter().map(Operator::of).collect()
    }

    fn of(call: &'a Enqueued<'a>) -> Result<Self> {
        match (Operator::built_in(call.call.kind), call.call.kind.reduction()) {
            (None, Some(Reduction::ScaledSum(factor))) => Operator::scaled(call, factor),
            (number, _) => Ok(Operator { number: number.unwrap_or(0), made: None }),
        }
    }

    /// The number of the reduction, unless it is made for a call; any for a kind without one.
    #[inline]
    fn built_in(kind: Kind) -> Option<c_int> {
        match kind.reduction() {
            Some(Reduction::Sum) | None => Some(0),
            Some(Reduction::Product) => Some(1),
            Some(Reduction::Max) => Some(2),
            Some(Reduction::Min) => Some(3),
            Some(Reduction::Average) => Some(4),
            Some(Reduction::ScaledSum(_)) => None,
        }
    }

    fn scaled(call: &'a Enqueued<'a>, factor: Scalar) -> Result<Self> {
        let (nccl, element) = (call.rank.nccl(), call.call.element as c_int);
        let (mut number, factor) = (0, ptr::from_ref(&factor).cast_mut().cast());
        // SAFETY: the communicator is live and locked; the factor is an element, and read before this returns.
        let code =
            unsafe { (nccl.red_op_create_pre_mul_sum)(&mut number, factor, element, ON_THE_HOST, call.comm) };
        let created: Result<(), Error> = nccl.check("ncclRedOpCreatePreMulSum", call.rank.rank(), code);
        created.map(|()| Operator { number, made: Some(call) })
    }
}

impl Drop for Operator<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.made {
            // SAFETY: made with this communicator, which is live and locked; no call is given it any more.
            let _destroyed: Code = unsafe { (call.rank.nccl().red_op_destroy)(self.number, call.comm) };
        }
    }
}
