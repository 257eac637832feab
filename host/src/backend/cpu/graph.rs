//! Graphs on the CPU device: their nodes one after the other, in the order of recording, which is one that
//! dependencies allow.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use super::device::CpuDevice;
use super::execute::Launch;
use super::memory;
use super::stream::event::CpuMark;
use super::stream::{CpuStream, Queue};
use crate::backend::failure::Failure;
use crate::backend::recording::node::{
    Allocation, ArrayCopy, ConditionalNode, Fill, HostNode, KernelNode, Node, Operation, Repeat,
};
use crate::backend::{EventBackend, host_fn, payload};
use crate::error::{Error, Result};
use crate::memory::Contents;
use crate::order::writers::Flow;
use crate::stream::event::Event;

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
        let (marks, recorded) = Marks::new(&self.steps);
        // SAFETY: passed on.
        let end = unsafe { stream.replay(self.steps.clone(), marks, flow)? };
        recorded.into_iter().for_each(|(event, mark)| set(&event, mark));
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

/// What the event nodes of one launch stand for.
pub(super) struct Marks {
    /// In the order of all event nodes: what is reached, or waited for; `None` for an event that was never recorded.
    all: std::vec::IntoIter<Option<CpuMark>>,
}

impl Marks {
    /// Also those that events are to stand for once the launch is enqueued.
    fn new(steps: &[Step]) -> (Self, Vec<(Arc<Event>, CpuMark)>) {
        let mut recorded: Vec<(Arc<Event>, CpuMark)> = Vec::new();
        let mut all = Vec::new();
        let mut visit = |operation: &Operation| {
            let (Operation::Record(event) | Operation::Wait(event)) = operation else { return };
            if let Operation::Record(_) = operation {
                recorded.push((event.clone(), CpuMark::new()));
            }
            let own = recorded.iter().rev().find(|(known, _)| Arc::ptr_eq(known, event));
            all.push(own.map(|(_, mark)| mark.clone()).or_else(|| mark_of(event)));
        };
        steps.iter().for_each(|step| step.operation.visit(&mut visit));
        (Marks { all: all.into_iter() }, recorded)
    }

    /// That of the next event node.
    fn next(&mut self) -> Option<CpuMark> {
        self.all.next().flatten()
    }
}

fn set(event: &Event, mark: CpuMark) {
    if let EventBackend::Cpu(event) = event.backend() {
        event.set(mark);
    }
}

fn mark_of(event: &Event) -> Option<CpuMark> {
    match event.backend() {
        EventBackend::Cpu(event) => event.mark(),
        EventBackend::Cuda(_) | EventBackend::Recorded(_) => None,
    }
}

/// Runs all steps; notes the first failure. Those after it run as well, as on a stream.
///
/// # Safety
/// The memory of all nodes is there for them to use.
pub(super) unsafe fn run(device: &CpuDevice, steps: &[Step], marks: &mut Marks, failures: Failures<'_>) {
    for step in steps.iter().filter(|step| step.enabled) {
        // SAFETY: passed on.
        unsafe { run_operation(device, &step.operation, marks, failures) };
    }
}

/// Where failures are noted.
#[derive(Clone, Copy)]
pub(super) struct Failures<'a> {
    /// Those of the launch.
    pub(super) own: &'a Failure,
    /// Those of the stream before it.
    pub(super) stream: &'a Failure,
}

/// Drops the arguments of a launch. If they have no other owner, this drops the captures of host functions, which may
/// panic; the stream remains usable.
pub(super) fn let_go(steps: Arc<[Step]>, failure: &Failure) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(steps))) {
        failure.note(Error::HostFnPanic { message: payload::text(payload) });
    }
}

/// # Safety
/// As for `run`.
unsafe fn run_operation(
    device: &CpuDevice,
    operation: &Operation,
    marks: &mut Marks,
    failures: Failures<'_>,
) {
    let failure = failures.own;
    match operation {
        // SAFETY: passed on.
        Operation::Kernel(node) => unsafe { run_kernel(node, device, failure) },
        // SAFETY: passed on; source and target do not overlap.
        Operation::Copy { target, source, rows, .. } => unsafe {
            memory::copy_rows(target.0, source.0, *rows);
        },
        // SAFETY: passed on; an array is its elements here, one after the other.
        Operation::CopyArray(ArrayCopy { target, source, shape }) => unsafe {
            target.start().copy_from_nonoverlapping(source.start(), shape.bytes());
        },
        // SAFETY: passed on.
        Operation::Fill(fill) => unsafe { run_fill(fill) },
        Operation::Call(node) => call(node, failure),
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
        Operation::Child(nodes) => {
            for node in nodes {
                // SAFETY: passed on.
                unsafe { run_operation(device, &node.operation, marks, failures) };
            }
        }
    }
}

/// Runs a body as often as its condition says, or until it fails.
unsafe fn run_conditional(
    node: &ConditionalNode,
    device: &CpuDevice,
    marks: &mut Marks,
    failures: Failures<'_>,
) {
    // SAFETY: the condition lies at the start of a buffer of the graph, which is aligned.
    while unsafe { node.condition.0.cast::<u32>().read() } != 0 {
        let of_body = Failure::default();
        for inner in &node.body {
            // SAFETY: passed on.
            unsafe { run_operation(device, &inner.operation, marks, Failures { own: &of_body, ..failures }) };
        }
        if let Some(error) = of_body.take() {
            failures.own.note(error);
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
