//! Copies of rows that do not follow one after the other.

use ferrogrid_device::DeviceCopy;

use crate::backend::Place;
use crate::error::Result;
use crate::memory::access::enqueue;
use crate::stream::Stream;
use crate::view::pitched::{PitchedView, PitchedViewMut, Shape};

impl Stream {
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
    /// [`Error::ShapeMismatch`](crate::Error::ShapeMismatch), or a failure of the device.
    pub fn copy_2d<T: DeviceCopy>(
        &self,
        source: PitchedView<'_, T>,
        target: PitchedViewMut<'_, T>,
    ) -> Result<()> {
        source.shape().agree("copy_2d", target.shape())?;
        let rows = source.shape().rows::<T>(target.shape());
        // SAFETY: both have these rows in memory of this device, ordered here for their use; they do not
        // overlap, because one is borrowed mutably.
        enqueue(self.inner(), Some(source.access()), Some(target.access()), rows.bytes(), || unsafe {
            self.inner().copy_rows(target.start(), source.start(), rows, (Place::Device, Place::Device))
        })
    }

    /// Copies rows of host memory that start `source_pitch` elements apart (`cuMemcpy2DAsync`). Returns
    /// when `source` is free to be changed.
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
    /// [`Error::PitchedView`](crate::Error::PitchedView) if `source` does not have the rows of `target` at that pitch; or a failure
    /// of the device.
    pub fn upload_2d<T: DeviceCopy>(
        &self,
        source: &[T],
        source_pitch: usize,
        target: PitchedViewMut<'_, T>,
    ) -> Result<()> {
        let shape = target.shape();
        let from = Shape::within(shape.width, shape.height, source_pitch, source.len())?;
        let rows = from.rows::<T>(shape);
        enqueue(self.inner(), None, Some(target.access()), rows.bytes(), || {
            let (start, places) = (source.as_ptr().cast(), (Place::Device, Place::Host));
            // SAFETY: both have these rows, the target's ordered for writing here; `source` is borrowed until
            // the copy has been waited for.
            unsafe { self.inner().copy_rows(target.start(), start, rows, places)? };
            self.synchronize()
        })
    }

    /// Copies rows to host memory, where they start `target_pitch` elements apart (`cuMemcpy2DAsync`), once
    /// all work enqueued here so far has run. What lies between the rows is left as it is.
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
    /// [`Error::PitchedView`](crate::Error::PitchedView) if `target` does not have the rows of `source` at that pitch; or as
    /// [`Stream::download`].
    pub fn download_2d<T: DeviceCopy>(
        &self,
        source: PitchedView<'_, T>,
        target: &mut [T],
        target_pitch: usize,
    ) -> Result<()> {
        let shape = source.shape();
        let to = Shape::within(shape.width, shape.height, target_pitch, target.len())?;
        let (rows, sources) = (shape.rows::<T>(to), source.access().memory().writers().sources());
        let (start, places) = (target.as_mut_ptr().cast(), (Place::Host, Place::Device));
        // SAFETY: both have these rows, the source's ordered for reading here; `target` is borrowed
        // until the copy has been waited for.
        enqueue(self.inner(), Some(source.access()), None, rows.bytes(), || unsafe {
            self.inner().copy_rows(start, source.start(), rows, places)
        })?;
        self.synchronize()?;
        sources.check()
    }
}
