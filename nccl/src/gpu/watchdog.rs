//! Two threads that watch over operations on GPUs. One finds that they have ended, the other ends those whose peers are lost: a
//! kernel of NCCL waits for its peers forever, and with it all who wait for its stream; so does a call that connects ranks.
//!
//! While a thread waits in the driver for a copy to memory that is not page-locked, the driver lets no other query an event. So the
//! thread that ends operations makes no call of the driver before it has aborted the communicator, and waits for none.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferrogrid_host::__private::PendingWork;
use ferrogrid_host::{Error, Result};

use super::activity::Watched;
use super::rank::{Rank, timed_out};
use crate::options::deadline;

/// How often they look, at most.
const PERIOD: Duration = Duration::from_millis(5);

static ALL: Mutex<All> = Mutex::new(All { ranks: Vec::new(), failed: Vec::new() });

static ADDED: Condvar = Condvar::new();

struct All {
    /// The ranks with calls of NCCL that have not returned, or with operations that have not ended.
    ranks: Vec<Arc<Rank>>,
    /// Operations that have failed. To let go of them may take calls of the driver: the last one of a stream destroys that.
    failed: Vec<Arc<Watched>>,
}

impl All {
    /// Whether there is nothing to look at.
    fn is_idle(&self) -> bool {
        self.ranks.is_empty() && self.failed.is_empty()
    }

    /// Adds something. The threads wait while there is nothing; to notify them is a system call.
    fn add(&mut self, add: impl FnOnce(&mut Self)) {
        let was_idle = self.is_idle();
        add(self);
        if was_idle {
            ADDED.notify_all();
        }
    }
}

/// Watches over a call of NCCL by these ranks, which are locked, for the function with that number in `Kind::NAMES`: if it waits for
/// longer than their time-outs, it is ended. Costs no lock while the threads look at the ranks.
///
/// # Errors
/// [`Error::WorkerThread`] if there can be no watchdog.
pub(super) fn during<R>(
    ranks: &[&Arc<Rank>],
    function: usize,
    call: impl FnOnce() -> Result<R>,
) -> Result<R> {
    ranks.iter().try_for_each(|rank| look_at(rank))?;
    ranks.iter().for_each(|rank| rank.activity().begin(function));
    let result = call();
    ranks.iter().for_each(|rank| rank.activity().end());
    result
}

/// Lets the threads look at a rank, which is locked, from now on.
fn look_at(rank: &Arc<Rank>) -> Result<()> {
    static THREADS: LazyLock<Result<()>> = LazyLock::new(|| {
        let start = |name: &str, look: fn()| {
            let started = thread::Builder::new().name(name.into()).spawn(move || run(look));
            started.map_err(|error| Error::WorkerThread { reason: error.to_string().into() })
        };
        start("nccl-completions", collect)?;
        start("nccl-time-outs", || fail_all(&lost()))?;
        Ok(())
    });
    if rank.activity().is_listed() {
        return Ok(());
    }
    THREADS.clone()?;
    rank.activity().is_listed.store(true, Ordering::Relaxed);
    lock().add(|all| all.ranks.push(rank.clone()));
    Ok(())
}

/// Watches over `work` of `rank`, which is locked, from now on; `None` is part of earlier work.
///
/// # Errors
/// What the rank has failed with meanwhile; then the work fails, too.
pub(super) fn watch(rank: &Arc<Rank>, operation: &'static str, work: Option<PendingWork>) -> Result<()> {
    let Some(work) = work else { return rank.works() };
    look_at(rank)?;
    let watched = Arc::new(Watched { operation, work, enqueued: Instant::now() });
    let mut works = rank.activity().works();
    let Err(error) = rank.works() else {
        works.pending.push_back(watched);
        return Ok(());
    };
    drop(works);
    watched.work.fail(error.clone());
    lock().add(|all| all.failed.push(watched));
    Err(error)
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
        let failed = std::mem::take(&mut rank.activity().works().pending);
        failed.iter().for_each(|watched| watched.work.fail(error.clone()));
        lock().add(|all| all.failed.extend(failed));
        rank.end_calls();
    }
    failures.iter().for_each(|(rank, _)| rank.release());
}

/// Settles work that has run, and lets go of it, and with it of communicators that are no longer used.
pub(crate) fn collect() {
    let mut all = lock();
    let (ranks, failed) = (all.ranks.clone(), std::mem::take(&mut all.failed));
    drop(all);
    drop(failed);
    ranks.iter().for_each(|rank| rank.activity().settle());
    // They are dropped without the lock: that may end communicators.
    let _idle: Vec<_> = lock().ranks.extract_if(.., |rank| is_idle(rank)).collect();
}

/// Whether there is nothing to look at any more.
fn is_idle(rank: &Rank) -> bool {
    // Locked, it has no call, nor work that is about to be watched.
    let Some(_locked) = rank.try_lock_operations() else { return false };
    let is_idle = rank.activity().works().pending.is_empty();
    if is_idle {
        rank.activity().is_listed.store(false, Ordering::Relaxed);
    }
    is_idle
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
    // Locked, as no rank is to end on this thread.
    let all = lock();
    let failure = |rank: &Arc<Rank>| {
        // One that has failed before is being ended.
        let failure = rank.failure().ok()?.or_else(|| overdue(rank))?;
        Some((rank.clone(), failure))
    };
    all.ranks.iter().filter_map(failure).collect()
}

/// That a call or an operation has waited too long.
fn overdue(rank: &Rank) -> Option<Error> {
    let is_late = |since| Instant::now() >= deadline(since, rank.timeout());
    let (operation, _) =
        rank.activity().waiting().into_iter().flatten().find(|(_, since)| is_late(*since))?;
    Some(timed_out(operation, rank.rank(), rank.timeout()))
}

fn lock() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
