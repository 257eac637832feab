//! What a launch asks for beyond a grid: residence at the same time, clusters, priority, how it is cached and
//! fenced.

use crate::launch::access_policy::AccessPolicyWindow;
use crate::launch::event::LaunchEvent;

/// The attributes of a launch (`CUlaunchAttribute`), as far as the kernel itself does not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaunchAttributes {
    pub(crate) cooperative: bool,
    /// Blocks of a cluster along each axis; 1 each where there are none, or the kernel was compiled for clusters.
    pub(crate) cluster: [u32; 3],
    /// In place of the stream's.
    pub(crate) priority: Option<i32>,
    /// In place of the stream's.
    pub(crate) memory_sync_domain: Option<MemorySyncDomain>,
    /// In place of the stream's.
    pub(crate) access_policy_window: Option<AccessPolicyWindow>,
    /// Whether it may begin before the launch before it on its stream has ended, where its code can wait for that.
    pub(crate) dependent_launch: bool,
    /// Recorded when all blocks have begun.
    pub(crate) completion_event: Option<LaunchEvent>,
}

impl LaunchAttributes {
    pub(crate) const NONE: LaunchAttributes = LaunchAttributes {
        cooperative: false,
        cluster: [1; 3],
        priority: None,
        memory_sync_domain: None,
        access_policy_window: None,
        dependent_launch: false,
        completion_event: None,
    };

    /// The same, or `None` where there are none.
    pub(crate) fn if_any(self) -> Option<Self> {
        (self != LaunchAttributes::NONE).then_some(self)
    }

    /// Whether a launch has no attributes, except that it may be cooperative.
    pub(crate) fn are_default_but_cooperative(&self) -> bool {
        self.cluster == [1; 3]
            && self.priority.is_none()
            && self.memory_sync_domain.is_none()
            && self.access_policy_window.is_none()
            && !self.dependent_launch
            && self.completion_event.is_none()
    }

    /// Those of a kernel, with those of one of its launches in their place.
    pub(crate) fn with(self, launch: LaunchAttributes) -> Self {
        LaunchAttributes {
            cooperative: self.cooperative || launch.cooperative,
            cluster: if launch.cluster == [1; 3] { self.cluster } else { launch.cluster },
            priority: launch.priority.or(self.priority),
            memory_sync_domain: launch.memory_sync_domain.or(self.memory_sync_domain),
            access_policy_window: launch.access_policy_window.or(self.access_policy_window),
            dependent_launch: self.dependent_launch || launch.dependent_launch,
            completion_event: launch.completion_event,
        }
    }
}

/// Which of a kernel's writes a fence of wider scope than a block waits for (`CUlaunchMemSyncDomain`): those of kernels in the same
/// domain, and on the same device. From compute capability 9.0 on a kernel of its own domain, as one that writes to other GPUs,
/// keeps fences of others from waiting for its slow writes.
///
/// What is to be seen in another domain needs fences of the whole system (`fence` with `System` in kernels). The end of a
/// kernel is one, so nothing changes for what comes after it on a stream, or waits for it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # #[kernel]
/// # pub fn exchange(t: Thread<1>, mut y: DisjointSlice<u32>) {
/// #     if let Some(y) = y.get_mut(t.index()) {
/// #         *y += 1;
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::MemorySyncDomain;
///
/// let mut y = stream.zeros(3)?;
/// kernels::exchange(&stream, Grid::cover(3).with_memory_sync_domain(MemorySyncDomain::Remote), &mut y)?;
/// assert_eq!(stream.download(&y)?, [1; 3]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemorySyncDomain {
    /// That of kernels which say nothing (`CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT`).
    Default,
    /// That of kernels which write to other devices (`CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE`).
    Remote,
}
