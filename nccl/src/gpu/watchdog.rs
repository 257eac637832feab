//! Two threads that watch over operations on GPUs. One finds that they have ended, the other ends those whose peers are lost: a
//! kernel of NCCL waits for its peers forever, and with it all who wait for its stream; so does a call that connects ranks.
//!
//! While a thread waits in the driver for a copy to memory that is not page-locked, the driver lets no other query an event. So the
//! thread that ends operations makes no call of the driver before it has aborted the communicator, and waits for none.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferrogrid_host::__private::PendingWork;
use ferrogrid_host::{Error, Result};

use super::rank::{Rank, timed_out};
use crate::options::deadline;

/// How often they look, at most.
const PERIOD: Duration = Duration::from_millis(5);

static ALL: Mutex<All> = Mutex::new(All { calls: Vec::new(), watched: Vec::new(), failed: Vec::new() });

static ADDED: Condvar = Condvar::new();

struct All {
    /// The calls of NCCL that have not returned. A rank has one at most, as it is locked.
    calls: Vec<CallOf>,
    /// The operations that have been enqueued: of each rank in their order, in which they end.
    watched: Vec<(Arc<Rank>, VecDeque<Arc<Watched>>)>,
    /// Those that have failed. To let go of them may take calls of the driver: the last one of a stream destroys that.
    failed: Vec<Arc<Watched>>,
}

/// A rank's share of a call of NCCL.
struct CallOf {
    rank: Arc<Rank>,
    operation: &'static str,
    start: Instant,
}

/// An operation that has been enqueued.
struct Watched {
    operation: &'static str,
    work: PendingWork,
    enqueued: Instant,
}

impl All {
    /// Whether there is nothing to look at.
    fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.watched.is_empty() && self.failed.is_empty()
    }

    /// Adds something. The threads wait while there is nothing; to notify them is a system call.
    fn add(&mut self, add: impl FnOnce(&mut Self)) {
        let was_idle = self.is_idle();
        add(self);
        if was_idle {
            ADDED.notify_all();
        }
    }

    /// The operations of a rank.
    fn of(&mut self, rank: &Arc<Rank>) -> Option<&mut VecDeque<Arc<Watched>>> {
        self.watched.iter_mut().find(|(known, _)| Arc::ptr_eq(known, rank)).map(|(_, works)| works)
    }

    /// Takes all operations of a rank.
    fn take(&mut self, rank: &Arc<Rank>) -> VecDeque<Arc<Watched>> {
        let place = self.watched.iter().position(|(known, _)| Arc::ptr_eq(known, rank));
        place.map(|place| self.watched.remove(place).1).unwrap_or_default()
    }
}

/// Watches over a call of NCCL by these ranks, which are locked: if it waits for longer than their time-outs, it is ended.
///
/// # Errors
/// [`Error::WorkerThread`] if there can be no watchdog.
pub(super) fn during<R>(
    ranks: &[&Arc<Rank>],
    operation: &'static str,
    call: impl FnOnce() -> Result<R>,
) -> Result<R> {
    static THREADS: LazyLock<Result<()>> = LazyLock::new(|| {
        let start = |name: &str, look: fn()| {
            let started = thread::Builder::new().name(name.into()).spawn(move || run(look));
            started.map_err(|error| Error::WorkerThread { reason: error.to_string().into() })
        };
        start("nccl-completions", collect)?;
        start("nccl-time-outs", || fail_all(&lost()))?;
        Ok(())
    });
    THREADS.clone()?;
    let start = Instant::now();
    lock().add(|all| {
        all.calls.extend(ranks.iter().map(|rank| CallOf { rank: Arc::clone(rank), operation, start }));
    });
    let result = call();
    lock().calls.retain(|call| !ranks.iter().any(|rank| Arc::ptr_eq(&call.rank, rank)));
    result
}

/// Watches over `work` of `rank` from now on.
///
/// # Errors
/// What the rank has failed with meanwhile; then the work fails, too.
pub(super) fn watch(rank: &Arc<Rank>, operation: &'static str, work: PendingWork) -> Result<()> {
    let mut all = lock();
    let works = rank.works();
    if let Err(error) = &works {
        work.fail(error.clone());
    }
    let watched = Arc::new(Watched { operation, work, enqueued: Instant::now() });
    all.add(|all| match all.of(rank) {
        _ if works.is_err() => all.failed.push(watched),
        Some(works) => works.push_back(watched),
        None => all.watched.push((rank.clone(), VecDeque::from([watched]))),
    });
    works
}

/// Ends `rank` and its work with `error`.
pub(super) fn fail(rank: &Arc<Rank>, error: &Error) {
    fail_all(&[(rank.clone(), error.clone())]);
}

/// Ends ranks and their work. No more work comes; what there is has failed; and then it ends: so who waits for it finds the error.
/// A call of several ranks may return only when all of them are ended.
fn fail_all(failures: &[(Arc<Rank>, Error)]) {
    for (rank, error) in failures {
        rank.stop(error);
        let mut all = lock();
        let failed = all.take(rank);
        failed.iter().for_each(|watched| watched.work.fail(error.clone()));
        all.failed.extend(failed);
        drop(all);
        rank.end_calls();
    }
    failures.iter().for_each(|(rank, _)| rank.release());
}

/// Settles work that has run, and lets go of it, and with it of communicators that are no longer used.
pub(crate) fn collect() {
    let mut all = lock();
    let (watched, failed) = (all.watched.clone(), std::mem::take(&mut all.failed));
    drop(all);
    drop(failed);
    for (rank, works) in &watched {
        // A device that cannot be asked fails all who wait for it.
        let ended = works.partition_point(|watched| watched.work.is_complete().unwrap_or(true));
        let mut all = lock();
        for watched in works.iter().take(ended) {
            // Unless it has failed meanwhile, or another thread has settled it.
            let Some(queue) = all.of(rank) else { break };
            if queue.pop_front_if(|first| Arc::ptr_eq(first, watched)).is_some() {
                rank.note_progress();
                watched.work.succeed();
            }
        }
        all.watched.retain(|(_, works)| !works.is_empty());
    }
}

/// Looks again and again, while there is work.
fn run(look: fn()) {
    loop {
        let mut all = lock();
        while all.is_idle() {
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
    let all = lock();
    let calls = all.calls.iter().map(|call| (&call.rank, call.operation, call.start));
    let watched = all.watched.iter().filter_map(|(rank, works)| {
        let first = works.front()?;
        Some((rank, first.operation, first.enqueued))
    });
    for (rank, operation, start) in calls.chain(watched) {
        if failures.iter().any(|(known, _)| Arc::ptr_eq(known, rank)) {
            continue;
        }
        // One that has failed before is being ended.
        let Ok(found) = rank.failure() else { continue };
        let found = found.or_else(|| overdue(rank, operation, start));
        failures.extend(found.map(|error| (rank.clone(), error)));
    }
    failures
}

/// That an operation has waited too long: since it began, and since one of its communicator ended.
fn overdue(rank: &Rank, operation: &'static str, start: Instant) -> Option<Error> {
    let since = start.max(rank.progress());
    let is_late = Instant::now() >= deadline(since, rank.timeout());
    is_late.then(|| timed_out(operation, rank.rank(), rank.timeout()))
}

fn lock() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
