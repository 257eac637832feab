//! [`Registered`]: memory that NCCL has allocated, registered with a rank.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use ferrogrid_host::Result;

use super::library::{Code, Comm, Nccl, Windows};
use super::rank::Rank;

/// Memory of NCCL's, registered with a rank. When this is dropped, which comes after all work that uses the memory, the rank takes it back.
pub(crate) struct Registered {
    rank: Arc<Rank>,
    /// Until it is dropped.
    registration: Option<Registration>,
}

/// Memory and its registration.
pub(super) struct Registration {
    memory: Allocation,
    handle: Handle,
}

/// What NCCL gives for memory that is registered.
#[derive(Clone, Copy)]
pub(super) enum Handle {
    /// Of `ncclCommRegister`; null if NCCL has registered nothing (`NCCL_LOCAL_REGISTER=0`).
    Local(*mut c_void),
    /// Of `ncclCommWindowRegister`; not null.
    Window(*mut c_void),
}

/// Memory of `ncclMemAlloc`.
pub(super) struct Allocation {
    nccl: &'static Nccl,
    start: *mut c_void,
}

// SAFETY: NCCL's memory may be freed by any thread.
unsafe impl Send for Allocation {}

// SAFETY: NCCL's memory and handles may be used from any thread; the rank is locked for that.
unsafe impl Send for Registration {}

impl Registered {
    /// `bytes` (not 0) on the device of `rank`.
    ///
    /// # Errors
    /// What the rank has failed with; that of NCCL, which does not tell whether memory is lacking.
    pub(crate) fn new(rank: &Arc<Rank>, bytes: usize) -> Result<Self> {
        rank.works()?;
        let memory = Allocation::new(rank, bytes)?;
        let guard = rank.lock_operations();
        let handle = Handle::local(rank, rank.comm(&guard)?, &memory, bytes)?;
        Ok(Registered { rank: rank.clone(), registration: Some(Registration::new(memory, handle)) })
    }

    pub(crate) fn start(&self) -> *mut c_void {
        self.registration.as_ref().map_or(null_mut(), |registration| registration.memory.start)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registration.take().into_iter().for_each(|registration| self.rank.take_back(registration));
    }
}

impl Handle {
    /// Registers memory with a communicator of `rank`, which is live and locked.
    pub(super) fn local(rank: &Rank, comm: Comm, memory: &Allocation, bytes: usize) -> Result<Self> {
        let mut handle = null_mut();
        // SAFETY: the communicator is live and locked, and the memory has so many bytes of its device.
        let code = unsafe { (rank.nccl().comm_register)(comm, memory.start, bytes, &mut handle) };
        rank.nccl().check("ncclCommRegister", rank.rank(), code)?;
        Ok(Handle::Local(handle))
    }
}

impl Registration {
    pub(super) fn new(memory: Allocation, handle: Handle) -> Self {
        Registration { memory, handle }
    }

    /// Ends it, and frees the memory. A communicator that has failed is none, as it ends all of its registrations itself.
    pub(super) fn end(self, comm: Option<Comm>) {
        let Registration { memory, handle } = self;
        if let Some(comm) = comm {
            // SAFETY: the communicator is live and locked, and has given the handle, which is not used again; no work uses the memory
            // any more.
            let _deregistered = unsafe {
                match handle {
                    Handle::Local(handle) if handle.is_null() => Code::SUCCESS,
                    Handle::Local(handle) => (memory.nccl.comm_deregister)(comm, handle),
                    Handle::Window(window) => {
                        Windows::get().map_or(Code::SUCCESS, |windows| (windows.deregister)(comm, window))
                    }
                }
            };
        }
        drop(memory);
    }
}

impl Allocation {
    /// `bytes` (not 0) on the device of `rank`.
    ///
    /// # Errors
    /// That of NCCL, which does not tell whether memory is lacking.
    pub(super) fn new(rank: &Rank, bytes: usize) -> Result<Self> {
        let nccl = rank.nccl();
        rank.device().context()?.set_current()?;
        let mut start = null_mut();
        // SAFETY: `start` is valid for the call.
        let code = unsafe { (nccl.mem_alloc)(&mut start, bytes) };
        nccl.check("ncclMemAlloc", rank.rank(), code)?;
        Ok(Allocation { nccl, start })
    }

    pub(super) fn start(&self) -> *mut c_void {
        self.start
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated by NCCL, freed once, and no work uses it any more.
        let _freed = unsafe { (self.nccl.mem_free)(self.start) };
    }
}
