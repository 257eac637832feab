//! [`TiledFactor`]: a factor of a block's product.

use core::ops::Deref;

use super::{ROW, sealed};
use crate::element::device_copy::DeviceCopy;
use crate::memory::plane::Plane;
use crate::memory::tensor_map::TensorMap;

/// A factor of [`multiply_tiles`](crate::Thread::multiply_tiles): a [`TensorMap`], some [`columns`](TensorMap::columns) of one, or one that is
/// [`transposed`](TensorMap::transposed).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no factor of a block's product",
    label = "expected a `TensorMap` of the memory's elements, its `.columns(first, len)`, `.transposed()` or `.transposed_each(height)`",
    note = "only planes of `f16` and `bf16` are transposed: tensor cores read other elements along their rows"
)]
pub trait TiledFactor<T>: Copy + sealed::Factor {
    #[doc(hidden)]
    fn plane(&self) -> Plane<'_, T>;

    #[doc(hidden)]
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    fn map(self) -> *const u8;

    /// Its rows, and the elements in each.
    #[doc(hidden)]
    #[inline(always)]
    fn extent(&self) -> [usize; 2] {
        let plane = self.plane();
        if Self::IS_TRANSPOSED { [plane.width(), plane.height()] } else { [plane.height(), plane.width()] }
    }

    /// The row and the column in the plane of the first element of row `row`, of the matrix that this row is of.
    #[doc(hidden)]
    #[inline(always)]
    fn place(&self, row: usize) -> [usize; 2] {
        if Self::IS_TRANSPOSED { [0, row] } else { [row, 0] }
    }

    /// Whether copies of rows find zeros behind its own elements, up to `depth`.
    #[doc(hidden)]
    #[inline(always)]
    fn has_zeros_up_to(&self, _depth: usize) -> bool {
        true
    }

    /// An element of the row that is `below` rows below `row`, if it is within the plane.
    #[doc(hidden)]
    #[inline(always)]
    fn element(&self, row: usize, below: usize, number: usize) -> Option<&T> {
        let [row, column] = self.place(row);
        let [down, right] = if Self::IS_TRANSPOSED { [number, below] } else { [below, number] };
        self.plane().get(row + down, column + right)
    }
}

impl<T, const W: usize, const H: usize> sealed::Factor for TensorMap<'_, T, W, H> {
    const IS_TRANSPOSED: bool = false;
    const ROWS: usize = {
        assert!(W * size_of::<T>() == ROW, "a row of a factor's tile has 128 bytes");
        H
    };
}

impl<T: DeviceCopy, const W: usize, const H: usize> TiledFactor<T> for TensorMap<'_, T, W, H> {
    #[inline(always)]
    fn plane(&self) -> Plane<'_, T> {
        *self.deref()
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn map(self) -> *const u8 {
        TensorMap::map(self)
    }
}
