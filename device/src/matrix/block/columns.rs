//! [`Columns`]: some columns of a plane as a factor.

use super::{TiledFactor, sealed};
use crate::element::device_copy::DeviceCopy;
use crate::memory::plane::Plane;
use crate::memory::tensor_map::{COPY_STEP, TensorMap};

/// Some columns of a plane as a factor of a block's product: [`TensorMap::columns`] makes it.
pub struct Columns<'a, T, const W: usize, const H: usize> {
    map: TensorMap<'a, T, W, H>,
    first: usize,
    len: usize,
}

impl<T, const W: usize, const H: usize> Clone for Columns<'_, T, W, H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const W: usize, const H: usize> Copy for Columns<'_, T, W, H> {}

impl<'a, T: DeviceCopy, const W: usize, const H: usize> TensorMap<'a, T, W, H> {
    /// The `len` columns from `first` on, as a factor: one of several matrices that are beside each other in one plane, such as the heads of
    /// attention. `first` is a multiple of 16 bytes.
    ///
    /// A copy of a whole tile must not reach into the columns behind these. So a product is as deep as there are columns, a multiple of `W`, or they
    /// are the last ones of the plane.
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
    /// /// c <- the products of both halves of the columns, `a b^T` of 64 x 64 sums each: a block has one.
    /// #[kernel(block = 256)]
    /// pub fn halves(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: &[DeviceAtomic<f32>],
    ///     memory: Shared<Products<bf16, 64, 64, 2>>,
    /// ) {
    ///     let (half, len) = (t.block_idx()[0] as usize, a.width() / 2);
    ///     let [a, b] = [a, b].map(|it| it.columns(half * len, len));
    ///     t.multiply_tiles(memory, a, b, [[0, 0]], |_, sums| {
    ///         sums.for_each_pair(|row, column, [left, right]| {
    ///             c[(half * 64 + row) * 64 + column].store(left, Relaxed);
    ///             c[(half * 64 + row) * 64 + column + 1].store(right, Relaxed);
    ///         });
    ///     });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::device::half::bf16;
    ///
    /// let ones = stream.fill(bf16::ONE, 64 * 128)?;
    /// let b = stream.upload(&(0..64 * 128).map(|i| bf16::from_f32((i % 128 / 64) as f32)).collect::<Vec<_>>())?;
    /// let mut c = stream.zeros(2 * 64 * 64)?;
    /// kernels::halves(&stream, Grid::blocks(2), ones.view_2d(128, 64)?, b.view_2d(128, 64)?, c.as_atomic())?;
    /// assert_eq!(stream.download(&c)?[64 * 64 - 1..64 * 64 + 1], [0.0, 64.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If `first` is no multiple of 16 bytes, or beyond the plane; and the product, if it is deeper than said above.
    #[track_caller]
    #[inline(always)]
    pub fn columns(self, first: usize, len: usize) -> Columns<'a, T, W, H> {
        assert!(
            (first * size_of::<T>()).is_multiple_of(COPY_STEP) && first <= self.width(),
            "columns of a factor begin within the plane, at a multiple of 16 bytes of its rows"
        );
        Columns { map: self, first, len: len.min(self.width() - first) }
    }
}

impl<T, const W: usize, const H: usize> sealed::Factor for Columns<'_, T, W, H> {
    const IS_TRANSPOSED: bool = false;
    const ROWS: usize = <TensorMap<'_, T, W, H> as sealed::Factor>::ROWS;
}

impl<T: DeviceCopy, const W: usize, const H: usize> TiledFactor<T> for Columns<'_, T, W, H> {
    #[inline(always)]
    fn plane(&self) -> Plane<'_, T> {
        *self.map
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn map(self) -> *const u8 {
        self.map.map()
    }

    #[inline(always)]
    fn extent(&self) -> [usize; 2] {
        [self.map.height(), self.len]
    }

    #[inline(always)]
    fn place(&self, row: usize) -> [usize; 2] {
        [row, self.first]
    }

    #[inline(always)]
    fn has_zeros_up_to(&self, depth: usize) -> bool {
        // Copies are of whole tiles.
        let is_whole = self.len.is_multiple_of(W) && depth <= self.len;
        is_whole || self.first + self.len == self.map.width()
    }
}
