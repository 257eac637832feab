//! Memory pools that the user creates, in addition to each device's pool.

#[cfg(unix)]
use std::sync::atomic::AtomicBool;

use super::pool::{self, RawPool};
use crate::backend::cuda::device::{CudaDevice, devices};
use crate::backend::{PoolKind, PoolOptions};
use crate::error::Result;
use crate::sync::lock;

/// A pool that is destroyed with its last owner. Each buffer in it is one.
pub(crate) struct OwnPool {
    pub(crate) device: &'static CudaDevice,
    pub(crate) handle: RawPool,
    /// Whether another process may have been given it.
    #[cfg(unix)]
    pub(crate) is_shared: AtomicBool,
}

impl OwnPool {
    /// `reuse` is as in `pool::configure`.
    pub(crate) fn new(device: &'static CudaDevice, options: &PoolOptions) -> Result<Self> {
        let (kind, shareable) = (options.kind, options.shareable);
        pool::check(device, kind, shareable)?;
        let pool = OwnPool::made(device, kind, || pool::create(device, kind, shareable))?;
        pool::configure(device, pool.handle, options)?;
        Ok(pool)
    }

    /// What `make` makes, for `device` and its peers.
    pub(crate) fn made(
        device: &'static CudaDevice,
        kind: PoolKind,
        make: impl FnOnce() -> Result<RawPool>,
    ) -> Result<Self> {
        device.bind()?;
        // Held until peers are enabled: a peer added meanwhile must not miss the pool.
        let mut pools = lock(&device.own_pools);
        let handle = make()?;
        // From here on a failure destroys it.
        let pool = OwnPool {
            device,
            handle,
            #[cfg(unix)]
            is_shared: AtomicBool::new(false),
        };
        // Managed memory is for all.
        if kind != PoolKind::Managed {
            pools.push(handle);
            let peers = devices().into_iter().flatten().filter(|peer| peer.has_peer(device));
            // What is near the host is at first for the host alone.
            let own = (kind != PoolKind::Device).then_some(device);
            let allowed = own.into_iter().chain(peers).try_for_each(|user| pool::allow(device, handle, user));
            // To be dropped it needs the list.
            drop(pools);
            allowed?;
        }
        Ok(pool)
    }
}

impl Drop for OwnPool {
    fn drop(&mut self) {
        lock(&self.device.own_pools).retain(|pool| pool.as_raw() != self.handle.as_raw());
        // A failure means that the context is gone, and its pools with it.
        // SAFETY: the pool is live, and no allocations from it follow. What is still to be freed in stream order
        // keeps its memory until then, as the driver says of this call.
        self.device.release(|driver| unsafe { driver.pool_destroy(self.handle.as_raw()) });
    }
}
