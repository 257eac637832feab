//! A launch as backends take it: plain data, from [`Grid`](crate::Grid) down to streams and the nodes of graphs.

use std::num::NonZeroU64;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{DeviceBackend, EventBackend};
use crate::error::{Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::launch::access_policy::AccessPolicyWindow;
use crate::launch::attributes::MemorySyncDomain;

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
    /// What the driver is told beyond that; `None` where `cuLaunchKernel` does, so that most launches look at one byte.
    pub(crate) attributes: Option<LaunchAttributes>,
}

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

impl LaunchConfig {
    /// Of no blocks yet, by the function that calls this.
    #[inline]
    #[track_caller]
    pub(crate) fn new(shared_bytes: usize) -> Self {
        let (none, site) = ([0; 3], Location::caller());
        LaunchConfig { grid: none, block: none, cluster: [1; 3], shared_bytes, site, attributes: None }
    }

    /// What the driver is told beyond sizes.
    pub(crate) fn attributes(&self) -> LaunchAttributes {
        self.attributes.unwrap_or_default()
    }

    /// The cluster that the driver is told of: it knows that of a kernel which was compiled for one.
    pub(crate) fn stated_cluster(&self, kernel: &Kernel) -> Option<[u32; 3]> {
        (self.cluster != [1; 3] && kernel.cluster().is_none()).then_some(self.cluster)
    }

    /// Whether a node of a graph, once made with one, may have the sizes of the other.
    pub(crate) fn has_attributes_of(&self, other: &LaunchConfig) -> bool {
        (self.cluster, self.attributes()) == (other.cluster, other.attributes())
    }
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

/// The name of an event that a launch records. A grid names it without holding it, so that a grid is a value that is
/// copied; the launch finds out whether the event is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaunchEvent(NonZeroU64);

/// The events that have names, and the last name. Each holds its place in memory, which names it until it is forgotten.
static NAMED: Mutex<(Vec<(LaunchEvent, Weak<EventBackend>)>, u64)> = Mutex::new((Vec::new(), 0));

impl LaunchEvent {
    /// The name of `event`, the same each time.
    pub(crate) fn of(event: &Arc<EventBackend>) -> Self {
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, last) = &mut *named;
        if let Some((name, _)) = known.iter().find(|(_, known)| known.as_ptr() == Arc::as_ptr(event)) {
            return *name;
        }
        known.retain(|(_, known)| known.strong_count() > 0);
        *last += 1;
        let name = LaunchEvent(NonZeroU64::MIN.saturating_add(*last));
        known.push((name, Arc::downgrade(event)));
        name
    }

    /// The event, if it is still there.
    pub(crate) fn find(self) -> Option<Arc<EventBackend>> {
        let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        named.0.iter().find(|(name, _)| *name == self)?.1.upgrade()
    }

    /// The event, if a launch of `kernel` on `device` may record it.
    pub(crate) fn checked(self, kernel: &'static str, device: DeviceBackend) -> Result<Arc<EventBackend>> {
        let refuse = |reason| Error::Launch(LaunchError::LaunchEvent { kernel, reason });
        let event = self.find().ok_or_else(|| refuse("it was dropped before the launch"))?;
        if !event.is_of(device) {
            return Err(refuse("it is of another device, or of a recording"));
        }
        event.launch_event_refusal().map_or(Ok(event.clone()), |reason| Err(refuse(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::stream::event::{Event, EventOptions};

    fn event() -> Event {
        Device::cpu().new_event(EventOptions::new().without_timing()).unwrap()
    }

    #[test]
    fn an_event_is_found_by_its_name_as_long_as_it_is_there() {
        let (first, second) = (event(), event());
        let names = [&first, &second].map(|event| LaunchEvent::of(event.shared()));
        assert_eq!(names, [&first, &second].map(|event| LaunchEvent::of(event.shared())));
        assert!(Arc::ptr_eq(&names[1].find().unwrap(), second.shared()));
        drop(first);
        assert!(names[0].find().is_none() && names[1].find().is_some());
    }

    /// Wherever later events are, they have other names.
    #[test]
    fn a_name_is_that_of_one_event_only() {
        let gone = LaunchEvent::of(event().shared());
        // Forgets the first, whose place is free from here on.
        LaunchEvent::of(event().shared());
        let later: Vec<Event> = (0..100).map(|_| event()).collect();
        assert!(later.iter().all(|event| LaunchEvent::of(event.shared()) != gone));
        assert!(gone.find().is_none());
    }
}
