//! Launch attributes: cooperative launch, priority, cache policy, memory-synchronisation domain.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::LaunchEvent;
use crate::error::{Error, Result};

/// The attributes of a launch (`CUlaunchAttribute`). Those that are options take the place of the stream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct LaunchAttributes {
    /// Whether all blocks are resident at the same time.
    pub(crate) cooperative: bool,
    /// Whether it may begin before the launch before it on its stream has ended, where its code can wait for that.
    pub(crate) dependent_launch: bool,
    pub(crate) memory_sync_domain: Option<MemorySyncDomain>,
    pub(crate) priority: Option<i32>,
    pub(crate) access_policy_window: Option<AccessPolicyWindow>,
    /// Recorded when all blocks have begun.
    pub(crate) completion_event: Option<LaunchEvent>,
}

impl LaunchAttributes {
    /// These, with those of `launch` in their place.
    pub(crate) fn with(self, launch: LaunchAttributes) -> Self {
        LaunchAttributes {
            cooperative: self.cooperative || launch.cooperative,
            dependent_launch: self.dependent_launch || launch.dependent_launch,
            memory_sync_domain: launch.memory_sync_domain.or(self.memory_sync_domain),
            priority: launch.priority.or(self.priority),
            access_policy_window: launch.access_policy_window.or(self.access_policy_window),
            completion_event: launch.completion_event.or(self.completion_event),
        }
    }
}

/// Which of a kernel's writes a fence of wider scope than a block waits for (`CUlaunchMemSyncDomain`): those of kernels in the same
/// domain, and on the same device. From compute capability 9.0 on a kernel in a separate domain, as one that writes to other GPUs,
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

/// What becomes of a line of the second-level cache that was used (`CUaccessProperty`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{AccessPolicyWindow, AccessProperty};
///
/// # let stream = Device::cpu().new_stream()?;
/// let passing = stream.zeros::<f32>(1 << 20)?;
/// // Read once: it must not evict what is read again.
/// stream.set_access_policy_window(Some(AccessPolicyWindow::new(&passing, AccessProperty::Streaming)))?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessProperty {
    /// Nothing special (`CU_ACCESS_PROPERTY_NORMAL`). What persisted no longer does.
    Normal,
    /// It is likely to leave first (`CU_ACCESS_PROPERTY_STREAMING`).
    Streaming,
    /// It is likely to stay, in the part of the cache that is set aside for that:
    /// [`Device::set_persisting_l2_cache_size`](crate::Device::set_persisting_l2_cache_size) (`CU_ACCESS_PROPERTY_PERSISTING`).
    Persisting,
}

/// Memory with a second-level cache policy, for a launch ([`Grid::with_access_policy_window`]) or for all later ones of a
/// stream ([`Stream::set_access_policy_window`](crate::Stream::set_access_policy_window)): `CUaccessPolicyWindow`. It is a hint, and changes no result. It holds no memory:
/// after the buffer is freed, it applies to what is allocated there.
///
/// [`Grid::with_access_policy_window`]: crate::Grid::with_access_policy_window
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # #[kernel]
/// # pub fn gather(t: Thread<1>, table: &[f32], mut y: DisjointSlice<f32>) {
/// #     if let Some(y) = y.get_mut(t.index()) {
/// #         *y = table[3];
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::best()?.new_stream()?;
/// # let stream = if stream.device().is_cuda() { Device::cpu().new_stream()? } else { stream };
/// use ferrogrid::{AccessPolicyWindow, AccessProperty};
///
/// let (table, mut y) = (stream.fill(1.0_f32, 1 << 16)?, stream.zeros(1000)?);
/// // Six of ten lines of the table stay in the cache, the others make room for what comes.
/// let window = AccessPolicyWindow::new(&table, AccessProperty::Persisting).with_hit_ratio(0.6)?.with_streaming_misses();
/// kernels::gather(&stream, Grid::cover(1000).with_access_policy_window(window), &table, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1.0; 1000]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct AccessPolicyWindow {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) hit_ratio: f32,
    pub(crate) hit: AccessProperty,
    pub(crate) streaming_misses: bool,
}

impl AccessPolicyWindow {
    /// The same for that part of the lines, from 0 to 1, which the hardware chooses; the others are misses (`hitRatio`). If
    /// more memory is to persist than the cache sets aside, it keeps the lines from evicting each other.
    ///
    /// # Errors
    /// [`Error::HitRatio`] if it is less than 0, more than 1, or no number.
    pub fn with_hit_ratio(self, hit_ratio: f32) -> Result<Self> {
        if (0.0..=1.0).contains(&hit_ratio) {
            return Ok(AccessPolicyWindow { hit_ratio, ..self });
        }
        Err(Error::HitRatio { ratio: hit_ratio.to_string().into() })
    }

    /// The same, and misses are likely to leave first (`missProp`); they are treated normally without it.
    #[must_use]
    pub const fn with_streaming_misses(self) -> Self {
        AccessPolicyWindow { streaming_misses: true, ..self }
    }

    /// What two that are equal have in common: not a number is none of them.
    fn key(&self) -> (usize, usize, u32, AccessProperty, bool) {
        (self.start, self.bytes, self.hit_ratio.to_bits(), self.hit, self.streaming_misses)
    }
}

impl PartialEq for AccessPolicyWindow {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for AccessPolicyWindow {}

impl Hash for AccessPolicyWindow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for AccessPolicyWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.start)
    }
}
