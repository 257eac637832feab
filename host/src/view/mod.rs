//! Borrowed parts of device memory. This file has the contiguous ones, [`DeviceView`] and [`DeviceViewMut`].
//!
//! `argument` says what may stand for a parameter or an operand of a copy. `parts` splits and casts views;
//! `aligned` and `atomic` change what an element is; `pitched` has rows with a stride; `pointer` has raw
//! device addresses.

pub(crate) mod aligned;
pub(crate) mod argument;
pub(crate) mod atomic;
pub(crate) mod parts;
pub(crate) mod pitched;
pub(crate) mod pointer;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::ptr::{NonNull, from_ref};

use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::memory::access::Access;
use crate::order::Use;
use crate::view::atomic::DeviceAtomicView;
use crate::view::pointer::{DevicePtr, DevicePtrMut};

/// Elements of a device buffer, to read: what `&[T]` is to a `Vec<T>`. In rank 2 they are `height` rows of
/// `width` elements, one after the other.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// let stream = ferrogrid_host::Device::cpu().new_stream()?;
/// let buffer = stream.upload(&[0_u32, 1, 2, 3, 4, 5])?;
/// let rows = buffer.view().into_2d(3, 2)?; // for a kernel that takes `Plane<u32>`
/// assert_eq!((rows.width(), rows.height(), rows.len()), (3, 2, 6));
/// assert_eq!(stream.download(buffer.view().slice(4..)?)?, [4, 5]);
/// # Ok(()) }
/// ```
///
/// A view is `Copy`, like `&[T]`, and can be split:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let buffer = stream.upload(&[0_u32, 1, 2, 3, 4, 5])?;
/// let view = buffer.view();
/// assert!(view.extent() == [6] && !view.is_empty() && view.device() == stream.device());
/// let (left, right) = view.split_at(2)?;
/// assert_eq!((stream.download(left)?, stream.download(right)?), (vec![0, 1], vec![2, 3, 4, 5]));
/// assert_eq!(right.as_device_ptr(), view.as_device_ptr().add(2));
/// # Ok(()) }
/// ```
#[derive_where(Clone, Copy, Debug)]
pub struct DeviceView<'a, T, const R: usize = 1> {
    start: *const T,
    /// Elements along each axis, x first.
    extent: [usize; R],
    /// To read, unless the elements are atomic.
    access: Access<'a>,
    elements: PhantomData<&'a [T]>,
}

/// Elements of a device buffer, to write: what `&mut [T]` is to a `Vec<T>`. In rank 2 they are
/// `height` rows of `width` elements, one after the other.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// let stream = ferrogrid_host::Device::cpu().new_stream()?;
/// let mut buffer = stream.zeros::<u32>(6)?;
/// let mut view = buffer.view_mut();
/// stream.fill_into(1, view.reborrow().slice(..2)?)?;
/// stream.fill_into(2, view.slice(4..)?)?;
/// assert_eq!(stream.download(&buffer)?, [1, 1, 0, 0, 2, 2]);
/// # Ok(()) }
/// ```
///
/// In two dimensions, in independent parts, and for atomic changes:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut buffer = stream.zeros::<u32>(6)?;
/// let mut rows = buffer.view_mut().into_2d(3, 2)?; // for a kernel that takes `DisjointSlice<u32, 2>`
/// assert!(rows.extent() == [3, 2] && rows.width() == 3 && rows.height() == 2);
/// assert!(rows.len() == 6 && !rows.is_empty() && rows.device() == stream.device());
/// assert!(!rows.as_device_ptr_mut().as_raw().is_null());
/// assert_eq!(stream.download(rows.view())?, [0; 6]); // read again, while no writer exists
///
/// let (left, right) = buffer.view_mut().split_at(4)?; // to write independently
/// stream.fill_into(1, left)?;
/// assert_eq!(right.into_atomic().len(), 2); // for a kernel that takes `&[DeviceAtomic<u32>]`
/// let error = buffer.view_mut().into_3d(3, 2, 2).unwrap_err(); // 12 elements of 6
/// assert!(matches!(error, Error::VolumeTooLarge { length: 6, .. }), "{error}");
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct DeviceViewMut<'a, T, const R: usize = 1> {
    start: *mut T,
    /// Elements along each axis, x first.
    extent: [usize; R],
    /// To write, or to write a part, if others may be in use meanwhile.
    access: Access<'a>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: a view is a `&[T]` in device memory.
unsafe impl<T: Sync, const R: usize> Send for DeviceView<'_, T, R> {}
// SAFETY: as above.
unsafe impl<T: Sync, const R: usize> Sync for DeviceView<'_, T, R> {}
// SAFETY: a view is a `&mut [T]` in device memory.
unsafe impl<T: Send, const R: usize> Send for DeviceViewMut<'_, T, R> {}
// SAFETY: as above.
unsafe impl<T: Sync, const R: usize> Sync for DeviceViewMut<'_, T, R> {}

/// The methods that views for reading share with views for writing.
macro_rules! view_methods {
    ($View:ident) => {
        // Without `DeviceCopy`: generated code calls these, and a kernel over other elements is to be reported
        // once, at its signature.
        impl<T, const R: usize> $View<'_, T, R> {
            /// The host addresses of the kernel parameters that this view becomes: pointer, width, height, depth and so on. As
            /// many count as the rank says.
            #[doc(hidden)]
            #[inline]
            pub fn params(&self) -> [*const c_void; 6] {
                let [x, y, z, u, v] = addresses(&self.extent);
                [from_ref(&self.start).cast(), x, y, z, u, v]
            }

            pub(crate) fn extents(&self) -> &[usize; R] {
                &self.extent
            }
        }

        impl<'a, T: DeviceCopy, const R: usize> $View<'a, T, R> {
            /// The number of elements.
            pub fn len(&self) -> usize {
                self.extent.iter().product()
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The elements along each axis, x first.
            pub fn extent(&self) -> [usize; R] {
                self.extent
            }

            /// The device whose memory this is.
            pub fn device(&self) -> &'a Device {
                self.memory().device()
            }

            pub(crate) fn memory(&self) -> &'a Memory {
                self.access.memory()
            }

            /// The first elements in another shape; there must be as many.
            pub(crate) fn shaped<const S: usize>(self, extent: [usize; S]) -> $View<'a, T, S> {
                $View { start: self.start, extent, access: self.access, elements: PhantomData }
            }
        }

        impl<T: DeviceCopy> $View<'_, T, 2> {
            /// The elements in a row.
            pub fn width(&self) -> usize {
                self.extent[0]
            }

            /// The number of rows.
            pub fn height(&self) -> usize {
                self.extent[1]
            }
        }

        impl<'a, T: DeviceCopy> $View<'a, T> {
            /// The elements of `range`.
            ///
            /// ```
            /// # fn main() -> ferrogrid_host::Result<()> {
            /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
            /// let buffer = stream.upload(&[0_u32, 1, 2, 3])?;
            /// assert_eq!(buffer.view().slice(1..=2)?.len(), 2);
            /// let error = buffer.view().slice(2..9).unwrap_err();
            /// assert!(error.to_string().contains("9"), "it names the range and the length");
            /// # Ok(()) }
            /// ```
            ///
            /// # Errors
            /// [`Error::OutOfRange`] if the range does not lie in the view.
            pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
                let (first, len) = resolve(range, self.extent[0])?;
                Ok($View { extent: [len], ..self.skip(first) })
            }

            /// The elements from number `first` on, which need not be there.
            fn skip(self, first: usize) -> Self {
                $View { start: self.start.wrapping_add(first), ..self }
            }

            /// The first `width * height` elements as `height` rows of `width`: for a kernel's `Plane<T>` or
            /// `DisjointSlice<T, 2>`.
            ///
            /// # Errors
            /// [`Error::ViewTooLarge`] if that is more than the view has.
            pub fn into_2d(self, width: usize, height: usize) -> Result<$View<'a, T, 2>> {
                self.into_nd([width, height])
            }

            /// The first `width * height * depth` elements as `depth` layers of `height` rows of `width`: for a kernel's
            /// `Volume<T>` or `DisjointSlice<T, 3>`.
            ///
            /// # Errors
            /// [`Error::VolumeTooLarge`] if that is more than the view has.
            pub fn into_3d(self, width: usize, height: usize, depth: usize) -> Result<$View<'a, T, 3>> {
                self.into_nd([width, height, depth])
            }

            /// The first elements in another shape of one to five axes, `[width, height, depth, ..]`: for a kernel's `BoxMap` or
            /// `BoxMapMut`.
            ///
            /// # Errors
            /// [`Error::ViewTooLarge`], [`Error::VolumeTooLarge`] or [`Error::TensorTooLarge`] if those are more than the view has.
            pub fn into_nd<const S: usize>(self, extent: [usize; S]) -> Result<$View<'a, T, S>> {
                const { assert!(S >= 1 && S <= 5, "a view has one to five axes") };
                check_extent(extent, self.extent[0])?;
                Ok(self.shaped(extent))
            }

            /// The same bytes as elements of another type; `len` of them must be there, and be such elements, and what is
            /// written as such must be elements of the old type.
            pub(crate) fn with_elements<U: DeviceCopy>(self, len: usize) -> $View<'a, U> {
                // No element has a place, but one that is aligned for it.
                let start = NonNull::dangling().as_ptr();
                let empty = $View { start, extent: [0], access: self.access, elements: PhantomData };
                if len == 0 { empty } else { $View { start: self.start.cast(), extent: [len], ..empty } }
            }
        }
    };
}

view_methods!(DeviceView);
view_methods!(DeviceViewMut);

impl<T, const R: usize> DeviceView<'_, T, R> {
    /// The memory that a launch with this view uses.
    #[doc(hidden)]
    pub fn access(&self) -> Access<'_> {
        self.access
    }

    pub(crate) fn start(&self) -> *const T {
        self.start
    }
}

impl<'a, T> DeviceView<'a, T> {
    /// What work with this view uses, for as long as it is borrowed.
    #[doc(hidden)]
    pub fn into_access(self) -> Access<'a> {
        self.access
    }

    /// `start` must be followed by `len` elements of `memory`, which a launch uses as `usage` says.
    pub(crate) fn with_usage(start: *const T, len: usize, memory: &'a Memory, usage: Use) -> Self {
        DeviceView { start, extent: [len], access: Access::new(memory, usage), elements: PhantomData }
    }

    /// `start` must be followed by `len` elements of `memory`.
    pub(crate) fn whole(start: *const T, len: usize, memory: &'a Memory) -> Self {
        DeviceView::with_usage(start, len, memory, Use::Read)
    }

    /// The address of the first element; see [`DeviceBuffer::as_device_ptr`](crate::DeviceBuffer::as_device_ptr).
    pub fn as_device_ptr(&self) -> DevicePtr<T> {
        DevicePtr::new(self.start)
    }
}

impl<T, const R: usize> DeviceViewMut<'_, T, R> {
    /// The same view for a shorter time.
    pub(crate) fn shorter(&mut self) -> DeviceViewMut<'_, T, R> {
        DeviceViewMut { elements: PhantomData, ..*self }
    }

    /// The memory that a launch with this view uses.
    #[doc(hidden)]
    pub fn access(&self) -> Access<'_> {
        self.access.of_bytes(self.extent.iter().product::<usize>() * size_of::<T>())
    }
}

impl<'a, T: DeviceCopy, const R: usize> DeviceViewMut<'a, T, R> {
    /// The same elements, to read, in rank 1.
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView::whole(self.start, self.len(), self.access.memory())
    }

    /// The same view for a shorter time, so that it can be used again.
    pub fn reborrow(&mut self) -> DeviceViewMut<'_, T, R> {
        self.shorter()
    }

    /// The address of the first element; see [`DeviceBuffer::as_device_ptr`](crate::DeviceBuffer::as_device_ptr).
    pub fn as_device_ptr_mut(&mut self) -> DevicePtrMut<T> {
        DevicePtrMut::new(self.start)
    }

    /// What work with this view uses, for as long as it is borrowed.
    #[doc(hidden)]
    pub fn into_access(self) -> Access<'a> {
        self.access.of_bytes(self.len() * size_of::<T>())
    }

    pub(crate) fn start(&self) -> *mut T {
        self.start
    }
}

impl<'a, T: DeviceCopy> DeviceViewMut<'a, T> {
    /// `start` must be followed by `len` elements of `memory`, all borrowed mutably for `'a`.
    pub(crate) fn whole(start: *mut T, len: usize, memory: &'a Memory) -> Self {
        let access = Access::new(memory, Use::Write);
        DeviceViewMut { start, extent: [len], access, elements: PhantomData }
    }

    /// The first `middle` elements and the rest; see
    /// [`DeviceBuffer::split_at_mut`](crate::DeviceBuffer::split_at_mut).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `middle` is greater than the length.
    pub fn split_at(self, middle: usize) -> Result<(DeviceViewMut<'a, T>, DeviceViewMut<'a, T>)> {
        let (_, first) = resolve(..middle, self.extent[0])?;
        let rest = self.extent[0] - first;
        let access = Access::new(self.access.memory(), Use::WritePart);
        let left = DeviceViewMut { extent: [first], access, ..self };
        let start = left.start.wrapping_add(first);
        let right = DeviceViewMut { start, extent: [rest], access, elements: PhantomData };
        Ok((left, right))
    }

    /// The same elements, to be changed by many threads at once; see
    /// [`DeviceBuffer::as_atomic`](crate::DeviceBuffer::as_atomic).
    pub fn into_atomic(self) -> DeviceAtomicView<'a, T> {
        DeviceAtomicView::new(self.start, self.extent[0], self.access.memory())
    }
}

/// The addresses of the extents along x, y and z; above the rank, that along x.
pub(crate) fn addresses<N, const R: usize>(extent: &[N; R]) -> [*const c_void; 5] {
    std::array::from_fn(|axis| from_ref(&extent[if axis < R { axis } else { 0 }]).cast())
}

/// That a view of `length` elements has those of another shape.
pub(crate) fn check_extent<const R: usize>(extent: [usize; R], length: usize) -> Result<()> {
    let size = extent.iter().try_fold(1_usize, |size, &extent| size.checked_mul(extent));
    match extent[..] {
        _ if size.is_some_and(|size| size <= length) => Ok(()),
        [width, height, depth] => Err(Error::VolumeTooLarge { width, height, depth, length }),
        [width, height] => Err(Error::ViewTooLarge { width, height, length }),
        _ => Err(Error::TensorTooLarge { extent: extent.to_vec(), length }),
    }
}

/// The first index and the length of `range` in `len` elements.
pub(crate) fn resolve(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => len,
    };
    if start > end || end > len {
        return Err(Error::OutOfRange { start, end, length: len });
    }
    Ok((start, end - start))
}

/// That source and target of `operation` have as many elements.
pub(crate) fn agree(operation: &'static str, source_length: usize, target_length: usize) -> Result<()> {
    if source_length == target_length {
        return Ok(());
    }
    Err(Error::LengthMismatch { operation, source_length, target_length })
}
