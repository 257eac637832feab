//! Executable graphs and their launches. `update` changes instantiated nodes, `raw` converts handles, `memory`
//! is the memory that a device reserves for allocations of graphs.

pub(crate) mod memory;
pub(crate) mod raw;
pub(crate) mod update;

use std::fmt;
use std::sync::Arc;

use ferrogrid_device::DeviceCopy;

use super::buffer::{GraphKey, PinnedKey};
use super::slot::Slots;
use super::{Graph, GraphNode};
use crate::backend::GraphBackend;
use crate::backend::operation::external::distinct;
use crate::backend::operation::{Node, Operation, Participant};
use crate::backend::recording::refusal::not_recordable;
use crate::backend::retired::retire;
use crate::device::Device;
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::order::Use;
use crate::profile::{self, Work};
use crate::stream::external::LaunchedWork;
use crate::stream::{Stream, StreamInner};
use crate::view::{DeviceView, DeviceViewMut};

/// A graph that can be launched, made by [`Graph::instantiate`] (`CUgraphExec`).
///
/// A launch is a use of all its buffers: it comes after what uses them on other streams, and what uses
/// them later comes after it. Launches of one graph run one after the other, also on different streams.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.zeros::<u32>(2)?;
/// let (graph, (fill, x)) = stream.capture(|capture| {
///     let mut x = capture.keep(x)?;
///     let fill = capture.node(&[], |stream| stream.fill_into(7, x.view_mut().slice(1..)?))?;
///     Ok((fill, x.key()))
/// })?;
/// let mut graph = graph.instantiate()?;
/// assert_eq!(graph.device(), stream.device());
/// graph.upload(&stream)?; // so that the first launch is as fast as the others
/// for input in [3, 4] {
///     stream.fill_into(input, graph.view_mut(x)?)?;
///     graph.launch(&stream)?;
///     assert_eq!(stream.download(graph.view(x)?)?, [input, 7]);
/// }
/// graph.set_enabled(fill, false)?;
/// assert!(!graph.is_enabled(fill)?);
/// # Ok(()) }
/// ```
pub struct ExecutableGraph<'b> {
    pub(super) id: u64,
    pub(super) slots: Slots<'b>,
    pub(super) replay: Replay,
}

/// The replayed part: all but the buffers, so that a graph that is not used any more borrows nothing.
pub(super) struct Replay {
    pub(super) device: Device,
    pub(super) nodes: Vec<Node>,
    pub(super) backend: GraphBackend,
    /// Those that take part in nodes of other crates, which outlive the backend's graph.
    participants: Vec<Arc<dyn Participant>>,
    /// Where it was launched last.
    last: Option<Arc<StreamInner>>,
}

impl<'b> ExecutableGraph<'b> {
    pub(super) fn new(graph: Graph<'b>) -> Result<Self> {
        let Graph { id, device, nodes, slots, kept, memory } = graph;
        let backend = GraphBackend::new(device.backend(), &nodes, kept, memory)?;
        Ok(ExecutableGraph { id, slots, replay: Replay::new(&device, nodes, backend) })
    }

    /// The device that runs it.
    pub fn device(&self) -> &Device {
        &self.replay.device
    }

    /// Enqueues the whole graph on `stream` (`cuGraphLaunch`), and returns without waiting. Failures come at
    /// the next synchronisation of the stream.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if the stream is of another device; [`Error::OutOfMemory`](crate::Error::OutOfMemory) if a GPU has none left for what
    /// nodes allocate; [`Error::Nccl`](crate::Error::Nccl) if a communicator of the graph has failed; or if the device fails.
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        self.replay.check(stream)?;
        self.replay.participants.iter().try_for_each(|participant| participant.check())?;
        // Held until the launch is enqueued.
        let _enqueueing = self.slots.hold_constants();
        self.slots.begin(stream.inner())?;
        let nodes = &self.replay.nodes;
        profile::observe(stream.inner(), Work::Graph { nodes: nodes.len() }, || {
            // SAFETY: the memory of all nodes is that of the slots, which are ordered on this stream now, on this
            // device; the functions of host nodes are kept by `Replay` until the last launch has run.
            unsafe { self.replay.backend.launch(stream.inner().backend(), nodes, self.slots.effects()) }
        })?;
        self.replay.note_launch(stream.inner());
        if self.replay.participants.is_empty() {
            return Ok(());
        }
        let launched = LaunchedWork::new(stream.inner(), self.slots.effects().collect());
        // All are told, whichever fails.
        let tell = |participant: &Arc<dyn Participant>| participant.launched(&launched);
        self.replay.participants.iter().map(tell).fold(Ok(()), Result::and)
    }

    /// Uploads the graph to the device before its first launch, and reserves the memory that its nodes allocate
    /// (`cuGraphUpload`). Launched on another stream, it may need other memory. Does nothing on the CPU device.
    ///
    /// # Errors
    /// As [`ExecutableGraph::launch`].
    pub fn upload(&mut self, stream: &Stream) -> Result<()> {
        self.replay.check(stream)?;
        self.replay.backend.upload(stream.inner().backend())
    }

    /// A buffer of the graph, to read: for launches and copies between launches of the graph.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.zeros::<u8>(3)?;
    /// let (graph, key) = stream.capture(|capture| {
    ///     let mut buffer = capture.keep(buffer)?;
    ///     capture.fill_into(5, buffer.view_mut().slice(1..)?)?;
    ///     Ok(buffer.key())
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// stream.upload_into(&[1, 2, 3], graph.view_mut(key)?)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(stream.download(graph.view(key)?)?, [1, 5, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`GraphError::OtherGraph`] if the key is of another graph.
    pub fn view<T: DeviceCopy>(&self, key: GraphKey<T>) -> Result<DeviceView<'_, T>> {
        Ok(key.view(self.slots.get(key.among(self.id, &self.slots)?).memory()))
    }

    /// A buffer of the graph, to write between launches of the graph.
    ///
    /// # Errors
    /// [`GraphError::OtherGraph`] if the key is of another graph.
    pub fn view_mut<T: DeviceCopy>(&mut self, key: GraphKey<T>) -> Result<DeviceViewMut<'_, T>> {
        Ok(key.view_mut(self.slots.writable(key.among(self.id, &self.slots)?)?.memory()))
    }

    /// Page-locked memory of the graph, for the host to read. Waits for the launches that write it, and for no others.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (data, host) = (stream.fill(7_u32, 4)?, stream.device().pinned_zeros::<u32>(4)?);
    /// let (graph, host) = stream.capture(|capture| {
    ///     let mut host = capture.keep_pinned(host)?;
    ///     capture.copy(capture.read(&data)?, &mut host)?;
    ///     Ok(host.key())
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.pinned(host)?, [7; 4]); // no call to synchronise, and no copy
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`GraphError::OtherGraph`] if the key is of another graph; the failure of the work that wrote it, as
    /// [`Stream::download`]; or if the device fails.
    pub fn pinned<T: DeviceCopy>(&self, key: PinnedKey<T>) -> Result<&[T]> {
        let view = self.view(key.buffer())?;
        view.memory().begin_on_host(Use::Read)?;
        // SAFETY: page-locked memory of the host, of which every element is initialised. What writes it has run, and more
        // needs a mutable borrow of the graph.
        Ok(unsafe { std::slice::from_raw_parts(view.start(), view.len()) })
    }

    /// Page-locked memory of the graph, for the host to read and write. Waits for the launches that use it.
    ///
    /// # Errors
    /// As [`ExecutableGraph::pinned`], but an earlier failure is reported once; afterwards the host can write the
    /// memory again, for the next launch.
    pub fn pinned_mut<T: DeviceCopy>(&mut self, key: PinnedKey<T>) -> Result<&mut [T]> {
        let view = self.view(key.buffer())?;
        view.memory().wait_on_host(Use::Write)?;
        self.device().deliver_output();
        let sources = view.memory().writers().sources();
        view.memory().writers().overwrite(true);
        sources.check()?;
        let (start, len) = (view.start().cast_mut(), view.len());
        // SAFETY: as in `pinned`; the borrow of the graph is exclusive, and what uses the memory has run.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Lets a kernel, copy or fill take part in later launches, or not (`cuGraphNodeSetEnabled`). What comes
    /// after a disabled node still comes after what is before it.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let stream = Device::cpu().new_stream()?;
    /// let x = stream.fill(1_u8, 3)?;
    /// let (graph, (node, x)) = stream.capture(|capture| {
    ///     let mut x = capture.keep(x)?;
    ///     let node = capture.node(&[], |stream| stream.fill_into(2, &mut x))?;
    ///     Ok((node, x.key()))
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// graph.set_enabled(node, false)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(stream.download(graph.view(x)?)?, [1; 3]); // the fill was left out
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`GraphError::CannotDisable`] for other nodes, [`GraphError::OtherGraph`], or the driver's error.
    pub fn set_enabled(&mut self, node: GraphNode, enabled: bool) -> Result<()> {
        let index = self.index_of_work(node)?;
        self.replay.backend.set_enabled(index, enabled)
    }

    /// Whether a kernel, copy or fill is enabled (`cuGraphNodeGetEnabled`).
    ///
    /// # Errors
    /// As [`ExecutableGraph::set_enabled`].
    pub fn is_enabled(&self, node: GraphNode) -> Result<bool> {
        self.replay.backend.is_enabled(self.index_of_work(node)?)
    }

    fn index_of_work(&self, node: GraphNode) -> Result<usize> {
        let index = node.of(self.id)?;
        let node = &self.replay.nodes[index];
        if node.prepares {
            return Err(GraphError::CannotDisable { node: index, found: "preparation of a launch" }.into());
        }
        match &*node.operation {
            Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(_) => Ok(index),
            other => Err(GraphError::CannotDisable { node: index, found: other.kind() }.into()),
        }
    }
}

impl Replay {
    pub(super) fn new(device: &Device, nodes: Vec<Node>, backend: GraphBackend) -> Self {
        let participants = distinct(nodes.iter().flat_map(|node| node.operation.participants()));
        Replay { device: device.clone(), nodes, backend, participants, last: None }
    }

    /// Checks whether `stream` can run a launch.
    fn check(&self, stream: &Stream) -> Result<()> {
        if stream.inner().recording().is_some() {
            return Err(not_recordable("a launch of a graph", "graphs do not contain graphs"));
        }
        self.device.check_is(stream.device())
    }

    /// Records that `stream` has the last launch.
    fn note_launch(&mut self, stream: &Arc<StreamInner>) {
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, stream)) {
            self.last = Some(stream.clone());
        }
    }

    /// Replaces the nodes; the backend has replaced them already.
    pub(super) fn set_nodes(&mut self, nodes: Vec<Node>) {
        let old = std::mem::replace(&mut self.nodes, nodes);
        self.let_go(old);
    }

    /// Drops `nodes` once the last launch has run, since that may still use their functions and events. All earlier
    /// launches come before it.
    fn let_go(&self, nodes: Vec<Node>) {
        let mut is_used = false;
        nodes.iter().for_each(|node| node.operation.visit(&mut |operation| is_used |= operation.is_kept()));
        let Some(last) = self.last.as_ref().filter(|_| is_used) else { return };
        match last.tail() {
            Ok(event) => retire(event, Box::new(nodes)),
            // Their completion cannot be observed.
            Err(_) => std::mem::forget(nodes),
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        self.let_go(nodes);
    }
}

impl fmt::Debug for ExecutableGraph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutableGraph")
            .field("nodes", &self.replay.nodes.len())
            .field("device", &self.replay.device)
            .finish()
    }
}
