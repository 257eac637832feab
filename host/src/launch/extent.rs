//! Checks of slice lengths: the limit of 32-bit indices, and slices that must have the same shape.

use crate::error::{Error, LaunchError, Result};
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

/// How many elements an argument has along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    axes: [usize; 3],
    rank: usize,
}

impl Lengths {
    /// Those of a value.
    #[cfg(feature = "jit")]
    pub(crate) const NONE: Lengths = Lengths { axes: [1; 3], rank: 0 };

    pub(crate) fn new<const R: usize>(extent: [usize; R]) -> Self {
        let mut axes = [1; 3];
        axes[..R].copy_from_slice(&extent);
        Lengths { axes, rank: R }
    }
}

impl Extents for Lengths {
    fn extents(&self) -> &[usize] {
        &self.axes[..self.rank]
    }
}

/// The number of elements, or the longest extent if that is more, as another one may be 0.
#[doc(hidden)]
#[inline]
pub fn longest(view: &(impl Extents + ?Sized)) -> usize {
    let extents = view.extents();
    let longest = extents.iter().copied().max().unwrap_or(0);
    // A view has no more bytes than an address counts, so this does not wrap unless elements have no size.
    extents.iter().fold(1_usize, |length, extent| length.saturating_mul(*extent)).max(longest)
}

/// Checks that arguments of `kernel`, which is not `wide`, have lengths of 32 bits. `all` has the bits of all lengths, so that a
/// launch looks at them once; `each` is the name and the length of each argument.
///
/// # Errors
/// If one has 2^32 elements or more, or such an extent along an axis.
#[doc(hidden)]
#[inline]
pub fn check_narrow<const N: usize>(
    kernel: &'static Kernel,
    all: usize,
    each: impl FnOnce() -> [(&'static str, usize); N],
) -> Result<()> {
    if all <= u32::MAX as usize { Ok(()) } else { Err(too_long(kernel, &each())) }
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
#[inline(never)]
fn shapes_differ(kernel: &'static Kernel, arguments: [&'static str; 2], extents: [&[usize]; 2]) -> Error {
    let shapes = extents.map(|extents| {
        let mut shape = [1; 3];
        shape[..extents.len()].copy_from_slice(extents);
        shape
    });
    Error::Launch(LaunchError::ShapesDiffer { kernel: kernel.name(), arguments, shapes })
}

#[cold]
#[inline(never)]
fn too_long(kernel: &'static Kernel, arguments: &[(&'static str, usize)]) -> Error {
    let limit = u32::MAX;
    let long = arguments.iter().find(|(_, length)| *length > limit as usize);
    let (argument, length) = *long.unwrap_or(&arguments[0]);
    Error::Launch(LaunchError::SliceTooLong { kernel: kernel.name(), argument, length, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::grid::tests::kernel;

    /// A shape without memory.
    #[derive(Debug)]
    struct Shape<const R: usize>([usize; R]);

    impl<const R: usize> Extents for Shape<R> {
        fn extents(&self) -> &[usize] {
            &self.0
        }
    }

    /// 2^32 - 1 elements fit, whatever their shape, and one more does not.
    #[test]
    fn slices_of_narrow_kernels_end_at_32_bits() {
        const END: usize = 1 << 32;
        let kernel: &Kernel = Box::leak(kernel(None, None).into());
        let length = |shape: &dyn Extents| {
            let lengths = [("short", 1), ("x", longest(shape))];
            check_narrow(kernel, lengths[0].1 | lengths[1].1, || lengths)
        };
        for fits in [
            &Shape([END - 1]) as &dyn Extents,
            &Shape([65_535, 65_537]),
            &Shape([3, 5, END / 15]),
            &Shape([0]),
        ] {
            assert_eq!(length(fits), Ok(()), "{:?}", fits.extents());
        }
        for (more, found) in [
            (&Shape([END]) as &dyn Extents, END),
            (&Shape([65_536, 65_536]), END),
            (&Shape([2, 2, END / 4]), END),
            (&Shape([0, END]), END),
            (&Shape([END, 0]), END),
            (&Shape([usize::MAX, 2]), usize::MAX),
        ] {
            let expected = Error::Launch(LaunchError::SliceTooLong {
                kernel: "k",
                argument: "x",
                length: found,
                limit: u32::MAX,
            });
            assert_eq!(length(more), Err(expected), "{:?}", more.extents());
        }
    }
}
