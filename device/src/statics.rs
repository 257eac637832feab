//! Variables of a module that all its kernels change, and that the host reads and sets. It must not know the host's side of them.

use crate::atomic::{AtomicValue, Device, DeviceAtomic, System};
use crate::device_copy::DeviceCopy;

/// What a `#[device] static` of a module may be: `DeviceAtomic<T>` in the scope of the device or the system, and arrays of such.
///
/// All kernels of the module share it, and so do all threads that run at the same time; so it is made of atomic numbers. What
/// kernels only read is a `#[constant]`, and what one kernel writes is a parameter.
///
/// ```
/// use ferrogrid_device::DeviceAtomic;
/// use ferrogrid_device::statics::StaticValue;
///
/// /// How many bytes the host copies to set it.
/// const fn bytes<T: StaticValue>() -> usize {
///     size_of::<T::Value>()
/// }
/// assert_eq!(bytes::<[DeviceAtomic<u64>; 16]>(), 128);
/// ```
///
/// # Safety
/// It is laid out as `Value` is, any threads of the system may change it through shared references, and each of its bytes is
/// changed by atomic operations of the same size only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[device] static`, which all threads of all kernels of the module share",
    label = "not made of atomic numbers of the device's scope",
    note = "write `DeviceAtomic<T>` or an array of such; for what kernels only read there is `#[constant]`, and else a parameter: \
            `&[T]`, `DisjointSlice<T>`"
)]
pub unsafe trait StaticValue: Sync + Sized + 'static {
    /// What the host reads and sets.
    type Value: DeviceCopy;
}

// SAFETY: transparent over a number, changed by atomic operations of its size, among all threads of the device.
unsafe impl<T: AtomicValue> StaticValue for DeviceAtomic<T, Device> {
    type Value = T;
}

// SAFETY: as above.
unsafe impl<T: AtomicValue> StaticValue for DeviceAtomic<T, System> {
    type Value = T;
}

// SAFETY: element by element.
unsafe impl<T: StaticValue, const N: usize> StaticValue for [T; N] {
    type Value = [T::Value; N];
}

/// Holds if `T` may be a static of the device; used by generated code to say so at the type.
#[doc(hidden)]
pub const fn assert_static<T: StaticValue>() {}

/// The static at `start`, while `reading` is there.
///
/// # Safety
/// `start` is a static of the module whose kernel runs; only kernels of the module change it while one runs.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn read<T>(_: &crate::constant::Reading, start: *const T) -> &T {
    // SAFETY: the caller's; what others change at the same time, they change by atomic operations.
    unsafe { &*start }
}
