//! Copies between memory of several devices.

use ferrogrid_device::DeviceCopy;

use crate::backend::Contents;
use crate::backend::recording::refusal::not_recordable;
use crate::error::Result;
use crate::memory::access::{Access, enqueue};
use crate::memory::buffer::DeviceBuffer;
use crate::profile::{self, Work};
use crate::stream::{Stream, StreamInner};
use crate::view::agree;
use crate::view::argument::{DeviceInput, DeviceOutput};

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
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch); [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if neither is of this stream's device; or a failure
    /// of a device.
    pub fn copy_peer<'a, 'b, T: DeviceCopy>(
        &self,
        source: impl DeviceInput<'a, T>,
        target: impl DeviceOutput<'b, T>,
    ) -> Result<()> {
        let (source, target) = (source.into_input(), target.into_output());
        agree("copy_peer", source.len(), target.len())?;
        let copy = PeerCopy {
            to: target.start().cast(),
            from: source.start().cast(),
            bytes: source.len() * size_of::<T>(),
            target: target.access(),
            source: source.access(),
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
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or a failure of a device.
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
    to: *mut u8,
    from: *const u8,
    bytes: usize,
    target: Access<'a>,
    source: Access<'a>,
}

impl PeerCopy<'_> {
    /// # Safety
    /// Source and target are that many bytes of their memory, do not overlap, and are borrowed until this
    /// returns: the target for writing.
    unsafe fn run(&self, stream: &Stream) -> Result<()> {
        let (target, source) = (self.target.memory(), self.source.memory());
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
        let (target, source, stream) = (self.target.memory(), self.source.memory(), stream.inner());
        let places = (target.place(), source.place());
        // SAFETY: passed on; both can be addressed on the stream's device, and are ordered before this.
        let copy = || unsafe { stream.copy(self.to, self.from, self.bytes, places) };
        if source.is_of_host() || target.is_of_host() {
            return enqueue(stream, Some(self.source), Some(self.target), self.bytes, copy);
        }
        source.begin_on_any_device(stream, self.source.usage())?;
        target.begin_on_any_device(stream, self.target.usage())?;
        if stream.device().is_cuda() {
            let to = (self.to, target.device().backend());
            let from = (self.from, source.device().backend());
            // SAFETY: passed on; both have been ordered for their use here.
            let copy = || unsafe { stream.backend().copy_peer(to, from, self.bytes) };
            profile::observe(stream, Work::Copy { bytes: self.bytes }, copy)?;
        } else {
            // The memory of all CPU devices is that of the host.
            copy()?;
        }
        self.target.receive(source, stream);
        Ok(())
    }

    /// Copies from a GPU to the CPU device, and waits for that.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn gpu_to_host(&self, stream: &Stream) -> Result<()> {
        self.target.memory().wait_on_host(self.target.usage())?;
        let sources = self.source.memory().writers().sources();
        on_device_of(self.source, stream, |stream| {
            // SAFETY: passed on. Nothing else uses the target: what did has run, and it is borrowed.
            unsafe { stream.copy_to_host(self.to, self.from, self.bytes) }
        })?;
        sources.check()?;
        self.target.overwrite(stream.inner());
        Ok(())
    }

    /// Copies from the CPU device to a GPU, and waits for that.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn host_to_gpu(&self, stream: &Stream) -> Result<()> {
        self.source.memory().wait_on_host(self.source.usage())?;
        self.source.memory().writers().sources().check()?;
        on_device_of(self.target, stream, |stream| {
            // SAFETY: passed on. What wrote the source has run, and it is borrowed.
            unsafe { stream.copy_from_host(self.to, self.from, self.bytes) }
        })
    }
}

/// Calls `work` with `stream` if it is of the device of what is used, else with another that is, ordered for that use.
fn on_device_of(
    used: Access<'_>,
    stream: &Stream,
    work: impl FnOnce(&StreamInner) -> Result<()>,
) -> Result<()> {
    let device = used.memory().device();
    let own = if device == stream.device() { None } else { Some(device.new_stream()?) };
    let stream = own.as_ref().unwrap_or(stream).inner();
    used.begin(stream)?;
    work(stream)
}
