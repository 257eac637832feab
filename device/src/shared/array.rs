//! The shapes of arrays in shared memory, and the numbering of their elements. It must not know who
//! owns an element.

use core::mem::MaybeUninit;
use core::ops::Index;

use super::element::SharedElement;
use crate::thread::Thread;

/// An array that shared memory may hold: `[T; N]`, `[[T; W]; H]`, `[[[T; W]; H]; D]`, or a [`Padded`].
///
/// # Safety
/// `element` must give the address of a different element within `Self` for each number below `LEN`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shared memory",
    label = "expected an array",
    note = "`Shared` holds an array of one, two or three dimensions, `Shared<[f32; 256]>` or `Shared<[[f32; 16]; 16]>`, or a `Padded` one"
)]
pub unsafe trait SharedArray: 'static {
    /// What it holds.
    type Element: SharedElement;
    /// Where an element is: `usize`, `[row, column]`, or `[layer, row, column]`, as in `array[row][column]`.
    type Place: Copy;
    /// How many elements it has, padding not counted.
    const LEN: usize;

    /// The place of element `number` in memory order.
    fn place(number: usize) -> Self::Place;

    /// The place of element `first + rank`, where the thread has that rank in its block and `first` is a multiple of
    /// the number of threads there.
    #[inline(always)]
    fn own_place<const R: usize>(thread: &Thread<'_, R>, first: usize) -> Self::Place {
        Self::place(first + thread.thread_rank() as usize)
    }

    /// The address of the element at `place`.
    ///
    /// # Safety
    /// `place` is that of a number below `LEN`, and `start` is the address of an allocated `Self`.
    unsafe fn element(start: *mut Self, place: Self::Place) -> *mut Self::Element;
}

// SAFETY: elements lie one after the other.
unsafe impl<T: SharedElement, const N: usize> SharedArray for [T; N] {
    type Element = T;
    type Place = usize;
    const LEN: usize = N;

    #[inline(always)]
    fn place(number: usize) -> usize {
        number
    }

    #[inline(always)]
    unsafe fn element(start: *mut Self, number: usize) -> *mut T {
        // SAFETY: in bounds, as the caller vouches.
        unsafe { start.cast::<T>().add(number) }
    }
}

// SAFETY: elements lie one after the other, row by row.
unsafe impl<T: SharedElement, const W: usize, const H: usize> SharedArray for [[T; W]; H] {
    type Element = T;
    type Place = [usize; 2];
    const LEN: usize = W * H;

    #[inline(always)]
    fn place(number: usize) -> [usize; 2] {
        [number / W, number % W]
    }

    #[inline(always)]
    unsafe fn element(start: *mut Self, [row, column]: [usize; 2]) -> *mut T {
        // SAFETY: in bounds, as the caller vouches.
        unsafe { start.cast::<T>().add(row * W + column) }
    }
}

// SAFETY: elements lie one after the other, layer by layer, row by row.
unsafe impl<T: SharedElement, const W: usize, const H: usize, const D: usize> SharedArray
    for [[[T; W]; H]; D]
{
    type Element = T;
    type Place = [usize; 3];
    const LEN: usize = W * H * D;

    #[inline(always)]
    fn place(number: usize) -> [usize; 3] {
        [number / W / H, number / W % H, number % W]
    }

    #[inline(always)]
    unsafe fn element(start: *mut Self, [layer, row, column]: [usize; 3]) -> *mut T {
        // SAFETY: in bounds, as the caller vouches.
        unsafe { start.cast::<T>().add((layer * H + row) * W + column) }
    }
}

/// `H` rows of `W` elements, each followed by `P` unused ones, so that the elements of a column lie in
/// different banks of shared memory: with 32 columns of 4 bytes and `P = 1`, a warp reads a column at once.
///
/// Index it by row, then column: `tile[row][column]`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The transpose of a plane of 32 by 32 elements: rows in, columns out, without bank conflicts.
/// #[kernel(block = [32, 8])]
/// pub fn transpose(t: Thread<2>, x: Plane<u32>, mut y: DisjointTiles<u32, 32, 32>, mut tile: Shared<Padded<u32, 32, 32>>) {
///     tile.fill_with(&t, |[row, column]| x[row][column]);
///     let tile = t.publish(tile);
///     y.fill_with(&t, |[row, column]| tile[column][row]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..1024).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(1024)?;
/// let grid = Grid::new([1, 1], [32, 8]);
/// kernels::transpose(&stream, grid, x.view_2d(32, 32)?, y.view_2d_mut(32, 32)?)?;
/// assert_eq!(stream.download(&y)?[..3], [0, 32, 64]);
/// # Ok(()) }
/// ```
#[repr(C)]
pub struct Padded<T, const W: usize, const H: usize, const P: usize = 1> {
    rows: [PaddedRow<T, W, P>; H],
}

#[repr(C)]
struct PaddedRow<T, const W: usize, const P: usize> {
    elements: [T; W],
    padding: [MaybeUninit<T>; P],
}

// SAFETY: row and column differ between numbers, and are within the rows.
unsafe impl<T: SharedElement, const W: usize, const H: usize, const P: usize> SharedArray
    for Padded<T, W, H, P>
{
    type Element = T;
    type Place = [usize; 2];
    const LEN: usize = W * H;

    #[inline(always)]
    fn place(number: usize) -> [usize; 2] {
        [number / W, number % W]
    }

    #[inline(always)]
    fn own_place<const R: usize>(thread: &Thread<'_, R>, first: usize) -> [usize; 2] {
        thread.place_in_rows::<W>(first)
    }

    #[inline(always)]
    unsafe fn element(start: *mut Self, [row, column]: [usize; 2]) -> *mut T {
        // SAFETY: in bounds, as the caller vouches: rows are `W + P` elements apart.
        unsafe { start.cast::<T>().add(row * (W + P) + column) }
    }
}

impl<T, const W: usize, const H: usize, const P: usize> Index<usize> for Padded<T, W, H, P> {
    type Output = [T; W];

    #[track_caller]
    #[inline(always)]
    fn index(&self, row: usize) -> &[T; W] {
        &self.rows[row].elements
    }
}

/// What the operations of a whole block, such as [`Thread::block_reduce`](crate::Thread::block_reduce), need
/// of shared memory: a place for each warp (CUB's `TempStorage`). No thread owns any of it, so nothing else
/// can write there.
#[repr(C)]
pub struct Scratch<T> {
    places: [T; 32],
}

// SAFETY: there is no number below 0.
unsafe impl<T: SharedElement> SharedArray for Scratch<T> {
    type Element = T;
    type Place = usize;
    const LEN: usize = 0;

    #[inline(always)]
    fn place(number: usize) -> usize {
        number
    }

    #[inline(always)]
    unsafe fn element(start: *mut Self, _: usize) -> *mut T {
        start.cast()
    }
}

impl<T> Scratch<T> {
    /// What the warps brought, by their number.
    #[inline(always)]
    pub(crate) fn places(&self) -> &[T; 32] {
        &self.places
    }
}
