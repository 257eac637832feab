//! CUDA GPUs through the driver API, which is loaded at run time: `driver` finds the library and makes the
//! calls. `device`, `stream`, `memory`, `module` and `graph` each have their objects in a folder; `feedback`
//! is what running kernels report.
//!
//! cudarc gives the types and constants; the calls are made through function types of our own that
//! return plain integers (see `driver`).

mod device;
mod driver;
mod feedback;
mod graph;
mod memory;
mod module;
pub(crate) mod stream;

pub(crate) use device::context::device_of_context;
pub(crate) use device::properties::driver_version;
pub(crate) use device::{CudaDevice, devices};
pub(crate) use graph::CudaGraph;
pub(crate) use graph::capturing::Capturing;
pub(crate) use graph::dot::graph_to_dot;
pub(crate) use graph::memory::{MemoryNodes, OwnGraph};
pub(crate) use memory::array::CudaArray;
pub(crate) use memory::ipc::IpcMemory;
pub(crate) use memory::own_pool::OwnPool;
pub(crate) use memory::pool::RawPool;
#[cfg(unix)]
pub(crate) use memory::shared_pool::OpenedMemory;
pub(crate) use memory::virtual_memory::VirtualRange;
pub(crate) use module::ModuleLease;
pub(crate) use module::foreign::{LoadedFunction, LoadedModule};
pub(crate) use module::link::CudaLinker;
pub(crate) use module::linking::link_later;
pub(crate) use stream::CudaStream;
pub(crate) use stream::burst::Burst;
pub(crate) use stream::event::{CudaEvent, TIMED};
pub(crate) use stream::watch::{EndedIntervals, Records};
