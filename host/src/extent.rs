//! How long a slice may be that a kernel indexes with 32 bits, and which must be as long as others. It must not know what is launched.

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
/// If it has 2^32 elements or more, or so many places along an axis.
#[doc(hidden)]
#[inline]
pub fn narrow<V: Extents>(view: V, kernel: &'static Kernel, argument: &'static str) -> Result<V> {
    let extents = view.extents();
    // An extent of 2^32 is too much even if another one is 0.
    let longest = extents.iter().copied().max().unwrap_or(0);
    // A view has no more bytes than an address counts, so this does not wrap unless elements have no size.
    let length = extents.iter().fold(1_usize, |length, extent| length.saturating_mul(*extent)).max(longest);
    if length <= u32::MAX as usize {
        return Ok(view);
    }
    Err(Error::SliceTooLong { kernel: kernel.name(), argument, length, limit: u32::MAX })
}

/// That two arguments of `kernel`, each with its name, have the same shape.
///
/// # Errors
/// If one is longer than the other along an axis.
#[doc(hidden)]
#[inline]
pub fn same_shape(
    kernel: &'static Kernel,
    first: (&'static str, &impl Extents),
    other: (&'static str, &impl Extents),
) -> Result<()> {
    if first.1.extents() == other.1.extents() {
        return Ok(());
    }
    Err(shapes_differ(kernel, [first.0, other.0], [first.1.extents(), other.1.extents()]))
}

#[cold]
fn shapes_differ(kernel: &'static Kernel, arguments: [&'static str; 2], extents: [&[usize]; 2]) -> Error {
    let shapes = extents.map(|extents| {
        let mut shape = [1; 3];
        shape[..extents.len()].copy_from_slice(extents);
        shape
    });
    Error::ShapesDiffer { kernel: kernel.name(), arguments, shapes }
}
