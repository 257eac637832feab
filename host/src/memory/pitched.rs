//! Device memory whose rows start at multiples of 256 bytes.

use bytemuck::Zeroable;
use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use crate::backend::Contents;
use crate::error::{Error, Result};
use crate::memory::buffer::DeviceBuffer;
use crate::stream::Stream;
use crate::view::DeviceViewMut;
use crate::view::pitched::{PitchedView, PitchedViewMut, Shape};

/// Rows start at multiples of so many bytes in a [`PitchedBuffer`].
const ROW_ALIGNMENT: usize = 256;

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
#[derive_where(Debug)]
pub struct PitchedBuffer<T: DeviceCopy> {
    buffer: DeviceBuffer<T>,
    shape: Shape,
}

impl<T: DeviceCopy> PitchedBuffer<T> {
    /// The rows, to read.
    pub fn view(&self) -> PitchedView<'_, T> {
        PitchedView::new(self.buffer.view(), self.shape)
    }

    /// The rows, to write.
    pub fn view_mut(&mut self) -> PitchedViewMut<'_, T> {
        PitchedViewMut::new(self.buffer.view_mut(), self.shape)
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
        Ok(PitchedBuffer { buffer: DeviceBuffer::allocate(self, length, Contents::Zeroed)?, shape })
    }
}
