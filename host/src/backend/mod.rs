//! The backends behind the public types, `cuda`, `cpu` and `recording` (of graphs), and every choice between
//! them: each enum here has a variant for each backend, and methods that take plain data.
//!
//! `device` (with `kernel` and `memory`), `stream`, `event`, `graph`, `array`, `shared_memory` and `virtual_memory` are such
//! enums for one kind of object each. `launch` is what a kernel is launched with. `failure`, `host_fn`, `params`,
//! `payload` and `signal` are what the backends share.

pub(crate) mod array;
pub(crate) mod cpu;
pub(crate) mod cuda;
mod device;
mod event;
mod failure;
#[cfg(test)]
#[path = "failure/tests.rs"]
mod failure_tests;
mod graph;
mod host_fn;
mod kernel;
mod launch;
mod memory;
mod params;
mod payload;
pub(crate) mod recording;
mod shared_memory;
mod signal;
mod stream;
mod virtual_memory;

use std::ptr::null_mut;

pub(crate) use cuda::{EndedIntervals, Records};
pub(crate) use device::DeviceBackend;
pub(crate) use event::EventBackend;
pub(crate) use failure::{Failure, Fault};
pub(crate) use graph::{GraphBackend, MemoryNodes};
pub(crate) use host_fn::HostFn;
pub use launch::{AccessPolicyWindow, AccessProperty, Limits, MemorySyncDomain};
pub(crate) use launch::{Launch, LaunchAttributes, LaunchConfig, LaunchEvent};
pub(crate) use params::CopiedParams;
pub(crate) use shared_memory::SharedMemory;
pub(crate) use signal::Signal;
pub(crate) use stream::{StreamBackend, StreamIdentity};
pub(crate) use virtual_memory::VirtualMemory;

use crate::kernel::Loaded;
pub(crate) use crate::stream::bytes::{Place, Rows};

/// A kernel ready to be launched on a stream: the function that a GPU loaded; null on the CPU.
pub(crate) type Prepared = Loaded;

impl Default for Prepared {
    fn default() -> Self {
        Prepared { function: null_mut(), may_panic: false }
    }
}
