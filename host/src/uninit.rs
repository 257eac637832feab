//! Device memory of unknown content, and memory of other libraries: buffers that do not begin with values
//! of ours. It must not know how memory is allocated.

use std::mem::MaybeUninit;

use ferrogrid_device::DeviceCopy;

use crate::argument::DeviceInput;
use crate::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::memory::Contents;
use crate::pointer::DevicePtrMut;
use crate::stream::Stream;

impl Stream {
    /// A new buffer of `len` elements that nobody has written (`cuMemAllocFromPoolAsync`). It is safe to
    /// have: its elements are `MaybeUninit<T>`. A kernel fills it as `DisjointSlice<MaybeUninit<T>>`; then
    /// [`DeviceBuffer::assume_init`] makes it a buffer of `T`.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use std::mem::MaybeUninit;
    ///
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut buffer = stream.uninit::<u32>(3)?;
    /// stream.upload_into(&[4, 5, 6].map(MaybeUninit::new), &mut buffer)?;
    /// // SAFETY: all three elements have been written.
    /// let buffer = unsafe { buffer.assume_init() };
    /// assert_eq!(stream.download(&buffer)?, [4, 5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`], [`Error::OutOfMemory`], or a failure of the device.
    pub fn uninit<T: DeviceCopy>(&self, len: usize) -> Result<DeviceBuffer<MaybeUninit<T>>> {
        DeviceBuffer::allocate(self, len, Contents::Uninitialised)
    }

    /// A new buffer with a copy of a buffer or view of this device (`cuMemAllocFromPoolAsync`, `cuMemcpyDtoDAsync`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[1, 2, 3])?;
    /// let rest = stream.duplicate(buffer.slice(1..)?)?;
    /// assert_eq!(stream.download(&rest)?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`], [`Error::OutOfMemory`], or a failure of the device.
    pub fn duplicate<'a, T: DeviceCopy>(&self, source: impl DeviceInput<'a, T>) -> Result<DeviceBuffer<T>> {
        let source = source.into_input();
        let mut copy = DeviceBuffer::allocate(self, source.len(), Contents::Uninitialised)?;
        self.copy(source, &mut copy)?;
        Ok(copy)
    }

    /// A buffer of `len` elements in memory that another library has allocated. It takes part in the order
    /// of work like any other; when it is dropped, `owner` is dropped some time after all work that uses it
    /// has run, by whichever thread, and nothing else is freed.
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
    /// // SAFETY: three elements of the CPU device, which nobody else uses, and which `theirs` keeps.
    /// let mut buffer = unsafe { stream.adopt(DevicePtrMut::from_raw(start), 3, theirs)? };
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
    /// - `start` leads to `len` initialised elements in memory of this stream's device (on the CPU device:
    ///   of the host), which stay there until `owner` is dropped.
    /// - Nothing else uses them until then, except in an order that the caller sees to. Work that was
    ///   enqueued elsewhere before, and uses them, comes before what this stream holds now.
    pub unsafe fn adopt<T: DeviceCopy>(
        &self,
        start: DevicePtrMut<T>,
        len: usize,
        owner: impl Send + 'static,
    ) -> Result<DeviceBuffer<T>> {
        let raw = start.as_raw();
        let invalid = |reason| Err(Error::InvalidPointer { address: raw.addr(), reason });
        if raw.is_null() {
            return invalid("it is null");
        }
        if !raw.is_aligned() {
            return invalid("it is not aligned for its elements");
        }
        // SAFETY: passed on.
        unsafe { DeviceBuffer::foreign(self, raw, len, Box::new(owner)) }
    }
}

impl<T: DeviceCopy> DeviceBuffer<MaybeUninit<T>> {
    /// The same buffer, of elements that are known to be written.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// y <- i
    /// #[kernel]
    /// pub fn number(t: Thread<1>, mut y: DisjointSlice<core::mem::MaybeUninit<u32>>) {
    ///     let i = t.index();
    ///     if let Some(y) = y.get_mut(i) {
    ///         y.write(i.get() as u32);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.uninit(4)?; // no time for zeros
    /// kernels::number(&stream, Grid::cover(4), &mut y)?;
    /// // SAFETY: the kernel has written all four.
    /// let y: DeviceBuffer<u32> = unsafe { y.assume_init() };
    /// assert_eq!(stream.download(&y)?, [0, 1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Safety
    /// Every element has been written, by work that any later use of the buffer comes after.
    pub unsafe fn assume_init(self) -> DeviceBuffer<T> {
        self.with_elements()
    }
}
