//! [`TensorMap`]: a plane of which blocks copy whole tiles to shared memory.

use core::ops::Deref;

use super::plane::Plane;
use crate::element::device_copy::DeviceCopy;
use crate::thread::Thread;

/// Copies begin at multiples of so many bytes of a row, of which tiles have a multiple, too. Others are illegal instructions to the hardware.
pub(crate) const COPY_STEP: usize = 16;

/// A [`Plane`] of which blocks copy tiles of `H` rows with `W` elements to shared memory. As a kernel's parameter,
/// `a: TensorMap<bf16, 64, 128>`, it takes a view of rank 2, `buffer.view_2d(width, height)?`, or a part of a matrix,
/// `buffer.view().pitched(width, height, pitch)?.slice(columns, rows)?`, whose rows begin at multiples of 16 bytes.
///
/// On GPUs of compute capability 9.0, in code for `sm_90a`, the launch makes a tensor map for it (driver API
/// `cuTensorMapEncodeTiled()`), with which one thread starts the copy of a whole tile
/// (PTX `cp.async.bulk.tensor`), in the layout in which tensor cores read it without bank conflicts. Elsewhere it is a plane.
///
/// [`StagedTiles`](crate::shared::StagedTiles) are tiles that a kernel reads as it likes; [`Thread::multiply_tiles`](crate::Thread::multiply_tiles)
/// multiplies those whose rows have 128 bytes. Elements beyond the edges of the plane are zeros.
///
/// Elements have 1, 2, 4 or 8 bytes, a row of a tile a multiple of 16 bytes and at most 256 elements, and a tile at most 256 rows: other
/// types are compile errors.
///
/// ```compile_fail,E0080
/// # use ferrogrid::prelude::*;
/// #[ferrogrid::module(host_only)]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     #[kernel]
///     pub fn narrow(_t: Thread<1>, _a: TensorMap<f32, 34, 8>) {} // rows of 136 bytes
/// }
/// # let launch = |stream: &Stream, x: &DeviceBuffer<f32>| kernels::narrow(stream, Grid::blocks(1), x.view_2d(16, 64)?);
/// # assert!(std::any::type_name_of_val(&launch).len() > 0);
/// ```
pub struct TensorMap<'a, T, const W: usize, const H: usize> {
    plane: Plane<'a, T>,
    /// The driver's tensor map: readable by the hardware that copies, in code for `sm_90a`.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    map: *const Encoded,
}

/// What a launch makes a tensor map of, beside the plane.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapForm {
    /// The width and the height of a tile.
    pub tile: [u32; 2],
    /// Whether tiles are stored, which the hardware does by 16 bytes.
    pub is_output: bool,
    /// Whether elements are added as floats.
    pub is_float: bool,
}

impl MapForm {
    /// That of tiles of `height` rows with `width` elements.
    pub(crate) const fn new<T>(width: usize, height: usize) -> Self {
        assert!(matches!(size_of::<T>(), 1 | 2 | 4 | 8), "elements of a `TensorMap` have 1, 2, 4 or 8 bytes");
        assert!(
            (width * size_of::<T>()).is_multiple_of(COPY_STEP),
            "a row of a `TensorMap`'s tile has a multiple of 16 bytes"
        );
        assert!(width >= 1 && width <= 256, "a row of a `TensorMap`'s tile has 1 to 256 elements");
        assert!(height >= 1 && height <= 256, "a tile of a `TensorMap` has 1 to 256 rows");
        MapForm { tile: [width as u32, height as u32], is_output: false, is_float: false }
    }
}

/// The place of a tile's first element, as the hardware takes it.
///
/// # Panics
/// If the column is no multiple of 16 bytes, or the place is 2^31 or more.
#[track_caller]
#[inline(always)]
pub(crate) fn tile_place<T>([row, column]: [isize; 2]) -> [i32; 2] {
    let place = [row as i32, column as i32];
    assert!(place.map(|it| it as isize) == [row, column], "a tile's place is less than 2^31");
    assert!(
        (column * size_of::<T>() as isize) % COPY_STEP as isize == 0,
        "a tile begins at a multiple of 16 bytes of its rows"
    );
    place
}

/// What `cuTensorMapEncodeTiled()` writes.
#[doc(hidden)]
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct Encoded([u64; 16]);

impl<T, const W: usize, const H: usize> Clone for TensorMap<'_, T, W, H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const W: usize, const H: usize> Copy for TensorMap<'_, T, W, H> {}

impl<'a, T: DeviceCopy, const W: usize, const H: usize> TensorMap<'a, T, W, H> {
    #[doc(hidden)]
    pub const FORM: MapForm = MapForm::new::<T>(W, H);

    /// For the code that `#[kernel]` generates.
    ///
    /// # Safety
    /// In code for `sm_90a` `map` is the address of a tensor map of the plane, for tiles of this size, in the parameters of the
    /// kernel, unless the plane is empty.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unused_variables)]
    pub unsafe fn from_raw_parts(plane: Plane<'a, T>, map: *const Encoded) -> Self {
        const { assert!(Self::FORM.tile[0] > 0) };
        TensorMap {
            plane,
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            map,
        }
    }

    /// Asks for the tile whose first element is at `[row, column]` to be brought into the L2 cache, in code for `sm_90a` (PTX
    /// `cp.async.bulk.prefetch.tensor`); elsewhere it does nothing. The column is a multiple of 16 bytes. The block's first
    /// thread asks, the calls of others do nothing.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use ferrogrid::device::shared::TileStages;
    ///
    /// /// y <- the sums of 32 columns. The tile after the next one is on its way to the L2 cache.
    /// #[kernel(block = 32)]
    /// pub fn sums(t: Thread<1>, x: TensorMap<f32, 32, 8>, mut y: DisjointSlice<f32>, tiles: Shared<TileStages<f32, 32, 8, 2>>) {
    ///     let (mut tiles, mut sum, first) = (tiles.into_stages(), 0.0, 32 * t.block_idx()[0] as isize);
    ///     for step in 0..x.height().div_ceil(8) + 1 {
    ///         tiles.copy(&t, x, [8 * step as isize, first]);
    ///         x.prefetch(&t, [8 * (step as isize + 2), first]);
    ///         if step >= 1 {
    ///             sum += (0..8).map(|row| tiles.current()[[row, t.thread_rank() as usize]]).sum::<f32>();
    ///         }
    ///         t.advance(&mut tiles);
    ///     }
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = sum;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (x, mut y) = (stream.fill(1.0_f32, 64 * 20)?, stream.zeros(64)?);
    /// kernels::sums(&stream, Grid::cover(64), x.view_2d(64, 20)?, &mut y)?;
    /// assert_eq!(stream.download(&y)?, [20.0; 64]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the column is no multiple of 16 bytes, or the place is 2^31 or more.
    #[track_caller]
    #[inline(always)]
    #[allow(unused_variables)]
    pub fn prefetch<const R: usize>(&self, thread: &Thread<'_, R>, place: [isize; 2]) {
        let [row, column] = tile_place::<T>(place);
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        // SAFETY: the map is that of the plane, if that is not empty; what is fetched changes nothing. There is no branch, which might hide
        // that all threads come to a barrier behind it.
        unsafe {
            let asks = (thread.thread_rank() == 0) & (self.width() > 0) & (self.height() > 0);
            core::arch::asm!(
                "{{ .reg .pred %asks; setp.ne.b32 %asks, {}, 0;",
                "@%asks cp.async.bulk.prefetch.tensor.2d.L2.global.tile [{}, {{{}, {}}}]; }}",
                in(reg32) u32::from(asks), in(reg64) self.map, in(reg32) column, in(reg32) row,
                options(nostack, preserves_flags),
            );
        }
    }

    /// The driver's tensor map.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    pub(crate) fn map(self) -> *const u8 {
        self.map.cast()
    }
}

impl<'a, T, const W: usize, const H: usize> Deref for TensorMap<'a, T, W, H> {
    type Target = Plane<'a, T>;

    #[inline(always)]
    fn deref(&self) -> &Plane<'a, T> {
        &self.plane
    }
}

/// The address of parameter `number` of the entry point `name`, for the code that `#[kernel]` generates; null where nothing
/// reads tensor maps.
#[doc(hidden)]
#[macro_export]
macro_rules! __address_of_parameter {
    ($name:literal, $number:expr) => {{
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
        {
            let address: *const $crate::Encoded;
            ::core::arch::asm!(
                concat!("{{ .reg .u64 %t; mov.b64 %t, ", $name, "_param_{number}; cvta.param.u64 {address}, %t; }}"),
                number = const $number,
                address = out(reg64) address,
                options(pure, nomem, nostack, preserves_flags),
            );
            address
        }
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
        ::core::ptr::null::<$crate::Encoded>()
    }};
}
