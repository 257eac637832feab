//! [`AtomicCell`]: a number that threads only store and load, so that it may have 1 or 2 bytes.

use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};

use super::AtomicForm;
use crate::element::device_copy::{DeviceCopy, SliceElement};
use crate::element::layout::of_atomic;
use crate::shared::{AnyBits, SharedElement};

/// An integer of 1 to 8 bytes in device memory that any thread may store and load (PTX `st.relaxed`, `ld.relaxed`).
///
/// For outputs whose places depend on data, as in a sort or a scatter. A store costs as much as an ordinary one. If several
/// threads store to one place, one of the values remains. Where every place has one writer, and that is to be checked,
/// [`ScatterSlice`](crate::ScatterSlice) does so. A kernel takes `&[AtomicCell<u8>]`, and the launch passes
/// `buffer.as_atomic()`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::AtomicCell;
///
/// /// Marks the numbers that occur.
/// #[kernel]
/// pub fn mark(t: Thread<1>, x: &[u32], occurs: &[AtomicCell<u8>]) {
///     let x = x.get(t.index().get());
///     if let Some(mark) = x.and_then(|&x| occurs.get(x as usize)) {
///         mark.store(1);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (x, mut occurs) = (stream.upload(&[5, 0, 2, 5, 100])?, stream.zeros(6)?);
/// kernels::mark(&stream, Grid::cover(5), &x, occurs.as_atomic())?;
/// assert_eq!(stream.download(&occurs)?, [1, 0, 1, 0, 0, 1]);
/// # Ok(()) }
/// ```
#[repr(transparent)]
pub struct AtomicCell<T: CellValue> {
    value: UnsafeCell<T>,
}

/// An integer of 8 to 64 bits.
pub trait CellValue: DeviceCopy + sealed::Stored {}

mod sealed {
    pub trait Stored: Copy {
        /// # Safety
        /// `place` is valid and aligned, and other threads change it by such stores only.
        unsafe fn store(place: *mut Self, value: Self);
        /// # Safety
        /// As for `store`.
        unsafe fn load(place: *mut Self) -> Self;
    }
}

impl<T: CellValue> AtomicCell<T> {
    /// A cell with this value.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        AtomicCell { value: UnsafeCell::new(value) }
    }

    /// Replaces the value.
    #[inline(always)]
    pub fn store(&self, value: T) {
        // SAFETY: the place is this cell's, whose methods are the only way to it.
        unsafe { T::store(self.value.get(), value) }
    }

    /// The value.
    #[inline(always)]
    pub fn load(&self) -> T {
        // SAFETY: as for `store`.
        unsafe { T::load(self.value.get()) }
    }
}

// SAFETY: threads reach the value by atomic loads and stores only.
unsafe impl<T: CellValue> Sync for AtomicCell<T> {}

// SAFETY: transparent over `T`, with atomic loads and stores on both sides.
unsafe impl<T: CellValue> SliceElement for AtomicCell<T> {
    const LAYOUT: u64 = of_atomic(T::LAYOUT);
}

// SAFETY: as above; any bits are a `T`.
unsafe impl<T: CellValue> AtomicForm for AtomicCell<T> {
    type Value = T;
}

// SAFETY: transparent over an integer, any bits of which are valid; shared changes are atomic.
unsafe impl<T: CellValue + AnyBits> AnyBits for AtomicCell<T> {}
// SAFETY: as above.
unsafe impl<T: CellValue + AnyBits> SharedElement for AtomicCell<T> {}

macro_rules! integers {
    ($($ty:ident in $atomic:ident),*) => { $(
        impl CellValue for $ty {}
        // Loads and stores of core's atomics are complete on devices, unlike read-modify-write operations.
        impl sealed::Stored for $ty {
            #[inline(always)]
            unsafe fn store(place: *mut Self, value: Self) {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.store(value, Ordering::Relaxed);
            }

            #[inline(always)]
            unsafe fn load(place: *mut Self) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.load(Ordering::Relaxed)
            }
        }
    )* };
}

integers! {
    u8 in AtomicU8, u16 in AtomicU16, u32 in AtomicU32, u64 in AtomicU64,
    i8 in AtomicI8, i16 in AtomicI16, i32 in AtomicI32, i64 in AtomicI64
}
