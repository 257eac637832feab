//! The public API of conditional nodes: bodies that run if, or while, a word in device memory is not 0.

use std::ops::Deref;

use super::{Capture, recording};
use crate::backend::operation::Operation;
use crate::backend::operation::Repeat;
use crate::backend::recording::RecordingStream;
use crate::device::Device;
use crate::error::Result;
use crate::graph::GraphNode;
use crate::graph::buffer::GraphKey;
use crate::stream::Stream;

/// The body of a conditional node that is being recorded: a [`Stream`] on which launches, copies and fills add
/// nodes to it, from [`Capture::if_node`] and [`Capture::while_node`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (mut wanted, mut twice) = (stream.upload(&[1_u32])?, stream.upload(&[1_u32])?);
/// let mut data = stream.zeros::<u8>(3)?;
/// let (graph, ()) = stream.capture(|capture| {
///     let (wanted, mut twice) = (capture.write(&mut wanted)?, capture.write(&mut twice)?);
///     let mut data = capture.write(&mut data)?;
///     capture.if_node(wanted.key(), |body| {
///         body.fill_into(1, &mut data)?;
///         body.if_node(twice.key(), |inner| inner.fill_into(2, data.view_mut().slice(1..)?))?;
///         body.while_node(twice.key(), |inner| inner.fill_into(0, &mut twice)) // once
///     })?;
///     Ok(())
/// })?;
/// graph.instantiate()?.launch(&stream)?;
/// assert_eq!((stream.download(&data)?, stream.download(&twice)?), (vec![1, 2, 2], vec![0]));
/// # Ok(()) }
/// ```
pub struct GraphBody {
    stream: Stream,
    graph: u64,
}

impl Capture<'_, '_> {
    /// Adds a node whose body runs if the first element of the buffer `condition` is not 0 when the node is
    /// reached (`CU_GRAPH_COND_TYPE_IF`). The body is what `work` records on the stream that it is given; it may
    /// use the graph's buffers, and write the condition.
    ///
    /// Returns the node. A driver of CUDA 12.3 or newer is needed; with an older one the graph cannot be
    /// instantiated.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut wanted = stream.zeros::<u32>(1)?;
    /// let mut data = stream.zeros::<u8>(3)?;
    /// let (graph, wanted) = stream.capture(|capture| {
    ///     let wanted = capture.write(&mut wanted)?;
    ///     let mut data = capture.write(&mut data)?;
    ///     capture.if_node(wanted.key(), |body| body.fill_into(7, &mut data))?;
    ///     Ok(wanted.key())
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?; // the condition is 0
    /// stream.fill_into(1, graph.view_mut(wanted)?)?;
    /// graph.launch(&stream)?;
    /// drop(graph);
    /// assert_eq!(stream.download(&data)?, [7; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `work` returns; [`GraphError::NoCondition`](crate::GraphError::NoCondition) for an empty buffer;
    /// [`GraphError::TooDeep`](crate::GraphError::TooDeep) for the 33rd of conditional nodes inside of each other;
    /// [`GraphError::OtherGraph`](crate::GraphError::OtherGraph) for a key of another graph. In the body,
    /// [`GraphError::OtherBody`](crate::GraphError::OtherBody) for work on `self` or another stream of it.
    pub fn if_node(
        &self,
        condition: GraphKey<u32>,
        work: impl FnOnce(&GraphBody) -> Result<()>,
    ) -> Result<GraphNode> {
        conditional(self.id(), self.device(), recording(self), Repeat::Once, condition, work)
    }

    /// Adds a node whose body runs repeatedly while the first element of the buffer `condition` is
    /// not 0 before it (`CU_GRAPH_COND_TYPE_WHILE`): a kernel of the body must eventually set it to 0. See
    /// [`Capture::if_node`].
    ///
    /// A panic of a kernel in the body ends the loop after that run of it, and the loops around it; it is reported at the
    /// next synchronisation.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut bits = stream.upload(&[1_u32, 1, 1, 0])?; // as if a kernel had computed the number of iterations
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let mut bits = capture.write(&mut bits)?;
    ///     let mut next = capture.keep(stream.zeros::<u32>(4)?)?;
    ///     capture.while_node(bits.key(), |body| {
    ///         body.copy(bits.view().slice(1..)?, next.view_mut().slice(..3)?)?;
    ///         body.copy(&next, &mut bits) // shifts them by one
    ///     })?;
    ///     Ok(())
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// drop(graph);
    /// assert_eq!(stream.download(&bits)?, [0; 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Capture::if_node`].
    pub fn while_node(
        &self,
        condition: GraphKey<u32>,
        work: impl FnOnce(&GraphBody) -> Result<()>,
    ) -> Result<GraphNode> {
        conditional(self.id(), self.device(), recording(self), Repeat::While, condition, work)
    }
}

impl GraphBody {
    /// As [`Capture::if_node`], inside this body.
    ///
    /// # Errors
    /// As there.
    pub fn if_node(
        &self,
        condition: GraphKey<u32>,
        work: impl FnOnce(&GraphBody) -> Result<()>,
    ) -> Result<()> {
        conditional(self.graph, self.device(), recording(self), Repeat::Once, condition, work).map(drop)
    }

    /// As [`Capture::while_node`], inside this body.
    ///
    /// # Errors
    /// As there.
    pub fn while_node(
        &self,
        condition: GraphKey<u32>,
        work: impl FnOnce(&GraphBody) -> Result<()>,
    ) -> Result<()> {
        conditional(self.graph, self.device(), recording(self), Repeat::While, condition, work).map(drop)
    }
}

fn conditional(
    graph: u64,
    device: &Device,
    outer: &RecordingStream,
    repeat: Repeat,
    condition: GraphKey<u32>,
    work: impl FnOnce(&GraphBody) -> Result<()>,
) -> Result<GraphNode> {
    let (index, ()) = outer.conditional(repeat, condition.of(graph)?, |line| {
        let stream = Stream::new(device, line);
        let body = GraphBody { stream, graph };
        work(&body)?;
        // A body without nodes is none to the driver.
        let line = recording(&body);
        if line.tail()?.is_empty() { line.add(Operation::Empty).map(drop) } else { Ok(()) }
    })?;
    Ok(GraphNode { graph, index })
}

impl Deref for GraphBody {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

debug_by_methods!(GraphBody { device });
