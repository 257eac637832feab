//! Shapes of arrays in shared memory, and the numbering of their elements.

use core::mem::MaybeUninit;
use core::ops::Index;

use super::element::SharedElement;
use crate::thread::Thread;

/// An array that shared memory may hold: `[T; N]`, `[[T; W]; H]`, and so on up to five axes, or a [`Padded`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::SharedArray;
///
/// /// Sets a region of any shape to 0, and each thread's first element to its number.
/// fn number<A: SharedArray<Element = u32>, const ID: usize>(t: &Thread<2>, region: &mut Shared<A, ID>) {
///     region.fill_with(t, |_| 0);
///     if let Some(element) = region.get_mut(t) {
///         *element = t.thread_rank();
///     }
/// }
///
/// #[kernel(block = [4, 2])]
/// pub fn sum(
///     t: Thread<2>, mut y: DisjointSlice<u32, 2>, mut a: Shared<[[u32; 4]; 3]>, mut b: Shared<Padded<u32, 3, 2>>,
/// ) {
///     let [column, row] = t.thread_idx().map(|place| place as usize);
///     assert_eq!(<[[u32; 4]; 3]>::own_place(&t, 0), [row, column]); // rows are as wide as the block
///     number(&t, &mut a);
///     number(&t, &mut b);
///     let (a, b) = t.publish((a, b));
///     if let Some(y) = y.get_mut(t.index()) {
///         *y = a[1][2] * 100 + b[1][2] * 10 + a[2][3];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::device::shared::{Padded, SharedArray};
///
/// let mut y = stream.zeros(1)?;
/// kernels::sum(&stream, Grid::new([1, 1], [4, 2]), y.view_2d_mut(1, 1)?)?;
/// assert_eq!(stream.download(&y)?, [650]); // `a` has more elements than there are threads, `b` fewer
/// type Tile = Padded<u32, 3, 2>;
/// assert_eq!((Tile::LEN, Tile::place(4), <[[[u32; 2]; 3]; 4]>::place(7)), (6, [1, 1], [1, 0, 1]));
/// let mut array = [[0_u32; 4]; 3];
/// // SAFETY: it has such a place.
/// unsafe { *SharedArray::element(&raw mut array, [2, 1]) = 5 };
/// assert_eq!(array[2], [0, 5, 0, 0]);
/// # Ok(()) }
/// ```
///
/// # Safety
/// `element` must give the address of a different element within `Self` for each number below `LEN`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shared memory",
    label = "expected an array",
    note = "`Shared` holds an array of one to five dimensions, `Shared<[f32; 256]>` or `Shared<[[f32; 16]; 16]>`, or a `Padded` one"
)]
pub unsafe trait SharedArray: 'static {
    /// The type of its elements: a [`SharedElement`], which is checked of each region that a kernel has.
    type Element: ArrayElement;
    /// The index of an element: `usize`, `[row, column]`, `[layer, row, column]` and so on, as in
    /// `array[row][column]`.
    type Place: Copy;
    /// The number of elements, not counting padding.
    const LEN: usize;

    /// The index of element `number` in memory order.
    fn place(number: usize) -> Self::Place;

    /// The index of element `first + rank` for the thread with that rank in its block; `first` is a multiple
    /// of the number of threads in the block.
    #[inline(always)]
    fn own_place<const R: usize>(thread: &Thread<'_, R>, first: usize) -> Self::Place {
        Self::place(first + thread.thread_rank() as usize)
    }

    /// The address of the element at index `place`.
    ///
    /// # Safety
    /// `place` is the index of a number below `LEN`, and `start` is the address of an allocated `Self`.
    unsafe fn element(start: *mut Self, place: Self::Place) -> *mut Self::Element;

    /// Whether a region keeps something beside its elements, which nothing else may write as another type.
    #[doc(hidden)]
    const HAS_STATE: bool = false;

    /// Begins what a region keeps beside its elements, before the kernel's function; the first thread of the block.
    ///
    /// # Safety
    /// `start` is the address of a region of that block, which nothing has used.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn begin(_start: *mut Self) {}

    /// Ends it, after that function; the same thread.
    ///
    /// # Safety
    /// [`begin`](Self::begin) has begun it.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn end(_start: *mut Self) {}

    /// What each thread does before the barrier that makes a region readable.
    #[doc(hidden)]
    #[inline(always)]
    fn before_publish() {}

    /// What each thread does before the barrier that makes a region writable again.
    #[doc(hidden)]
    #[inline(always)]
    fn before_reclaim() {}
}

/// What regions may be declared with: any [`SharedElement`], and what is likely to be taken for one. Then a region
/// of the latter has all methods, and the assertion below is the only error.
#[doc(hidden)]
pub trait ArrayElement: 'static {}

impl<T: SharedElement> ArrayElement for T {}
impl ArrayElement for bool {}
impl ArrayElement for char {}
impl<T: 'static> ArrayElement for Option<T> {}

/// Fails to compile, at the type, where shared memory cannot have a slice of `T`.
#[doc(hidden)]
#[inline(always)]
pub const fn assert_shared_element<T: SharedElement>() {}

// SAFETY: elements lie one after the other.
unsafe impl<T: ArrayElement, const N: usize> SharedArray for [T; N] {
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
unsafe impl<T: ArrayElement, const W: usize, const H: usize> SharedArray for [[T; W]; H] {
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
unsafe impl<T: ArrayElement, const W: usize, const H: usize, const D: usize> SharedArray
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

/// Arrays of more axes, the outermost first.
macro_rules! of_more_axes {
    ($rank:literal, $array:ty, [$outer:ident $($inner:ident)*]) => {
        // SAFETY: elements lie one after the other.
        unsafe impl<T: ArrayElement, const $outer: usize, $(const $inner: usize),*> SharedArray for $array {
            type Element = T;
            type Place = [usize; $rank];
            const LEN: usize = $outer $(* $inner)*;

            #[inline(always)]
            fn place(number: usize) -> [usize; $rank] {
                let (lengths, mut place, mut rest) = ([$outer, $($inner),*], [0; $rank], number);
                for axis in (0..$rank).rev() {
                    (place[axis], rest) = (rest % lengths[axis], rest / lengths[axis]);
                }
                place
            }

            #[inline(always)]
            unsafe fn element(start: *mut Self, place: [usize; $rank]) -> *mut T {
                let number = place.iter().zip([$outer, $($inner),*]).fold(0, |number, (place, length)| number * length + place);
                // SAFETY: in bounds, as the caller vouches.
                unsafe { start.cast::<T>().add(number) }
            }
        }
    };
}
of_more_axes!(4, [[[[T; W]; H]; D]; E], [E D H W]);
of_more_axes!(5, [[[[[T; W]; H]; D]; E]; F], [F E D H W]);

/// Makes a type shared memory in which no thread owns an element: scratch memory that only its own operations
/// reach.
macro_rules! without_elements {
    ([$($generics:tt)*] $ty:ty, $element:ty $(, { $($items:tt)* })?) => {
        // SAFETY: there is no number below 0.
        unsafe impl<$($generics)*> $crate::shared::SharedArray for $ty {
            type Element = $element;
            type Place = usize;
            const LEN: usize = 0;

            #[inline(always)]
            fn place(number: usize) -> usize {
                number
            }

            #[inline(always)]
            unsafe fn element(start: *mut Self, _: usize) -> *mut $element {
                start.cast()
            }

            $($($items)*)?
        }
    };
}
pub(crate) use without_elements;

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

/// A row of a [`Padded`], as [`Padded::rows`] returns it.
#[repr(C)]
pub struct PaddedRow<T, const W: usize, const P: usize> {
    pub(crate) elements: [T; W],
    padding: [MaybeUninit<T>; P],
}

// SAFETY: row and column differ between numbers, and are within the rows.
unsafe impl<T: ArrayElement, const W: usize, const H: usize, const P: usize> SharedArray
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

impl<T, const W: usize, const H: usize, const P: usize> Padded<T, W, H, P> {
    /// The rows, from which a warp loads fragments of matrices ([`FragmentA::load`](crate::matrix::FragmentA::load)).
    #[inline(always)]
    pub fn rows(&self) -> &[PaddedRow<T, W, P>; H] {
        &self.rows
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

/// Shared memory for operations of a whole block, such as
/// [`Thread::block_reduce`](crate::Thread::block_reduce): one value for each warp (CUB's `TempStorage`). No
/// thread owns any of it, so nothing else can write there.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Mean and variance of each row, one after the other with the same memory.
/// #[kernel(block = 64)]
/// pub fn moments(t: Thread<1>, x: Plane<f32>, mut y: DisjointRows<f32>, mut scratch: Shared<Scratch<f32>>) {
///     let row = &x[t.block_idx()[0] as usize];
///     let (own, n) = (t.block_stride(row.len()), row.len() as f32);
///     let mean = t.block_reduce(&mut scratch, own.map(|i| row[i]).sum(), |a, b| a + b) / n;
///     let squares = t.block_stride(row.len()).map(|i| (row[i] - mean).powi(2)).sum();
///     let variance = t.block_reduce(&mut scratch, squares, |a, b| a + b) / n;
///     y.fill_with(&t, |column| [mean, variance][column]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..200).map(|i| (i / 100 + i % 2 * 2) as f32).collect::<Vec<_>>())?;
/// let mut y = stream.zeros(4)?;
/// kernels::moments(&stream, Grid::new(2, 64), x.view_2d(100, 2)?, y.view_2d_mut(2, 2)?)?;
/// assert_eq!(stream.download(&y)?, [1.0, 1.0, 2.0, 1.0]);
/// # Ok(()) }
/// ```
#[repr(C)]
pub struct Scratch<T> {
    places: [T; 32],
}

without_elements!([T: SharedElement] Scratch<T>, T);

impl<T> Scratch<T> {
    /// The values of the warps, by warp number.
    #[inline(always)]
    pub(crate) fn places(&self) -> &[T; 32] {
        &self.places
    }
}
