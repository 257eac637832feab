//! Two products by a whole block with work between them, of which the first one's sums stay in registers: [`TwoProducts`]. `hopper` has
//! the instructions of `sm_90a`, `steps` what computes the same elsewhere.

#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
pub(super) mod hopper;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
pub(super) mod steps;

use core::mem::MaybeUninit;

use super::{
    ALIGNMENT, Barriers, GROUP, GROUP_ROWS, HalfElement, MOST_GROUPS, MatrixElement, ProductSums,
    TiledFactor, has_whole_copies,
};
use crate::shared::{Shared, without_elements};
use crate::thread::Thread;

/// Shared memory for two products of a block, of `M` rows: the first one has `N` columns and is `D` deep, the second one is `N` deep and
/// has `D` columns. `S` stages each have a tile of a right factor. See [`multiply_twice`](Thread::multiply_twice).
///
/// `M` is 64, 128 or 192, `N` is 64 or 128, and `D` is 64, 128 or 256: other numbers are compile errors. It takes `2 * D * (M + S * N)` bytes,
/// and 1.2 KiB.
///
/// ```compile_fail,E0080
/// use ferrogrid_device::half::f16;
/// use ferrogrid_device::matrix::TwoProducts;
/// use ferrogrid_device::{Shared, TensorMap, Thread};
///
/// fn multiply(t: &Thread<1>, a: TensorMap<f16, 64, 64>, memory: Shared<TwoProducts<f16, 64, 96, 64, 2>>) {
///     t.multiply_twice(memory, [a, a, a], [0, 0], 1, (), |_, _, _| (), |_, _| (), |_, _| ());
/// }
/// # let used: fn(&Thread<1>, TensorMap<f16, 64, 64>, Shared<TwoProducts<f16, 64, 96, 64, 2>>) = multiply;
/// # assert!(used as usize != 0);
/// ```
#[repr(C)]
pub struct TwoProducts<T, const M: usize, const N: usize, const D: usize, const S: usize> {
    /// The tiles begin at the first multiple of 1024 bytes.
    before: MaybeUninit<[u8; ALIGNMENT]>,
    left: [[T; D]; M],
    right: [[[T; D]; N]; S],
    barriers: [Barriers; S],
    /// What the warps of a group wait for before a second product.
    agreed: [u64; MOST_GROUPS],
    /// Whose turn it is to multiply.
    turns: [u64; MOST_GROUPS],
    of_left: [Left; MOST_GROUPS],
}

/// What a group waits for before it multiplies its rows of the left factor.
#[repr(C, align(16))]
struct Left {
    /// Whether they have arrived.
    full: u64,
    /// Whether they have been multiplied by all rows of the place.
    empty: u64,
    /// What the first thread says of the place.
    words: Words,
}

without_elements!([T: MatrixElement, const M: usize, const N: usize, const D: usize, const S: usize] TwoProducts<T, M, N, D, S>, T);

impl<T: HalfElement, const M: usize, const N: usize, const D: usize, const S: usize>
    TwoProducts<T, M, N, D, S>
{
    /// The threads of a block.
    const THREADS: usize = {
        assert!(M > 0 && M.is_multiple_of(GROUP_ROWS), "the rows of `TwoProducts` are a multiple of 64");
        assert!(M <= 3 * GROUP_ROWS, "`TwoProducts` have at most 192 rows");
        assert!(matches!(N, 64 | 128), "the columns of the first of `TwoProducts` are 64 or 128");
        assert!(matches!(D, 64 | 128 | 256), "the columns of the second of `TwoProducts` are 64, 128 or 256");
        assert!(S >= 2, "one stage is written while another is multiplied: `TwoProducts` have at least two");
        GROUP + M / GROUP_ROWS * GROUP
    };
}

/// What [`multiply_tiles_twice`](Thread::multiply_tiles_twice) multiplies: rows of the left factor by rows of the right ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TwicePlace {
    /// The first row of the left factor.
    pub row: usize,
    /// The first row of the right ones.
    pub start: usize,
    /// By how many columns it is further right than the factors say, in the left one and the right ones.
    pub columns: [usize; 2],
    /// How many tiles of their rows there are.
    pub steps: usize,
    /// What `begin` gets: what the closures need to know of the place.
    pub tag: u32,
}

/// Steps and tag of a place, its rows and its columns.
type Words = [u32; 6];

/// The steps that tell the groups to stop.
const END: u32 = u32::MAX;

/// Where no plane has rows: those of a tile have numbers less than 2^31.
const FAR: usize = (1 << 31) - 256;

impl TwicePlace {
    #[inline(always)]
    fn words(self) -> Words {
        let TwicePlace { row, start, columns: [of_left, of_right], steps, tag } = self;
        let [row, start, of_left, of_right] = [row, start, of_left, of_right].map(|it| it.min(FAR) as u32);
        [steps.min(END as usize - 1) as u32, tag, row, start, of_left, of_right]
    }
}

impl Thread<'_, 1> {
    /// Multiplies, and multiplies by what comes of it, as a block. For each of `steps` tiles: the sums of `N` rows of `b` with the `M` rows
    /// of `a` from `row` on, `a b^T`; then `first` gets what is kept, the number of the step and these sums; `second` gets what is kept and
    /// the sums of the second product over the steps before; and the first sums, rounded to `T`, times the tile's rows of `c` are added to
    /// these. After all steps `finish` gets what was kept and the second sums. `b` and `c` begin at row `start`. The first thread says
    /// `[row, start]` and `steps`; those of the others do not count. The 128 threads that copy call none of the closures.
    ///
    /// Rows of the three planes have at most `D` elements. What lies beyond their edges is zero. Blocks have as many threads, and these the
    /// same parts of the sums, as in [`multiply_tiles`](Thread::multiply_tiles), which says more, also of what runs on which GPU. If a
    /// thread has registers for both products (`N / 2 + D / 2 + N / 4 + 40` of them), the second one of the step before is computed while
    /// `first` is at work (FlashAttention-3), unless `first` may panic; and groups of four warps take turns, so that one multiplies while
    /// another is in its closures. With `min_blocks = 1` the threads that copy leave theirs to the others (PTX `setmaxnreg`), so a thread
    /// has up to 240, unless one of the closures may panic.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    /// use ferrogrid::device::half::bf16;
    /// use ferrogrid::device::matrix::{ProductSums, TwoProducts};
    ///
    /// /// y <- max(a b^T, 0) c, of 64 rows: a network with one hidden layer, whose units are not stored.
    /// #[kernel(block = 256)]
    /// pub fn network(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: TensorMap<bf16, 64, 64>,
    ///     y: &[DeviceAtomic<f32>], memory: Shared<TwoProducts<bf16, 64, 64, 64, 2>>,
    /// ) {
    ///     let row = t.block_idx()[0] as usize * 64;
    ///     let steps = b.height() / 64;
    ///     let positive = |_: &mut _, _, units: &mut ProductSums<64>| units.map_places(|_, _, unit| unit.max(0.0));
    ///     t.multiply_twice(memory, [a, b, c], [row, 0], steps, (), positive, |_, _| (), |(), sums| {
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
    /// let a = stream.fill(bf16::ONE, 64 * 64)?;
    /// let b = stream.upload(&(0..128 * 64).map(|i| bf16::from_f32((i / 64) as f32 - 64.0)).collect::<Vec<_>>())?;
    /// let (c, mut y) = (stream.fill(bf16::from_f32(2.0), 128 * 64)?, stream.zeros(64 * 64)?);
    /// let (a, b, c) = (a.view_2d(64, 64)?, b.view_2d(64, 128)?, c.view_2d(64, 128)?);
    /// kernels::network(&stream, Grid::blocks(1), a, b, c, y.as_atomic())?;
    /// assert_eq!(stream.download(&y)?[0], 2.0 * 64.0 * (0..64).sum::<i32>() as f32); // units -64 to 63, and the negative ones are 0
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the block has another number of threads, a plane's rows have more than `D` elements, or its columns are not `D`, or a place is 2^31 or more, or a plane
    /// has more than 2^31 - 256 rows.
    #[track_caller]
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "factors, places and closures, each of which has its name")]
    pub fn multiply_twice<
        T: HalfElement,
        F: TiledFactor<T>,
        K,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const ID: usize,
    >(
        &self,
        memory: Shared<'_, TwoProducts<T, M, N, D, S>, ID>,
        factors: [F; 3],
        [row, start]: [usize; 2],
        steps: usize,
        kept: K,
        first: impl FnMut(&mut K, usize, &mut ProductSums<N>),
        second: impl FnMut(&mut K, &mut ProductSums<D>),
        finish: impl FnOnce(K, ProductSums<D>),
    ) {
        let end_of = start.saturating_add(steps.saturating_mul(N));
        assert!(row >> 31 == 0 && end_of >> 31 == 0, "a product's place is less than 2^31");
        let (mut kept, mut finish) = (Some(kept), Some(finish));
        // SAFETY: there is one place, so each thread begins and finishes at most once.
        let begin = |_| unsafe { kept.take().unwrap_unchecked() };
        // SAFETY: as above.
        let finish = |kept, sums| unsafe { finish.take().unwrap_unchecked()(kept, sums) };
        let place = TwicePlace { row, start, steps, ..TwicePlace::default() };
        self.multiply_tiles_twice(memory, factors, [place], begin, first, second, finish);
    }

    /// As [`multiply_twice`](Thread::multiply_twice), at one place after the other: for blocks that stay. A grid has as many as fit on the
    /// device, and each block takes several tiles of the results.
    ///
    /// For each place `begin` makes what is kept from its tag, and `finish` gets that and the second sums. The first thread alone asks for
    /// places. It copies tiles of the next one while groups are at work on the last, and a group's rows of `a` as soon as these are free. No
    /// group waits until others have finished. Where places take different times, let blocks take them from an atomic counter, the
    /// longest ones first: then all end together.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    /// use ferrogrid::device::half::bf16;
    /// use ferrogrid::device::matrix::{ProductSums, TwicePlace, TwoProducts};
    ///
    /// /// y <- max(a b^T, 0) c, of 64 rows at a time: `taken` counts what blocks have taken.
    /// #[kernel(block = 256)]
    /// pub fn network(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: TensorMap<bf16, 64, 64>,
    ///     y: &[DeviceAtomic<f32>], taken: &[DeviceAtomic<u32>], memory: Shared<TwoProducts<bf16, 64, 64, 64, 2>>,
    /// ) {
    ///     let (rows, steps) = (a.height(), b.height() / 64);
    ///     let places = core::iter::from_fn(|| {
    ///         let row = taken[0].fetch_add(1, Relaxed) as usize * 64;
    ///         (row < rows).then_some(TwicePlace { row, steps, tag: row as u32, ..Default::default() })
    ///     });
    ///     let positive = |_: &mut _, _, units: &mut ProductSums<64>| units.map_places(|_, _, unit| unit.max(0.0));
    ///     t.multiply_tiles_twice(memory, [a, b, c], places, |row| row as usize, positive, |_, _| (), |row, sums| {
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
    /// let a = stream.upload(&(0..320 * 64).map(|i| bf16::from_f32((i / 64 / 64) as f32)).collect::<Vec<_>>())?;
    /// let (b, c) = (stream.fill(bf16::ONE, 128 * 64)?, stream.fill(bf16::ONE, 128 * 64)?);
    /// let (mut y, mut taken) = (stream.zeros(320 * 64)?, stream.zeros(1)?);
    /// let (a, b, c) = (a.view_2d(64, 320)?, b.view_2d(64, 128)?, c.view_2d(64, 128)?);
    /// kernels::network(&stream, Grid::blocks(2), a, b, c, y.as_atomic(), taken.as_atomic())?;
    /// let y: Vec<f32> = stream.download(&y)?.into_iter().step_by(64 * 64).collect();
    /// assert_eq!(y, [0.0, 1.0, 2.0, 3.0, 4.0].map(|tile| tile * 64.0 * 128.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the block has another number of threads, a plane's rows have more than `D` elements, or its columns are not `D`, or it has more than
    /// 2^31 - 256 rows.
    #[track_caller]
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "factors, places and closures, each of which has its name")]
    pub fn multiply_tiles_twice<
        T: HalfElement,
        F: TiledFactor<T>,
        K,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const ID: usize,
    >(
        &self,
        memory: Shared<'_, TwoProducts<T, M, N, D, S>, ID>,
        factors: [F; 3],
        places: impl IntoIterator<Item = TwicePlace>,
        begin: impl FnMut(u32) -> K,
        first: impl FnMut(&mut K, usize, &mut ProductSums<N>),
        second: impl FnMut(&mut K, &mut ProductSums<D>),
        finish: impl FnMut(K, ProductSums<D>),
    ) {
        const {
            assert!(!F::IS_TRANSPOSED, "the factors of two products are planes as they are");
            assert!(
                has_whole_copies::<F>(GROUP_ROWS) && has_whole_copies::<F>(N),
                "tiles are copied in parts that have not their size"
            );
        };
        let threads = const { TwoProducts::<T, M, N, D, S>::THREADS };
        assert!(
            self.block_threads() as usize == threads,
            "`TwoProducts` of this size need a block of {threads} threads"
        );
        assert!(
            factors.iter().all(|it| it.extent()[1] <= D && it.has_zeros_up_to(D)),
            "rows of two products have at most {D} elements, and columns of a plane that many"
        );
        assert!(
            factors.iter().all(|it| it.extent()[0] <= FAR),
            "the factors of two products have at most 2^31 - 256 rows"
        );
        let places = places.into_iter().map(TwicePlace::words);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        hopper::multiply(self, memory, factors, places, begin, (first, second), finish);
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
        steps::multiply(self, memory, factors, places, begin, (first, second), finish);
    }
}
