//! Copies between host and device, within a device, and fills: the methods of [`Stream`] that move data.
//!
//! `peer` copies between devices, `pitched` copies rows; `value` writes and awaits single numbers. `scope` copies
//! borrowed host memory in the background until a scope ends; `transfer` owns the host memory of one background
//! copy.

mod peer;
mod pitched;
pub(crate) mod scope;
pub(crate) mod transfer;
pub(crate) mod value;

use bytemuck::{NoUninit, Zeroable};
use ferrogrid_device::DeviceCopy;

use crate::backend::Contents;
use crate::error::{Error, Result};
use crate::memory::access::enqueue;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::argument::{DeviceInput, DeviceOutput};
use crate::view::{DeviceView, agree};

impl Stream {
    /// A new buffer with a copy of `data` (`cuMemAllocFromPoolAsync`, `cuMemcpyAsync`). Returns when
    /// `data` can be changed again.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let squares = stream.upload(&[0_u32, 1, 4, 9])?;
    /// assert_eq!(stream.download(&squares)?, [0, 1, 4, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or a failure of the device.
    pub fn upload<T: DeviceCopy>(&self, data: &[T]) -> Result<DeviceBuffer<T>> {
        self.initialised(DeviceBuffer::allocate(self, data.len(), Contents::Uninitialised)?, data)
    }

    /// `buffer`, allocated here for as many elements as `data` has, with these.
    pub(crate) fn initialised<T: DeviceCopy>(
        &self,
        mut buffer: DeviceBuffer<T>,
        data: &[T],
    ) -> Result<DeviceBuffer<T>> {
        let bytes = size_of_val(data);
        if bytes > 0 {
            let target = buffer.view_mut().start().cast();
            // SAFETY: the buffer is as many elements of this device as `data` has, allocated here and
            // used by nothing yet.
            unsafe { self.inner().initialise_from_host(target, data.as_ptr().cast(), bytes)? };
        }
        Ok(buffer)
    }

    /// Copies `source` into existing elements of the same number (`cuMemcpyAsync`). Returns when
    /// `source` can be changed again.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut buffer = stream.zeros::<u32>(4)?;
    /// stream.upload_into(&[7, 8], buffer.slice_mut(1..3)?)?;
    /// assert_eq!(stream.download(&buffer)?, [0, 7, 8, 0]);
    /// assert!(stream.upload_into(&[7, 8], &mut buffer).is_err(), "2 elements are not 4");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or a failure of the device.
    pub fn upload_into<'a, T: DeviceCopy>(
        &self,
        source: &[T],
        target: impl DeviceOutput<'a, T>,
    ) -> Result<()> {
        let target = target.into_output();
        agree("upload_into", source.len(), target.len())?;
        let bytes = size_of_val(source);
        // SAFETY: the view is as many elements of this device as `source` has, ordered for writing here.
        enqueue(self.inner(), None, Some(target.access()), bytes, || unsafe {
            self.inner().copy_from_host(target.start().cast(), source.as_ptr().cast(), bytes)
        })
    }

    /// The elements of a buffer or view, once all work enqueued here so far has run
    /// (`cuMemcpyAsync`, `cuStreamSynchronize`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[1_u8, 2, 3])?;
    /// assert_eq!(stream.download(&buffer)?, [1, 2, 3]);
    /// assert_eq!(stream.download(buffer.slice(1..)?)?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A failure of the work before, as [`Stream::synchronize`]; that of a kernel that was to write `source`, also if it
    /// has been reported, until the memory is written again as a whole; or of the device.
    /// [`Error::OutOfMemory`] of `the host` if that has no room for the elements.
    pub fn download<'a, T: DeviceCopy>(&self, source: impl DeviceInput<'a, T>) -> Result<Vec<T>> {
        let source = source.into_input();
        let mut data = room_for(source.len())?;
        self.read_view(data.as_mut_ptr(), source)?;
        // SAFETY: `read_view` has filled all `source.len()` elements.
        unsafe { data.set_len(source.len()) };
        Ok(data)
    }

    /// As [`Stream::download`], into existing memory of the same length.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[1_u8, 2, 3])?;
    /// let mut last = [0; 2];
    /// stream.download_into(buffer.slice(1..)?, &mut last)?;
    /// assert_eq!(last, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or as [`Stream::download`].
    pub fn download_into<'a, T: DeviceCopy>(
        &self,
        source: impl DeviceInput<'a, T>,
        target: &mut [T],
    ) -> Result<()> {
        let source = source.into_input();
        agree("download_into", source.len(), target.len())?;
        self.read_view(target.as_mut_ptr(), source)
    }

    /// A new buffer of `len` elements whose bytes are all 0 (`cuMemAllocFromPoolAsync`, `cuMemsetD8Async`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// assert_eq!(stream.download(&stream.zeros::<f64>(3)?)?, [0.0; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`], [`Error::OutOfMemory`], or a failure of the device.
    pub fn zeros<T: DeviceCopy + Zeroable>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        DeviceBuffer::allocate(self, len, Contents::Zeroed)
    }

    /// A new buffer of `len` elements, each `value` (`cuMemsetD8Async`, `D16`, `D32`).
    ///
    /// On a GPU, elements of other sizes than 1, 2 and 4 bytes are made on the host and copied.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// assert_eq!(stream.download(&stream.fill(1.5_f32, 3)?)?, [1.5; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`], [`Error::OutOfMemory`], or a failure of the device.
    pub fn fill<T: DeviceCopy + NoUninit>(&self, value: T, len: usize) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::allocate(self, len, Contents::Uninitialised)?;
        self.fill_into(value, &mut buffer)?;
        Ok(buffer)
    }

    /// Sets existing elements to `value` (`cuMemsetD8Async`, `D16`, `D32`); see [`Stream::fill`].
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut buffer = stream.upload(&[1_u32, 2, 3, 4])?;
    /// stream.fill_into(0, buffer.slice_mut(2..)?)?;
    /// assert_eq!(stream.download(&buffer)?, [1, 2, 0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub fn fill_into<'a, T: DeviceCopy + NoUninit>(
        &self,
        value: T,
        target: impl DeviceOutput<'a, T>,
    ) -> Result<()> {
        let target = target.into_output();
        let pattern = bytemuck::bytes_of(&value);
        // SAFETY: the view is `len` elements of this device, ordered for writing here, of which
        // `pattern` is one.
        enqueue(self.inner(), None, Some(target.access()), target.len() * size_of::<T>(), || unsafe {
            self.inner().fill(target.start().cast(), pattern, target.len())
        })
    }

    /// Enqueues a copy between buffers or views of this device, of the same length
    /// (`cuMemcpyAsync`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let source = stream.upload(&[1_u32, 2, 3])?;
    /// let mut target = stream.zeros::<u32>(2)?;
    /// stream.copy(source.slice(1..)?, &mut target)?;
    /// assert_eq!(stream.download(&target)?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or a failure of the device.
    pub fn copy<'a, 'b, T: DeviceCopy>(
        &self,
        source: impl DeviceInput<'a, T>,
        target: impl DeviceOutput<'b, T>,
    ) -> Result<()> {
        let (source, target) = (source.into_input(), target.into_output());
        agree("copy", source.len(), target.len())?;
        let bytes = source.len() * size_of::<T>();
        let places = (target.memory().place(), source.memory().place());
        // SAFETY: both views are that many bytes of this device, ordered here for their use; they do
        // not overlap, because one is borrowed mutably.
        enqueue(self.inner(), Some(source.access()), Some(target.access()), bytes, || unsafe {
            self.inner().copy(target.start().cast(), source.start().cast(), bytes, places)
        })
    }

    /// Fills `target`, which has room for all elements of `source`.
    fn read_view<T: DeviceCopy>(&self, target: *mut T, source: DeviceView<'_, T>) -> Result<()> {
        let bytes = source.len() * size_of::<T>();
        let sources = source.memory().writers().sources();
        // SAFETY: `target` has room for the elements of the view, which are of this device and ordered
        // for reading here.
        enqueue(self.inner(), Some(source.access()), None, bytes, || unsafe {
            self.inner().copy_to_host(target.cast(), source.start().cast(), bytes)
        })?;
        if bytes == 0 { self.synchronize() } else { sources.check() }
    }
}

/// Room for `len` elements on the host.
pub(crate) fn room_for<T>(len: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    match room.try_reserve_exact(len) {
        Ok(()) => Ok(room),
        Err(_) => Err(Error::OutOfMemory {
            device: "the host".into(),
            requested: len.saturating_mul(size_of::<T>()) as u64,
            free: None,
            total: None,
        }),
    }
}
