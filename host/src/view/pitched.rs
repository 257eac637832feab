//! Pitched views: rows of elements with gaps (parts of images, columns, every n-th element), and their
//! copies.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use bytemuck::Zeroable;
use ferrogrid_device::DeviceCopy;

use crate::backend::{Place, Rows};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::memory::buffer::DeviceBuffer;
use crate::order::Use;
use crate::order::access::Access;
use crate::stream::Stream;
use crate::stream::announcing::Announcing;
use crate::view::{DeviceView, DeviceViewMut, resolve};

/// Rows start at multiples of so many bytes in a [`PitchedBuffer`].
const ROW_ALIGNMENT: usize = 256;

/// `height` rows of `width` elements of a device buffer, `pitch` elements from start to start, to read.
///
///
/// Made by [`DeviceView::pitched`], [`DeviceView::step_by`] and [`PitchedBuffer::view`]; taken by [`Stream::copy_2d`] and
/// [`Stream::download_2d`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let image = stream.upload(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])?; // 3 rows of 4
/// let inner = image.view().pitched(4, 3, 4)?.slice(1..3, ..2)?; // 2 columns, 2 rows
/// assert_eq!((inner.width(), inner.height(), inner.pitch()), (2, 2, 4));
/// let mut rows = [0; 4];
/// stream.download_2d(inner, &mut rows, 2)?;
/// assert_eq!(rows, [1, 2, 5, 6]);
/// assert!(image.view().pitched(4, 4, 4).is_err()); // a row too many
/// # Ok(()) }
/// ```
pub struct PitchedView<'a, T> {
    start: *const T,
    shape: Shape,
    memory: &'a Memory,
    elements: PhantomData<&'a [T]>,
}

/// `height` rows of `width` elements of a device buffer, `pitch` elements from start to start, to write.
///
///
/// Made by [`DeviceViewMut::pitched`], [`DeviceViewMut::step_by`] and [`PitchedBuffer::view_mut`]; taken by
/// [`Stream::copy_2d`] and [`Stream::upload_2d`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut image = stream.zeros::<i32>(12)?; // 3 rows of 4
/// let right = image.view_mut().pitched(4, 3, 4)?.slice(3.., ..)?; // the last column
/// assert_eq!((right.width(), right.height(), right.pitch()), (1, 3, 4));
/// stream.upload_2d(&[7, 8, 9], 1, right)?;
/// let ones = stream.fill(1, 3)?;
/// stream.copy_2d(ones.view().step_by(1)?, image.view_mut().step_by(4)?)?; // every fourth: the first column
/// assert_eq!(stream.download(&image)?, [1, 0, 0, 7, 1, 0, 0, 8, 1, 0, 0, 9]);
/// # Ok(()) }
/// ```
pub struct PitchedViewMut<'a, T> {
    start: *mut T,
    shape: Shape,
    memory: &'a Memory,
    usage: Use,
    elements: PhantomData<&'a mut [T]>,
}

/// In elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    width: usize,
    height: usize,
    pitch: usize,
}

// SAFETY: a view is a `&[T]` in device memory.
unsafe impl<T: Sync> Send for PitchedView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for PitchedView<'_, T> {}
// SAFETY: a view is a `&mut [T]` in device memory.
unsafe impl<T: Send> Send for PitchedViewMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for PitchedViewMut<'_, T> {}

impl<T> Clone for PitchedView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PitchedView<'_, T> {}

impl Shape {
    /// The shape, if it lies in `length` elements and rows do not overlap.
    fn within(width: usize, height: usize, pitch: usize, length: usize) -> Result<Self> {
        let end = height.saturating_sub(1).checked_mul(pitch).and_then(|last| last.checked_add(width));
        let is_empty = width == 0 || height == 0;
        match end {
            _ if pitch < width => Err(Error::PitchedView { width, height, pitch, length }),
            _ if is_empty => Ok(Shape { width, height, pitch }),
            Some(end) if end <= length => Ok(Shape { width, height, pitch }),
            _ => Err(Error::PitchedView { width, height, pitch, length }),
        }
    }

    /// A part, and the index of its first element.
    fn part(self, columns: impl RangeBounds<usize>, rows: impl RangeBounds<usize>) -> Result<(usize, Self)> {
        let (left, width) = resolve(columns, self.width)?;
        let (top, height) = resolve(rows, self.height)?;
        Ok((top.saturating_mul(self.pitch).saturating_add(left), Shape { width, height, ..self }))
    }

    fn agree(self, operation: &'static str, target: Shape) -> Result<()> {
        let (from, to) = ([self.width, self.height], [target.width, target.height]);
        if from == to { Ok(()) } else { Err(Error::ShapeMismatch { operation, from, to }) }
    }

    /// The copy from this shape to `target`, of elements of type `T`; `None` if there is nothing to copy.
    fn rows<T>(self, target: Shape) -> Option<Rows> {
        let size = size_of::<T>();
        // Extents of what is empty are not bounded by any memory: nothing may be computed from them.
        if size == 0 || self.width == 0 || self.height == 0 {
            return None;
        }
        // The pitch of a single row means nothing, and may be more than a device takes.
        let pitch = |shape: Shape| if shape.height == 1 { shape.width } else { shape.pitch };
        Some(Rows {
            width: self.width * size,
            height: self.height,
            source_pitch: pitch(self) * size,
            target_pitch: pitch(target) * size,
        })
    }
}

impl<'a, T: DeviceCopy> DeviceView<'a, T> {
    /// The elements as `height` rows of `width`, each starting `pitch` elements after the one before.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let image = stream.upload(&[1, 2, 0, 3, 4, 0])?; // 2 rows of 2, each followed by one that does not count
    /// let mut rows = [0; 4];
    /// stream.download_2d(image.view().pitched(2, 2, 3)?, &mut rows, 2)?;
    /// assert_eq!(rows, [1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PitchedView`] if rows overlap, or reach over the end.
    pub fn pitched(self, width: usize, height: usize, pitch: usize) -> Result<PitchedView<'a, T>> {
        let shape = Shape::within(width, height, pitch, self.len())?;
        Ok(PitchedView { start: self.start(), shape, memory: self.memory(), elements: PhantomData })
    }

    /// Every `step`-th element, from the first on: rows of one element, for strided copies.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[0_u32, 1, 2, 3, 4, 5, 6])?;
    /// let every_third = buffer.view().step_by(3)?;
    /// assert_eq!((every_third.width(), every_third.height()), (1, 3)); // 0, 3, 6
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PitchedView`] if `step` is 0.
    pub fn step_by(self, step: usize) -> Result<PitchedView<'a, T>> {
        self.pitched(1, self.len().div_ceil(step.max(1)), step)
    }
}

impl<'a, T: DeviceCopy> DeviceViewMut<'a, T> {
    /// The elements as `height` rows of `width`, each starting `pitch` elements after the one before.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut image = stream.zeros::<i32>(6)?;
    /// stream.upload_2d(&[1, 2, 3, 4], 2, image.view_mut().pitched(2, 2, 3)?)?;
    /// assert_eq!(stream.download(&image)?, [1, 2, 0, 3, 4, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PitchedView`] if rows overlap, or reach over the end.
    pub fn pitched(self, width: usize, height: usize, pitch: usize) -> Result<PitchedViewMut<'a, T>> {
        let shape = Shape::within(width, height, pitch, self.len())?;
        let usage = self.usage();
        Ok(PitchedViewMut { start: self.start(), shape, memory: self.memory(), usage, elements: PhantomData })
    }

    /// Every `step`-th element, from the first on: rows of one element, for strided copies.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (zeros, mut buffer) = (stream.zeros(3)?, stream.fill(5, 6)?);
    /// stream.copy_2d(zeros.view().step_by(1)?, buffer.view_mut().step_by(2)?)?; // every second
    /// assert_eq!(stream.download(&buffer)?, [0, 5, 0, 5, 0, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PitchedView`] if `step` is 0.
    pub fn step_by(self, step: usize) -> Result<PitchedViewMut<'a, T>> {
        let height = self.len().div_ceil(step.max(1));
        self.pitched(1, height, step)
    }
}

impl<'a, T: DeviceCopy> PitchedView<'a, T> {
    /// The elements in a row.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.shape.height
    }

    /// The elements from the start of a row to that of the next.
    pub fn pitch(&self) -> usize {
        self.shape.pitch
    }

    /// The part in these columns and rows.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a range does not lie in the view.
    pub fn slice(self, columns: impl RangeBounds<usize>, rows: impl RangeBounds<usize>) -> Result<Self> {
        let (first, shape) = self.shape.part(columns, rows)?;
        Ok(PitchedView { start: self.start.wrapping_add(first), shape, ..self })
    }
}

impl<'a, T: DeviceCopy> PitchedViewMut<'a, T> {
    /// The elements in a row.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.shape.height
    }

    /// The elements from the start of a row to that of the next.
    pub fn pitch(&self) -> usize {
        self.shape.pitch
    }

    /// The part in these columns and rows.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a range does not lie in the view.
    pub fn slice(self, columns: impl RangeBounds<usize>, rows: impl RangeBounds<usize>) -> Result<Self> {
        let (first, shape) = self.shape.part(columns, rows)?;
        Ok(PitchedViewMut { start: self.start.wrapping_add(first), shape, ..self })
    }
}

/// A device buffer whose rows start at multiples of 256 bytes, as `cuMemAllocPitch` gives them. Made by
/// [`Stream::zeros_pitched`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let stream = Device::cpu().new_stream()?;
/// let mut image = stream.zeros_pitched::<u8>(3, 2)?; // 2 rows of 3
/// assert_eq!(image.view().pitch(), 256);
/// stream.upload_2d(&[1, 2, 3, 4, 5, 6], 3, image.view_mut())?;
/// let mut right = [0; 4];
/// stream.download_2d(image.view().slice(1.., ..)?, &mut right, 2)?; // columns 1 and 2
/// assert_eq!(right, [2, 3, 5, 6]);
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Numbers the elements of rows that start `pitch` elements apart.
/// #[kernel]
/// pub fn number(t: Thread<2>, width: usize, pitch: usize, mut y: DisjointSlice<f32, 2>) {
///     let i = t.index();
///     if i.x() < width && let Some(y) = y.get_mut(i) {
///         *y = (i.y() * pitch + i.x()) as f32;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut image = stream.zeros_pitched::<f32>(3, 2)?;
/// let pitch = image.view().pitch();
/// let whole = image.as_view_mut().into_2d(pitch, 2)?; // with what lies between the rows
/// kernels::number(&stream, Grid::cover([pitch, 2]), 3, pitch, whole)?;
/// assert_eq!(stream.download(image.as_buffer())?[pitch..pitch + 4], [64.0, 65.0, 66.0, 0.0]);
/// # Ok(()) }
/// ```
pub struct PitchedBuffer<T: DeviceCopy> {
    buffer: DeviceBuffer<T>,
    shape: Shape,
}

impl<T: DeviceCopy> PitchedBuffer<T> {
    /// The rows, to read.
    pub fn view(&self) -> PitchedView<'_, T> {
        let (start, memory) = (self.buffer.view().start(), self.buffer.memory());
        PitchedView { start, shape: self.shape, memory, elements: PhantomData }
    }

    /// The rows, to write.
    pub fn view_mut(&mut self) -> PitchedViewMut<'_, T> {
        let start = self.buffer.view_mut().start();
        let memory = self.buffer.memory();
        PitchedViewMut { start, shape: self.shape, memory, usage: Use::Write, elements: PhantomData }
    }

    /// All elements, those between the rows too, for kernels: row `y` starts at element
    /// `y * self.view().pitch()`.
    pub fn as_buffer(&self) -> &DeviceBuffer<T> {
        &self.buffer
    }

    /// All elements, those between the rows too, as one buffer.
    pub fn into_buffer(self) -> DeviceBuffer<T> {
        self.buffer
    }

    /// As [`PitchedBuffer::as_buffer`], to write.
    pub fn as_view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.buffer.view_mut()
    }
}

impl Stream {
    /// A new buffer of `height` rows of `width` elements, all bytes 0, each row at a multiple of 256
    /// bytes (as `cuMemAllocPitch`; in stream order).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let image = stream.zeros_pitched::<f32>(100, 20)?;
    /// let rows = image.view();
    /// assert_eq!((rows.width(), rows.height(), rows.pitch()), (100, 20, 128)); // 128 * 4 bytes from row to row
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`], [`Error::OutOfMemory`], or a failure of the device.
    pub fn zeros_pitched<T: DeviceCopy + Zeroable>(
        &self,
        width: usize,
        height: usize,
    ) -> Result<PitchedBuffer<T>> {
        let size = size_of::<T>().max(1);
        // The fewest elements whose bytes are a multiple of the alignment.
        let step = ROW_ALIGNMENT / (1 << size.trailing_zeros().min(ROW_ALIGNMENT.trailing_zeros()));
        let too_long = || Error::SizeOverflow { length: width.max(height), element_size: size_of::<T>() };
        let pitch = width.checked_next_multiple_of(step).ok_or_else(too_long)?;
        let length = pitch.checked_mul(height).ok_or_else(too_long)?;
        let shape = Shape { width, height, pitch };
        Ok(PitchedBuffer { buffer: self.zeros(length)?, shape })
    }

    /// Enqueues a copy of rows within the device (`cuMemcpy2DAsync`). Both have the same width and
    /// height; with a width of 1 it is a strided copy.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let image = stream.upload(&[0, 1, 2, 3, 4, 5, 6, 7, 8])?; // 3 rows of 3
    /// let mut part = stream.zeros::<i32>(4)?;
    /// let right = image.view().pitched(3, 3, 3)?.slice(1.., ..2)?;
    /// stream.copy_2d(right, part.view_mut().pitched(2, 2, 2)?)?;
    /// assert_eq!(stream.download(&part)?, [1, 2, 4, 5]);
    ///
    /// let mut column = stream.zeros::<i32>(3)?;
    /// stream.copy_2d(image.view().step_by(3)?, column.view_mut().step_by(1)?)?;
    /// assert_eq!(stream.download(&column)?, [0, 3, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], or a failure of the device.
    pub fn copy_2d<T: DeviceCopy>(
        &self,
        source: PitchedView<'_, T>,
        target: PitchedViewMut<'_, T>,
    ) -> Result<()> {
        source.shape.agree("copy_2d", target.shape)?;
        let _announcing = Announcing::on(self.inner());
        source.memory.begin(self.inner(), Use::Read)?;
        target.memory.begin(self.inner(), target.usage)?;
        let Some(rows) = source.shape.rows::<T>(target.shape) else { return Ok(()) };
        let places = (Place::Device, Place::Device);
        // SAFETY: both have these rows in memory of this device, ordered here for their use; they do not
        // overlap, because one is borrowed mutably.
        unsafe { self.inner().copy_rows(target.start.cast(), source.start.cast(), rows, places)? };
        Access::new(target.memory, target.usage).receive(source.memory, self.inner());
        Ok(())
    }

    /// Copies rows of host memory that start `source_pitch` elements apart (`cuMemcpy2DAsync`). Returns
    /// when `source` can be changed again.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut image = stream.zeros_pitched::<u8>(2, 2)?;
    /// let source = [1, 2, 0, 3, 4, 0]; // rows of two, three apart
    /// stream.upload_2d(&source, 3, image.view_mut())?;
    /// let mut rows = [0; 4];
    /// stream.download_2d(image.view(), &mut rows, 2)?;
    /// assert_eq!(rows, [1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PitchedView`] if `source` does not have the rows of `target` at that pitch; or a failure
    /// of the device.
    pub fn upload_2d<T: DeviceCopy>(
        &self,
        source: &[T],
        source_pitch: usize,
        target: PitchedViewMut<'_, T>,
    ) -> Result<()> {
        let shape = target.shape;
        let from = Shape::within(shape.width, shape.height, source_pitch, source.len())?;
        let _announcing = Announcing::on(self.inner());
        target.memory.begin(self.inner(), target.usage)?;
        let Some(rows) = from.rows::<T>(shape) else { return Ok(()) };
        let (start, places) = (source.as_ptr().cast(), (Place::Device, Place::Host));
        // SAFETY: both have these rows, the target's ordered for writing here; `source` is borrowed until
        // the copy has been waited for.
        unsafe { self.inner().copy_rows(target.start.cast(), start, rows, places)? };
        self.synchronize()
    }

    /// Copies rows to host memory, where they start `target_pitch` elements apart (`cuMemcpy2DAsync`), once
    /// all work enqueued here so far has run. Bytes between the rows are unchanged.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let image = stream.upload(&[1, 2, 3, 4, 5, 6])?; // 2 rows of 3
    /// let mut host = [0; 8]; // 2 rows of 4
    /// stream.download_2d(image.view().pitched(3, 2, 3)?, &mut host, 4)?;
    /// assert_eq!(host, [1, 2, 3, 0, 4, 5, 6, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PitchedView`] if `target` does not have the rows of `source` at that pitch; or as
    /// [`Stream::download`].
    pub fn download_2d<T: DeviceCopy>(
        &self,
        source: PitchedView<'_, T>,
        target: &mut [T],
        target_pitch: usize,
    ) -> Result<()> {
        let shape = source.shape;
        let to = Shape::within(shape.width, shape.height, target_pitch, target.len())?;
        let _announcing = Announcing::on(self.inner());
        source.memory.begin(self.inner(), Use::Read)?;
        let sources = source.memory.writers().sources();
        if let Some(rows) = shape.rows::<T>(to) {
            let (start, places) = (target.as_mut_ptr().cast(), (Place::Host, Place::Device));
            // SAFETY: both have these rows, the source's ordered for reading here; `target` is borrowed
            // until the copy has been waited for.
            unsafe { self.inner().copy_rows(start, source.start.cast(), rows, places)? };
        }
        self.synchronize()?;
        sources.check()
    }
}

macro_rules! debug_of_shape {
    ($($name:ident),*) => { $(
        impl<T> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("shape", &self.shape).finish_non_exhaustive()
            }
        }
    )* };
}

debug_of_shape!(PitchedView, PitchedViewMut);

impl<T: DeviceCopy> fmt::Debug for PitchedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PitchedBuffer").field("shape", &self.shape).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    /// Another thread may write the other half at the same time.
    #[test]
    fn rows_of_a_half_are_a_part() -> Result<()> {
        let stream = Device::cpu().new_stream()?;
        let mut buffer = stream.zeros::<u32>(8)?;
        assert_eq!(buffer.view_mut().pitched(2, 2, 4)?.usage, Use::Write);
        let (left, right) = buffer.split_at_mut(4)?;
        assert_eq!([left.usage(), right.usage()], [Use::WritePart; 2]);
        let (left, right) = (left.pitched(2, 2, 2)?, right.step_by(2)?);
        assert_eq!([left.usage, right.usage], [Use::WritePart; 2]);
        assert_eq!(right.slice(.., 1..)?.usage, Use::WritePart);
        Ok(())
    }
}
