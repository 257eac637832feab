//! How elements are combined: what reductions and scans of runs and segments share.

use bytemuck::Pod;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

use crate::order::Ordinal;
use accumulations::{Accumulation, Least, SumFloats, SumIntegers};

/// Device code.
#[ferrogrid::module]
pub mod accumulations {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::order::numbers::Order;
    use crate::sort::digits::kernels::Bits;

    /// How elements are combined. Integers are kept as unsigned ones of their size.
    pub trait Accumulation: DeviceCopy {
        /// An element in memory.
        type Item: DeviceCopy + SharedElement + atomic::AtomicLoadStore;
        /// What is combined.
        type Sum: DeviceCopy + Exchange + SharedElement;
        /// A result in memory.
        type Total: DeviceCopy + atomic::AtomicLoadStore;
        /// The result of nothing.
        fn identity(self) -> Self::Sum;
        /// An element.
        fn sum(self, item: Self::Item) -> Self::Sum;
        /// Two parts, in order.
        fn combine(self, a: Self::Sum, b: Self::Sum) -> Self::Sum;
        /// A result.
        fn total(self, sum: Self::Sum) -> Self::Total;
        /// A result in the type of the elements.
        fn item(self, sum: Self::Sum) -> Self::Item;
    }

    /// Sums of integers in 64 bits.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct SumIntegers<K> {
        /// The bit of the sign; 0 of unsigned integers.
        pub sign: K,
    }

    impl<K: Bits> Accumulation for SumIntegers<K> {
        type Item = K;
        type Sum = u64;
        type Total = u64;
        #[inline(always)]
        fn identity(self) -> u64 {
            0
        }
        #[inline(always)]
        fn sum(self, item: K) -> u64 {
            (item ^ self.sign).widen().wrapping_sub(self.sign.widen())
        }
        #[inline(always)]
        fn combine(self, a: u64, b: u64) -> u64 {
            a.wrapping_add(b)
        }
        #[inline(always)]
        fn total(self, sum: u64) -> u64 {
            sum
        }
        #[inline(always)]
        fn item(self, sum: u64) -> K {
            K::narrow(sum)
        }
    }

    /// Sums of floats; of 16-bit floats in `f32`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct SumFloats<F> {
        /// 0.
        pub zero: F,
    }

    macro_rules! floats {
        ($($t:ty as $sum:ty, $widen:expr, $narrow:expr;)*) => {
            $(impl Accumulation for SumFloats<$t> {
                type Item = $t;
                type Sum = $sum;
                type Total = $sum;
                #[inline(always)]
                fn identity(self) -> $sum {
                    0.0
                }
                #[inline(always)]
                fn sum(self, item: $t) -> $sum {
                    $widen(item)
                }
                #[inline(always)]
                fn combine(self, a: $sum, b: $sum) -> $sum {
                    a + b
                }
                #[inline(always)]
                fn total(self, sum: $sum) -> $sum {
                    sum
                }
                #[inline(always)]
                fn item(self, sum: $sum) -> $t {
                    $narrow(sum)
                }
            })*
        };
    }
    floats! {
        f32 as f32, core::convert::identity, core::convert::identity;
        f64 as f64, core::convert::identity, core::convert::identity;
    }
    #[cfg(feature = "half")]
    floats! {
        f16 as f32, f16::to_f32, f16::from_f32;
        bf16 as f32, bf16::to_f32, bf16::from_f32;
    }

    /// The first number in an order: the least one or the greatest one.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Least<K> {
        /// The order.
        pub order: Order<K>,
    }

    impl<K: Bits> Accumulation for Least<K> {
        type Item = K;
        type Sum = K;
        type Total = K;
        #[inline(always)]
        fn identity(self) -> K {
            !K::narrow(0)
        }
        #[inline(always)]
        fn sum(self, item: K) -> K {
            self.order.place(item)
        }
        #[inline(always)]
        fn combine(self, a: K, b: K) -> K {
            if b.widen() < a.widen() { b } else { a }
        }
        #[inline(always)]
        fn total(self, sum: K) -> K {
            self.order.bits(sum)
        }
        #[inline(always)]
        fn item(self, sum: K) -> K {
            self.order.bits(sum)
        }
    }
}

/// A number with its accumulations.
pub trait Accumulated: Ordinal {
    /// Sums in the type of `sum`, or in that of the elements.
    type Sum: Accumulation<Item: Pod, Total: Pod>;
    /// The least or the greatest element.
    type Least: Accumulation<Item: Pod, Total: Pod>;
    /// The sum of elements.
    const SUM: Self::Sum;
    /// The least element.
    const MIN: Self::Least;
    /// The greatest element.
    const MAX: Self::Least;
}

macro_rules! accumulated {
    ($($t:ty: $bits:ty, $sum:ty, $of_sum:expr;)*) => {
        $(impl Accumulated for $t {
            type Sum = $sum;
            type Least = Least<$bits>;
            const SUM: $sum = $of_sum;
            const MIN: Least<$bits> = Least { order: Self::ASCENDING };
            const MAX: Least<$bits> = Least { order: Self::DESCENDING };
        })*
    };
}
accumulated! {
    u8: u8, SumIntegers<u8>, SumIntegers { sign: 0 };
    u16: u16, SumIntegers<u16>, SumIntegers { sign: 0 };
    u32: u32, SumIntegers<u32>, SumIntegers { sign: 0 };
    u64: u64, SumIntegers<u64>, SumIntegers { sign: 0 };
    i8: u8, SumIntegers<u8>, SumIntegers { sign: 1 << 7 };
    i16: u16, SumIntegers<u16>, SumIntegers { sign: 1 << 15 };
    i32: u32, SumIntegers<u32>, SumIntegers { sign: 1 << 31 };
    i64: u64, SumIntegers<u64>, SumIntegers { sign: 1 << 63 };
    f32: u32, SumFloats<f32>, SumFloats { zero: 0.0 };
    f64: u64, SumFloats<f64>, SumFloats { zero: 0.0 };
}
#[cfg(feature = "half")]
accumulated! {
    f16: u16, SumFloats<f16>, SumFloats { zero: f16::ZERO };
    bf16: u16, SumFloats<bf16>, SumFloats { zero: bf16::ZERO };
}
