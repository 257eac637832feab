//! The types that can be atomic, and the operations that each needs of `native` and `ptx`.

use core::sync::atomic::Ordering;

use super::scope::Reach;
use crate::element::device_copy::DeviceCopy;
#[cfg(feature = "half")]
use crate::half::{Bf16x2, F16x2, bf16, f16};

/// A type with atomic operations: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`, and the pairs `F16x2` and
/// `Bf16x2` of `ferrogrid::device::half` (with the feature `half`).
///
/// ```
/// use ferrogrid_device::atomic::{AtomicValue, DeviceAtomic, Ordering::Relaxed};
///
/// /// Widens a range of numbers, which all threads share.
/// fn widen<T: AtomicValue>(range: &[DeviceAtomic<T>; 2], x: T) {
///     range[0].fetch_min(x, Relaxed);
///     range[1].fetch_max(x, Relaxed);
/// }
/// let range = [f64::INFINITY, f64::NEG_INFINITY].map(DeviceAtomic::new);
/// [2.0, -1.5, 0.5].iter().for_each(|&x| widen(&range, x));
/// assert_eq!(range.map(DeviceAtomic::into_inner), [-1.5, 2.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be atomic on a device",
    label = "has no atomic operations",
    note = "atomic are `u32`, `i32`, `u64`, `i64`, `f32`, `f64`, `F16x2` and `Bf16x2`"
)]
pub trait AtomicValue: AtomicLoadStore + sealed::Arithmetic {}

/// A type that threads load and store atomically: each [`AtomicValue`], and `u8`, `i8`, `u16`, `i16`, `f16` and `bf16`, which
/// have no other atomic operations (as Rust's `target_has_atomic_load_store`).
///
/// ```
/// use ferrogrid_device::atomic::{AtomicLoadStore, DeviceAtomic, Ordering::Relaxed};
///
/// /// Writes `value` to the place of that number, if there is one.
/// fn put<T: AtomicLoadStore>(places: &[DeviceAtomic<T>], number: usize, value: T) {
///     if let Some(place) = places.get(number) {
///         place.store(value, Relaxed);
///     }
/// }
/// let places = [const { DeviceAtomic::<i8>::new(0) }; 2];
/// put(&places, 1, -3);
/// put(&places, 2, 5);
/// assert_eq!(places.map(DeviceAtomic::into_inner), [0, -3]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be atomic on a device",
    label = "has no atomic operations",
    note = "atomic are integers of 8 to 64 bits, `f16`, `bf16`, `f32`, `f64`, `F16x2` and `Bf16x2`"
)]
pub trait AtomicLoadStore: DeviceCopy + sealed::Bits {}

/// An integer with atomic operations: `u32`, `i32`, `u64`, `i64`.
///
/// ```
/// use ferrogrid_device::atomic::{AtomicInteger, DeviceAtomic, Ordering::Relaxed};
///
/// /// Marks the places that `set` names, unmarks those outside of `kept`, and returns what was marked before.
/// fn change<T: AtomicInteger>(marks: &DeviceAtomic<T>, set: T, kept: T) -> T {
///     let before = marks.fetch_or(set, Relaxed);
///     marks.fetch_and(kept, Relaxed);
///     before
/// }
/// let marks = DeviceAtomic::<u64>::new(0b0011);
/// assert_eq!((change(&marks, 0b0100, !0b0001), marks.into_inner()), (0b0011, 0b0110));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bitwise atomic operations",
    label = "not an integer",
    note = "`fetch_and`, `fetch_or` and `fetch_xor` are for `u32`, `i32`, `u64` and `i64`"
)]
pub trait AtomicInteger: AtomicValue {}

/// Ordering and scope of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub(super) order: Ordering,
    #[cfg_attr(not(target_arch = "nvptx64"), expect(dead_code, reason = "natively all is one system"))]
    pub(super) reach: Reach,
}

/// Words with atomic loads and stores: `u8` to `u64`; `ptx` and `native` implement it.
///
/// For each method `place` must be valid and aligned, and other threads may change it only through these
/// methods and those of [`Word`] while the call runs.
pub trait Cell: Copy {
    /// # Safety
    /// See the trait.
    unsafe fn load(place: *mut Self, manner: Manner) -> Self;
    /// # Safety
    /// See the trait.
    unsafe fn store(place: *mut Self, value: Self, manner: Manner);
}

/// Words with all atomic hardware instructions: `u32`, `u64`; `ptx` and `native` implement it. For `place` see [`Cell`].
pub trait Word: Cell + Eq {
    /// # Safety
    /// See the trait.
    unsafe fn swap(place: *mut Self, value: Self, manner: Manner) -> Self;
    /// Returns the previous value, and writes `new` if that was `expected`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn compare_and_swap(place: *mut Self, expected: Self, new: Self, manner: Manner) -> Self;
    /// # Safety
    /// See the trait.
    unsafe fn and(place: *mut Self, operand: Self, manner: Manner) -> Self;
    /// # Safety
    /// See the trait.
    unsafe fn or(place: *mut Self, operand: Self, manner: Manner) -> Self;
    /// # Safety
    /// See the trait.
    unsafe fn xor(place: *mut Self, operand: Self, manner: Manner) -> Self;
}

pub(super) mod sealed {
    use super::{Cell, Manner, Word, update};

    /// A number as its bits.
    pub trait Bits: Copy {
        /// The bits.
        type Word: Cell;

        fn into_word(self) -> Self::Word;
        fn from_word(word: Self::Word) -> Self;
    }

    /// The operations of a number that need no machine support.
    pub trait Number: Bits<Word: Word> {
        fn negated(self) -> Self;
        fn lesser(self, other: Self) -> Self;
        fn greater(self, other: Self) -> Self;
    }

    /// The operations that depend on the type of the number; `ptx` and `native` implement it. For `place` see
    /// [`Word`].
    pub trait Arithmetic: Number {
        /// # Safety
        /// See the trait.
        unsafe fn fetch_add(place: *mut Self, value: Self, manner: Manner) -> Self;

        /// # Safety
        /// See the trait.
        #[inline(always)]
        unsafe fn fetch_min(place: *mut Self, value: Self, manner: Manner) -> Self {
            // SAFETY: the caller's.
            unsafe { update(place, manner, |found| found.lesser(value)) }
        }

        /// # Safety
        /// See the trait.
        #[inline(always)]
        unsafe fn fetch_max(place: *mut Self, value: Self, manner: Manner) -> Self {
            // SAFETY: the caller's.
            unsafe { update(place, manner, |found| found.greater(value)) }
        }
    }
}

use sealed::{Bits, Number};

macro_rules! bits {
    ($ty:ident as $word:ident, $into_word:expr, $from_word:expr) => {
        impl AtomicLoadStore for $ty {}
        impl Bits for $ty {
            type Word = $word;

            #[inline(always)]
            fn into_word(self) -> $word {
                $into_word(self)
            }

            #[inline(always)]
            fn from_word(word: $word) -> Self {
                $from_word(word)
            }
        }
    };
}

macro_rules! small_integer {
    ($($ty:ident as $word:ident),*) => { $(
        bits!($ty as $word, |n| n as $word, |w| w as $ty);
    )* };
}

macro_rules! number {
    ($ty:ident as $word:ident, $into_word:expr, $from_word:expr, $negated:expr, $lesser:expr, $greater:expr) => {
        bits!($ty as $word, $into_word, $from_word);
        impl AtomicValue for $ty {}
        impl Number for $ty {
            #[inline(always)]
            fn negated(self) -> Self {
                $negated(self)
            }

            #[inline(always)]
            fn lesser(self, other: Self) -> Self {
                $lesser(self, other)
            }

            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                $greater(self, other)
            }
        }
    };
}

macro_rules! integer {
    ($($ty:ident as $word:ident),*) => { $(
        number!($ty as $word, |n| n as $word, |w| w as $ty, $ty::wrapping_neg, $ty::min, $ty::max);
        impl AtomicInteger for $ty {}
    )* };
}

macro_rules! float {
    ($($ty:ident as $word:ident),*) => { $(
        number!($ty as $word, $ty::to_bits, $ty::from_bits, |n: $ty| -n, $ty::min, $ty::max);
    )* };
}

#[cfg(feature = "half")]
macro_rules! pair {
    ($($ty:ident),*) => { $(
        number!($ty as u32, $ty::to_bits, $ty::from_bits, |pair: $ty| -pair, $ty::min, $ty::max);
    )* };
}

small_integer!(u8 as u8, i8 as u8, u16 as u16, i16 as u16);
integer!(u32 as u32, i32 as u32, u64 as u64, i64 as u64);
float!(f32 as u32, f64 as u64);
#[cfg(feature = "half")]
pair!(F16x2, Bf16x2);
#[cfg(feature = "half")]
bits!(f16 as u16, f16::to_bits, f16::from_bits);
#[cfg(feature = "half")]
bits!(bf16 as u16, bf16::to_bits, bf16::from_bits);

/// Replaces the number at `place` by `change` of it, and returns the previous one.
///
/// # Safety
/// `place` is as for [`Word`].
#[inline(always)]
pub(super) unsafe fn update<T: Number>(place: *mut T, manner: Manner, change: impl Fn(T) -> T) -> T {
    let place = place.cast::<T::Word>();
    // SAFETY: the caller's.
    let mut found = unsafe { T::Word::load(place, Manner { order: Ordering::Relaxed, ..manner }) };
    loop {
        let new = change(T::from_word(found)).into_word();
        // Nothing to write or order, so the cache line need not be owned.
        if new == found && matches!(manner.order, Ordering::Relaxed) {
            return T::from_word(found);
        }
        // SAFETY: the caller's.
        let before = unsafe { T::Word::compare_and_swap(place, found, new, manner) };
        if before == found {
            return T::from_word(found);
        }
        found = before;
    }
}
