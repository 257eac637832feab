//! Graphs: work that is recorded once, by ordinary launches, and launched as a whole as often as wanted.
//!
//! `capture` records for the user, `backend::recording` keeps the nodes and their order, `buffer` and `slot`
//! the memory that they use. `executable` launches and updates a graph, `picture` draws it.
//!
//! A recording has separate streams, which run nothing; the driver's stream capture is not used. So
//! what cannot be recorded is refused before the driver sees it, and no real stream is ever left in a
//! broken state.

mod buffer;
mod capture;
mod executable;
mod picture;
mod slot;

pub use buffer::{GraphBuffer, GraphKey, PinnedKey};
pub use capture::Capture;
pub use capture::allocation::AllocationKey;
pub use capture::array::GraphArray;
pub use capture::condition::GraphBody;
pub use capture::staged::{GraphIn, GraphOut};
pub use executable::ExecutableGraph;
pub use executable::memory::GraphMemory;
pub use executable::update::GraphUpdate;
pub use picture::dot::DotOptions;

use crate::backend::MemoryNodes;
use crate::backend::operation::{Address, Node};
use crate::device::Device;
use crate::error::Result;
use crate::error::graph::GraphError;
use slot::Slots;

/// A recorded graph (`CUgraph`): nodes (kernels, copies, fills, host functions), their dependencies, and the buffers
/// that they use. Made by [`Stream::capture`](crate::Stream::capture); [`Graph::instantiate`] makes it ready
/// to be launched.
///
/// It borrows the buffers for `'b`, or owns them, so they cannot be freed, and those that it writes not used, as long
/// as it can be launched.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut y = stream.zeros::<u32>(4)?;
/// let (graph, ()) = stream.capture(|capture| {
///     let mut y = capture.write(&mut y)?;
///     capture.fill_into(1, &mut y)?;
///     capture.fill_into(2, y.view_mut().slice(2..)?)
/// })?;
/// assert!(graph.len() == 2 && !graph.is_empty() && graph.device() == stream.device());
/// for node in graph.nodes() {
///     println!("{} comes after {:?}", node.index(), graph.dependencies(node)?);
/// }
/// graph.instantiate()?.launch(&stream)?;
/// assert_eq!(stream.download(&y)?, [1, 1, 2, 2]);
/// # Ok(()) }
/// ```
pub struct Graph<'b> {
    id: u64,
    device: Device,
    nodes: Vec<Node>,
    slots: Slots<'b>,
    /// A `u64` for each conditional node, which `slots` owns, for the backend's own use.
    kept: Address,
    /// The nodes that allocate, if there are any.
    memory: Option<MemoryNodes>,
}

/// A node of a graph and of its instances (`CUgraphNode`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut y = stream.zeros::<u8>(4)?;
/// let (graph, (first, second)) = stream.capture(|capture| {
///     let mut y = capture.write(&mut y)?;
///     let first = capture.node(&[], |stream| stream.fill_into(1, &mut y))?;
///     Ok((first, capture.host_node(&[first], || println!("filled"))?))
/// })?;
/// assert_eq!((first.index(), second.index()), (0, 1)); // in the order of recording
/// assert_eq!(graph.dependencies(second)?, [first]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GraphNode {
    graph: u64,
    index: usize,
}

impl GraphNode {
    /// Its number in the graph, from 0, in the order of recording.
    pub fn index(self) -> usize {
        self.index
    }

    /// Its number, if it is of graph `id`.
    fn of(self, id: u64) -> Result<usize> {
        if self.graph == id { Ok(self.index) } else { Err(GraphError::OtherGraph { what: "node" }.into()) }
    }
}

impl<'b> Graph<'b> {
    /// The device that runs it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of nodes. A fill is one node for each word of its value, unless all bytes are equal.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All nodes, in the order of recording (as `cuGraphGetNodes`).
    pub fn nodes(&self) -> impl Iterator<Item = GraphNode> + use<> {
        let graph = self.id;
        (0..self.nodes.len()).map(move |index| GraphNode { graph, index })
    }

    /// The nodes that `node` comes after, without those that come before another of them (as
    /// `cuGraphNodeGetDependencies`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut y = stream.zeros::<u8>(4)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let mut y = capture.write(&mut y)?;
    ///     capture.fill_into(1, &mut y)?;
    ///     capture.fill_into(2, y.view_mut().slice(2..)?)
    /// })?;
    /// let nodes: Vec<_> = graph.nodes().collect();
    /// assert_eq!(graph.dependencies(nodes[1])?, [nodes[0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`GraphError::OtherGraph`] if it is a node of another graph.
    pub fn dependencies(&self, node: GraphNode) -> Result<Vec<GraphNode>> {
        let after = &self.nodes[node.of(self.id)?].after;
        Ok(after.iter().map(|&index| GraphNode { graph: self.id, index }).collect())
    }

    /// Makes it ready to be launched (`cuGraphInstantiateWithFlags`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut y = stream.zeros::<u32>(2)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let mut y = capture.write(&mut y)?;
    ///     capture.fill_into(7, &mut y)
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// drop(graph);
    /// assert_eq!(stream.download(&y)?, [7, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The driver's description of the graph.
    pub fn instantiate(self) -> Result<ExecutableGraph<'b>> {
        ExecutableGraph::new(self)
    }
}

debug_by_methods!(Graph<'_> { device, len });
