//! Memory pools of a user's own, beside the one that each device has.

use super::device::{CudaDevice, devices};
use super::pool::{self, RawPool};
use crate::error::{Error, Result};
use crate::pool_options::PoolOptions;

/// A pool that is destroyed when nobody has it any more. Each buffer in it does.
pub(crate) struct OwnPool {
    device: &'static CudaDevice,
    handle: RawPool,
}

impl OwnPool {
    pub(crate) fn new(device: &'static CudaDevice, options: &PoolOptions) -> Result<Self> {
        if !device.has_pools() {
            return Err(Error::Unsupported {
                operation: "memory pools",
                device: device.to_string().into(),
                reason: "it allocates no memory in stream order (CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)",
            });
        }
        device.bind()?;
        // Held until peers have been told: one that comes meanwhile must not miss the pool.
        let mut pools = device.own_pools();
        let handle = pool::create(device)?;
        pools.push(handle);
        // From here on a failure destroys it.
        let pool = OwnPool { device, handle };
        let mut peers = devices().into_iter().flatten().filter(|peer| peer.has_peer(device));
        let allowed = peers.try_for_each(|peer| pool::allow(device, handle, peer));
        drop(pools);
        allowed?;
        pool::configure(device, handle, options)?;
        Ok(pool)
    }

    pub(crate) fn raw(&self) -> RawPool {
        self.handle
    }
}

impl Drop for OwnPool {
    fn drop(&mut self) {
        self.device.own_pools().retain(|pool| pool.as_raw() != self.handle.as_raw());
        // A failure means that the context is gone, and its pools with it.
        if self.device.bind().is_ok() {
            // SAFETY: the pool is live, and nobody allocates from it any more. What is still to be freed in stream order
            // keeps its memory until then, as the driver says of this call.
            let _ = unsafe { self.device.driver().pool_destroy(self.handle.as_raw()) };
        }
    }
}
