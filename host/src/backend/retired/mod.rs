//! What must be kept until work on a stream has run, after its owner has let go of it. `list` is the list.

mod list;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use crate::backend::EventBackend;
use list::{List, Until};

static RETIRED: LazyLock<List<EventBackend>> = LazyLock::new(List::new);

impl Until for EventBackend {
    fn has_come(&self) -> bool {
        match self.is_complete() {
            Ok(complete) => complete,
            // A device that has failed runs nothing more. Of anything else it is not known, so the owner is kept.
            Err(error) => error.ends_all_work(),
        }
    }
}

/// Drops `owner` some time after `until`: when the next thing is retired, page-locked memory is
/// allocated, or a device, stream or transfer is waited for.
pub(crate) fn retire(until: EventBackend, owner: Box<dyn Send>) {
    RETIRED.retire(until, Box::new(Owner(Some(owner))));
}

/// Drops `owner` now, as `retire` does some time later.
pub(crate) fn drop_quietly(owner: Box<dyn Send>) {
    drop(Owner(Some(owner)));
}

/// An owner whose panic on drop is caught after the panic hook has reported it: the thread that collects may be another than
/// the one that retired the owner.
struct Owner(Option<Box<dyn Send>>);

impl Drop for Owner {
    fn drop(&mut self) {
        let owner = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(owner))) {
            // To drop it could panic in turn.
            std::mem::forget(payload);
        }
    }
}

/// Drops what need not be kept any longer.
pub(crate) fn collect() {
    RETIRED.collect();
}
