//! Splitting of views, and views as elements of another type.

use std::any::type_name;
use std::iter::FusedIterator;

use bytemuck::{AnyBitPattern, NoUninit, Pod};
use ferrogrid_device::DeviceCopy;

use crate::error::{Error, Result};
use crate::view::{DeviceView, DeviceViewMut};

/// The parts of a view, to read; from [`DeviceView::chunks`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let buffer = stream.upload(&[1, 2, 3, 4, 5])?;
/// let mut sums = Vec::new();
/// for part in buffer.chunks(2)? {
///     sums.push(stream.download(part)?.iter().sum::<i32>());
/// }
/// assert_eq!(sums, [3, 7, 5]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Chunks<'a, T> {
    rest: Option<DeviceView<'a, T>>,
    size: usize,
}

/// The parts of a view, to write; from [`DeviceViewMut::chunks`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut buffer = stream.zeros::<usize>(5)?;
/// for (index, part) in buffer.chunks_mut(2)?.enumerate() {
///     stream.fill_into(index, part)?;
/// }
/// assert_eq!(stream.download(&buffer)?, [0, 0, 1, 1, 2]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ChunksMut<'a, T> {
    rest: Option<DeviceViewMut<'a, T>>,
    size: usize,
}

impl<'a, T: DeviceCopy> DeviceView<'a, T> {
    /// The first `middle` elements and the rest.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[1, 2, 3])?;
    /// let (first, rest) = buffer.view().split_at(1)?;
    /// assert_eq!((stream.download(first)?, stream.download(rest)?), (vec![1], vec![2, 3]));
    /// assert!(buffer.view().split_at(4).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `middle` is greater than the length.
    pub fn split_at(self, middle: usize) -> Result<(DeviceView<'a, T>, DeviceView<'a, T>)> {
        Ok((self.slice(..middle)?, self.slice(middle..)?))
    }

    /// The elements in parts of `size`, the last of which may be shorter.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let buffer = stream.upload(&[1, 2, 3, 4, 5])?;
    /// let lengths: Vec<usize> = buffer.view().chunks(2)?.map(|part| part.len()).collect();
    /// assert_eq!(lengths, [2, 2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ZeroChunk`] if `size` is 0.
    pub fn chunks(self, size: usize) -> Result<Chunks<'a, T>> {
        if size == 0 { Err(Error::ZeroChunk) } else { Ok(Chunks { rest: Some(self), size }) }
    }

    /// The same bytes as elements of another type, both plain data.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let pixels = stream.upload(&[[1_u8, 2, 3, 4], [5, 6, 7, 8]])?;
    /// assert_eq!(stream.download(pixels.view().cast::<u8>()?)?, [1, 2, 3, 4, 5, 6, 7, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ViewCast`] if the bytes are no whole number of elements, or do not start where one may.
    pub fn cast<U: DeviceCopy + AnyBitPattern>(self) -> Result<DeviceView<'a, U>>
    where
        T: NoUninit,
    {
        let length = elements::<T, U>(self.start(), self.len())?;
        Ok(self.with_elements(length))
    }
}

impl<'a, T: DeviceCopy> DeviceViewMut<'a, T> {
    /// The elements in parts of `size`, the last of which may be shorter, to write independently.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut buffer = stream.zeros::<usize>(5)?;
    /// for (index, part) in buffer.view_mut().chunks(2)?.enumerate() {
    ///     stream.fill_into(index, part)?;
    /// }
    /// assert_eq!(stream.download(&buffer)?, [0, 0, 1, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ZeroChunk`] if `size` is 0.
    pub fn chunks(self, size: usize) -> Result<ChunksMut<'a, T>> {
        if size == 0 { Err(Error::ZeroChunk) } else { Ok(ChunksMut { rest: Some(self), size }) }
    }

    /// The same bytes as elements of another type, both plain data.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut pixels = stream.zeros::<[u8; 4]>(2)?;
    /// stream.upload_into(&[1, 2, 3, 4, 5, 6, 7, 8], pixels.view_mut().cast::<u8>()?)?;
    /// assert_eq!(stream.download(&pixels)?, [[1, 2, 3, 4], [5, 6, 7, 8]]);
    /// // A buffer of bytes as words: only whole ones.
    /// let mut bytes = stream.zeros::<u8>(6)?;
    /// assert!(matches!(bytes.view_mut().cast::<u32>(), Err(Error::ViewCast { length: 6, .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`DeviceView::cast`].
    pub fn cast<U: DeviceCopy + Pod>(self) -> Result<DeviceViewMut<'a, U>>
    where
        T: Pod,
    {
        let length = elements::<T, U>(self.start(), self.len())?;
        Ok(self.with_elements(length))
    }
}

impl<'a, T: DeviceCopy> Iterator for Chunks<'a, T> {
    type Item = DeviceView<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take().filter(|rest| !rest.is_empty())?;
        let (first, rest) = rest.split_at(self.size.min(rest.len())).ok()?;
        self.rest = Some(rest);
        Some(first)
    }
}

impl<'a, T: DeviceCopy> Iterator for ChunksMut<'a, T> {
    type Item = DeviceViewMut<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take().filter(|rest| !rest.is_empty())?;
        let middle = self.size.min(rest.len());
        let (first, rest) = rest.split_at(middle).ok()?;
        self.rest = Some(rest);
        Some(first)
    }
}

impl<T: DeviceCopy> FusedIterator for Chunks<'_, T> {}
impl<T: DeviceCopy> FusedIterator for ChunksMut<'_, T> {}

/// The number of elements of type `U` in `length` elements of type `T`, if they fit and are aligned.
fn elements<T, U>(start: *const T, length: usize) -> Result<usize> {
    let bytes = length * size_of::<T>();
    let no = |reason| Err(Error::ViewCast { length, from: type_name::<T>(), to: type_name::<U>(), reason });
    if bytes == 0 {
        return Ok(0);
    }
    if size_of::<U>() == 0 || !bytes.is_multiple_of(size_of::<U>()) {
        return no("the bytes are no whole number of elements");
    }
    if !start.addr().is_multiple_of(align_of::<U>()) {
        return no("the bytes do not start where such an element may");
    }
    Ok(bytes / size_of::<U>())
}

/// The parts of a buffer, and views of the whole, by its methods `len`, `view` and `view_mut`.
macro_rules! parts_by_view {
    ([$($generics:tt)*] $buffer:ty) => {
        impl<$($generics)* T: ferrogrid_device::DeviceCopy> $buffer {
            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The number of bytes.
            pub fn byte_len(&self) -> usize {
                self.len() * size_of::<T>()
            }

            /// The elements of `range`, to read.
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # fn main() -> ferrogrid::Result<()> {
            /// let stream = Device::cpu().new_stream()?;
            /// let mut buffer = stream.upload(&[1, 2, 3, 4])?;
            /// assert_eq!(stream.download(buffer.slice(1..3)?)?, [2, 3]);
            /// stream.fill_into(0, buffer.slice_mut(2..)?)?;
            /// assert_eq!(stream.download(&buffer)?, [1, 2, 0, 0]);
            /// assert!(buffer.slice(3..9).is_err());
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::OutOfRange`](crate::Error::OutOfRange) if the range does not lie in the buffer.
            pub fn slice(
                &self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> $crate::Result<$crate::DeviceView<'_, T>> {
                self.view().slice(range)
            }

            /// The elements of `range`, to write.
            ///
            /// # Errors
            /// [`Error::OutOfRange`](crate::Error::OutOfRange) if the range does not lie in the buffer.
            pub fn slice_mut(
                &mut self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> $crate::Result<$crate::DeviceViewMut<'_, T>> {
                self.view_mut().slice(range)
            }

            /// The first `middle` elements and the rest, to write independently.
            ///
            /// The two parts may be given to one launch. Work on them on different streams is ordered as if
            /// they overlapped: order is kept per buffer.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let mut buffer = stream.zeros::<u32>(5)?;
            /// let (left, right) = buffer.split_at_mut(2)?;
            /// stream.fill_into(1, left)?;
            /// stream.fill_into(9, right)?;
            /// assert_eq!(stream.download(&buffer)?, [1, 1, 9, 9, 9]);
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::OutOfRange`](crate::Error::OutOfRange) if `middle` is greater than the length.
            pub fn split_at_mut(
                &mut self,
                middle: usize,
            ) -> $crate::Result<($crate::DeviceViewMut<'_, T>, $crate::DeviceViewMut<'_, T>)> {
                self.view_mut().split_at(middle)
            }

            /// The first `width * height` elements as `height` rows of `width`: for a kernel's `Plane<T>`.
            ///
            /// # Errors
            /// [`Error::ViewTooLarge`](crate::Error::ViewTooLarge) if that is more than the buffer has.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let image = stream.upload(&[0.0_f32; 12])?;
            /// assert_eq!(image.view_2d(4, 3)?.extent(), [4, 3]);
            /// assert!(image.view_2d(4, 4).is_err());
            /// # Ok(()) }
            /// ```
            pub fn view_2d(
                &self,
                width: usize,
                height: usize,
            ) -> $crate::Result<$crate::DeviceView<'_, T, 2>> {
                self.view().into_2d(width, height)
            }

            /// The first `width * height` elements as `height` rows of `width`, to write by a kernel of
            /// rank 2.
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # #[ferrogrid::module(host_only)]
            /// # mod kernels {
            /// # use ferrogrid::device::prelude::*;
            /// /// Each element gets 10 times its row, and its column.
            /// #[kernel]
            /// pub fn number(t: Thread<2>, mut y: DisjointSlice<u32, 2>) {
            ///     let i = t.index();
            ///     if let Some(y) = y.get_mut(i) {
            ///         *y = (10 * i.y() + i.x()) as u32;
            ///     }
            /// }
            /// # }
            /// # fn main() -> ferrogrid::Result<()> {
            /// # let stream = Device::cpu().new_stream()?;
            /// let mut buffer = stream.zeros::<u32>(6)?;
            /// kernels::number(&stream, Grid::cover([3, 2]), buffer.view_2d_mut(3, 2)?)?;
            /// assert_eq!(stream.download(&buffer)?, [0, 1, 2, 10, 11, 12]);
            /// assert!(buffer.view_2d_mut(4, 2).is_err()); // 8 elements of 6
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::ViewTooLarge`](crate::Error::ViewTooLarge) if that is more than the buffer has.
            pub fn view_2d_mut(
                &mut self,
                width: usize,
                height: usize,
            ) -> $crate::Result<$crate::DeviceViewMut<'_, T, 2>> {
                self.view_mut().into_2d(width, height)
            }

            /// The first `width * height * depth` elements as `depth` layers of `height` rows of `width`: for a kernel's
            /// `Volume<T>`.
            ///
            /// # Errors
            /// [`Error::VolumeTooLarge`](crate::Error::VolumeTooLarge) if that is more than the buffer has.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let volume = stream.zeros::<f32>(24)?;
            /// assert_eq!(volume.view_3d(4, 3, 2)?.extent(), [4, 3, 2]); // x, y, z
            /// assert!(volume.view_3d(4, 3, 3).is_err());
            /// # Ok(()) }
            /// ```
            pub fn view_3d(
                &self,
                width: usize,
                height: usize,
                depth: usize,
            ) -> $crate::Result<$crate::DeviceView<'_, T, 3>> {
                self.view().into_3d(width, height, depth)
            }

            /// The first `width * height * depth` elements as `depth` layers of `height` rows of `width`, to write by
            /// a kernel of rank 3.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let mut volume = stream.zeros::<f32>(24)?;
            /// assert_eq!(volume.view_3d_mut(4, 3, 2)?.extent(), [4, 3, 2]); // x, y, z
            /// assert!(volume.view_3d_mut(4, 3, 3).is_err());
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::VolumeTooLarge`](crate::Error::VolumeTooLarge) if that is more than the buffer has.
            pub fn view_3d_mut(
                &mut self,
                width: usize,
                height: usize,
                depth: usize,
            ) -> $crate::Result<$crate::DeviceViewMut<'_, T, 3>> {
                self.view_mut().into_3d(width, height, depth)
            }

            /// All elements, to be changed by many threads at once: for a kernel that takes
            /// `&[DeviceAtomic<T>]`.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let mut counts = stream.zeros::<u32>(256)?;
            /// let counts = counts.as_atomic();
            /// assert_eq!(counts.len(), 256); // histogram(&stream, grid, &data, counts)?;
            /// # Ok(()) }
            /// ```
            pub fn as_atomic(&mut self) -> $crate::DeviceAtomicView<'_, T> {
                self.view_mut().into_atomic()
            }

            /// The elements in parts of `size`, to read; see [`DeviceView::chunks`](crate::DeviceView::chunks).
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # fn main() -> ferrogrid::Result<()> {
            /// # let stream = Device::cpu().new_stream()?;
            /// let buffer = stream.upload(&[1, 2, 3, 4, 5])?;
            /// let parts: Vec<_> = buffer.chunks(3)?.collect();
            /// assert_eq!(stream.download(parts[1])?, [4, 5]); // the last is shorter
            /// assert!(matches!(buffer.chunks(0), Err(Error::ZeroChunk)));
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::ZeroChunk`](crate::Error::ZeroChunk) if `size` is 0.
            pub fn chunks(&self, size: usize) -> $crate::Result<$crate::Chunks<'_, T>> {
                self.view().chunks(size)
            }

            /// The elements in parts of `size`, to write independently; see [`DeviceViewMut::chunks`](crate::DeviceViewMut::chunks).
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # fn main() -> ferrogrid::Result<()> {
            /// # let stream = Device::cpu().new_stream()?;
            /// let devices_work = [10, 20];
            /// let mut buffer = stream.zeros::<u32>(4)?;
            /// for (value, part) in devices_work.into_iter().zip(buffer.chunks_mut(2)?) {
            ///     stream.fill_into(value, part)?;
            /// }
            /// assert_eq!(stream.download(&buffer)?, [10, 10, 20, 20]);
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::ZeroChunk`](crate::Error::ZeroChunk) if `size` is 0.
            pub fn chunks_mut(&mut self, size: usize) -> $crate::Result<$crate::ChunksMut<'_, T>> {
                self.view_mut().chunks(size)
            }

            /// The address of the first element, for kernels that take raw pointers and for other libraries.
            /// Well aligned and not null even if the buffer is empty. Uses through it are not ordered with
            /// other streams, and do not keep the buffer alive; both are the responsibility of the `unsafe` code
            /// that uses it.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let buffer = stream.upload(&[1_u32, 2])?;
            /// assert!(!buffer.as_device_ptr().as_raw().is_null());
            /// # Ok(()) }
            /// ```
            pub fn as_device_ptr(&self) -> $crate::DevicePtr<T> {
                self.view().as_device_ptr()
            }

            /// As `as_device_ptr`, to write through.
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # #[ferrogrid::module(host_only)]
            /// # mod kernels {
            /// # use ferrogrid::device::prelude::*;
            /// /// x[i] <- 2 x[i]
            /// ///
            /// /// # Safety
            /// /// `x` leads to an element for each thread.
            /// #[kernel]
            /// pub unsafe fn double(t: Thread<1>, x: *mut u32) {
            ///     // SAFETY: there is an element for each thread.
            ///     unsafe { *x.add(t.index().get()) *= 2 };
            /// }
            /// # }
            /// # fn main() -> ferrogrid::Result<()> {
            /// # let stream = Device::cpu().new_stream()?;
            /// let mut x = stream.upload(&[1, 2, 3])?;
            /// // SAFETY: three threads, three elements, in a buffer that lives longer than the launch.
            /// unsafe { kernels::double(&stream, Grid::new(1, 3), x.as_device_ptr_mut())? };
            /// assert_eq!(stream.download(&x)?, [2, 4, 6]);
            /// # Ok(()) }
            /// ```
            pub fn as_device_ptr_mut(&mut self) -> $crate::DevicePtrMut<T> {
                self.view_mut().as_device_ptr_mut()
            }
        }
    };
}
pub(crate) use parts_by_view;

#[cfg(test)]
mod tests {
    use std::ptr::without_provenance;

    use super::*;

    #[test]
    fn bytes_are_whole_elements_where_such_may_be() {
        let at = |start: usize| without_provenance::<u32>(4096 + start);
        assert_eq!(elements::<u32, u64>(at(0), 4), Ok(2));
        assert_eq!(elements::<u32, [u8; 3]>(at(4), 3), Ok(4));
        assert_eq!(elements::<u32, u8>(at(4), 1), Ok(4));
        assert_eq!(elements::<u32, u64>(at(4), 0), Ok(0), "nothing may be anywhere");
        let refused = |found: Result<usize>, why: &str| match found {
            Err(Error::ViewCast { reason, .. }) => assert!(reason.contains(why), "{reason}"),
            other => panic!("{other:?}"),
        };
        refused(elements::<u32, u64>(at(0), 3), "whole number");
        refused(elements::<u32, ()>(at(0), 3), "whole number");
        refused(elements::<u32, u64>(at(4), 2), "do not start");
    }
}
