//! Ranks of one [`UniqueId`] come together, each on a thread of its own.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ferrogrid_host::NcclError;

use super::Member;
use super::world::World;
use crate::options::{deadline, milliseconds};
use crate::unique_id::UniqueId;

const OPERATION: &str = "Communicator::new";

/// The communicators that some ranks have not joined yet.
static WAITING: LazyLock<Mutex<HashMap<UniqueId, Waiting>>> = LazyLock::new(Mutex::default);

static CHANGED: Condvar = Condvar::new();

/// A communicator that is being made.
struct Waiting {
    world: Arc<World>,
    joined: Vec<bool>,
}

/// Rank `rank` of `size`, when all have come.
pub(crate) fn join(id: &UniqueId, rank: usize, size: usize, timeout: Duration) -> Result<Member, NcclError> {
    let deadline = deadline(Instant::now(), timeout);
    let mut all = lock();
    let new = || Waiting { world: Arc::new(World::new(size, timeout)), joined: vec![false; size] };
    let waiting = all.entry(*id).or_insert_with(new);
    if waiting.joined.len() != size {
        return Err(NcclError::Size { rank, size, other: waiting.joined.len() });
    }
    if std::mem::replace(&mut waiting.joined[rank], true) {
        return Err(NcclError::RankTaken { rank, size });
    }
    let world = waiting.world.clone();
    if waiting.joined.iter().all(|&joined| joined) {
        all.remove(id);
        CHANGED.notify_all();
    }
    // It is there, with this rank, until all have come.
    while let Some(waiting) = all.get_mut(id).filter(|waiting| Arc::ptr_eq(&waiting.world, &world)) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let error = give_up(waiting, rank, timeout);
            if waiting.joined.iter().all(|&joined| !joined) {
                all.remove(id);
            }
            return Err(error);
        }
        all = CHANGED.wait_timeout(all, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    Ok(Member::Here { world, rank, hosting: None })
}

fn give_up(waiting: &mut Waiting, rank: usize, timeout: Duration) -> NcclError {
    let missing = (0..waiting.joined.len()).filter(|&other| !waiting.joined[other]).collect();
    waiting.joined[rank] = false;
    NcclError::TimedOut { operation: OPERATION, rank, milliseconds: milliseconds(timeout), missing }
}

fn lock() -> MutexGuard<'static, HashMap<UniqueId, Waiting>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
