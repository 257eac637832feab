//! The public API of graph recording: a stream to launch on, buffers to launch with, and explicit
//! nodes. `allocation` allocates memory in a graph, `child` inserts graphs, `condition` has conditional
//! bodies, `event_node` records and awaits events. `array` has texture arrays, and `staged` page-locked memory as arguments.

pub(crate) mod allocation;
pub(crate) mod array;
pub(crate) mod child;
pub(crate) mod condition;
pub(crate) mod event_node;
pub(crate) mod staged;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Zeroable;
use ferrogrid_device::DeviceCopy;

use super::buffer::{GraphBuffer, GraphKey, PinnedKey};
use super::slot::{Slot, Slots};
use super::{Graph, GraphNode};
use crate::backend::Contents;
use crate::backend::operation::{Address, HostNode, Operation};
use crate::backend::recording::refusal::not_recordable;
use crate::backend::recording::{Recorder, RecordingStream};
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::memory::buffer::DeviceBuffer;
use crate::memory::pinned::PinnedBuffer;
use crate::memory::{Memory, Origin};
use crate::order::Use;
use crate::stream::{Stream, StreamInner};
use crate::view::DeviceView;

/// A graph that is being recorded: see [`Stream::capture`].
///
/// It is a [`Stream`] on which launches, copies and fills add nodes instead of running. `fork`,
/// `wait_stream`, `join`, `record` and `wait` work among the streams of the recording, and become
/// dependencies. [`Capture::zeros`] and [`Capture::uninit`] allocate by nodes of the graph. What has to wait, allocates
/// in other ways, or uses memory of the host gives [`GraphError::NotRecordable`](crate::GraphError::NotRecordable).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let x = stream.upload(&[1_u32, 2, 3])?;
/// let mut y = stream.zeros::<u32>(3)?;
/// let rounds = Arc::new(AtomicU32::new(0));
/// let counted = rounds.clone();
/// let (graph, ()) = stream.capture(|capture| {
///     let x = capture.read(&x)?; // others may read it, too
///     let mut y = capture.write(&mut y)?; // the graph's alone
///     let mut scratch = capture.keep(stream.zeros::<u32>(3)?)?; // freed with the graph
///     capture.copy(x, &mut scratch)?;
///     capture.copy(&scratch, &mut y)?;
///     let copies = capture.frontier()?; // what the next node comes after
///     assert_eq!(copies.len(), 1);
///     let last = capture.launch_host_func(move || drop(counted.fetch_add(1, Ordering::Relaxed)))?;
///     capture.host_node(&[last], || println!("one round more")).map(drop)
/// })?;
/// let mut graph = graph.instantiate()?;
/// graph.launch(&stream)?;
/// graph.launch(&stream)?;
/// stream.synchronize()?;
/// assert_eq!(rounds.load(Ordering::Relaxed), 2);
/// drop(graph);
/// assert_eq!(stream.download(&y)?, [1, 2, 3]);
/// # Ok(()) }
/// ```
pub struct Capture<'scope, 'b> {
    stream: Stream,
    /// The stream whose `capture` made the recording: buffers that the graph owns start in its order.
    origin: Arc<StreamInner>,
    recorder: Arc<Recorder>,
    slots: RefCell<Slots<'b>>,
    /// The buffers of child graphs that have been taken.
    taken: RefCell<Vec<usize>>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl Stream {
    /// Records what `work` launches as a graph (what `cuStreamBeginCapture` is for), and runs nothing of it. Returns the
    /// graph, and what `work` returned.
    ///
    /// A node may use buffers that the graph holds: those that it was given by [`Capture::read`],
    /// [`Capture::write`] (borrowed as long as the graph exists) or [`Capture::keep`] (owned by it).
    /// Nodes are in the order of their stream, and those that use the same buffers in a way that
    /// conflicts are in the order of recording, also across streams.
    ///
    /// What an `unsafe` kernel reaches by raw pointers must stay valid, and unused by others, as long as the
    /// graph can be launched and until its last launch has run: the graph does not know about it.
    ///
    /// This stream itself is left as it is; the graph can be launched on any stream of its device.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let x = stream.upload(&[1_u32, 2, 3])?;
    /// let mut y = stream.zeros::<u32>(3)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let x = capture.read(&x)?;
    ///     let mut y = capture.write(&mut y)?;
    ///     capture.fill_into(7, y.view_mut().slice(2..)?)?;
    ///     capture.copy(x.slice(..2)?, y.view_mut().slice(..2)?) // kernels are launched in the same way
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// for _ in 0..10 {
    ///     graph.launch(&stream)?;
    /// }
    /// drop(graph);
    /// assert_eq!(stream.download(&y)?, [1, 2, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// A buffer that the graph writes cannot be used, moved or dropped elsewhere:
    ///
    /// ```compile_fail,E0502
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut y = stream.zeros::<u32>(3)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let mut y = capture.write(&mut y)?;
    ///     capture.fill_into(7, &mut y)
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// stream.download(&y)?;
    /// graph.launch(&stream)
    /// # }
    /// ```
    ///
    /// also not to drop it:
    ///
    /// ```compile_fail,E0505
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let y = stream.zeros::<u32>(3)?;
    /// let (graph, ()) = stream.capture(|capture| capture.read(&y).map(drop))?;
    /// drop(y);
    /// graph.instantiate()?.launch(&stream)
    /// # }
    /// ```
    ///
    /// nor keep a buffer of the recording for later:
    ///
    /// ```compile_fail
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut y = stream.zeros::<u32>(3)?;
    /// let (graph, y) = stream.capture(|capture| capture.write(&mut y))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `work` returns.
    pub fn capture<'b, R>(
        &self,
        work: impl for<'scope> FnOnce(&'scope Capture<'scope, 'b>) -> Result<R>,
    ) -> Result<(Graph<'b>, R)> {
        let capture = Capture::new(self)?;
        let result = work(&capture)?;
        Ok((capture.finish()?, result))
    }

    /// As [`Stream::capture`] on several streams at once, such as one of each device: a recording for each, which becomes a graph
    /// of its own. So one thread records operations that several devices do together.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{Device, Stream};
    ///
    /// // Or one of each GPU.
    /// let streams = [Device::cpu().new_stream()?, Device::cpu().new_stream()?];
    /// let mut data = [streams[0].zeros::<u32>(2)?, streams[1].zeros(2)?];
    /// let (graphs, ()) = Stream::capture_all(&streams, |captures| {
    ///     for (value, (capture, data)) in (1..).zip(captures.iter().zip(&mut data)) {
    ///         capture.fill_into(value, &mut capture.write(data)?)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// for (graph, stream) in graphs.into_iter().zip(&streams) {
    ///     graph.instantiate()?.launch(stream)?;
    /// }
    /// assert_eq!(streams[0].download(&data[0])?, [1, 1]);
    /// assert_eq!(streams[1].download(&data[1])?, [2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Stream::capture`].
    pub fn capture_all<'a, 'b, R>(
        streams: impl IntoIterator<Item = &'a Stream>,
        work: impl for<'scope> FnOnce(&'scope [Capture<'scope, 'b>]) -> Result<R>,
    ) -> Result<(Vec<Graph<'b>>, R)> {
        let captures = streams.into_iter().map(Capture::new).collect::<Result<Vec<_>>>()?;
        let result = work(&captures)?;
        let graphs = captures.iter().map(Capture::finish).collect::<Result<Vec<_>>>()?;
        Ok((graphs, result))
    }
}

impl<'b> Capture<'_, 'b> {
    fn new(origin: &Stream) -> Result<Self> {
        if origin.inner().recording().is_some() {
            return Err(not_recordable("a recording", "graphs do not contain recordings"));
        }
        let device = origin.device();
        let recorder = Recorder::new(device.backend());
        let stream = Stream::new(device, recorder.stream(Vec::new())?);
        let origin = origin.inner().clone();
        Ok(Capture {
            stream,
            origin,
            recorder,
            slots: RefCell::default(),
            taken: RefCell::default(),
            scope: PhantomData,
        })
    }

    /// The graph, once nothing is recorded any more.
    fn finish(&self) -> Result<Graph<'b>> {
        self.take_adopted();
        let (nodes, memory) = self.recorder.finish();
        let mut slots = self.slots.take();
        slots.settle_constants(|number| {
            let mut uses = nodes.iter().flat_map(|node| &node.uses);
            uses.any(|&(buffer, usage)| buffer == number && usage != Use::Read)
        });
        let bytes = self.recorder.conditions() * size_of::<u64>();
        let kept = Slot::kept(Memory::allocate(&self.origin, None, bytes, Contents::Uninitialised)?);
        let (id, device, address) =
            (self.recorder.id(), self.stream.device().clone(), kept.memory().pointer());
        slots.push(kept);
        Ok(Graph { id, device, nodes, slots, kept: Address(address), memory })
    }

    /// Adds the recorder's adopted buffers to the graph, so that both have the same buffers under the same numbers.
    fn take_adopted(&self) {
        let mut slots = self.slots.borrow_mut();
        for memory in self.recorder.take_adopted() {
            slots.push(Slot::adopted(memory));
        }
    }
}

/// The recording of `stream`, which was made with one.
pub(super) fn recording(stream: &Stream) -> &RecordingStream {
    stream.inner().recording().expect("a stream of a recording")
}

impl<'scope, 'b> Capture<'scope, 'b> {
    /// Lends the graph a buffer to read. Others may read it, too, while the graph exists.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if it is of another device.
    pub fn read<T: DeviceCopy + Sync>(
        &'scope self,
        buffer: &'b DeviceBuffer<T>,
    ) -> Result<DeviceView<'b, T>> {
        self.hold(Slot::borrowed(buffer.memory(), Use::Read))?;
        Ok(buffer.view())
    }

    /// Lends the graph a buffer to read and write. Until the graph is dropped, others reach it only
    /// through the graph: [`ExecutableGraph::view`](crate::ExecutableGraph::view).
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if it is of another device.
    pub fn write<T: DeviceCopy + Send>(
        &'scope self,
        buffer: &'b mut DeviceBuffer<T>,
    ) -> Result<GraphBuffer<'scope, T>> {
        // Shared from here on: the views that are made of it stand for the exclusive borrow.
        let buffer: &'b DeviceBuffer<T> = buffer;
        self.admit(buffer.memory(), true)?;
        let key = self.push(Slot::borrowed(buffer.memory(), Use::Write), buffer.len());
        Ok(GraphBuffer::new(key.view_mut(buffer.memory()), key))
    }

    /// Moves a buffer into the graph, to read and write. It is freed with the graph.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if it is of another device; the buffer is
    /// dropped then.
    pub fn keep<T: DeviceCopy + Send + 'b>(
        &'scope self,
        buffer: DeviceBuffer<T>,
    ) -> Result<GraphBuffer<'scope, T>> {
        let len = buffer.len();
        let (memory, key) = self.keep_memory(buffer.into_memory(), len)?;
        Ok(GraphBuffer::new(key.view_mut(memory), key))
    }

    /// Allocates a buffer of `len` zeroed elements that the graph owns; its contents can be read after a launch. It is
    /// allocated now, zeroed at this place of the graph at each launch (`cuGraphAddMemsetNode`), and freed with the graph.
    /// For memory that only a launch itself needs, see [`Capture::zeros`].
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut sums = stream.fill(1_u32, 3)?;
    /// let (graph, counts) = stream.capture(|capture| {
    ///     let (mut counts, mut sums) = (capture.keep_zeros::<u32>(3)?, capture.write(&mut sums)?);
    ///     capture.copy(sums.view().slice(..2)?, counts.view_mut().slice(..2)?)?; // or kernels that count
    ///     capture.fill_into(5, &mut sums)?;
    ///     Ok(counts.key())
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// assert_eq!(stream.download(graph.view(counts)?)?, [0; 3]);
    /// graph.launch(&stream)?;
    /// assert_eq!(stream.download(graph.view(counts)?)?, [1, 1, 0]);
    /// graph.launch(&stream)?;
    /// assert_eq!(stream.download(graph.view(counts)?)?, [5, 5, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Stream::zeros`].
    pub fn keep_zeros<T: DeviceCopy + Zeroable + Send + 'b>(
        &'scope self,
        len: usize,
    ) -> Result<GraphBuffer<'scope, T>> {
        let bytes = DeviceBuffer::<T>::bytes_of(len)?;
        // Zeroed also before the first launch: it may be looked at.
        let memory = Memory::allocate(&self.origin, None, bytes, Contents::Zeroed)?;
        let (memory, key) = self.keep_memory(memory, len)?;
        let mut buffer = GraphBuffer::new(key.view_mut(memory), key);
        self.stream.fill_into(0_u8, buffer.view_mut().with_elements::<u8>(bytes))?;
        Ok(buffer)
    }

    /// Moves page-locked host memory into the graph, to copy from and to. A copy from it is an upload, a copy to it a
    /// download (`cuGraphAddMemcpyNode`). Between launches the host reads and writes it through the graph, which waits
    /// for those that use it: [`ExecutableGraph::pinned`](crate::ExecutableGraph::pinned) and
    /// [`ExecutableGraph::pinned_mut`](crate::ExecutableGraph::pinned_mut). It is freed with the graph.
    ///
    /// Kernels may read and write it in place, over the bus.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let device = stream.device();
    /// let (input, output) = (device.pinned_zeros::<u32>(3)?, device.pinned_zeros::<u32>(3)?);
    /// let (graph, (input, output)) = stream.capture(|capture| {
    ///     let (input, mut output) = (capture.keep_pinned(input)?, capture.keep_pinned(output)?);
    ///     let mut data = capture.keep(stream.zeros::<u32>(3)?)?;
    ///     capture.copy(&input, &mut data)?; // an upload
    ///     capture.fill_into(0, data.view_mut().slice(..1)?)?; // or kernels
    ///     capture.copy(&data, &mut output)?; // a download
    ///     Ok((input.key(), output.key()))
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// for round in 1..4 {
    ///     graph.pinned_mut(input)?.fill(round);
    ///     graph.launch(&stream)?;
    ///     assert_eq!(graph.pinned(output)?, [0, round, round]);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// The graph cannot be launched while the host reads what it writes:
    ///
    /// ```compile_fail,E0502
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let memory = stream.device().pinned_zeros::<u32>(3)?;
    /// let (graph, key) = stream.capture(|capture| Ok(capture.keep_pinned(memory)?.key()))?;
    /// let mut graph = graph.instantiate()?;
    /// let seen = graph.pinned(key)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(seen, [0; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if the graph is a GPU's and the memory is not page-locked for
    /// GPUs; it is dropped then.
    pub fn keep_pinned<T: DeviceCopy>(
        &'scope self,
        buffer: PinnedBuffer<T>,
    ) -> Result<GraphBuffer<'scope, T, PinnedKey<T>>> {
        let len = buffer.len();
        let (memory, key) = self.keep_memory(buffer.into_memory(&self.origin)?, len)?;
        Ok(GraphBuffer::new(key.view_mut(memory), PinnedKey::new(key)))
    }

    /// Allocates `len` elements that the graph owns.
    fn keep_memory<T: DeviceCopy>(
        &'scope self,
        memory: Memory,
        len: usize,
    ) -> Result<(&'scope Memory, GraphKey<T>)> {
        let slot = Slot::kept(memory);
        self.admit(slot.memory(), true)?;
        let memory = self.memory_of(&slot);
        Ok((memory, self.push(slot, len)))
    }

    /// Adds memory that a node of the graph allocates.
    pub(super) fn keep_allocation<T: DeviceCopy>(
        &'scope self,
        start: Address,
        owner: Box<dyn Send>,
        len: usize,
    ) -> Result<(&'scope Memory, GraphKey<T>)> {
        let bytes = DeviceBuffer::<T>::bytes_of(len)?;
        // SAFETY: it is there while the graph runs, which a use outside is refused for; nothing uses it yet.
        let memory = unsafe { Memory::owned(&self.origin, Origin::Graph, start.0, bytes, owner) };
        self.keep_memory(memory, len)
    }

    /// Adds `len` elements without bytes.
    pub(super) fn keep_nothing<T: DeviceCopy>(
        &'scope self,
        len: usize,
    ) -> Result<(&'scope Memory, GraphKey<T>)> {
        self.keep_memory(Memory::allocate(&self.origin, None, 0, Contents::Uninitialised)?, len)
    }

    /// The memory of `slot`, which is this recording's, or about to be.
    fn memory_of(&'scope self, slot: &Slot<'b>) -> &'scope Memory {
        // SAFETY: the slot's memory stays where it is until the slot is dropped with the graph, and `self`,
        // which has the slot until the graph gets it, is borrowed for `'scope`.
        unsafe { &*std::ptr::from_ref(slot.memory()) }
    }

    /// The buffer whose number `find` returns, taken for the first time.
    pub(super) fn take_buffer(
        &'scope self,
        find: impl FnOnce(&Slots<'b>) -> Result<usize>,
    ) -> Result<(usize, &'scope Memory)> {
        let slots = self.slots.borrow();
        let number = find(&slots)?;
        let memory = self.memory_of(slots.writable(number)?);
        if self.taken.borrow().contains(&number) {
            return Err(GraphError::BufferTaken { buffer: number }.into());
        }
        self.taken.borrow_mut().push(number);
        Ok((number, memory))
    }

    /// Takes over the buffers of the graph `id`, which becomes a child; their numbers here.
    pub(super) fn take_over(&self, id: u64, slots: Slots<'b>) -> Result<Vec<usize>> {
        // Nothing is taken over where nothing can be added.
        self.recorder.count()?;
        self.take_adopted();
        let enter = |slot: &Slot<'b>| self.recorder.admit_again(slot.memory(), slot.may_be_written());
        self.slots.borrow_mut().take_over(id, slots, enter)
    }

    /// Calls `work` with a further stream of the recording, whose first node comes after the nodes `after`
    /// and nothing else (but for buffers that it shares with earlier nodes). Returns the last node that
    /// `work` recorded; an empty one, if it recorded none (`cuGraphAddEmptyNode`).
    ///
    /// This is the explicit form of a graph: nodes and their dependencies.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let (mut a, mut b) = (stream.zeros::<u8>(4)?, stream.zeros::<u8>(4)?);
    /// let (graph, join) = stream.capture(|capture| {
    ///     let (mut a, mut b) = (capture.write(&mut a)?, capture.write(&mut b)?);
    ///     let first = capture.node(&[], |stream| stream.fill_into(1, &mut a))?;
    ///     let second = capture.node(&[], |stream| stream.fill_into(2, &mut b))?;
    ///     capture.node(&[first, second], |_| Ok(()))
    /// })?;
    /// assert_eq!(graph.dependencies(join)?.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `work` returns; [`GraphError::OtherGraph`](crate::GraphError::OtherGraph) if `after` has a node
    /// of another graph. What `work` had recorded before it failed does nothing then: each of those nodes is an empty one.
    pub fn node(&self, after: &[GraphNode], work: impl FnOnce(&Stream) -> Result<()>) -> Result<GraphNode> {
        let before = self.recorder.count()?;
        let stream = Stream::new(self.device(), self.line(after)?);
        work(&stream).inspect_err(|_| self.recorder.empty_from(before))?;
        let line = recording(&stream);
        match line.tail()?[..] {
            [last] if last >= before => Ok(self.name(last)),
            _ => Ok(self.name(line.add(Operation::Empty)?)),
        }
    }

    /// Adds a function of the host, called at each launch once the nodes before it on this stream have run
    /// (`cuGraphAddHostNode`). The rules of [`Stream::launch_host_func`] hold: it must be quick, and must not use
    /// this crate. A panic is reported by the stream of the graph's last launch.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.zeros::<u32>(3)?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let (graph, _) = stream.capture(|capture| {
    ///     let mut y = capture.write(&mut y)?;
    ///     capture.fill_into(1, &mut y)?;
    ///     capture.launch_host_func(move || sender.send("filled").unwrap()) // after the fill, at each launch
    /// })?;
    /// graph.instantiate()?.launch(&stream)?;
    /// assert_eq!(receiver.recv(), Ok("filled"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`GraphError::Ended`](crate::GraphError::Ended) or
    /// [`GraphError::OtherThread`](crate::GraphError::OtherThread).
    pub fn launch_host_func(&self, function: impl Fn() + Send + Sync + 'static) -> Result<GraphNode> {
        let operation = Operation::Call(HostNode::new(Arc::new(function)));
        Ok(self.name(recording(&self.stream).add(operation)?))
    }

    /// As [`Capture::launch_host_func`], after the nodes `after` and nothing else.
    ///
    /// # Errors
    /// As [`Capture::launch_host_func`] and [`Capture::node`].
    pub fn host_node(
        &self,
        after: &[GraphNode],
        function: impl Fn() + Send + Sync + 'static,
    ) -> Result<GraphNode> {
        let operation = Operation::Call(HostNode::new(Arc::new(function)));
        Ok(self.name(self.line(after)?.add(operation)?))
    }

    /// The nodes that the next one on this stream comes after.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.zeros::<u8>(4)?;
    /// let (graph, before) = stream.capture(|capture| {
    ///     let mut y = capture.write(&mut y)?;
    ///     capture.fill_into(1, &mut y)?;
    ///     capture.frontier()
    /// })?;
    /// assert_eq!(before, graph.nodes().collect::<Vec<_>>()); // the fill
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Capture::launch_host_func`].
    pub fn frontier(&self) -> Result<Vec<GraphNode>> {
        Ok(recording(&self.stream).tail()?.into_iter().map(|index| self.name(index)).collect())
    }

    /// The number of the graph.
    pub(super) fn id(&self) -> u64 {
        self.recorder.id()
    }

    pub(super) fn line(&self, after: &[GraphNode]) -> Result<RecordingStream> {
        let after: Result<Vec<usize>> = after.iter().map(|node| node.of(self.recorder.id())).collect();
        self.recorder.stream(after?)
    }

    pub(super) fn name(&self, index: usize) -> GraphNode {
        GraphNode { graph: self.recorder.id(), index }
    }

    /// Adds `slot` to the graph, under the next number.
    pub(super) fn hold(&self, slot: Slot<'b>) -> Result<()> {
        self.admit(slot.memory(), slot.may_write())?;
        self.slots.borrow_mut().push(slot);
        Ok(())
    }

    fn admit(&self, memory: &Memory, may_write: bool) -> Result<()> {
        memory.check_device(self.stream.inner())?;
        self.take_adopted();
        self.recorder.admit(memory, may_write)
    }

    fn push<T: DeviceCopy>(&self, slot: Slot<'b>, len: usize) -> GraphKey<T> {
        GraphKey::new(self.recorder.id(), self.slots.borrow_mut().push(slot), len)
    }
}

deref_to_field!([] Capture<'_, '_> => stream: Stream);

debug_by_methods!(Capture<'_, '_> { device });
