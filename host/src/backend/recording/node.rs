//! The nodes of a graph: what each does, and what it comes after.

use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::array::{ArrayShape, Side};
use crate::backend::{CopiedParams, Failure, LaunchConfig, Prepared};
use crate::backend::{Place, Rows};
use crate::kernel::Kernel;
use crate::memory::Contents;
use crate::order::Use;
use crate::stream::event::Event;

/// One node: an operation, and the numbers of the nodes before it, which are all less than its own.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) operation: Arc<Operation>,
    pub(crate) after: Vec<usize>,
    /// The graph's buffers that it uses, by number, and how.
    pub(crate) uses: Vec<(usize, Use)>,
    /// Whether it prepares memory of the launch after it, which relies on that.
    pub(crate) prepares: bool,
}

/// What a node does. Its pointers are valid while the graph is.
pub(crate) enum Operation {
    Kernel(KernelNode),
    /// Rows of bytes; a plain copy is one row.
    Copy {
        target: Address,
        source: Address,
        rows: Rows,
        /// Of the target, and of the source.
        places: (Place, Place),
    },
    /// Copies all elements of a texture array.
    CopyArray(ArrayCopy),
    Fill(Fill),
    Call(HostNode),
    Empty,
    /// Allocates memory at each launch.
    Allocate(Allocation),
    /// Frees what node number `allocation` has allocated.
    Free {
        allocation: usize,
    },
    Conditional(ConditionalNode),
    /// Records the event at each launch.
    Record(Arc<Event>),
    /// Waits at each launch for what the event was recorded for before.
    Wait(Arc<Event>),
    /// The nodes of a child graph.
    Child(Vec<Node>),
}

/// Nodes that run once or again and again, as long as a word in device memory is not 0.
pub(crate) struct ConditionalNode {
    pub(crate) repeat: Repeat,
    /// The word, a `u32`.
    pub(crate) condition: Address,
    /// Which of the graph's conditional nodes it is, those in bodies counted as well.
    pub(crate) number: usize,
    /// None of them is a function of the host.
    pub(crate) body: Vec<Node>,
}

/// How often the body of a conditional node runs while its condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Once,
    While,
}

impl Repeat {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Repeat::Once => "if",
            Repeat::While => "while",
        }
    }
}

/// A kernel with all that its launch needs.
pub(crate) struct KernelNode {
    pub(crate) kernel: &'static Kernel,
    pub(crate) prepared: Prepared,
    pub(crate) shape: LaunchConfig,
    pub(crate) params: Arc<CopiedParams>,
}

/// A copy of a whole texture array, from or to it.
pub(crate) struct ArrayCopy {
    pub(crate) target: Side,
    pub(crate) source: Side,
    pub(crate) shape: ArrayShape,
}

// SAFETY: whoever runs the node orders the memory; on the host side both are only numbers.
unsafe impl Send for ArrayCopy {}
// SAFETY: as above.
unsafe impl Sync for ArrayCopy {}

/// `height` rows of `width` words.
#[derive(Clone, Copy)]
pub(crate) struct Fill {
    pub(crate) target: Address,
    /// The word, in the first `bytes` (1, 2 or 4) places.
    pub(crate) word: [u8; 4],
    pub(crate) bytes: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Bytes from the start of a row to that of the next.
    pub(crate) pitch: usize,
}

/// Memory that a node allocates: until the node that frees it, at the same place in each launch.
#[derive(Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) start: Address,
    /// Not 0.
    pub(crate) bytes: usize,
    pub(crate) contents: Contents,
}

/// A function of the host, called at each launch.
pub(crate) struct HostNode {
    pub(crate) function: Arc<dyn Fn() + Send + Sync>,
    /// Where its panics are noted: the stream of the last launch.
    failure: Mutex<Arc<Failure>>,
}

/// An address in device memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address(pub(crate) *mut u8);

// SAFETY: whoever runs the node orders the memory; on the host side it is only a number.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

// SAFETY: a loaded function may be used from any thread, as `Kernel` does; the parameters are `Send`.
unsafe impl Send for KernelNode {}
// SAFETY: as above.
unsafe impl Sync for KernelNode {}

impl Fill {
    /// `bytes` of value 0.
    pub(crate) fn zeros(target: Address, bytes: usize) -> Self {
        Fill { target, word: [0; 4], bytes: 1, width: bytes, height: 1, pitch: 1 }
    }
}

impl HostNode {
    pub(crate) fn new(function: Arc<dyn Fn() + Send + Sync>) -> Self {
        HostNode { function, failure: Mutex::default() }
    }

    /// Lets panics be noted in `failure` from now on.
    pub(crate) fn report_to(&self, failure: Arc<Failure>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Where panics are noted.
    pub(crate) fn failure(&self) -> Arc<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Node {
    /// Whether this one and `other` may not run at the same time.
    pub(crate) fn conflicts(&self, other: &Node) -> bool {
        let pairs = self.uses.iter().flat_map(|one| other.uses.iter().map(move |another| (one, another)));
        pairs.into_iter().any(|((buffer, usage), (others, theirs))| {
            buffer == others && (*usage != Use::Read || *theirs != Use::Read)
        })
    }
}

/// What a copy to and from these places is called.
fn copy_word((target, source): (Place, Place)) -> &'static str {
    match (target, source) {
        (Place::Device, Place::Host) => "upload",
        (Place::Host, Place::Device) => "download",
        _ => "copy",
    }
}

impl Operation {
    /// What it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Operation::Kernel(_) => "kernel",
            Operation::Copy { .. } => "copy",
            Operation::CopyArray(_) => "copy of a texture array",
            Operation::Fill(_) => "fill",
            Operation::Call(_) => "host function",
            Operation::Empty => "empty node",
            Operation::Allocate(_) => "allocation",
            Operation::Free { .. } => "free",
            Operation::Conditional(_) => "conditional node",
            Operation::Record(_) => "event record",
            Operation::Wait(_) => "event wait",
            Operation::Child(_) => "child graph",
        }
    }

    /// What it is and does, for people.
    pub(crate) fn label(&self) -> String {
        match self {
            Operation::Kernel(node) => {
                let ([gx, gy, gz], [bx, by, bz]) = (node.shape.grid, node.shape.block);
                format!("{}\n{gx}x{gy}x{gz} blocks of {bx}x{by}x{bz}", node.kernel.name())
            }
            Operation::Copy { rows, places, .. } => {
                let Rows { width, height, .. } = rows;
                let count = if *height == 1 { String::new() } else { format!("{height} rows of ") };
                format!("{}\n{count}{width} bytes", copy_word(*places))
            }
            Operation::CopyArray(ArrayCopy { target, source, shape }) => {
                format!("{} of array\n{} bytes", copy_word((target.place(), source.place())), shape.bytes())
            }
            Operation::Fill(fill) => format!("fill\n{} bytes", fill.width * fill.height * fill.bytes),
            Operation::Call(_) => "host function".into(),
            Operation::Empty => "empty".into(),
            Operation::Allocate(memory) => format!("allocation\n{} bytes", memory.bytes),
            Operation::Free { allocation } => format!("free\nof node {allocation}"),
            Operation::Conditional(node) => format!("{}\n{} nodes", node.repeat.word(), node.body.len()),
            Operation::Record(_) | Operation::Wait(_) => self.kind().into(),
            Operation::Child(nodes) => format!("child graph\n{} nodes", nodes.len()),
        }
    }

    /// Whether a launch uses something of it that the driver does not copy.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Operation::Call(_) | Operation::Record(_) | Operation::Wait(_))
    }

    /// Calls `visit` with it and with all that is inside it, in the order in which the CPU device runs them.
    pub(crate) fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Operation)) {
        visit(self);
        self.body().iter().for_each(|node| node.operation.visit(visit));
    }

    pub(crate) fn kernel(&self) -> Option<&KernelNode> {
        match self {
            Operation::Kernel(node) => Some(node),
            _ => None,
        }
    }

    /// The nodes inside it.
    pub(crate) fn body(&self) -> &[Node] {
        match self {
            Operation::Conditional(node) => &node.body,
            Operation::Child(nodes) => nodes,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_called_what_they_do() {
        let (device, host) = (Place::Device, Place::Host);
        let words = [(device, host), (host, device), (device, device), (host, host)].map(copy_word);
        assert_eq!(words, ["upload", "download", "copy", "copy"]);
        assert_eq!([Repeat::Once, Repeat::While].map(Repeat::word), ["if", "while"]);
    }
}
