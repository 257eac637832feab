//! The details of each node in the DOT output of a graph.

use std::sync::Arc;

use crate::backend::GraphBackend;
use crate::backend::operation::{MemoryCopy, Node, Operation, OwnedLaunch, Rows};
use crate::error::Result;
use crate::graph::Graph;

/// What [`Graph::to_dot_with`] prints of each node (`CUgraphDebugDot_flags`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::DotOptions;
///
/// let mut data = stream.zeros::<u8>(4)?;
/// let (graph, ()) = stream.capture(|capture| capture.fill_into(7, &mut capture.write(&mut data)?))?;
/// let text = graph.to_dot_with(DotOptions::new().params().handles())?;
/// assert!(text.contains("value 0x7"), "{text}"); // the words are those of the device
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DotOptions {
    pub(crate) verbose: bool,
    params: bool,
    attributes: bool,
    handles: bool,
}

impl DotOptions {
    /// Only the kinds of nodes.
    pub const fn new() -> Self {
        DotOptions { verbose: false, params: false, attributes: false, handles: false }
    }

    /// As the driver takes them.
    pub(crate) const fn flags(self) -> u32 {
        const PARAMS: u32 = 4 | 8 | 16 | 32 | 64 | 32_768;
        (self.verbose as u32)
            | (self.params as u32 * PARAMS)
            | (self.attributes as u32 * 512)
            | (self.handles as u32 * 1024)
    }

    /// The details of `node`, below its kind.
    pub(crate) fn details(self, node: &Node) -> Vec<String> {
        let mut lines = Vec::new();
        if self.params || self.verbose {
            lines.extend(params(&node.operation));
        }
        if let Some(OwnedLaunch { shape, .. }) = node.operation.kernel()
            && (self.attributes || self.verbose)
        {
            let (attributes, [x, y, z]) = (shape.attributes(), shape.cluster);
            lines.push(format!("cooperative {}, cluster {x}x{y}x{z}", attributes.cooperative));
            lines.extend(attributes.priority.map(|priority| format!("priority {priority}")));
            lines.extend(attributes.memory_sync_domain.map(|domain| format!("domain {domain:?}")));
            lines.extend(attributes.access_policy_window.map(|window| format!("access policy of {window}")));
        }
        if self.handles || self.verbose {
            lines.push(format!("handle {:p}", Arc::as_ptr(&node.operation)));
            let function = node.operation.kernel().map(|node| format!("function {:p}", node.kernel));
            lines.extend(function);
        }
        lines
    }
}

setters! { DotOptions:
    /// All details (`CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE`).
    pub const fn verbose(): verbose = true;

    /// The parameters of nodes: addresses, sizes and values of copies and fills, grids and blocks, functions of the host,
    /// events (`CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS`, `_MEMCPY_`, `_MEMSET_`, `_HOST_`, `_EVENT_` and
    /// `_CONDITIONAL_NODE_PARAMS`).
    pub const fn params(): params = true;

    /// The attributes of launches: cooperative, clusters, priority (`CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES`).
    pub const fn attributes(): attributes = true;

    /// Handles of nodes and of kernels' functions (`CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES`).
    pub const fn handles(): handles = true;
}

impl Graph<'_> {
    /// As [`Graph::to_dot`], with the details of each node that `options` select. On a GPU it is the driver's own text
    /// (`cuGraphDebugDotPrint`), which goes through a file in the folder for temporary files.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::DotOptions;
    ///
    /// let (graph, _) = stream.capture(|capture| capture.launch_host_func(|| println!("called")))?;
    /// println!("{}", graph.to_dot_with(DotOptions::new().verbose())?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The driver's error for the graph; [`GraphError::Picture`](crate::GraphError::Picture) if the file cannot be written or read.
    pub fn to_dot_with(&self, options: DotOptions) -> Result<String> {
        let drawn = GraphBackend::to_dot(self.device.backend(), &self.nodes, self.kept, options.flags())?;
        Ok(drawn.unwrap_or_else(|| self.draw_dot(options)))
    }
}

fn params(operation: &Operation) -> Vec<String> {
    match operation {
        Operation::Kernel(node) => vec![
            format!("{} bytes of shared memory", node.shape.shared_bytes),
            format!("{} parameters", node.params.addresses().len()),
        ],
        Operation::Copy(MemoryCopy { target, source, rows, layers }) => {
            let Rows { width, height, source_pitch, target_pitch } = rows;
            let depth = if *layers == 1 { String::new() } else { format!(", depth {layers}") };
            vec![
                format!("from {:p}, pitch {source_pitch}", source.start()),
                format!("to {:p}, pitch {target_pitch}", target.start()),
                format!("width {width}, height {height}{depth}"),
            ]
        }
        Operation::Fill(fill) => {
            let (width, height) = fill.extent();
            vec![
                format!("to {:p}, pitch {}", fill.target.0, fill.pitch),
                format!("value {:#x} of {} bytes", fill.word(), fill.value.len()),
                format!("width {width}, height {height}"),
            ]
        }
        Operation::Call(node) => vec![format!("function {:p}", Arc::as_ptr(&node.function).cast::<()>())],
        Operation::Record(event) | Operation::Wait(event) => vec![format!("event {:p}", Arc::as_ptr(event))],
        Operation::Conditional(node) => vec![format!("condition at {:p}", node.condition.0)],
        Operation::Allocate(memory) => vec![format!("at {:p}", memory.start.0)],
        Operation::Child(_) | Operation::Empty | Operation::External(_) | Operation::Free { .. } => {
            Vec::new()
        }
    }
}
