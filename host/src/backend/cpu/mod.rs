//! The CPU as a device: asynchronous streams on worker threads, kernels run natively with blocks in parallel.
//! `operation` interprets the work of streams and graphs, `execute` runs one launch; `stream`, `memory`, `graph` and
//! `device` are what their CUDA counterparts are.

mod device;
mod execute;
mod graph;
mod memory;
mod operation;
mod stream;

pub(crate) use device::CpuDevice;
pub(crate) use execute::check_resources;
pub(crate) use graph::CpuGraph;
pub(crate) use memory::Block;
pub(crate) use memory::ipc::IpcMemory;
pub(crate) use memory::virtual_memory::VirtualRange;
pub(crate) use stream::CpuStream;
pub(crate) use stream::event::CpuEvent;
pub(crate) use stream::legacy::Role;
