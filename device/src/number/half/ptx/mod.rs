//! The device's instructions for 16-bit numbers, on their bits, and replacements for those that an
//! architecture lacks; `packed` has the instructions for two numbers at once.
//!
//! `f16` is rustc's own `f16`, which LLVM supports; LLVM has nothing for `bf16`.

/// One instruction from registers to a register, with no effect but its result.
macro_rules! instruction {
    ($text:literal, $result:ty = $out:ident, $($class:ident $operand:expr),*) => {{
        let result: $result;
        // SAFETY: the instruction computes its result from its operands, all of whose values it takes; it
        // touches no memory, and threads need not run it together.
        unsafe {
            core::arch::asm!($text, out($out) result, $(in($class) $operand,)* options(pure, nomem, nostack, preserves_flags));
        }
        result
    }};
}

// After the macro that it uses.
pub(super) mod packed;

/// `f16`: every architecture that we know has its instructions.
pub(super) mod binary16 {
    unsafe extern "C" {
        // SAFETY: LLVM's intrinsic of that name and signature; it reads nothing but its arguments.
        #[expect(improper_ctypes, reason = "an intrinsic has no calling convention")]
        #[link_name = "llvm.fma.f16"]
        safe fn fma(a: f16, b: f16, c: f16) -> f16;
    }

    macro_rules! operators {
        ($($name:ident = $operator:tt;)*) => { $(
            #[inline(always)]
            pub(crate) fn $name(a: u16, b: u16) -> u16 {
                (f16::from_bits(a) $operator f16::from_bits(b)).to_bits()
            }
        )* };
    }

    macro_rules! comparisons {
        ($($name:ident = $operator:tt;)*) => { $(
            #[inline(always)]
            pub(crate) fn $name(a: u16, b: u16) -> bool {
                f16::from_bits(a) $operator f16::from_bits(b)
            }
        )* };
    }

    operators! { add = +; sub = -; mul = *; }
    comparisons! { eq = ==; lt = <; le = <=; }

    #[inline(always)]
    pub(crate) fn mul_add(a: u16, b: u16, c: u16) -> u16 {
        fma(f16::from_bits(a), f16::from_bits(b), f16::from_bits(c)).to_bits()
    }

    #[inline(always)]
    pub(crate) fn to_single(a: u16) -> f32 {
        f16::from_bits(a) as f32
    }

    #[inline(always)]
    pub(crate) fn from_single(a: f32) -> u16 {
        (a as f16).to_bits()
    }

    #[inline(always)]
    pub(crate) fn from_double(a: f64) -> u16 {
        (a as f16).to_bits()
    }

    /// `ex2.approx.f16`.
    #[cfg(any(target_feature = "sm_80", target_feature = "ptx70"))]
    #[inline(always)]
    pub(crate) fn fast_exp2(a: u16) -> u16 {
        instruction!("ex2.approx.f16 {}, {};", u16 = reg16, reg16 a)
    }

    /// In `f32`: this ISA lacks the instruction.
    #[cfg(not(any(target_feature = "sm_80", target_feature = "ptx70")))]
    #[inline(always)]
    pub(crate) fn fast_exp2(a: u16) -> u16 {
        from_single(crate::math::FastMath::fast_exp2(to_single(a)))
    }

    /// `tanh.approx.f16`.
    #[cfg(any(target_feature = "sm_80", target_feature = "ptx70"))]
    #[inline(always)]
    pub(crate) fn fast_tanh(a: u16) -> u16 {
        instruction!("tanh.approx.f16 {}, {};", u16 = reg16, reg16 a)
    }

    /// In `f32`: this ISA lacks the instruction.
    #[cfg(not(any(target_feature = "sm_80", target_feature = "ptx70")))]
    #[inline(always)]
    pub(crate) fn fast_tanh(a: u16) -> u16 {
        from_single(crate::math::FastMath::fast_tanh(to_single(a)))
    }
}

/// `bf16`: the upper half of an `f32`.
pub(super) mod brain16 {
    #[inline(always)]
    pub(crate) fn to_single(a: u16) -> f32 {
        f32::from_bits(u32::from(a) << 16)
    }

    /// `cvt.rn.bf16.f32`.
    #[cfg(target_feature = "sm_80")]
    #[inline(always)]
    pub(crate) fn from_single(a: f32) -> u16 {
        instruction!("cvt.rn.bf16.f32 {}, {};", u16 = reg16, reg32 a)
    }

    #[cfg(not(target_feature = "sm_80"))]
    #[inline(always)]
    pub(crate) fn from_single(a: f32) -> u16 {
        ::half::bf16::from_f32(a).to_bits()
    }

    #[inline(always)]
    pub(crate) fn from_double(a: f64) -> u16 {
        ::half::bf16::from_f64(a).to_bits()
    }

    /// `add.rn.bf16` and so on.
    #[cfg(target_feature = "sm_90")]
    mod arithmetic {
        macro_rules! operators {
            ($($name:ident = $text:literal;)*) => { $(
                #[inline(always)]
                pub(crate) fn $name(a: u16, b: u16) -> u16 {
                    instruction!($text, u16 = reg16, reg16 a, reg16 b)
                }
            )* };
        }

        operators! {
            add = "add.rn.bf16 {}, {}, {};";
            sub = "sub.rn.bf16 {}, {}, {};";
            mul = "mul.rn.bf16 {}, {}, {};";
        }
    }

    /// By `fma.rn.bf16`, whose other operation does nothing: `x * 1`, `x + -0`.
    #[cfg(all(target_feature = "sm_80", not(target_feature = "sm_90")))]
    mod arithmetic {
        use super::mul_add;

        const ONE: u16 = 0x3F80;
        const NEGATIVE_ONE: u16 = 0xBF80;
        const NEGATIVE_ZERO: u16 = 0x8000;

        #[inline(always)]
        pub(crate) fn add(a: u16, b: u16) -> u16 {
            mul_add(a, ONE, b)
        }

        #[inline(always)]
        pub(crate) fn sub(a: u16, b: u16) -> u16 {
            mul_add(b, NEGATIVE_ONE, a)
        }

        #[inline(always)]
        pub(crate) fn mul(a: u16, b: u16) -> u16 {
            mul_add(a, b, NEGATIVE_ZERO)
        }
    }

    /// In `f32`, which has more than twice the bits: two roundings are as good as one.
    #[cfg(not(target_feature = "sm_80"))]
    mod arithmetic {
        use super::{from_single, to_single};

        #[inline(always)]
        pub(crate) fn add(a: u16, b: u16) -> u16 {
            from_single(to_single(a) + to_single(b))
        }

        #[inline(always)]
        pub(crate) fn sub(a: u16, b: u16) -> u16 {
            from_single(to_single(a) - to_single(b))
        }

        #[inline(always)]
        pub(crate) fn mul(a: u16, b: u16) -> u16 {
            from_single(to_single(a) * to_single(b))
        }
    }

    pub(crate) use arithmetic::{add, mul, sub};

    /// `fma.rn.bf16`.
    #[cfg(target_feature = "sm_80")]
    #[inline(always)]
    pub(crate) fn mul_add(a: u16, b: u16, c: u16) -> u16 {
        instruction!("fma.rn.bf16 {}, {}, {}, {};", u16 = reg16, reg16 a, reg16 b, reg16 c)
    }

    #[cfg(not(target_feature = "sm_80"))]
    #[inline(always)]
    pub(crate) fn mul_add(a: u16, b: u16, c: u16) -> u16 {
        from_single(super::super::exact::fused(to_single(a), to_single(b), to_single(c)))
    }

    macro_rules! comparisons {
        ($($name:ident = $operator:tt;)*) => { $(
            #[inline(always)]
            pub(crate) fn $name(a: u16, b: u16) -> bool {
                to_single(a) $operator to_single(b)
            }
        )* };
    }

    comparisons! { eq = ==; lt = <; le = <=; }

    /// `ex2.approx.ftz.bf16`, which takes subnormal numbers as zero: the power is 1 either way.
    #[cfg(target_feature = "sm_90")]
    #[inline(always)]
    pub(crate) fn fast_exp2(a: u16) -> u16 {
        instruction!("ex2.approx.ftz.bf16 {}, {};", u16 = reg16, reg16 a)
    }

    /// In `f32`: this architecture lacks the instruction.
    #[cfg(not(target_feature = "sm_90"))]
    #[inline(always)]
    pub(crate) fn fast_exp2(a: u16) -> u16 {
        from_single(crate::math::FastMath::fast_exp2(to_single(a)))
    }

    /// `tanh.approx.bf16`.
    #[cfg(target_feature = "sm_90")]
    #[inline(always)]
    pub(crate) fn fast_tanh(a: u16) -> u16 {
        instruction!("tanh.approx.bf16 {}, {};", u16 = reg16, reg16 a)
    }

    /// In `f32`: this architecture lacks the instruction.
    #[cfg(not(target_feature = "sm_90"))]
    #[inline(always)]
    pub(crate) fn fast_tanh(a: u16) -> u16 {
        from_single(crate::math::FastMath::fast_tanh(to_single(a)))
    }
}
