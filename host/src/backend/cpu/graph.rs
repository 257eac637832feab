//! Graphs on the CPU device: their nodes one after the other, in the order of recording, which is one that
//! dependencies allow.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use super::device::CpuDevice;
use super::operation::{self, Failures};
use super::stream::event::CpuMark;
use super::stream::{CpuStream, Queue};
use crate::backend::external::{self, ExternalFn};
use crate::backend::failure::Failure;
use crate::backend::graph::BackendGraph;
use crate::backend::operation::external::NodeWork;
use crate::backend::operation::{Address, ExternalNode, Node, Operation};
use crate::backend::writers::Flow;
use crate::backend::{EventBackend, host_fn};
use crate::error::{Error, Result};
use crate::stream::event::Event;

/// An instantiated graph. Launches that have not run keep the steps that they were given.
pub(crate) struct CpuGraph {
    steps: Arc<[Step]>,
    /// Whether there is work of other crates in it.
    is_external: bool,
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
        let is_external = nodes.iter().any(|node| !node.operation.participants().is_empty());
        CpuGraph { steps: nodes.iter().map(step).collect(), is_external, last: None }
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
        // Until the functions are in the stream.
        let _in_order = self.is_external.then(external::in_order);
        let (marks, recorded) = Marks::new(&self.steps);
        // SAFETY: passed on.
        let end = unsafe { stream.replay(self.steps.clone(), marks, flow)? };
        recorded.into_iter().for_each(|(event, mark)| set(&event, mark));
        self.last = Some((queue, end));
        Ok(())
    }
}

impl BackendGraph for CpuGraph {
    fn set_kernel(&mut self, index: usize, kernel: &Arc<Operation>) -> Result<()> {
        Arc::make_mut(&mut self.steps)[index].operation = kernel.clone();
        Ok(())
    }

    fn set_enabled(&mut self, index: usize, enabled: bool) -> Result<()> {
        Arc::make_mut(&mut self.steps)[index].enabled = enabled;
        Ok(())
    }

    fn is_enabled(&self, index: usize) -> Result<bool> {
        Ok(self.steps[index].enabled)
    }

    fn update(&mut self, nodes: &[Node], _: Address) -> Result<()> {
        for (step, node) in Arc::make_mut(&mut self.steps).iter_mut().zip(nodes) {
            step.operation = node.operation.clone();
        }
        Ok(())
    }
}

/// What nodes stand for in one launch: event nodes, and those of other crates.
#[derive(Default)]
pub(super) struct Marks {
    /// In the order of all event nodes: what is reached, or waited for; `None` for an event that was never recorded.
    all: std::vec::IntoIter<Option<CpuMark>>,
    /// In the order of all nodes of other crates.
    calls: std::vec::IntoIter<ExternalFn>,
}

impl Marks {
    /// Also those that events are to stand for once the launch is enqueued.
    fn new(steps: &[Step]) -> (Self, Vec<(Arc<Event>, CpuMark)>) {
        let mut recorded: Vec<(Arc<Event>, CpuMark)> = Vec::new();
        let (mut all, mut calls) = (Vec::new(), Vec::new());
        let mut visit = |operation: &Operation| {
            if let Operation::External(ExternalNode { work: NodeWork::Calls(call), .. }) = operation {
                calls.push(call());
            }
            let (Operation::Record(event) | Operation::Wait(event)) = operation else { return };
            if let Operation::Record(_) = operation {
                recorded.push((event.clone(), CpuMark::new()));
            }
            let own = recorded.iter().rev().find(|(known, _)| Arc::ptr_eq(known, event));
            all.push(own.map(|(_, mark)| mark.clone()).or_else(|| mark_of(event)));
        };
        steps.iter().for_each(|step| step.operation.visit(&mut visit));
        (Marks { all: all.into_iter(), calls: calls.into_iter() }, recorded)
    }

    /// The function of the next node of another crate.
    pub(super) fn next_call(&mut self) -> Option<ExternalFn> {
        self.calls.next()
    }

    /// That of the next event node.
    pub(super) fn next(&mut self) -> Option<CpuMark> {
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
        unsafe { operation::run(device, &step.operation, marks, failures) };
    }
}

/// Drops the arguments of a launch. If they have no other owner, this drops the captures of host functions, which may
/// panic; the stream remains usable.
pub(super) fn let_go(steps: Arc<[Step]>, failure: &Failure) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(steps))) {
        failure.note(Error::HostFnPanic { message: host_fn::text(payload) });
    }
}
