//! `#[device] static`: variables of a module that all its kernels change, and that the host reads and sets.

use crate::atomic::{AtomicValue, Device, DeviceAtomic, System};
use crate::element::device_copy::DeviceCopy;

/// A type that a `#[device] static` of a module may have: `DeviceAtomic<T>` with the scope of the device or
/// the system, and arrays of these.
///
/// All kernels of the module share the static, as do all threads that run at the same time, so it consists of
/// atomics. Values that kernels only read are a `#[constant]`; memory that one kernel writes is a parameter.
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
/// It has the layout of `Value`, any threads of the system may change it through shared references, and each
/// of its bytes is only changed by atomic operations of one size.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[device] static`, which all threads of all kernels of the module share",
    label = "not made of atomic numbers of the device's scope",
    note = "write `DeviceAtomic<T>` or an array of such; for what kernels only read there is `#[constant]`, and else a parameter: \
            `&[T]`, `DisjointSlice<T>`"
)]
pub unsafe trait StaticValue: Sync + Sized + 'static {
    /// The type that the host reads and sets.
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

/// Compiles if `T` may be a static of the device; generated code uses it to report errors at the type.
#[doc(hidden)]
pub const fn assert_static<T: StaticValue>() {}

/// The static at `start`, for the life of the borrow.
///
/// # Safety
/// `start` is a static of the module whose kernel runs; only kernels of the module change it while one runs.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn read<T>(_: &crate::constant::Reading, start: *const T) -> &T {
    // SAFETY: the caller's; what others change at the same time, they change by atomic operations.
    unsafe { &*start }
}
