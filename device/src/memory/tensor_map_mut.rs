//! [`TensorMapMut`]: an output plane to which blocks store whole tiles from shared memory, or add them.

use core::marker::PhantomData;

#[cfg(feature = "half")]
use crate::half::{bf16, f16};

use super::tensor_map::{Encoded, MapForm};
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
use crate::atomic::DeviceAtomic;
use crate::atomic::{AtomicLoadStore, AtomicValue};
use crate::shared::tiles::array::AXES;
use crate::shared::tiles::output::{self, BoxTarget};
use crate::shared::{OutputTile, Published, SharedElement};
use crate::thread::Thread;

/// An output plane to which blocks store tiles of `H` rows with `W` elements from shared memory
/// ([`OutputTile`](crate::shared::OutputTile)), or add them: [`store`](Self::store), [`add`](Self::add). As a kernel's parameter,
/// `y: TensorMapMut<f32, 32, 8>`, it takes a mutable view of rank 2, `buffer.view_2d_mut(width, height)?`, or a part of a matrix,
/// `buffer.view_mut().pitched(width, height, pitch)?.slice(columns, rows)?`, whose rows begin and end at multiples of 16 bytes: the
/// hardware stores by 16 bytes, also across an edge.
///
/// On GPUs of compute capability 9.0, in code for `sm_90a`, the block's first thread starts to store a whole tile (TMA, PTX
/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`), by a tensor map that the launch makes (driver API
/// `cuTensorMapEncodeTiled()`). Meanwhile the block computes. Elsewhere each thread stores or adds elements of its own.
///
/// A tile may be stored anywhere, by any block: the kernel reads nothing of the plane. Where several stores reach an element, any of
/// them remains, and what was added before it is lost; additions alone count all, in any order. The width and the height of
/// tiles are limited as those of a [`TensorMap`](crate::TensorMap).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::OutputTile;
///
/// /// y <- the roots of x.
/// #[kernel(block = [32, 8])]
/// pub fn roots(t: Thread<2>, x: Plane<f32>, y: TensorMapMut<f32, 32, 32>, mut tile: Shared<OutputTile<f32, 32, 32>>) {
///     let [across, down] = t.block_idx().map(|block| 32 * block as usize);
///     tile.fill_with(&t, |[row, column]| x.get(down + row, across + column).map_or(0.0, |x| x.sqrt()));
///     let tile = t.publish(tile);
///     y.store(&t, &tile, [down, across]); // beyond the edges nothing is stored
/// }
///
/// /// counts <- the number of elements of each block's columns that are not 0, in the block's own row, and of all in row 0.
/// #[kernel(block = 32)]
/// pub fn count(t: Thread<1>, x: Plane<f32>, counts: TensorMapMut<u32, 32, 1>, mut tile: Shared<OutputTile<u32, 32, 1>>) {
///     let block = t.block_idx()[0] as usize;
///     let of_row = |row: usize, column: usize| u32::from(x.get(row, 32 * block + column).is_some_and(|x| *x != 0.0));
///     tile.fill_with(&t, |[_, column]| (0..x.height()).map(|row| of_row(row, column)).sum());
///     let tile = t.publish(tile);
///     counts.store(&t, &tile, [1 + block, 0]);
///     counts.add(&t, &tile, [0, 0]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..100 * 40).map(|i| i as f32).collect::<Vec<_>>())?; // 40 rows of 100
/// let mut y = stream.zeros(40 * 100)?;
/// kernels::roots(&stream, Grid::new([4, 2], [32, 8]), x.view_2d(100, 40)?, y.view_2d_mut(100, 40)?)?;
/// assert_eq!(stream.download(&y)?[..5], [0.0, 1.0, 2.0_f32.sqrt(), 3.0_f32.sqrt(), 2.0]);
///
/// let mut counts = stream.zeros(32 * 5)?;
/// kernels::count(&stream, Grid::cover(128), x.view_2d(100, 40)?, counts.view_2d_mut(32, 5)?)?;
/// let counts = stream.download(&counts)?;
/// assert_eq!((counts[0], counts[31], counts[32], counts[4 * 32 + 4]), (159, 120, 39, 0));
/// # Ok(()) }
/// ```
pub struct TensorMapMut<'a, T, const W: usize, const H: usize> {
    start: *mut T,
    width: usize,
    height: usize,
    /// The elements from the start of a row to that of the next.
    pitch: usize,
    /// The driver's tensor map: readable by the hardware that stores, in code for `sm_90a`.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    map: *const Encoded,
    borrowed: PhantomData<&'a mut [T]>,
}

/// What a [`TensorMapMut`] has as elements: integers of 8 to 64 bits, `f32`, `f64`, and with the feature `half` `f16` and `bf16`.
#[diagnostic::on_unimplemented(
    message = "a `TensorMapMut` cannot have elements `{Self}`",
    label = "not such a number",
    note = "elements are integers of 8 to 64 bits, `f32`, `f64`, and with the feature `half` `f16` and `bf16`"
)]
pub trait MapNumber: AtomicLoadStore + SharedElement {
    #[doc(hidden)]
    const IS_FLOAT: bool;
}

macro_rules! numbers {
    ($($t:ty)*, $is_float:literal) => { $(
        impl MapNumber for $t {
            const IS_FLOAT: bool = $is_float;
        }
    )* };
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64, false);
numbers!(f32 f64, true);
#[cfg(feature = "half")]
numbers!(f16 bf16, true);

impl<T: MapNumber, const W: usize, const H: usize> TensorMapMut<'_, T, W, H> {
    #[doc(hidden)]
    pub const FORM: MapForm =
        MapForm { is_output: true, is_float: T::IS_FLOAT, ..MapForm::new::<T>([W, H, 1, 1, 1]) };

    /// For the code that `#[kernel]` generates: `height` rows of `width` elements, which begin `pitch` elements after each other.
    ///
    /// # Safety
    /// While the kernel runs, all of these elements are valid for reads and writes, and only values of this type that have the same
    /// start, in all threads, reach them. In code for `sm_90a` `map` is the address of a tensor map of the plane, for tiles of this
    /// size, in the parameters of the kernel, unless the plane is empty; rows have a multiple of 16 bytes.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unused_variables)]
    pub unsafe fn from_raw_parts(
        start: *mut T,
        [width, height, pitch]: [usize; 3],
        map: *const Encoded,
    ) -> Self {
        const { assert!(Self::FORM.lengths[0] > 0) };
        TensorMapMut {
            start,
            width,
            height,
            pitch,
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            map,
            borrowed: PhantomData,
        }
    }

    /// Elements per row of the plane.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows of the plane.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Stores the tile, its first element at `[row, column]`; what would lie beyond the edges of the plane is left out. The column is a
    /// multiple of 16 bytes. All threads of the block make the call together, with the same place; the first one's counts. The tile stays
    /// readable; when it is reclaimed, it has been read. The plane has the elements when the kernel has ended.
    ///
    /// PTX `cp.async.bulk.tensor` from shared to global memory.
    ///
    /// # Panics
    /// If the column is no multiple of 16 bytes, or the place is 2^31 or more.
    #[track_caller]
    #[inline(always)]
    pub fn store<const R: usize, const ID: usize>(
        &self,
        thread: &Thread<'_, R>,
        tile: &Published<'_, OutputTile<T, W, H>, ID>,
        place: [usize; 2],
    ) {
        output::store(self, thread, tile, place);
    }

    /// Adds the tile to the plane's elements, as [`store`](Self::store) stores it: those of several blocks, too, each element at once
    /// (`fetch_add`), in any order.
    ///
    /// PTX `cp.reduce.async.bulk.tensor`, `.add`.
    ///
    /// # Panics
    /// As [`store`](Self::store).
    #[track_caller]
    #[inline(always)]
    pub fn add<const R: usize, const ID: usize>(
        &self,
        thread: &Thread<'_, R>,
        tile: &Published<'_, OutputTile<T, W, H>, ID>,
        place: [usize; 2],
    ) where
        T: AtomicValue,
    {
        output::add(self, thread, tile, place);
    }

    /// The driver's tensor map, and whether there is one: not if the plane is empty.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    pub(crate) fn map(&self) -> (*const Encoded, bool) {
        (self.map, (self.width > 0) & (self.height > 0))
    }
}

impl<T: MapNumber, const W: usize, const H: usize> BoxTarget<[[T; W]; H]> for TensorMapMut<'_, T, W, H> {
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
    #[inline(always)]
    fn element(&self, [column, row, ..]: [usize; AXES]) -> Option<&DeviceAtomic<T>> {
        let is_inside = row < self.height && column < self.width;
        // SAFETY: an element of the plane, as `from_raw_parts` vouches. All threads reach it by atomic operations.
        is_inside.then(|| unsafe { &*self.start.add(row * self.pitch + column).cast::<DeviceAtomic<T>>() })
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn encoded(&self) -> (*const Encoded, bool) {
        self.map()
    }
}
