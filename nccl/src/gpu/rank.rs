//! [`Rank`]: one communicator of NCCL, and its end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ferrogrid_host::{Device, Error, NcclError, Result};

use super::library::{Code, Comm, Nccl};
use crate::options::{deadline, milliseconds};

/// How long a thread spins for a call that NCCL carries on with, before it sleeps between looks.
const SPIN: Duration = Duration::from_micros(50);

/// How long it sleeps.
const NAP: Duration = Duration::from_micros(50);

/// One communicator. It is destroyed when it is dropped, which comes after all of its work: the watchdog has a share meanwhile.
pub(crate) struct Rank {
    nccl: &'static Nccl,
    rank: usize,
    size: usize,
    device: Device,
    timeout: Duration,
    state: Mutex<State>,
    /// When the watchdog saw an operation end.
    progress: Mutex<Instant>,
}

pub(super) enum State {
    Live(Handle),
    /// It has been aborted.
    Failed(Error),
}

/// A communicator's handle, used under the lock of its rank.
#[derive(Clone, Copy)]
pub(super) struct Handle(pub(super) Comm);

// SAFETY: NCCL's communicators may be used from any thread, by one at a time.
unsafe impl Send for Handle {}

impl Rank {
    /// Takes over a communicator that is ready.
    pub(super) fn new(
        nccl: &'static Nccl,
        handle: Handle,
        (rank, size): (usize, usize),
        device: &Device,
        timeout: Duration,
    ) -> Self {
        let (state, progress) = (Mutex::new(State::Live(handle)), Mutex::new(Instant::now()));
        Rank { nccl, rank, size, device: device.clone(), timeout, state, progress }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn nccl(&self) -> &'static Nccl {
        self.nccl
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// When the work that is first in line can have begun, at the earliest.
    pub(super) fn progress(&self) -> Instant {
        *lock(&self.progress)
    }

    pub(super) fn note_progress(&self) {
        *lock(&self.progress) = Instant::now();
    }

    /// What NCCL has failed with in the background, if this thread need not wait to ask.
    ///
    /// # Errors
    /// What it has failed with before.
    pub(crate) fn failure(&self) -> Result<Option<Error>> {
        let Ok(state) = self.state.try_lock() else { return Ok(None) };
        match &*state {
            State::Failed(error) => Err(error.clone()),
            State::Live(handle) => {
                let (function, code) = self.status(*handle);
                Ok(self.nccl.check(function, self.rank, code).err())
            }
        }
    }

    /// The state of a live communicator, and the function that it is from.
    fn status(&self, Handle(comm): Handle) -> (&'static str, Code) {
        status(self.nccl, comm)
    }

    /// Waits until NCCL has done what was asked of a live communicator.
    pub(super) fn settle(&self, handle: Handle, operation: &'static str, start: Instant) -> Result<()> {
        settle(self.nccl, handle.0, operation, self.rank, (start, self.timeout))
    }

    /// Makes later calls fail with `error`. Gives the handle, which is live and to be aborted, unless it has failed before.
    pub(super) fn stop(&self, error: &Error) -> Option<Handle> {
        let mut state = self.lock();
        let State::Live(handle) = *state else { return None };
        *state = State::Failed(error.clone());
        Some(handle)
    }

    /// Aborts the communicator, so that its kernels end.
    pub(super) fn abort(&self, Handle(comm): Handle) {
        // SAFETY: `stop` gave the handle, once: it is live, and no other call takes it any more.
        let _aborted = unsafe { (self.nccl.comm_abort)(comm) };
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let State::Live(Handle(comm)) = state {
            // SAFETY: the handle is live and not used again; its work has run, as the watchdog has let go of it.
            let _destroyed = unsafe { (self.nccl.comm_destroy)(*comm) };
        }
    }
}

fn status(nccl: &Nccl, comm: Comm) -> (&'static str, Code) {
    let mut code = Code::SUCCESS;
    // SAFETY: the handle is live, and `code` valid for the call.
    let asked = unsafe { (nccl.comm_get_async_error)(comm, &mut code) };
    if asked == Code::SUCCESS { ("NCCL", code) } else { ("ncclCommGetAsyncError", asked) }
}

/// Waits until NCCL has done what was asked of a live communicator, for the time-out from `start` on at most.
pub(super) fn settle(
    nccl: &Nccl,
    comm: Comm,
    operation: &'static str,
    rank: usize,
    (start, timeout): (Instant, Duration),
) -> Result<()> {
    let first_look = Instant::now();
    loop {
        let (function, code) = status(nccl, comm);
        if code != Code::IN_PROGRESS {
            return nccl.check(function, rank, code);
        }
        if Instant::now() >= deadline(start, timeout) {
            let milliseconds = milliseconds(timeout);
            return Err(NcclError::TimedOut { operation, rank, milliseconds, missing: Box::default() }.into());
        }
        if first_look.elapsed() < SPIN { std::hint::spin_loop() } else { std::thread::sleep(NAP) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
