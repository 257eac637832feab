//! The types whose values may be copied between host and device. It must not know how they are copied.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::num::Wrapping;

/// A type whose values mean the same on the host and on every device, bit for bit.
///
/// Scalars passed to kernels and elements of device buffers are `DeviceCopy`. Derive it for your own
/// structs: `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)]`; every field must be `DeviceCopy` too.
/// References and pointers are not: an address of the host means nothing on a device.
///
/// # Safety
/// The layout must be defined (`repr(C)`, `repr(transparent)`, or a primitive) and equal on the host
/// and on `nvptx64-nvidia-cuda`; the value must hold no address and own nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel to a device",
    label = "not `DeviceCopy`",
    note = "kernel parameters and buffer elements are numbers, arrays of them, or structs with `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)]`; host references, pointers, `Vec`, `String` and the like stay on the host"
)]
pub unsafe trait DeviceCopy: Copy + 'static {}

macro_rules! device_copy {
    ($($ty:ty),* $(,)?) => { $(
        // SAFETY: a primitive whose size, alignment and encoding are the same on every 64-bit host
        // and on nvptx64 (sizes and alignments of kernel parameters are checked again at build).
        unsafe impl DeviceCopy for $ty {}
    )* };
}

device_copy!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, bool, char, ());

// SAFETY: an array is its elements, one after the other, on both sides.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {}
// SAFETY: transparent over `T`.
unsafe impl<T: DeviceCopy> DeviceCopy for MaybeUninit<T> {}
// SAFETY: transparent over `T`.
unsafe impl<T: DeviceCopy> DeviceCopy for Wrapping<T> {}
// SAFETY: has no bytes.
unsafe impl<T: 'static> DeviceCopy for PhantomData<T> {}

const _: () = assert!(size_of::<usize>() == 8, "Ferrogrid needs a 64-bit host: devices are 64-bit");

/// A type that may be the element of a kernel's `&[T]`: everything that is [`DeviceCopy`], and
/// [`DeviceAtomic`](crate::atomic::DeviceAtomic), which threads change in place.
///
/// # Safety
/// The layout must be defined and equal on the host and on `nvptx64-nvidia-cuda`, and sharing a value
/// among all threads of a launch must be sound.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel to a device",
    label = "neither `DeviceCopy` nor a `DeviceAtomic`",
    note = "elements of `&[T]` are numbers, arrays of them, structs with `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)]`, or `DeviceAtomic` numbers; host references, pointers, `Vec`, `String` and the like stay on the host"
)]
pub unsafe trait SliceElement {}

// SAFETY: `DeviceCopy` asks for the layout; what is `Copy` has no interior mutability, so threads that
// share a value only read it.
unsafe impl<T: DeviceCopy> SliceElement for T {}

/// Holds if `T` may travel to a device; used by generated code to say so at the type.
#[doc(hidden)]
pub const fn assert_device_copy<T: DeviceCopy>() {}

/// Holds if `T` may be an element of `&[T]`; used by generated code to say so at the type.
#[doc(hidden)]
pub const fn assert_slice_element<T: SliceElement>() {}
