//! Typed device memory that owns what it holds.

use std::marker::PhantomData;

use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use crate::backend::recording::refusal::not_recordable;
use crate::backend::{ALIGNMENT, Contents};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::kind::{parts_to_read, parts_to_write};
use crate::memory::{Memory, Origin};
use crate::stream::Stream;
use crate::view::pointer::DevicePtrMut;
use crate::view::{DeviceView, DeviceViewMut};

/// `len` elements of type `T` in the memory of a device.
///
/// Made by a [`Stream`] (`upload`, `zeros`, `fill`); freed in stream order when dropped, after all
/// work that uses it, from any thread. It may be used on any stream of its device: work on different
/// streams is ordered automatically (a read waits for the writes before it, a write for all uses
/// before it). A buffer of length 0 allocates nothing.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::Device;
///
/// let stream = Device::cpu().new_stream()?;
/// let mut buffer = stream.upload(&[1_u32, 2, 3, 4])?;
/// assert_eq!((buffer.len(), buffer.byte_len()), (4, 16));
///
/// stream.upload_into(&[9, 9], buffer.slice_mut(1..3)?)?;
/// assert_eq!(stream.download(&buffer)?, [1, 9, 9, 4]);
/// # Ok(()) }
/// ```
///
/// Its parts, and views of the whole:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut buffer = stream.upload(&[3_u32, 1, 2])?;
/// assert!(!buffer.is_empty() && buffer.device() == stream.device());
/// // A view says which elements are used, and how.
/// let (whole, rest) = (buffer.view(), buffer.slice(1..)?);
/// assert_eq!((whole.len(), rest.len()), (3, 2));
/// stream.fill_into(7, buffer.view_mut().slice(..1)?)?;
/// assert_eq!(stream.download(&buffer)?, [7, 1, 2]);
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
#[repr(C)] // The length is next to what else a launch reads.
// Without a bound: the function that makes the buffer reports an element that is not `DeviceCopy`.
pub struct DeviceBuffer<T> {
    len: usize,
    memory: Memory,
    elements: PhantomData<T>,
}

/// Memory is not taken over while nothing runs: a graph could not use it, and would have to be told when it is free.
pub(crate) fn refuse_recording(stream: &Stream) -> Result<()> {
    match stream.inner().recording() {
        None => Ok(()),
        Some(_) => Err(not_recordable(
            "to take over memory of another owner",
            "make the buffer on an ordinary stream before, and give it to the graph",
        )),
    }
}

impl<T: DeviceCopy> DeviceBuffer<T> {
    /// `len` elements in the memory that `allocate` gives for their bytes; they are elements.
    pub(crate) fn in_memory(len: usize, allocate: impl FnOnce(usize) -> Result<Memory>) -> Result<Self> {
        Ok(DeviceBuffer { memory: allocate(Self::bytes_of(len)?)?, len, elements: PhantomData })
    }

    /// Allocates `len` elements in the order of `stream`.
    pub(crate) fn allocate(stream: &Stream, len: usize, contents: Contents) -> Result<Self> {
        Self::in_memory(len, |bytes| Memory::allocate(stream.inner(), None, bytes, contents))
    }

    /// `len` elements from `start` on.
    ///
    /// # Safety
    /// As for `Memory::owned`; they are elements.
    pub(crate) unsafe fn foreign(
        stream: &Stream,
        start: *mut T,
        len: usize,
        owner: Box<dyn Send>,
    ) -> Result<Self> {
        refuse_recording(stream)?;
        // SAFETY: passed on.
        let owned =
            |bytes| unsafe { Memory::owned(stream.inner(), Origin::Foreign, start.cast(), bytes, owner) };
        Self::in_memory(len, |bytes| Ok(owned(bytes)))
    }

    /// A buffer of `len` elements in memory that another library has allocated, used on `stream` first. It is
    /// ordered like any other buffer; when it is dropped, `owner` is dropped some time after all work that uses
    /// it has run, on any thread, and nothing else is freed. The opposite is [`DeviceBuffer::as_device_ptr`].
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::DevicePtrMut;
    ///
    /// // As if another library had allocated it: memory of the device, and what frees it.
    /// let mut theirs = vec![1_u32, 2, 3];
    /// let start = theirs.as_mut_ptr();
    /// // SAFETY: three elements of the CPU device, which nothing else uses, and which `theirs` keeps.
    /// let mut buffer = unsafe { DeviceBuffer::from_raw(&stream, DevicePtrMut::from_raw(start), 3, theirs)? };
    /// stream.fill_into(9, buffer.slice_mut(1..)?)?;
    /// assert_eq!(stream.download(&buffer)?, [1, 9, 9]);
    /// drop(buffer); // and then `theirs`, after the work
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`]; [`Error::InvalidPointer`] if `start` is null or not aligned.
    ///
    /// # Safety
    /// - `start` leads to `len` initialised elements in memory of the stream's device (on the CPU device:
    ///   of the host), which stay there until `owner` is dropped.
    /// - Nothing else uses them until then, except in an order that the caller ensures. Work that was
    ///   enqueued on other streams before, and uses them, comes before what `stream` holds now.
    pub unsafe fn from_raw(
        stream: &Stream,
        start: DevicePtrMut<T>,
        len: usize,
        owner: impl Send + 'static,
    ) -> Result<Self> {
        let raw = start.as_raw();
        let invalid = |reason| Err(Error::InvalidPointer { address: raw.addr(), reason });
        if raw.is_null() {
            return invalid("it is null");
        }
        if !raw.is_aligned() {
            return invalid("it is not aligned for its elements");
        }
        // SAFETY: passed on.
        unsafe { DeviceBuffer::foreign(stream, raw, len, Box::new(owner)) }
    }

    pub(crate) fn bytes_of(len: usize) -> Result<usize> {
        const { assert!(align_of::<T>() <= ALIGNMENT, "buffer elements are aligned to at most 256 bytes") };
        len.checked_mul(size_of::<T>())
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or(Error::SizeOverflow { length: len, element_size: size_of::<T>() })
    }

    /// The same memory as elements of another type, of the same size; they must be such elements.
    pub(crate) fn with_elements<U: DeviceCopy>(self) -> DeviceBuffer<U> {
        const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() >= align_of::<U>()) };
        DeviceBuffer { memory: self.memory, len: self.len, elements: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The device whose memory this is.
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// All elements, to read.
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView::whole(self.start(), self.len, &self.memory)
    }

    /// All elements, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut::whole(self.start(), self.len, &self.memory)
    }

    /// Changes how many elements there are.
    ///
    /// # Safety
    /// So many are allocated, and all of them are initialised before they can be read.
    pub(crate) unsafe fn set_len(&mut self, len: usize) {
        self.len = len;
        self.memory.set_bytes(len * size_of::<T>());
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn into_memory(self) -> Memory {
        self.memory
    }

    /// The first element, or a well-aligned address that is not null if nothing was allocated.
    fn start(&self) -> *mut T {
        self.memory.pointer().cast()
    }
}

parts_to_read!([] DeviceBuffer<T>);
parts_to_write!([] DeviceBuffer<T>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_at_most_as_many_bytes_as_an_allocation() {
        const MOST: usize = isize::MAX as usize;
        assert_eq!(DeviceBuffer::<u8>::bytes_of(MOST), Ok(MOST));
        assert_eq!(DeviceBuffer::<u64>::bytes_of(MOST / 8), Ok(MOST - 7));
        assert_eq!(DeviceBuffer::<[u8; 3]>::bytes_of(MOST / 3), Ok(MOST / 3 * 3));
        for (length, element_size, found) in [
            (MOST + 1, 1, DeviceBuffer::<u8>::bytes_of(MOST + 1)),
            (MOST / 8 + 1, 8, DeviceBuffer::<u64>::bytes_of(MOST / 8 + 1)),
            // Whose bytes are few in 64 bits.
            (1 << 61, 8, DeviceBuffer::<u64>::bytes_of(1 << 61)),
            ((1 << 61) + 1, 8, DeviceBuffer::<u64>::bytes_of((1 << 61) + 1)),
        ] {
            assert_eq!(found, Err(Error::SizeOverflow { length, element_size }));
        }
    }
}
