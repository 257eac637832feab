//! The driver library: found, checked for its version, and called.
//!
//! cudarc's own bindings are not called, for three reasons: a driver newer than the bindings may
//! return a code that their `CUresult` does not list, and making a Rust enum of it is undefined
//! behaviour; they panic where a symbol is missing; and they may be switched to link-time linking by
//! another crate in the program. Here every code is a `u32`, and a missing symbol is an error.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::fmt::Display;
use std::ops::Deref;
use std::ptr::null;
use std::sync::OnceLock;

use cudarc::driver::sys::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY2D, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUarray,
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode,
    CUlaunchAttributeValue, CUlaunchConfig, CUlinkState, CUmodule, CUresult, CUstream, CUsurfObject,
    CUtexObject, CUuuid,
};
use libloading::Library;

use super::graph::UpdateResult;
use super::graph::condition::ConditionalParams;
use super::graph::memory::AllocationParams;
use super::memory::BatchAttributes;
use super::memory::ipc::IpcHandle;
use super::memory::pool::{AllocationProperties, PoolAccess, PoolHandle, PoolProperties};
use crate::error::{Error, NEEDED_DRIVER, Result};
use crate::library;

/// The driver's `CUstreamCallback`, with its code as a number.
pub(super) type StreamCallback = unsafe extern "C" fn(stream: CUstream, code: u32, data: *mut c_void);

/// What a driver call returned; 0 is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct Code(pub(super) u32);

impl Code {
    pub(super) const SUCCESS: Code = Code::of(CUresult::CUDA_SUCCESS);
    pub(super) const INVALID_VALUE: Code = Code::of(CUresult::CUDA_ERROR_INVALID_VALUE);
    pub(super) const OUT_OF_MEMORY: Code = Code::of(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    pub(super) const NO_DEVICE: Code = Code::of(CUresult::CUDA_ERROR_NO_DEVICE);
    const INVALID_CONTEXT: Code = Code::of(CUresult::CUDA_ERROR_INVALID_CONTEXT);
    const INVALID_HANDLE: Code = Code::of(CUresult::CUDA_ERROR_INVALID_HANDLE);
    pub(super) const NOT_FOUND: Code = Code::of(CUresult::CUDA_ERROR_NOT_FOUND);
    pub(super) const NOT_READY: Code = Code::of(CUresult::CUDA_ERROR_NOT_READY);
    pub(super) const LAUNCH_OUT_OF_RESOURCES: Code = Code::of(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    pub(super) const PEER_ACCESS_ALREADY_ENABLED: Code =
        Code::of(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    const CONTEXT_IS_DESTROYED: Code = Code::of(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED);
    pub(super) const COOPERATIVE_LAUNCH_TOO_LARGE: Code =
        Code::of(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    pub(super) const GRAPH_EXEC_UPDATE_FAILURE: Code =
        Code::of(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    pub(super) const NOT_SUPPORTED: Code = Code::of(CUresult::CUDA_ERROR_NOT_SUPPORTED);
    pub(super) const INVALID_CLUSTER_SIZE: Code = Code::of(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE);

    pub(super) const fn of(result: CUresult) -> Code {
        Code(result as u32)
    }

    #[inline]
    pub(super) fn is_success(self) -> bool {
        self == Code::SUCCESS
    }

    /// Whether the call may have been refused, before it did anything, because another context was current.
    #[inline]
    pub(super) fn may_lack_context(self) -> bool {
        // A destroyed context is another library's, current on this thread.
        matches!(self, Code::INVALID_CONTEXT | Code::INVALID_HANDLE | Code::CONTEXT_IS_DESTROYED)
    }

    /// This code as that of a function of the driver.
    #[inline]
    pub(super) fn of_function(self, symbol: &'static str) -> Returned {
        Returned { code: self, symbol }
    }

    /// Whether a kernel has failed on the device, which ends its context.
    pub(super) fn is_kernel_failure(self) -> bool {
        use CUresult::*;
        const FAILURES: [CUresult; 9] = [
            CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_LAUNCH_TIMEOUT,
            CUDA_ERROR_ASSERT,
            CUDA_ERROR_HARDWARE_STACK_ERROR,
            CUDA_ERROR_ILLEGAL_INSTRUCTION,
            CUDA_ERROR_MISALIGNED_ADDRESS,
            CUDA_ERROR_INVALID_ADDRESS_SPACE,
            CUDA_ERROR_INVALID_PC,
            CUDA_ERROR_LAUNCH_FAILED,
        ];
        FAILURES.map(Code::of).contains(&self)
    }
}

/// What a function of the driver returned, with its name for errors.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub(crate) struct Returned {
    pub(super) code: Code,
    symbol: &'static str,
}

impl Returned {
    /// The function's name in CUDA's documentation, which has no version: `cuMemAlloc` for `cuMemAlloc_v2`.
    pub(super) fn operation(self) -> &'static str {
        self.symbol.strip_suffix("_v2").unwrap_or(self.symbol)
    }
}

impl From<Returned> for Result<Returned> {
    fn from(returned: Returned) -> Self {
        Ok(returned)
    }
}

impl Deref for Returned {
    type Target = Code;

    #[inline]
    fn deref(&self) -> &Code {
        &self.code
    }
}

impl PartialEq<Code> for Returned {
    #[inline]
    fn eq(&self, code: &Code) -> bool {
        self.code == *code
    }
}

/// `required`: what every driver has that is new enough. `optional`: what only some features call, from the version
/// of CUDA on that is named; where it is missing, that is an error at the call.
macro_rules! driver_calls {
    (
        required { $( $name:ident = $symbol:ident ( $($argument:ident : $ty:ty),* ); )* }
        optional { $( $late:ident = $late_symbol:ident ( $($late_argument:ident : $late_ty:ty),* ) since $since:tt; )* }
    ) => {
        /// The functions of the driver.
        pub(super) struct Driver {
            found: (u32, u32),
            $( $name: unsafe extern "C" fn($($ty),*) -> u32, )*
            $( $late: Option<unsafe extern "C" fn($($late_ty),*) -> u32>, )*
        }

        impl Driver {
            fn load(library: &'static Library, found: (u32, u32)) -> Result<Self> {
                // SAFETY: these are the signatures of the CUDA driver API from version 12.0 on.
                unsafe {
                    Ok(Driver {
                        found,
                        $( $name: symbol(library, stringify!($symbol), found)?, )*
                        $( $late: symbol(library, stringify!($late_symbol), found).ok(), )*
                    })
                }
            }

            $(
                #[doc = concat!("`", stringify!($symbol), "`.")]
                ///
                /// # Safety
                /// As the driver API says of this function.
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                pub(super) unsafe fn $name(&self, $($argument: $ty),*) -> Returned {
                    // SAFETY: passed on.
                    Code(unsafe { (self.$name)($($argument),*) }).of_function(stringify!($symbol))
                }
            )*

            $(
                #[doc = concat!("`", stringify!($late_symbol), "`, or [`Error::MissingSymbol`].")]
                ///
                /// # Safety
                /// As the driver API says of this function.
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                pub(super) unsafe fn $late(&self, $($late_argument: $late_ty),*) -> Result<Returned> {
                    let (symbol, found, needed) = (stringify!($late_symbol), self.found, $since);
                    let call = self.$late.ok_or(Error::MissingSymbol { symbol, found, needed })?;
                    // SAFETY: passed on.
                    Ok(Code(unsafe { call($($late_argument),*) }).of_function(symbol))
                }
            )*
        }
    };
}

driver_calls! {
  required {
    init = cuInit(flags: c_uint);
    device_count = cuDeviceGetCount(count: *mut c_int);
    device_get = cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    device_name = cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    device_attribute = cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: CUdevice);
    primary_context_retain = cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    context_current = cuCtxGetCurrent(context: *mut CUcontext);
    context_set = cuCtxSetCurrent(context: CUcontext);
    context_device = cuCtxGetDevice(device: *mut CUdevice);
    context_synchronize = cuCtxSynchronize();
    memory_info = cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    stream_create = cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    stream_priority = cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    stream_capturing = cuStreamIsCapturing(stream: CUstream, status: *mut c_uint);
    stream_begin_capture = cuStreamBeginCapture_v2(stream: CUstream, mode: c_uint);
    stream_end_capture = cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    stream_flags = cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    stream_priority_range = cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    stream_context = cuStreamGetCtx(stream: CUstream, context: *mut CUcontext);
    stream_query = cuStreamQuery(stream: CUstream);
    stream_callback = cuStreamAddCallback(stream: CUstream, callback: StreamCallback, data: *mut c_void, flags: c_uint);
    stream_destroy = cuStreamDestroy_v2(stream: CUstream);
    stream_synchronize = cuStreamSynchronize(stream: CUstream);
    stream_wait = cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    write_value_32 = cuStreamWriteValue32_v2(stream: CUstream, target: CUdeviceptr, value: u32, flags: c_uint);
    write_value_64 = cuStreamWriteValue64_v2(stream: CUstream, target: CUdeviceptr, value: u64, flags: c_uint);
    wait_value_32 = cuStreamWaitValue32_v2(stream: CUstream, source: CUdeviceptr, value: u32, flags: c_uint);
    wait_value_64 = cuStreamWaitValue64_v2(stream: CUstream, source: CUdeviceptr, value: u64, flags: c_uint);
    event_create = cuEventCreate(event: *mut CUevent, flags: c_uint);
    event_destroy = cuEventDestroy_v2(event: CUevent);
    event_record = cuEventRecord(event: CUevent, stream: CUstream);
    event_query = cuEventQuery(event: CUevent);
    event_synchronize = cuEventSynchronize(event: CUevent);
    event_elapsed = cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    allocate = cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize);
    free = cuMemFree_v2(pointer: CUdeviceptr);
    pool_create = cuMemPoolCreate(pool: *mut PoolHandle, properties: *const PoolProperties);
    pool_set = cuMemPoolSetAttribute(pool: PoolHandle, attribute: c_uint, value: *mut c_void);
    pool_get = cuMemPoolGetAttribute(pool: PoolHandle, attribute: c_uint, value: *mut c_void);
    pool_trim = cuMemPoolTrimTo(pool: PoolHandle, keep: usize);
    allocate_from_pool = cuMemAllocFromPoolAsync(pointer: *mut CUdeviceptr, bytes: usize, pool: PoolHandle, stream: CUstream);
    free_async = cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    copy = cuMemcpyAsync(target: CUdeviceptr, source: CUdeviceptr, bytes: usize, stream: CUstream);
    fill_8 = cuMemsetD8Async(target: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    fill_16 = cuMemsetD16Async(target: CUdeviceptr, value: u16, count: usize, stream: CUstream);
    fill_32 = cuMemsetD32Async(target: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    copy_2d = cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream);
    copy_3d = cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream);
    array_create = cuArray3DCreate_v2(array: *mut CUarray, description: *const CUDA_ARRAY3D_DESCRIPTOR);
    array_destroy = cuArrayDestroy(array: CUarray);
    texture_create = cuTexObjectCreate(texture: *mut CUtexObject, resource: *const CUDA_RESOURCE_DESC, description: *const CUDA_TEXTURE_DESC, view: *const CUDA_RESOURCE_VIEW_DESC);
    texture_destroy = cuTexObjectDestroy(texture: CUtexObject);
    surface_create = cuSurfObjectCreate(surface: *mut CUsurfObject, resource: *const CUDA_RESOURCE_DESC);
    surface_destroy = cuSurfObjectDestroy(surface: CUsurfObject);
    allocate_managed = cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: c_uint);
    prefetch = cuMemPrefetchAsync(start: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream);
    advise = cuMemAdvise(start: CUdeviceptr, bytes: usize, advice: c_uint, device: CUdevice);
    host_allocate = cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    host_free = cuMemFreeHost(pointer: *mut c_void);
    host_register = cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint);
    host_unregister = cuMemHostUnregister(pointer: *mut c_void);
    module_load = cuModuleLoadDataEx(module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut c_uint, values: *mut *mut c_void);
    module_function = cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    module_global = cuModuleGetGlobal_v2(address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char);
    write_now = cuMemcpyHtoD_v2(target: CUdeviceptr, source: *const c_void, bytes: usize);
    read_now = cuMemcpyDtoH_v2(target: *mut c_void, source: CUdeviceptr, bytes: usize);
    host_address = cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, pointer: *mut c_void, flags: c_uint);
    function_attribute = cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, function: CUfunction);
    function_set_attribute = cuFuncSetAttribute(function: CUfunction, attribute: c_uint, value: c_int);
    launch_kernel = cuLaunchKernel(function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void);
    device_total_memory = cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    device_uuid = cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
    function_set_cache = cuFuncSetCacheConfig(function: CUfunction, preference: c_uint);
    occupancy_blocks = cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: CUfunction, block: c_int, shared: usize);
    occupancy_shared = cuOccupancyAvailableDynamicSMemPerBlock(shared: *mut usize, function: CUfunction, blocks: c_int, block: c_int);
    occupancy_clusters = cuOccupancyMaxActiveClusters(clusters: *mut c_int, function: CUfunction, config: *const CUlaunchConfig);
    occupancy_cluster_size = cuOccupancyMaxPotentialClusterSize(size: *mut c_int, function: CUfunction, config: *const CUlaunchConfig);
    module_unload = cuModuleUnload(module: CUmodule);
    link_create = cuLinkCreate_v2(count: c_uint, options: *mut c_uint, values: *mut *mut c_void, state: *mut CUlinkState);
    link_add = cuLinkAddData_v2(state: CUlinkState, kind: c_uint, data: *const c_void, bytes: usize, name: *const c_char, count: c_uint, options: *mut c_uint, values: *mut *mut c_void);
    link_complete = cuLinkComplete(state: CUlinkState, cubin: *mut *mut c_void, bytes: *mut usize);
    link_destroy = cuLinkDestroy(state: CUlinkState);
    graph_create = cuGraphCreate(graph: *mut CUgraph, flags: c_uint);
    graph_destroy = cuGraphDestroy(graph: CUgraph);
    graph_add_kernel = cuGraphAddKernelNode_v2(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *const CUDA_KERNEL_NODE_PARAMS);
    graph_add_copy = cuGraphAddMemcpyNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *const CUDA_MEMCPY3D, context: CUcontext);
    graph_add_fill = cuGraphAddMemsetNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext);
    graph_add_call = cuGraphAddHostNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *const CUDA_HOST_NODE_PARAMS);
    graph_add_empty = cuGraphAddEmptyNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize);
    graph_add_child = cuGraphAddChildGraphNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, child: CUgraph);
    graph_add_record = cuGraphAddEventRecordNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, event: CUevent);
    graph_add_wait = cuGraphAddEventWaitNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, event: CUevent);
    graph_print = cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint);
    graph_set_attribute = cuGraphKernelNodeSetAttribute(node: CUgraphNode, attribute: c_uint, value: *const CUlaunchAttributeValue);
    graph_instantiate = cuGraphInstantiateWithFlags(instance: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    graph_instance_destroy = cuGraphExecDestroy(instance: CUgraphExec);
    graph_set_kernel = cuGraphExecKernelNodeSetParams_v2(instance: CUgraphExec, node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS);
    graph_set_enabled = cuGraphNodeSetEnabled(instance: CUgraphExec, node: CUgraphNode, enabled: c_uint);
    graph_enabled = cuGraphNodeGetEnabled(instance: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint);
    graph_update = cuGraphExecUpdate_v2(instance: CUgraphExec, graph: CUgraph, result: *mut UpdateResult);
    graph_upload = cuGraphUpload(instance: CUgraphExec, stream: CUstream);
    graph_launch = cuGraphLaunch(instance: CUgraphExec, stream: CUstream);
    error_name = cuGetErrorName(code: c_uint, name: *mut *const c_char);
    error_text = cuGetErrorString(code: c_uint, text: *mut *const c_char);
  }
  optional {
    function_param = cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize) since (12, 4);
    module_function_count = cuModuleGetFunctionCount(count: *mut c_uint, module: CUmodule) since (12, 4);
    module_functions = cuModuleEnumerateFunctions(functions: *mut CUfunction, count: c_uint, module: CUmodule) since (12, 4);
    function_name = cuFuncGetName(name: *mut *const c_char, function: CUfunction) since (12, 3);
    launch_with_attributes = cuLaunchKernelEx(config: *const CUlaunchConfig, function: CUfunction, params: *mut *mut c_void, extra: *mut *mut c_void) since (12, 0);
    can_access_peer = cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice) since (12, 0);
    enable_peer_access = cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) since (12, 0);
    pool_destroy = cuMemPoolDestroy(pool: PoolHandle) since (12, 0);
    pool_set_access = cuMemPoolSetAccess(pool: PoolHandle, access: *const PoolAccess, count: usize) since (12, 0);
    condition_create = cuGraphConditionalHandleCreate(handle: *mut u64, graph: CUgraph, context: CUcontext, value: c_uint, flags: c_uint) since (12, 3);
    graph_add_node = cuGraphAddNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *mut ConditionalParams) since (12, 3);
    graph_add_allocation = cuGraphAddMemAllocNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, params: *mut AllocationParams) since (12, 0);
    graph_add_free = cuGraphAddMemFreeNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize, start: CUdeviceptr) since (12, 0);
    graph_memory_get = cuDeviceGetGraphMemAttribute(device: CUdevice, attribute: c_uint, value: *mut c_void) since (12, 0);
    graph_memory_set = cuDeviceSetGraphMemAttribute(device: CUdevice, attribute: c_uint, value: *mut c_void) since (12, 0);
    graph_memory_trim = cuDeviceGraphMemTrim(device: CUdevice) since (12, 0);
    ipc_memory_handle = cuIpcGetMemHandle(handle: *mut IpcHandle, pointer: CUdeviceptr) since (12, 0);
    ipc_open_memory = cuIpcOpenMemHandle_v2(pointer: *mut CUdeviceptr, handle: IpcHandle, flags: c_uint) since (12, 0);
    ipc_close_memory = cuIpcCloseMemHandle(pointer: CUdeviceptr) since (12, 0);
    ipc_event_handle = cuIpcGetEventHandle(handle: *mut IpcHandle, event: CUevent) since (12, 0);
    ipc_open_event = cuIpcOpenEventHandle(event: *mut CUevent, handle: IpcHandle) since (12, 0);
    stream_set_attribute = cuStreamSetAttribute(stream: CUstream, attribute: c_uint, value: *const CUlaunchAttributeValue) since (12, 0);
    set_limit = cuCtxSetLimit(limit: c_uint, value: usize) since (12, 0);
    reset_persisting = cuCtxResetPersistingL2Cache() since (12, 0);
    copy_peer = cuMemcpyPeerAsync(target: CUdeviceptr, target_context: CUcontext, source: CUdeviceptr, source_context: CUcontext, bytes: usize, stream: CUstream) since (12, 0);
    copy_batch = cuMemcpyBatchAsync_v2(targets: *const CUdeviceptr, sources: *const CUdeviceptr, sizes: *const usize, count: usize, attributes: *const BatchAttributes, indices: *const usize, attribute_count: usize, stream: CUstream) since (13, 0);
    pool_export = cuMemPoolExportToShareableHandle(handle: *mut c_void, pool: PoolHandle, kind: c_uint, flags: c_ulonglong) since (12, 0);
    pool_import = cuMemPoolImportFromShareableHandle(pool: *mut PoolHandle, handle: *mut c_void, kind: c_uint, flags: c_ulonglong) since (12, 0);
    pool_export_pointer = cuMemPoolExportPointer(data: *mut IpcHandle, pointer: CUdeviceptr) since (12, 0);
    pool_import_pointer = cuMemPoolImportPointer(pointer: *mut CUdeviceptr, pool: PoolHandle, data: *mut IpcHandle) since (12, 0);
    primary_context_reset = cuDevicePrimaryCtxReset_v2(device: CUdevice) since (12, 0);
    primary_context_release = cuDevicePrimaryCtxRelease_v2(device: CUdevice) since (12, 0);
    address_reserve = cuMemAddressReserve(start: *mut CUdeviceptr, bytes: usize, alignment: usize, wanted: CUdeviceptr, flags: c_ulonglong) since (12, 0);
    address_free = cuMemAddressFree(start: CUdeviceptr, bytes: usize) since (12, 0);
    memory_granularity = cuMemGetAllocationGranularity(granularity: *mut usize, properties: *const AllocationProperties, option: c_uint) since (12, 0);
    memory_create = cuMemCreate(handle: *mut c_ulonglong, bytes: usize, properties: *const AllocationProperties, flags: c_ulonglong) since (12, 0);
    memory_release = cuMemRelease(handle: c_ulonglong) since (12, 0);
    memory_map = cuMemMap(start: CUdeviceptr, bytes: usize, offset: usize, handle: c_ulonglong, flags: c_ulonglong) since (12, 0);
    memory_unmap = cuMemUnmap(start: CUdeviceptr, bytes: usize) since (12, 0);
    tensor_map_encode = cuTensorMapEncodeTiled(map: *mut c_void, kind: c_uint, rank: c_uint, start: *mut c_void, extent: *const u64, pitch: *const u64, tile: *const c_uint, strides: *const c_uint, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint) since (12, 0);
    memory_set_access = cuMemSetAccess(start: CUdeviceptr, bytes: usize, access: *const PoolAccess, count: usize) since (12, 0);
  }
}

/// The driver, loaded at the first call, or the reason why there is none.
pub(super) fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
    DRIVER.get_or_init(open).as_ref().map_err(Error::clone)
}

/// The CUDA version that the loaded driver supports.
pub(super) fn supported_version() -> Result<(u32, u32)> {
    version(open_library()?)
}

/// The library's names; the first is what the driver itself installs (the plain `libcuda.so` may be a
/// toolkit's stub).
#[cfg(not(windows))]
const LIBRARIES: &[&str] = &["libcuda.so.1", "libcuda.so"];
#[cfg(windows)]
const LIBRARIES: &[&str] = &["nvcuda.dll"];

fn open() -> Result<Driver> {
    let library = open_library()?;
    let found = version(library)?;
    if found < NEEDED_DRIVER {
        return Err(Error::DriverTooOld { found, needed: NEEDED_DRIVER });
    }
    let driver = Driver::load(library, found)?;
    // SAFETY: the flags must be 0.
    let code = unsafe { driver.init(0) };
    if code == Code::NO_DEVICE {
        return Err(Error::NoDevice);
    }
    driver.check(code, "")?;
    Ok(driver)
}

/// Opens the library for the rest of the process.
fn open_library() -> Result<&'static Library> {
    // SAFETY: the driver's initialisers have no preconditions.
    let opened = unsafe { library::open(LIBRARIES) };
    opened.map_err(|mut reasons| Error::NoDriver { reason: reasons.swap_remove(0).into() })
}

/// The CUDA version that the driver supports; the one call that every driver has.
fn version(library: &'static Library) -> Result<(u32, u32)> {
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> u32;
    let mut version = 0;
    // SAFETY: this is the signature of the function, and `version` is valid for the call.
    let code = unsafe {
        let get: GetVersion = symbol(library, "cuDriverGetVersion", (0, 0))?;
        get(&mut version)
    };
    let found = version.unsigned_abs();
    match code {
        0 => Ok((found / 1000, found % 1000 / 10)),
        code => Err(Error::Driver {
            operation: "cuDriverGetVersion",
            object: "".into(),
            code,
            name: "an unusable driver library".into(),
            text: "is this a stub of the CUDA toolkit, ahead of the real driver in the search path?".into(),
        }),
    }
}

/// The function `name`.
///
/// # Safety
/// `F` is the type of a function pointer with the signature of that function.
unsafe fn symbol<F: Copy + 'static>(
    library: &'static Library,
    name: &'static str,
    found: (u32, u32),
) -> Result<F> {
    // SAFETY: the caller vouches for the type; the library is never closed.
    let symbol = unsafe { library.get::<F>(name.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|_| Error::MissingSymbol {
        symbol: name,
        found,
        needed: NEEDED_DRIVER,
    })
}

impl Driver {
    /// That the driver is new enough for `symbol`, which is no function.
    pub(super) fn require(&self, symbol: &'static str, needed: (u32, u32)) -> Result<()> {
        let found = self.found;
        if found >= needed { Ok(()) } else { Err(Error::MissingSymbol { symbol, found, needed }) }
    }

    /// `Ok` for success, else the error with the driver's words. `object` says what the call was for.
    #[inline]
    pub(super) fn check(&self, returned: Returned, object: &(impl Display + ?Sized)) -> Result<()> {
        if returned.is_success() { Ok(()) } else { Err(self.error(returned, object)) }
    }

    #[cold]
    pub(super) fn error(&self, returned: Returned, object: &(impl Display + ?Sized)) -> Error {
        let Returned { code, .. } = returned;
        let (name, text) = (self.name_of(code), self.text_of(code));
        let (operation, object) = (returned.operation(), object.to_string().into());
        Error::Driver { operation, object, code: code.0, name, text }
    }

    /// The driver's name for `code`.
    pub(super) fn name_of(&self, code: Code) -> Box<str> {
        // SAFETY: it gives static strings.
        let name = unsafe { self.words_of(code, Driver::error_name) };
        name.unwrap_or_else(|| "an error that this driver does not name".into())
    }

    /// The driver's text for `code`.
    pub(super) fn text_of(&self, code: Code) -> Box<str> {
        // SAFETY: it gives static strings.
        unsafe { self.words_of(code, Driver::error_text) }.unwrap_or_else(|| "no description".into())
    }

    /// What `ask` gives for `code`, if the driver knows it.
    ///
    /// # Safety
    /// `ask` takes any number, and if it succeeds, it gives null or a static C string.
    unsafe fn words_of(&self, code: Code, ask: AskForWords) -> Option<Box<str>> {
        let mut text = null();
        // SAFETY: any number is allowed; `text` is valid for the call.
        let known = unsafe { ask(self, code.0, &mut text) };
        // SAFETY: not null, and the caller vouches for the rest.
        let text = (known.is_success() && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) })?;
        Some(text.to_string_lossy().into())
    }
}

type AskForWords = unsafe fn(&Driver, c_uint, *mut *const c_char) -> Returned;
