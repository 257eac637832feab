//! Products of matrices by a whole block: [`Products`]. `factor`, `columns` and `transposed` have what is multiplied, `place` where, `order` in which order, `results` what is stored of it, `result_rows` by which rows, `hopper` the instructions of `sm_90a`, with its
//! `stages`, `steps` what computes the same elsewhere. `twice` multiplies by what comes of a product, and `pairs` by what comes of two.

mod columns;
mod factor;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
mod hopper;
mod order;
#[cfg(feature = "half")]
mod pairs;
mod place;
mod result_rows;
mod results;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
mod stages;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
mod steps;
#[cfg(feature = "half")]
mod transposed;
#[cfg(feature = "half")]
mod twice;

use core::marker::PhantomData;
use core::mem::MaybeUninit;

pub use self::columns::Columns;
pub use self::factor::TiledFactor;
pub use self::order::{ProductTiles, ResultTile, RowGroups};
#[cfg(feature = "half")]
pub use self::pairs::{
    Added, AddedSums, AddedTiles, ColumnValues, PairStep, PairedFactors, PairedPlace, PairedProducts,
};
use self::place::{Depth, Words};
pub use self::place::{PartialProduct, ProductPlace};
pub use self::result_rows::{GroupedRows, ResultRows, StoredGroup, StoredPair, WarpRows};
pub use self::results::{
    ProductResult, Several, SumFunction, multiply_and_store, multiply_parts, nearest, nearest_of_plane,
    store_parts,
};
#[cfg(feature = "half")]
pub use self::transposed::{Transposed, TransposedEach};
#[cfg(feature = "half")]
pub use self::twice::{TwicePlace, TwoProducts};
use super::{COLUMNS, MatrixElement, ROWS, unrolled};
#[cfg(feature = "half")]
use crate::number::half::{HalfFloat, bf16, f16};
use crate::number::narrow::{f8e4m3, f8e5m2, tf32};
use crate::shared::{Shared, without_elements};
use crate::thread::Thread;
use crate::warp::Warp;

/// The bytes of a row of a tile.
const ROW: usize = 128;
/// The rows that a group of threads multiplies together.
const GROUP_ROWS: usize = 64;
/// The threads of such a group, four warps (CUDA's warpgroup).
pub(super) const GROUP: usize = 128;
/// The most groups: a tile of a tensor map has at most 256 rows.
const MOST_GROUPS: usize = 4;
/// The alignment of tiles, which the layout of `wgmma` needs.
const ALIGNMENT: usize = 1024;

/// Shared memory for products of a block, of which each has `M` rows and `N` columns: `S` stages with a tile of either factor, of
/// which some are multiplied while copies to the others are in flight. See [`multiply_tiles`](Thread::multiply_tiles).
///
/// `M` is 64, 128, 192 or 256, and `N` is 32, 64, 128 or 256: other numbers are compile errors. A stage takes `128 * (M + N)` bytes.
///
/// ```compile_fail,E0080
/// use ferrogrid_device::half::bf16;
/// use ferrogrid_device::matrix::Products;
/// use ferrogrid_device::{Shared, TensorMap, Thread};
///
/// fn multiply(t: &Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 48>, memory: Shared<Products<bf16, 64, 48, 2>>) {
///     t.multiply_tiles(memory, a, b, [[0, 0]], |_, _| ());
/// }
/// # let used: fn(&Thread<1>, TensorMap<bf16, 64, 64>, TensorMap<bf16, 64, 48>, Shared<Products<bf16, 64, 48, 2>>) = multiply;
/// # assert!(used as usize != 0);
/// ```
#[repr(C)]
pub struct Products<T, const M: usize, const N: usize, const S: usize> {
    /// The tiles begin at the first multiple of 1024 bytes.
    before: MaybeUninit<[u8; ALIGNMENT]>,
    stages: [Stage<M, N>; S],
    barriers: [Barriers; S],
    /// What the warps of a group wait for before a product.
    agreed: [u64; MOST_GROUPS],
    elements: PhantomData<T>,
}

/// A tile of either factor.
#[repr(C)]
struct Stage<const M: usize, const N: usize> {
    a: [[u8; ROW]; M],
    b: [[u8; ROW]; N],
}

/// What threads wait for at a stage.
#[repr(C, align(16))]
struct Barriers {
    /// Whether the tiles have arrived.
    full: u64,
    /// Whether they have been multiplied.
    empty: u64,
    /// The place of the product that they belong to, or [`END`](place::END) as its row.
    place: Words,
}

/// Repeats a block for each number of 8 columns.
macro_rules! each_column {
    ($n:ident, $columns:expr, $body:block) => {
        unrolled!(high in 4, {
            unrolled!(low in 8, {
                let $n = high * 8 + low;
                if $n * $crate::matrix::COLUMNS < $columns {
                    $body
                }
            });
        })
    };
}
pub(super) use each_column;

mod sealed {
    pub trait Factor {
        /// Whether its rows are the columns of the plane.
        const IS_TRANSPOSED: bool;
        /// The rows of the factor that are copied together.
        const ROWS: usize;
    }

    pub trait Place: Copy {
        /// Whether the steps are its own.
        const HAS_DEPTH: bool;

        /// Row and column.
        fn place(self) -> [usize; 2];

        /// The first step, and the number of steps.
        fn steps(self, depth: super::Depth) -> [usize; 2];

        /// The place of these.
        fn new(place: [usize; 2], depth: super::Depth, steps: [usize; 2]) -> Self;
    }
}

without_elements!([T: MatrixElement, const M: usize, const N: usize, const S: usize] Products<T, M, N, S>, T);

/// The sums of one product of a block, of which each thread holds some: those of 64 rows and `N` columns for each 128 threads.
/// [`multiply_tiles`](Thread::multiply_tiles) makes them. They are `f32`, or `i32` if the elements are integers.
pub struct ProductSums<const N: usize, U = f32> {
    /// Of each 8 columns two neighbours of a row, and below them two of the eighth row after it.
    pub(super) sums: [[U; 4]; 32],
    /// The row and the column of the first.
    pub(super) first: [usize; 2],
}

impl<const N: usize, U: Copy> ProductSums<N, U> {
    /// Calls `f` for each pair of neighbours in a row that the thread holds, with row and column of the left one within the product;
    /// the column is even.
    #[inline(always)]
    pub fn for_each_pair(&self, mut f: impl FnMut(usize, usize, [U; 2])) {
        let [row, column] = self.first;
        each_column!(n, N, {
            let [a, b, c, d] = self.sums[n];
            f(row, column + n * COLUMNS, [a, b]);
            f(row + ROWS / 2, column + n * COLUMNS, [c, d]);
        });
    }
}

impl<const N: usize, U: Copy> ProductSums<N, U> {
    /// Stores sums as 16-bit numbers, four neighbours of a row at a time. `of_row` gets the row within the product, once for each of the
    /// two that the thread stores to, and returns two closures, which have what depends on the row alone, such as a slice of the result:
    /// - `bits(column, pair)` rounds two neighbouring sums, the first of which is in that column of the product:
    ///   [`HalfFloat::pair_to_bits`](crate::half::HalfFloat::pair_to_bits).
    /// - `store(four, bits)` gets the bits of four neighbours, and their number in the row.
    ///
    /// In between, the threads of a warp exchange what they hold, so they make half as many stores of twice the size as with
    /// [`for_each_pair`](Self::for_each_pair). All of them make the call together. [`multiply_tiles`](Thread::multiply_tiles) has an
    /// example without it, the example `tensor_cores` of the repository one with it.
    ///
    /// # Panics
    /// As any operation of a [`Tile`](crate::Tile).
    #[track_caller]
    #[inline(always)]
    pub fn for_each_four<B: FnMut(usize, [U; 2]) -> u32, S: FnMut(usize, u64)>(
        &self,
        warp: &Warp,
        mut of_row: impl FnMut(usize) -> (B, S),
    ) {
        self.store_fours(warp, [of_row(self.first[0]), of_row(self.first[0] + ROWS / 2)]);
    }

    /// Stores the sums of both rows of the thread, as [`for_each_four`](Self::for_each_four).
    #[track_caller]
    #[inline(always)]
    pub(crate) fn store_fours<R: RowOfFours<U>>(&self, warp: &Warp, [mut upper, mut lower]: [R; 2]) {
        let column = self.first[1];
        // Of two threads side by side the first one gets the left 8 columns of 16, the second one the right ones.
        let is_second = !column.is_multiple_of(4);
        let four = column / 4 + if is_second { COLUMNS / 4 } else { 0 };
        macro_rules! bits_of {
            ($n:expr) => {{
                let ([a, b, c, d], column) = (self.sums[$n], column + $n * COLUMNS);
                [upper.bits(column, [a, b]), lower.bits(column, [c, d])]
            }};
        }
        // Four words are exchanged at once.
        each_column!(n, N, {
            if n & 3 == 0 {
                let [a, b, c, d] = [bits_of!(n), bits_of!(n + 1), bits_of!(n + 2), bits_of!(n + 3)];
                let ([e, f], [g, h]) = if is_second { (a, c) } else { (b, d) };
                let (e, f, g, h): (u32, u32, u32, u32) = warp.shuffle_xor((e, f, g, h), 1);
                let four = four + n * (COLUMNS / 4);
                upper.store(four, joined(is_second, [a[0], b[0]], e));
                lower.store(four, joined(is_second, [a[1], b[1]], f));
                upper.store(four + COLUMNS / 2, joined(is_second, [c[0], d[0]], g));
                lower.store(four + COLUMNS / 2, joined(is_second, [c[1], d[1]], h));
            }
        });
    }
}

/// What is stored to a row, four neighbours at a time. Its functions are called for each sum, and inlined whatever they do: LLVM leaves long
/// closures that are called so often as functions, and the sums in local memory.
pub(crate) trait RowOfFours<U> {
    /// Two neighbours as they are stored, of which the first one is in that column.
    fn bits(&mut self, column: usize, pair: [U; 2]) -> u32;

    /// Stores the bits of four.
    fn store(&mut self, four: usize, bits: u64);
}

impl<U, B: FnMut(usize, [U; 2]) -> u32, S: FnMut(usize, u64)> RowOfFours<U> for (B, S) {
    #[inline(always)]
    fn bits(&mut self, column: usize, pair: [U; 2]) -> u32 {
        self.0(column, pair)
    }

    #[inline(always)]
    fn store(&mut self, four: usize, bits: u64) {
        self.1(four, bits);
    }
}

/// The bits of four neighbours: the thread's own left or right pair, and one of the thread beside it.
#[inline(always)]
fn joined(is_second: bool, [left, right]: [u32; 2], other: u32) -> u64 {
    let [low, high] = if is_second { [other, right] } else { [left, other] };
    u64::from(low) | u64::from(high) << 32
}

/// Where a product stands among those that are added to the same sums.
#[doc(hidden)]
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
#[derive(Clone, Copy)]
pub enum Order {
    /// The first one: it sets the sums.
    First,
    /// It comes after other work of the thread, which may have used the sums.
    Fenced,
    /// It comes directly after another product.
    Following,
}

/// An element of matrices that blocks multiply: `i8` and `u8`, whose sums are `i32`, and `tf32`, `f8e4m3` and `f8e5m2` of
/// [`narrow`](crate::narrow), and with the feature `half` `f16` and `bf16`, whose sums are `f32`.
#[diagnostic::on_unimplemented(
    message = "blocks multiply no matrices of `{Self}`",
    label = "not a `ProductElement`",
    note = "elements are `i8`, `u8`, the `tf32`, `f8e4m3` and `f8e5m2` of `device::narrow`, and with the feature `half` `f16` and `bf16`"
)]
pub trait ProductElement: MatrixElement<Word = u32, Sum: BlockSum> {
    /// Starts to add the product of 64 x 32 bytes and `N` rows of 32 bytes to the sums of the threads of a group. The factors say whether
    /// their tiles are transposed, which only those of 16-bit floats are.
    ///
    /// # Safety
    /// As `wgmma.mma_async` requires of all threads of the group, with these descriptors of its operands.
    #[doc(hidden)]
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    unsafe fn add<const N: usize, A: sealed::Factor, B: sealed::Factor>(
        sums: &mut [[Self::Sum; 4]; 32],
        a: u64,
        b: u64,
        order: Order,
    );
}

/// What the products of a block are added up in.
#[doc(hidden)]
pub trait BlockSum: Copy + Default {
    /// Waits for all but the last `P` products of the group that were committed. No instruction reads these sums before.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    fn wait<const P: usize, const N: usize>(sums: &mut [[Self; 4]; 32]);
}

macro_rules! elements {
    ($($t:ident),*) => { $(
        impl ProductElement for $t {
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            #[inline(always)]
            unsafe fn add<const N: usize, A: sealed::Factor, B: sealed::Factor>(
                sums: &mut [[Self::Sum; 4]; 32],
                a: u64,
                b: u64,
                order: Order,
            ) {
                // SAFETY: the caller's.
                unsafe { hopper::$t::<N, A, B>(sums, a, b, order) }
            }
        }
    )* };
}
elements!(i8, u8, tf32, f8e4m3, f8e5m2);
#[cfg(feature = "half")]
elements!(f16, bf16);

/// An element of products whose sums are rounded, and multiplied again by [`multiply_twice`](Thread::multiply_twice) and
/// [`multiply_pairs`](Thread::multiply_pairs): `f16` and `bf16`.
#[cfg(feature = "half")]
#[diagnostic::on_unimplemented(
    message = "blocks multiply no rounded sums of `{Self}`",
    label = "neither `f16` nor `bf16`"
)]
pub trait HalfElement: ProductElement<Sum = f32> + HalfFloat {
    /// As [`ProductElement::add`], of 64 x 16 elements that the threads hold, two to a word, and as many columns of a transposed factor: 64,
    /// 128 or 256.
    ///
    /// # Safety
    /// As `wgmma.mma_async` requires of all threads of the group, with this descriptor.
    #[doc(hidden)]
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    unsafe fn add_words<const N: usize>(sums: &mut [[f32; 4]; 32], a: [u32; 4], b: u64, order: Order);
}

#[cfg(feature = "half")]
macro_rules! half_elements {
    ($($t:ident $of_words:ident),*) => { $(
        impl HalfElement for $t {
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            #[inline(always)]
            unsafe fn add_words<const N: usize>(sums: &mut [[f32; 4]; 32], a: [u32; 4], b: u64, order: Order) {
                // SAFETY: the caller's.
                unsafe { hopper::$of_words::<N>(sums, a, b, order) }
            }
        }
    )* };
}
#[cfg(feature = "half")]
half_elements!(f16 f16_of_words, bf16 bf16_of_words);

#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
impl BlockSum for f32 {}
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
impl BlockSum for i32 {}

impl<T: ProductElement, const M: usize, const N: usize, const S: usize> Products<T, M, N, S> {
    /// The threads of a block.
    const THREADS: usize = {
        assert!(M > 0 && M.is_multiple_of(GROUP_ROWS), "the rows of `Products` are a multiple of 64");
        assert!(M <= MOST_GROUPS * GROUP_ROWS, "`Products` have at most 256 rows");
        assert!(matches!(N, 32 | 64 | 128 | 256), "the columns of `Products` are 32, 64, 128 or 256");
        assert!(S >= 2, "one stage is written while another is multiplied: `Products` has at least two");
        GROUP + M / GROUP_ROWS * GROUP
    };
}

/// What a block does with the sums of each product: a closure, or a type of its own for [`multiply_each`](Thread::multiply_each), if it is long.
/// LLVM may leave a long closure as a function, and the sums in local memory.
pub trait EachProduct<P, const N: usize, U> {
    /// Gets the place of a product and the thread's sums. It is `#[inline(always)]`.
    fn of(&mut self, place: P, sums: &ProductSums<N, U>);
}

impl<P, const N: usize, U, F: FnMut(P, &ProductSums<N, U>)> EachProduct<P, N, U> for F {
    #[inline(always)]
    fn of(&mut self, place: P, sums: &ProductSums<N, U>) {
        self(place, sums);
    }
}

impl Thread<'_, 1> {
    /// Multiplies tiles of matrices as a block: for each place that `tiles` yields, row and column of an element, the sums of `M`
    /// rows and `N` columns of `a b^T` that begin there, all of `a`'s and `b`'s columns multiplied, or those that a [`PartialProduct`]
    /// names. Then `each` gets the place and the thread's own part of the sums.
    ///
    /// The block has 128 threads, which copy, and 128 more for each 64 rows of `M`, which multiply and call `each`. They are one after the
    /// other on the CPU device. On GPUs of compute capability 9.0, in code for `sm_90a`, the first thread runs `tiles`, and starts to copy
    /// `S` stages ahead, also those of the next places (TMA, PTX `cp.async.bulk.tensor` with `mbarrier`); groups of four warps multiply
    /// from shared memory (PTX `wgmma.mma_async`). So `each` overlaps with the copies for the next product.
    ///
    /// The tiles of `a`'s map have `M` rows, or a divisor of that; those of `b` have `N`, or a divisor: other maps are compile errors. A
    /// factor that is stored the other way is passed as [`a.transposed()`](crate::TensorMap::transposed): with `b.transposed()`, the product is
    /// `a b`. [`b.transposed_each(height)`](crate::TensorMap::transposed_each) is for matrices below each other in one plane.
    ///
    /// Elements beyond the edges of `a` and `b` are zeros, so places and sums may lie beyond the edges of the result, which `each` then
    /// leaves out. Products are exact, and sums `f32` or, of integers, `i32`, as in [`FragmentA`](super::FragmentA); but `wgmma` adds products
    /// of 8-bit floats with some 14 bits, as others have found.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    /// use ferrogrid::device::half::bf16;
    /// use ferrogrid::device::matrix::Products;
    ///
    /// /// c <- a b^T. Each block takes every `grid_dim`-th tile of 64 x 32 sums.
    /// #[kernel(block = 256)]
    /// pub fn multiply(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 32>, c: &[DeviceAtomic<f32>],
    ///     memory: Shared<Products<bf16, 64, 32, 2>>,
    /// ) {
    ///     let (height, width) = (a.height(), b.height());
    ///     let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
    ///     let (across, down) = (width.div_ceil(32), height.div_ceil(64));
    ///     let tiles = (first..across * down).step_by(step).map(|tile| [tile / across * 64, tile % across * 32]);
    ///     t.multiply_tiles(memory, a, b, tiles, |[row, column], sums| {
    ///         sums.for_each_pair(|i, j, pair| {
    ///             for (j, sum) in (j..).zip(pair) {
    ///                 if row + i < height && column + j < width {
    ///                     c[(row + i) * width + column + j].store(sum, Relaxed);
    ///                 }
    ///             }
    ///         });
    ///     });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::device::half::bf16;
    ///
    /// let numbers = |len: usize| (0..len).map(|i| bf16::from_f32((i % 5) as f32)).collect::<Vec<_>>();
    /// let (a, b) = (stream.upload(&numbers(70 * 80))?, stream.upload(&numbers(40 * 80))?);
    /// let mut c = stream.zeros(70 * 40)?;
    /// kernels::multiply(&stream, Grid::blocks(2), a.view_2d(80, 70)?, b.view_2d(80, 40)?, c.as_atomic())?;
    /// assert_eq!(stream.download(&c)?[69 * 40 + 39], 16.0 * (1.0 + 4.0 + 9.0 + 16.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the block has another number of threads, a place is 2^31 or more, or that along a transposed factor is no multiple of 8; if the
    /// depth of a [`PartialProduct`] begins or ends within 128 bytes of the factors' rows, or ends before it begins.
    #[track_caller]
    #[inline(always)]
    pub fn multiply_tiles<
        T: ProductElement,
        A: TiledFactor<T>,
        B: TiledFactor<T>,
        P: ProductPlace,
        const M: usize,
        const N: usize,
        const S: usize,
        const ID: usize,
    >(
        &self,
        memory: Shared<'_, Products<T, M, N, S>, ID>,
        a: A,
        b: B,
        tiles: impl IntoIterator<Item = P>,
        each: impl FnMut(P, &ProductSums<N, T::Sum>),
    ) {
        self.multiply_each(memory, a, b, tiles, each);
    }

    /// As [`multiply_tiles`](Self::multiply_tiles), with a type whose function is inlined, however long it is.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    #[inline(always)]
    pub fn multiply_each<
        T: ProductElement,
        A: TiledFactor<T>,
        B: TiledFactor<T>,
        P: ProductPlace,
        const M: usize,
        const N: usize,
        const S: usize,
        const ID: usize,
    >(
        &self,
        memory: Shared<'_, Products<T, M, N, S>, ID>,
        a: A,
        b: B,
        tiles: impl IntoIterator<Item = P>,
        each: impl EachProduct<P, N, T::Sum>,
    ) {
        const {
            assert!(
                has_whole_copies::<A>(M) && has_whole_copies::<B>(N),
                "tiles are copied in parts that have not their size"
            )
        };
        let threads = const { Products::<T, M, N, S>::THREADS };
        assert!(
            self.block_threads() as usize == threads,
            "`Products` of this size need a block of {threads} threads"
        );
        let ([rows_of_a, depth], [rows_of_b, other_depth]) = (a.extent(), b.extent());
        let elements = if rows_of_a == 0 || rows_of_b == 0 { 0 } else { depth.max(other_depth) };
        assert!(
            a.has_zeros_up_to(elements) && b.has_zeros_up_to(elements),
            "columns of a plane are all multiplied, in whole tiles, or end with it"
        );
        let depth = Depth { elements, size: size_of::<T>() };
        let tiles = tiles.into_iter().map(|place| place::words::<T, P, A, B>(place, depth));
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        hopper::multiply(self, memory, a, b, depth, tiles, each);
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
        steps::multiply(self, memory, a, b, depth, tiles, each);
    }
}

/// Whether a tile of `rows` rows is made of whole copies, and each begins where the pattern of a swizzled tile does.
const fn has_whole_copies<F: sealed::Factor>(rows: usize) -> bool {
    rows.is_multiple_of(F::ROWS) && (rows == F::ROWS || F::ROWS.is_multiple_of(8))
}

/// The row and the column of the first sum of a thread, by its number among those that multiply.
#[inline(always)]
pub(super) fn first_sum(number: usize) -> [usize; 2] {
    let lane = number % 32;
    [number / 32 * ROWS + lane / 4, lane % 4 * 2]
}
