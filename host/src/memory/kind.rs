//! What the kinds of memory share: parts of it, to read and to write, and passing it as an argument. Each kind calls these
//! macros in its own file.

/// Parts of memory to read. The memory has methods `len` and `view`.
macro_rules! parts_to_read {
    ([$($generics:tt)*] $memory:ty) => {
        impl<$($generics)* T: ferrogrid_device::DeviceCopy> $memory {
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
            pub fn slice(&self, range: impl std::ops::RangeBounds<usize>) -> $crate::Result<$crate::DeviceView<'_, T>> {
                self.view().slice(range)
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
            pub fn view_2d(&self, width: usize, height: usize) -> $crate::Result<$crate::DeviceView<'_, T, 2>> {
                self.view().into_2d(width, height)
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
            pub fn view_3d(&self, width: usize, height: usize, depth: usize) -> $crate::Result<$crate::DeviceView<'_, T, 3>> {
                self.view().into_3d(width, height, depth)
            }

            /// The first elements in a shape of one to five axes, `[width, height, depth, ..]`: for a kernel's `BoxMap`.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let heads = stream.zeros::<f32>(2 * 3 * 5 * 4)?; // 2 batches of 3 heads of 5 tokens of 4 elements
            /// assert_eq!(heads.view_nd([4, 5, 3, 2])?.extent(), [4, 5, 3, 2]);
            /// let error = heads.view_nd([4, 5, 3, 3]).unwrap_err();
            /// assert_eq!(error.to_string(), "a view of [4, 5, 3, 3] elements is larger than the 120 elements that there are");
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// As [`DeviceView::into_nd`](crate::DeviceView::into_nd).
            pub fn view_nd<const R: usize>(&self, extent: [usize; R]) -> $crate::Result<$crate::DeviceView<'_, T, R>> {
                self.view().into_nd(extent)
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

            /// The address of the first element, for kernels that take raw pointers and for other libraries.
            /// Well aligned and not null even if the buffer is empty. Uses through it are not ordered with
            /// other streams, and do not keep the buffer alive; that is the business of the `unsafe` code
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
        }
    };
}

/// Parts of memory to write. The memory has a method `view_mut`.
macro_rules! parts_to_write {
    ([$($generics:tt)*] $memory:ty) => {
        impl<$($generics)* T: ferrogrid_device::DeviceCopy> $memory {
            /// The elements of `range`, to write.
            ///
            /// # Errors
            /// [`Error::OutOfRange`](crate::Error::OutOfRange) if the range does not lie in the buffer.
            pub fn slice_mut(&mut self, range: impl std::ops::RangeBounds<usize>) -> $crate::Result<$crate::DeviceViewMut<'_, T>> {
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
            pub fn split_at_mut(&mut self, middle: usize) -> $crate::Result<($crate::DeviceViewMut<'_, T>, $crate::DeviceViewMut<'_, T>)> {
                self.view_mut().split_at(middle)
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
            pub fn view_2d_mut(&mut self, width: usize, height: usize) -> $crate::Result<$crate::DeviceViewMut<'_, T, 2>> {
                self.view_mut().into_2d(width, height)
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

            /// The first elements in a shape of one to five axes, `[width, height, depth, ..]`: for a kernel's `BoxMapMut`.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let mut heads = stream.zeros::<f32>(2 * 3 * 5 * 4)?;
            /// assert_eq!(heads.view_nd_mut([4, 5, 3, 2])?.len(), 120);
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// As [`DeviceView::into_nd`](crate::DeviceView::into_nd).
            pub fn view_nd_mut<const R: usize>(
                &mut self,
                extent: [usize; R],
            ) -> $crate::Result<$crate::DeviceViewMut<'_, T, R>> {
                self.view_mut().into_nd(extent)
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

            /// As [`DeviceBuffer::as_device_ptr`](crate::DeviceBuffer::as_device_ptr), to write through.
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

/// A kind of memory that has a `DeviceBuffer` in its field `buffer`. What only reads is that buffer's. There is no `DerefMut`:
/// it would let other memory take the place of this.
macro_rules! over_device_buffer {
    ($Buffer:ident) => {
        $crate::view::argument::pass_by_view!([] $Buffer<T>);
        $crate::memory::kind::parts_to_write!([] $Buffer<T>);

        impl<T: ferrogrid_device::DeviceCopy> $Buffer<T> {
            /// All elements, to write by a device.
            pub fn view_mut(&mut self) -> $crate::DeviceViewMut<'_, T> {
                self.buffer.view_mut()
            }
        }

        // What only reads is as in any device buffer.
        deref_to_field!([T: ferrogrid_device::DeviceCopy] $Buffer<T> => buffer: $crate::DeviceBuffer<T>);
    };
}

pub(crate) use {over_device_buffer, parts_to_read, parts_to_write};

#[cfg(test)]
mod tests {
    use crate::device::Device;
    use crate::error::Result;

    #[test]
    fn memory_over_a_device_buffer_is_written_in_the_parts_of_one() -> Result<()> {
        let stream = Device::cpu().new_stream()?;
        let mut data = stream.managed_zeros::<u32>(6)?;
        let (left, right) = data.split_at_mut(2)?;
        stream.fill_into(1, left)?;
        stream.fill_into(2, right)?;
        assert_eq!(data.read()?, [1, 1, 2, 2, 2, 2]);
        for (value, part) in (7..).zip(data.chunks_mut(4)?) {
            stream.fill_into(value, part)?;
        }
        assert_eq!(data.read()?, [7, 7, 7, 7, 8, 8]);
        assert_eq!(
            (data.view_2d_mut(3, 2)?.extent(), data.view_3d_mut(3, 2, 1)?.extent()),
            ([3, 2], [3, 2, 1])
        );
        assert_eq!(data.as_atomic().slice(1..)?.len(), 5);
        Ok(())
    }
}
