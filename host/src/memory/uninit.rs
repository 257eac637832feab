//! Uninitialised device memory: buffers of `MaybeUninit` elements.

use std::mem::MaybeUninit;

use ferrogrid_device::DeviceCopy;

use crate::backend::Contents;
use crate::error::Result;
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::argument::DeviceInput;

impl Stream {
    /// A new buffer of `len` uninitialised elements (`cuMemAllocFromPoolAsync`). It is safe to
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
    /// [`Error::SizeOverflow`](crate::Error::SizeOverflow), [`Error::OutOfMemory`](crate::Error::OutOfMemory), or a failure of
    /// the device.
    pub fn uninit<T: DeviceCopy>(&self, len: usize) -> Result<DeviceBuffer<MaybeUninit<T>>> {
        DeviceBuffer::allocate(self, len, Contents::Uninitialised)
    }

    /// A new buffer with a copy of a buffer or view of this device (`cuMemAllocFromPoolAsync`, `cuMemcpyAsync`).
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
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch), [`Error::OutOfMemory`](crate::Error::OutOfMemory), or a failure
    /// of the device.
    pub fn duplicate<'a, T: DeviceCopy>(&self, source: impl DeviceInput<'a, T>) -> Result<DeviceBuffer<T>> {
        let source = source.into_input();
        let mut copy = DeviceBuffer::allocate(self, source.len(), Contents::Uninitialised)?;
        self.copy(source, &mut copy)?;
        Ok(copy)
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
