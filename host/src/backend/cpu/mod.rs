//! The CPU as a device: asynchronous streams on worker threads, kernels run natively with blocks in
//! parallel. It must not know the public types, beyond the kernels that it is given.

mod block;
mod budget;
mod cluster;
mod cooperative;
mod device;
mod event;
mod execute;
mod executors;
mod first_failure;
mod graph;
mod guarded;
mod in_order;
mod ipc;
mod legacy;
mod mark;
mod memory;
mod overflow;
mod panic;
mod properties;
mod shared;
mod spin;
mod stack;
mod stream;
mod sync;
mod virtual_memory;

pub(crate) use device::CpuDevice;
pub(crate) use event::CpuEvent;
pub(crate) use execute::check_resources;
pub(crate) use graph::CpuGraph;
pub(crate) use ipc::IpcMemory;
pub(crate) use legacy::Role;
pub(crate) use memory::{Block, allocate, free, initialise_from_host};
pub(crate) use overflow::holding;
pub(crate) use stream::CpuStream;
pub(crate) use virtual_memory::VirtualRange;
