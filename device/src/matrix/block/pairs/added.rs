//! [`AddedTiles`]: memory for a third product of each step of pairs of products, whose sums are added to a plane.

use super::super::{GROUP_ROWS, HalfElement};
use crate::memory::tensor_map_mut::TensorMapMut;

/// The rows and the columns of a third product that a group computes: a line of a tile has as many 16-bit floats.
pub(super) const SIDE: usize = 64;
/// The rows and the columns that a warp adds to the plane at once.
pub(super) const ADDED: [usize; 2] = [16, 32];

/// What [`PairedProducts`](super::PairedProducts) of the same sizes have for a third product in each step of
/// [`multiply_pairs`](crate::Thread::multiply_pairs): `q`, rounded to `T` and transposed, times the `M` rows of `a` from `row` on. Its `N` rows of
/// `D` sums are added to those of a plane from the step's [`number`](super::PairedPlace::number) on, each element at once (`fetch_add`), in
/// any order; what would lie beyond the edges is left out.
///
/// Gradients of attention, if the rows are keys and values, are such products: to those of queries all blocks add.
///
/// `N * D / 4096` is `M / 64`: each group of 128 threads computes 64 rows and columns of the product. It takes `4 * N * (M + D)` bytes.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::half::bf16;
/// use ferrogrid::device::matrix::{AddedSums, AddedTiles, PairedFactors, PairedPlace, PairedProducts};
///
/// /// y <- y + (a c^T + b d^T)^T a, of 128 rows of `a` and `b` in each block: 64 x 128 sums in each step.
/// #[kernel(block = 384)]
/// pub fn sums(
///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: TensorMap<bf16, 64, 64>, d: TensorMap<bf16, 64, 64>,
///     y: TensorMapMut<f32, 32, 16>, // `AddedSums`
///     memory: Shared<PairedProducts<bf16, 128, 64, 128, 2, AddedTiles<bf16, 128, 64, 128>>>,
/// ) {
///     let (row, steps) = (128 * t.block_idx()[0] as usize, c.height() / 64);
///     let factors = PairedFactors { left: [a, b], right: [c, d], row, steps, values: None, added: &y };
///     let places = |step| PairedPlace::of_row(64 * step);
///     t.multiply_pairs(memory, factors, places, |_, _| (), |_, p, q| q.zip_places(p, |_, _, [q, p]| q + p), |[_]| ());
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::device::half::bf16;
///
/// let (ones, mut y) = (stream.fill(bf16::ONE, 256 * 128)?, stream.zeros(128 * 128)?);
/// let (a, c) = (ones.view_2d(128, 256)?, ones.view().slice(..128 * 128)?.into_2d(128, 128)?);
/// kernels::sums(&stream, Grid::blocks(2), a, a, c, c, y.view_2d_mut(128, 128)?)?;
/// assert_eq!(stream.download(&y)?, [256.0 * 256.0; 128 * 128]);
/// # Ok(()) }
/// ```
///
/// Two groups have no 64 x 64 sums each of 64 x 64:
///
/// ```compile_fail,E0080
/// use ferrogrid_device::half::f16;
/// use ferrogrid_device::matrix::{AddedSums, AddedTiles, PairedFactors, PairedPlace, PairedProducts};
/// use ferrogrid_device::{Shared, TensorMap, Thread};
///
/// type Memory = PairedProducts<f16, 128, 64, 64, 2, AddedTiles<f16, 128, 64, 64>>;
///
/// fn multiply(t: &Thread<1>, a: TensorMap<f16, 64, 64>, y: &AddedSums, memory: Shared<Memory>) {
///     let factors = PairedFactors { left: [a, a], right: [a, a], row: 0, steps: 1, values: None, added: y };
///     t.multiply_pairs(memory, factors, |_| PairedPlace::of_row(0), |_, _| (), |_, _, _| (), |[_, _]| ());
/// }
/// # let used: fn(&Thread<1>, TensorMap<f16, 64, 64>, &AddedSums, Shared<Memory>) = multiply;
/// # assert!(used as usize != 0);
/// ```
#[repr(C)]
pub struct AddedTiles<T, const M: usize, const N: usize, const D: usize> {
    /// The rounded sums of a step and of the one before.
    pub(super) factors: [[[T; N]; M]; 2],
    /// Sums on their way to the plane.
    pub(super) sums: [[f32; D]; N],
    /// Whether a step's factor is written, and that of the one before multiplied.
    pub(super) exchanged: u64,
    /// Whose turn it is to multiply, if there are two groups. What follows begins at a multiple of 128 bytes again.
    pub(super) turns: [u64; 15],
}

/// The plane that third products of [`AddedTiles`] are added to.
pub type AddedSums<'a> = TensorMapMut<'a, f32, { ADDED[1] }, { ADDED[0] }>;

mod sealed {
    pub trait Added: 'static {}
}

/// What pairs of products have beside their tiles.
pub trait Added<T, const M: usize, const N: usize, const D: usize>: sealed::Added {
    /// Whether there is a third product.
    #[doc(hidden)]
    const ADDS: bool;
    /// Where it is added to.
    type Plane<'p>: Copy;

    #[doc(hidden)]
    fn plane<'p>(plane: Self::Plane<'p>) -> Option<&'p AddedSums<'p>>;
}

impl sealed::Added for () {}
impl<T: 'static, const M: usize, const N: usize, const D: usize> sealed::Added for AddedTiles<T, M, N, D> {}

/// There is no third product.
impl<T, const M: usize, const N: usize, const D: usize> Added<T, M, N, D> for () {
    const ADDS: bool = false;
    type Plane<'p> = ();

    #[inline(always)]
    fn plane<'p>((): Self::Plane<'p>) -> Option<&'p AddedSums<'p>> {
        None
    }
}

impl<T: HalfElement, const M: usize, const N: usize, const D: usize> Added<T, M, N, D>
    for AddedTiles<T, M, N, D>
{
    const ADDS: bool = {
        assert!(
            N / SIDE * (D / SIDE) == M / GROUP_ROWS,
            "each 64 rows of `AddedTiles` have 64 rows and columns of a third product"
        );
        true
    };
    type Plane<'p> = &'p AddedSums<'p>;

    #[inline(always)]
    fn plane<'p>(plane: Self::Plane<'p>) -> Option<&'p AddedSums<'p>> {
        Some(plane)
    }
}
