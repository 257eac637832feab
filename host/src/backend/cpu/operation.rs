//! The interpreter of operations: runs what a stream was given, and what the nodes of a graph do.

use super::device::CpuDevice;
use super::graph::Marks;
use super::memory;
use crate::backend::Contents;
use crate::backend::external;
use crate::backend::failure::Failure;
use crate::backend::operation::{Allocation, ConditionalNode, Node, Operation, Repeat};

/// Where failures are noted.
#[derive(Clone, Copy)]
pub(super) struct Failures<'a> {
    /// Those of the operation, or of the launch of a graph that it is part of.
    pub(super) own: &'a Failure,
    /// Those of the stream before it.
    pub(super) stream: &'a Failure,
}

/// Runs `operation`; `marks` has those of the event nodes in it.
///
/// # Safety
/// Its memory is there for it to use.
pub(super) unsafe fn run(
    device: &CpuDevice,
    operation: &Operation,
    marks: &mut Marks,
    failures: Failures<'_>,
) {
    let failure = failures.own;
    let note = |error| drop(failure.note(error));
    match operation {
        // SAFETY: passed on; the shape was checked when the launch was enqueued or recorded.
        Operation::Kernel(launch) => unsafe { launch.run(device) }.unwrap_or_else(note),
        // SAFETY: passed on; source and target do not overlap.
        Operation::Copy(copy) => unsafe { memory::copy(copy) },
        // SAFETY: passed on.
        Operation::Fill(fill) => unsafe { memory::fill(fill) },
        Operation::Call(node) => node.call().map_or((), note),
        // Memory is there as long as the graph is.
        Operation::Allocate(Allocation { contents: Contents::Uninitialised, .. })
        | Operation::Free { .. }
        | Operation::Empty => {}
        // SAFETY: passed on.
        Operation::Allocate(Allocation { start, bytes, .. }) => unsafe {
            start.0.write_bytes(0, *bytes);
        },
        Operation::Record(_) => marks.next().iter().for_each(|mark| mark.reach_in(failures.stream, failure)),
        Operation::Wait(_) => {
            let faults = marks.next().map_or_else(Vec::new, |mark| mark.faults());
            faults.iter().for_each(|fault| failure.note_shared(fault));
        }
        // SAFETY: passed on.
        Operation::Conditional(node) => unsafe { run_conditional(node, device, marks, failures) },
        // SAFETY: passed on.
        Operation::Child(nodes) => unsafe { run_all(nodes, device, marks, failures) },
        Operation::External(_) => marks.next_call().and_then(external::run).map_or((), note),
    }
}

/// # Safety
/// As for `run`.
unsafe fn run_all(nodes: &[Node], device: &CpuDevice, marks: &mut Marks, failures: Failures<'_>) {
    for node in nodes {
        // SAFETY: passed on.
        unsafe { run(device, &node.operation, marks, failures) };
    }
}

/// Runs a body as often as its condition says, or until it fails.
///
/// # Safety
/// As for `run`.
unsafe fn run_conditional(
    node: &ConditionalNode,
    device: &CpuDevice,
    marks: &mut Marks,
    failures: Failures<'_>,
) {
    // SAFETY: the condition lies at the start of a buffer of the graph, which is aligned.
    while unsafe { node.condition.0.cast::<u32>().read() } != 0 {
        let of_body = Failure::default();
        // SAFETY: passed on.
        unsafe { run_all(&node.body, device, marks, Failures { own: &of_body, ..failures }) };
        if let Some(error) = of_body.take() {
            failures.own.note(error);
            return;
        }
        if node.repeat == Repeat::Once {
            return;
        }
    }
}
