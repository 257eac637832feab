//! What has to be kept until work on a stream has run, after its owner has let go of it. It must not
//! know what it keeps.

mod list;

use std::sync::LazyLock;

use crate::backend::EventBackend;
use crate::error::Error;
use list::{List, Until};

static RETIRED: LazyLock<List<EventBackend>> = LazyLock::new(List::new);

impl Until for EventBackend {
    fn has_come(&self) -> bool {
        match self.is_complete() {
            Ok(complete) => complete,
            // A device that has failed runs nothing more. Of anything else it is not known, so the owner is kept.
            Err(error) => matches!(error, Error::LaunchFailed { .. }),
        }
    }
}

/// Drops `owner` some time after `until`: when the next thing is retired, page-locked memory is
/// allocated, or a stream or transfer is waited for.
pub(crate) fn retire(until: EventBackend, owner: Box<dyn Send>) {
    RETIRED.retire(until, owner);
}

/// Drops what need not be kept any longer.
pub(crate) fn collect() {
    RETIRED.collect();
}
