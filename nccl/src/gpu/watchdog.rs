//! Two threads that watch over operations on GPUs. One finds that they have ended, the other ends those whose peers are lost: a
//! kernel of NCCL waits for its peers forever, and with it all who wait for its stream.
//!
//! While a thread waits in the driver for a copy to memory that is not page-locked, the driver lets no other query an event. So the
//! thread that ends operations makes no call of the driver before it has aborted the communicator, and waits for none.

use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferrogrid_host::__private::PendingWork;
use ferrogrid_host::{Error, NcclError};

use super::rank::Rank;
use crate::options::{deadline, milliseconds};

/// How often they look, at most.
const PERIOD: Duration = Duration::from_millis(5);

static ALL: Mutex<All> = Mutex::new(All { watched: Vec::new(), failed: Vec::new() });

static ADDED: Condvar = Condvar::new();

/// The operations that have been enqueued.
struct All {
    watched: Vec<Arc<Watched>>,
    /// Those that have failed. To let go of them takes calls of the driver: it destroys their events.
    failed: Vec<Arc<Watched>>,
}

/// An operation that has been enqueued.
struct Watched {
    rank: Arc<Rank>,
    operation: &'static str,
    work: PendingWork,
    enqueued: Instant,
}

/// Watches over `work` of `rank` from now on.
pub(super) fn watch(rank: Arc<Rank>, operation: &'static str, work: PendingWork) {
    static THREADS: LazyLock<bool> = LazyLock::new(|| {
        let start =
            |name: &str, look: fn()| thread::Builder::new().name(name.into()).spawn(move || run(look));
        let fail_lost = || lost().iter().for_each(|(rank, error)| fail(rank, error));
        start("nccl-completions", collect).is_ok() && start("nccl-time-outs", fail_lost).is_ok()
    });
    lock().watched.push(Arc::new(Watched { rank, operation, work, enqueued: Instant::now() }));
    // Without a thread, lost peers are found where others look: by `collect` and `check`.
    if *THREADS {
        ADDED.notify_all();
    }
}

/// Ends `rank` and its work with `error`. No more work comes; what there is has failed; and then it ends: so who waits for it
/// finds the error.
pub(super) fn fail(rank: &Arc<Rank>, error: &Error) {
    let handle = rank.stop(error);
    let mut all = lock();
    let (failed, others): (Vec<_>, Vec<_>) = std::mem::take(&mut all.watched)
        .into_iter()
        .partition(|watched: &Arc<Watched>| Arc::ptr_eq(&watched.rank, rank));
    failed.iter().for_each(|watched| watched.work.fail(error.clone()));
    all.watched = others;
    all.failed.extend(failed);
    drop(all);
    if let Some(handle) = handle {
        rank.abort(handle);
    }
}

/// Settles work that has run, and lets go of it, and with it of communicators that are no longer used.
pub(crate) fn collect() {
    let mut all = lock();
    let (watched, failed) = (all.watched.clone(), std::mem::take(&mut all.failed));
    drop(all);
    drop(failed);
    // A device that cannot be asked fails all who wait for it.
    for ended in watched.iter().filter(|watched| watched.work.is_complete().unwrap_or(true)) {
        let mut all = lock();
        // Unless it has failed meanwhile.
        if let Some(place) = all.watched.iter().position(|other| Arc::ptr_eq(other, ended)) {
            all.watched.remove(place);
            ended.rank.note_progress();
            ended.work.succeed();
        }
    }
}

/// Looks again and again, while there is work.
fn run(look: fn()) {
    loop {
        let mut all = lock();
        while all.watched.is_empty() && all.failed.is_empty() {
            all = ADDED.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
        drop(all);
        look();
        thread::sleep(PERIOD);
    }
}

/// The ranks that have failed, each with its error.
fn lost() -> Vec<(Arc<Rank>, Error)> {
    let mut failures: Vec<(Arc<Rank>, Error)> = Vec::new();
    for watched in &lock().watched {
        if failures.iter().any(|(known, _)| Arc::ptr_eq(known, &watched.rank)) {
            continue;
        }
        let found = match watched.rank.failure() {
            Ok(found) => found.or_else(|| overdue(watched)),
            Err(earlier) => Some(earlier),
        };
        failures.extend(found.map(|error| (watched.rank.clone(), error)));
    }
    failures
}

/// That an operation has waited too long: since it was enqueued, and since one of its communicator ended.
fn overdue(watched: &Watched) -> Option<Error> {
    let timeout = watched.rank.timeout();
    let since = watched.enqueued.max(watched.rank.progress());
    (Instant::now() >= deadline(since, timeout)).then(|| {
        NcclError::TimedOut {
            operation: watched.operation,
            rank: watched.rank.rank(),
            milliseconds: milliseconds(timeout),
            missing: Box::default(),
        }
        .into()
    })
}

fn lock() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
