//! What may stand for a slice parameter at a launch, and what the compiler says when something else
//! does. It must not know how a launch happens.

use ferrogrid_device::DeviceCopy;

use crate::access::Access;
use crate::buffer::DeviceBuffer;
use crate::error::Result;
use crate::stream::Stream;
use crate::view::{DeviceView, DeviceViewMut};

/// Device memory to read, in a copy or for a kernel's `&[T]`: `&DeviceBuffer<T>` or a view of one; for
/// `&[DeviceAtomic<T>]` an atomic view, `buffer.as_atomic()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as `&[{T}]` in device memory",
    label = "expected `{T}` elements of a device buffer",
    note = "pass `&buffer` or `buffer.slice(range)?`, with elements of type `{T}` as in the kernel's signature; for elements `DeviceAtomic<..>` pass `buffer.as_atomic()`",
    note = "host data goes to the device first: `let buffer = stream.upload(&data)?;`"
)]
pub trait DeviceInput<'a, T>: LaunchInput<'a, T> {
    /// The elements to read.
    fn into_input(self) -> DeviceView<'a, T>;
}

/// Device memory to write, in a copy or for a kernel's `DisjointSlice<T, R>`: in rank 1 `&mut DeviceBuffer<T>`
/// or a mutable view of one, in rank 2 and 3 a view of that rank.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as `DisjointSlice<{T}, {R}>` in device memory",
    label = "expected a mutable borrow of `{T}` elements in rank {R}",
    note = "in rank 1 pass `&mut buffer` or `buffer.slice_mut(range)?`, in rank 2 `buffer.view_2d_mut(width, height)?`, in rank 3 `buffer.view_3d_mut(width, height, depth)?`; the elements are `{T}`, as in the kernel's signature",
    note = "host data goes to the device first: `let mut buffer = stream.upload(&data)?;`"
)]
pub trait DeviceOutput<'a, T, const R: usize = 1>: LaunchOutput<'a, T, R> {
    /// The elements to write.
    fn into_output(self) -> DeviceViewMut<'a, T, R>;
}

/// What may stand at a launch for a kernel's `&[T]`, or in rank 2 for its `Plane<T>`: device memory
/// ([`DeviceInput`], [`DeviceView<T, 2>`](DeviceView)), or a slice of the host as [`In`](crate::In); for
/// `&[DeviceAtomic<T>]` also [`InOut`](crate::InOut) and [`Out`](crate::Out).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as elements `{T}` of rank {R} in device memory",
    label = "expected `{T}` elements of a device buffer in rank {R}",
    note = "for `&[{T}]` pass `&buffer` or `buffer.slice(range)?`, for `Plane<{T}>` `buffer.view_2d(width, height)?`, with elements of type `{T}` as in the kernel's signature; for elements `DeviceAtomic<..>` pass `buffer.as_atomic()`",
    note = "host data goes to the device first: `let buffer = stream.upload(&data)?;`, or for this launch only: `In(&data)`, in rank 2 `In(&data).into_2d(width, height)`"
)]
pub trait LaunchInput<'a, T, const R: usize = 1> {
    #[doc(hidden)]
    type Staged: StagedInput<T, R>;
    /// Brings it to the device of `stream`, if it is not there.
    #[doc(hidden)]
    fn stage(self, stream: &Stream) -> Result<Self::Staged>;
}

/// What may stand at a launch for a kernel's `DisjointSlice<T, R>`: device memory ([`DeviceOutput`]), or a
/// slice of the host as [`Out`](crate::Out) or [`InOut`](crate::InOut).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as `DisjointSlice<{T}, {R}>` in device memory",
    label = "expected a mutable borrow of `{T}` elements in rank {R}",
    note = "in rank 1 pass `&mut buffer` or `buffer.slice_mut(range)?`, in rank 2 `buffer.view_2d_mut(width, height)?`, in rank 3 `buffer.view_3d_mut(width, height, depth)?`; the elements are `{T}`, as in the kernel's signature",
    note = "host data goes to the device first: `let mut buffer = stream.upload(&data)?;`, or for this launch only: `InOut(&mut data)`, in rank 2 `InOut(&mut data).into_2d(width, height)`"
)]
pub trait LaunchOutput<'a, T, const R: usize = 1> {
    #[doc(hidden)]
    type Staged: StagedOutput<T, R>;
    /// Brings it to the device of `stream`, if it is not there.
    #[doc(hidden)]
    fn stage(self, stream: &Stream) -> Result<Self::Staged>;
}

/// An argument on its device. Only types of this crate are one: launches rely on their telling the same each
/// time.
#[doc(hidden)]
pub trait Staged: sealed::Sealed {
    /// What a launch with it uses.
    fn access(&self) -> Access<'_>;

    /// After the launch: brings back what the host is to see, and waits for that.
    fn finish(self, stream: &Stream) -> Result<()>;
}

/// An argument for `&[T]` or `Plane<T>` on its device.
#[doc(hidden)]
pub trait StagedInput<T, const R: usize = 1>: Staged {
    fn input(&self) -> DeviceView<'_, T, R>;
}

/// An argument for `DisjointSlice<T, R>` on its device.
#[doc(hidden)]
pub trait StagedOutput<T, const R: usize>: Staged {
    fn output(&mut self) -> DeviceViewMut<'_, T, R>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<T, const R: usize> sealed::Sealed for DeviceView<'_, T, R> {}

impl<T, const R: usize> Staged for DeviceView<'_, T, R> {
    #[inline]
    fn access(&self) -> Access<'_> {
        DeviceView::access(self)
    }

    #[inline]
    fn finish(self, _: &Stream) -> Result<()> {
        Ok(())
    }
}

impl<T, const R: usize> StagedInput<T, R> for DeviceView<'_, T, R> {
    #[inline]
    fn input(&self) -> DeviceView<'_, T, R> {
        *self
    }
}

impl<T, const R: usize> sealed::Sealed for DeviceViewMut<'_, T, R> {}

impl<T, const R: usize> Staged for DeviceViewMut<'_, T, R> {
    #[inline]
    fn access(&self) -> Access<'_> {
        DeviceViewMut::access(self)
    }

    #[inline]
    fn finish(self, _: &Stream) -> Result<()> {
        Ok(())
    }
}

impl<T, const R: usize> StagedOutput<T, R> for DeviceViewMut<'_, T, R> {
    #[inline]
    fn output(&mut self) -> DeviceViewMut<'_, T, R> {
        self.shorter()
    }
}

impl<'a, T: DeviceCopy> LaunchInput<'a, T> for &'a DeviceBuffer<T> {
    type Staged = DeviceView<'a, T>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_input())
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchInput<'a, T, R> for DeviceView<'a, T, R> {
    type Staged = DeviceView<'a, T, R>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self)
    }
}

impl<'a, T: DeviceCopy> LaunchInput<'a, T, 2> for &'a DeviceViewMut<'_, T, 2> {
    type Staged = DeviceView<'a, T, 2>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.view().shaped(self.extent()))
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchInput<'a, T> for &'a DeviceViewMut<'_, T, R> {
    type Staged = DeviceView<'a, T>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_input())
    }
}

impl<'a, T: DeviceCopy> LaunchOutput<'a, T> for &'a mut DeviceBuffer<T> {
    type Staged = DeviceViewMut<'a, T>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_output())
    }
}

impl<'a, T: DeviceCopy, const R: usize> LaunchOutput<'a, T, R> for DeviceViewMut<'a, T, R> {
    type Staged = DeviceViewMut<'a, T, R>;

    #[inline]
    fn stage(self, _: &Stream) -> Result<Self::Staged> {
        Ok(self.into_output())
    }
}

impl<'a, T: DeviceCopy> DeviceInput<'a, T> for &'a DeviceBuffer<T> {
    fn into_input(self) -> DeviceView<'a, T> {
        self.view()
    }
}

impl<'a, T: DeviceCopy> DeviceInput<'a, T> for DeviceView<'a, T> {
    fn into_input(self) -> DeviceView<'a, T> {
        self
    }
}

impl<'a, T: DeviceCopy, const R: usize> DeviceInput<'a, T> for &'a DeviceViewMut<'_, T, R> {
    fn into_input(self) -> DeviceView<'a, T> {
        self.view()
    }
}

impl<'a, T: DeviceCopy> DeviceOutput<'a, T> for &'a mut DeviceBuffer<T> {
    fn into_output(self) -> DeviceViewMut<'a, T> {
        self.view_mut()
    }
}

impl<'a, T: DeviceCopy, const R: usize> DeviceOutput<'a, T, R> for DeviceViewMut<'a, T, R> {
    fn into_output(self) -> DeviceViewMut<'a, T, R> {
        self
    }
}
