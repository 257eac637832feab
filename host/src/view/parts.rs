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

/// Views taken apart one by one.
macro_rules! parts {
    ($Parts:ident, $View:ident) => {
        impl<'a, T: DeviceCopy> $View<'a, T> {
            /// The elements in parts of `size`, the last of which may be shorter; those to write may be written
            /// independently.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let mut buffer = stream.zeros::<usize>(5)?;
            /// for (index, part) in buffer.view_mut().chunks(2)?.enumerate() {
            ///     stream.fill_into(index, part)?;
            /// }
            /// assert_eq!(stream.download(&buffer)?, [0, 0, 1, 1, 2]);
            /// let lengths: Vec<usize> = buffer.view().chunks(2)?.map(|part| part.len()).collect();
            /// assert_eq!(lengths, [2, 2, 1]);
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::ZeroChunk`] if `size` is 0.
            pub fn chunks(self, size: usize) -> Result<$Parts<'a, T>> {
                if size == 0 { Err(Error::ZeroChunk) } else { Ok($Parts { rest: Some(self), size }) }
            }
        }

        impl<'a, T: DeviceCopy> Iterator for $Parts<'a, T> {
            type Item = $View<'a, T>;

            fn next(&mut self) -> Option<Self::Item> {
                let rest = self.rest.take().filter(|rest| !rest.is_empty())?;
                let middle = self.size.min(rest.len());
                let (first, rest) = rest.split_at(middle).ok()?;
                self.rest = Some(rest);
                Some(first)
            }
        }

        impl<T: DeviceCopy> FusedIterator for $Parts<'_, T> {}
    };
}

parts!(Chunks, DeviceView);
parts!(ChunksMut, DeviceViewMut);

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
