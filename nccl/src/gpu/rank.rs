//! [`Rank`]: one rank of a communicator, and its end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ferrogrid_host::__private::WorkLine;
use ferrogrid_host::{Device, Error, NcclError, Result};

use super::activity::Activity;
use super::library::{Code, Comm, Nccl};
use super::registered::Registration;
use super::windows::WindowList;
use crate::options::milliseconds;

/// One rank. It is destroyed when it is dropped, which comes after all of its work: the watchdog has a share meanwhile.
///
/// It is two communicators of NCCL. Operations are given to one whose calls block, since NCCL starts a thread for each call of one
/// whose calls do not: that takes six times as long. A call that waits for a lost peer can be ended only by setting a flag that
/// `ncclCommAbort` sets before it frees the communicator under the call. So that communicator is split from another, with which it
/// shares the flag (`splitShare`): to abort the parent ends the call, and then the one for operations can be aborted.
pub(crate) struct Rank {
    nccl: &'static Nccl,
    rank: usize,
    size: usize,
    device: Device,
    timeout: Duration,
    /// Its calls do not block. None when it has been aborted.
    parent: Mutex<Option<Handle>>,
    operations: Mutex<Operations>,
    /// Why it is aborted, which comes first.
    failed: OnceLock<Error>,
    /// What of them has not ended.
    activity: Activity,
    /// Registrations that are to be ended.
    returned: Mutex<Vec<Registration>>,
    /// Whether there may be some.
    has_returned: AtomicBool,
    /// Its symmetric buffers.
    windows: Mutex<WindowList>,
    /// Locked while one more is made.
    registering: Mutex<()>,
    /// How many shares graphs have of it. While there are any, the communicator for operations cannot be ended.
    graphs: AtomicUsize,
}

/// What operations use, locked during each call.
pub(super) struct Operations {
    /// Split from the parent. None when it has been aborted.
    comm: Option<Handle>,
    /// The works of operations.
    pub(super) line: WorkLine,
}

/// A communicator's handle, used under the lock of its rank.
#[derive(Clone, Copy)]
pub(super) struct Handle(pub(super) Comm);

// SAFETY: NCCL's communicators may be used from any thread, by one at a time.
unsafe impl Send for Handle {}

/// Operations of a rank that are locked.
pub(super) type Guard<'a> = MutexGuard<'a, Operations>;

impl Rank {
    /// Takes over communicators that are ready.
    pub(super) fn new(
        nccl: &'static Nccl,
        (parent, operations): (Comm, Comm),
        (rank, size): (usize, usize),
        device: &Device,
        timeout: Duration,
    ) -> Self {
        let parent = Mutex::new(Some(Handle(parent)));
        let operations = Mutex::new(Operations { comm: Some(Handle(operations)), line: WorkLine::new() });
        let (device, failed) = (device.clone(), OnceLock::new());
        let (returned, has_returned) = (Mutex::default(), AtomicBool::new(false));
        let (windows, registering) = (Mutex::default(), Mutex::default());
        let (activity, graphs) = (Activity::new(), AtomicUsize::new(0));
        Rank {
            nccl,
            rank,
            size,
            device,
            timeout,
            parent,
            operations,
            failed,
            activity,
            returned,
            has_returned,
            windows,
            registering,
            graphs,
        }
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

    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// What operations use, unless a call has it.
    pub(super) fn try_lock_operations(&self) -> Option<Guard<'_>> {
        self.operations.try_lock().ok()
    }

    /// What operations use.
    pub(super) fn lock_operations(&self) -> Guard<'_> {
        lock(&self.operations)
    }

    /// The communicator for splits.
    pub(super) fn lock_parent(&self) -> MutexGuard<'_, Option<Handle>> {
        lock(&self.parent)
    }

    /// The communicator of locked operations.
    ///
    /// # Errors
    /// What the rank has failed with.
    #[inline]
    pub(super) fn comm(&self, operations: &Operations) -> Result<Comm> {
        self.live(operations.comm)
    }

    /// A communicator of this rank that is locked.
    ///
    /// # Errors
    /// What the rank has failed with.
    #[inline]
    pub(super) fn live(&self, handle: Option<Handle>) -> Result<Comm> {
        self.works()?;
        Ok(handle.expect("it is aborted after it has failed").0)
    }

    /// # Errors
    /// What it has failed with.
    pub(crate) fn works(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// What NCCL has failed with in the background, if this thread need not wait to ask.
    ///
    /// # Errors
    /// What it has failed with before.
    pub(crate) fn failure(&self) -> Result<Option<Error>> {
        let Some(guard) = self.try_lock_operations() else { return self.works().map(|()| None) };
        let (function, code) = status(self.nccl, self.comm(&guard)?);
        Ok(self.nccl.check(function, self.rank, code).err())
    }

    /// Makes later calls fail with `error`, unless it has failed before.
    pub(super) fn stop(&self, error: &Error) {
        let _earlier = self.failed.set(error.clone());
    }

    /// Ends the operations of a rank that has been stopped, and calls that wait for peers.
    pub(super) fn end_calls(&self) {
        let handle = self.lock_parent().take();
        self.abort(handle);
    }

    /// Frees what is left of a rank whose calls have been ended. If one has not returned yet, that is left to its thread, or to
    /// the end of the rank; so it is if there are graphs.
    pub(super) fn release(&self) {
        if let Some(mut guard) = self.try_lock_operations()
            && self.graphs.load(Ordering::Acquire) == 0
        {
            self.abort(guard.comm.take());
        }
    }

    /// Takes back a registration: now, unless a call has locked operations. That may wait for other ranks, whose threads may be the
    /// one that is here; then it is done at the next call.
    pub(super) fn take_back(&self, registration: Registration) {
        lock(&self.returned).push(registration);
        self.has_returned.store(true, Ordering::Release);
        if let Some(guard) = self.try_lock_operations() {
            self.end_returned(&guard);
        }
    }

    /// Whether there may be registrations that are to be ended.
    #[inline]
    pub(super) fn has_returned(&self) -> bool {
        self.has_returned.load(Ordering::Acquire)
    }

    /// Ends the registrations that have been taken back.
    pub(super) fn end_returned(&self, operations: &Operations) {
        if !self.has_returned() {
            return;
        }
        // Before they are taken: what comes meanwhile sets it again.
        self.has_returned.store(false, Ordering::Release);
        let returned = std::mem::take(&mut *lock(&self.returned));
        if self.device.context().and_then(|context| context.set_current()).is_err() {
            // A device that has failed has no memory to free.
            return returned.into_iter().for_each(std::mem::forget);
        }
        let comm = self.comm(operations).ok();
        returned.into_iter().for_each(|registration| registration.end(comm));
    }

    /// Its symmetric buffers.
    pub(super) fn windows(&self) -> MutexGuard<'_, WindowList> {
        lock(&self.windows)
    }

    /// To be held while a symmetric buffer is made, before operations are locked.
    pub(super) fn lock_registering(&self) -> MutexGuard<'_, ()> {
        lock(&self.registering)
    }

    /// A graph has a share from now on; operations are locked.
    pub(super) fn add_graph(&self) {
        self.graphs.fetch_add(1, Ordering::Relaxed);
    }

    /// A share is gone, and so are the driver's graphs.
    pub(super) fn remove_graph(&self) {
        self.graphs.fetch_sub(1, Ordering::Release);
    }

    fn abort(&self, handle: Option<Handle>) {
        if let Some(Handle(comm)) = handle {
            // SAFETY: the handle was live, and no other call takes it any more.
            let _aborted = unsafe { (self.nccl.comm_abort)(comm) };
        }
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        let mut failed_windows = None;
        let guard = self.lock_operations();
        self.end_returned(&guard);
        let is_usable = self.device.context().and_then(|context| context.set_current()).is_ok();
        let (comm, windows) = (self.comm(&guard).ok(), std::mem::take(&mut *self.windows()));
        drop(guard);
        if let Some(comm) = comm.filter(|_| is_usable) {
            windows.end(Some(comm));
        } else if is_usable {
            failed_windows = Some(windows);
        } else {
            // A device that has failed has no memory to free.
            std::mem::forget(windows);
        }
        let end = if self.failed.get().is_some() { self.nccl.comm_abort } else { self.nccl.comm_destroy };
        let operations = self.operations.get_mut().unwrap_or_else(PoisonError::into_inner);
        let parent = self.parent.get_mut().unwrap_or_else(PoisonError::into_inner);
        for Handle(comm) in operations.comm.take().into_iter().chain(parent.take()) {
            // SAFETY: the handle is live and not used again; its work has run, as the watchdog has let go of it.
            let _ended = unsafe { end(comm) };
        }
        // A communicator that has failed unmaps its windows when it is aborted.
        failed_windows.into_iter().for_each(|windows| windows.end(None));
    }
}

/// The state of a live communicator, and the function that it is from.
pub(super) fn status(nccl: &Nccl, comm: Comm) -> (&'static str, Code) {
    let mut code = Code::SUCCESS;
    // SAFETY: the handle is live, and `code` valid for the call.
    let asked = unsafe { (nccl.comm_get_async_error)(comm, &mut code) };
    if asked == Code::SUCCESS { ("NCCL", code) } else { ("ncclCommGetAsyncError", asked) }
}

/// The ranks, each once, in the order in which they are locked wherever several are.
pub(super) fn in_order_of_locks(mut ranks: Vec<&Arc<Rank>>) -> Vec<&Arc<Rank>> {
    ranks.sort_by_key(|rank| Arc::as_ptr(rank).addr());
    ranks.dedup_by_key(|rank| Arc::as_ptr(rank));
    ranks
}

pub(super) fn timed_out(operation: &'static str, rank: usize, timeout: Duration) -> Error {
    let milliseconds = milliseconds(timeout);
    NcclError::TimedOut { operation, rank, milliseconds, missing: Box::default() }.into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
