//! Integer instructions of the device that core lacks. The CPU device computes the same bits.

/// Integers whose product has a high half: `u32`, `i32`, `u64`, `i64`.
///
/// ```
/// use ferrogrid_device::integer::MulHi;
///
/// /// `x / 10` without a division, by a multiplication with 2^35 / 10, rounded up.
/// fn tenth(x: u32) -> u32 {
///     x.mul_hi(0xcccc_cccd) >> 3
/// }
/// assert_eq!([0, 9, 10, 12_345, u32::MAX].map(tenth), [0, 0, 1, 1234, 429_496_729]);
/// ```
pub trait MulHi: Copy + sealed::Sealed {
    /// The high half of the product, as if it were computed in twice the width (CUDA's `__umulhi`,
    /// `__mulhi`, `__umul64hi`, `__mul64hi`; PTX `mul.hi`).
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    /// assert_eq!(0x8000_0000_u32.mul_hi(6), 3);
    /// assert_eq!((-1_i64).mul_hi(1), -1);
    /// ```
    fn mul_hi(self, rhs: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! mul_hi {
    ($($ty:ty, $wide:ty, $intrinsic:literal;)*) => { $(
        impl sealed::Sealed for $ty {}

        impl MulHi for $ty {
            #[cfg(not(target_arch = "nvptx64"))]
            #[inline(always)]
            fn mul_hi(self, rhs: Self) -> Self {
                ((self as $wide * rhs as $wide) >> <$ty>::BITS) as $ty
            }

            // An intrinsic: otherwise LLVM continues in the double width with what is computed from the
            // result.
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn mul_hi(self, rhs: Self) -> Self {
                unsafe extern "C" {
                    #[link_name = $intrinsic]
                    safe fn mul_hi(a: $ty, b: $ty) -> $ty;
                }
                mul_hi(self, rhs)
            }
        }
    )* };
}

mul_hi! {
    u32, u64, "llvm.nvvm.mulhi.ui";
    i32, i64, "llvm.nvvm.mulhi.i";
    u64, u128, "llvm.nvvm.mulhi.ull";
    i64, i128, "llvm.nvvm.mulhi.ll";
}

/// Four bytes chosen from the eight of `a` (bytes 0 to 3) and `b` (4 to 7) (CUDA's `__byte_perm`, PTX
/// `prmt.b32`).
///
/// Nibble `i` of `selector` (of the low 16 bits; the others are ignored) makes byte `i` of the result:
/// its low three bits name the byte, and if its top bit is set, the byte's sign bit is repeated over
/// all eight bits.
///
/// ```
/// use ferrogrid_device::integer::byte_permute;
/// assert_eq!(byte_permute(0x3322_1100, 0x7766_5544, 0x0123), 0x0011_2233); // bytes reversed
/// assert_eq!(byte_permute(0x0000_0080, 0, 0x8880), 0xffff_ff80); // sign extended
/// ```
#[inline(always)]
pub fn byte_permute(a: u32, b: u32, selector: u32) -> u32 {
    instruction::byte_permute(a, b, selector)
}

/// The high 32 bits of the 64-bit number `high:low`, shifted left by `shift & 31` (CUDA's
/// `__funnelshift_l`, PTX `shf.l.wrap.b32`).
///
/// ```
/// use ferrogrid_device::integer::funnel_shift_left;
/// assert_eq!(funnel_shift_left(0x1234_5678, 0x9abc_def0, 8), 0x3456_789a);
/// ```
#[inline(always)]
pub fn funnel_shift_left(high: u32, low: u32, shift: u32) -> u32 {
    instruction::funnel_shift_left(high, low, shift)
}

/// The low 32 bits of the 64-bit number `high:low`, shifted right by `shift & 31` (CUDA's
/// `__funnelshift_r`, PTX `shf.r.wrap.b32`).
///
/// ```
/// use ferrogrid_device::integer::funnel_shift_right;
/// assert_eq!(funnel_shift_right(0x1234_5678, 0x9abc_def0, 8), 0x789a_bcde);
/// ```
#[inline(always)]
pub fn funnel_shift_right(high: u32, low: u32, shift: u32) -> u32 {
    instruction::funnel_shift_right(high, low, shift)
}

/// `|a - b| + sum`, wrapping (CUDA's `__sad`, PTX `sad.s32`).
///
/// ```
/// use ferrogrid_device::integer::sum_of_abs_diff;
/// assert_eq!(sum_of_abs_diff(-3, 4, 10), 17);
/// ```
#[inline(always)]
pub fn sum_of_abs_diff(a: i32, b: i32, sum: u32) -> u32 {
    instruction::sum_of_abs_diff(a, b, sum)
}

/// `|a - b| + sum`, wrapping (CUDA's `__usad`, PTX `sad.u32`).
///
/// ```
/// use ferrogrid_device::integer::sum_of_abs_diff_unsigned;
/// assert_eq!(sum_of_abs_diff_unsigned(3, u32::MAX, 4), 0);
/// ```
#[inline(always)]
pub fn sum_of_abs_diff_unsigned(a: u32, b: u32, sum: u32) -> u32 {
    instruction::sum_of_abs_diff_unsigned(a, b, sum)
}

/// The dot product of four signed bytes with four others, plus `sum`, wrapping; each word holds four
/// (CUDA's `__dp4a`, PTX `dp4a.s32.s32`).
///
/// ```
/// use ferrogrid_device::integer::dp4a;
/// let (a, b) = ([1_i8, -2, 3, -4], [5_i8, 6, 7, 8]);
/// let word = |bytes: [i8; 4]| u32::from_le_bytes(bytes.map(|byte| byte as u8));
/// assert_eq!(dp4a(word(a), word(b), 100), 100 + 5 - 12 + 21 - 32);
/// ```
#[inline(always)]
pub fn dp4a(a: u32, b: u32, sum: i32) -> i32 {
    instruction::dp4a(a, b, sum)
}

/// The dot product of four unsigned bytes with four others, plus `sum`, wrapping; each word holds four
/// (CUDA's `__dp4a`, PTX `dp4a.u32.u32`).
///
/// ```
/// use ferrogrid_device::integer::dp4a_unsigned;
/// assert_eq!(dp4a_unsigned(0xff_02_03_04, 0x01_01_01_01, 1), 255 + 2 + 3 + 4 + 1);
/// ```
#[inline(always)]
pub fn dp4a_unsigned(a: u32, b: u32, sum: u32) -> u32 {
    instruction::dp4a_unsigned(a, b, sum)
}

/// The device's instructions.
#[cfg(target_arch = "nvptx64")]
mod instruction {
    // SAFETY: each is LLVM's intrinsic of that name, with its signature; it reads nothing but its
    // arguments and takes all values of them.
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.prmt"]
        pub(super) safe fn byte_permute(a: u32, b: u32, selector: u32) -> u32;
        #[link_name = "llvm.fshl.i32"]
        pub(super) safe fn funnel_shift_left(high: u32, low: u32, shift: u32) -> u32;
        #[link_name = "llvm.fshr.i32"]
        pub(super) safe fn funnel_shift_right(high: u32, low: u32, shift: u32) -> u32;
    }

    macro_rules! with_sum {
        ($($name:ident($operand:ty, $sum:ty) = $instruction:literal;)*) => { $(
            #[inline(always)]
            pub(super) fn $name(a: $operand, b: $operand, sum: $sum) -> $sum {
                let result: $sum;
                // SAFETY: the instruction computes its result from its operands, all of whose values
                // it takes; it touches no memory, and threads need not run it together.
                unsafe {
                    core::arch::asm!(
                        $instruction,
                        out(reg32) result,
                        in(reg32) a,
                        in(reg32) b,
                        in(reg32) sum,
                        options(pure, nomem, nostack, preserves_flags)
                    );
                }
                result
            }
        )* };
    }

    with_sum! {
        sum_of_abs_diff(i32, u32) = "sad.s32 {}, {}, {}, {};";
        sum_of_abs_diff_unsigned(u32, u32) = "sad.u32 {}, {}, {}, {};";
        dp4a(u32, i32) = "dp4a.s32.s32 {}, {}, {}, {};";
        dp4a_unsigned(u32, u32) = "dp4a.u32.u32 {}, {}, {}, {};";
    }
}

/// The same in plain Rust.
#[cfg(not(target_arch = "nvptx64"))]
mod instruction {
    pub(super) fn byte_permute(a: u32, b: u32, selector: u32) -> u32 {
        let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
        u32::from_le_bytes(core::array::from_fn(|place| {
            let nibble = selector >> (4 * place);
            let byte = bytes[(nibble & 7) as usize];
            if nibble & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
        }))
    }

    #[inline(always)]
    pub(super) fn funnel_shift_left(high: u32, low: u32, shift: u32) -> u32 {
        ((joined(high, low) << (shift & 31)) >> 32) as u32
    }

    #[inline(always)]
    pub(super) fn funnel_shift_right(high: u32, low: u32, shift: u32) -> u32 {
        (joined(high, low) >> (shift & 31)) as u32
    }

    #[inline(always)]
    fn joined(high: u32, low: u32) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline(always)]
    pub(super) fn sum_of_abs_diff(a: i32, b: i32, sum: u32) -> u32 {
        a.abs_diff(b).wrapping_add(sum)
    }

    #[inline(always)]
    pub(super) fn sum_of_abs_diff_unsigned(a: u32, b: u32, sum: u32) -> u32 {
        a.abs_diff(b).wrapping_add(sum)
    }

    #[inline(always)]
    pub(super) fn dp4a(a: u32, b: u32, sum: i32) -> i32 {
        let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        products.fold(sum, |sum, (a, b)| sum.wrapping_add(i32::from(a as i8) * i32::from(b as i8)))
    }

    #[inline(always)]
    pub(super) fn dp4a_unsigned(a: u32, b: u32, sum: u32) -> u32 {
        let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        products.fold(sum, |sum, (a, b)| sum.wrapping_add(u32::from(a) * u32::from(b)))
    }
}
