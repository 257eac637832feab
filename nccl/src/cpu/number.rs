//! The elements of several ranks become one, by the operations of `ReduceOp`.

use std::ptr::from_ref;

#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

use crate::element::ElementType;
use crate::reduce_op::Reduction;

/// The arithmetic of an element type.
trait Number: Copy {
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn divide_by(self, count: usize) -> Self;
}

macro_rules! integers {
    ($($integer:ty)*) => { $(
        impl Number for $integer {
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn min(self, other: Self) -> Self {
                Ord::min(self, other)
            }

            fn max(self, other: Self) -> Self {
                Ord::max(self, other)
            }

            fn divide_by(self, count: usize) -> Self {
                // In a type that has both.
                (i128::from(self) / count as i128) as Self
            }
        }
    )* };
}

integers! { i8 u8 i32 u32 i64 u64 }

macro_rules! floats {
    ($($(#[$attribute:meta])* $float:ty as $wide:ty: $from:expr, $to:expr;)*) => { $(
        $(#[$attribute])*
        impl Number for $float {
            fn add(self, other: Self) -> Self {
                $to($from(self) + $from(other))
            }

            fn multiply(self, other: Self) -> Self {
                $to($from(self) * $from(other))
            }

            fn min(self, other: Self) -> Self {
                $to($from(self).min($from(other)))
            }

            fn max(self, other: Self) -> Self {
                $to($from(self).max($from(other)))
            }

            fn divide_by(self, count: usize) -> Self {
                $to($from(self) / count as $wide)
            }
        }
    )* };
}

floats! {
    f32 as f32: f32::from, f32::from;
    f64 as f64: f64::from, f64::from;
    #[cfg(feature = "half")]
    f16 as f32: f16::to_f32, f16::from_f32;
    #[cfg(feature = "half")]
    bf16 as f32: bf16::to_f32, bf16::from_f32;
}

/// The bytes of `count` elements, each of those of all sources, in the order of these. Each rank has its own factor.
///
/// # Safety
/// Each source has `count` elements of the type, which nothing writes meanwhile.
pub(super) unsafe fn combine(
    element: ElementType,
    sources: &[(*const u8, Reduction)],
    count: usize,
) -> Vec<u8> {
    // SAFETY: passed on, with the type that the number stands for.
    unsafe {
        match element {
            ElementType::I8 => combined::<i8>(sources, count),
            ElementType::U8 => combined::<u8>(sources, count),
            ElementType::I32 => combined::<i32>(sources, count),
            ElementType::U32 => combined::<u32>(sources, count),
            ElementType::I64 => combined::<i64>(sources, count),
            ElementType::U64 => combined::<u64>(sources, count),
            ElementType::F32 => combined::<f32>(sources, count),
            ElementType::F64 => combined::<f64>(sources, count),
            #[cfg(feature = "half")]
            ElementType::F16 => combined::<f16>(sources, count),
            #[cfg(feature = "half")]
            ElementType::Bf16 => combined::<bf16>(sources, count),
            #[cfg(not(feature = "half"))]
            ElementType::F16 | ElementType::Bf16 => unreachable!("no type is such an element without `half`"),
        }
    }
}

/// # Safety
/// As for `combine`.
unsafe fn combined<T: Number>(sources: &[(*const u8, Reduction)], count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * size_of::<T>());
    for index in 0..count {
        // SAFETY: passed on; buffers are aligned for their elements.
        let values = sources
            .iter()
            .map(|&(start, reduction)| unsafe { scaled(start.cast::<T>().add(index).read(), reduction) });
        let value = reduce(values, sources[0].1, sources.len());
        // SAFETY: the bytes of a number, which all have values.
        let of_value = unsafe { std::slice::from_raw_parts(from_ref(&value).cast::<u8>(), size_of::<T>()) };
        bytes.extend_from_slice(of_value);
    }
    bytes
}

/// A value times its rank's factor.
///
/// # Safety
/// The factor, if there is one, is of this type.
unsafe fn scaled<T: Number>(value: T, reduction: Reduction) -> T {
    match reduction {
        // SAFETY: passed on; the bytes are aligned for every element.
        Reduction::ScaledSum(factor) => value.multiply(unsafe { factor.as_ptr().cast::<T>().read() }),
        _ => value,
    }
}

fn reduce<T: Number>(values: impl Iterator<Item = T>, reduction: Reduction, ranks: usize) -> T {
    let combine = match reduction {
        Reduction::Sum | Reduction::Average | Reduction::ScaledSum(_) => T::add,
        Reduction::Product => T::multiply,
        Reduction::Min => T::min,
        Reduction::Max => T::max,
    };
    let value = values.reduce(combine).expect("there are ranks");
    if reduction == Reduction::Average { value.divide_by(ranks) } else { value }
}
