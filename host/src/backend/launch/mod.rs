//! A launch in the form for backends: plain data, from [`Grid`](crate::Grid) down to streams and the nodes of graphs. `attributes`
//! and `event` have the rarely used parts, `limits` the limits of a device.

mod attributes;
mod event;
mod limits;

pub use attributes::{AccessPolicyWindow, AccessProperty, MemorySyncDomain};
pub use limits::Limits;

pub(crate) use attributes::LaunchAttributes;
pub(crate) use event::LaunchEvent;

use std::ffi::c_void;
use std::panic::Location;

use super::Prepared;
use crate::kernel::Kernel;

/// A kernel with all that its launch on a stream needs, except for the order of memory.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'static Kernel,
    /// The kernel as the stream's device has loaded it.
    pub(crate) prepared: Prepared,
    pub(crate) config: &'a LaunchConfig,
    /// The address of each parameter.
    pub(crate) params: &'a [*const c_void],
}

/// What a kernel is launched with beside its parameters. The sizes are within the limits of device and kernel, x first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchConfig {
    /// Blocks of the grid.
    pub(crate) grid: [u32; 3],
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// Blocks that make a cluster, along each axis; 1 each where there are none.
    pub(crate) cluster: [u32; 3],
    /// Bytes of shared memory for each block.
    pub(crate) shared_bytes: usize,
    /// The place of the launch in the source.
    pub(crate) site: &'static Location<'static>,
    /// Attributes for the driver beyond that; `None` where `cuLaunchKernel` does, so that most launches look at one byte.
    pub(crate) attributes: Option<LaunchAttributes>,
}

impl LaunchConfig {
    /// Of no blocks yet, by the function that calls this.
    #[inline]
    #[track_caller]
    pub(crate) fn new(shared_bytes: usize) -> Self {
        let (none, site) = ([0; 3], Location::caller());
        LaunchConfig { grid: none, block: none, cluster: [1; 3], shared_bytes, site, attributes: None }
    }

    /// Attributes for the driver beyond sizes.
    pub(crate) fn attributes(&self) -> LaunchAttributes {
        self.attributes.unwrap_or_default()
    }

    /// The cluster to pass to the driver, which knows it already for a kernel that was compiled with one.
    pub(crate) fn stated_cluster(&self, kernel: &Kernel) -> Option<[u32; 3]> {
        (self.cluster != [1; 3] && kernel.cluster().is_none()).then_some(self.cluster)
    }

    /// Whether a node of a graph, once made with one, may have the sizes of the other.
    pub(crate) fn has_attributes_of(&self, other: &LaunchConfig) -> bool {
        (self.cluster, self.attributes()) == (other.cluster, other.attributes())
    }
}
