//! Conditional nodes of graphs in the driver: their handles, their parameters, and the kernel that sets a
//! condition.
//!
//! On the device a condition is set by `cudaGraphSetConditional`. No library defines it: the driver itself does,
//! when it compiles PTX that declares it. So a condition is read from memory by a kernel of this crate, and kernels of
//! users need no declaration.
//!
//! A thread that panics does not get to the place where it would end the loop that it is in. So a loop ends, too,
//! once any thread of the graph has panicked since it began: otherwise it would run forever without a report.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{from_ref, null_mut};

use cudarc::driver::sys::{CUcontext, CUfunction, CUgraph};

use crate::backend::cuda::device::{CudaDevice, Handle, address};
use crate::backend::cuda::feedback::Lent;
use crate::backend::cuda::module::foreign::LoadedModule;
use crate::backend::operation::{Address, ConditionalNode};
use crate::error::{Error, Result};
use crate::image::{Image, JitOptions};

/// A kernel of one thread, which sets the condition `handle` to whether the word at `place` is not 0 and the count at
/// `alarm` is the one in `before`; where a node begins, it writes the count there first.
const SETTER: &str = "
.version 6.3
.target sm_70
.address_size 64

.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);

.visible .entry ferrogrid_set_condition (
    .param .u64 handle, .param .u64 place, .param .u64 alarm, .param .u64 before, .param .u64 begins
)
{
    .reg .pred %begins, %is_set;
    .reg .b32 %word, %value;
    .reg .b64 %handle, %place, %alarm, %before, %begin, %count, %old;

    ld.param.u64 %alarm, [alarm];
    ld.param.u64 %before, [before];
    ld.param.u64 %begin, [begins];
    ld.param.u64 %handle, [handle];
    ld.param.u64 %place, [place];
    setp.ne.u64 %begins, %begin, 0;
    ld.relaxed.gpu.global.u64 %count, [%alarm];
    @%begins st.global.u64 [%before], %count;
    ld.global.u64 %old, [%before];
    ld.global.u32 %word, [%place];
    setp.ne.u32 %is_set, %word, 0;
    setp.eq.and.u64 %is_set, %count, %old, %is_set;
    selp.u32 %value, 1, 0, %is_set;
    {
        .param .b64 first;
        .param .b32 second;
        st.param.b64 [first], %handle;
        st.param.b32 [second], %value;
        call.uni cudaGraphSetConditional, (first, second);
    }
    ret;
}
";

/// `CU_GRAPH_NODE_TYPE_CONDITIONAL`.
const CONDITIONAL: c_uint = 13;

/// `CU_GRAPH_COND_ASSIGN_DEFAULT`: the condition starts as stated at each launch.
const ASSIGN_DEFAULT: c_uint = 1;

/// The driver's `CUgraphNodeParams`, for a conditional node.
#[repr(C)]
pub(crate) struct ConditionalParams {
    node_type: c_uint,
    reserved: [c_int; 3],
    handle: u64,
    /// `CU_GRAPH_COND_TYPE_IF` or `_WHILE`.
    condition_type: c_uint,
    /// How many bodies there are.
    bodies: c_uint,
    /// Where the driver writes the address of its array of the bodies' graphs.
    body_graphs: *mut CUgraph,
    context: CUcontext,
    rest: [u64; 26],
}

const _: () = assert!(size_of::<ConditionalParams>() == 256);

impl ConditionalParams {
    pub(crate) fn new(node: &ConditionalNode, handle: u64, context: CUcontext) -> Self {
        ConditionalParams {
            node_type: CONDITIONAL,
            reserved: [0; 3],
            handle,
            condition_type: node.repeat as c_uint,
            bodies: 1,
            body_graphs: null_mut(),
            context,
            rest: [0; 26],
        }
    }

    /// The graph of the body.
    ///
    /// # Safety
    /// The driver has made a node of this.
    pub(crate) unsafe fn body(&self) -> CUgraph {
        // SAFETY: the driver has stored the address of an array of `bodies` graphs, which lives as long as the
        // node.
        unsafe { self.body_graphs.read() }
    }
}

/// A condition of nodes in `graph`, which is 0 when a launch begins.
pub(crate) fn create(device: &CudaDevice, graph: CUgraph) -> Result<u64> {
    // SAFETY: `to` is valid for the call, and the graph is live.
    device.get("", |driver, to| unsafe {
        driver.condition_create(to, graph, device.context()?, 0, ASSIGN_DEFAULT)
    })
}

/// The arguments of the setter, in its order.
pub(crate) struct SetterArguments([u64; 5]);

impl SetterArguments {
    /// For the condition `handle` of `node`, whose graph keeps a word for each of its conditions from `kept` on, and
    /// has `record`; for the launch before the node, or else for that after each run of a loop's body.
    pub(crate) fn new(
        handle: u64,
        node: &ConditionalNode,
        kept: Address,
        record: &Lent,
        begins: bool,
    ) -> Self {
        let before = address(kept.0) + (node.number * size_of::<u64>()) as u64;
        SetterArguments([handle, address(node.condition.0), record.alarm(), before, begins.into()])
    }

    /// The addresses of the arguments, which are good as long as they are.
    pub(crate) fn addresses(&self) -> [*const c_void; 5] {
        self.0.each_ref().map(|argument| from_ref(argument).cast())
    }
}

/// Loads the setter. Only a driver that has conditions compiles it.
pub(crate) fn load_setter(device: &'static CudaDevice) -> Result<Handle<CUfunction>> {
    let (module, _log) = LoadedModule::load(device, &Image::ptx(SETTER)?, &JitOptions::new())?;
    let reason = "the driver has not compiled the kernel that sets conditions";
    let function = module.function("ferrogrid_set_condition")?;
    let function = function.ok_or_else(|| Error::unsupported("a conditional node", device, reason))?;
    Ok(Handle(function.as_raw().cast()))
}
