//! [`World`]: what the ranks of one communicator share, and where their calls meet.
//!
//! Each rank numbers its calls when it enqueues them: those of all ranks by one count, messages by a count for each pair of
//! ranks and direction. Calls with the same number make a round. A stream's thread brings its call to the round ([`Ticket::arrive`])
//! and waits there ([`Arrived::wait`]); the call that completes a round carries it out, for all.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ferrogrid_host::NcclError;

use super::exchange;
use super::key::{Key, Numbers, Party};
use super::splitting::Splits;
use crate::call::Call;
use crate::options::{deadline, milliseconds};

pub(crate) struct World {
    size: usize,
    timeout: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

/// What ranks have done, under one lock.
pub(super) struct State {
    numbers: Numbers,
    rounds: HashMap<Key, Round>,
    pub(super) splits: Splits,
    /// The ranks whose communicators have been dropped.
    left: Vec<bool>,
    /// Why no call works any more.
    failure: Option<NcclError>,
}

/// The calls of one number.
#[derive(Default)]
struct Round {
    calls: Vec<(Party, Call)>,
    /// How it has ended.
    result: Option<Result<(), NcclError>>,
    /// How many have learned that.
    told: usize,
}

/// A call with its number, not yet in its round.
pub(super) struct Ticket {
    world: Arc<World>,
    key: Key,
    party: Party,
    call: Call,
}

/// A call in its round. Until this is dropped, the call may be carried out by any thread, under the world's lock: so the memory
/// is in use as long as this exists, and no longer.
pub(super) struct Arrived {
    world: Arc<World>,
    key: Key,
    party: Party,
    operation: &'static str,
}

impl World {
    pub(super) fn new(size: usize, timeout: Duration) -> Self {
        let state = State {
            numbers: Numbers::default(),
            rounds: HashMap::new(),
            splits: Splits::new(size),
            left: vec![false; size],
            failure: None,
        };
        World { size, timeout, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Numbers a call that `rank` is about to enqueue.
    pub(super) fn ticket(self: Arc<World>, rank: usize, call: Call) -> Ticket {
        let number = self.lock().numbers.next(rank, call.kind);
        Ticket::new(self, rank, number, call)
    }

    /// Notes that `rank` will enqueue no more calls.
    pub(super) fn leave(&self, rank: usize) {
        self.lock().left[rank] = true;
        self.changed.notify_all();
    }

    /// Fails all calls that have not been carried out, with the first such error.
    pub(super) fn fail(&self, error: NcclError) {
        self.lock().failure.get_or_insert(error);
        self.changed.notify_all();
    }

    pub(super) fn check(&self) -> Result<(), NcclError> {
        self.lock().check()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all who wait.
    pub(super) fn announce(&self) {
        self.changed.notify_all();
    }

    /// Waits for a change; `false` if there is none until `deadline`.
    pub(super) fn wait<'s>(
        &self,
        state: MutexGuard<'s, State>,
        deadline: Instant,
    ) -> (MutexGuard<'s, State>, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, false);
        }
        let (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        (state, true)
    }

    /// The error of a rank that has waited too long, which is that of all from now on.
    pub(super) fn time_out(
        &self,
        state: &mut State,
        operation: &'static str,
        rank: usize,
        missing: Box<[usize]>,
    ) -> NcclError {
        let milliseconds = milliseconds(self.timeout);
        let error = NcclError::TimedOut { operation, rank, milliseconds, missing };
        let error = state.failure.get_or_insert(error).clone();
        self.changed.notify_all();
        error
    }
}

impl State {
    pub(super) fn check(&self) -> Result<(), NcclError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    pub(super) fn has_left(&self, rank: usize) -> bool {
        self.left[rank]
    }

    /// Those of a round whose calls have not come.
    fn missing(&self, key: Key, size: usize) -> Vec<Party> {
        let present = self.rounds.get(&key).map_or(&[][..], |round| &round.calls);
        let is_missing = |party: &Party| !present.iter().any(|(known, _)| known == party);
        key.channel.parties(size).into_iter().filter(is_missing).collect()
    }

    /// One of a round that will never come.
    fn lost(&self, key: Key, size: usize) -> Option<usize> {
        let is_lost =
            |party: &Party| self.left[party.rank] && self.numbers.issued(key.channel, *party) <= key.number;
        self.missing(key, size).into_iter().find(is_lost).map(|party| party.rank)
    }

    /// What a round has come to, for one that waits in it.
    fn result(&mut self, key: Key, size: usize) -> Option<Result<(), NcclError>> {
        let round = self.rounds.get_mut(&key)?;
        let result = round.result.clone()?;
        round.told += 1;
        if round.told == key.channel.parties(size).len() {
            self.rounds.remove(&key);
        }
        Some(result)
    }
}

impl Ticket {
    /// A call that `rank` has numbered, possibly in another process.
    pub(super) fn new(world: Arc<World>, rank: usize, number: u64, call: Call) -> Self {
        let (channel, party) = Party::of(rank, call.kind);
        Ticket { world, key: Key { channel, number }, party, call }
    }

    /// Brings the call to its round, and carries that out if it is complete.
    pub(super) fn arrive(self) -> Arrived {
        let Ticket { world, key, party, call } = self;
        let operation = call.kind.name();
        let mut state = world.lock();
        if state.failure.is_none() {
            let round = state.rounds.entry(key).or_default();
            round.calls.push((party, call));
            if round.calls.len() == key.channel.parties(world.size).len() {
                let calls = std::mem::take(&mut round.calls);
                let calls: Vec<(usize, Call)> =
                    calls.into_iter().map(|(party, call)| (party.rank, call)).collect();
                // SAFETY: the threads of these calls are in `Arrived::wait`, or about to be: they have not let go of their
                // calls, which they do under the lock that this thread holds.
                round.result = Some(unsafe { exchange::perform(calls) });
                world.changed.notify_all();
            }
        }
        drop(state);
        Arrived { world, key, party, operation }
    }
}

impl Arrived {
    /// Waits until the round has been carried out, for the time-out from `start` on at most.
    pub(super) fn wait(self, start: Instant) -> Result<(), NcclError> {
        let (world, key, rank) = (&*self.world, self.key, self.party.rank);
        let deadline = deadline(start, world.timeout);
        let mut state = world.lock();
        loop {
            if let Some(result) = state.result(key, world.size) {
                return result;
            }
            state.check()?;
            if let Some(peer) = state.lost(key, world.size) {
                return Err(NcclError::PeerLost { operation: self.operation, rank, peer });
            }
            let (changed, has_changed) = world.wait(state, deadline);
            state = changed;
            if !has_changed {
                let missing = state.missing(key, world.size).into_iter().map(|party| party.rank);
                return Err(world.time_out(&mut state, self.operation, rank, missing.collect()));
            }
        }
    }
}

impl Drop for Arrived {
    /// Takes the call out of its round, if it has not been carried out.
    fn drop(&mut self) {
        if let Some(round) = self.world.lock().rounds.get_mut(&self.key) {
            round.calls.retain(|(party, _)| *party != self.party);
        }
    }
}
