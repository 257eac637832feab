//! Graphs on the CPU device: their nodes one after the other, in the order of recording, which is one that
//! dependencies allow. It must not know what orders the memory that nodes use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use super::device::CpuDevice;
use super::event::CpuMark;
use super::execute::Launch;
use super::memory;
use super::stream::{CpuStream, Queue};
use crate::backend::failure::Failure;
use crate::backend::{host_fn, payload};
use crate::error::{Error, Result};
use crate::graph::{ConditionalNode, Fill, HostNode, KernelNode, Node, Operation, Repeat};
use crate::writers::Flow;

/// An instantiated graph. Launches that have not run keep the steps that they were given.
pub(crate) struct CpuGraph {
    steps: Arc<[Step]>,
    /// The last launch: its queue, and its end.
    last: Option<(Weak<Queue>, CpuMark)>,
}

/// One node.
#[derive(Clone)]
pub(super) struct Step {
    operation: Arc<Operation>,
    enabled: bool,
}

impl CpuGraph {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let step = |node: &Node| Step { operation: node.operation.clone(), enabled: true };
        CpuGraph { steps: nodes.iter().map(step).collect(), last: None }
    }

    /// Enqueues it, after its last launch: as in CUDA, launches of one graph never run at the same time.
    ///
    /// # Safety
    /// As for `GraphBackend::launch`.
    pub(crate) unsafe fn launch(&mut self, stream: &CpuStream, flow: Flow) -> Result<()> {
        let queue = Arc::downgrade(stream.queue());
        if let Some((_, end)) = self.last.as_ref().filter(|(last, _)| !Weak::ptr_eq(last, &queue)) {
            stream.follow(end.clone())?;
        }
        // SAFETY: passed on.
        let end = unsafe { stream.replay(self.steps.clone(), flow)? };
        self.last = Some((queue, end));
        Ok(())
    }

    pub(crate) fn set_operation(&mut self, index: usize, operation: Arc<Operation>) {
        Arc::make_mut(&mut self.steps)[index].operation = operation;
    }

    pub(crate) fn set_enabled(&mut self, index: usize, enabled: bool) {
        Arc::make_mut(&mut self.steps)[index].enabled = enabled;
    }

    pub(crate) fn is_enabled(&self, index: usize) -> bool {
        self.steps[index].enabled
    }

    pub(crate) fn update(&mut self, nodes: &[Node]) {
        for (step, node) in Arc::make_mut(&mut self.steps).iter_mut().zip(nodes) {
            step.operation = node.operation.clone();
        }
    }
}

/// Runs all steps; notes the first failure. Those after it run as well, as on a stream.
///
/// # Safety
/// The memory of all nodes is there for them to use.
pub(super) unsafe fn run(device: &CpuDevice, steps: &[Step], failure: &Failure) {
    for step in steps.iter().filter(|step| step.enabled) {
        // SAFETY: passed on.
        unsafe { run_operation(device, &step.operation, failure) };
    }
}

/// Drops what a launch was given. If nobody else has it, that drops what functions of the host have captured, which may
/// panic; the stream goes on.
pub(super) fn let_go(steps: Arc<[Step]>, failure: &Failure) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(steps))) {
        failure.note(Error::HostFnPanic { message: payload::text(payload) });
    }
}

/// # Safety
/// As for `run`.
unsafe fn run_operation(device: &CpuDevice, operation: &Operation, failure: &Failure) {
    match operation {
        // SAFETY: passed on.
        Operation::Kernel(node) => unsafe { run_kernel(node, device, failure) },
        // SAFETY: passed on; source and target do not overlap.
        Operation::Copy { target, source, rows, .. } => unsafe {
            memory::copy_rows(target.0, source.0, *rows);
        },
        // SAFETY: passed on.
        Operation::Fill(fill) => unsafe { run_fill(fill) },
        Operation::Call(node) => call(node, failure),
        Operation::Empty => {}
        // SAFETY: passed on.
        Operation::Conditional(node) => unsafe { run_conditional(node, device, failure) },
        Operation::Child(nodes) => {
            for node in nodes {
                // SAFETY: passed on.
                unsafe { run_operation(device, &node.operation, failure) };
            }
        }
    }
}

/// Runs a body as often as its condition says, or until it fails.
unsafe fn run_conditional(node: &ConditionalNode, device: &CpuDevice, failure: &Failure) {
    // SAFETY: the condition lies at the start of a buffer of the graph, which is aligned.
    while unsafe { node.condition.0.cast::<u32>().read() } != 0 {
        let of_body = Failure::default();
        for inner in &node.body {
            // SAFETY: passed on.
            unsafe { run_operation(device, &inner.operation, &of_body) };
        }
        if let Some(error) = of_body.take() {
            failure.note(error);
            return;
        }
        if node.repeat == Repeat::Once {
            return;
        }
    }
}

unsafe fn run_kernel(node: &KernelNode, device: &CpuDevice, failure: &Failure) {
    let launch = Launch { kernel: node.kernel, shape: node.shape, params: node.params.clone() };
    // SAFETY: passed on; the shape was checked when the node was recorded.
    if let Err(error) = unsafe { launch.run(device) } {
        failure.note(error);
    }
}

unsafe fn run_fill(fill: &Fill) {
    for row in 0..fill.height {
        // SAFETY: the rows lie in memory that the node may write.
        unsafe {
            let start = fill.target.0.add(row * fill.pitch);
            memory::fill(start, &fill.word[..fill.bytes], fill.width);
        }
    }
}

fn call(node: &HostNode, failure: &Failure) {
    let function = node.function.clone();
    if let Some(error) = host_fn::run(Box::new(move || function())) {
        failure.note(error);
    }
}
