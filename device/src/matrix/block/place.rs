//! [`ProductPlace`]: where a block's product begins, and which part of the depth it has.

use super::{ROW, sealed};
use crate::memory::tensor_map::COPY_STEP;

/// Sums that begin at a place, with the products of a part of the depth: for results of so few tiles that blocks share the depth of
/// each (split-K, stream-K). [`multiply_tiles`](crate::Thread::multiply_tiles) takes it in place of `[row, column]`; what adds up
/// the parts is the kernel's.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
/// use ferrogrid::device::half::bf16;
/// use ferrogrid::device::matrix::{PartialProduct, Products};
///
/// /// The sums of 64 x 64 products, one for each 256 elements of the depth; one block makes one.
/// #[kernel(block = 256)]
/// pub fn multiply(
///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, parts: &[DeviceAtomic<f32>],
///     memory: Shared<Products<bf16, 64, 64, 4>>,
/// ) {
///     let part = t.block_idx()[0] as usize;
///     let depth = [part * 256, a.width().min(part * 256 + 256)];
///     let sums = parts.get(part * 64 * 64..).unwrap_or_default();
///     t.multiply_tiles(memory, a, b, [PartialProduct { place: [0, 0], depth }], |_, own| {
///         own.for_each_pair(|row, column, [left, right]| {
///             sums[row * 64 + column].store(left, Relaxed);
///             sums[row * 64 + column + 1].store(right, Relaxed);
///         });
///     });
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::device::half::bf16;
///
/// let (a, b) = (stream.fill(bf16::ONE, 64 * 600)?, stream.fill(bf16::from_f32(2.0), 64 * 600)?);
/// let mut parts = stream.zeros(3 * 64 * 64)?;
/// kernels::multiply(&stream, Grid::blocks(3), a.view_2d(600, 64)?, b.view_2d(600, 64)?, parts.as_atomic())?;
/// let parts = stream.download(&parts)?;
/// assert_eq!([0, 1, 2].map(|part| parts[part * 64 * 64]), [512.0, 512.0, 2.0 * 88.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialProduct {
    /// The row and the column of the first sum.
    pub place: [usize; 2],
    /// The first element of each row that is multiplied, and the one after the last: multiples of 128 bytes, or the end of the rows or
    /// beyond.
    pub depth: [usize; 2],
}

/// Where a block's product begins: `[row, column]`, with all products, or a [`PartialProduct`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no place of a product",
    label = "expected `[usize; 2]`, row and column, or a `PartialProduct`"
)]
pub trait ProductPlace: sealed::Place {}

impl<P: sealed::Place> ProductPlace for P {}

/// A place as the threads that multiply get it: row, column, the first step along the depth, and the number of steps.
pub(super) type Words = [u32; 4];

/// The row that tells the groups to stop.
pub(super) const END: u32 = u32::MAX;

/// The depth of factors: elements of a row, of so many bytes each.
#[derive(Clone, Copy)]
pub struct Depth {
    pub(super) elements: usize,
    pub(super) size: usize,
}

impl Depth {
    /// The elements of a step.
    #[inline(always)]
    const fn step(self) -> usize {
        ROW / self.size
    }

    #[inline(always)]
    pub(super) fn steps(self) -> usize {
        self.elements.div_ceil(self.step())
    }
}

impl sealed::Place for [usize; 2] {
    const HAS_DEPTH: bool = false;

    #[inline(always)]
    fn place(self) -> [usize; 2] {
        self
    }

    #[inline(always)]
    fn steps(self, depth: Depth) -> [usize; 2] {
        [0, depth.steps()]
    }

    #[inline(always)]
    fn new(place: [usize; 2], _: Depth, _: [usize; 2]) -> Self {
        place
    }
}

impl sealed::Place for PartialProduct {
    const HAS_DEPTH: bool = true;

    #[inline(always)]
    fn place(self) -> [usize; 2] {
        self.place
    }

    #[track_caller]
    #[inline(always)]
    fn steps(self, depth: Depth) -> [usize; 2] {
        let ([first, end], step) = (self.depth, depth.step());
        let is_whole = |at: usize| at.is_multiple_of(step) || at >= depth.elements;
        assert!(first <= end, "the depth of a partial product ends where it begins, or after that");
        assert!(
            first == end || is_whole(first) && is_whole(end),
            "the depth of a partial product begins and ends at multiples of 128 bytes, or where rows end"
        );
        let [first, end] = self.depth.map(|at| at.min(depth.elements).div_ceil(step));
        [first, end - first]
    }

    #[inline(always)]
    fn new(place: [usize; 2], depth: Depth, [first, count]: [usize; 2]) -> Self {
        let at = |step: usize| (step * depth.step()).min(depth.elements);
        PartialProduct { place, depth: [at(first), at(first + count)] }
    }
}

/// The words of a place.
#[track_caller]
#[inline(always)]
pub(super) fn words<T, P: sealed::Place, A: sealed::Factor, B: sealed::Factor>(
    place: P,
    depth: Depth,
) -> Words {
    let ([row, column], [first, steps]) = (place.place(), place.steps(depth));
    assert!(row >> 31 == 0 && column >> 31 == 0, "a product's place is less than 2^31");
    let is_copied = |is_transposed: bool, axis: usize| {
        !is_transposed || (axis * size_of::<T>()).is_multiple_of(COPY_STEP)
    };
    assert!(
        is_copied(A::IS_TRANSPOSED, row) && is_copied(B::IS_TRANSPOSED, column),
        "a transposed factor is copied from multiples of 16 bytes of its rows"
    );
    [row, column, first, steps].map(|word| word as u32)
}
