//! Structs of atomics: how threads see elements that a buffer stores as plain numbers.

use super::{AtomicLoadStore, DeviceAtomic, Scope};
use crate::element::device_copy::{DeviceCopy, SliceElement};
use crate::element::layout::of_atomic;

/// The atomic form of a buffer's elements `Value`: [`DeviceAtomic<T>`](DeviceAtomic) for `T`, core's
/// `AtomicU32` for `u32` and the like, and structs of them, which derive it.
///
/// The struct names its plain counterpart, whose buffer the host passes as `buffer.as_atomic()`. Both need
/// `#[repr(C)]` and the same fields. Fields that threads change are atomic in one and plain in the other; all
/// others have the same type.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
///
/// #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
/// #[repr(C)]
/// pub struct Bin {
///     pub below: f32,
///     pub count: u32,
///     pub sum: f32,
/// }
///
/// /// A bin that threads fill.
/// #[derive(AtomicForm)]
/// #[atomic_form(Bin)]
/// #[repr(C)]
/// pub struct OpenBin {
///     below: f32,
///     count: DeviceAtomic<u32>,
///     sum: DeviceAtomic<f32>,
/// }
///
/// #[kernel]
/// pub fn fill(t: Thread<1>, x: &[f32], bins: &[OpenBin]) {
///     let Some(&x) = x.get(t.index().get()) else { return };
///     if let Some(bin) = bins.iter().find(|bin| x < bin.below) {
///         bin.count.fetch_add(1, Relaxed);
///         bin.sum.fetch_add(x, Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # use kernels::Bin;
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, 25.0, 2.0, 3.0, 26.0])?;
/// let mut bins = stream.upload(&[10.0, 20.0, 30.0].map(|below| Bin { below, count: 0, sum: 0.0 }))?;
/// kernels::fill(&stream, Grid::cover(5), &x, bins.as_atomic())?;
/// assert_eq!(stream.download(&bins)?[2], Bin { below: 30.0, count: 2, sum: 51.0 });
/// # Ok(()) }
/// ```
///
/// # Safety
/// `Self` has the size, alignment and layout of `Value`. Every value of one is a valid value of the other,
/// whatever threads do with it through a shared reference.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the atomic form of an element",
    label = "neither an atomic number nor a struct of them",
    note = "what a kernel only reads comes from the host as `In(&data)`; `Out` and `InOut` are for outputs, and for inputs of atomics",
    note = "it is `DeviceAtomic<T>`, `AtomicU32` or the like, or a struct with `#[derive(AtomicForm)] #[atomic_form(Plain)] #[repr(C)]`"
)]
pub unsafe trait AtomicForm: SliceElement {
    /// The type that the buffer stores.
    type Value: DeviceCopy;
}

// SAFETY: transparent over `T`, any bits of which are a value.
unsafe impl<T: AtomicLoadStore, S: Scope> AtomicForm for DeviceAtomic<T, S> {
    type Value = T;
}

/// A field of a struct that is the form of a `Plain` field; for what the derive writes.
///
/// # Safety
/// As for [`AtomicForm`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a field `{Self}` does not match the plain field `{Plain}`",
    label = "differs from the field of the plain struct",
    note = "a field that threads change is `DeviceAtomic<T>` for `T`, or an array of them; any other field has the plain field's type"
)]
pub unsafe trait AtomicField<Plain> {}

// SAFETY: the same type, and threads that share one only read it.
unsafe impl<T: DeviceCopy> AtomicField<T> for T {}
// SAFETY: as for `AtomicForm`.
unsafe impl<T: AtomicLoadStore, S: Scope> AtomicField<T> for DeviceAtomic<T, S> {}
// SAFETY: its elements, one after the other.
unsafe impl<T: AtomicLoadStore, S: Scope, const N: usize> AtomicField<[T; N]> for [DeviceAtomic<T, S>; N] {}

macro_rules! core_atomics {
    ($($atomic:ident $value:ident),*) => { $(
        // SAFETY: it has the layout of its integer, on both sides, and its operations are atomic on all devices: the build
        // step completes those of LLVM.
        unsafe impl SliceElement for core::sync::atomic::$atomic {
            const LAYOUT: u64 = of_atomic(<$value as DeviceCopy>::LAYOUT);
        }
        // SAFETY: as above.
        unsafe impl AtomicForm for core::sync::atomic::$atomic {
            type Value = $value;
        }
        // SAFETY: as above.
        unsafe impl AtomicField<$value> for core::sync::atomic::$atomic {}
    )* };
}

core_atomics!(AtomicU32 u32, AtomicI32 i32, AtomicU64 u64, AtomicI64 i64);
