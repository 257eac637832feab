//! [`Registered`]: memory that NCCL has allocated, registered with a rank.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use ferrogrid_host::Result;

use super::library::{Comm, Nccl};
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
    /// Null if NCCL has registered nothing (`NCCL_LOCAL_REGISTER=0`).
    handle: *mut c_void,
}

/// Memory of `ncclMemAlloc`.
struct Allocation {
    nccl: &'static Nccl,
    start: *mut c_void,
}

// SAFETY: NCCL's memory and handles may be used from any thread; the rank is locked for that.
unsafe impl Send for Registration {}

impl Registered {
    /// `bytes` (not 0) on the device of `rank`.
    ///
    /// # Errors
    /// What the rank has failed with; that of NCCL, which does not tell whether memory is lacking.
    pub(crate) fn new(rank: &Arc<Rank>, bytes: usize) -> Result<Self> {
        let (nccl, number) = (rank.nccl(), rank.rank());
        rank.works()?;
        rank.device().context()?.set_current()?;
        let mut start = null_mut();
        // SAFETY: `start` is valid for the call.
        let code = unsafe { (nccl.mem_alloc)(&mut start, bytes) };
        nccl.check("ncclMemAlloc", number, code)?;
        let memory = Allocation { nccl, start };
        let (guard, mut handle) = (rank.lock_operations(), null_mut());
        let comm = rank.comm(&guard)?;
        // SAFETY: the communicator is live and locked, and the memory has so many bytes of its device.
        let code = unsafe { (nccl.comm_register)(comm, start, bytes, &mut handle) };
        nccl.check("ncclCommRegister", number, code)?;
        Ok(Registered { rank: rank.clone(), registration: Some(Registration { memory, handle }) })
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

impl Registration {
    /// Ends it, and frees the memory. A communicator that has failed is none, as it ends all of its registrations itself.
    pub(super) fn end(self, comm: Option<Comm>) {
        let Registration { memory, handle } = self;
        if let Some(comm) = comm.filter(|_| !handle.is_null()) {
            // SAFETY: the communicator is live and locked, and has given the handle, which is not used again.
            let _deregistered = unsafe { (memory.nccl.comm_deregister)(comm, handle) };
        }
        drop(memory);
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated by NCCL, freed once, and no work uses it any more.
        let _freed = unsafe { (self.nccl.mem_free)(self.start) };
    }
}
