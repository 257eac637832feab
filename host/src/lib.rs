//! The host runtime of Ferrogrid: devices, streams, buffers and launches, on CUDA GPUs and on the
//! CPU, behind the same types. It must not know how kernels are written or compiled: it gets them as
//! descriptors, from code that the macros generate.
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

mod aligned_view;
mod argument;
mod atomic_view;
mod attribute;
mod backend;
mod buffer;
mod copy;
mod cpu_options;
mod device;
mod divergence;
pub mod dlpack;
mod error;
mod event;
mod foreign;
mod grid;
mod image;
mod kernel;
mod kernel_attributes;
mod launch;
mod library;
mod memory;
#[cfg(feature = "nvml")]
mod nvml;
mod occupancy;
mod order;
mod pointer;
mod properties;
mod shared;
mod stream;
mod toolkit;
mod view;

pub use argument::{DeviceInput, DeviceOutput};
pub use atomic_view::DeviceAtomicView;
pub use attribute::DeviceAttribute;
pub use buffer::DeviceBuffer;
pub use cpu_options::CpuOptions;
pub use device::{Device, DeviceKind, MemoryInfo};
pub use divergence::{LaneFault, SourcePlace, WaitingThreads};
pub use error::{Axis, Error, NEEDED_DRIVER, Result};
pub use event::Event;
pub use foreign::{
    Array, ArrayMut, ForeignArguments, ForeignError, ForeignFunction, ForeignGlobal, ForeignKernel,
    ForeignModule, ForeignParameter, ForeignParameters, JitCacheMode, JitOptions, LaunchArgument,
    LinkedImage, Linker, Parameter, Slice, SliceMut, TypedArgument, TypedArguments,
};
pub use grid::{Dimensions, Extent, Grid, IntoGrid, Limits};
pub use kernel::Kernel;
pub use kernel_attributes::{CachePreference, KernelAttributes};
#[cfg(feature = "nvml")]
pub use nvml::NvmlFigures;
pub use occupancy::{
    BlockResources, BlockSuggestion, MultiprocessorLimits, Occupancy, OccupancyLimiter, OccupancyLimits,
};
pub use pointer::{DevicePtr, DevicePtrMut};
pub use properties::{DeviceProperties, DeviceUuid, PciAddress};
pub use stream::Stream;
pub use toolkit::{CompileOptions, CompiledProgram, NvJitLink, NvJitLinkInput, Nvrtc};
pub use view::{DeviceView, DeviceViewMut};

/// What the code that the macros generate uses. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::argument::{DeviceInput, DeviceOutput};
    pub use crate::error::Result;
    pub use crate::grid::{Grid, IntoGrid};
    pub use crate::image::{Manifest, ModuleImage, check_params};
    pub use crate::kernel::{CpuEntry, Kernel, KernelDescriptor};
    pub use crate::launch::{Resources, launch, launch_with};
    pub use crate::memory::Access;
    pub use crate::pointer::{DevicePtr, DevicePtrMut};
    pub use crate::shared::SharedLayout;
    pub use crate::stream::Stream;
    pub use crate::view::{DeviceView, DeviceViewMut};
    pub use ferrogrid_device as device;
}
