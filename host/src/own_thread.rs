//! The identity of a thread, for objects bound to it.

use std::cell::Cell;
use std::fmt::Display;
use std::thread::{self, ThreadId};

use crate::error::Error;

thread_local! {
    /// The calling thread, from the first `OwnThread::current` to its end.
    static ID: Cell<Option<ThreadId>> = const { Cell::new(None) };
    static END: End = const { End };
}

struct End;

impl Drop for End {
    fn drop(&mut self) {
        ID.set(None);
    }
}

/// A thread to which something is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OwnThread(ThreadId);

impl OwnThread {
    /// The calling thread; `None` if it is ending, and its thread-local values are being destroyed.
    pub(crate) fn current() -> Option<Self> {
        END.try_with(|_| ()).ok()?;
        let id = ID.get().unwrap_or_else(|| thread::current().id());
        ID.set(Some(id));
        Some(OwnThread(id))
    }

    /// Whether it is the calling one, and not ending.
    pub(crate) fn is_current(self) -> bool {
        ID.get() == Some(self.0)
    }
}

/// A thread that is ending has no default stream of `device` any more.
#[cold]
pub(crate) fn ending_thread(device: &impl Display) -> Error {
    let reason = "the thread is ending, and its default streams are gone";
    Error::unsupported("Device::per_thread_stream", device, reason)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    #[test]
    fn a_thread_is_itself_and_no_other() {
        let here = OwnThread::current().unwrap();
        assert!(here.is_current() && OwnThread::current() == Some(here));
        let there = thread::spawn(move || (here.is_current(), OwnThread::current().unwrap()));
        let (is_here, there) = there.join().unwrap();
        assert!(!is_here && there != here && !there.is_current());
    }

    struct AtEnd(OwnThread, Sender<(bool, bool)>);

    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.1.send((self.0.is_current(), OwnThread::current().is_some())).unwrap();
        }
    }

    #[test]
    fn a_thread_that_has_ended_has_no_identity() {
        thread_local!(static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) });
        let (sender, ends) = channel();
        thread::spawn(move || {
            AT_END.with(|_| ()); // destroyed after the end, which is known of later
            AT_END.set(Some(AtEnd(OwnThread::current().unwrap(), sender)));
        });
        assert_eq!(ends.recv(), Ok((false, false)));
    }
}
