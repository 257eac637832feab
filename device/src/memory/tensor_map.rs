//! [`TensorMap`]: a plane of which blocks copy whole tiles to shared memory.

use core::ops::Deref;

use super::plane::Plane;
use crate::element::device_copy::DeviceCopy;

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
    /// The width and the height of a tile.
    #[doc(hidden)]
    pub const TILE: [u32; 2] = {
        assert!(matches!(size_of::<T>(), 1 | 2 | 4 | 8), "elements of a `TensorMap` have 1, 2, 4 or 8 bytes");
        assert!(
            (W * size_of::<T>()).is_multiple_of(COPY_STEP),
            "a row of a `TensorMap`'s tile has a multiple of 16 bytes"
        );
        assert!(W >= 1 && W <= 256, "a row of a `TensorMap`'s tile has 1 to 256 elements");
        assert!(H >= 1 && H <= 256, "a tile of a `TensorMap` has 1 to 256 rows");
        [W as u32, H as u32]
    };

    /// For the code that `#[kernel]` generates.
    ///
    /// # Safety
    /// In code for `sm_90a` `map` is the address of a tensor map of the plane, for tiles of this size, in the parameters of the
    /// kernel, unless the plane is empty.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unused_variables)]
    pub unsafe fn from_raw_parts(plane: Plane<'a, T>, map: *const Encoded) -> Self {
        const { assert!(Self::TILE[0] > 0) };
        TensorMap {
            plane,
            #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
            map,
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
