//! [`Transposed`] and [`TransposedEach`]: planes as factors that are read along their columns.

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

    /// The [transposes](Self::transposed) of matrices of `height` rows that are below each other in the plane, as one factor: the rows of each
    /// follow those of the one before. So product number `i` of as many has its columns from `i * b.width()` on, if `b` is the right
    /// factor. Elements beyond the matrix that a product's place is in are zeros.
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
    /// /// c <- a b, of 64 x 64 sums, with a block for each of the matrices that are below each other.
    /// #[kernel(block = 256)]
    /// pub fn multiply(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: &[DeviceAtomic<f32>],
    ///     memory: Shared<Products<bf16, 64, 64, 2>>,
    /// ) {
    ///     let first = t.block_idx()[0] as usize * 64;
    ///     t.multiply_tiles(memory, a, b.transposed_each(128), [[first, first]], |[first, _], sums| {
    ///         sums.for_each_pair(|row, column, [left, right]| {
    ///             c[(first + row) * 64 + column].store(left, Relaxed);
    ///             c[(first + row) * 64 + column + 1].store(right, Relaxed);
    ///         });
    ///     });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// # use ferrogrid::device::half::bf16;
    /// let a = stream.fill(bf16::from_f32(2.0), 2 * 64 * 128)?;
    /// let b: Vec<_> = (0..2 * 128 * 64).map(|i| bf16::from_f32((i / (128 * 64)) as f32 + 1.0)).collect(); // ones, and twos
    /// let (b, mut c) = (stream.upload(&b)?, stream.zeros(2 * 64 * 64)?);
    /// kernels::multiply(&stream, Grid::blocks(2), a.view_2d(128, 128)?, b.view_2d(64, 256)?, c.as_atomic())?;
    /// let c = stream.download(&c)?;
    /// assert_eq!([c[0], c[64 * 64]], [256.0, 512.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If `height` is no multiple of `W`, unless there is one matrix alone: whole tiles are copied, which must not have rows of the next one.
    #[track_caller]
    #[inline(always)]
    pub fn transposed_each(self, height: usize) -> TransposedEach<'a, T, W> {
        self.transposed_each_if(height)
    }

    /// [`transposed_each`](Self::transposed_each) if `ON`, else the plane as it is: for kernels that are generic over how factors are stored.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    #[inline(always)]
    pub fn transposed_each_if<const ON: bool>(self, height: usize) -> TransposedEach<'a, T, W, ON> {
        assert!(
            !ON || height.is_multiple_of(W) || height >= self.height(),
            "matrices below each other have a height that is a multiple of the map's `W`"
        );
        TransposedEach { map: self, height }
    }
}

/// The transposes of matrices below each other in a plane, or the plane itself without `ON`, as a factor of a block's product:
/// [`TensorMap::transposed_each`] and [`TensorMap::transposed_each_if`] make it.
pub struct TransposedEach<'a, T, const W: usize, const ON: bool = true> {
    map: TensorMap<'a, T, W, W>,
    height: usize,
}

impl<T, const W: usize, const ON: bool> Clone for TransposedEach<'_, T, W, ON> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const W: usize, const ON: bool> Copy for TransposedEach<'_, T, W, ON> {}

impl<T, const W: usize, const ON: bool> sealed::Factor for TransposedEach<'_, T, W, ON> {
    const IS_TRANSPOSED: bool = ON;
    const ROWS: usize = W;
}

impl<T: HalfFloat, const W: usize, const ON: bool> TiledFactor<T> for TransposedEach<'_, T, W, ON> {
    #[inline(always)]
    fn plane(&self) -> Plane<'_, T> {
        *self.map.deref()
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn map(self) -> *const u8 {
        self.map.map()
    }

    #[inline(always)]
    fn extent(&self) -> [usize; 2] {
        let plane = self.plane();
        if ON {
            let matrices = if self.height == 0 { 0 } else { plane.height().div_ceil(self.height) };
            [matrices * plane.width(), self.height]
        } else {
            [plane.height(), plane.width()]
        }
    }

    #[inline(always)]
    fn place(&self, row: usize) -> [usize; 2] {
        if !ON {
            return [row, 0];
        }
        // Rows and widths are less than 2^32.
        let (row, width) = (row as u32, self.plane().width() as u32);
        let matrix = row.checked_div(width).unwrap_or(0);
        [matrix as usize * self.height, (row - matrix * width) as usize]
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
