//! Views of rows of elements that do not follow one after the other: parts of images, columns, every n-th element.

use std::ops::RangeBounds;

use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use crate::backend::Rows;
use crate::error::{Error, Result};
use crate::memory::access::Access;
use crate::view::{DevicePtr, DeviceView, DeviceViewMut, resolve};

/// `height` rows of `width` elements of a device buffer, `pitch` elements from start to start, to read.
///
/// Made by [`DeviceView::pitched`], [`DeviceView::step_by`] and
/// [`PitchedBuffer::view`](crate::PitchedBuffer::view); taken by [`Stream::copy_2d`](crate::Stream::copy_2d) and
/// [`Stream::download_2d`](crate::Stream::download_2d).
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
#[derive_where(Clone, Copy, Debug)]
pub struct PitchedView<'a, T> {
    view: DeviceView<'a, T>,
    shape: Shape,
}

/// `height` rows of `width` elements of a device buffer, `pitch` elements from start to start, to write.
///
/// Made by [`DeviceViewMut::pitched`], [`DeviceViewMut::step_by`] and
/// [`PitchedBuffer::view_mut`](crate::PitchedBuffer::view_mut); taken by
/// [`Stream::copy_2d`](crate::Stream::copy_2d) and [`Stream::upload_2d`](crate::Stream::upload_2d).
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
#[derive_where(Debug)]
pub struct PitchedViewMut<'a, T> {
    view: DeviceViewMut<'a, T>,
    shape: Shape,
}

/// In elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pitch: usize,
}

impl Shape {
    /// The shape, if it lies in `length` elements and rows do not overlap.
    pub(crate) fn within(width: usize, height: usize, pitch: usize, length: usize) -> Result<Self> {
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

    pub(crate) fn agree(self, operation: &'static str, target: Shape) -> Result<()> {
        let (from, to) = ([self.width, self.height], [target.width, target.height]);
        if from == to { Ok(()) } else { Err(Error::ShapeMismatch { operation, from, to }) }
    }

    /// The copy from this shape to `target`, of elements of type `T`; of no bytes if there is nothing to copy.
    pub(crate) fn rows<T>(self, target: Shape) -> Rows {
        let size = size_of::<T>();
        // Extents of what is empty are not bounded by any memory: nothing may be computed from them.
        if size == 0 || self.width == 0 || self.height == 0 {
            return Rows { width: 0, height: 0, source_pitch: 0, target_pitch: 0 };
        }
        // The pitch of a single row means nothing, and may be more than a device takes.
        let pitch = |shape: Shape| if shape.height == 1 { shape.width } else { shape.pitch };
        let (source_pitch, target_pitch) = (pitch(self) * size, pitch(target) * size);
        Rows { width: self.width * size, height: self.height, source_pitch, target_pitch }
    }
}

/// The methods that rows for reading share with rows for writing.
macro_rules! row_methods {
    ($Rows:ident, $View:ident) => {
        impl<'a, T: DeviceCopy> $View<'a, T> {
            /// The elements as `height` rows of `width`, each starting `pitch` elements after the one before.
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # fn main() -> ferrogrid::Result<()> {
            /// # let stream = Device::cpu().new_stream()?;
            /// let mut image = stream.upload(&[1, 2, 0, 3, 4, 0])?; // 2 rows of 2, each followed by one that does not count
            /// let mut rows = [0; 4];
            /// stream.download_2d(image.view().pitched(2, 2, 3)?, &mut rows, 2)?;
            /// assert_eq!(rows, [1, 2, 3, 4]);
            /// stream.upload_2d(&[5, 6, 7, 8], 2, image.view_mut().pitched(2, 2, 3)?)?;
            /// assert_eq!(stream.download(&image)?, [5, 6, 0, 7, 8, 0]);
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::PitchedView`] if rows overlap, or reach over the end.
            pub fn pitched(self, width: usize, height: usize, pitch: usize) -> Result<$Rows<'a, T>> {
                let shape = Shape::within(width, height, pitch, self.len())?;
                Ok($Rows::new(self, shape))
            }

            /// Every `step`-th element, from the first on: rows of one element, for strided copies.
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # fn main() -> ferrogrid::Result<()> {
            /// # let stream = Device::cpu().new_stream()?;
            /// let buffer = stream.upload(&[0_u32, 1, 2, 3, 4, 5, 6])?;
            /// let every_third = buffer.view().step_by(3)?;
            /// assert_eq!((every_third.width(), every_third.height()), (1, 3)); // 0, 3, 6
            ///
            /// let (zeros, mut buffer) = (stream.zeros(3)?, stream.fill(5, 6)?);
            /// stream.copy_2d(zeros.view().step_by(1)?, buffer.view_mut().step_by(2)?)?; // every second
            /// assert_eq!(stream.download(&buffer)?, [0, 5, 0, 5, 0, 5]);
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::PitchedView`] if `step` is 0.
            pub fn step_by(self, step: usize) -> Result<$Rows<'a, T>> {
                let height = self.len().div_ceil(step.max(1));
                self.pitched(1, height, step)
            }
        }

        impl<'a, T: DeviceCopy> $Rows<'a, T> {
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

            /// The address of the first element; see [`DeviceBuffer::as_device_ptr`](crate::DeviceBuffer::as_device_ptr).
            pub fn as_device_ptr(&self) -> DevicePtr<T> {
                DevicePtr::new(self.view.start)
            }

            /// The part in these columns and rows.
            ///
            /// # Errors
            /// [`Error::OutOfRange`] if a range does not lie in the view.
            pub fn slice(
                self,
                columns: impl RangeBounds<usize>,
                rows: impl RangeBounds<usize>,
            ) -> Result<Self> {
                let (first, shape) = self.shape.part(columns, rows)?;
                Ok($Rows::new(self.view.skip(first), shape))
            }

            /// `shape`, which lies in the elements of `view`.
            pub(crate) fn new(view: $View<'a, T>, shape: Shape) -> Self {
                $Rows { view, shape }
            }

            pub(crate) fn shape(&self) -> Shape {
                self.shape
            }

            /// Its use by a copy, which is never known to be of the whole allocation.
            pub(crate) fn access(&self) -> Access<'a> {
                self.view.access
            }

            /// The first byte.
            pub(crate) fn start(&self) -> *mut u8 {
                self.view.start as *mut u8
            }
        }

        impl<'a, T: DeviceCopy> From<$View<'a, T, 2>> for $Rows<'a, T> {
            /// Rows that follow each other.
            fn from(rows: $View<'a, T, 2>) -> Self {
                let ([width, height], length) = (rows.extent(), rows.len());
                $Rows::new(rows.shaped([length]), Shape { width, height, pitch: width })
            }
        }
    };
}

impl<'a, T: DeviceCopy> PitchedView<'a, T> {
    /// The elements from the first one to the last, with those between the rows: for a kernel that takes `&[T]` and the pitch.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let image = stream.upload(&[0, 1, 2, 3, 4, 5, 6, 7, 8])?; // 3 rows of 3
    /// let middle = image.view().pitched(3, 3, 3)?.slice(1..2, ..)?;
    /// assert_eq!(stream.download(middle.span())?, [1, 2, 3, 4, 5, 6, 7]);
    /// # Ok(()) }
    /// ```
    pub fn span(self) -> DeviceView<'a, T> {
        let Shape { width, height, pitch } = self.shape;
        let is_empty = width == 0 || height == 0;
        self.view.shaped([if is_empty { 0 } else { (height - 1) * pitch + width }])
    }
}

impl<'a, T: DeviceCopy> PitchedViewMut<'a, T> {
    /// As [`PitchedView::span`], to write: nothing else uses the elements between the rows meanwhile.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut image = stream.zeros::<u8>(9)?; // 3 rows of 3
    /// let right = image.view_mut().pitched(3, 3, 3)?.slice(2.., ..)?;
    /// assert_eq!(right.span().len(), 7);
    /// # Ok(()) }
    /// ```
    pub fn span(self) -> DeviceViewMut<'a, T> {
        let Shape { width, height, pitch } = self.shape;
        let is_empty = width == 0 || height == 0;
        self.view.shaped([if is_empty { 0 } else { (height - 1) * pitch + width }])
    }
}

row_methods!(PitchedView, DeviceView);
row_methods!(PitchedViewMut, DeviceViewMut);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::order::Use;

    /// Another thread may write the other half at the same time.
    #[test]
    fn rows_of_a_half_are_a_part() -> Result<()> {
        let stream = Device::cpu().new_stream()?;
        let mut buffer = stream.zeros::<u32>(8)?;
        assert_eq!(buffer.view_mut().pitched(2, 2, 4)?.access().usage(), Use::Write);
        let (left, right) = buffer.split_at_mut(4)?;
        assert_eq!([left.access().usage(), right.access().usage()], [Use::WritePart; 2]);
        let (left, right) = (left.pitched(2, 2, 2)?, right.step_by(2)?);
        assert_eq!([left.access().usage(), right.access().usage()], [Use::WritePart; 2]);
        assert_eq!(right.slice(.., 1..)?.access().usage(), Use::WritePart);
        Ok(())
    }
}
