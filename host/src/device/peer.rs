//! Peer access between devices, and copies between them.

use ferrogrid_device::DeviceCopy;

use crate::backend::recording::refusal::not_recordable;
use crate::copy::agree;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::argument::{DeviceInput, DeviceOutput};
use crate::memory::buffer::DeviceBuffer;
use crate::memory::{Contents, Memory};
use crate::order::Use;
use crate::order::access::Access;
use crate::profile::{self, Work};
use crate::stream::Stream;

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

impl Stream {
    /// Enqueues a copy between buffers or views of the same length on two devices (`cuMemcpyPeerAsync`), in
    /// order with other work on either. The stream is one of either device. Peer access is not needed; GPUs
    /// that have none copy by way of the host.
    ///
    /// Between a GPU and the CPU this waits for the copy; among GPUs, and among CPU devices, it does not.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{CpuOptions, Device};
    ///
    /// let (first, second) = (Device::cpu(), Device::cpu_with(CpuOptions::new())?);
    /// let (stream, other) = (first.new_stream()?, second.new_stream()?);
    /// let source = stream.upload(&[1, 2, 3])?;
    /// let mut target = other.zeros::<i32>(3)?;
    /// stream.copy_peer(&source, &mut target)?;
    /// assert_eq!(other.download(&target)?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::DeviceMismatch`] if neither is of this stream's device; or a failure
    /// of a device.
    pub fn copy_peer<'a, 'b, T: DeviceCopy>(
        &self,
        source: impl DeviceInput<'a, T>,
        target: impl DeviceOutput<'b, T>,
    ) -> Result<()> {
        let (source, target) = (source.into_input(), target.into_output());
        agree("copy_peer", source.len(), target.len())?;
        let copy = PeerCopy {
            target: (target.start().cast(), target.memory(), target.usage()),
            source: (source.start().cast(), source.memory()),
            bytes: source.len() * size_of::<T>(),
        };
        // SAFETY: both views are that many bytes, borrowed until this returns; they do not overlap, because
        // one is borrowed mutably.
        unsafe { copy.run(self) }
    }

    /// A new buffer on this stream's device with a copy of a buffer or view of another; see
    /// [`Stream::copy_peer`].
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (first, second) = (Device::cpu(), Device::cpu_with(ferrogrid::CpuOptions::new())?);
    /// let theirs = second.new_stream()?.upload(&[1, 2, 3])?;
    /// let stream = first.new_stream()?;
    /// let ours = stream.duplicate_peer(&theirs)?;
    /// assert_eq!((ours.device(), stream.download(&ours)?), (&first, vec![1, 2, 3]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or a failure of a device.
    pub fn duplicate_peer<'a, T: DeviceCopy>(
        &self,
        source: impl DeviceInput<'a, T>,
    ) -> Result<DeviceBuffer<T>> {
        let source = source.into_input();
        let mut copy = DeviceBuffer::allocate(self, source.len(), Contents::Uninitialised)?;
        self.copy_peer(source, &mut copy)?;
        Ok(copy)
    }
}

/// A copy between memory of any two devices.
struct PeerCopy<'a> {
    target: (*mut u8, &'a Memory, Use),
    source: (*const u8, &'a Memory),
    bytes: usize,
}

impl PeerCopy<'_> {
    /// # Safety
    /// Source and target are that many bytes of their memory, do not overlap, and are borrowed until this
    /// returns: the target for writing.
    unsafe fn run(&self, stream: &Stream) -> Result<()> {
        let ((_, target, _), (_, source)) = (self.target, self.source);
        if ![source, target].iter().any(|memory| memory.device() == stream.device()) {
            return Err(source.mismatch(stream.inner()));
        }
        if stream.inner().recording().is_some() {
            return Err(not_recordable("a copy between devices", "a graph has the memory of one device"));
        }
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: passed on.
        unsafe {
            match (target.device().is_cuda(), source.device().is_cuda()) {
                (false, true) => self.gpu_to_host(stream),
                (true, false) => self.host_to_gpu(stream),
                _ => self.enqueue(stream),
            }
        }
    }

    /// Enqueues the copy, both devices being of one kind, which is the stream's.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn enqueue(&self, stream: &Stream) -> Result<()> {
        let ((to, target, usage), (from, source)) = (self.target, self.source);
        if source.is_of_host() || target.is_of_host() {
            source.begin(stream.inner(), Use::Read)?;
            target.begin(stream.inner(), usage)?;
            // SAFETY: passed on; both can be addressed on the stream's device, and are ordered for their use here.
            unsafe { stream.inner().copy(to, from, self.bytes, (target.place(), source.place()))? };
            self.target_access().receive(source, stream.inner());
            return Ok(());
        }
        source.begin_on_any_device(stream.inner(), Use::Read)?;
        target.begin_on_any_device(stream.inner(), usage)?;
        if stream.device().is_cuda() {
            let (to, from) = ((to, target.device().backend()), (from, source.device().backend()));
            // SAFETY: passed on; both have been ordered for their use here.
            let copy = || unsafe { stream.inner().backend().copy_peer(to, from, self.bytes) };
            profile::observe(stream.inner(), Work::Copy { bytes: self.bytes }, copy)?;
        } else {
            // SAFETY: as above; the memory of all CPU devices is that of the host.
            unsafe { stream.inner().copy(to, from, self.bytes, (target.place(), source.place()))? };
        }
        self.target_access().receive(source, stream.inner());
        Ok(())
    }

    fn target_access(&self) -> Access<'_> {
        let (_, target, usage) = self.target;
        Access::new(target, usage).of_bytes(self.bytes)
    }

    /// Copies from a GPU to the CPU device, and waits for that.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn gpu_to_host(&self, stream: &Stream) -> Result<()> {
        let ((to, target, usage), (from, source)) = (self.target, self.source);
        target.wait_on_host(usage)?;
        let sources = source.writers().sources();
        on_device_of(source, stream, |stream| {
            source.begin(stream.inner(), Use::Read)?;
            // SAFETY: passed on. Nothing else uses the target: what did has run, and it is borrowed.
            unsafe { stream.inner().copy_to_host(to, from, self.bytes) }
        })?;
        sources.check()?;
        self.target_access().overwrite(stream.inner());
        Ok(())
    }

    /// Copies from the CPU device to a GPU, and waits for that.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn host_to_gpu(&self, stream: &Stream) -> Result<()> {
        let ((to, target, usage), (from, source)) = (self.target, self.source);
        source.wait_on_host(Use::Read)?;
        source.writers().sources().check()?;
        on_device_of(target, stream, |stream| {
            target.begin(stream.inner(), usage)?;
            // SAFETY: passed on. What wrote the source has run, and it is borrowed.
            unsafe { stream.inner().copy_from_host(to, from, self.bytes) }
        })
    }
}

/// Calls `work` with `stream` if it is of the device of `memory`, else with another that is.
fn on_device_of(memory: &Memory, stream: &Stream, work: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
    if memory.device() == stream.device() {
        return work(stream);
    }
    work(&memory.device().new_stream()?)
}
