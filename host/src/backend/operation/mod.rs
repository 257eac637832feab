//! Work of a device as plain data: what the nodes of a graph do, and what streams of the CPU device are given. `copy` and
//! `fill` have the work that needs no kernel, `value` the condition of a number that a stream waits for, `params` what a kernel
//! is given, `external` the work of other crates.

pub(crate) mod copy;
pub(crate) mod external;
pub(crate) mod fill;
mod params;
mod value;

use std::sync::{Arc, Mutex};

pub(crate) use copy::{MemoryCopy, Place, Rows, Side};
pub(crate) use external::{ExternalNode, Participant};
pub(crate) use fill::Fill;
pub(crate) use params::CopiedParams;
pub(crate) use value::ValueCondition;

use crate::backend::{Contents, Failure, Launch, LaunchConfig, Prepared, host_fn};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::order::Use;
use crate::stream::event::Event;
use crate::sync::lock;

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

/// A piece of work. Its pointers are valid until it has run, those of a node as long as the graph exists.
pub(crate) enum Operation {
    Kernel(OwnedLaunch),
    Copy(MemoryCopy),
    Fill(Fill<'static>),
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
    /// Work of another crate.
    External(ExternalNode),
}

/// Nodes that run once or repeatedly while a word in device memory is not 0.
pub(crate) struct ConditionalNode {
    pub(crate) repeat: Repeat,
    /// The word, a `u32`.
    pub(crate) condition: Address,
    /// Which of the graph's conditional nodes it is, those in bodies counted as well.
    pub(crate) number: usize,
    /// None of them is a function of the host.
    pub(crate) body: Vec<Node>,
}

/// How often the body of a conditional node runs while its condition holds, with the numbers of
/// `CUgraphConditionalNodeType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Once = 0,
    While = 1,
}

impl Repeat {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Repeat::Once => "if",
            Repeat::While => "while",
        }
    }
}

/// A launch of a kernel that owns all that it needs.
pub(crate) struct OwnedLaunch {
    pub(crate) kernel: &'static Kernel,
    pub(crate) prepared: Prepared,
    pub(crate) shape: LaunchConfig,
    pub(crate) params: Arc<CopiedParams>,
}

impl OwnedLaunch {
    /// # Safety
    /// The parameters are the kernel's; what they lead to stays valid until this has run.
    pub(crate) unsafe fn copy(launch: Launch<'_>) -> Self {
        let Launch { kernel, prepared, config, params } = launch;
        // SAFETY: the caller vouches for the parameters.
        let params = Arc::new(unsafe { CopiedParams::copy(params, kernel.descriptor().params) });
        OwnedLaunch { kernel, prepared, shape: *config, params }
    }
}

// SAFETY: a loaded function may be used from any thread, as `Kernel` does; the parameters are `Send`.
unsafe impl Send for OwnedLaunch {}
// SAFETY: as above.
unsafe impl Sync for OwnedLaunch {}

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

// SAFETY: the code that runs the node orders the memory; on the host side it is only a number.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl HostNode {
    pub(crate) fn new(function: Arc<dyn Fn() + Send + Sync>) -> Self {
        HostNode { function, failure: Mutex::default() }
    }

    /// Calls the function; returns whether it panicked.
    pub(super) fn call(&self) -> Option<Error> {
        let function = self.function.clone();
        host_fn::run(Box::new(move || function()))
    }

    /// Lets panics be noted in `failure` from now on.
    pub(crate) fn report_to(&self, failure: Arc<Failure>) {
        *lock(&self.failure) = failure;
    }

    /// Where panics are noted.
    pub(crate) fn failure(&self) -> Arc<Failure> {
        lock(&self.failure).clone()
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

impl Operation {
    /// What it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Operation::Kernel(_) => "kernel",
            Operation::Copy(copy) if copy.has_array() => "copy of a texture array",
            Operation::Copy(_) => "copy",
            Operation::Fill(_) => "fill",
            Operation::Call(_) => "host function",
            Operation::Empty => "empty node",
            Operation::Allocate(_) => "allocation",
            Operation::Free { .. } => "free",
            Operation::Conditional(_) => "conditional node",
            Operation::Record(_) => "event record",
            Operation::Wait(_) => "event wait",
            Operation::Child(_) => "child graph",
            Operation::External(_) => "communication",
        }
    }

    /// What it is and does, for people.
    pub(crate) fn label(&self) -> String {
        match self {
            Operation::Kernel(node) => {
                let ([gx, gy, gz], [bx, by, bz]) = (node.shape.grid, node.shape.block);
                format!("{}\n{gx}x{gy}x{gz} blocks of {bx}x{by}x{bz}", node.kernel.name())
            }
            Operation::Copy(copy) => {
                let Rows { width, height, .. } = copy.rows;
                match height {
                    _ if copy.has_array() => format!("{} of array\n{} bytes", copy.word(), copy.bytes()),
                    1 => format!("{}\n{width} bytes", copy.word()),
                    _ => format!("{}\n{height} rows of {width} bytes", copy.word()),
                }
            }
            Operation::Fill(fill) => format!("fill\n{} bytes", fill.bytes()),
            Operation::Empty => "empty".into(),
            Operation::Allocate(memory) => format!("allocation\n{} bytes", memory.bytes),
            Operation::Free { allocation } => format!("free\nof node {allocation}"),
            Operation::Conditional(node) => format!("{}\n{} nodes", node.repeat.word(), node.body.len()),
            Operation::Call(_) | Operation::Record(_) | Operation::Wait(_) => self.kind().into(),
            Operation::Child(nodes) => format!("child graph\n{} nodes", nodes.len()),
            Operation::External(node) => node.label.clone(),
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

    /// Those that take part in the works of other crates in it.
    pub(crate) fn participants(&self) -> Vec<Arc<dyn Participant>> {
        let mut all = Vec::new();
        self.visit(&mut |operation| {
            if let Operation::External(node) = operation {
                all.extend(node.participants.iter().cloned());
            }
        });
        external::distinct(all)
    }

    pub(crate) fn kernel(&self) -> Option<&OwnedLaunch> {
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
    fn conditional_nodes_are_called_what_they_do() {
        assert_eq!([Repeat::Once, Repeat::While].map(Repeat::word), ["if", "while"]);
    }

    fn node(operation: Operation, uses: &[(usize, Use)]) -> Node {
        Node { operation: Arc::new(operation), after: Vec::new(), uses: uses.to_vec(), prepares: false }
    }

    #[test]
    fn nodes_conflict_over_a_buffer_that_one_of_them_writes() {
        for (one, other, conflict) in [
            ((3, Use::Read), (3, Use::Read), false),
            ((3, Use::Read), (3, Use::Write), true),
            ((3, Use::WritePart), (3, Use::Read), true),
            ((3, Use::Write), (3, Use::Write), true),
            ((3, Use::Write), (4, Use::Write), false),
        ] {
            // Each uses a second buffer that the other does not.
            let [one, other] =
                [[(1, Use::Write), one], [other, (2, Use::Write)]].map(|uses| node(Operation::Empty, &uses));
            assert_eq!(one.conflicts(&other), conflict, "{:?}, {:?}", one.uses, other.uses);
        }
    }

    #[test]
    fn all_that_is_inside_an_operation_is_visited_in_its_order() {
        let body = vec![node(Operation::Empty, &[]), node(Operation::Free { allocation: 5 }, &[])];
        let condition = Address(std::ptr::null_mut());
        let inner =
            Operation::Conditional(ConditionalNode { repeat: Repeat::While, condition, number: 0, body });
        let outer = Operation::Child(vec![node(inner, &[]), node(Operation::Empty, &[])]);
        let mut visited = Vec::new();
        outer.visit(&mut |operation| visited.push(operation.kind()));
        assert_eq!(visited, ["child graph", "conditional node", "empty node", "free", "empty node"]);
    }
}
