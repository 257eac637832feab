//! Two products by a whole block, and two more of what comes of them with the same tiles: [`PairedProducts`]; `values` has
//! a step of them, `added` the memory of a third one. `hopper` has the instructions of `sm_90a`, `exchange` those of the third product, `steps` what computes the same elsewhere.

mod added;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
mod exchange;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
mod hopper;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
mod steps;
mod values;

use core::mem::MaybeUninit;

pub use self::added::{Added, AddedSums, AddedTiles};
pub use self::values::{ColumnValues, PairStep};
use super::{
    ALIGNMENT, Barriers, GROUP, GROUP_ROWS, HalfElement, MOST_GROUPS, MatrixElement, ProductSums,
    TiledFactor, has_whole_copies,
};
use crate::memory::tensor_map::TensorMap;
use crate::shared::{Shared, without_elements};
use crate::thread::Thread;

/// Shared memory for pairs of products of a block, of `M` rows: the first two have `N` columns and are `D` deep, the second two are `N` deep
/// and have `D` columns. `S` stages each have a tile of either right factor. See [`multiply_pairs`](Thread::multiply_pairs).
///
/// `M` is 64, 128 or 192, and `N` and `D` are 64 or 128: other numbers are compile errors. It takes `4 * D * (M + S * N) + 8 * S * N` bytes, and 1.2 KiB. `X` is
/// [`AddedTiles`] if there is a third product.
///
/// ```compile_fail,E0080
/// use ferrogrid_device::half::f16;
/// use ferrogrid_device::matrix::{PairedFactors, PairedPlace, PairedProducts};
/// use ferrogrid_device::{Shared, TensorMap, Thread};
///
/// fn multiply(t: &Thread<1>, a: TensorMap<f16, 64, 64>, memory: Shared<PairedProducts<f16, 64, 96, 64, 2>>) {
///     let factors = PairedFactors { left: [a, a], right: [a, a], row: 0, steps: 1, values: None, added: () };
///     t.multiply_pairs(memory, factors, |_| PairedPlace::of_row(0), |_, _| (), |_, _, _| (), |[_, _]| ());
/// }
/// # let used: fn(&Thread<1>, TensorMap<f16, 64, 64>, Shared<PairedProducts<f16, 64, 96, 64, 2>>) = multiply;
/// # assert!(used as usize != 0);
/// ```
#[repr(C)]
pub struct PairedProducts<T, const M: usize, const N: usize, const D: usize, const S: usize, X = ()> {
    /// The tiles begin at the first multiple of 1024 bytes.
    before: MaybeUninit<[u8; ALIGNMENT]>,
    left: [[[T; D]; M]; 2],
    right: [[[[T; D]; N]; 2]; S],
    added: X,
    /// Those of the rows of the right factors.
    values: [Values<N>; S],
    barriers: [Barriers; S],
    /// What the warps of a group wait for before a second pair.
    agreed: [u64; MOST_GROUPS],
    /// Whether the left factors have arrived.
    have_left: u64,
    /// What the first thread says: the row and the number of steps, and a step's place.
    said: [u32; 6],
}

/// Two for each row of a step, at a multiple of 16 bytes, as copies need it.
#[repr(C, align(16))]
struct Values<const N: usize>([[f32; N]; 2]);

without_elements!([T: MatrixElement, const M: usize, const N: usize, const D: usize, const S: usize, X: Added<T, M, N, D>] PairedProducts<T, M, N, D, S, X>, T);

impl<T: HalfElement, const M: usize, const N: usize, const D: usize, const S: usize, X>
    PairedProducts<T, M, N, D, S, X>
{
    /// The threads of a block.
    const THREADS: usize = {
        assert!(M > 0 && M.is_multiple_of(GROUP_ROWS), "the rows of `PairedProducts` are a multiple of 64");
        assert!(M <= 3 * GROUP_ROWS, "`PairedProducts` have at most 192 rows");
        assert!(matches!(N, 64 | 128), "the columns of the first of `PairedProducts` are 64 or 128");
        assert!(matches!(D, 64 | 128), "the columns of the second of `PairedProducts` are 64 or 128");
        assert!(
            S >= 2,
            "one stage is written while another is multiplied: `PairedProducts` have at least two"
        );
        GROUP + M / GROUP_ROWS * GROUP
    };
}

/// What [`multiply_pairs`](Thread::multiply_pairs) multiplies. The first thread says `row` and `steps`; those of the others do not count.
#[derive(Clone, Copy)]
pub struct PairedFactors<'v, F, const N: usize, P = ()> {
    /// `a` and `b`.
    pub left: [F; 2],
    /// `c` and `d`.
    pub right: [F; 2],
    /// The first row of `a` and `b`.
    pub row: usize,
    /// How many steps there are.
    pub steps: usize,
    /// Two rows of numbers, with a column for each row of the right factors, of which the step's are copied with these for
    /// [`PairStep::value`]; beyond the edges they are 0.
    pub values: Option<TensorMap<'v, f32, N, 2>>,
    /// The plane that third products are added to, `&y` of an [`AddedSums`], if there are any; otherwise `()`.
    pub added: P,
}

/// What a step of [`multiply_pairs`](Thread::multiply_pairs) reads of the right factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairedPlace {
    /// The first of its rows.
    pub row: usize,
    /// By how many columns it is further right than the factors say.
    pub column: usize,
    /// The number of the first row among the columns of [`values`](PairedFactors::values), where it is rounded down to a multiple of 4, and
    /// among the rows that third products are added to.
    pub number: usize,
    /// What the closures have as [`PairStep::tag`]: what they need to know of the step, and would else compute anew.
    pub tag: u32,
}

impl PairedPlace {
    /// That of rows from one on, whose values have the same numbers.
    #[inline(always)]
    pub const fn of_row(row: usize) -> Self {
        PairedPlace { row, column: 0, number: row, tag: 0 }
    }

    /// With a row of at most `end`, and numbers less than 2^31.
    #[inline(always)]
    fn within(self, end: usize) -> Self {
        let least = |it: usize| it.min(i32::MAX as usize);
        PairedPlace { row: self.row.min(end), column: least(self.column), number: least(self.number), ..self }
    }
}

impl Thread<'_, 1> {
    /// Multiplies two pairs of matrices, and then what comes of it by the right ones, as a block. In each step:
    ///
    /// - `p` are the sums of `N` rows of `c` with the `M` rows of `a` from `row` on, `a c^T`, and `q` those of `d` with those of `b`,
    ///   `b d^T`. `places(step)` says where these rows begin.
    /// - `first` gets the step and `p`, and `second` the step, `p`, and `q`. The step has two numbers for each row of `c` and `d`, if
    ///   there are `values`: closures that read device memory would wait as long as a product takes.
    /// - `q`, rounded to `T`, times the rows of `c` is added to the first result; and `p`, as `first` left it, times those of `d` to the
    ///   second, if there are two.
    ///
    /// `finish` gets the results after all steps.
    ///
    /// Gradients of attention are such products: `left` are keys and values, `right` queries and results' gradients, or the other way
    /// round, `first` makes weights of scores, and `second` gradients of scores of those of weights. The first thread alone calls `places`. All
    /// else is as in [`multiply_twice`](Thread::multiply_twice). [`AddedTiles`] are for a third product in each step.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    /// use ferrogrid::device::half::bf16;
    /// use ferrogrid::device::matrix::{PairStep, PairedFactors, PairedPlace, PairedProducts, ProductSums};
    ///
    /// /// y <- (a c^T o b d^T) c, of 64 rows: both products are multiplied element by element.
    /// #[kernel(block = 256)]
    /// pub fn gated(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: TensorMap<bf16, 64, 64>,
    ///     d: TensorMap<bf16, 64, 64>, y: &[DeviceAtomic<f32>], memory: Shared<PairedProducts<bf16, 64, 64, 64, 2>>,
    /// ) {
    ///     let row = t.block_idx()[0] as usize * 64;
    ///     let factors = PairedFactors { left: [a, b], right: [c, d], row, steps: c.height() / 64, values: None, added: () };
    ///     let places = |step| PairedPlace::of_row(step * 64);
    ///     let gate = |_: PairStep<64>, gates: &ProductSums<64>, units: &mut ProductSums<64>| {
    ///         units.zip_places(gates, |_, _, [unit, gate]| unit * gate);
    ///     };
    ///     t.multiply_pairs(memory, factors, places, |_, _| (), gate, |[sums]| {
    ///         sums.for_each_pair(|i, column, pair| {
    ///             for (column, sum) in (column..).zip(pair) {
    ///                 y[(row + i) * 64 + column].store(sum, Relaxed);
    ///             }
    ///         });
    ///     });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::device::half::bf16;
    ///
    /// let ones = stream.fill(bf16::ONE, 128 * 64)?;
    /// let c = stream.upload(&(0..128 * 64).map(|i| bf16::from_f32((i / 64) as f32 / 64.0)).collect::<Vec<_>>())?;
    /// let mut y = stream.zeros(64 * 64)?;
    /// let (a, c, d) = (ones.view().slice(..64 * 64)?.into_2d(64, 64)?, c.view_2d(64, 128)?, ones.view_2d(64, 128)?);
    /// kernels::gated(&stream, Grid::blocks(1), a, a, c, d, y.as_atomic())?;
    /// // Gates 0 to 127, units 64.
    /// assert_eq!(stream.download(&y)?[0], (0..128).map(|i| (i * i) as f32).sum::<f32>());
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the block has another number of threads, a plane's rows have more than `D` elements, or its columns are not `D`, `row` or `steps` is 2^31 or more, or `c` or
    /// `d` has 2^31 rows or more.
    #[track_caller]
    #[inline(always)]
    pub fn multiply_pairs<
        T: HalfElement,
        F: TiledFactor<T>,
        X: Added<T, M, N, D>,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const R: usize,
        const ID: usize,
    >(
        &self,
        memory: Shared<'_, PairedProducts<T, M, N, D, S, X>, ID>,
        factors: PairedFactors<'_, F, N, X::Plane<'_>>,
        mut places: impl FnMut(usize) -> PairedPlace,
        first: impl FnMut(PairStep<N>, &mut ProductSums<N>),
        second: impl FnMut(PairStep<N>, &ProductSums<N>, &mut ProductSums<N>),
        finish: impl FnOnce([ProductSums<D>; R]),
    ) {
        let _ = const { X::ADDS };
        const {
            assert!(matches!(R, 1 | 2), "pairs of products have one result or two");
            assert!(!F::IS_TRANSPOSED, "the factors of pairs of products are planes as they are");
            assert!(
                has_whole_copies::<F>(M) && has_whole_copies::<F>(N),
                "tiles are copied in parts that have not their size"
            );
        };
        let threads = const { PairedProducts::<T, M, N, D, S, X>::THREADS };
        assert!(
            self.block_threads() as usize == threads,
            "`PairedProducts` of this size need a block of {threads} threads"
        );
        assert!(
            factors.left.iter().chain(&factors.right).all(|it| it.extent()[1] <= D && it.has_zeros_up_to(D)),
            "rows of pairs of products have at most {D} elements, and columns of a plane that many"
        );
        assert!(factors.row >> 31 == 0 && factors.steps >> 31 == 0, "a product's place is less than 2^31");
        let [c, d] = factors.right;
        let end = c.extent()[0].max(d.extent()[0]);
        assert!(end >> 31 == 0, "the right factors of pairs of products have less than 2^31 rows");
        let places = |step| places(step).within(end);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        hopper::multiply(self, memory, factors, places, (first, second), finish);
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
        steps::multiply(self, memory, factors, places, (first, second), finish);
    }
}
