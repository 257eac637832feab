//! Events that launches record when their blocks have begun.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::backend::{DeviceBackend, EventBackend};
use crate::error::{Error, LaunchError, Result};
use crate::sync::lock;

/// The name of an event that a launch records. A grid names it without holding it, so that a grid is a value that is
/// copied; the launch finds out whether the event is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaunchEvent(NonZeroU64);

/// The events that have names. Each keeps its place in memory, by which it is known, until it is forgotten.
static NAMED: Mutex<Vec<(LaunchEvent, Weak<EventBackend>)>> = Mutex::new(Vec::new());

impl LaunchEvent {
    /// The name of `event`, the same each time.
    pub(crate) fn of(event: &Arc<EventBackend>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mut named = lock(&NAMED);
        if let Some((name, _)) = named.iter().find(|(_, known)| known.as_ptr() == Arc::as_ptr(event)) {
            return *name;
        }
        named.retain(|(_, known)| known.strong_count() > 0);
        let name = LaunchEvent(NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed)));
        named.push((name, Arc::downgrade(event)));
        name
    }

    /// The event, if it is still there.
    pub(crate) fn find(self) -> Option<Arc<EventBackend>> {
        let named = lock(&NAMED);
        named.iter().find(|(name, _)| *name == self)?.1.upgrade()
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
    use crate::backend::EventOptions;
    use crate::device::Device;
    use crate::stream::event::Event;

    fn event() -> Event {
        Device::cpu().new_event(EventOptions::new().without_timing()).unwrap()
    }

    #[test]
    fn an_event_is_found_by_its_name_while_it_exists() {
        let (first, second) = (event(), event());
        let names = [&first, &second].map(|event| LaunchEvent::of(event.shared()));
        assert_eq!(names, [&first, &second].map(|event| LaunchEvent::of(event.shared())));
        assert!(Arc::ptr_eq(&names[1].find().unwrap(), second.shared()));
        drop(first);
        assert!(names[0].find().is_none() && names[1].find().is_some());
    }

    /// Later events have other names, also at the same address.
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
