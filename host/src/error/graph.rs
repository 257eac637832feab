//! Errors in recording, updating and launching graphs.

/// An error about a graph.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::GraphError;
///
/// let mut y = stream.zeros::<u32>(3)?;
/// // What waits cannot be a node.
/// let refused = stream.capture(|capture| capture.synchronize()).unwrap_err();
/// assert!(matches!(refused, Error::Graph(GraphError::NotRecordable { .. })), "{refused}");
/// // Nor can work on what the graph does not hold: its owner could free it.
/// let refused = stream.capture(|capture| capture.fill_into(1, &mut y)).unwrap_err();
/// assert_eq!(refused, GraphError::UnknownBuffer.into());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An operation cannot be recorded in a graph.
    #[error("{operation} is not possible while a graph is recorded: {reason}")]
    NotRecordable {
        /// The operation.
        operation: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// A node uses memory that was not given to the graph.
    #[error(
        "a node of a graph uses a buffer that the graph does not hold: give it to the graph with `capture.read(&buffer)`, `capture.write(&mut buffer)` or `capture.keep(buffer)`, a texture array with `capture.read_array(&array)` or `capture.write_array(&mut array)`, and launch with what these return"
    )]
    UnknownBuffer,
    /// A node writes memory that the graph may only read.
    #[error(
        "a node of a graph writes a buffer that was given to it by `capture.read` or `capture.read_array`; give it by `capture.write`, `capture.keep` or `capture.write_array`"
    )]
    ReadOnlyBuffer,
    /// A buffer of a graph was taken twice in one update.
    #[error("buffer {buffer} of the graph is in use already in this update")]
    BufferTaken {
        /// Its number in the graph.
        buffer: usize,
    },
    /// A stream that recorded a graph was used after the end of the recording.
    #[error("the recording of the graph has ended; this stream can only be dropped")]
    Ended,
    /// A recording was used in another thread than the one that began it.
    #[error("a graph is recorded by one thread, and this is another")]
    OtherThread,
    /// A node or buffer is of another graph.
    #[error("this {what} is of another graph")]
    OtherGraph {
        /// `node`, `buffer`, `stream` or `event`.
        what: &'static str,
    },
    /// A recording waits for an event that was not recorded in it.
    #[error("the event was not recorded in this graph")]
    EventNotRecorded,
    /// The node to update is not a kernel.
    #[error("node {node} is a {found}; only kernels and their arguments can be updated one by one")]
    NotAKernel {
        /// The node's number.
        node: usize,
        /// Its kind.
        found: &'static str,
    },
    /// An update did not launch exactly one kernel.
    #[error("an update of a kernel launches that kernel once, but this one recorded {count} nodes")]
    NotOneLaunch {
        /// What it recorded.
        count: usize,
    },
    /// An update launched another kernel.
    #[error("node {node} launches kernel `{kernel}`, the update kernel `{found}`")]
    OtherKernel {
        /// The node's number.
        node: usize,
        /// The kernel of the node.
        kernel: &'static str,
        /// The kernel of the update.
        found: &'static str,
    },
    /// An update lets a kernel use a buffer that another node, which may run at the same time, uses as well.
    #[error(
        "the update of node {node} lets it use a buffer together with node {other}, and neither comes after the other; record the graph again"
    )]
    Unordered {
        /// The node's number.
        node: usize,
        /// The other node's.
        other: usize,
    },
    /// An update lets a kernel use the memory of an allocation node while it is not allocated.
    #[error(
        "the update of node {node} lets it use memory of node {allocation}, which allocates it, and it is not between that and the node that frees it"
    )]
    OutsideLifetime {
        /// The node's number.
        node: usize,
        /// The number of the node that allocates.
        allocation: usize,
    },
    /// Memory that nodes of a graph allocate was used outside the graph.
    #[error(
        "memory that a graph allocates is there while the graph runs: use it in nodes of that graph, or give the graph a buffer by `capture.keep`"
    )]
    OutsideGraph,
    /// A node of this kind cannot be disabled.
    #[error("node {node} is a {found}; only kernels, copies and fills can be disabled")]
    CannotDisable {
        /// The node's number.
        node: usize,
        /// Its kind.
        found: &'static str,
    },
    /// A graph cannot replace another in an update.
    #[error("the graph cannot be updated: {reason}; instantiate the other graph instead")]
    UpdateRefused {
        /// What differs.
        reason: Box<str>,
    },
    /// Conditional nodes, or child graphs, are nested too deep.
    #[error("conditional nodes and child graphs can be nested {limit} deep, and this one would be deeper")]
    TooDeep {
        /// The most levels.
        limit: usize,
    },
    /// A conditional node has an empty condition buffer.
    #[error("a condition is the first element of a buffer of the graph, and this buffer has none")]
    NoCondition,
    /// A stream of a recording was used while the body of a conditional node was recorded, or one of a body
    /// outside it.
    #[error(
        "this stream is not one of the body of the conditional node that is being recorded: launch on what the closure of `if_node` or `while_node` is given, and inside it"
    )]
    OtherBody,
    /// The file that the driver writes a picture of the graph to could not be made or read.
    #[error("the driver cannot draw the graph into the file {path}: {reason}")]
    Picture {
        /// The file.
        path: Box<str>,
        /// The system's message.
        reason: Box<str>,
    },
    /// A fill with a value that is too large for a node.
    #[error("a graph can fill with values of at most {limit} bytes, this one has {bytes}; use a kernel")]
    LargeFill {
        /// The value's bytes.
        bytes: usize,
        /// The most bytes.
        limit: usize,
    },
}
