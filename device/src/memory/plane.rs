//! [`Plane`]: a slice as rows of equal length.

use core::marker::PhantomData;
use core::ops::Index;
use core::ptr::NonNull;

use crate::thread::index::place;

/// The first `height` rows of `width` elements of a slice: `plane[row][column]`. As a kernel's parameter, `x:
/// Plane<f32>`, it takes a view of rank 2, `buffer.view_2d(width, height)?`, of exactly as many elements. A
/// kernel can also make one of a slice ([`Plane::new`]).
///
/// A row or column costs a bounds check only if the compiler cannot see that it is below the height or width.
/// So loops over `0..height` and `0..width` check nothing, and neither does a stencil that stays inside.
/// Indexing the slice by `row * width + column` would check each element against the length, because the
/// compiler cannot follow the product.
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// Element (row, column) of the product of two matrices with `n` columns each.
/// fn element(n: usize, a: &[f32], b: &[f32], row: usize, column: usize) -> Option<f32> {
///     let (a, b) = (Plane::new(a, n, n)?, Plane::new(b, n, n)?);
///     let a = a.row(row)?;
///     (column < n).then(|| (0..n).map(|k| a[k] * b[k][column]).sum())
/// }
///
/// assert_eq!(element(2, &[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 1, 0), Some(43.0));
/// assert_eq!(element(2, &[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0, 8.0], 1, 0), None);
/// ```
///
/// Reads beyond the edges, which find nothing or the nearest element inside:
///
/// ```
/// use ferrogrid_device::Plane;
///
/// /// The sum of those of the elements above, below, left and right that exist.
/// fn neighbours(x: Plane<i32>, row: usize, column: usize) -> i32 {
///     let (above, left) = (row.wrapping_sub(1), column.wrapping_sub(1));
///     let places = [(above, column), (row + 1, column), (row, left), (row, column + 1)];
///     places.into_iter().filter_map(|(row, column)| x.get(row, column)).sum()
/// }
///
/// /// An element, or the nearest one.
/// fn nearest(x: Plane<i32>, row: usize, column: usize) -> i32 {
///     x[row.min(x.height() - 1)][column.min(x.width() - 1)]
/// }
/// let x = Plane::new(&[1, 2, 3, 4, 5, 6], 3, 2).unwrap();
/// assert_eq!((neighbours(x, 0, 0), neighbours(x, 1, 1)), (6, 12));
/// assert_eq!((nearest(x, 1, 2), nearest(x, 5, 9), nearest(x, 0, 9)), (6, 6, 3));
/// ```
// A pointer rather than a slice: an `Option` of it has a separate tag, which LLVM folds; for a slice it would
// select between the slice and null.
pub struct Plane<'a, T> {
    /// The first element of the first row.
    start: *const T,
    width: usize,
    height: usize,
    /// The elements from the start of a row to that of the next.
    pitch: usize,
    /// Whether there are fewer than 2^32 elements: offsets are then computed in 32 bits.
    is_narrow: bool,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: it is a `&[T]`.
unsafe impl<T: Sync> Send for Plane<'_, T> {}
// SAFETY: it is a `&[T]`.
unsafe impl<T: Sync> Sync for Plane<'_, T> {}

impl<T> Clone for Plane<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Plane<'_, T> {}

impl<'a, T> Plane<'a, T> {
    /// The first `width * height` elements as `height` rows; `None` if there are fewer.
    #[inline(always)]
    pub fn new(elements: &'a [T], width: usize, height: usize) -> Option<Self> {
        if width.checked_mul(height)? > elements.len() {
            return None;
        }
        // SAFETY: no more than there are.
        Some(unsafe { Plane::from_raw_parts(elements.as_ptr(), [width, height]) })
    }

    /// For the code that `#[kernel]` generates.
    ///
    /// # Safety
    /// `start` points to `shape[0] * shape[1]` elements that are not written during `'a`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *const T, [width, height]: [usize; 2]) -> Self {
        Plane { start, width, height, pitch: width, is_narrow: false, elements: PhantomData }
    }

    /// For the code that `#[kernel]` generates: rows that begin `pitch` elements after each other.
    ///
    /// # Safety
    /// As [`from_raw_parts`](Self::from_raw_parts), of `width` elements at each multiple of `pitch`, which is no less, below `height`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn pitched(start: *const T, [width, height, pitch]: [usize; 3]) -> Self {
        Plane { start, width, height, pitch, is_narrow: false, elements: PhantomData }
    }

    /// For the code that `#[kernel]` generates: the same plane, known to have fewer than 2^32 elements, with those between rows.
    ///
    /// # Safety
    /// It has.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn narrow(self) -> Self {
        Plane { is_narrow: true, ..self }
    }

    /// Elements per row.
    #[inline(always)]
    pub fn width(self) -> usize {
        self.width
    }

    /// The number of rows.
    #[inline(always)]
    pub fn height(self) -> usize {
        self.height
    }

    /// Row `row`; `None` below the last.
    #[inline(always)]
    pub fn row(self, row: usize) -> Option<&'a [T]> {
        // SAFETY: below the height.
        (row < self.height).then(|| unsafe { self.row_unchecked(row) })
    }

    /// # Safety
    /// `row` is below the height.
    #[inline(always)]
    unsafe fn row_unchecked(self, row: usize) -> &'a [T] {
        // SAFETY: there are `width` elements from `row * pitch` on.
        unsafe { core::slice::from_raw_parts(self.start.add(self.place(row, 0)), self.width) }
    }

    /// The offset of an element.
    ///
    /// # Safety
    /// It is that of an element, so nothing wraps; nor in 32 bits if the plane is narrow.
    #[inline(always)]
    unsafe fn place(self, row: usize, column: usize) -> usize {
        // SAFETY: the caller's.
        unsafe { place(self.is_narrow, [row, column], self.pitch) }
    }

    /// The element at `row` and `column`; `None` outside.
    #[inline(always)]
    pub fn get(self, row: usize, column: usize) -> Option<&'a T> {
        // One condition, so that a load under it is a load under a predicate.
        if row >= self.height || column >= self.width {
            return None;
        }
        // SAFETY: an element of a row.
        Some(unsafe { &*self.start.add(self.place(row, column)) })
    }
}

impl<T> Index<usize> for Plane<'_, T> {
    type Output = [T];

    #[track_caller]
    #[inline(always)]
    fn index(&self, row: usize) -> &[T] {
        // The bounds check of a slice, whose message costs a kernel least.
        // SAFETY: elements without size need no memory.
        let rows: &[()] = unsafe { core::slice::from_raw_parts(NonNull::dangling().as_ptr(), self.height) };
        let () = rows[row];
        // SAFETY: below the height.
        unsafe { self.row_unchecked(row) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other() {
        let numbers: [u32; 7] = core::array::from_fn(|i| i as u32);
        let plane = Plane::new(&numbers, 3, 2).unwrap();
        assert_eq!((plane[0].len(), plane[1][2], plane.width(), plane.height()), (3, 5, 3, 2));
        assert_eq!((plane.get(1, 0), plane.get(1, 3), plane.get(2, 0)), (Some(&3), None, None));
    }

    #[test]
    fn a_plane_has_no_more_elements_than_the_slice() {
        let numbers = [0_u8; 6];
        assert!(Plane::new(&numbers, 3, 2).is_some() && Plane::new(&numbers, 0, usize::MAX).is_some());
        assert!(Plane::new(&numbers, 7, 1).is_none() && Plane::new(&numbers, usize::MAX, 2).is_none());
        assert!(Plane::new(&numbers, 1 << 63, 2).is_none(), "the product would wrap to 0");
    }

    #[test]
    fn rows_of_a_pitched_plane_are_apart() {
        let numbers: [u32; 11] = core::array::from_fn(|i| i as u32);
        // SAFETY: three elements at 0, 4 and 8.
        let plane = unsafe { Plane::pitched(numbers.as_ptr(), [3, 3, 4]) };
        assert_eq!((&plane[1], plane.get(2, 2), plane.get(1, 3)), (&[4, 5, 6][..], Some(&10), None));
        assert_eq!((plane.row(2), plane.row(3)), (Some(&[8, 9, 10][..]), None));
    }

    #[test]
    fn a_narrow_plane_has_the_same_elements() {
        let numbers: [u32; 6] = core::array::from_fn(|i| i as u32);
        // SAFETY: 6 elements are fewer than 2^32.
        let plane = unsafe { Plane::new(&numbers, 3, 2).unwrap().narrow() };
        assert_eq!(
            (plane[0][2], &plane[1], plane.get(1, 2), plane.get(2, 0)),
            (2, &[3, 4, 5][..], Some(&5), None)
        );
    }

    #[test]
    #[should_panic(expected = "the len is 2 but the index is 2")]
    fn a_row_below_the_last_is_a_panic() {
        let _ = &Plane::new(&[0_u8; 6], 3, 2).unwrap()[2];
    }
}
