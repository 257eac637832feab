//! The host runtime of Ferrogrid: devices, streams, buffers and launches, on CUDA GPUs and on the CPU, behind
//! the same types. Kernels reach it as descriptors, from code that the macros generate. Programs use it as
//! `ferrogrid`, which re-exports all of it.
//!
//! ```
//! # fn main() -> ferrogrid_host::Result<()> {
//! use ferrogrid_host::Device;
//!
//! let device = Device::cpu();
//! let stream = device.new_stream()?;
//! let buffer = stream.upload(&[1.0_f32, 2.0, 3.0])?;
//! assert_eq!(stream.download(buffer.slice(1..)?)?, [2.0, 3.0]);
//! # Ok(()) }
//! ```
//!
//! | CUDA | here |
//! |---|---|
//! | `cuDeviceGet`, `cudaSetDevice`, `cudaGetDeviceProperties` | [`Device`], [`DeviceProperties`], [`DeviceAttribute`] |
//! | `cudaStreamCreate`, `cudaStreamSynchronize` | [`Stream`], [`StreamOptions`], [`Completion`] (`.await`) |
//! | `cudaEventRecord`, `cudaEventElapsedTime` | [`Event`], [`Timing`] |
//! | `cudaMallocAsync`, `cudaMemcpyAsync`, `cudaMemset` | [`DeviceBuffer`] and its views, [`DeviceView`] and [`DeviceViewMut`]; [`MemoryPool`] |
//! | `cudaMallocPitch`, `cudaMemcpy2D` | [`PitchedBuffer`] |
//! | `cudaMallocHost`, `cudaMallocManaged` | [`PinnedBuffer`], [`Transfer`], [`ManagedBuffer`] |
//! | `__constant__`, `cudaMemcpyToSymbol` | [`DeviceConstant`] |
//! | `__device__` variables, `cudaMemcpyFromSymbol` | [`DeviceStatic`] |
//! | `kernel<<<grid, block>>>()` | [`Grid`]; host slices as arguments: [`In`], [`Out`], [`InOut`] |
//! | `cudaFuncGetAttributes`, `cudaOccupancyMaxActiveBlocksPerMultiprocessor` | [`Kernel`], [`KernelAttributes`], [`Occupancy`] |
//! | `cudaStreamBeginCapture`, `cudaGraphLaunch` | [`Stream::capture`], [`Graph`], [`ExecutableGraph`] |
//! | `cuModuleLoadData`, `cuLinkAddData`, NVRTC, libNVVM, nvJitLink | [`ForeignModule`], [`Linker`], [`Nvrtc`], [`Nvvm`], [`NvJitLink`], [`CodeType`] |
//! | `cudaIpcGetMemHandle`, DLPack | [`IpcBuffer`], [`dlpack`] |
//! | direct driver calls, handles of other libraries | [`Context`]; `as_raw` and `from_raw` of each type |
//! | `cudaError_t` | [`Error`] |
//! | Nsight's NVTX ranges | [`profile`] |

#![deny(missing_docs)]

// From the bottom up, each on those before it:
// `debug` has the macro for `Debug`, `impls` others for what many types have. `error`, `image` (device code as bytes) and `properties` (of devices) are plain data;
// `library` opens dynamic libraries, `toolkit` those of CUDA's toolkit; `sync` has the locks that loom replaces,
// `own_thread` the identity of a thread. `order` keeps who uses which memory, `output` what kernels print.
// `kernel` describes a kernel of the program. `backend` runs everything, on a GPU, on the CPU or into a recording.
// `device`, `stream`, `memory` and `view` are what users hold; `profile` times what they ask for.
// `launch`, `copy`, `graph` and `texture` give streams their work. `foreign`, `source` and `dlpack` take code and memory of
// others.

#[macro_use]
mod debug;
#[macro_use]
mod impls;

mod backend;
mod copy;
mod device;
pub mod dlpack;
mod dlpack_abi;
mod error;
mod foreign;
#[cfg(test)]
#[path = "../tests/fuzz/mod.rs"]
mod fuzz;
mod graph;
mod image;
#[cfg(any(feature = "cudarc-interop", feature = "ndarray"))]
pub mod interop;
mod kernel;
mod launch;
mod library;
mod memory;
mod order;
mod output;
mod own_thread;
pub mod profile;
mod properties;
#[cfg(feature = "jit")]
mod source;
mod stream;
mod sync;
mod texture;
mod toolkit;
mod view;

pub use backend::{
    AccessPolicyWindow, AccessProperty, EventOptions, Limits, MemorySyncDomain, PoolKind, PoolOptions,
};
pub use copy::scope::StreamScope;
pub use copy::transfer::Transfer;
pub use copy::value::{StreamValue, WaitValue};
pub use device::context::Context;
#[cfg(feature = "nvml")]
pub use device::nvml::{
    NvmlClock, NvmlClocks, NvmlDevice, NvmlEcc, NvmlFigures, NvmlLink, NvmlMemory, NvmlPcie, NvmlPower,
    NvmlProcess, NvmlProcessKind, NvmlTemperatures, NvmlUtilization,
};
pub use device::{Device, DeviceKind};
pub use error::divergence::{BarrierReach, LaneFault, SourcePlace, WaitingThreads};
pub use error::foreign::ForeignError;
pub use error::graph::GraphError;
pub use error::ipc::IpcError;
pub use error::nccl::NcclError;
#[cfg(feature = "jit")]
pub use error::source::SourceError;
pub use error::{Axis, Error, KernelError, LaunchError, LaunchSites, LaunchedKernel, NEEDED_DRIVER, Result};
pub use foreign::{
    Array, ArrayMut, ForeignArguments, ForeignFunction, ForeignGlobal, ForeignKernel, ForeignModule,
    ForeignParameter, ForeignParameters, LaunchArgument, Linker, Slice, SliceMut, TypedArgument,
    TypedArguments,
};
pub use graph::{
    AllocationKey, Capture, DotOptions, ExecutableGraph, Graph, GraphArray, GraphBody, GraphBuffer, GraphIn,
    GraphKey, GraphMemory, GraphNode, GraphOut, GraphUpdate, PinnedKey,
};
pub use image::{CodeType, JitCacheMode, JitOptions, LinkInput, LinkedImage, Parameter};
pub use kernel::Kernel;
pub use kernel::attributes::{CacheConfig, KernelAttributes};
pub use kernel::dimensions::Dimensions;
pub use kernel::math_library::MathLibrary;
pub use kernel::occupancy::{
    BlockResources, BlockSuggestion, MultiprocessorLimits, Occupancy, OccupancyLimiter, OccupancyLimits,
};
pub use launch::grid::{Extent, Grid, IntoGrid};
pub use launch::host_slice::{In, InOut, Out, Shaped};
pub use launch::parameter::tensor_map::{MapInput, MapOutput};
pub use launch::temporary::Temporary;
pub use memory::buffer::DeviceBuffer;
pub use memory::constant::DeviceConstant;
pub use memory::device_static::DeviceStatic;
pub use memory::growable::GrowableBuffer;
pub use memory::ipc::{IpcBuffer, IpcEventHandle, IpcMemoryHandle};
pub use memory::managed::{Advice, Location, ManagedBuffer};
pub use memory::pinned::{PinnedBuffer, PinnedSlice};
pub use memory::pitched::PitchedBuffer;
#[cfg(unix)]
pub use memory::pool::shared::SharedPool;
pub use memory::pool::{MemoryPool, PoolStatistics};
/// The crate behind [`NvmlDevice`], of the version that its [`handle`](NvmlDevice::handle) is of.
#[cfg(feature = "nvml")]
pub use nvml_wrapper;
pub use properties::attribute::DeviceAttribute;
pub use properties::cpu_options::CpuOptions;
pub use properties::memory_info::MemoryInfo;
pub use properties::{DeviceProperties, DeviceUuid, PciAddress};
#[cfg(feature = "jit")]
pub use source::{CompiledSource, KernelSource, SourceArgument, SourceArguments, SourceKernel, SourceModule};
pub use stream::Stream;
pub use stream::completion::Completion;
pub use stream::event::Event;
pub use stream::options::StreamOptions;
pub use stream::timing::Timing;
pub use texture::{ArrayInput, ArrayOutput, Sampler, SurfaceViewMut, TextureArray, TextureView};
pub use toolkit::{
    CompileOptions, CompiledProgram, FastCompile, NvJitLink, Nvrtc, Nvvm, ToolkitLibrary, WarningKind,
};
pub use view::argument::{DeviceInput, DeviceOutput, LaunchInput, LaunchOutput};
pub use view::atomic::DeviceAtomicView;
pub use view::parts::{Chunks, ChunksMut};
pub use view::pitched::{PitchedView, PitchedViewMut};
pub use view::pointer::{DevicePtr, DevicePtrMut};
pub use view::{DeviceView, DeviceViewMut};

/// What the code that the macros generate uses. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::backend::operation::external::Participant;
    pub use crate::error::Result;
    pub use crate::kernel::extern_function::no_native_function;
    pub use crate::kernel::image::{
        EmbeddedImage, Entries, ModuleImage, add_constant, check_debug_assertions, check_layout,
        check_library, check_params,
    };
    pub use crate::kernel::{CpuEntry, Kernel, KernelDescriptor, NativeEntry};
    pub use crate::launch::extent::{check_narrow, longest, same_shape};
    pub use crate::launch::grid::{Extent, Grid, IntoGrid};
    pub use crate::launch::launch_with;
    pub use crate::launch::matmul::{
        PlannedProduct, ProductInputs, ProductShape, ProductTile, Several, is_large, parts_of_depth,
        processors, steps,
    };
    pub use crate::launch::ordered::{count_within, merge, merge_sort, search, set};
    pub use crate::launch::parameter::block_order::OrderMemory;
    pub use crate::launch::parameter::block_output::{rows_for_blocks, tiles_for_blocks};
    pub use crate::launch::parameter::shared::SharedLayout;
    pub use crate::launch::parameter::sized_params::{read_param, sized_addresses, sized_shapes};
    pub use crate::launch::parameter::tensor_map::{
        LaunchMap, MapInput, MapOutput, StagedMapInput, StagedMapOutput,
    };
    pub use crate::launch::parameter::zeros::LaunchZeros;
    pub use crate::launch::reduction::{in_steps, in_two_steps, value_of};
    pub use crate::memory::access::Access;
    pub use crate::memory::constant::{ConstantMemory, DeviceConstant, InitialValue};
    pub use crate::memory::device_static::DeviceStatic;
    pub use crate::stream::Stream;
    pub use crate::stream::external::recorded::CapturedWork;
    pub use crate::stream::external::{ExternalWork, LaunchedWork, PendingWork, WorkLine};
    pub use crate::texture::{SurfaceViewMut, TextureView};
    pub use crate::view::argument::{
        DeviceInput, DeviceOutput, LaunchInput, LaunchOutput, Staged, StagedInput, StagedOutput,
    };
    pub use crate::view::pitched::{PitchedView, PitchedViewMut};
    pub use crate::view::pointer::{DevicePtr, DevicePtrMut};
    pub use crate::view::{DeviceView, DeviceViewMut};
    pub use ferrogrid_device as device;
}
