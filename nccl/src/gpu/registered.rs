//! [`Registered`]: memory that NCCL has allocated, registered with a rank.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use ferrogrid_host::Result;

use super::library::Nccl;
use super::rank::Rank;

/// Memory of NCCL's. It is deregistered and freed when this is dropped, which comes after all work that uses it.
pub(crate) struct Registered {
    memory: Allocation,
    /// Null if NCCL has registered nothing (`NCCL_LOCAL_REGISTER=0`).
    handle: *mut c_void,
    rank: Arc<Rank>,
}

/// Memory of `ncclMemAlloc`.
struct Allocation {
    nccl: &'static Nccl,
    start: *mut c_void,
}

// SAFETY: NCCL's memory and handles may be used from any thread; the rank is locked for that.
unsafe impl Send for Registered {}

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
        let comm = rank.handle(&guard)?.0;
        // SAFETY: the communicator is live and locked, and the memory has so many bytes of its device.
        let code = unsafe { (nccl.comm_register)(comm, start, bytes, &mut handle) };
        nccl.check("ncclCommRegister", number, code)?;
        drop(guard);
        Ok(Registered { memory, handle, rank: rank.clone() })
    }

    pub(crate) fn start(&self) -> *mut c_void {
        self.memory.start
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Before the memory is freed.
        self.rank.deregister(self.handle);
        if let Ok(context) = self.rank.device().context() {
            // Memory of another context would be freed there nevertheless.
            let _set = context.set_current();
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated by NCCL, freed once, and no work uses it any more.
        let _freed = unsafe { (self.nccl.mem_free)(self.start) };
    }
}
