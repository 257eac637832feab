//! Groups of operations that are enqueued together.

use std::fmt;

use ferrogrid_host::__private::ExternalWork;
use ferrogrid_host::{GraphError, NcclError, Result, Stream};

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

    /// Enqueues the operations on their streams, and returns without waiting for other ranks. Where the streams are of recordings,
    /// it adds one node to each graph, with all of the operations there.
    ///
    /// # Errors
    /// As for [`Operation::enqueue`]; nothing has been enqueued if an operation is wrong in itself.
    /// [`GraphError::NotRecordable`] if only some of the streams are of recordings, or a communicator is in two of them.
    pub fn run(self) -> Result<()> {
        let mut prepared = Vec::with_capacity(self.operations.len());
        for (stream, operation) in self.operations {
            let communicator = operation.communicator;
            let work = operation.prepared?;
            check(communicator, stream, work.call.kind.name())?;
            prepared.push((communicator, stream, work));
        }
        let places = prepared.iter().map(|(communicator, stream, _)| (*communicator, *stream));
        let is_recorded = check_recordings(&places.collect::<Vec<_>>())?;
        let begin = |(communicator, stream, prepared): (_, _, Prepared<'a>)| {
            Ok(Ready { communicator, call: prepared.call, work: prepared.begin(stream)? })
        };
        let ready = prepared.into_iter().map(begin).collect::<Result<Vec<_>>>()?;
        let is_of_gpu = |ready: &Ready<'_>| matches!(ready.communicator.backend(), Backend::Gpu(_));
        let (of_gpus, of_cpus): (Vec<_>, Vec<_>) = ready.into_iter().partition(is_of_gpu);
        if is_recorded {
            cpu::record(Recorded::of(of_cpus))?;
            return gpu::record(Recorded::of(of_gpus));
        }
        cpu::enqueue(of_cpus)?;
        gpu::enqueue(of_gpus)
    }
}

/// The calls of a group in one graph.
pub(crate) struct Recorded<'a> {
    pub(crate) calls: Vec<(&'a Communicator, Call)>,
    pub(crate) work: ExternalWork<'a>,
}

impl<'a> Recorded<'a> {
    /// Those of each graph together.
    fn of(ready: Vec<Ready<'a>>) -> Vec<Self> {
        let mut graphs: Vec<(Option<u64>, Vec<Ready<'a>>)> = Vec::new();
        for ready in ready {
            let graph = ExternalWork::recording_of(ready.work.stream());
            match graphs.iter_mut().find(|(known, _)| *known == graph) {
                Some((_, all)) => all.push(ready),
                None => graphs.push((graph, vec![ready])),
            }
        }
        let join = |(_, ready): (_, Vec<Ready<'a>>)| {
            let calls = ready.iter().map(|ready| (ready.communicator, ready.call)).collect();
            let works = ready.into_iter().map(|ready| ready.work).collect();
            Recorded { calls, work: ExternalWork::join(works) }
        };
        graphs.into_iter().map(join).collect()
    }

    /// The calls, for people.
    pub(crate) fn label(&self) -> String {
        self.calls.iter().map(|(_, call)| call.to_string()).collect::<Vec<_>>().join("\n")
    }
}

/// Whether the streams are those of recordings, with each communicator in one.
fn check_recordings(operations: &[(&Communicator, &Stream)]) -> Result<bool> {
    let refuse = |operation, reason| Err(GraphError::NotRecordable { operation, reason }.into());
    let recordings: Vec<Option<u64>> =
        operations.iter().map(|(_, stream)| ExternalWork::recording_of(stream)).collect();
    if recordings.iter().all(Option::is_none) {
        return Ok(false);
    }
    if recordings.iter().any(Option::is_none) {
        return refuse(
            "a group with operations on ordinary streams",
            "the operations of a group begin together; record all of them, or none",
        );
    }
    for (index, (communicator, _)) in operations.iter().enumerate() {
        let is_elsewhere = |other: usize| {
            std::ptr::eq(operations[other].0, *communicator) && recordings[other] != recordings[index]
        };
        if (0..index).any(is_elsewhere) {
            return refuse(
                "a group with one communicator in two graphs",
                "graphs are launched one by one; record the operations of each graph in a group of its own",
            );
        }
    }
    Ok(true)
}

/// That the communicator works, and the stream is of its device.
pub(crate) fn check(communicator: &Communicator, stream: &Stream, operation: &'static str) -> Result<()> {
    communicator.check()?;
    check_stream(communicator, stream, operation)
}

/// That the stream is of the communicator's device.
pub(crate) fn check_stream(
    communicator: &Communicator,
    stream: &Stream,
    operation: &'static str,
) -> Result<()> {
    if stream.device() == communicator.device() {
        return Ok(());
    }
    Err(NcclError::StreamDevice {
        operation,
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
