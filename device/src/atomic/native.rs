//! Atomic operations of the CPU device: those of `core::sync::atomic`, which are system-wide whatever the
//! scope.

use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::value::sealed::Arithmetic;
use super::value::{Cell, Manner, Word, update};
#[cfg(feature = "half")]
use crate::half::{Bf16x2, F16x2};

macro_rules! cell {
    ($($ty:ident in $atomic:ident),*) => { $(
        impl Cell for $ty {
            #[inline(always)]
            unsafe fn load(place: *mut Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.load(manner.order)
            }

            #[inline(always)]
            unsafe fn store(place: *mut Self, value: Self, manner: Manner) {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.store(value, manner.order)
            }
        }
    )* };
}

cell!(u8 in AtomicU8, u16 in AtomicU16, u32 in AtomicU32, u64 in AtomicU64);

macro_rules! word {
    ($($ty:ident in $atomic:ident),*) => { $(
        impl Word for $ty {
            #[inline(always)]
            unsafe fn swap(place: *mut Self, value: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.swap(value, manner.order)
            }

            #[inline(always)]
            unsafe fn compare_and_swap(
                place: *mut Self,
                expected: Self,
                new: Self,
                manner: Manner,
            ) -> Self {
                // SAFETY: the caller's.
                let place = unsafe { $atomic::from_ptr(place) };
                match place.compare_exchange(expected, new, manner.order, on_failure(manner.order)) {
                    Ok(found) | Err(found) => found,
                }
            }

            #[inline(always)]
            unsafe fn and(place: *mut Self, operand: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.fetch_and(operand, manner.order)
            }

            #[inline(always)]
            unsafe fn or(place: *mut Self, operand: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.fetch_or(operand, manner.order)
            }

            #[inline(always)]
            unsafe fn xor(place: *mut Self, operand: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.fetch_xor(operand, manner.order)
            }
        }
    )* };
}

word!(u32 in AtomicU32, u64 in AtomicU64);

/// The ordering of a failed exchange: all of `order` that a read can have.
#[inline(always)]
fn on_failure(order: Ordering) -> Ordering {
    match order {
        Ordering::Relaxed | Ordering::Release => Ordering::Relaxed,
        Ordering::Acquire | Ordering::AcqRel => Ordering::Acquire,
        _ => Ordering::SeqCst,
    }
}

macro_rules! integer {
    ($($ty:ident in $atomic:ident),*) => { $(
        impl Arithmetic for $ty {
            #[inline(always)]
            unsafe fn fetch_add(place: *mut Self, value: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.fetch_add(value, manner.order)
            }

            #[inline(always)]
            unsafe fn fetch_min(place: *mut Self, value: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.fetch_min(value, manner.order)
            }

            #[inline(always)]
            unsafe fn fetch_max(place: *mut Self, value: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { $atomic::from_ptr(place) }.fetch_max(value, manner.order)
            }
        }
    )* };
}

integer!(u32 in AtomicU32, i32 in AtomicI32, u64 in AtomicU64, i64 in AtomicI64);

macro_rules! sums {
    ($($ty:ident),*) => { $(
        impl Arithmetic for $ty {
            #[inline(always)]
            unsafe fn fetch_add(place: *mut Self, value: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { update(place, manner, |found| found + value) }
            }
        }
    )* };
}

sums!(f32, f64);
#[cfg(feature = "half")]
sums!(F16x2, Bf16x2);
