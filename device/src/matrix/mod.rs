//! Products of matrices by tensor cores: the threads of a warp hold parts of matrices, fragments, and multiply them together.
//! `element` has the types of elements, `source` what fragments are loaded from, `ptx` the instructions, and `steps` what computes the
//! same without them. `rows` has what is done between two products, and `softmax` a softmax of theirs. `block` multiplies by a whole block.

mod block;
mod element;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
mod ptx;
mod rows;
mod softmax;
mod source;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_89")))]
mod steps;

#[cfg(feature = "half")]
pub use block::{
    Added, AddedSums, AddedTiles, ColumnValues, HalfElement, PairStep, PairedFactors, PairedPlace,
    PairedProducts, Transposed, TransposedEach, TwicePlace, TwoProducts,
};
pub use block::{
    Columns, EachProduct, GroupedRows, PartialProduct, ProductElement, ProductPlace, ProductResult,
    ProductSums, ProductTiles, Products, ResultRows, ResultTile, RowGroups, StoredGroup, StoredPair,
    TiledFactor, WarpRows,
};
#[doc(hidden)]
pub use block::{
    Several, SumFunction, multiply_and_store, multiply_parts, nearest, nearest_of_plane, store_parts,
};
pub use element::MatrixElement;
pub use rows::RowValues;
pub use softmax::{OnlineSoftmax, ScoreRows};
pub use source::{FragmentSource, MatrixRow};

use self::source::Part;
use crate::warp::Warp;

/// The rows of one fragment of a [`FragmentA`], and of one of an [`Accumulator`].
pub const ROWS: usize = 16;
/// The columns of one fragment of a [`FragmentB`], and of one of an [`Accumulator`].
pub const COLUMNS: usize = 8;

/// Repeats a block for each number below a constant of 1 to 8. A loop that LLVM does not unroll would leave the registers that it
/// indexes in local memory.
#[cfg(target_arch = "nvptx64")]
macro_rules! unrolled {
    ($number:ident in 2, $body:block) => {
        unrolled!(@ $number in 2, $body 0 1)
    };
    ($number:ident in 4, $body:block) => {
        unrolled!(@ $number in 4, $body 0 1 2 3)
    };
    ($number:ident in 8, $body:block) => {
        unrolled!(@ $number in 8, $body 0 1 2 3 4 5 6 7)
    };
    ($number:ident in $count:expr, $body:block) => {
        unrolled!(@ $number in const { $crate::matrix::count($count) }, $body 0 1 2 3 4 5 6 7)
    };
    (@ $number:ident in $count:expr, $body:block $($value:literal)*) => {
        $(if $value < $count {
            let $number: usize = $value;
            $body
        })*
    };
}
/// On the CPU device a loop: what is repeated would only be compiled more often.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! unrolled {
    ($number:ident in $count:expr, $body:block) => {
        for $number in 0..const { $crate::matrix::count($count) } {
            $body
        }
    };
}
use unrolled;

/// A matrix of `M` times [`ROWS`] by `T::DEPTH` elements that the threads of a warp hold together: the left factor of a product. `M`
/// is at most 8.
///
/// A product of 16 x `DEPTH` by `DEPTH` x 8 elements is one instruction from `sm_80` on (PTX `mma.sync`; CUDA C++ has
/// `nvcuda::wmma` for it), of `f64` four before `sm_90`:
///
/// | elements | depth | sums | on a GPU |
/// |---|---|---|---|
/// | `f16`, `bf16` (feature `half`) | 16 | `f32` | `mma.sync.m16n8k16` |
/// | `f64` | 8 | `f64` | `mma.sync.m16n8k8`, or `.m8n8k4` before `sm_90` |
/// | [`tf32`](crate::narrow::tf32) | 8 | `f32` | `mma.sync.m16n8k8` |
/// | [`f8e4m3`](crate::narrow::f8e4m3), [`f8e5m2`](crate::narrow::f8e5m2) | 32 | `f32` | `mma.sync.m16n8k32`, from `sm_89` on |
/// | `i8`, `u8` | 32 | `i32`, which wraps around | `mma.sync.m16n8k32` |
///
/// Products of `tf32` and of 16- and 8-bit floats are exact. The CPU device, and code for architectures without the instruction, add them
/// up one after the other, each sum rounded to the nearest `f32`. Tensor cores add several at once and cut off bits: sums that an `f32`
/// holds exactly are the same everywhere, others may differ in their last bits. Of 8-bit floats, compute capability 8.9 may cut off what is
/// below 2^-13 of the largest number that it adds. Products of `f64` have the same bits everywhere: each is rounded once, with
/// its sum, in the order of the depth.
///
/// A warp multiplies larger matrices at once, an accumulator of 64 x 64 sums as 4 x 8 fragments: each element that it loads is then
/// used more often.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
/// use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB};
///
/// /// c <- a b, of 16 x 64 and 64 x 8 numbers, by one warp.
/// #[kernel(block = 32)]
/// pub fn multiply(t: Thread<1>, a: Plane<i8>, b: Plane<i8>, c: &[DeviceAtomic<i32>]) {
///     let warp = t.warp();
///     let mut sums = Accumulator::<i8>::zero();
///     for first in [0, 32] {
///         let a = FragmentA::from_fn(&warp, |row, k| a[row][first + k]);
///         let b = FragmentB::from_fn(&warp, |k, column| b[first + k][column]);
///         sums.add_product(&warp, &a, &b);
///     }
///     sums.for_each(&warp, |row, column, sum| c[row * 8 + column].store(sum, Relaxed));
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let a = stream.upload(&(0..16 * 64).map(|i| (i % 7) as i8).collect::<Vec<_>>())?;
/// let (b, mut c) = (stream.fill(-2_i8, 64 * 8)?, stream.zeros(16 * 8)?);
/// kernels::multiply(&stream, Grid::blocks(1), a.view_2d(64, 16)?, b.view_2d(8, 64)?, c.as_atomic())?;
/// assert_eq!(stream.download(&c)?[..8], [-2 * (9 * 21); 8]); // 0 to 6 nine times, and a 0
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FragmentA<T: MatrixElement, const M: usize = 1> {
    /// Of each fragment word `w` has neighbours of row `lane / 4 + w % 2 * 8`: those of `lane % 4` in the first half of the depth, or
    /// in the second.
    words: [[T::Word; 4]; M],
}

/// A matrix of `T::DEPTH` by `N` times [`COLUMNS`] elements that the threads of a warp hold together: the right factor of a product.
/// `N` is at most 8. See [`FragmentA`].
#[derive(Clone, Copy, Debug)]
pub struct FragmentB<T: MatrixElement, const N: usize = 1> {
    /// Of each fragment word `w` has neighbours of column `lane / 4`: those of `lane % 4` in half `w` of the depth.
    words: [[T::Word; 2]; N],
}

/// A matrix of `M` times [`ROWS`] by `N` times [`COLUMNS`] sums that the threads of a warp hold together, to which products are added:
/// `4 * M * N` registers of each thread. `M` and `N` are at most 8. See [`FragmentA`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
/// use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB};
///
/// /// c <- the products of rows of `a` and rows of `b`, of 32 x 32 and 16 x 32 numbers.
/// #[kernel(block = 32)]
/// pub fn products_of_rows(t: Thread<1>, a: Plane<u8>, b: Plane<u8>, c: &[DeviceAtomic<i32>]) {
///     let warp = t.warp();
///     let mut sums = Accumulator::<u8, 2, 2>::zero(); // 2 x 16 rows, 2 x 8 columns
///     let a = FragmentA::from_fn(&warp, |row, k| a[row][k]);
///     let b = FragmentB::from_fn(&warp, |k, column| b[column][k]);
///     sums.add_product(&warp, &a, &b);
///     sums.for_each(&warp, |row, column, sum| c[row * 16 + column].store(sum, Relaxed));
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let a = stream.upload(&(0..32 * 32).map(|i| (i / 32) as u8).collect::<Vec<_>>())?;
/// let (b, mut c) = (stream.fill(2_u8, 16 * 32)?, stream.zeros(32 * 16)?);
/// kernels::products_of_rows(&stream, Grid::blocks(1), a.view_2d(32, 32)?, b.view_2d(32, 16)?, c.as_atomic())?;
/// assert_eq!(stream.download(&c)?[31 * 16..], [31 * 2 * 32; 16]);
/// # Ok(()) }
/// ```
///
/// ```compile_fail,E0080
/// use ferrogrid_device::Warp;
/// use ferrogrid_device::matrix::Accumulator;
///
/// fn visit_nine(warp: &Warp, sums: Accumulator<i8, 9>) {
///     sums.for_each(warp, |_, _, _| ());
/// }
/// # let used: fn(&Warp<'_>, Accumulator<i8, 9>) = visit_nine;
/// # assert!(used as usize != 0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Accumulator<T: MatrixElement, const M: usize = 1, const N: usize = 1> {
    /// Of each fragment two neighbours of row `lane / 4`, and below them two of row `lane / 4 + 8`.
    sums: [[[T::Sum; 4]; N]; M],
}

/// The number of an element of a word: the one of `lane % 4` in half `half` of the depth.
#[inline(always)]
fn place<T: MatrixElement>(lane: usize, half: usize, number: usize) -> usize {
    (half * 4 + lane % 4) * T::PER_WORD + number
}

impl<T: MatrixElement, const M: usize> FragmentA<T, M> {
    /// The matrix with `element(row, k)` in each place. Each thread calls it for its own elements.
    #[inline(always)]
    pub fn from_fn(warp: &Warp, mut element: impl FnMut(usize, usize) -> T) -> Self {
        let (lane, mut words) = (warp.lane() as usize, [[T::Word::default(); 4]; M]);
        unrolled!(m in M, {
            unrolled!(w in 4, {
                let row = m * ROWS + lane / 4 + w % 2 * 8;
                words[m][w] = T::word(|number| element(row, place::<T>(lane, w / 2, number)));
            });
        });
        FragmentA { words }
    }

    /// The part of a matrix that begins at `[row, k]`; all threads of the warp together.
    ///
    /// From shared memory it is one instruction (PTX `ldmatrix.x4`, from `sm_80` on), if rows have a multiple of 16 bytes and the part
    /// begins at one. Threads read 16 bytes of 8 rows at a time: none waits for another if rows are 16 bytes apart modulo 128, as those
    /// of `[[f16; 72]; 64]` are. `f64` are loaded one by one: there rows are 32 bytes apart modulo 128, as those of `[[f64; 20]; 64]`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    /// use ferrogrid::device::half::f16;
    /// use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB};
    ///
    /// /// c <- a b, of 32 x 16 and 16 x 8 numbers, by two warps.
    /// #[kernel(block = 64)]
    /// pub fn multiply(
    ///     t: Thread<1>, a: Plane<f16>, b: Plane<f16>, c: &[DeviceAtomic<f32>],
    ///     mut rows: Shared<[[f16; 24]; 32]>, mut columns: Shared<[[f16; 8]; 16]>,
    /// ) {
    ///     rows.fill_with(&t, |[row, k]| a.get(row, k).copied().unwrap_or(f16::ZERO));
    ///     columns.fill_with(&t, |[k, column]| b[k][column]);
    ///     let (rows, columns) = t.publish((rows, columns));
    ///     let (warp, first) = (t.warp(), t.thread_rank() as usize / 32 * 16);
    ///     let mut sums = Accumulator::<f16>::zero();
    ///     let a = FragmentA::load(&warp, &rows[..], [first, 0]);
    ///     sums.add_product(&warp, &a, &FragmentB::load(&warp, &columns[..], [0, 0]));
    ///     sums.for_each(&warp, |row, column, sum| c[(first + row) * 8 + column].store(sum, Relaxed));
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::device::half::f16;
    ///
    /// let a = stream.upload(&(0..32 * 16).map(|i| f16::from_f32((i / 16) as f32)).collect::<Vec<_>>())?;
    /// let (b, mut c) = (stream.fill(f16::from_f32(0.5), 16 * 8)?, stream.zeros(32 * 8)?);
    /// kernels::multiply(&stream, Grid::blocks(1), a.view_2d(16, 32)?, b.view_2d(8, 16)?, c.as_atomic())?;
    /// assert_eq!(stream.download(&c)?[17 * 8..][..2], [17.0 * 0.5 * 16.0; 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// Unless the part lies within the matrix, and the warp has 32 threads.
    #[track_caller]
    #[inline(always)]
    pub fn load<S: FragmentSource<T>>(warp: &Warp, matrix: S, [row, k]: [usize; 2]) -> Self {
        let part = Part::of(warp, matrix, [row, k], [M * ROWS, T::DEPTH]);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if part.is_direct() {
            let (lane, mut words) = (warp.lane() as usize, [[T::Word::default(); 4]; M]);
            unrolled!(m in M, {
                let place = [m * ROWS + lane % 16, lane / 16 * T::IN_16_BYTES];
                // SAFETY: the threads' addresses are those of 16 bytes of the part's rows.
                words[m] = bytemuck::cast(unsafe { ptx::load_four(part.address(place)) });
            });
            return FragmentA { words };
        }
        FragmentA::from_fn(warp, |row, k| part.element([row, k]))
    }

    /// The part that begins at `[k, row]` of a matrix whose **rows are the columns** of the left factor; all threads of the warp
    /// together (for 16-bit elements PTX `ldmatrix.x4.trans`). [`load`](Self::load) says more.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    /// use ferrogrid::device::half::bf16;
    /// use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB};
    ///
    /// /// c <- the products of the 32 columns of `a` with each other, of 16 rows: rows of shared memory have 64 bytes and 16 unused ones.
    /// #[kernel(block = 32)]
    /// pub fn multiply_columns(
    ///     t: Thread<1>, a: Plane<bf16>, c: &[DeviceAtomic<f32>], mut rows: Shared<Padded<bf16, 32, 16, 8>>,
    /// ) {
    ///     rows.fill_with(&t, |[row, column]| a[row][column]);
    ///     let (rows, warp) = (t.publish(rows), t.warp());
    ///     let mut sums = Accumulator::<bf16, 2, 4>::zero();
    ///     let turned = FragmentA::load_transposed(&warp, rows.rows(), [0, 0]);
    ///     sums.add_product(&warp, &turned, &FragmentB::load(&warp, rows.rows(), [0, 0]));
    ///     sums.for_each_pair(&warp, |row, column, [left, right]| {
    ///         c[row * 32 + column].store(left, Relaxed);
    ///         c[row * 32 + column + 1].store(right, Relaxed);
    ///     });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::device::half::bf16;
    ///
    /// let a = stream.upload(&(0..16 * 32).map(|i| bf16::from_f32((i % 32) as f32)).collect::<Vec<_>>())?;
    /// let mut c = stream.zeros(32 * 32)?;
    /// kernels::multiply_columns(&stream, Grid::blocks(1), a.view_2d(32, 16)?, c.as_atomic())?;
    /// assert_eq!(stream.download(&c)?[5 * 32 + 30..][..2], [16.0 * 5.0 * 30.0, 16.0 * 5.0 * 31.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// As [`load`](Self::load).
    #[track_caller]
    #[inline(always)]
    pub fn load_transposed<S: FragmentSource<T>>(warp: &Warp, matrix: S, [k, row]: [usize; 2]) -> Self {
        let part = Part::of(warp, matrix, [k, row], [T::DEPTH, M * ROWS]);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if size_of::<T>() == 2 && part.is_direct() {
            let (lane, mut words) = (warp.lane() as usize, [[T::Word::default(); 4]; M]);
            unrolled!(m in M, {
                let place = [lane / 16 * 8 + lane % 8, m * ROWS + lane / 8 % 2 * 8];
                // SAFETY: as in `load`.
                words[m] = bytemuck::cast(unsafe { ptx::load_four_transposed(part.address(place)) });
            });
            return FragmentA { words };
        }
        FragmentA::from_fn(warp, |row, k| part.element([k, row]))
    }
}

impl<T: MatrixElement, const N: usize> FragmentB<T, N> {
    /// The matrix with `element(k, column)` in each place. Each thread calls it for its own elements.
    #[inline(always)]
    pub fn from_fn(warp: &Warp, mut element: impl FnMut(usize, usize) -> T) -> Self {
        let (lane, mut words) = (warp.lane() as usize, [[T::Word::default(); 2]; N]);
        unrolled!(n in N, {
            unrolled!(half in 2, {
                let column = n * COLUMNS + lane / 4;
                words[n][half] = T::word(|number| element(place::<T>(lane, half, number), column));
            });
        });
        FragmentB { words }
    }

    /// The part of a matrix that begins at `[k, column]`; all threads of the warp together (for 16-bit elements PTX
    /// `ldmatrix.x4.trans` for two fragments, and `.x2.trans` for one more).
    /// [`FragmentA::load`] says more.
    ///
    /// # Panics
    /// As [`FragmentA::load`].
    #[track_caller]
    #[inline(always)]
    pub fn load<S: FragmentSource<T>>(warp: &Warp, matrix: S, [k, column]: [usize; 2]) -> Self {
        let part = Part::of(warp, matrix, [k, column], [T::DEPTH, N * COLUMNS]);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if size_of::<T>() == 2 && part.is_direct() {
            let (lane, mut words) = (warp.lane() as usize, [[T::Word::default(); 2]; N]);
            unrolled!(pair in count(N).div_ceil(2), {
                let place = [lane % 16, pair * 2 * COLUMNS];
                // SAFETY: the addresses of all threads, or of the first 16, are those of 16 bytes of the part's rows.
                unsafe {
                    if pair * 2 + 1 < N {
                        let place = [place[0], place[1] + lane / 16 * COLUMNS];
                        [words[pair * 2], words[pair * 2 + 1]] = bytemuck::cast(ptx::load_four_transposed(part.address(place)));
                    } else {
                        words[pair * 2] = bytemuck::cast(ptx::load_two_transposed(part.address(place)));
                    }
                }
            });
            return FragmentB { words };
        }
        FragmentB::from_fn(warp, |k, column| part.element([k, column]))
    }

    /// The part that begins at `[column, k]` of a matrix whose **rows are the columns** of the right factor; all threads of the warp
    /// together (PTX `ldmatrix.x4` for two fragments, and `.x2` for one more). [`FragmentA::load`] says more.
    ///
    /// # Panics
    /// As [`FragmentA::load`].
    #[track_caller]
    #[inline(always)]
    pub fn load_transposed<S: FragmentSource<T>>(warp: &Warp, matrix: S, [column, k]: [usize; 2]) -> Self {
        let part = Part::of(warp, matrix, [column, k], [N * COLUMNS, T::DEPTH]);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if part.is_direct() {
            let (lane, mut words) = (warp.lane() as usize, [[T::Word::default(); 2]; N]);
            unrolled!(pair in count(N).div_ceil(2), {
                let place = [pair * 2 * COLUMNS + lane % 8, lane / 8 % 2 * T::IN_16_BYTES];
                // SAFETY: as in `load`.
                unsafe {
                    if pair * 2 + 1 < N {
                        let place = [place[0] + lane / 16 * COLUMNS, place[1]];
                        [words[pair * 2], words[pair * 2 + 1]] = bytemuck::cast(ptx::load_four(part.address(place)));
                    } else {
                        words[pair * 2] = bytemuck::cast(ptx::load_two(part.address(place)));
                    }
                }
            });
            return FragmentB { words };
        }
        FragmentB::from_fn(warp, |k, column| part.element([column, k]))
    }
}

/// The number of fragments beside or below each other.
const fn count(fragments: usize) -> usize {
    assert!(
        1 <= fragments && fragments <= 8,
        "a warp multiplies 1 to 8 fragments beside or below each other"
    );
    fragments
}

#[track_caller]
#[inline(always)]
fn assert_whole(warp: &Warp) {
    assert!(warp.is_whole(), "fragments are loaded and multiplied by warps of 32 threads");
}

impl<T: MatrixElement, const M: usize, const N: usize> Accumulator<T, M, N> {
    /// Zeros.
    #[inline(always)]
    pub fn zero() -> Self {
        Accumulator { sums: [[[T::Sum::default(); 4]; N]; M] }
    }

    /// The matrix with `sum(row, column)` in each place. Each thread calls it for its own elements.
    #[inline(always)]
    pub fn from_fn(warp: &Warp, mut sum: impl FnMut(usize, usize) -> T::Sum) -> Self {
        let (lane, mut sums) = (warp.lane() as usize, Self::zero().sums);
        unrolled!(m in M, {
            unrolled!(n in N, {
                sums[m][n] = own_sums(lane, [m, n], &mut sum);
            });
        });
        Accumulator { sums }
    }

    /// Adds the product of two matrices; all threads of the warp together (PTX `mma.sync`).
    ///
    /// # Panics
    /// If the warp has fewer than 32 threads, as the last one of a block may have; and as any operation of a [`Tile`](crate::Tile).
    #[track_caller]
    #[inline(always)]
    pub fn add_product(&mut self, warp: &Warp, a: &FragmentA<T, M>, b: &FragmentB<T, N>) {
        assert_whole(warp);
        T::add_product(warp, &a.words, &b.words, &mut self.sums);
    }

    /// Calls `f` with row, column and value of each of the thread's own elements.
    #[inline(always)]
    pub fn for_each(&self, warp: &Warp, mut f: impl FnMut(usize, usize, T::Sum)) {
        self.for_each_pair(warp, |row, column, [left, right]| {
            f(row, column, left);
            f(row, column + 1, right);
        });
    }

    /// Calls `f` for each pair of neighbours in a row that the thread owns, with row and column of the left one, which is even: half
    /// as many stores, of twice the size.
    #[inline(always)]
    pub fn for_each_pair(&self, warp: &Warp, mut f: impl FnMut(usize, usize, [T::Sum; 2])) {
        let lane = warp.lane() as usize;
        unrolled!(m in M, {
            unrolled!(n in N, {
                each_own_pair(lane, [m, n], &self.sums[m][n], &mut f);
            });
        });
    }
}

/// The sums of a fragment that the thread holds.
#[inline(always)]
fn own_sums<S>(lane: usize, fragment: [usize; 2], sum: &mut impl FnMut(usize, usize) -> S) -> [S; 4] {
    let mut own = |number| {
        let [row, column] = own_place(lane, fragment, number);
        sum(row, column)
    };
    [own(0), own(1), own(2), own(3)]
}

/// Calls `f` for both pairs of a fragment that the thread holds.
#[inline(always)]
fn each_own_pair<S: Copy>(
    lane: usize,
    fragment: [usize; 2],
    sums: &[S; 4],
    f: &mut impl FnMut(usize, usize, [S; 2]),
) {
    let [row, column] = own_place(lane, fragment, 0);
    f(row, column, [sums[0], sums[1]]);
    let [row, column] = own_place(lane, fragment, 2);
    f(row, column, [sums[2], sums[3]]);
}

/// Row and column of a sum of a fragment.
#[inline(always)]
fn own_place(lane: usize, [m, n]: [usize; 2], number: usize) -> [usize; 2] {
    [m * ROWS + lane / 4 + number / 2 * 8, n * COLUMNS + lane % 4 * 2 + number % 2]
}
