//! A thread that watches over operations on GPUs: it finds that they have ended, and ends those whose peers are lost. A kernel
//! of NCCL waits for its peers forever, and with it all who wait for its stream.

use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferrogrid_host::__private::PendingWork;
use ferrogrid_host::{Error, NcclError};

use super::rank::Rank;
use crate::options::{deadline, milliseconds};

/// How often it looks, at most.
const PERIOD: Duration = Duration::from_millis(5);

static WATCHED: LazyLock<Mutex<Vec<Watched>>> = LazyLock::new(Mutex::default);

static ADDED: Condvar = Condvar::new();

/// An operation that has been enqueued.
struct Watched {
    rank: Arc<Rank>,
    operation: &'static str,
    work: PendingWork,
    enqueued: Instant,
}

/// Watches over `work` of `rank` from now on.
pub(super) fn watch(rank: Arc<Rank>, operation: &'static str, work: PendingWork) {
    static THREAD: LazyLock<bool> =
        LazyLock::new(|| thread::Builder::new().name("ferrogrid-nccl".into()).spawn(run).is_ok());
    lock().push(Watched { rank, operation, work, enqueued: Instant::now() });
    // Without a thread, lost peers are found where others look: by `collect` and `check`.
    if *THREAD {
        ADDED.notify_one();
    }
}

/// Ends `rank` and its work with `error`. No more work comes; what there is has failed; and then it ends: so who waits for it
/// finds the error.
pub(super) fn fail(rank: &Arc<Rank>, error: &Error) {
    let handle = rank.stop(error);
    let mut all = lock();
    let (failed, others): (Vec<_>, Vec<_>) =
        std::mem::take(&mut *all).into_iter().partition(|watched| Arc::ptr_eq(&watched.rank, rank));
    *all = others;
    drop(all);
    for watched in failed {
        watched.work.fail(error.clone());
    }
    if let Some(handle) = handle {
        rank.abort(handle);
    }
}

/// Lets go of work that has run, and with it of communicators that are no longer used.
pub(crate) fn collect() {
    let ended = ended(&mut lock());
    drop(ended);
}

fn run() {
    loop {
        let mut all = lock();
        while all.is_empty() {
            all = ADDED.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
        let ended = ended(&mut all);
        let failures = failures(&all);
        drop(all);
        // Without the lock: this may destroy communicators.
        drop(ended);
        failures.iter().for_each(|(rank, error)| fail(rank, error));
        thread::sleep(PERIOD);
    }
}

/// Settles what has run; the ranks that it was of.
fn ended(all: &mut Vec<Watched>) -> Vec<Arc<Rank>> {
    let mut ranks = Vec::new();
    for watched in std::mem::take(all) {
        // A device that cannot be asked fails all who wait for it.
        if watched.work.is_complete().unwrap_or(true) {
            watched.rank.note_progress();
            watched.work.succeed();
            ranks.push(watched.rank);
        } else {
            all.push(watched);
        }
    }
    ranks
}

/// The ranks that have failed, each with its error.
fn failures(all: &[Watched]) -> Vec<(Arc<Rank>, Error)> {
    let mut failures: Vec<(Arc<Rank>, Error)> = Vec::new();
    for watched in all {
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

fn lock() -> MutexGuard<'static, Vec<Watched>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}
