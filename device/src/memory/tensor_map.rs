//! [`TensorMap`]: a plane of which blocks copy whole tiles to shared memory; what it shares with the maps of other ranks.

use core::ops::Deref;

use super::plane::Plane;
use crate::element::device_copy::DeviceCopy;
use crate::shared::tiles::array::AXES;
use crate::shared::{ArrayElement, BoxArray};
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

/// What a launch makes a tensor map of, beside the elements.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapForm {
    /// The lengths of a box, the rows' first; 1 along axes that there are not.
    pub lengths: [u32; AXES],
    /// Whether tiles are stored, which the hardware does by 16 bytes.
    pub is_output: bool,
    /// Whether elements are added as floats.
    pub is_float: bool,
}

impl MapForm {
    /// That of boxes of such elements.
    pub(crate) const fn new<T>(lengths: [usize; AXES]) -> Self {
        assert!(matches!(size_of::<T>(), 1 | 2 | 4 | 8), "elements of a tensor map have 1, 2, 4 or 8 bytes");
        assert!(
            (lengths[0] * size_of::<T>()).is_multiple_of(COPY_STEP),
            "a row of a tensor map's tile has a multiple of 16 bytes"
        );
        let (mut numbers, mut axis) = ([1; AXES], 0);
        while axis < AXES {
            assert!(
                lengths[axis] >= 1 && lengths[axis] <= 256,
                "a tile of a tensor map has 1 to 256 rows, of 1 to 256 elements, and so along further axes"
            );
            numbers[axis] = lengths[axis] as u32;
            axis += 1;
        }
        MapForm { lengths: numbers, is_output: false, is_float: false }
    }
}

/// The place of a box's first element, the rows' axis first, as the hardware takes it.
///
/// # Panics
/// If a row would not begin at a multiple of 16 bytes, or the place is 2^31 or more.
#[track_caller]
#[inline(always)]
pub(crate) fn box_place<A: BoxArray>(corner: [isize; AXES]) -> [i32; AXES] {
    let place = corner.map(|axis| axis as i32);
    // Without branches, and no comparison of memory.
    let is_near = (0..AXES).fold(true, |is_near, axis| is_near & (place[axis] as isize == corner[axis]));
    assert!(is_near, "a tile's place is less than 2^31");
    assert!(
        (corner[0] * size_of::<A::Element>() as isize) % COPY_STEP as isize == 0,
        "a tile begins at a multiple of 16 bytes of its rows"
    );
    place
}

/// An instruction that takes a tensor map and a place, the rows' axis first: its name up to the rank, what is between rank and place, what
/// follows, and the operands but for the place.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
macro_rules! by_rank {
    ($rank:expr, $place:expr, [$name:expr, $between:expr, $after:expr], $($operands:tt)*) => {{
        let [x, y, z, u, v] = $place;
        match $rank {
            1 => core::arch::asm!(concat!($name, ".1d", $between, "{{{x}}}", $after), x = in(reg32) x, $($operands)*),
            2 => core::arch::asm!(
                concat!($name, ".2d", $between, "{{{x}, {y}}}", $after),
                x = in(reg32) x, y = in(reg32) y, $($operands)*
            ),
            3 => core::arch::asm!(
                concat!($name, ".3d", $between, "{{{x}, {y}, {z}}}", $after),
                x = in(reg32) x, y = in(reg32) y, z = in(reg32) z, $($operands)*
            ),
            4 => core::arch::asm!(
                concat!($name, ".4d", $between, "{{{x}, {y}, {z}, {u}}}", $after),
                x = in(reg32) x, y = in(reg32) y, z = in(reg32) z, u = in(reg32) u, $($operands)*
            ),
            _ => core::arch::asm!(
                concat!($name, ".5d", $between, "{{{x}, {y}, {z}, {u}, {v}}}", $after),
                x = in(reg32) x, y = in(reg32) y, z = in(reg32) z, u = in(reg32) u, v = in(reg32) v, $($operands)*
            ),
        }
    }};
}
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
pub(crate) use by_rank;

/// What boxes are copied from: a [`TensorMap`], or a [`BoxMap`](crate::BoxMap), of such boxes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no boxes `{A}`",
    label = "expected a map of `{A}`",
    note = "the stages and the `TensorMap` or `BoxMap` that is copied to them have elements of one type, and tiles of one size"
)]
pub trait BoxSource<'a, A: BoxArray>: Copy + sealed::Source {
    /// The element at a place, the rows' axis first.
    #[doc(hidden)]
    fn element(self, place: [usize; AXES]) -> Option<&'a A::Element>;

    #[doc(hidden)]
    fn is_empty(self) -> bool;

    /// The driver's tensor map.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[doc(hidden)]
    fn encoded(self) -> *const Encoded;
}

mod sealed {
    pub trait Source {}

    impl<T, const W: usize, const H: usize> Source for super::TensorMap<'_, T, W, H> {}
    impl<A: crate::shared::BoxArray> Source for crate::BoxMap<'_, A> {}
}

impl<'a, T: DeviceCopy + ArrayElement, const W: usize, const H: usize> BoxSource<'a, [[T; W]; H]>
    for TensorMap<'a, T, W, H>
{
    #[inline(always)]
    fn element(self, [column, row, ..]: [usize; AXES]) -> Option<&'a T> {
        self.plane.get(row, column)
    }

    #[inline(always)]
    fn is_empty(self) -> bool {
        (self.width() == 0) | (self.height() == 0)
    }

    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    fn encoded(self) -> *const Encoded {
        self.map
    }
}

/// Asks for a box to be brought into the L2 cache; the first thread's call counts.
///
/// # Panics
/// As [`box_place`].
#[track_caller]
#[inline(always)]
#[allow(unused_variables)]
pub(crate) fn prefetch<'a, A: BoxArray, const R: usize>(
    thread: &Thread<'_, R>,
    from: impl BoxSource<'a, A>,
    corner: A::Corner,
) {
    let place = box_place::<A>(A::of_corner(corner));
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    // SAFETY: the map is that of such boxes, if there are elements; what is fetched changes nothing. There is no branch, which might hide
    // that all threads come to a barrier behind it.
    unsafe {
        by_rank!(
            A::RANK,
            place,
            [
                "{{ .reg .pred %asks; setp.ne.b32 %asks, {asks}, 0; @%asks cp.async.bulk.prefetch.tensor",
                ".L2.global.tile [{map}, ",
                "]; }}"
            ],
            asks = in(reg32) u32::from((thread.thread_rank() == 0) & !from.is_empty()), map = in(reg64) from.encoded(),
            options(nostack, preserves_flags),
        );
    }
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
    pub const FORM: MapForm = MapForm::new::<T>([W, H, 1, 1, 1]);

    /// For the code that `#[kernel]` generates.
    ///
    /// # Safety
    /// In code for `sm_90a` `map` is the address of a tensor map of the plane, for tiles of this size, in the parameters of the
    /// kernel, unless the plane is empty.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unused_variables)]
    pub unsafe fn from_raw_parts(plane: Plane<'a, T>, map: *const Encoded) -> Self {
        const { assert!(Self::FORM.lengths[0] > 0) };
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
    pub fn prefetch<const R: usize>(&self, thread: &Thread<'_, R>, place: [isize; 2])
    where
        T: ArrayElement,
    {
        prefetch::<[[T; W]; H], R>(thread, *self, place);
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
