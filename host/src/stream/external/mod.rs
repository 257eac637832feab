//! Work of neighbouring crates in stream order, with the memory that it uses declared. For `ferrogrid-nccl`. `recorded` makes
//! it nodes of graphs, and `next` is the short way of a work that goes on with a burst.

mod next;
pub(crate) mod recorded;

use std::ffi::c_void;
use std::sync::{Arc, MutexGuard};

use crate::backend::Fault;
use smallvec::SmallVec;

use crate::backend::cuda::Burst;
use crate::backend::external;
use crate::backend::recording::RecordingStream;
use crate::backend::recording::refusal::external_on_allocation;
use crate::backend::writers::{self, Effect, Flow, Line};
use crate::error::{Error, Result};
use crate::memory::access::Access;
use crate::stream::announcing::Announcing;
use crate::stream::{Stream, StreamInner};

/// Work that is about to be enqueued: the stream has been made to wait for what the work must come after.
///
/// The views behind the accesses are borrowed as long as this exists. So no other use of the memory begins before the work
/// is enqueued, by [`ExternalWork::run`], or by a library between `handle` and `watch`. On streams of a recording it becomes a node:
/// by [`ExternalWork::record`], or by a library between [`ExternalWork::capture`] and [`CapturedWork::finish`](recorded::CapturedWork::finish).
#[doc(hidden)]
pub struct ExternalWork<'a> {
    stream: &'a Stream,
    /// To the streams of a recording; none elsewhere.
    announcing: Vec<Announcing<'a>>,
    accesses: SmallVec<[Access<'a>; 2]>,
}

impl<'a> ExternalWork<'a> {
    /// Orders the memory of `accesses` on `stream` for their uses.
    ///
    /// # Errors
    /// If memory is another device's, if a recording cannot have the work, or if the device fails.
    pub fn begin(stream: &'a Stream, accesses: impl IntoIterator<Item = Access<'a>>) -> Result<Self> {
        let accesses: SmallVec<[Access<'a>; 2]> = accesses.into_iter().collect();
        let inner = stream.inner();
        let mut announcing = Vec::new();
        if let Some(recording) = inner.recording() {
            recording.check_external()?;
            if accesses.iter().any(|access| access.memory().is_of_graph()) {
                return Err(external_on_allocation());
            }
            announcing.push(Announcing::on(inner));
        }
        accesses.iter().try_for_each(|access| access.begin(inner))?;
        Ok(ExternalWork { stream, announcing, accesses })
    }

    /// Several works on one stream, or on streams of one recording, as one.
    ///
    /// # Panics
    /// If there are none, or they are on several streams.
    pub fn join(works: Vec<Self>) -> Self {
        let stream = works.first().expect("there is work").stream;
        let is_with = |other: &Stream| match Self::recording_of(stream) {
            Some(recording) => Self::recording_of(other) == Some(recording),
            None => other.id() == stream.id(),
        };
        assert!(works.iter().all(|work| is_with(work.stream)), "works of one stream");
        let (mut announcing, mut accesses) = (Vec::new(), SmallVec::new());
        for work in works {
            announcing.extend(work.announcing);
            accesses.extend(work.accesses);
        }
        ExternalWork { stream, announcing, accesses }
    }

    /// The number of the recording that `stream` is of.
    pub fn recording_of(stream: &Stream) -> Option<u64> {
        stream.inner().recording().map(RecordingStream::graph)
    }

    /// Held while functions for several streams are made, until they are in their streams: so they have one order in all.
    pub fn in_order() -> MutexGuard<'static, ()> {
        external::in_order()
    }

    /// The stream.
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// The driver's handle of the stream, a `CUstream`, whose context is now current. For the next work in `line`.
    ///
    /// # Errors
    /// If the stream has none that a library can use, or the device fails.
    #[inline]
    pub fn handle(&self, line: &WorkLine) -> Result<*mut c_void> {
        let stream = self.stream.inner();
        stream.backend().external_handle(line.takes_more(stream.id))
    }

    /// Calls `work` in the order of the stream, which is of the CPU device. If it fails, the stream fails, and so does what
    /// reads the memory that it writes.
    ///
    /// # Errors
    /// On another kind of stream; if the device fails.
    ///
    /// # Safety
    /// Until `work` has returned, it and what it calls use no other memory of devices than the accesses name, and in no
    /// other way.
    pub unsafe fn run(self, work: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()> {
        let flow = Flow::of(self.accesses.iter().map(Access::effect));
        self.stream.inner().backend().run_external(work, flow)
    }

    /// To be called when a library has enqueued the work on the stream's handle, as the next in `line`. What reads the memory
    /// that it writes fails if [`PendingWork::fail`] is called before the work has run. `None` if it is part of the pending work
    /// that this gave last: they end, and fail, together.
    ///
    /// # Errors
    /// If the stream takes no such work.
    pub fn watch(self, line: &mut WorkLine) -> Result<Option<PendingWork>> {
        line.watch(self.stream.inner(), self.accesses.iter().map(Access::effect))
    }
}

/// A launch of a graph that has been enqueued, with work of neighbouring crates in it.
#[doc(hidden)]
pub struct LaunchedWork<'a> {
    stream: &'a Arc<StreamInner>,
    effects: Vec<Effect<'a>>,
}

impl<'a> LaunchedWork<'a> {
    pub(crate) fn new(stream: &'a Arc<StreamInner>, effects: Vec<Effect<'a>>) -> Self {
        LaunchedWork { stream, effects }
    }

    /// As [`ExternalWork::watch`], for the whole launch, which is not joined with other work.
    ///
    /// # Errors
    /// If the stream takes no such work.
    pub fn watch(&self, line: &mut WorkLine) -> Result<Option<PendingWork>> {
        let pending = line.watch(self.stream, self.effects.iter().copied());
        self.stream.backend().end_burst();
        pending
    }
}

/// Works of a library on one device: if one fails, so does each after it that has not succeeded. They are watched in their order.
#[doc(hidden)]
pub struct WorkLine {
    line: Line,
    /// The burst that has the last work, and the stream that it is on.
    last: Option<(u64, Arc<Burst>)>,
}

impl WorkLine {
    /// One without works.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        WorkLine { line: Line::new(), last: None }
    }

    /// Whether the next work may be part of the last one's burst, if it is on the stream of that id.
    #[inline]
    fn takes_more(&self, stream: u64) -> bool {
        self.last.as_ref().is_some_and(|(last, burst)| *last == stream && burst.takes_more())
    }

    /// The next work in the line, which has been enqueued on `stream`.
    fn watch<'e>(
        &mut self,
        stream: &Arc<StreamInner>,
        effects: impl Iterator<Item = Effect<'e>> + Clone,
    ) -> Result<Option<PendingWork>> {
        let (id, is_new) = (stream.id, !self.extends(stream.id));
        if is_new {
            self.last = Some((id, stream.backend().begin_burst(&self.line)?));
        }
        let (_, burst) = self.last.as_ref().expect("the burst of this work");
        let outcome = burst.outcome();
        if !writers::are_named(effects.clone(), Arc::as_ptr(outcome), true) {
            stream.backend().rest_external(&writers::name(effects, Some(outcome.clone())));
        }
        Ok(is_new.then(|| PendingWork { stream: stream.clone(), burst: burst.clone() }))
    }

    /// Makes a work that has been enqueued on the stream of that id part of the last one's burst, if it can be.
    #[inline]
    fn extends(&self, stream: u64) -> bool {
        self.last.as_ref().is_some_and(|(last, burst)| *last == stream && burst.add())
    }
}

/// Work of a library that has been enqueued, and may still fail.
#[doc(hidden)]
pub struct PendingWork {
    stream: Arc<StreamInner>,
    burst: Arc<Burst>,
}

impl PendingWork {
    /// Whether it has run. Does not wait; if so, later work is not part of it.
    ///
    /// # Errors
    /// If the device has failed.
    pub fn is_complete(&self) -> Result<bool> {
        self.stream.backend().has_ended(&self.burst)
    }

    /// Settles that it has ended well.
    pub fn succeed(&self) {
        self.burst.outcome().settle(None);
    }

    /// Settles that it has failed with `error`: waits for the stream return it, and reads of what the work wrote.
    pub fn fail(&self, error: Error) {
        let fault = Arc::new(Fault::new(error));
        self.stream.backend().note_external(&fault);
        self.burst.outcome().settle(Some(fault));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::backend::operation::Participant;
    use crate::device::Device;
    use crate::error::graph::GraphError;

    fn failure() -> Error {
        Error::WorkerThread { reason: "as tested".into() }
    }

    #[test]
    fn a_failure_is_that_of_the_stream_and_of_what_was_written() {
        let stream = Device::cpu().new_stream().unwrap();
        let (source, mut target) = (stream.upload(&[1_u32]).unwrap(), stream.zeros::<u32>(1).unwrap());
        let accesses = vec![source.view().into_access(), target.view_mut().into_access()];
        let work = ExternalWork::begin(&stream, accesses).unwrap();
        // SAFETY: it uses no memory.
        unsafe { work.run(Box::new(|| Err(failure()))).unwrap() };
        assert_eq!(stream.synchronize(), Err(failure()));
        assert_eq!(stream.download(&target), Err(failure()), "nothing has written it since");
        assert_eq!(stream.download(&source), Ok(vec![1]));
    }

    #[test]
    fn a_panic_is_caught() {
        let stream = Device::cpu().new_stream().unwrap();
        let work = ExternalWork::begin(&stream, Vec::new()).unwrap();
        // SAFETY: it uses no memory.
        unsafe { work.run(Box::new(|| panic!("as tested"))).unwrap() };
        assert_eq!(stream.synchronize(), Err(Error::HostFnPanic { message: "as tested".into() }));
    }

    #[test]
    fn work_comes_after_earlier_uses_on_other_streams() {
        let device = Device::cpu();
        let (first, second) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let mut data = first.zeros::<u32>(1).unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        first.launch_host_func(move || released.recv().unwrap()).unwrap();
        first.fill_into(7, &mut data).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let address = data.view().as_device_ptr().as_raw().expose_provenance();
        let work = ExternalWork::begin(&second, vec![data.view().into_access()]).unwrap();
        let read = move || {
            // SAFETY: the access names this element, for reading.
            let value = unsafe { std::ptr::with_exposed_provenance::<u32>(address).read() };
            sender.send(value).unwrap();
            Ok(())
        };
        // SAFETY: as declared.
        unsafe { work.run(Box::new(read)).unwrap() };
        assert!(receiver.try_recv().is_err());
        release.send(()).unwrap();
        assert_eq!(receiver.recv().unwrap(), 7);
    }

    /// What takes part in the works of a test.
    struct Named(usize);

    impl Participant for Named {
        fn id(&self) -> usize {
            self.0
        }

        fn check(&self) -> Result<()> {
            Ok(())
        }
    }

    /// Records work of `participant` that does nothing, on all of these streams.
    fn record(streams: &[&Stream], participant: usize) -> Result<()> {
        let works =
            streams.iter().map(|stream| ExternalWork::begin(stream, Vec::new())).collect::<Result<_>>()?;
        let participants: Vec<Arc<dyn Participant>> = vec![Arc::new(Named(participant))];
        // SAFETY: it uses no memory.
        unsafe { ExternalWork::join(works).record("nothing".into(), participants, || Box::new(|| Ok(()))) }
    }

    #[test]
    fn nodes_with_one_participant_are_in_order() {
        let stream = Device::cpu().new_stream().unwrap();
        let (graph, ()) = stream
            .capture(|capture| {
                let (one, two, three) = (capture.fork()?, capture.fork()?, capture.fork()?);
                record(&[&one], 1)?;
                record(&[&two], 2)?;
                record(&[&three], 1)?; // after the first
                record(&[&two, &three], 3)?; // after what both streams had
                record(&[&one], 4)
            })
            .unwrap();
        let nodes: Vec<_> = graph.nodes().collect();
        let after: Vec<Vec<usize>> = nodes
            .iter()
            .map(|node| graph.dependencies(*node).unwrap().iter().map(|it| it.index()).collect())
            .collect();
        assert_eq!(after, [vec![], vec![], vec![0], vec![1, 2], vec![0]]);
    }

    #[test]
    fn a_launch_calls_what_was_made_for_it_and_fails_with_it() {
        let stream = Device::cpu().new_stream().unwrap();
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let make = move || -> Box<dyn FnOnce() -> Result<()> + Send> {
            let launch = count.fetch_add(1, Ordering::Relaxed);
            Box::new(move || if launch == 1 { Err(failure()) } else { Ok(()) })
        };
        let (graph, key) = stream
            .capture(|capture| {
                let mut data = capture.keep(stream.zeros::<u32>(1)?)?;
                let work = ExternalWork::begin(capture, vec![data.view_mut().into_access()])?;
                // SAFETY: it uses no memory.
                unsafe { work.record("some".into(), vec![Arc::new(Named(1))], make)? };
                Ok(data.key())
            })
            .unwrap();
        let mut graph = graph.instantiate().unwrap();
        graph.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(stream.synchronize(), Err(failure()));
        assert_eq!(stream.download(graph.view(key).unwrap()), Err(failure()));
        graph.launch(&stream).unwrap();
        assert_eq!(stream.download(graph.view(key).unwrap()), Ok(vec![0]));
        assert_eq!(made.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_recording_refuses_what_no_launch_can_do() {
        let stream = Device::cpu().new_stream().unwrap();
        let refusal = |refused: Result<()>| match refused {
            Err(Error::Graph(GraphError::NotRecordable { operation, .. })) => operation,
            other => panic!("{other:?}"),
        };
        let of_graph = stream.capture(|capture| {
            let data = capture.zeros::<u32>(1)?;
            ExternalWork::begin(capture, vec![data.view().into_access()]).map(drop)
        });
        assert_eq!(refusal(of_graph.map(drop)), "communication with memory that a node allocates");
        let in_body = stream.capture(|capture| {
            let condition = capture.keep(stream.zeros::<u32>(1)?)?;
            capture.if_node(condition.key(), |body| record(&[body], 1)).map(drop)
        });
        assert_eq!(refusal(in_body.map(drop)), "communication in the body of a conditional node");
    }
}
