//! Updates of an instantiated graph: the arguments of one kernel, or all nodes at once.

use std::cell::RefCell;
use std::marker::PhantomData;

use ferrogrid_device::DeviceCopy;

use super::ExecutableGraph;
use crate::backend::operation::{Node, Operation, OwnedLaunch};
use crate::backend::recording::Recorder;
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::graph::buffer::{GraphBuffer, GraphKey};
use crate::graph::capture::allocation::AllocationKey;
use crate::graph::slot::Slots;
use crate::graph::{Graph, GraphNode};
use crate::memory::Memory;
use crate::stream::Stream;

/// The update of one kernel: a stream to launch it on once, with its new arguments. See
/// [`ExecutableGraph::update_kernel`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- factor * x
/// #[kernel]
/// pub fn scale(t: Thread<1>, factor: u32, x: &[u32], mut y: DisjointSlice<u32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = factor * x[i.get()];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (x, y) = (stream.upload(&[1, 2, 3])?, stream.zeros(3)?);
/// let (graph, (node, y)) = stream.capture(|capture| {
///     let (x, mut y) = (capture.read(&x)?, capture.keep(y)?);
///     let node = capture.node(&[], |stream| kernels::scale(stream, Grid::cover(3), 2, x, &mut y))?;
///     Ok((node, y.key()))
/// })?;
/// let mut graph = graph.instantiate()?;
/// graph.update_kernel(node, |update| {
///     // What it writes by the key, and what it reads as it is.
///     kernels::scale(update, Grid::cover(3), 10, &x, &mut update.buffer(y)?)
/// })?;
/// graph.launch(&stream)?;
/// assert_eq!(stream.download(graph.view(y)?)?, [10, 20, 30]);
/// # Ok(()) }
/// ```
pub struct GraphUpdate<'scope, 'b> {
    stream: Stream,
    graph: u64,
    slots: &'scope Slots<'b>,
    /// The buffers that have been taken.
    taken: RefCell<Vec<usize>>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'b> ExecutableGraph<'b> {
    /// Changes the arguments or the grid of a kernel in later launches
    /// (`cuGraphExecKernelNodeSetParams`): to those with which `work` launches it. It may use the buffers that
    /// the graph holds, and no others: those it writes by their keys ([`GraphUpdate::buffer`]), those it
    /// only reads as they are. Launches that have been enqueued keep the old ones.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// x <- x + step
    /// #[kernel]
    /// pub fn add(t: Thread<1>, step: u32, mut x: DisjointSlice<u32>) {
    ///     if let Some(x) = x.get_mut(t.index()) {
    ///         *x += step;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.zeros::<u32>(4)?;
    /// let (graph, (node, x)) = stream.capture(|capture| {
    ///     let mut x = capture.keep(x)?;
    ///     let node = capture.node(&[], |stream| kernels::add(stream, Grid::cover(4), 1, &mut x))?;
    ///     Ok((node, x.key()))
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// graph.update_kernel(node, |update| {
    ///     kernels::add(update, Grid::cover(4), 10, &mut update.buffer(x)?) // the same with another step
    /// })?;
    /// graph.launch(&stream)?;
    /// assert_eq!(stream.download(graph.view(x)?)?, [11; 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `work` returns; [`GraphError::NotAKernel`], [`GraphError::NotOneLaunch`] or
    /// [`GraphError::OtherKernel`] if the launch is not that of this kernel; [`GraphError::UpdateRefused`] if it has
    /// other attributes (cooperative, clusters, priority, domain, access policy); [`GraphError::Unordered`] if it would then race with another
    /// node; or the driver's error.
    pub fn update_kernel(
        &mut self,
        node: GraphNode,
        work: impl for<'scope> FnOnce(&'scope GraphUpdate<'scope, 'b>) -> Result<()>,
    ) -> Result<()> {
        let index = node.of(self.id)?;
        let old = &self.replay.nodes[index];
        let Some(OwnedLaunch { kernel, shape, .. }) = old.operation.kernel() else {
            return Err(GraphError::NotAKernel { node: index, found: old.operation.kind() }.into());
        };
        let mut recorded = self.record(work)?;
        if recorded.len() != 1 {
            return Err(GraphError::NotOneLaunch { count: recorded.len() }.into());
        }
        let new = Node { after: old.after.clone(), ..recorded.remove(0) };
        let Some(launch) = new.operation.kernel() else {
            return Err(GraphError::NotAKernel { node: index, found: new.operation.kind() }.into());
        };
        if !std::ptr::eq(launch.kernel, *kernel) {
            let (kernel, found) = (kernel.name(), launch.kernel.name());
            return Err(GraphError::OtherKernel { node: index, kernel, found }.into());
        }
        if !launch.shape.has_attributes_of(shape) {
            return Err(GraphError::UpdateRefused { reason: other_attributes(index).into() }.into());
        }
        check_order(&self.replay.nodes, index, &new)?;
        self.replay.backend.set_kernel(index, &new.operation)?;
        self.replay.nodes[index] = new;
        Ok(())
    }

    fn record(
        &self,
        work: impl for<'scope> FnOnce(&'scope GraphUpdate<'scope, 'b>) -> Result<()>,
    ) -> Result<Vec<Node>> {
        let recorder = Recorder::of_update(self.device().backend());
        for slot in self.slots.iter() {
            recorder.admit(slot.memory(), slot.may_write())?;
        }
        let stream = Stream::new(self.device(), recorder.stream(Vec::new())?);
        let (slots, taken) = (&self.slots, RefCell::default());
        work(&GraphUpdate { stream, graph: self.id, slots, taken, scope: PhantomData })?;
        Ok(recorder.finish().0)
    }

    /// Takes over all nodes and buffers of `graph`, which must have nodes of the same kinds, with the same
    /// kernels and dependencies, in the same order (`cuGraphExecUpdate`). Launches that have been enqueued
    /// keep the old ones. Nodes and keys of this graph are then those of `graph`; disabled nodes stay so.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let record = |value: u32| {
    ///     stream.capture(|capture| {
    ///         let mut x = capture.keep(stream.zeros::<u32>(3)?)?;
    ///         capture.fill_into(value, &mut x)?;
    ///         Ok(x.key())
    ///     })
    /// };
    /// let mut graph = record(1)?.0.instantiate()?;
    /// let (other, x) = record(2)?; // the same nodes with other values, on other buffers
    /// graph.update(other)?; // cheaper than to instantiate that
    /// graph.launch(&stream)?;
    /// assert_eq!(stream.download(graph.view(x)?)?, [2; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`GraphError::UpdateRefused`] with what differs; [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if it is of another
    /// device. This graph is then as before.
    pub fn update(&mut self, graph: Graph<'b>) -> Result<()> {
        graph.device.check_is(&self.replay.device)?;
        if self.replay.backend.is_foreign() {
            return Err(GraphError::UpdateRefused {
                reason: "it came in by its handle, and its nodes are not known".into(),
            }
            .into());
        }
        if let Some(reason) = difference(&self.replay.nodes, &graph.nodes) {
            return Err(GraphError::UpdateRefused { reason: reason.into() }.into());
        }
        self.replay.backend.update(&graph.nodes, graph.kept)?;
        self.replay.set_nodes(graph.nodes);
        (self.id, self.slots) = (graph.id, graph.slots);
        Ok(())
    }
}

impl<'scope, 'b> GraphUpdate<'scope, 'b> {
    /// A buffer of the graph, to launch with; each can be taken once.
    ///
    /// # Errors
    /// [`GraphError::OtherGraph`] if the key is of another graph, [`GraphError::BufferTaken`] the second
    /// time.
    pub fn buffer<T: DeviceCopy>(&'scope self, key: GraphKey<T>) -> Result<GraphBuffer<'scope, T>> {
        let memory = self.take(key)?;
        Ok(GraphBuffer::new(key.view_mut(memory), key))
    }

    /// The memory of an allocation node, to launch with; each can be taken once. The kernel must be between that
    /// node and the one that frees it.
    ///
    /// # Errors
    /// As [`GraphUpdate::buffer`].
    pub fn allocation<T: DeviceCopy>(
        &'scope self,
        key: AllocationKey<T>,
    ) -> Result<GraphBuffer<'scope, T, AllocationKey<T>>> {
        let memory = self.take(key.buffer())?;
        Ok(GraphBuffer::new(key.buffer().view_mut(memory), key))
    }

    fn take<T: DeviceCopy>(&self, key: GraphKey<T>) -> Result<&'scope Memory> {
        let number = key.among(self.graph, self.slots)?;
        let slot = self.slots.writable(number)?;
        if self.taken.borrow().contains(&number) {
            return Err(GraphError::BufferTaken { buffer: number }.into());
        }
        self.taken.borrow_mut().push(number);
        Ok(slot.memory())
    }
}

deref_to_field!([] GraphUpdate<'_, '_> => stream: Stream);

debug_by_methods!(GraphUpdate<'_, '_> { device });

/// Whether `new`, in the place of node `index`, is in order with all nodes that it shares buffers with.
fn check_order(nodes: &[Node], index: usize, new: &Node) -> Result<()> {
    let (before, after) = (ancestors(nodes, index), descendants(nodes, index));
    let unordered = |other: &usize| *other != index && !before[*other] && !after[*other];
    let race = (0..nodes.len()).filter(unordered).find(|&other| new.conflicts(&nodes[other]));
    if let Some(other) = race {
        return Err(GraphError::Unordered { node: index, other }.into());
    }
    let outside = (0..nodes.len()).find_map(|other| match *nodes[other].operation {
        Operation::Allocate(_) if !before[other] && new.conflicts(&nodes[other]) => Some(other),
        Operation::Free { allocation } if !after[other] && new.conflicts(&nodes[other]) => Some(allocation),
        _ => None,
    });
    outside.map_or(Ok(()), |allocation| Err(GraphError::OutsideLifetime { node: index, allocation }.into()))
}

fn ancestors(nodes: &[Node], index: usize) -> Vec<bool> {
    let mut found = vec![false; nodes.len()];
    let mut open = nodes[index].after.clone();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut found[node], true) {
            open.extend(&nodes[node].after);
        }
    }
    found
}

fn descendants(nodes: &[Node], index: usize) -> Vec<bool> {
    let mut found = vec![false; nodes.len()];
    // Nodes come after those with smaller numbers only.
    for (number, node) in nodes.iter().enumerate().skip(index + 1) {
        found[number] = node.after.iter().any(|&before| before == index || found[before]);
    }
    found
}

/// The driver changes parameters of a launch, and not its attributes.
fn other_attributes(number: usize) -> String {
    format!(
        "node {number} is launched with other attributes (cooperative, clusters, priority, domain, access policy)"
    )
}

/// The reason why `new` cannot replace `old`.
fn difference(old: &[Node], new: &[Node]) -> Option<String> {
    if old.len() != new.len() {
        return Some(format!("it has {} nodes, the other {}", old.len(), new.len()));
    }
    old.iter().zip(new).enumerate().find_map(|(number, (old, new))| difference_of(number, old, new))
}

fn difference_of(number: usize, old: &Node, new: &Node) -> Option<String> {
    let (kind, other) = (old.operation.kind(), new.operation.kind());
    if kind != other {
        return Some(format!("node {number} is a {kind}, in the other a {other}"));
    }
    if let Operation::Conditional(_) = *old.operation {
        return Some(format!("node {number} is a conditional node"));
    }
    if let Operation::Allocate(_) = *old.operation {
        return Some(format!("node {number} allocates memory, whose place is that of one graph"));
    }
    if let Operation::External(_) = *old.operation {
        return Some(format!("node {number} is the communication of one graph"));
    }
    // Else it could be one that was disabled.
    if old.prepares != new.prepares {
        return Some(format!("node {number} prepares memory of a launch in one of them only"));
    }
    if old.after != new.after {
        return Some(format!(
            "node {number} comes after {:?}, in the other after {:?}",
            old.after, new.after
        ));
    }
    if let Some(reason) = difference(old.operation.body(), new.operation.body()) {
        return Some(format!("node {number} is a child graph that differs: {reason}"));
    }
    match (old.operation.kernel(), new.operation.kernel()) {
        (Some(old), Some(new)) if !std::ptr::eq(old.kernel, new.kernel) => {
            let (kernel, other) = (old.kernel.name(), new.kernel.name());
            Some(format!("node {number} launches kernel `{kernel}`, in the other `{other}`"))
        }
        (Some(old), Some(new)) if !old.shape.has_attributes_of(&new.shape) => Some(other_attributes(number)),
        _ => None,
    }
}
