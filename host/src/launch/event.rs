//! Events that launches record when their blocks have begun. A grid names an event without holding it, so that it stays a
//! value that is copied; whether the event is still there turns out at the launch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::backend::EventBackend;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::attributes::LaunchAttributes;
use crate::launch::grid::Grid;
use crate::stream::event::Event;

/// The name of an event: where it is, and a number that no other at the same place has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaunchEvent {
    address: usize,
    number: u64,
}

/// The events that have names, by their address.
#[derive(Default)]
struct Named {
    events: HashMap<usize, (u64, Weak<EventBackend>)>,
    last: u64,
}

static NAMED: Mutex<Option<Named>> = Mutex::new(None);

fn named<T>(work: impl FnOnce(&mut Named) -> T) -> T {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    work(named.get_or_insert_default())
}

impl LaunchEvent {
    /// The name of `event`, the same each time.
    pub(crate) fn of(event: &Arc<EventBackend>) -> Self {
        let address = Arc::as_ptr(event).addr();
        named(|named| {
            if let Some((number, known)) = named.events.get(&address)
                && known.strong_count() > 0
            {
                return LaunchEvent { address, number: *number };
            }
            named.events.retain(|_, (_, known)| known.strong_count() > 0);
            named.last += 1;
            named.events.insert(address, (named.last, Arc::downgrade(event)));
            LaunchEvent { address, number: named.last }
        })
    }

    /// The event, if it is still there.
    pub(crate) fn find(self) -> Option<Arc<EventBackend>> {
        named(|named| {
            let (number, event) = named.events.get(&self.address)?;
            if *number == self.number { event.upgrade() } else { None }
        })
    }

    /// The event, if a launch of `kernel` on `device` may record it.
    pub(crate) fn checked(self, kernel: &'static str, device: &Device) -> Result<Arc<EventBackend>> {
        let refuse = |reason| Error::LaunchEvent { kernel, reason };
        let event = self.find().ok_or_else(|| refuse("it was dropped before the launch"))?;
        if !event.is_of(device.backend()) {
            let reason = "it is of another device, or of a recording";
            return Err(refuse(reason));
        }
        if let Some(reason) = event.launch_event_refusal() {
            return Err(refuse(reason));
        }
        Ok(event)
    }
}

impl<const R: usize> Grid<R> {
    /// The same, whose launch records `event` when all its blocks have begun
    /// (`CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT`), from CUDA 12.3 on. The host can ask the event, and other streams can
    /// wait for it, while the blocks still run. CUDA does its best: it may be later, at the end of the launch, as on the CPU
    /// device. What the kernel writes is only there at its end; buffers are in order as always.
    ///
    /// A launch that covers nothing records nothing.
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
    /// None here; the launch gives [`Error::LaunchEvent`] if the event has timing, is shared with other processes, of
    /// another device, or gone; [`Error::MissingSymbol`] with a driver before CUDA 12.3;
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in a recording, which has event nodes.
    #[must_use]
    pub fn with_launch_completion_event(self, event: &Event) -> Self {
        let completion_event = Some(LaunchEvent::of(event.shared()));
        self.with_attributes(|attributes| LaunchAttributes { completion_event, ..attributes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::event::EventOptions;

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
