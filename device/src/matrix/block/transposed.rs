//! [`Transposed`]: a plane as a factor that is read along its columns.

use core::ops::Deref;

use super::{TiledFactor, sealed};
use crate::element::device_copy::DeviceCopy;
use crate::memory::plane::Plane;
use crate::memory::tensor_map::TensorMap;
use crate::number::half::HalfFloat;

/// The transpose of a plane, or the plane itself without `ON`, as a factor of a block's product: [`TensorMap::transposed`] and
/// [`TensorMap::transposed_if`] make it.
pub struct Transposed<'a, T, const W: usize, const ON: bool = true>(TensorMap<'a, T, W, W>);

impl<T, const W: usize, const ON: bool> Clone for Transposed<'_, T, W, ON> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const W: usize, const ON: bool> Copy for Transposed<'_, T, W, ON> {}

impl<'a, T: DeviceCopy, const W: usize> TensorMap<'a, T, W, W> {
    /// The transpose, whose rows are the columns of this plane, as a factor of [`multiply_tiles`](crate::Thread::multiply_tiles). The
    /// plane stays as it is: tiles are copied along its rows, and read along their columns (a descriptor of `wgmma` for the other
    /// "major-ness", CUTLASS's `Major::MN`). So `t.multiply_tiles(memory, a, b.transposed(), ..)` multiplies `a b`.
    ///
    /// Elements are `f16` and `bf16`, the only ones that tensor cores read in both directions.
    ///
    /// A tile of the product has a multiple of `W` such rows: other sizes are compile errors.
    ///
    /// ```compile_fail,E0080
    /// use ferrogrid_device::half::bf16;
    /// use ferrogrid_device::matrix::Products;
    /// use ferrogrid_device::{Shared, TensorMap, Thread};
    ///
    /// fn multiply(t: &Thread<1>, a: TensorMap<bf16, 64, 64>, memory: Shared<Products<bf16, 64, 32, 2>>) {
    ///     t.multiply_tiles(memory, a, a.transposed(), [[0, 0]], |_, _| ()); // 32 columns
    /// }
    /// # let used: fn(&Thread<1>, TensorMap<bf16, 64, 64>, Shared<Products<bf16, 64, 32, 2>>) = multiply;
    /// # assert!(used as usize != 0);
    /// ```
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
    /// /// c <- a b, of 64 x 64 sums
    /// #[kernel(block = 256)]
    /// pub fn multiply(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: &[DeviceAtomic<f32>],
    ///     memory: Shared<Products<bf16, 64, 64, 2>>,
    /// ) {
    ///     t.multiply_tiles(memory, a, b.transposed(), [[0, 0]], |_, sums| {
    ///         sums.for_each_pair(|row, column, [left, right]| {
    ///             c[row * 64 + column].store(left, Relaxed);
    ///             c[row * 64 + column + 1].store(right, Relaxed);
    ///         });
    ///     });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// # use ferrogrid::device::half::bf16;
    /// let a = stream.fill(bf16::from_f32(2.0), 64 * 128)?;
    /// let b: Vec<_> = (0..128 * 64).map(|i| bf16::from_f32((i % 64) as f32)).collect(); // each column a number of its own
    /// let (b, mut c) = (stream.upload(&b)?, stream.zeros(64 * 64)?);
    /// kernels::multiply(&stream, Grid::blocks(1), a.view_2d(128, 64)?, b.view_2d(64, 128)?, c.as_atomic())?;
    /// assert_eq!(stream.download(&c)?[..3], [0.0, 256.0, 512.0]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn transposed(self) -> Transposed<'a, T, W> {
        Transposed(self)
    }

    /// [`transposed`](Self::transposed) if `ON`, else the plane as it is: for kernels that are generic over how a factor is stored.
    ///
    /// ```
    /// use ferrogrid_device::half::bf16;
    /// use ferrogrid_device::matrix::Products;
    /// use ferrogrid_device::{Shared, TensorMap, Thread};
    ///
    /// /// The sums of `a b`, or of `a b^T`.
    /// fn multiply<const IS_RIGHT_TRANSPOSED: bool>(
    ///     t: &Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>,
    ///     memory: Shared<Products<bf16, 64, 64, 2>>, mut each: impl FnMut(usize, usize, [f32; 2]),
    /// ) {
    ///     let b = b.transposed_if::<IS_RIGHT_TRANSPOSED>();
    ///     t.multiply_tiles(memory, a, b, [[0, 0]], |_, sums| sums.for_each_pair(&mut each));
    /// }
    /// ```
    #[inline(always)]
    pub fn transposed_if<const ON: bool>(self) -> Transposed<'a, T, W, ON> {
        Transposed(self)
    }
}

impl<T, const W: usize, const ON: bool> sealed::Factor for Transposed<'_, T, W, ON> {
    const IS_TRANSPOSED: bool = ON;
    const ROWS: usize = W;
}

impl<T: HalfFloat, const W: usize, const ON: bool> TiledFactor<T> for Transposed<'_, T, W, ON> {
    #[inline(always)]
    fn plane(&self) -> Plane<'_, T> {
        *self.0.deref()
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn map(self) -> *const u8 {
        self.0.map()
    }
}
