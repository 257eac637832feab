//! The host runtime of Ferrogrid: devices, streams, buffers and launches, on CUDA GPUs and on the
//! CPU, behind the same types. It must not know how kernels are written or compiled: it gets them as
//! descriptors, from code that the macros generate. Programs reach it as `ferrogrid`, which re-exports all of it.
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
//! | driver calls of one's own, handles of other libraries | [`Context`]; `as_raw` and `from_raw` of each type |
//! | `cudaError_t` | [`Error`] |
//! | Nsight's NVTX ranges | [`profile`] |

#![deny(missing_docs)]

mod access;
mod access_policy;
mod account;
mod aligned_view;
mod argument;
mod atomic_view;
mod attribute;
mod backend;
mod block_output;
mod buffer;
mod claim_bits;
mod completion;
mod constant;
mod context;
mod copy;
mod cpu_options;
mod device;
mod device_static;
mod divergence;
pub mod dlpack;
mod error;
mod event;
mod extent;
mod extern_function;
mod foreign;
#[cfg(test)]
mod fuzz;
mod graph;
mod grid;
mod growable;
mod host_fn;
mod host_slice;
mod image;
mod ipc;
mod kernel;
mod kernel_attributes;
mod kernel_questions;
mod launch;
mod launch_attributes;
mod launch_event;
mod launch_zeros;
mod library;
mod loaded_kernel;
mod managed;
mod mapped;
mod math_library;
mod memory;
mod memory_pool;
mod message;
#[cfg(feature = "nvml")]
mod nvml;
mod occupancy;
mod order;
mod order_state;
mod output;
mod own_thread;
mod peer;
mod pinned;
mod pitched;
mod pointer;
mod pool_options;
pub mod profile;
mod properties;
mod reset;
mod retired;
mod scope;
mod shared;
#[cfg(unix)]
mod shared_pool;
mod sized_params;
#[cfg(feature = "jit")]
mod source;
mod stream;
mod stream_kinds;
mod stream_options;
mod stream_order;
mod stream_value;
mod sync;
mod texture;
mod timing;
mod toolkit;
mod transfer;
mod uninit;
mod view;
mod view_parts;
mod writers;

pub use access_policy::{AccessPolicyWindow, AccessProperty};
pub use argument::{DeviceInput, DeviceOutput, LaunchInput, LaunchOutput};
pub use atomic_view::DeviceAtomicView;
pub use attribute::DeviceAttribute;
pub use buffer::DeviceBuffer;
pub use completion::Completion;
pub use constant::DeviceConstant;
pub use context::Context;
pub use cpu_options::CpuOptions;
pub use device::{Device, DeviceKind, MemoryInfo};
pub use device_static::DeviceStatic;
pub use divergence::{BarrierReach, LaneFault, SourcePlace, WaitingThreads};
pub use error::{Axis, Error, LaunchSites, LaunchedKernel, NEEDED_DRIVER, Result};
pub use event::{Event, EventOptions};
pub use foreign::{
    Array, ArrayMut, CodeType, ForeignArguments, ForeignError, ForeignFunction, ForeignGlobal, ForeignKernel,
    ForeignModule, ForeignParameter, ForeignParameters, JitCacheMode, JitOptions, LaunchArgument, LinkInput,
    LinkedImage, Linker, Parameter, Slice, SliceMut, TypedArgument, TypedArguments,
};
pub use graph::{
    AllocationKey, Capture, DotOptions, ExecutableGraph, Graph, GraphArray, GraphBody, GraphBuffer,
    GraphError, GraphIn, GraphKey, GraphMemory, GraphNode, GraphOut, GraphUpdate, PinnedKey,
};
pub use grid::{Dimensions, Extent, Grid, IntoGrid, Limits};
pub use growable::GrowableBuffer;
pub use host_slice::{In, InOut, Out, Shaped};
pub use ipc::{IpcBuffer, IpcError, IpcEventHandle, IpcMemoryHandle};
pub use kernel::Kernel;
pub use kernel_attributes::{CacheConfig, KernelAttributes};
pub use launch_attributes::MemorySyncDomain;
pub use managed::{Advice, Location, ManagedBuffer};
pub use math_library::MathLibrary;
pub use memory_pool::{MemoryPool, PoolStatistics};
#[cfg(feature = "nvml")]
pub use nvml::{
    NvmlClock, NvmlClocks, NvmlDevice, NvmlEcc, NvmlFigures, NvmlLink, NvmlMemory, NvmlPcie, NvmlPower,
    NvmlProcess, NvmlProcessKind, NvmlTemperatures, NvmlUtilization,
};
/// The crate behind [`NvmlDevice`], of the version that its [`handle`](NvmlDevice::handle) is of.
#[cfg(feature = "nvml")]
pub use nvml_wrapper;
pub use occupancy::{
    BlockResources, BlockSuggestion, MultiprocessorLimits, Occupancy, OccupancyLimiter, OccupancyLimits,
};
pub use pinned::{PinnedBuffer, PinnedSlice};
pub use pitched::{PitchedBuffer, PitchedView, PitchedViewMut};
pub use pointer::{DevicePtr, DevicePtrMut};
pub use pool_options::{PoolKind, PoolOptions};
pub use properties::{DeviceProperties, DeviceUuid, PciAddress};
pub use scope::StreamScope;
#[cfg(unix)]
pub use shared_pool::SharedPool;
#[cfg(feature = "jit")]
pub use source::{
    CompiledSource, KernelSource, SourceArgument, SourceArguments, SourceError, SourceKernel, SourceModule,
};
pub use stream::Stream;
pub use stream_options::StreamOptions;
pub use stream_value::{StreamValue, WaitValue};
pub use texture::{ArrayInput, ArrayOutput, Sampler, SurfaceViewMut, TextureArray, TextureView};
pub use timing::Timing;
pub use toolkit::{
    CompileOptions, CompiledProgram, FastCompile, NvJitLink, Nvrtc, Nvvm, ToolkitLibrary, WarningKind,
};
pub use transfer::Transfer;
pub use view::{DeviceView, DeviceViewMut};
pub use view_parts::{Chunks, ChunksMut};

/// What the code that the macros generate uses. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::access::Access;
    pub use crate::argument::{
        DeviceInput, DeviceOutput, LaunchInput, LaunchOutput, Staged, StagedInput, StagedOutput,
    };
    pub use crate::block_output::{rows_for_blocks, tiles_for_blocks};
    pub use crate::claim_bits::ClaimBits;
    pub use crate::constant::{ConstantMemory, DeviceConstant, InitialValue};
    pub use crate::device_static::DeviceStatic;
    pub use crate::error::Result;
    pub use crate::extent::{narrow, same_shape};
    pub use crate::extern_function::no_native_function;
    pub use crate::grid::{Extent, Grid, IntoGrid};
    pub use crate::image::{
        EmbeddedImage, Entries, ModuleImage, add_constant, check_debug_assertions, check_layout,
        check_library, check_params,
    };
    pub use crate::kernel::{CpuEntry, Kernel, KernelDescriptor};
    pub use crate::launch::{Resources, launch, launch_with};
    pub use crate::order_state::OrderState;
    pub use crate::pointer::{DevicePtr, DevicePtrMut};
    pub use crate::shared::SharedLayout;
    pub use crate::sized_params::{read_param, sized_addresses, sized_shapes};
    pub use crate::stream::Stream;
    pub use crate::texture::{SurfaceViewMut, TextureView};
    pub use crate::view::{DeviceView, DeviceViewMut};
    pub use ferrogrid_device as device;
}
