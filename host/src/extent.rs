//! How long a slice may be that a kernel indexes with 32 bits. It must not know what is launched.

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::view::{DeviceView, DeviceViewMut};

// A kernel that is not `wide` reads the low half of a length, at the address of the whole.
const _: () = assert!(cfg!(target_endian = "little"), "hosts of CUDA devices are little-endian");

/// A view whose elements a kernel counts.
#[doc(hidden)]
pub trait Extents {
    /// Elements along each axis, x first.
    fn extents(&self) -> &[usize];
}

impl<T, const R: usize> Extents for DeviceView<'_, T, R> {
    #[inline]
    fn extents(&self) -> &[usize] {
        DeviceView::extents(self)
    }
}

impl<T, const R: usize> Extents for DeviceViewMut<'_, T, R> {
    #[inline]
    fn extents(&self) -> &[usize] {
        DeviceViewMut::extents(self)
    }
}

/// The view that is to be `argument` of `kernel`, which is not `wide`.
///
/// # Errors
/// If it has 2^32 elements or more along an axis.
#[doc(hidden)]
#[inline]
pub fn narrow<V: Extents>(view: V, kernel: &'static Kernel, argument: &'static str) -> Result<V> {
    match view.extents().iter().find(|&&extent| u32::try_from(extent).is_err()) {
        None => Ok(view),
        Some(&length) => Err(too_long(length, kernel, argument)),
    }
}

#[cold]
fn too_long(length: usize, kernel: &'static Kernel, argument: &'static str) -> Error {
    Error::SliceTooLong { kernel: kernel.name(), argument, length, limit: u32::MAX }
}
