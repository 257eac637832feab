//! Buffers and events that several processes share (CUDA IPC; on the CPU device shared memory of the system).
//! `handle` has the bytes that name them.

mod handle;

use bytemuck::Zeroable;
use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use crate::backend::{EventBackend, SharedMemory};
use crate::device::Device;
use crate::error::Result;
use crate::error::ipc::IpcError;
use crate::memory::buffer::{DeviceBuffer, refuse_recording};
use crate::memory::kind::over_device_buffer;
use crate::stream::Stream;
use crate::stream::event::{Event, no_events};

pub use handle::{IpcEventHandle, IpcMemoryHandle};

/// A buffer that other processes can open: made by [`Stream::ipc_zeros`], opened by [`Stream::ipc_open`].
/// Launches and copies take `&buffer` and `&mut buffer` as of any [`DeviceBuffer`].
///
/// Processes do not know of each other's streams, so they must order their work on it themselves: by
/// events made with [`EventOptions::interprocess`](crate::EventOptions::interprocess), or by waiting and notifying.
///
/// The process that created it keeps it until all others have dropped theirs.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// # #[cfg(target_os = "linux")]
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{IpcBuffer, IpcMemoryHandle};
///
/// let mut made = stream.ipc_zeros::<f32>(4)?;
/// stream.fill_into(1.0, made.view_mut())?;
/// stream.fill_into(2.0, made.slice_mut(..2)?)?;
/// stream.synchronize()?; // before the other process may look
/// let bytes = made.ipc_handle().to_bytes(); // to it, by a pipe or a file
///
/// // There (on the CPU device also here, to try it):
/// let handle = IpcMemoryHandle::from_bytes(&bytes)?;
/// assert_eq!(handle.byte_len(), 16);
/// // SAFETY: they are `f32`; they are not written now; `made` is dropped later.
/// let opened: IpcBuffer<f32> = unsafe { stream.ipc_open(&handle)? };
/// assert_eq!(stream.download(&opened)?, [2.0, 2.0, 1.0, 1.0]);
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct IpcBuffer<T: DeviceCopy> {
    buffer: DeviceBuffer<T>,
    handle: IpcMemoryHandle,
}

over_device_buffer!(IpcBuffer);

impl Stream {
    /// A new buffer of `len` elements whose bytes are all 0, that other processes can open (`cuMemAlloc`,
    /// `cuIpcGetMemHandle`; on the CPU device of Linux `memfd_create`). Waits until it is zeroed. On a GPU it
    /// takes a multiple of 2 MiB, so that nothing else is in memory that others can see.
    ///
    /// ```no_run
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cuda(0)?.new_stream()?;
    /// let mut buffer = stream.ipc_zeros::<f32>(1000)?;
    /// stream.fill_into(1.0, &mut buffer)?;
    /// stream.synchronize()?;
    /// // Give these bytes to the other process, by a pipe or a file.
    /// let bytes: Vec<u8> = buffer.ipc_handle().to_bytes();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`IpcError::Empty`] for 0 bytes; [`Error::SizeOverflow`](crate::Error::SizeOverflow), [`Error::OutOfMemory`](crate::Error::OutOfMemory);
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device of other systems than Linux; or a failure of the device.
    pub fn ipc_zeros<T: DeviceCopy + Zeroable>(&self, len: usize) -> Result<IpcBuffer<T>> {
        refuse_recording(self)?;
        let bytes = DeviceBuffer::<T>::bytes_of(len)?;
        if bytes == 0 {
            return Err(IpcError::Empty.into());
        }
        let (shared, origin) = SharedMemory::allocate(self.device().backend(), bytes)?;
        let handle = IpcMemoryHandle { origin, bytes };
        // SAFETY: the memory is this device's and new, zeroed (which is an element of `T`).
        unsafe { IpcBuffer::of(self, shared, len, handle) }
    }

    /// The buffer that another process has made and named by `handle` (`cuIpcOpenMemHandle`). Dropping it
    /// closes it here (`cuIpcCloseMemHandle`), after all work that uses it.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::IpcMemoryHandle;
    ///
    /// /// The sum of a buffer of `f32` that another process has filled, and now leaves alone.
    /// fn sum(stream: &Stream, bytes: &[u8]) -> ferrogrid::Result<f32> {
    ///     let handle = IpcMemoryHandle::from_bytes(bytes)?;
    ///     // SAFETY: as this function says; its maker keeps it until it has the answer.
    ///     let theirs = unsafe { stream.ipc_open::<f32>(&handle)? };
    ///     Ok(stream.download(&theirs)?.iter().sum())
    /// }
    /// assert!(sum(&Device::cpu().new_stream()?, b"no handle").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`IpcError::OtherKind`] if it is of a GPU and this the CPU, or the other way round;
    /// [`IpcError::Elements`] if its bytes are no whole number of elements; [`IpcError::Gone`] if its maker is
    /// gone; or the driver's error: a process cannot open its own buffer on a GPU.
    ///
    /// # Safety
    /// - Its elements are of type `T`.
    /// - The processes keep their uses of it apart: while one writes, no other uses the same elements, neither
    ///   in work that is enqueued nor by a borrow.
    /// - The process that made it keeps it until this buffer is dropped and the work that uses it has run.
    pub unsafe fn ipc_open<T: DeviceCopy>(&self, handle: &IpcMemoryHandle) -> Result<IpcBuffer<T>> {
        refuse_recording(self)?;
        let (bytes, len) = (handle.byte_len(), handle.elements::<T>()?);
        let shared = SharedMemory::open(self.device().backend(), &handle.origin, bytes)?;
        // SAFETY: the memory is this device's; the caller vouches for the elements, and for what other processes do.
        unsafe { IpcBuffer::of(self, shared, len, handle.clone()) }
    }
}

impl<T: DeviceCopy> IpcBuffer<T> {
    /// # Safety
    /// `shared` is memory of the stream's device, with `len` elements, which other processes use as `Stream::ipc_open` says.
    unsafe fn of(stream: &Stream, shared: SharedMemory, len: usize, handle: IpcMemoryHandle) -> Result<Self> {
        // SAFETY: passed on; it stays until `shared` is dropped.
        let buffer = unsafe { DeviceBuffer::foreign(stream, shared.start().cast(), len, Box::new(shared))? };
        Ok(IpcBuffer { buffer, handle })
    }

    /// What another process needs to open it: see [`Stream::ipc_open`].
    pub fn ipc_handle(&self) -> &IpcMemoryHandle {
        &self.handle
    }
}

impl Event {
    /// A handle with which another process waits for this event or records it (`cuIpcGetEventHandle`).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::EventOptions;
    ///
    /// let device = Device::cuda(0)?;
    /// let stream = device.new_stream()?;
    /// let filled = device.new_event(EventOptions::new().interprocess())?;
    /// let bytes = filled.ipc_handle()?.to_bytes(); // to the other process, once
    /// let mut shared = stream.ipc_zeros::<f32>(1000)?;
    /// stream.fill_into(1.0, &mut shared)?;
    /// stream.record_into(&filled)?; // what it waits for
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`IpcError::NotInterprocess`] if it was not made with
    /// [`EventOptions::interprocess`](crate::EventOptions::interprocess); [`Error::Unsupported`](crate::Error::Unsupported) on the CPU
    /// device; or if the driver fails.
    pub fn ipc_handle(&self) -> Result<IpcEventHandle> {
        match self.cuda() {
            Some(event) if event.is_interprocess() => {
                event.ipc_handle().map(|origin| IpcEventHandle { origin })
            }
            Some(_) => Err(IpcError::NotInterprocess.into()),
            None => Err(no_events(self.device())),
        }
    }
}

impl Device {
    /// The event that another process has made and named by `handle` (`cuIpcOpenEventHandle`), to wait for
    /// what that process records. It has no time.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::IpcEventHandle;
    ///
    /// let bytes = std::fs::read("event").unwrap(); // from the process that records it
    /// let device = Device::cuda(0)?;
    /// let filled = device.ipc_open_event(&IpcEventHandle::from_bytes(&bytes)?)?;
    /// let stream = device.new_stream()?;
    /// stream.wait(&filled)?; // what comes here starts after their work
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device; or what the driver says: a process cannot open what it has
    /// made itself.
    pub fn ipc_open_event(&self, handle: &IpcEventHandle) -> Result<Event> {
        let backend = EventBackend::ipc_open(self.backend(), &handle.origin)?;
        Ok(Event::new(self.clone(), backend.ok_or_else(|| no_events(self))?))
    }
}
