//! Launch attributes: priority, cache policy, memory-synchronisation domain, and an event at the start.
//! `access_policy` has the policies for the second-level cache.

mod access_policy;

use crate::backend::{AccessPolicyWindow, LaunchEvent, MemorySyncDomain};
use crate::launch::grid::Grid;
use crate::stream::event::Event;

impl<const R: usize> Grid<R> {
    /// The same in a memory-synchronisation domain that overrides the stream's
    /// (`CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN`): see [`MemorySyncDomain`].
    #[must_use]
    pub fn with_memory_sync_domain(self, domain: MemorySyncDomain) -> Self {
        self.with_attributes(|attributes| attributes.memory_sync_domain = Some(domain))
    }

    /// The same with a second-level cache policy that overrides the stream's
    /// (`CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW`): see [`AccessPolicyWindow`].
    ///
    /// # Errors
    /// None here; the launch returns [`Error::AccessPolicyWindowTooLarge`](crate::Error::AccessPolicyWindowTooLarge).
    #[must_use]
    pub fn with_access_policy_window(self, window: AccessPolicyWindow) -> Self {
        self.with_attributes(|attributes| attributes.access_policy_window = Some(window))
    }

    /// The same with a priority that overrides the stream's (`CU_LAUNCH_ATTRIBUTE_PRIORITY`): where
    /// blocks of several kernels wait for room on a device, those of the lower number go first. Running blocks are
    /// not interrupted. A graph's nodes keep the priorities that they were recorded with.
    ///
    /// The launch checks it against [`Device::stream_priority_range`](crate::Device::stream_priority_range), from which
    /// it is best taken: on the CPU device, which has no priorities, that is 0 to 0.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{Device, Grid};
    ///
    /// let device = Device::best()?;
    /// let (_least, greatest) = device.stream_priority_range()?;
    /// let urgent = Grid::cover(1000).with_priority(greatest);
    /// # let _: Grid<1> = urgent;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None here; the launch returns [`Error::PriorityOutOfRange`](crate::Error::PriorityOutOfRange).
    #[must_use]
    pub fn with_priority(self, priority: i32) -> Self {
        self.with_attributes(|attributes| attributes.priority = Some(priority))
    }

    /// The same, whose launch records `event` when all its blocks have begun
    /// (`CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT`), from CUDA 12.3 on. The host can query the event, and other streams can
    /// wait for it, while the blocks still run. In CUDA this is best effort: it may be later, at the end of the launch, as on the CPU
    /// device. The kernel's writes are only visible at its end; buffers are in order as always.
    ///
    /// An empty launch records nothing.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn long(t: Thread<1>, mut y: DisjointSlice<u32>) {
    /// #     if let Some(y) = y.get_mut(t.index()) {
    /// #         *y += 1;
    /// #     }
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let device = Device::cpu();
    /// use ferrogrid::EventOptions;
    ///
    /// let (stream, other) = (device.new_stream()?, device.new_stream()?);
    /// let begun = device.new_event(EventOptions::new().without_timing())?;
    /// let mut y = stream.zeros::<u32>(1000)?;
    /// kernels::long(&stream, Grid::cover(1000).with_launch_completion_event(&begun), &mut y)?;
    /// other.wait(&begun)?; // what comes here fills the places that the last blocks leave
    /// begun.synchronize()?;
    /// # other.synchronize()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None here; the launch returns [`LaunchError::LaunchEvent`](crate::LaunchError::LaunchEvent) if the event
    /// has timing, is shared with other processes, of another device, or gone;
    /// [`Error::MissingSymbol`](crate::Error::MissingSymbol) with a driver before CUDA 12.3;
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in a recording, which has event nodes.
    #[must_use]
    pub fn with_launch_completion_event(self, event: &Event) -> Self {
        let event = LaunchEvent::of(event.shared());
        self.with_attributes(|attributes| attributes.completion_event = Some(event))
    }
}
