//! Peer access and copies between CUDA devices.

use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{CudaDevice, address};
use crate::backend::cuda::driver::Code;
use crate::backend::cuda::memory::pool;
use crate::backend::cuda::stream::CudaStream;
use crate::error::Result;
use crate::sync::lock;

/// The devices whose memory a device may use, by their numbers; one beyond the 64th is never.
pub(crate) struct Peers(AtomicU64);

impl Peers {
    pub(crate) const fn none() -> Self {
        Peers(AtomicU64::new(0))
    }

    fn bit(device: &CudaDevice) -> u64 {
        1_u64.checked_shl(device.ordinal() as u32).unwrap_or(0)
    }

    fn have(&self, device: &CudaDevice) -> bool {
        self.0.load(Ordering::Acquire) & Self::bit(device) != 0
    }

    pub(crate) fn remove(&self, device: &CudaDevice) {
        self.0.fetch_and(!Self::bit(device), Ordering::Release);
    }

    fn add(&self, device: &CudaDevice) {
        self.0.fetch_or(Self::bit(device), Ordering::Release);
    }
}

impl CudaDevice {
    /// Whether this device could use the memory of `peer`, which is another.
    pub(crate) fn can_access_peer(&self, peer: &CudaDevice) -> Result<bool> {
        // SAFETY: `to` is valid for the call, and the handles are the driver's.
        let can = self.get(&format_args!("{self} and {peer}"), |driver, to| unsafe {
            driver.can_access_peer(to, self.handle, peer.handle)
        })?;
        Ok(can != 0)
    }

    /// Lets this device use the memory of `peer`, which is another that it can reach.
    pub(crate) fn enable_peer_access(&self, peer: &CudaDevice) -> Result<()> {
        let context = peer.context()?;
        self.bind()?;
        // SAFETY: both contexts are retained forever; the flags must be 0.
        let code = unsafe { self.driver().enable_peer_access(context, 0)? };
        if code != Code::PEER_ACCESS_ALREADY_ENABLED {
            self.check(code, &format_args!("{peer}"))?;
        }
        // The call above is about `cuMemAlloc` and the like only.
        if peer.has_pools() {
            peer.bind()?;
            pool::allow(peer, peer.pool()?, self)?;
        }
        // Held until the peer is listed, so that pools created later allow it, too.
        let pools = lock(&peer.own_pools);
        pools.iter().try_for_each(|pool| pool::allow(peer, *pool, self))?;
        // As the pools.
        let ranges = lock(&peer.ranges);
        let mut alive = ranges.iter().filter_map(Weak::upgrade);
        alive.try_for_each(|range| range.allow_all(peer, self))?;
        self.peers.add(peer);
        Ok(())
    }

    /// Whether `enable_peer_access` has been called.
    pub(crate) fn has_peer(&self, peer: &CudaDevice) -> bool {
        self.peers.have(peer) && !peer.has_been_reset()
    }
}

impl CudaStream {
    /// Enqueues a copy between two devices.
    ///
    /// # Safety
    /// Both are `bytes` of the device named with them, ordered here for their use.
    pub(crate) unsafe fn copy_peer(
        &self,
        (target, target_device): (*mut u8, &CudaDevice),
        (source, source_device): (*const u8, &CudaDevice),
        bytes: usize,
    ) -> Result<()> {
        let (to, from) = (target_device.context()?, source_device.context()?);
        let (target, source) = (address(target), address(source));
        let object = format_args!("{bytes} bytes from {source_device} to {target_device}");
        // SAFETY: the contexts are retained forever; the caller vouches for the memory.
        self.enqueue(object, |stream| unsafe {
            self.driver().copy_peer(target, to, source, from, bytes, stream)
        })
    }
}
