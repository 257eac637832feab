//! What may stand for a slice parameter at a launch, and what the compiler says when something else
//! does. It must not know how a launch happens.

use ferrogrid_device::DeviceCopy;

use crate::buffer::DeviceBuffer;
use crate::view::{DeviceView, DeviceViewMut};

/// What may stand at a launch for a kernel's `&[T]`: `&DeviceBuffer<T>` or a view of one; for
/// `&[DeviceAtomic<T>]` an atomic view, `buffer.as_atomic()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as `&[{T}]` in device memory",
    label = "expected `{T}` elements of a device buffer",
    note = "pass `&buffer` or `buffer.slice(range)?`, with elements of type `{T}` as in the kernel's signature; for elements `DeviceAtomic<..>` pass `buffer.as_atomic()`",
    note = "host data goes to the device first: `let buffer = stream.upload(&data)?;`"
)]
pub trait DeviceInput<'a, T> {
    /// The elements to read.
    fn into_input(self) -> DeviceView<'a, T>;
}

/// What may stand at a launch for a kernel's `DisjointSlice<T, R>`: in rank 1 `&mut DeviceBuffer<T>`
/// or a mutable view of one, in rank 2 a 2-D view.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as `DisjointSlice<{T}, {R}>` in device memory",
    label = "expected a mutable borrow of `{T}` elements in rank {R}",
    note = "in rank 1 pass `&mut buffer` or `buffer.slice_mut(range)?`, in rank 2 `buffer.view_2d_mut(width, height)?`, in rank 3 `buffer.view_3d_mut(width, height, depth)?`; the elements are `{T}`, as in the kernel's signature",
    note = "host data goes to the device first: `let mut buffer = stream.upload(&data)?;`"
)]
pub trait DeviceOutput<'a, T, const R: usize = 1> {
    /// The elements to write.
    fn into_output(self) -> DeviceViewMut<'a, T, R>;
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
