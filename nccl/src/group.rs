//! Groups of operations that are enqueued together.

use std::fmt;

use ferrogrid_host::__private::ExternalWork;
use ferrogrid_host::{NcclError, Result, Stream};

use crate::call::Call;
use crate::communicator::{Backend, Communicator};
use crate::operation::{Operation, Prepared};
use crate::{cpu, gpu};

/// Operations that make progress together (`ncclGroupStart`, `ncclGroupEnd`): those of several ranks of one thread, or
/// messages to and from several peers.
///
/// A group borrows the buffers of its operations until [`Group::run`], which enqueues all of them or none; a group that is
/// dropped or forgotten has done nothing.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::nccl::{Communicator, Group};
///
/// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
/// let streams = [ranks[0].device().new_stream()?, ranks[1].device().new_stream()?];
/// let mine = [streams[0].upload(&[0_u32, 1])?, streams[1].upload(&[10, 11])?];
/// let mut theirs = [streams[0].zeros::<u32>(2)?, streams[1].zeros(2)?];
///
/// let mut exchange = Group::new();
/// for ((rank, stream), (mine, theirs)) in ranks.iter().zip(&streams).zip(mine.iter().zip(&mut theirs)) {
///     let peer = 1 - rank.rank();
///     exchange.push(stream, rank.send(peer, mine));
///     exchange.push(stream, rank.recv(peer, theirs));
/// }
/// assert_eq!(exchange.len(), 4);
/// exchange.run()?;
/// assert_eq!(streams[0].download(&theirs[0])?, [10, 11]);
/// # Ok(()) }
/// ```
#[must_use = "it does nothing until `run`"]
#[derive(Default)]
pub struct Group<'a> {
    operations: Vec<(&'a Stream, Operation<'a>)>,
}

/// A call whose memory is ordered on its stream.
pub(crate) struct Ready<'a> {
    pub(crate) communicator: &'a Communicator,
    pub(crate) call: Call,
    pub(crate) work: ExternalWork<'a>,
}

impl<'a> Group<'a> {
    /// A group without operations.
    pub fn new() -> Self {
        Group::default()
    }

    /// Adds an operation, to be enqueued on `stream`. Operations of one communicator are in the same order on all of its ranks.
    pub fn push(&mut self, stream: &'a Stream, operation: Operation<'a>) {
        self.operations.push((stream, operation));
    }

    /// How many operations it has.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Enqueues the operations on their streams, and returns without waiting for other ranks.
    ///
    /// # Errors
    /// As for [`Operation::enqueue`]; nothing has been enqueued if an operation is wrong in itself.
    pub fn run(self) -> Result<()> {
        let mut prepared = Vec::with_capacity(self.operations.len());
        for (stream, operation) in self.operations {
            let communicator = operation.communicator;
            let work = operation.prepared?;
            check(communicator, stream, &work.call)?;
            prepared.push((communicator, stream, work));
        }
        let begin = |(communicator, stream, Prepared { call, accesses })| {
            Ok(Ready { communicator, call, work: ExternalWork::begin(stream, accesses)? })
        };
        let ready = prepared.into_iter().map(begin).collect::<Result<Vec<_>>>()?;
        let is_of_gpu = |ready: &Ready<'_>| matches!(ready.communicator.backend(), Backend::Gpu(_));
        let (of_gpus, of_cpus): (Vec<_>, Vec<_>) = ready.into_iter().partition(is_of_gpu);
        cpu::enqueue(of_cpus)?;
        gpu::enqueue(of_gpus)
    }
}

/// That the communicator works, and the stream is of its device.
fn check(communicator: &Communicator, stream: &Stream, call: &Call) -> Result<()> {
    communicator.check()?;
    if stream.device() == communicator.device() {
        return Ok(());
    }
    Err(NcclError::StreamDevice {
        operation: call.kind.name(),
        rank: communicator.rank(),
        device: communicator.device().to_string().into(),
        stream: stream.device().to_string().into(),
    }
    .into())
}

impl fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("operations", &self.len()).finish_non_exhaustive()
    }
}
