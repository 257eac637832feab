//! What has to be kept until work on a stream has run, after its owner has let go of it. It must not
//! know what it keeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::backend::EventBackend;

/// Something that may only be dropped after an event.
struct Retired {
    until: EventBackend,
    _owner: Box<dyn Send>,
}

static RETIRED: Mutex<Vec<Retired>> = Mutex::new(Vec::new());
/// How many there are, to be asked without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Drops `owner` some time after `until`: when the next thing is retired, page-locked memory is
/// allocated, or a stream or transfer is waited for.
pub(crate) fn retire(until: EventBackend, owner: Box<dyn Send>) {
    let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
    retired.push(Retired { until, _owner: owner });
    COUNT.store(retired.len(), Ordering::Relaxed);
    drop(retired);
    collect();
}

/// Drops what need not be kept any longer.
pub(crate) fn collect() {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
    // A device that has failed runs nothing more.
    let done = |retired: &mut Retired| retired.until.is_complete() != Ok(false);
    let free: Vec<Retired> = retired.extract_if(.., done).collect();
    COUNT.store(retired.len(), Ordering::Relaxed);
    drop(retired);
    // Without the lock: what owners do when they are dropped is their business.
    drop(free);
}
