//! CUDA GPUs through the driver API, which is found at run time. It must not know the public types,
//! beyond the kernels that it is given.
//!
//! cudarc gives the types and constants; the calls are made through function types of our own that
//! return plain integers (see `driver`).

mod array;
mod attributes;
mod callback;
mod condition;
mod context;
mod device;
mod driver;
mod event;
mod feedback;
mod fill;
mod foreign;
mod function;
mod graph;
mod graph_dot;
mod graph_memory;
mod interval;
mod ipc;
mod jit;
mod link;
mod managed;
mod memory;
mod module;
mod own_pool;
mod peer;
mod per_thread;
mod pinned;
mod pool;
mod program;
mod properties;
mod recent;
mod reset;
#[cfg(unix)]
mod shared_pool;
mod stream;
mod value;
mod virtual_memory;
mod watch;

pub(crate) use array::CudaArray;
pub(crate) use context::device_of_context;
pub(crate) use device::{CudaDevice, devices};
pub(crate) use event::{CudaEvent, TIMED};
pub(crate) use foreign::{LoadedFunction, LoadedModule};
pub(crate) use graph::CudaGraph;
pub(crate) use graph_dot::graph_to_dot;
pub(crate) use graph_memory::MemoryNodes;
pub(crate) use ipc::IpcMemory;
pub(crate) use link::CudaLinker;
pub(crate) use module::ModuleLease;
pub(crate) use own_pool::OwnPool;
pub(crate) use pool::RawPool;
pub(crate) use properties::driver_version;
#[cfg(unix)]
pub(crate) use shared_pool::OpenedMemory;
pub(crate) use stream::CudaStream;
pub(crate) use virtual_memory::VirtualRange;
pub(crate) use watch::{EndedIntervals, Records};
