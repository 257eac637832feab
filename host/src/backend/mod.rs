//! The backends behind the public types, `cuda`, `cpu` and `recording` (of graphs), and all dispatch between
//! them: each enum here has a variant for each backend, and methods that take plain data.
//!
//! `device`, `stream`, `event`, `graph` and the files of `memory` are such enums for one kind of object each.
//! Where its traits have a method, the enum has it: a new one takes a signature and what each backend does. `launch` is what a
//! kernel is launched with, `operation` the work that streams and graphs are given, `retired` keeps what work still uses,
//! `writers` names the work that wrote memory, `external` is work of other crates; `failure`, `host_fn` and `signal` are what the backends share.

/// Implements `Deref` for an enum of backends, as the trait that what is in its variants has; `mut`: and `DerefMut`.
macro_rules! deref_to_trait {
    ($Enum:ident: $Trait:ident { $($Variant:ident),* }) => {
        impl std::ops::Deref for $Enum {
            type Target = dyn $Trait;

            #[inline]
            fn deref(&self) -> &Self::Target {
                match self {
                    $( $Enum::$Variant(backend) => backend, )*
                }
            }
        }
    };
    ($Enum:ident: $Trait:ident { $($Variant:ident),* }, mut) => {
        deref_to_trait!($Enum: $Trait { $($Variant),* });

        impl std::ops::DerefMut for $Enum {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    $( $Enum::$Variant(backend) => backend, )*
                }
            }
        }
    };
}

pub(crate) mod cpu;
pub(crate) mod cuda;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod external;
mod failure;
#[cfg(test)]
#[path = "failure/tests.rs"]
mod failure_tests;
pub(crate) mod graph;
mod host_fn;
mod launch;
pub(crate) mod memory;
pub(crate) mod operation;
pub(crate) mod recording;
pub(crate) mod retired;
mod signal;
pub(crate) mod stream;
pub(crate) mod writers;

use std::ptr::null_mut;

pub(crate) use cuda::{EndedIntervals, Records};
pub(crate) use device::DeviceBackend;
pub(crate) use event::EventBackend;
pub use event::EventOptions;
pub(crate) use failure::{Failure, Fault};
pub(crate) use graph::{GraphBackend, MemoryNodes};
pub(crate) use host_fn::HostFn;
pub use launch::{AccessPolicyWindow, AccessProperty, Limits, MemorySyncDomain};
pub(crate) use launch::{Launch, LaunchAttributes, LaunchConfig, LaunchEvent};
pub(crate) use memory::{ALIGNMENT, Account, Charge, Contents, SharedMemory, VirtualMemory};
pub use memory::{PoolKind, PoolOptions};
pub(crate) use operation::{Fill, MemoryCopy, Place, Rows, Side};
pub(crate) use signal::Signal;
pub(crate) use stream::{StreamBackend, StreamIdentity};

use crate::kernel::Loaded;

/// A kernel ready to be launched on a stream: the function that a GPU loaded; null on the CPU.
pub(crate) type Prepared = Loaded;

impl Default for Prepared {
    fn default() -> Self {
        Prepared { function: null_mut(), may_panic: false }
    }
}
