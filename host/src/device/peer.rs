//! Several devices: what may use whose memory.

use crate::device::Device;
use crate::error::{Error, Result};

impl Device {
    /// Whether kernels of this device could use buffers of `peer` where they are
    /// (`cuDeviceCanAccessPeer`): GPUs that are linked by NVLink or a PCIe switch mostly can; CPU devices can
    /// among each other; a GPU and the CPU cannot. A device can use its own.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// for device in Device::all() {
    ///     for peer in Device::all() {
    ///         if device != peer && device.can_access_peer(&peer)? {
    ///             device.enable_peer_access(&peer)?;
    ///         }
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the driver fails.
    pub fn can_access_peer(&self, peer: &Device) -> Result<bool> {
        if self == peer { Ok(true) } else { self.backend().can_access_peer(peer.backend()) }
    }

    /// From now on, launches and copies on streams of this device take buffers of `peer` as they take their
    /// own (`cuCtxEnablePeerAccess`, `cuMemPoolSetAccess`). Not the other way round. It holds until the
    /// process ends, and for buffers that are there already; to ask twice does no harm.
    ///
    /// Work on such a buffer is ordered between the streams of both devices as between those of one.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{CpuOptions, Device};
    ///
    /// let (first, second) = (Device::cpu(), Device::cpu_with(CpuOptions::new())?);
    /// let theirs = second.new_stream()?.upload(&[1, 2, 3])?;
    /// let stream = first.new_stream()?;
    /// assert!(stream.download(&theirs).is_err());
    /// first.enable_peer_access(&second)?;
    /// assert_eq!(stream.download(&theirs)?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoPeerAccess`] if [`Device::can_access_peer`] says no; or if the driver fails.
    pub fn enable_peer_access(&self, peer: &Device) -> Result<()> {
        if self == peer || self.backend().has_peer(peer.backend()) {
            return Ok(());
        }
        if !self.can_access_peer(peer)? {
            let (device, peer) = (self.to_string().into(), peer.to_string().into());
            return Err(Error::NoPeerAccess { device, peer });
        }
        self.backend().enable_peer_access(peer.backend())
    }
}
