//! Products of matrices by tensor cores: the threads of a warp hold parts of matrices, fragments, and multiply them together.
//! `element` has the types of elements, `ptx` the instructions, and `steps` what computes the same without them.

mod element;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
mod ptx;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
mod steps;

use core::marker::PhantomData;

pub use element::MatrixElement;

use crate::element::aligned::Aligned16;
use crate::element::device_copy::DeviceCopy;
use crate::warp::Warp;

/// The rows of a [`FragmentA`] and of an [`Accumulator`].
pub const ROWS: usize = 16;
/// The columns of a [`FragmentB`] and of an [`Accumulator`].
pub const COLUMNS: usize = 8;

/// A matrix of [`ROWS`] by `T::DEPTH` elements that the threads of a warp hold together: the left factor of a product.
///
/// A product of 16 x `DEPTH` by `DEPTH` x 8 elements is one instruction from `sm_80` on (PTX `mma.sync`; CUDA C++ has
/// `nvcuda::wmma` for it):
///
/// | elements | depth | sums | on a GPU |
/// |---|---|---|---|
/// | `f16`, `bf16` (feature `half`) | 16 | `f32` | `mma.sync.m16n8k16` |
/// | `i8`, `u8` | 32 | `i32`, which wraps around | `mma.sync.m16n8k32` |
///
/// Products of 16-bit floats are exact. The CPU device, and code for architectures before `sm_80`, add them up one after the other,
/// each sum rounded to the nearest `f32`. Tensor cores add several at once and cut off bits: sums that an `f32` holds exactly are
/// the same everywhere, others may differ in their last bits.
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
///     let mut sums = Accumulator::zero();
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
pub struct FragmentA<T> {
    /// Word `w` has neighbours of row `lane / 4 + w % 2 * 8`: those of `lane % 4` in the first half of the depth, or in the second.
    words: [u32; 4],
    elements: PhantomData<T>,
}

/// A matrix of `T::DEPTH` by [`COLUMNS`] elements that the threads of a warp hold together: the right factor of a product. See
/// [`FragmentA`].
#[derive(Clone, Copy, Debug)]
pub struct FragmentB<T> {
    /// Word `w` has neighbours of column `lane / 4`: those of `lane % 4` in half `w` of the depth.
    words: [u32; 2],
    elements: PhantomData<T>,
}

/// A matrix of [`ROWS`] by [`COLUMNS`] sums that the threads of a warp hold together, to which products are added. See
/// [`FragmentA`].
#[derive(Clone, Copy, Debug)]
pub struct Accumulator<T: MatrixElement> {
    /// Two neighbours of row `lane / 4`, and below them two of row `lane / 4 + 8`.
    sums: [T::Sum; 4],
}

/// The number of an element of a word: the one of `lane % 4` in half `half` of the depth.
#[inline(always)]
fn place<T: MatrixElement>(lane: usize, half: usize, number: usize) -> usize {
    (half * 4 + lane % 4) * T::PER_WORD + number
}

impl<T: MatrixElement> FragmentA<T> {
    /// The matrix with `element(row, k)` in each place. Each thread calls it for its own 8 or 16 elements.
    #[inline(always)]
    pub fn from_fn(warp: &Warp, mut element: impl FnMut(usize, usize) -> T) -> Self {
        let lane = warp.lane() as usize;
        let word =
            |w: usize| T::word(|number| element(lane / 4 + w % 2 * 8, place::<T>(lane, w / 2, number)));
        FragmentA { words: [0, 1, 2, 3].map(word), elements: PhantomData }
    }

    /// The part of a matrix that begins at `[row, k]`; all threads of the warp together.
    ///
    /// From shared memory it is one instruction (PTX `ldmatrix.x4`, from `sm_80` on), if rows have a multiple of 16 bytes and the part
    /// begins at one. Threads read 16 bytes of 8 rows at a time: none waits for another if rows are 16 bytes apart modulo 128, as those
    /// of `[[f16; 72]; 64]` are.
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
    ///     let mut sums = Accumulator::zero();
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
    pub fn load<R: MatrixRow<T>>(warp: &Warp, rows: &[R], [row, k]: [usize; 2]) -> Self {
        let part = Part::of(warp, rows, [row, k], [ROWS, T::DEPTH]);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if part.is_direct() {
            let lane = warp.lane() as usize;
            // SAFETY: the threads' addresses are those of 16 bytes of the part's rows.
            let words = unsafe { ptx::load_four(part.address([lane % 16, lane / 16 * T::IN_16_BYTES])) };
            return FragmentA { words, elements: PhantomData };
        }
        FragmentA::from_fn(warp, |row, k| part.element([row, k]))
    }
}

impl<T: MatrixElement> FragmentB<T> {
    /// The matrix with `element(k, column)` in each place. Each thread calls it for its own 4 or 8 elements.
    #[inline(always)]
    pub fn from_fn(warp: &Warp, mut element: impl FnMut(usize, usize) -> T) -> Self {
        let lane = warp.lane() as usize;
        let word = |half| T::word(|number| element(place::<T>(lane, half, number), lane / 4));
        FragmentB { words: [0, 1].map(word), elements: PhantomData }
    }

    /// The part of a matrix that begins at `[k, column]`; all threads of the warp together (for 16-bit elements PTX `ldmatrix.x2.trans`).
    /// [`FragmentA::load`] says more.
    ///
    /// # Panics
    /// As [`FragmentA::load`].
    #[track_caller]
    #[inline(always)]
    pub fn load<R: MatrixRow<T>>(warp: &Warp, rows: &[R], [k, column]: [usize; 2]) -> Self {
        let part = Part::of(warp, rows, [k, column], [T::DEPTH, COLUMNS]);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if size_of::<T>() == 2 && part.is_direct() {
            // SAFETY: the first 16 threads' addresses are those of 16 bytes of the part's rows, and the others are not used.
            let words = unsafe { ptx::load_two_transposed(part.address([warp.lane() as usize % 16, 0])) };
            return FragmentB { words, elements: PhantomData };
        }
        FragmentB::from_fn(warp, |k, column| part.element([k, column]))
    }

    /// The part that begins at `[column, k]` of a matrix whose **rows are the columns** of the right factor; all threads of the warp
    /// together (PTX `ldmatrix.x2`). [`FragmentA::load`] says more.
    ///
    /// # Panics
    /// As [`FragmentA::load`].
    #[track_caller]
    #[inline(always)]
    pub fn load_transposed<R: MatrixRow<T>>(warp: &Warp, rows: &[R], [column, k]: [usize; 2]) -> Self {
        let part = Part::of(warp, rows, [column, k], [COLUMNS, T::DEPTH]);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if part.is_direct() {
            let lane = warp.lane() as usize;
            // SAFETY: as in `load`.
            let words = unsafe { ptx::load_two(part.address([lane % 8, lane / 8 % 2 * T::IN_16_BYTES])) };
            return FragmentB { words, elements: PhantomData };
        }
        FragmentB::from_fn(warp, |k, column| part.element([column, k]))
    }
}

/// A row of a matrix whose parts are loaded: `[T; W]`, or `[Aligned16<[T; N]>; W]`.
pub trait MatrixRow<T>: sealed::Sealed<T> {}

mod sealed {
    pub trait Sealed<T> {
        const LEN: usize;

        fn elements(&self) -> *const T;
    }
}

impl<T, const W: usize> MatrixRow<T> for [T; W] {}
impl<T, const W: usize> sealed::Sealed<T> for [T; W] {
    const LEN: usize = W;

    #[inline(always)]
    fn elements(&self) -> *const T {
        self.as_ptr()
    }
}

impl<T: DeviceCopy, const N: usize, const W: usize> MatrixRow<T> for [Aligned16<[T; N]>; W] {}
impl<T: DeviceCopy, const N: usize, const W: usize> sealed::Sealed<T> for [Aligned16<[T; N]>; W] {
    const LEN: usize = {
        assert!(size_of::<[T; N]>() == 16);
        W * N
    };

    #[inline(always)]
    fn elements(&self) -> *const T {
        self.as_ptr().cast()
    }
}

/// A part of a matrix, within it.
struct Part<'a, T, R> {
    rows: &'a [R],
    column: usize,
    elements: PhantomData<T>,
}

impl<'a, T: MatrixElement, R: MatrixRow<T>> Part<'a, T, R> {
    #[track_caller]
    #[inline(always)]
    fn of(warp: &Warp, rows: &'a [R], [row, column]: [usize; 2], [height, width]: [usize; 2]) -> Self {
        let is_wide_enough = width <= R::LEN && column <= R::LEN - width;
        let rows = rows.get(row..).and_then(|rows| rows.get(..height)).filter(|_| is_wide_enough);
        assert_whole(warp);
        Part { rows: rows.expect("a fragment lies within the matrix"), column, elements: PhantomData }
    }

    /// The address of an element, by its place in the part, of which it is one.
    #[inline(always)]
    fn address(&self, [row, column]: [usize; 2]) -> *const T {
        self.rows[row].elements().wrapping_add(self.column + column)
    }

    #[inline(always)]
    fn element(&self, place: [usize; 2]) -> T {
        // SAFETY: the part lies within the matrix, whose elements are readable, and has this place.
        unsafe { *self.address(place) }
    }

    /// Whether `ldmatrix` can load it.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    #[inline(always)]
    fn is_direct(&self) -> bool {
        let first = self.address([0, 0]);
        size_of::<R>().is_multiple_of(16) && first.addr().is_multiple_of(16) && ptx::is_shared(first)
    }
}

#[track_caller]
#[inline(always)]
fn assert_whole(warp: &Warp) {
    assert!(warp.is_whole(), "fragments are loaded and multiplied by warps of 32 threads");
}

impl<T: MatrixElement> Accumulator<T> {
    /// Zeros.
    #[inline(always)]
    pub fn zero() -> Self {
        Accumulator { sums: [T::Sum::default(); 4] }
    }

    /// The matrix with `sum(row, column)` in each place. Each thread calls it for its own four elements.
    #[inline(always)]
    pub fn from_fn(warp: &Warp, mut sum: impl FnMut(usize, usize) -> T::Sum) -> Self {
        let lane = warp.lane() as usize;
        Accumulator { sums: [0, 1, 2, 3].map(|number| sum(own_row(lane, number), own_column(lane, number))) }
    }

    /// Adds the product of two matrices; all threads of the warp together (PTX `mma.sync`).
    ///
    /// # Panics
    /// If the warp has fewer than 32 threads, as the last one of a block may have; and as any operation of a [`Tile`](crate::Tile).
    #[track_caller]
    #[inline(always)]
    pub fn add_product(&mut self, warp: &Warp, a: &FragmentA<T>, b: &FragmentB<T>) {
        assert_whole(warp);
        self.sums = T::multiply_add(warp, a.words, b.words, self.sums);
    }

    /// Calls `f` with row, column and value of each of the thread's own four elements.
    #[inline(always)]
    pub fn for_each(&self, warp: &Warp, mut f: impl FnMut(usize, usize, T::Sum)) {
        let lane = warp.lane() as usize;
        for (number, sum) in self.sums.into_iter().enumerate() {
            f(own_row(lane, number), own_column(lane, number), sum);
        }
    }
}

#[inline(always)]
fn own_row(lane: usize, number: usize) -> usize {
    lane / 4 + number / 2 * 8
}

#[inline(always)]
fn own_column(lane: usize, number: usize) -> usize {
    lane % 4 * 2 + number % 2
}
