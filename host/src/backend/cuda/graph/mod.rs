//! Graphs of CUDA devices: nodes for the driver, instances, launches. `condition` has conditional nodes,
//! `memory` nodes that allocate and free, `capturing` what libraries enqueue, `dot` the driver's own picture of a graph.

pub(crate) mod capturing;
pub(crate) mod condition;
pub(crate) mod dot;
pub(crate) mod memory;

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::panic::Location;
use std::ptr::{from_ref, null, null_mut};
use std::sync::Arc;

use cudarc::driver::sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUevent, CUfunction, CUgraph,
    CUgraphExec, CUgraphNode,
};

use super::device::{CudaDevice, Handle, address};
use super::driver::{Code, Driver, Returned};
use super::feedback::Lent;
use super::memory::array;
use super::stream::CudaStream;
use super::stream::attributes::AttributeList;
use super::stream::event::CudaEvent;
use super::stream::watch::with_record;
use crate::backend::Contents;
use crate::backend::graph::BackendGraph;
use crate::backend::operation::external::NodeWork;
use crate::backend::operation::{
    Address, Allocation, ConditionalNode, ExternalNode, Fill, HostNode, MemoryCopy, Node, Operation,
    OwnedLaunch, Repeat,
};
use crate::backend::writers::Effect;
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::kernel::Kernel;
use crate::stream::event::Event;
use condition::{ConditionalParams, SetterArguments};
use memory::{MemoryNode, MemoryNodes, OwnGraph};

/// The kernels that are named when a launch fails; a stream remembers no more.
const NAMED_KERNELS: usize = 8;

/// The driver's `CUgraphExecUpdateResultInfo`, with its result as a number.
#[repr(C)]
pub(super) struct UpdateResult {
    result: c_uint,
    node: CUgraphNode,
    from_node: CUgraphNode,
}

/// An instantiated graph.
pub(crate) struct CudaGraph {
    device: &'static CudaDevice,
    /// What it was instantiated from: updates name nodes by their handles there.
    /// That of another's instance is not known.
    template: Option<Template>,
    instance: Handle<CUgraphExec>,
    launches: Vec<RecordedLaunch>,
    may_panic: bool,
    /// The bytes that its nodes allocate.
    allocated: usize,
    /// What its kernels are given that may panic.
    record: Arc<Lent>,
}

/// A graph as the driver has it, and its nodes in the order of recording.
pub(super) struct Template {
    graph: OwnGraph,
    nodes: Vec<Handle<CUgraphNode>>,
}

impl CudaGraph {
    /// `memory` has the nodes that allocate.
    pub(crate) fn new(
        device: &'static CudaDevice,
        nodes: &[Node],
        kept: Address,
        memory: MemoryNodes,
    ) -> Result<Self> {
        let record = Arc::new(Lent::new(device)?);
        let template = Template::new(memory, nodes, kept, &record)?;
        let (mut instance, allocated) = (null_mut(), allocated(nodes));
        // SAFETY: `instance` is valid for the call, and the graph is live.
        let code = unsafe { device.driver().graph_instantiate(&mut instance, template.raw(), 0) };
        let object = format!("{} nodes", nodes.len());
        device.check_memory(code, allocated, &object)?;
        Ok(CudaGraph {
            device,
            template: Some(template),
            instance: Handle(instance),
            launches: last_launches(nodes),
            may_panic: may_panic(nodes),
            allocated,
            record,
        })
    }

    /// An instance of another library, whose nodes are not known.
    ///
    /// # Safety
    /// It is one of `device`, and stays so as long as this.
    pub(crate) unsafe fn foreign(device: &'static CudaDevice, raw: *mut c_void) -> Result<Self> {
        Ok(CudaGraph {
            device,
            template: None,
            instance: Handle(raw.cast()),
            launches: Vec::new(),
            may_panic: false,
            allocated: 0,
            record: Arc::new(Lent::new(device)?),
        })
    }

    /// Node number `index`, which only instances of this crate have.
    fn node(&self, index: usize) -> CUgraphNode {
        self.template.as_ref().map_or(null_mut(), |template| template.nodes[index].0)
    }

    /// # Safety
    /// As for `GraphBackend::launch`.
    pub(crate) unsafe fn launch<'e>(
        &mut self,
        stream: &CudaStream,
        nodes: &[Node],
        effects: impl Iterator<Item = Effect<'e>> + Clone,
    ) -> Result<()> {
        let failure = stream.watch().failure();
        visit(nodes, |operation| {
            if let Operation::Call(call) = operation {
                call.report_to(failure.clone());
            }
        });
        stream.bind()?;
        // If all launches before have been waited for, none of their panics is one of this.
        Arc::get_mut(&mut self.record).into_iter().for_each(Lent::clear);
        let launching = stream.begin_launch(self.may_panic)?;
        launching.iter().for_each(|launching| launching.add(&self.record));
        let (without_waits, entered) = (stream.without_waits(), stream.enter()?);
        // SAFETY: both handles are live, and of the bound context; the caller vouches for the memory.
        let code = unsafe { self.device.driver().graph_launch(self.instance.0, entered.raw) };
        drop((entered, without_waits));
        self.device.check_memory(code, self.allocated, "")?;
        visit(nodes, |operation| {
            if let Operation::Record(event) = operation {
                event.cuda().into_iter().for_each(CudaEvent::note_recorded);
            }
        });
        stream.name_writers(effects, launching);
        self.launches.iter().for_each(|(kernel, site)| stream.watch().recent().note(kernel, site));
        Ok(())
    }

    pub(crate) fn upload(&mut self, stream: &CudaStream) -> Result<()> {
        stream.bind()?;
        let (_without_waits, entered) = (stream.without_waits(), stream.enter()?);
        // SAFETY: both handles are live, and of the bound context.
        let code = unsafe { self.device.driver().graph_upload(self.instance.0, entered.raw) };
        self.device.check_memory(code, self.allocated, "")
    }
}

impl BackendGraph for CudaGraph {
    fn as_raw(&self) -> (Option<*mut c_void>, Option<*mut c_void>) {
        let template = self.template.as_ref().map(|template| template.raw().cast());
        (Some(self.instance.0.cast()), template)
    }

    fn set_kernel(&mut self, index: usize, kernel: &Arc<Operation>) -> Result<()> {
        let Some(node) = kernel.kernel() else { unreachable!("it is a kernel") };
        self.device.bind()?;
        let handle = self.node(index);
        let code = with_kernel_params(node, &self.record, |params| {
            // SAFETY: the handles are live; the parameters are those of the kernel, and the driver copies them.
            unsafe { self.device.driver().graph_set_kernel(self.instance.0, handle, params) }
        });
        self.device.check(code, &name(node.kernel))
    }

    fn set_enabled(&mut self, index: usize, enabled: bool) -> Result<()> {
        self.device.bind()?;
        let (node, enabled) = (self.node(index), c_uint::from(enabled));
        // SAFETY: the handles are live.
        let code = unsafe { self.device.driver().graph_set_enabled(self.instance.0, node, enabled) };
        self.device.check(code, &format_args!("node {index}"))
    }

    fn is_enabled(&self, index: usize) -> Result<bool> {
        self.device.bind()?;
        let (node, mut enabled) = (self.node(index), 0);
        // SAFETY: the handles are live, and `enabled` is valid for the call.
        let code = unsafe { self.device.driver().graph_enabled(self.instance.0, node, &mut enabled) };
        self.device.check(code, &format_args!("node {index}"))?;
        Ok(enabled != 0)
    }

    fn update(&mut self, nodes: &[Node], kept: Address) -> Result<()> {
        let other = Template::new(MemoryNodes::new(self.device)?, nodes, kept, &self.record)?;
        let mut result = UpdateResult { result: 0, node: null_mut(), from_node: null_mut() };
        // SAFETY: the handles are live, and `result` is valid for the call.
        let code = unsafe { self.device.driver().graph_update(self.instance.0, other.raw(), &mut result) };
        if code == Code::GRAPH_EXEC_UPDATE_FAILURE {
            let found = other.nodes.iter().position(|node| !node.0.is_null() && node.0 == result.from_node);
            return Err(GraphError::UpdateRefused { reason: reason(result.result, found).into() }.into());
        }
        self.device.check(code, "")?;
        (self.launches, self.may_panic) = (last_launches(nodes), may_panic(nodes));
        Ok(())
    }
}

/// The driver's words for a `CUgraphExecUpdateResult`.
fn reason(result: c_uint, node: Option<usize>) -> String {
    let what = match result {
        2 => "the dependencies differ",
        3 => "a node is of another kind",
        4 | 7 => "a kernel is another",
        5 => "parameters differ that cannot change",
        8 => "attributes differ that cannot change",
        _ => "the driver does not support the change",
    };
    node.map_or_else(|| what.to_owned(), |node| format!("{what} (node {node})"))
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if self.template.is_some() {
            // SAFETY: the instance is live and not used again; the driver lets launches run to their end.
            self.device.release(|driver| unsafe { driver.graph_instance_destroy(self.instance.0) });
        }
    }
}

/// The calls that add nodes of events.
type AddEvent = unsafe fn(&Driver, *mut CUgraphNode, CUgraph, *const CUgraphNode, usize, CUevent) -> Returned;

/// A graph that nodes are added to: the template's, or the body of a conditional node.
struct Target<'a> {
    device: &'static CudaDevice,
    graph: CUgraph,
    nodes: &'a mut Vec<Handle<CUgraphNode>>,
    /// Those that allocate, by what they allocate.
    memory: &'a BTreeMap<Address, MemoryNode>,
    /// Where the graph keeps a word for each of its conditions.
    kept: Address,
    /// What kernels are given that may panic.
    record: &'a Lent,
}

impl Template {
    /// `memory` has the nodes that allocate.
    pub(super) fn new(memory: MemoryNodes, nodes: &[Node], kept: Address, record: &Lent) -> Result<Self> {
        memory.graph.device.bind()?;
        let MemoryNodes { graph, made } = memory;
        let mut template = Template { graph, nodes: Vec::with_capacity(nodes.len()) };
        let (device, graph) = (template.graph.device, template.raw());
        let mut target = Target { device, graph, nodes: &mut template.nodes, memory: &made, kept, record };
        target.add_all(nodes)?;
        Ok(template)
    }

    pub(super) fn raw(&self) -> CUgraph {
        self.graph.raw.0
    }
}

impl Target<'_> {
    fn add_all(&mut self, nodes: &[Node]) -> Result<()> {
        for node in nodes {
            let added = self.add(node, nodes)?;
            self.nodes.push(Handle(added));
        }
        Ok(())
    }

    fn add_copy(&self, copy: &MemoryCopy, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        let params = array::copy_params(copy);
        self.add_with(after, |added, graph, after, count| {
            // SAFETY: all are valid for the call; memory is used by launches only.
            unsafe {
                let context = self.device.context()?;
                Ok(self.device.driver().graph_add_copy(added, graph, after, count, &params, context))
            }
        })
    }

    /// The next of `nodes`.
    fn add(&self, node: &Node, nodes: &[Node]) -> Result<CUgraphNode> {
        let mut after: Vec<CUgraphNode> = node.after.iter().map(|&index| self.nodes[index].0).collect();
        match &*node.operation {
            Operation::Kernel(kernel) => self.add_kernel(kernel, &after),
            Operation::Copy(copy) => self.add_copy(copy, &after),
            Operation::Fill(fill) => self.add_fill(fill, &after),
            Operation::Allocate(Allocation { start, bytes, contents }) => {
                let made = self.memory[start].node.0;
                after.push(made);
                match contents {
                    Contents::Zeroed => self.add_fill(&Fill::new(start.0, &[0], *bytes), &after),
                    Contents::Uninitialised if after.len() == 1 => Ok(made),
                    Contents::Uninitialised => self.add_empty(&after),
                }
            }
            Operation::Free { allocation } => {
                let Operation::Allocate(Allocation { start, .. }) = &*nodes[*allocation].operation else {
                    unreachable!("what is freed was allocated")
                };
                let start = self.memory[start].start;
                self.add_with(&after, |added, graph, after, count| {
                    // SAFETY: all are valid for the call; the memory is that of an allocation of this graph, freed once.
                    unsafe { self.device.driver().graph_add_free(added, graph, after, count, start) }
                })
            }
            Operation::Call(call) => {
                let data = from_ref(call).cast_mut().cast();
                let params = CUDA_HOST_NODE_PARAMS { fn_: Some(call_host), userData: data };
                self.add_with(&after, |added, graph, after, count| {
                    // SAFETY: all are valid for the call; the launch keeps the node until it has run.
                    Ok(unsafe { self.device.driver().graph_add_call(added, graph, after, count, &params) })
                })
            }
            Operation::Empty => self.add_empty(&after),
            Operation::Conditional(node) => self.add_conditional(node, &after),
            Operation::Record(event) => self.add_event(Driver::graph_add_record, event, &after),
            Operation::Wait(event) => self.add_event(Driver::graph_add_wait, event, &after),
            Operation::External(ExternalNode { work: NodeWork::Captured(child), .. }) => {
                self.add_child(child, &after)
            }
            Operation::External(_) => unreachable!("a GPU's is captured"),
            Operation::Child(nodes) => {
                // Cloned by the call. There are no conditional nodes in it, so it keeps nothing, and none that allocate.
                let child = MemoryNodes::new(self.device)?;
                self.add_child(&Template::new(child, nodes, self.kept, self.record)?.graph, &after)
            }
        }
    }

    fn add_child(&self, child: &OwnGraph, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        self.add_with(after, |added, graph, after, count| {
            // SAFETY: all are valid for the call, and the child is live.
            Ok(unsafe { self.device.driver().graph_add_child(added, graph, after, count, child.raw.0) })
        })
    }

    fn add_empty(&self, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        self.add_with(after, |added, graph, after, count| {
            // SAFETY: all are valid for the call.
            Ok(unsafe { self.device.driver().graph_add_empty(added, graph, after, count) })
        })
    }

    fn add_event(&self, add: AddEvent, event: &Event, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        self.add_with(after, |added, graph, after, count| {
            let raw = raw_event(event)?;
            // SAFETY: all are valid for the call; the event is kept until the last launch has run.
            Ok(unsafe { add(self.device.driver(), added, graph, after, count, raw) })
        })
    }

    fn add_fill(&self, fill: &Fill<'_>, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        let params = fill_params(fill);
        self.add_with(after, |added, graph, after, count| {
            // SAFETY: all are valid for the call; memory is used by launches only.
            unsafe {
                let context = self.device.context()?;
                Ok(self.device.driver().graph_add_fill(added, graph, after, count, &params, context))
            }
        })
    }

    /// Adds a condition that is set before the node, and in a loop again after each run of the body.
    fn add_conditional(&self, node: &ConditionalNode, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        let handle = condition::create(self.device, self.graph)?;
        let arguments = |begins| SetterArguments::new(handle, node, self.kept, self.record, begins);
        let setter = self.add_setter(&arguments(true), after)?;
        let mut params = ConditionalParams::new(node, handle, self.device.context()?);
        let added = self.add_with(&[setter], |added, graph, after, count| {
            // SAFETY: all are valid for the call.
            unsafe { self.device.driver().graph_add_node(added, graph, after, count, &mut params) }
        })?;
        let mut nodes = Vec::with_capacity(node.body.len());
        // SAFETY: the driver has just made a node of them.
        let graph = unsafe { params.body() };
        let mut body = Target { graph, nodes: &mut nodes, ..*self };
        body.add_all(&node.body)?;
        if node.repeat == Repeat::While {
            let all: Vec<CUgraphNode> = body.nodes.iter().map(|node| node.0).collect();
            body.add_setter(&arguments(false), &all)?;
        }
        Ok(added)
    }

    fn add_setter(&self, arguments: &SetterArguments, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        let driver = self.device.driver();
        let setter = self.device.condition_setter()?;
        let addresses = arguments.addresses();
        let params = node_of(setter, [1; 3], [1; 3], 0, &addresses);
        self.add_with(after, |added, graph, after, count| {
            // SAFETY: all are valid for the call; the parameters are the kernel's, and the driver copies them.
            Ok(unsafe { driver.graph_add_kernel(added, graph, after, count, &params) })
        })
    }

    fn add_kernel(&self, kernel: &OwnedLaunch, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        let driver = self.device.driver();
        let added = with_kernel_params(kernel, self.record, |params| {
            self.add_with(after, |added, graph, after, count| {
                // SAFETY: all are valid for the call; the parameters are the kernel's, and the driver copies them.
                Ok(unsafe { driver.graph_add_kernel(added, graph, after, count, params) })
            })
        })?;
        for attribute in AttributeList::new(kernel.kernel, &kernel.shape).as_mut_slice() {
            // SAFETY: the node is live, and the value is that of this attribute; attributes of launches and of kernel
            // nodes have the same numbers and values.
            let code = unsafe { driver.graph_set_attribute(added, attribute.id(), attribute.value()) };
            self.device.check(code, &name(kernel.kernel))?;
        }
        Ok(added)
    }

    fn add_with(
        &self,
        after: &[CUgraphNode],
        call: impl FnOnce(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> Result<Returned>,
    ) -> Result<CUgraphNode> {
        let mut added = null_mut();
        let dependencies = if after.is_empty() { null() } else { after.as_ptr() };
        let returned = call(&mut added, self.graph, dependencies, after.len())?;
        self.device.check(returned, &format_args!("node {}", self.nodes.len()))?;
        Ok(added)
    }
}

/// Calls `work` with all operations of a graph, those inside of others as well.
fn visit(nodes: &[Node], mut work: impl FnMut(&Operation)) {
    nodes.iter().for_each(|node| node.operation.visit(&mut work));
}

/// The driver's event; an event node's is one of the graph's device.
fn raw_event(event: &Event) -> Result<CUevent> {
    let Some(event) = event.cuda() else { return Ok(null_mut()) };
    event.device().check_not_reset()?;
    Ok(event.raw())
}

/// Whether a panic may keep the graph from doing all of its work.
fn may_panic(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match &*node.operation {
        Operation::Kernel(kernel) => kernel.prepared.may_panic,
        other => may_panic(other.body()),
    })
}

/// The bytes that `nodes` allocate.
fn allocated(nodes: &[Node]) -> usize {
    let bytes = |node: &Node| match &*node.operation {
        Operation::Allocate(memory) => memory.bytes,
        _ => 0,
    };
    nodes.iter().map(bytes).fold(0, usize::saturating_add)
}

/// A kernel, and where its launch was recorded.
type RecordedLaunch = (&'static Kernel, &'static Location<'static>);

/// The last launches among `nodes`, of each kernel one.
fn last_launches(nodes: &[Node]) -> Vec<RecordedLaunch> {
    let mut launches: Vec<RecordedLaunch> = Vec::new();
    collect_last(nodes, &mut launches);
    launches.reverse();
    launches
}

fn collect_last(nodes: &[Node], launches: &mut Vec<RecordedLaunch>) {
    for node in nodes.iter().rev() {
        collect_last(node.operation.body(), launches);
        let Some(OwnedLaunch { kernel, shape, .. }) = node.operation.kernel() else { continue };
        if launches.len() < NAMED_KERNELS && !launches.iter().any(|(known, _)| std::ptr::eq(*known, *kernel))
        {
            launches.push((kernel, shape.site));
        }
    }
}

fn name(kernel: &Kernel) -> String {
    format!("kernel `{}`", kernel.name())
}

/// Calls `call` with the node's parameters, and the address of `record` behind those of a kernel that may panic.
fn with_kernel_params<T>(
    node: &OwnedLaunch,
    record: &Lent,
    call: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> T,
) -> T {
    let (function, shape) = (node.prepared.function.cast(), node.shape);
    let call = |params: &[*const c_void]| {
        call(&node_of(function, shape.grid, shape.block, shape.shared_bytes, params))
    };
    let params = node.params.addresses();
    if node.prepared.may_panic { with_record(params, &record.address(), call) } else { call(params) }
}

/// The node of `function`; its parameters are read in the call that adds it.
fn node_of(
    function: CUfunction,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: usize,
    params: &[*const c_void],
) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        // Within the device's limit.
        sharedMemBytes: shared_bytes as c_uint,
        kernelParams: params.as_ptr().cast_mut().cast(),
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    }
}

fn fill_params(fill: &Fill<'_>) -> CUDA_MEMSET_NODE_PARAMS {
    let (width, height) = fill.extent();
    CUDA_MEMSET_NODE_PARAMS {
        dst: address(fill.target.0),
        pitch: fill.pitch,
        value: fill.word(),
        elementSize: fill.value.len() as c_uint,
        width,
        height,
    }
}

/// Called by a thread of the driver, once for each launch.
///
/// # Safety
/// `data` points to a live [`HostNode`].
unsafe extern "C" fn call_host(data: *mut c_void) {
    // SAFETY: `data` is the node that `Template::add` gave, which lives until its launches have run, and is
    // only read.
    let node = unsafe { &*data.cast::<HostNode>() };
    if let Some(error) = node.call() {
        node.failure().note(error);
    }
}
