//! [`FragmentSource`]: what fragments are loaded from.

use core::marker::PhantomData;

#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
use super::ptx;
use super::{MatrixElement, assert_whole};
use crate::element::aligned::Aligned16;
use crate::element::device_copy::DeviceCopy;
use crate::shared::{ArrayElement, CopiedTile, PaddedRow};
use crate::warp::Warp;

/// A matrix in shared memory whose parts are loaded: rows, as a slice, or a [`CopiedTile`].
pub trait FragmentSource<T>: sealed::Source<T> {}

impl<T, S: sealed::Source<T>> FragmentSource<T> for S {}

/// A row of a matrix whose parts are loaded: `[T; W]`, or `[Aligned16<[T; N]>; W]`, or a [`PaddedRow`] of as many.
pub trait MatrixRow<T>: sealed::Row<T> {}

impl<T, R: sealed::Row<T>> MatrixRow<T> for R {}

mod sealed {
    pub trait Row<T> {
        const LEN: usize;

        fn elements(&self) -> *const T;
    }

    pub trait Source<T> {
        /// Rows, and elements in each.
        fn extent(&self) -> [usize; 2];

        /// The address of the element at row and column, of which it is one.
        ///
        /// # Safety
        /// The matrix has it.
        unsafe fn address(&self, place: [usize; 2]) -> *const T;

        /// Whether its rows begin at multiples of 16 bytes.
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        fn has_aligned_rows(&self) -> bool;
    }
}

impl<T, const W: usize> sealed::Row<T> for [T; W] {
    const LEN: usize = W;

    #[inline(always)]
    fn elements(&self) -> *const T {
        self.as_ptr()
    }
}

impl<T: DeviceCopy, const N: usize, const W: usize> sealed::Row<T> for [Aligned16<[T; N]>; W] {
    const LEN: usize = {
        assert!(size_of::<[T; N]>() == 16);
        W * N
    };

    #[inline(always)]
    fn elements(&self) -> *const T {
        self.as_ptr().cast()
    }
}

impl<T, E, const W: usize, const P: usize> sealed::Row<T> for PaddedRow<E, W, P>
where
    [E; W]: sealed::Row<T>,
{
    const LEN: usize = <[E; W] as sealed::Row<T>>::LEN;

    #[inline(always)]
    fn elements(&self) -> *const T {
        sealed::Row::elements(&self.elements)
    }
}

impl<T, R: MatrixRow<T>> sealed::Source<T> for &[R] {
    #[inline(always)]
    fn extent(&self) -> [usize; 2] {
        [self.len(), R::LEN]
    }

    #[inline(always)]
    unsafe fn address(&self, [row, column]: [usize; 2]) -> *const T {
        // SAFETY: the caller's.
        unsafe { self.get_unchecked(row) }.elements().wrapping_add(column)
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    #[inline(always)]
    fn has_aligned_rows(&self) -> bool {
        let is_aligned = align_of::<R>() >= 16 || self.as_ptr().addr().is_multiple_of(16);
        is_aligned && size_of::<R>().is_multiple_of(16)
    }
}

impl<T, R: MatrixRow<T>, const H: usize> sealed::Source<T> for &[R; H] {
    #[inline(always)]
    fn extent(&self) -> [usize; 2] {
        [H, R::LEN]
    }

    #[inline(always)]
    unsafe fn address(&self, place: [usize; 2]) -> *const T {
        // SAFETY: the caller's.
        unsafe { self.as_slice().address(place) }
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    #[inline(always)]
    fn has_aligned_rows(&self) -> bool {
        self.as_slice().has_aligned_rows()
    }
}

impl<T: ArrayElement, const W: usize, const H: usize> sealed::Source<T> for CopiedTile<'_, T, W, H> {
    #[inline(always)]
    fn extent(&self) -> [usize; 2] {
        [H, W]
    }

    #[inline(always)]
    unsafe fn address(&self, place: [usize; 2]) -> *const T {
        CopiedTile::address(self, place)
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    #[inline(always)]
    fn has_aligned_rows(&self) -> bool {
        true
    }
}

/// A part of a matrix, within it.
pub(super) struct Part<T, S> {
    matrix: S,
    first: [usize; 2],
    elements: PhantomData<T>,
}

impl<T: MatrixElement, S: FragmentSource<T>> Part<T, S> {
    #[track_caller]
    #[inline(always)]
    pub(super) fn of(warp: &Warp, matrix: S, [row, column]: [usize; 2], [height, width]: [usize; 2]) -> Self {
        let lies_within = |first: usize, len: usize, all: usize| len <= all && first <= all - len;
        let [rows, columns] = matrix.extent();
        assert!(
            lies_within(row, height, rows) && lies_within(column, width, columns),
            "a fragment lies within the matrix"
        );
        assert_whole(warp);
        Part { matrix, first: [row, column], elements: PhantomData }
    }

    /// The address of an element, by its place in the part, of which it is one.
    #[inline(always)]
    pub(super) fn address(&self, [row, column]: [usize; 2]) -> *const T {
        // SAFETY: callers name places in the part, which lies within the matrix.
        unsafe { self.matrix.address([self.first[0] + row, self.first[1] + column]) }
    }

    #[inline(always)]
    pub(super) fn element(&self, place: [usize; 2]) -> T {
        // SAFETY: the part lies within the matrix, whose elements are readable, and has this place.
        unsafe { *self.address(place) }
    }

    /// Whether `ldmatrix` can load it.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    #[inline(always)]
    pub(super) fn is_direct(&self) -> bool {
        size_of::<T::Word>() == 4
            && self.matrix.has_aligned_rows()
            && (self.first[1] * size_of::<T>()).is_multiple_of(16)
            && ptx::is_shared(self.address([0, 0]))
    }
}
