//! Page-locked memory of the host: what devices copy from and to while the host goes on. It must not
//! know how a copy happens.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Zeroable;
use ferrogrid_device::DeviceCopy;

use crate::backend::{DeviceBackend, cpu};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::{ALIGNMENT, Contents, Memory};
use crate::retired;
use crate::stream::StreamInner;

/// `len` elements of type `T` in page-locked memory of the host: a slice that devices can read and write
/// on their own, in the background and at the full speed of the bus.
///
/// [`Stream::upload_async`](crate::Stream::upload_async) and
/// [`Stream::download_async`](crate::Stream::download_async) take it by value and give it back when the
/// copy has run, so that nobody can touch it meanwhile. On the CPU device it is ordinary memory. It is
/// page-locked for all devices.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::Device;
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let mut host = device.pinned_zeros::<f32>(1000)?;
/// host.fill(1.5); // it is a slice
///
/// let mut buffer = stream.zeros::<f32>(1000)?;
/// let upload = stream.upload_async(host, &mut buffer)?;
/// // ... the host goes on meanwhile ...
/// let host = upload.wait()?;
/// let host = stream.download_async(&buffer, host)?.wait()?;
/// assert_eq!(host[999], 1.5);
/// # Ok(()) }
/// ```
///
/// Nobody can read it while a copy writes it:
///
/// ```compile_fail,E0382
/// # fn main() -> ferrogrid_host::Result<()> {
/// let device = ferrogrid_host::Device::cpu();
/// let stream = device.new_stream()?;
/// let (buffer, host) = (stream.zeros::<f32>(2)?, device.pinned_zeros::<f32>(2)?);
/// let download = stream.download_async(&buffer, host)?;
/// assert_eq!(host[0], 0.0);
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let mut frames = device.pinned_zeros_write_combined::<u8>(4)?; // the host only writes there
/// frames.copy_from_slice(&[1, 2, 3, 4]);
/// let mut buffer = stream.zeros::<u8>(4)?;
/// let frames = stream.upload_async(frames, &mut buffer)?.wait()?;
/// assert_eq!(frames.device(), &device);
///
/// let back = stream.download_async(&buffer, device.pinned_copy(&[0; 4])?)?.wait()?;
/// assert_eq!(back.into_vec(), [1, 2, 3, 4]);
/// # Ok(()) }
/// ```
pub struct PinnedBuffer<T: DeviceCopy> {
    start: NonNull<T>,
    len: usize,
    device: Device,
    origin: Origin,
}

/// Where page-locked memory is from.
#[derive(Clone, Copy)]
enum Origin {
    /// Nowhere: it has no bytes.
    Empty,
    /// Allocated as such.
    Allocated,
    /// A `Vec` of that capacity, registered.
    Registered { capacity: usize },
}

// SAFETY: a buffer owns its elements, like a `Vec<T>`.
unsafe impl<T: DeviceCopy + Send> Send for PinnedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopy + Sync> Sync for PinnedBuffer<T> {}

impl Device {
    /// Page-locked memory of the host for `len` elements whose bytes are all 0 (`cuMemHostAlloc`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let ones = stream.fill(1_u32, 1000)?;
    /// let memory = device.pinned_zeros::<u32>(1000)?;
    /// let copy = stream.download_async(&ones, memory)?; // returns at once
    /// assert_eq!(copy.wait()?[999], 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`], [`Error::OutOfMemory`], or a failure of the driver.
    pub fn pinned_zeros<T: DeviceCopy + Zeroable>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::zeroed(self, len, false)
    }

    /// As [`Device::pinned_zeros`], write-combined (`CU_MEMHOSTALLOC_WRITECOMBINED`): faster for a device to
    /// read, and very slow for the host to read. For memory that the host only writes.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let mut samples = device.pinned_zeros_write_combined::<f32>(3)?;
    /// samples.copy_from_slice(&[0.5, 1.0, 1.5]); // in order, each once: that is fast
    /// let mut buffer = stream.zeros(3)?;
    /// stream.upload_async(samples, &mut buffer)?.wait()?;
    /// assert_eq!(stream.download(&buffer)?, [0.5, 1.0, 1.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::pinned_zeros`].
    pub fn pinned_zeros_write_combined<T: DeviceCopy + Zeroable>(
        &self,
        len: usize,
    ) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::zeroed(self, len, true)
    }

    /// Page-locked memory of the host with a copy of `data` (`cuMemHostAlloc`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let weights = device.pinned_copy(&[0.25_f32, 0.5, 0.25])?;
    /// let mut buffer = stream.zeros(3)?;
    /// let upload = stream.upload_async(weights, &mut buffer)?; // returns at once
    /// upload.wait()?;
    /// assert_eq!(stream.download(&buffer)?, [0.25, 0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::pinned_zeros`].
    pub fn pinned_copy<T: DeviceCopy>(&self, data: &[T]) -> Result<PinnedBuffer<T>> {
        let buffer = PinnedBuffer::<T>::allocate(self, data.len(), false)?;
        // SAFETY: there is room for as many elements as `data` has, in other memory.
        unsafe { buffer.start.as_ptr().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        Ok(buffer)
    }

    /// Page-locks the memory of `data` where it is (`cuMemHostRegister`), which takes its time, but no
    /// copy. [`PinnedBuffer::into_vec`] gives it back.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let stream = device.new_stream()?;
    /// let host = device.pin(vec![1_u32, 2, 3])?;
    /// let mut buffer = stream.zeros::<u32>(3)?;
    /// let data: Vec<u32> = stream.upload_async(host, &mut buffer)?.wait()?.into_vec();
    /// assert_eq!(data, stream.download(&buffer)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the driver says; it may not take memory of a system that does not page.
    pub fn pin<T: DeviceCopy>(&self, data: Vec<T>) -> Result<PinnedBuffer<T>> {
        let bytes = size_of_val(data.as_slice());
        if bytes > 0 {
            // SAFETY: a `Vec` that nobody touches keeps its memory; `unlock` comes before it is dropped.
            unsafe { lock_pages(self, data.as_ptr().cast_mut().cast(), bytes)? };
        }
        let mut data = ManuallyDrop::new(data);
        let origin = Origin::Registered { capacity: data.capacity() };
        // SAFETY: a `Vec` has no null pointer.
        let start = unsafe { NonNull::new_unchecked(data.as_mut_ptr()) };
        Ok(PinnedBuffer { start, len: data.len(), device: self.clone(), origin })
    }

    /// Page-locks borrowed memory for the time of `work` (`cuMemHostRegister`, `cuMemHostUnregister`): for
    /// copies in a [`Stream::scope`](crate::Stream::scope) inside.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let stream = device.new_stream()?;
    /// let mut buffer = stream.zeros::<u32>(3)?;
    /// let mut data = [1_u32, 2, 3];
    /// device.with_pinned(&mut data, |data| {
    ///     stream.scope(|scope| scope.upload_into(data, &mut buffer))
    /// })??;
    /// assert_eq!(stream.download(&buffer)?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the driver says of the memory; `work` is not called then.
    pub fn with_pinned<T: DeviceCopy, R>(
        &self,
        memory: &mut [T],
        work: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        let bytes = size_of_val(memory);
        if bytes == 0 {
            return Ok(work(memory));
        }
        let start = memory.as_mut_ptr().cast();
        // SAFETY: the memory is borrowed until the guard, which nobody can forget, is dropped.
        unsafe { lock_pages(self, start, bytes)? };
        let _locked = PageLock { device: self, start };
        Ok(work(memory))
    }
}

/// Ends a page-lock of borrowed memory.
struct PageLock<'a> {
    device: &'a Device,
    start: *mut u8,
}

impl Drop for PageLock<'_> {
    fn drop(&mut self) {
        // SAFETY: it is locked, and copies that use it have ended with the borrows in `work`.
        unsafe { unlock_pages(self.device, self.start) };
    }
}

impl<T: DeviceCopy> PinnedBuffer<T> {
    fn allocate(device: &Device, len: usize, write_combined: bool) -> Result<Self> {
        const { assert!(align_of::<T>() <= ALIGNMENT, "buffer elements are aligned to at most 256 bytes") };
        retired::collect();
        let bytes = len
            .checked_mul(size_of::<T>())
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or(Error::SizeOverflow { length: len, element_size: size_of::<T>() })?;
        let pointer = match (bytes, device.backend()) {
            (0, _) => std::ptr::null_mut(),
            (_, DeviceBackend::Cuda(cuda)) => cuda.host_allocate(bytes, write_combined)?,
            (_, DeviceBackend::Cpu(cpu)) => cpu::allocate(cpu, bytes, Contents::Uninitialised)?,
        };
        let (start, origin) = match NonNull::new(pointer.cast::<T>()) {
            Some(start) => (start, Origin::Allocated),
            None => (NonNull::dangling(), Origin::Empty),
        };
        Ok(PinnedBuffer { start, len, device: device.clone(), origin })
    }

    fn zeroed(device: &Device, len: usize, write_combined: bool) -> Result<Self>
    where
        T: Zeroable,
    {
        let buffer = Self::allocate(device, len, write_combined)?;
        // SAFETY: there is room for `len` elements, for which zero bytes are a value.
        unsafe { buffer.start.as_ptr().write_bytes(0, len) };
        Ok(buffer)
    }

    /// The device that it was made with; all can use it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The elements in ordinary memory: those that were given to [`Device::pin`] (`cuMemHostUnregister`), or a copy.
    pub fn into_vec(self) -> Vec<T> {
        let Origin::Registered { capacity } = self.origin else { return self.to_vec() };
        let buffer = ManuallyDrop::new(self);
        buffer.unlock();
        // SAFETY: these are the parts of the `Vec` that was registered, which is not used here any more.
        unsafe { Vec::from_raw_parts(buffer.start.as_ptr(), buffer.len, capacity) }
    }

    /// The same memory as what graphs of `stream`'s device use, in its order.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`] if the device cannot use it.
    pub(crate) fn into_memory(self, stream: &Arc<StreamInner>) -> Result<Memory> {
        let device = stream.device();
        if device.is_cuda() && !self.device.is_cuda() {
            let (buffer, stream) = (self.device.to_string().into(), device.to_string().into());
            return Err(Error::DeviceMismatch { buffer, stream });
        }
        let (start, bytes) = (self.start.as_ptr().cast(), self.byte_len());
        // SAFETY: it is page-locked for all GPUs, which use it under the host's address, as the CPU device does. The
        // owner is all that could reach it, and is out of reach from here on.
        Ok(unsafe { Memory::pinned(stream, start, bytes, Box::new(self)) })
    }

    fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    fn unlock(&self) {
        if self.byte_len() > 0 {
            // SAFETY: it is locked, and no copy uses it: copies own the buffer.
            unsafe { unlock_pages(&self.device, self.start.as_ptr().cast()) };
        }
    }
}

/// # Safety
/// The memory (not 0 bytes) stays where it is until `unlock_pages`.
unsafe fn lock_pages(device: &Device, start: *mut u8, bytes: usize) -> Result<()> {
    match device.backend() {
        // SAFETY: passed on.
        DeviceBackend::Cuda(device) => unsafe { device.host_register(start, bytes) },
        DeviceBackend::Cpu(_) => Ok(()),
    }
}

/// # Safety
/// The memory is locked, and no copy uses it.
unsafe fn unlock_pages(device: &Device, start: *mut u8) {
    if let DeviceBackend::Cuda(device) = device.backend() {
        // SAFETY: passed on. A failure means that the driver is gone, and its locks with it.
        let _ = unsafe { device.host_unregister(start) };
    }
}

impl<T: DeviceCopy> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        let start = self.start.as_ptr();
        match (self.origin, self.device.backend()) {
            (Origin::Empty, _) => {}
            // SAFETY: allocated there, and no copy uses it: copies own the buffer.
            (Origin::Allocated, DeviceBackend::Cuda(device)) => unsafe { device.host_free(start.cast()) },
            // SAFETY: as above, with that size.
            (Origin::Allocated, DeviceBackend::Cpu(_)) => unsafe {
                cpu::free(start.cast(), self.byte_len());
            },
            (Origin::Registered { capacity }, _) => {
                self.unlock();
                // SAFETY: these are the parts of the `Vec` that was registered.
                drop(unsafe { Vec::from_raw_parts(start, self.len, capacity) });
            }
        }
    }
}

impl<T: DeviceCopy> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements, all initialised, that this buffer owns.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` elements, all initialised, that this buffer owns.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: DeviceCopy> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedBuffer")
            .field("element", &std::any::type_name::<T>())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
