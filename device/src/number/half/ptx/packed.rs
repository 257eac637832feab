//! The device's instructions for two 16-bit numbers at once, on their bits: the first number is in the low
//! half.

/// Both numbers of a pair by an operation on one.
#[cfg(not(target_feature = "sm_80"))]
#[inline(always)]
fn each<const N: usize>(pairs: [u32; N], operation: impl Fn([u16; N]) -> u16) -> u32 {
    let low = operation(pairs.map(|pair| pair as u16));
    let high = operation(pairs.map(|pair| (pair >> 16) as u16));
    u32::from(high) << 16 | u32::from(low)
}

macro_rules! instructions {
    ($($name:ident($($operand:ident),*) = $text:literal;)*) => { $(
        #[inline(always)]
        pub(crate) fn $name($($operand: u32),*) -> u32 {
            instruction!($text, u32 = reg32, $(reg32 $operand),*)
        }
    )* };
}

pub(crate) mod binary16 {
    instructions! {
        add(a, b) = "add.rn.f16x2 {}, {}, {};";
        sub(a, b) = "sub.rn.f16x2 {}, {}, {};";
        mul(a, b) = "mul.rn.f16x2 {}, {}, {};";
        mul_add(a, b, c) = "fma.rn.f16x2 {}, {}, {}, {};";
    }

    #[cfg(target_feature = "sm_80")]
    instructions! {
        min(a, b) = "min.f16x2 {}, {}, {};";
        max(a, b) = "max.f16x2 {}, {}, {};";
    }

    #[cfg(not(target_feature = "sm_80"))]
    mod smaller {
        use super::super::super::super::f16;
        use super::super::each;

        #[inline(always)]
        pub(crate) fn min(a: u32, b: u32) -> u32 {
            each([a, b], |[a, b]| f16::from_bits(a).min(f16::from_bits(b)).to_bits())
        }

        #[inline(always)]
        pub(crate) fn max(a: u32, b: u32) -> u32 {
            each([a, b], |[a, b]| f16::from_bits(a).max(f16::from_bits(b)).to_bits())
        }
    }

    #[cfg(not(target_feature = "sm_80"))]
    pub(crate) use smaller::{max, min};

    /// `cvt.rn.f16x2.f32`, whose first operand is the upper number.
    #[cfg(target_feature = "sm_80")]
    #[inline(always)]
    pub(crate) fn from_singles(low: f32, high: f32) -> u32 {
        instruction!("cvt.rn.f16x2.f32 {}, {}, {};", u32 = reg32, reg32 high, reg32 low)
    }

    #[cfg(not(target_feature = "sm_80"))]
    #[inline(always)]
    pub(crate) fn from_singles(low: f32, high: f32) -> u32 {
        use super::super::binary16::from_single;
        u32::from(from_single(high)) << 16 | u32::from(from_single(low))
    }
}

#[cfg(target_feature = "sm_80")]
pub(crate) mod brain16 {
    instructions! {
        mul_add(a, b, c) = "fma.rn.bf16x2 {}, {}, {}, {};";
        min(a, b) = "min.bf16x2 {}, {}, {};";
        max(a, b) = "max.bf16x2 {}, {}, {};";
    }

    #[cfg(target_feature = "sm_90")]
    instructions! {
        add(a, b) = "add.rn.bf16x2 {}, {}, {};";
        sub(a, b) = "sub.rn.bf16x2 {}, {}, {};";
        mul(a, b) = "mul.rn.bf16x2 {}, {}, {};";
    }

    /// By `fma.rn.bf16x2`, whose other operation does nothing: `x * 1`, `x + -0`.
    #[cfg(not(target_feature = "sm_90"))]
    mod fused {
        use super::mul_add;

        const ONES: u32 = 0x3F80_3F80;
        const NEGATIVE_ONES: u32 = 0xBF80_BF80;
        const NEGATIVE_ZEROS: u32 = 0x8000_8000;

        #[inline(always)]
        pub(crate) fn add(a: u32, b: u32) -> u32 {
            mul_add(a, ONES, b)
        }

        #[inline(always)]
        pub(crate) fn sub(a: u32, b: u32) -> u32 {
            mul_add(b, NEGATIVE_ONES, a)
        }

        #[inline(always)]
        pub(crate) fn mul(a: u32, b: u32) -> u32 {
            mul_add(a, b, NEGATIVE_ZEROS)
        }
    }

    #[cfg(not(target_feature = "sm_90"))]
    pub(crate) use fused::{add, mul, sub};

    /// `cvt.rn.bf16x2.f32`, whose first operand is the upper number.
    #[inline(always)]
    pub(crate) fn from_singles(low: f32, high: f32) -> u32 {
        instruction!("cvt.rn.bf16x2.f32 {}, {}, {};", u32 = reg32, reg32 high, reg32 low)
    }
}

/// One number after the other: these architectures have no instructions for `bf16`.
#[cfg(not(target_feature = "sm_80"))]
pub(crate) mod brain16 {
    use super::super::super::bf16;
    use super::super::brain16 as one;
    use super::each;

    #[inline(always)]
    pub(crate) fn add(a: u32, b: u32) -> u32 {
        each([a, b], |[a, b]| one::add(a, b))
    }

    #[inline(always)]
    pub(crate) fn sub(a: u32, b: u32) -> u32 {
        each([a, b], |[a, b]| one::sub(a, b))
    }

    #[inline(always)]
    pub(crate) fn mul(a: u32, b: u32) -> u32 {
        each([a, b], |[a, b]| one::mul(a, b))
    }

    #[inline(always)]
    pub(crate) fn mul_add(a: u32, b: u32, c: u32) -> u32 {
        each([a, b, c], |[a, b, c]| one::mul_add(a, b, c))
    }

    #[inline(always)]
    pub(crate) fn min(a: u32, b: u32) -> u32 {
        each([a, b], |[a, b]| bf16::from_bits(a).min(bf16::from_bits(b)).to_bits())
    }

    #[inline(always)]
    pub(crate) fn max(a: u32, b: u32) -> u32 {
        each([a, b], |[a, b]| bf16::from_bits(a).max(bf16::from_bits(b)).to_bits())
    }

    #[inline(always)]
    pub(crate) fn from_singles(low: f32, high: f32) -> u32 {
        u32::from(one::from_single(high)) << 16 | u32::from(one::from_single(low))
    }
}
