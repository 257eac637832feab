//! Device memory that grows without moving: a range of addresses to which memory is mapped as needed.

use std::sync::Arc;

use bytemuck::{NoUninit, Zeroable};
use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use crate::backend::VirtualMemory;
use crate::error::{Error, Result};
use crate::memory::buffer::{DeviceBuffer, refuse_recording};
use crate::memory::kind::over_device_buffer;
use crate::order::Use;
use crate::stream::Stream;
use crate::view::DeviceViewMut;
use crate::view::argument::DeviceInput;

/// A [`DeviceBuffer`] that grows like a `Vec`, without copying: its elements stay at their addresses. Made by
/// [`Stream::growable`].
///
/// It reserves addresses for as many elements as it may ever have (`cuMemAddressReserve`) and maps memory to them as it
/// grows (`cuMemCreate`, `cuMemMap`, `cuMemSetAccess`). Addresses cost nothing; memory comes in pieces of 2 MiB or more
/// on a GPU, and at least doubles, so that appending is amortised. On the CPU device it is `mmap` and `mprotect`, in
/// pieces of 64 KiB.
///
/// To grow needs `&mut`; views borrow the buffer. Launches and copies take `&buffer` and `&mut buffer` as of any
/// [`DeviceBuffer`], and see the elements there are by then. Work enqueued earlier continues with those it was
/// given. Memory counts in the limit of the device's pool ([`MemoryPool::set_limit`](crate::MemoryPool::set_limit)).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[cfg(not(unix))]
/// # fn main() {}
/// # #[cfg(unix)]
/// # fn main() -> ferrogrid::Result<()> {
/// let stream = Device::cpu().new_stream()?;
/// let mut found = stream.growable::<u32>(1 << 30)?; // up to 4 GiB, of which nothing is allocated yet
/// found.extend_from_slice(&stream, &[1, 2, 3])?;
/// let start = found.as_device_ptr().as_raw();
/// found.resize(&stream, 100_000, 7)?;
/// assert_eq!(found.as_device_ptr().as_raw(), start); // nothing has moved
/// assert_eq!(stream.download(found.slice(..5)?)?, [1, 2, 3, 7, 7]);
///
/// found.truncate(2);
/// stream.fill_into(9, found.slice_mut(1..)?)?;
/// assert_eq!(stream.download(&found)?, [1, 9]);
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct GrowableBuffer<T: DeviceCopy> {
    buffer: DeviceBuffer<T>,
    /// Shared with the owner that the buffer's memory drops after all work.
    #[derive_where(skip)]
    range: Arc<VirtualMemory>,
    capacity: usize,
    max_len: usize,
}

over_device_buffer!(GrowableBuffer);

impl Stream {
    /// An empty buffer that can grow to `max_len` elements. Only addresses are reserved.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// # #[cfg(unix)]
    /// # fn main() -> ferrogrid::Result<()> {
    /// let stream = Device::cpu().new_stream()?;
    /// let mut few = stream.growable::<u8>(3)?;
    /// few.resize_zeroed(&stream, 3)?;
    /// let error = few.extend_from_slice(&stream, &[1]).unwrap_err();
    /// assert!(matches!(error, Error::CapacityExceeded { len: 4, max_len: 3 }), "{error}");
    /// assert_eq!(few.len(), 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`]; [`Error::OutOfMemory`] if there are not so many addresses; [`Error::Unsupported`] on a
    /// GPU without virtual memory management, and on the CPU device of other systems than Unix; or a failure of the
    /// device.
    pub fn growable<T: DeviceCopy>(&self, max_len: usize) -> Result<GrowableBuffer<T>> {
        let bytes = DeviceBuffer::<T>::bytes_of(max_len)?;
        refuse_recording(self)?;
        let range = Arc::new(VirtualMemory::reserve(self.device().backend(), bytes)?);
        let start = range.start().cast();
        // SAFETY: addresses of the stream's device that nothing uses, reserved until the owner is dropped. There are no
        // elements yet; those that come have memory.
        let mut buffer = unsafe { DeviceBuffer::foreign(self, start, 0, Box::new(range.clone()))? };
        // SAFETY: as above.
        unsafe { buffer.set_len(0) };
        let capacity = if bytes == 0 { max_len } else { 0 };
        Ok(GrowableBuffer { buffer, range, capacity, max_len })
    }
}

impl<T: DeviceCopy> GrowableBuffer<T> {
    /// The number of elements with memory.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The most elements that it can have: those of [`Stream::growable`].
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Maps memory for `additional` more elements, and some in reserve.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// # #[cfg(unix)]
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut buffer = stream.growable::<f32>(1 << 20)?;
    /// buffer.reserve(1000)?; // those that follow find memory
    /// assert!(buffer.is_empty() && buffer.capacity() >= 1000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::CapacityExceeded`], [`Error::OutOfMemory`], [`Error::MemoryLimit`], or a failure of the device. The
    /// buffer stays as it was.
    pub fn reserve(&mut self, additional: usize) -> Result<()> {
        let len = self.len().saturating_add(additional);
        if len > self.max_len {
            return Err(Error::CapacityExceeded { len, max_len: self.max_len });
        }
        if len <= self.capacity {
            return Ok(());
        }
        let wanted = len.max(self.capacity.saturating_mul(2)).min(self.max_len);
        // No overflow: `max_len` elements have a size.
        let memory = self.range.grow(len * size_of::<T>(), wanted * size_of::<T>())?;
        self.capacity = self.elements_in(memory);
        Ok(())
    }

    /// Appends a copy of `data` (`cuMemcpyAsync`). Returns when `data` can be changed again.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// # #[cfg(unix)]
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut log = stream.growable::<u64>(1_000_000)?;
    /// for batch in [&[1, 2][..], &[], &[3]] {
    ///     log.extend_from_slice(&stream, batch)?;
    /// }
    /// assert_eq!(stream.download(&log)?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`GrowableBuffer::reserve`] and [`Stream::upload_into`]; then the elements are as before.
    pub fn extend_from_slice(&mut self, stream: &Stream, data: &[T]) -> Result<()> {
        self.extend_with(data.len(), |new| stream.upload_into(data, new))
    }

    /// Appends a copy of elements of the device (`cuMemcpyAsync`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// # #[cfg(unix)]
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let part = stream.upload(&[1_u8, 2, 3])?;
    /// let mut whole = stream.growable(1000)?;
    /// whole.extend_from_device(&stream, &part)?;
    /// whole.extend_from_device(&stream, part.slice(1..)?)?;
    /// assert_eq!(stream.download(&whole)?, [1, 2, 3, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`GrowableBuffer::reserve`] and [`Stream::copy`]; then the elements are as before.
    pub fn extend_from_device<'a>(&mut self, stream: &Stream, source: impl DeviceInput<'a, T>) -> Result<()> {
        let source = source.into_input();
        self.extend_with(source.len(), |new| stream.copy(source, new))
    }

    /// Shortens it to `len` elements, or lengthens it by elements of `value` ([`Stream::fill_into`]). Memory stays.
    ///
    /// # Errors
    /// Those of [`GrowableBuffer::reserve`] and [`Stream::fill_into`]; then the elements are as before.
    pub fn resize(&mut self, stream: &Stream, len: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let Some(additional) = self.truncated(len) else { return Ok(()) };
        self.extend_with(additional, |new| stream.fill_into(value, new))
    }

    /// As [`GrowableBuffer::resize`], by elements whose bytes are all 0.
    ///
    /// # Errors
    /// Those of [`GrowableBuffer::reserve`], or a failure of the device; then the elements are as before.
    pub fn resize_zeroed(&mut self, stream: &Stream, len: usize) -> Result<()>
    where
        T: Zeroable,
    {
        let Some(additional) = self.truncated(len) else { return Ok(()) };
        self.extend_with(additional, |new| {
            let bytes = new.len() * size_of::<T>();
            stream.fill_into(0_u8, new.with_elements(bytes))
        })
    }

    /// Shortens it to `len` elements, if it has more. Memory stays, until [`GrowableBuffer::shrink_to_fit`].
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            // SAFETY: those that are left are elements.
            unsafe { self.buffer.set_len(len) };
        }
    }

    /// Takes all elements away. Memory stays.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Gives back memory that no element needs, if it was mapped in separate pieces (`cuMemUnmap`). Waits for all work
    /// that uses the buffer.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// # #[cfg(unix)]
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut buffer = stream.growable::<u8>(1 << 30)?;
    /// buffer.extend_from_slice(&stream, &[1, 2, 3])?;
    /// buffer.resize_zeroed(&stream, 100 << 20)?;
    /// buffer.truncate(3);
    /// buffer.shrink_to_fit()?;
    /// assert!(buffer.capacity() < 1 << 20);
    /// assert_eq!(stream.download(&buffer)?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device fails. The elements stay.
    pub fn shrink_to_fit(&mut self) -> Result<()> {
        self.buffer.memory().wait_on_host(Use::Write)?;
        // SAFETY: all work that used the buffer has run, and views of what is there do not reach behind it.
        let memory = unsafe { self.range.shrink(self.byte_len())? };
        self.capacity = self.elements_in(memory);
        Ok(())
    }

    /// The buffer with the elements there are, which does not grow any more: for a graph to keep, for example. Memory
    /// stays where it is.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// # #[cfg(unix)]
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut buffer = stream.growable::<u32>(1000)?;
    /// buffer.extend_from_slice(&stream, &[1, 2])?;
    /// let buffer: DeviceBuffer<u32> = buffer.into_buffer();
    /// assert_eq!(stream.download(&buffer)?, [1, 2]);
    /// # Ok(()) }
    /// ```
    pub fn into_buffer(self) -> DeviceBuffer<T> {
        self.buffer
    }

    /// Shortens it to `len` elements; if it has fewer, how many it lacks.
    fn truncated(&mut self, len: usize) -> Option<usize> {
        self.truncate(len);
        len.checked_sub(self.len()).filter(|additional| *additional > 0)
    }

    /// Appends `additional` elements, all of which `write` must write. If it fails, none are appended.
    fn extend_with(
        &mut self,
        additional: usize,
        write: impl FnOnce(DeviceViewMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        self.reserve(additional)?;
        let before = self.len();
        let mut longer = Longer { buffer: &mut self.buffer, len: before };
        // SAFETY: they have memory; if they are not written, `longer` takes them away again.
        unsafe { longer.buffer.set_len(before + additional) };
        write(longer.buffer.slice_mut(before..)?)?;
        longer.len = before + additional;
        Ok(())
    }

    /// How many of its elements fit in so many bytes.
    fn elements_in(&self, bytes: usize) -> usize {
        bytes.checked_div(size_of::<T>()).map_or(self.max_len, |len| len.min(self.max_len))
    }
}

/// A buffer that has `len` elements when this is dropped, also after a panic.
struct Longer<'a, T: DeviceCopy> {
    buffer: &'a mut DeviceBuffer<T>,
    len: usize,
}

impl<T: DeviceCopy> Drop for Longer<'_, T> {
    fn drop(&mut self) {
        // SAFETY: so many are elements.
        unsafe { self.buffer.set_len(self.len) };
    }
}
