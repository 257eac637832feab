//! The numbers that ready-made algorithms take, and what kernels do with them.

/// The numbers.
#[ferrogrid::module]
pub mod numbers {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    /// An integer of 8 to 64 bits, `f32` or `f64`; with the feature `half` also `f16` and `bf16`.
    pub trait Element: DeviceCopy + Exchange + SharedElement + PartialOrd {
        /// The type of sums and products: integers are widened to 64 bits, and 16-bit floats to `f32`.
        type Total: Element<Total = Self::Total>;
        /// Unsigned integers in the order of the numbers: equal ones have equal keys, and NaN has the last.
        type Key: Key;
        /// Whether sums and products are the same in any order.
        const IS_EXACT: bool;
        /// The sum of nothing.
        const ZERO: Self;
        /// The product of nothing.
        const ONE: Self;
        /// The number as a total.
        fn widen(self) -> Self::Total;
        /// The number as `f64`: exact, or the nearest one.
        fn real(self) -> f64;
        /// The sum; integers wrap around.
        fn add(self, other: Self) -> Self;
        /// The difference; integers wrap around.
        fn subtract(self, other: Self) -> Self;
        /// `first + step * index`; integers wrap around.
        fn of_sequence(first: Self, step: Self, index: usize) -> Self;
        /// The product; integers wrap around.
        fn multiply(self, other: Self) -> Self;
        /// The number's place in the order.
        fn key(self) -> Self::Key;
        /// The number with that key.
        fn of_key(key: Self::Key) -> Self;
        /// Whether the keys are equal.
        fn is_same(self, other: Self) -> bool;
        /// The number that stands where this one does in the opposite order; NaN remains NaN.
        fn mirrored(self) -> Self;
    }

    /// A number's place in the order of numbers.
    pub trait Key: DeviceCopy + Exchange + SharedElement + Ord {
        /// The last one.
        const LAST: Self;
    }

    impl Key for u32 {
        const LAST: Self = u32::MAX;
    }

    impl Key for u64 {
        const LAST: Self = u64::MAX;
    }

    macro_rules! integers {
        ($($t:ty as $unsigned:ty, $key:ty, $total:ty;)*) => {
            $(impl Element for $t {
                type Total = $total;
                type Key = $key;
                const IS_EXACT: bool = true;
                const ZERO: Self = 0;
                const ONE: Self = 1;
                #[inline(always)]
                fn widen(self) -> $total {
                    self.into()
                }
                #[inline(always)]
                fn real(self) -> f64 {
                    self as f64
                }
                #[inline(always)]
                fn add(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }
                #[inline(always)]
                fn subtract(self, other: Self) -> Self {
                    self.wrapping_sub(other)
                }
                #[inline(always)]
                fn of_sequence(first: Self, step: Self, index: usize) -> Self {
                    first.wrapping_add(step.wrapping_mul(index as $t))
                }
                #[inline(always)]
                fn multiply(self, other: Self) -> Self {
                    self.wrapping_mul(other)
                }
                #[inline(always)]
                fn key(self) -> $key {
                    // The least number becomes 0.
                    ((self ^ <$t>::MIN) as $unsigned).into()
                }
                #[inline(always)]
                fn of_key(key: $key) -> Self {
                    key as $t ^ <$t>::MIN
                }
                #[inline(always)]
                fn is_same(self, other: Self) -> bool {
                    self == other
                }
                #[inline(always)]
                fn mirrored(self) -> Self {
                    !self
                }
            })*
        };
    }
    integers! {
        i8 as u8, u32, i64;
        i16 as u16, u32, i64;
        i32 as u32, u32, i64;
        i64 as u64, u64, i64;
        u8 as u8, u32, u64;
        u16 as u16, u32, u64;
        u32 as u32, u32, u64;
        u64 as u64, u64, u64;
    }

    macro_rules! floats {
        ($($t:ty as $key:ty;)*) => {
            $(impl Element for $t {
                type Total = $t;
                type Key = $key;
                const IS_EXACT: bool = false;
                const ZERO: Self = 0.0;
                const ONE: Self = 1.0;
                #[inline(always)]
                fn widen(self) -> $t {
                    self
                }
                #[inline(always)]
                fn real(self) -> f64 {
                    self.into()
                }
                #[inline(always)]
                fn add(self, other: Self) -> Self {
                    self + other
                }
                #[inline(always)]
                fn subtract(self, other: Self) -> Self {
                    self - other
                }
                #[inline(always)]
                fn of_sequence(first: Self, step: Self, index: usize) -> Self {
                    first + step * index as $t
                }
                #[inline(always)]
                fn multiply(self, other: Self) -> Self {
                    self * other
                }
                #[inline(always)]
                fn key(self) -> $key {
                    const SIGN: $key = 1 << (<$key>::BITS - 1);
                    // 0.0 for both zeros.
                    let bits = (self + 0.0).to_bits();
                    // All bits are flipped if the number is negative, else that of the sign.
                    let flipped = (bits.cast_signed() >> (<$key>::BITS - 1)).cast_unsigned() | SIGN;
                    if self.is_nan() { <$key>::MAX } else { bits ^ flipped }
                }
                #[inline(always)]
                fn of_key(key: $key) -> Self {
                    const SIGN: $key = 1 << (<$key>::BITS - 1);
                    <$t>::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
                }
                #[inline(always)]
                fn is_same(self, other: Self) -> bool {
                    self == other || self.is_nan() && other.is_nan()
                }
                #[inline(always)]
                fn mirrored(self) -> Self {
                    -self
                }
            })*
        };
    }
    floats! { f32 as u32; f64 as u64; }

    #[cfg(feature = "half")]
    macro_rules! halves {
        ($($t:ident),*) => {
            $(impl Element for $t {
                type Total = f32;
                type Key = u32;
                const IS_EXACT: bool = false;
                const ZERO: Self = $t::ZERO;
                const ONE: Self = $t::ONE;
                #[inline(always)]
                fn widen(self) -> f32 {
                    self.to_f32()
                }
                #[inline(always)]
                fn real(self) -> f64 {
                    self.to_f32().into()
                }
                #[inline(always)]
                fn add(self, other: Self) -> Self {
                    self + other
                }
                #[inline(always)]
                fn subtract(self, other: Self) -> Self {
                    self - other
                }
                #[inline(always)]
                fn of_sequence(first: Self, step: Self, index: usize) -> Self {
                    $t::from_f32(f32::of_sequence(first.to_f32(), step.to_f32(), index))
                }
                #[inline(always)]
                fn multiply(self, other: Self) -> Self {
                    self * other
                }
                #[inline(always)]
                fn key(self) -> u32 {
                    self.to_f32().key()
                }
                #[inline(always)]
                fn of_key(key: u32) -> Self {
                    $t::from_f32(f32::of_key(key))
                }
                #[inline(always)]
                fn is_same(self, other: Self) -> bool {
                    self.to_f32().is_same(other.to_f32())
                }
                #[inline(always)]
                fn mirrored(self) -> Self {
                    -self
                }
            })*
        };
    }
    #[cfg(feature = "half")]
    halves!(f16, bf16);

    /// How totals are combined.
    pub trait Operation {
        /// The total of nothing.
        fn identity<T: Element>() -> T;
        /// The total of two parts.
        fn combine<T: Element>(a: T, b: T) -> T;
    }

    /// Adds; integers wrap around.
    #[derive(Clone, Copy, Debug)]
    pub struct Add;

    impl Operation for Add {
        #[inline(always)]
        fn identity<T: Element>() -> T {
            T::ZERO
        }
        #[inline(always)]
        fn combine<T: Element>(a: T, b: T) -> T {
            a.add(b)
        }
    }

    /// Multiplies; integers wrap around.
    #[derive(Clone, Copy, Debug)]
    pub struct Multiply;

    impl Operation for Multiply {
        #[inline(always)]
        fn identity<T: Element>() -> T {
            T::ONE
        }
        #[inline(always)]
        fn combine<T: Element>(a: T, b: T) -> T {
            a.multiply(b)
        }
    }
}
