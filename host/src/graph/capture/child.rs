//! Child graphs: a recorded graph becomes one node of another, which takes over its buffers.

use ferrogrid_device::DeviceCopy;

use super::{Capture, recording};
use crate::backend::operation::{Node, Operation};
use crate::backend::recording::refusal::not_recordable;
use crate::backend::recording::{MANY_LEVELS, RecordingStream};
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::graph::buffer::{GraphBuffer, GraphKey};
use crate::graph::{Graph, GraphNode};

impl<'scope, 'b> Capture<'scope, 'b> {
    /// Adds `graph` as one node (`cuGraphAddChildGraphNode`), in the order of this stream and of the buffers that both use.
    /// This graph takes over its buffers: between launches their keys name them here, too, and
    /// [`Capture::buffer`] gives them to other nodes.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::{Graph, GraphKey};
    ///
    /// /// Work that another library has recorded.
    /// fn ones(stream: &Stream) -> ferrogrid::Result<(Graph<'static>, GraphKey<u32>)> {
    ///     stream.capture(|capture| {
    ///         let mut data = capture.keep(stream.zeros::<u32>(4)?)?;
    ///         capture.fill_into(1, &mut data)?;
    ///         Ok(data.key())
    ///     })
    /// }
    /// let (child, data) = ones(&stream)?;
    /// let (graph, last) = stream.capture(|capture| {
    ///     let node = capture.child_graph(child)?;
    ///     let mut data = capture.buffer(data)?;
    ///     let last = capture.node(&[node], |stream| stream.fill_into(2, data.view_mut().slice(3..)?))?;
    ///     Ok(last)
    /// })?;
    /// assert_eq!((graph.len(), last.index()), (2, 1));
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// assert_eq!(stream.download(graph.view(data)?)?, [1, 1, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if it is of another device; [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) if it has conditional nodes, or
    /// nodes that allocate memory, which CUDA takes in no child; [`GraphError::TooDeep`](crate::GraphError::TooDeep) for the 33rd of graphs inside of each other; [`GraphError::OtherBody`](crate::GraphError::OtherBody) inside the body of a conditional node.
    pub fn child_graph(&'scope self, graph: Graph<'b>) -> Result<GraphNode> {
        self.add_child(recording(self), graph)
    }

    /// As [`Capture::child_graph`], after the nodes `after` and nothing else but what its buffers ask for.
    ///
    /// # Errors
    /// As [`Capture::child_graph`] and [`Capture::node`].
    pub fn child_node(&'scope self, after: &[GraphNode], graph: Graph<'b>) -> Result<GraphNode> {
        self.add_child(&self.line(after)?, graph)
    }

    /// A buffer of a child graph, for other nodes of this one; each can be taken once.
    ///
    /// # Errors
    /// [`GraphError::OtherGraph`](crate::GraphError::OtherGraph) for a key of a graph that is no child of this one, [`GraphError::ReadOnlyBuffer`](crate::GraphError::ReadOnlyBuffer) if the child
    /// may only read it, [`GraphError::BufferTaken`](crate::GraphError::BufferTaken) the second time.
    pub fn buffer<T: DeviceCopy>(&'scope self, key: GraphKey<T>) -> Result<GraphBuffer<'scope, T>> {
        let (number, memory) = self.take_buffer(|slots| key.of_child(slots))?;
        let key = GraphKey::new(self.id(), number, key.len());
        Ok(GraphBuffer::new(key.view_mut(memory), key))
    }

    fn add_child(&'scope self, line: &RecordingStream, graph: Graph<'b>) -> Result<GraphNode> {
        graph.device.check_is(self.device())?;
        check_levels(&graph.nodes, 1)?;
        let Graph { id, mut nodes, slots, .. } = graph;
        let numbers = self.take_over(id, slots)?;
        for node in &mut nodes {
            node.uses.iter_mut().for_each(|(buffer, _)| *buffer = numbers[*buffer]);
        }
        Ok(self.name(line.add_child(nodes)?))
    }
}

/// Whether `nodes` can be those of a child graph with `level` graphs around it.
fn check_levels(nodes: &[Node], level: usize) -> Result<()> {
    if level > MANY_LEVELS {
        return Err(GraphError::TooDeep { limit: MANY_LEVELS }.into());
    }
    nodes.iter().try_for_each(|node| match &*node.operation {
        Operation::Conditional(_) => {
            Err(not_recordable("a child graph with conditional nodes", "CUDA takes no such child"))
        }
        Operation::Allocate(_) | Operation::Free { .. } => Err(not_recordable(
            "a child graph whose nodes allocate memory",
            "CUDA clones a child, and not the memory of its nodes: record its work in this graph, or keep its buffers by `capture.keep`",
        )),
        Operation::Child(nodes) => check_levels(nodes, level + 1),
        _ => Ok(()),
    })
}
