//! The instructions of tensor cores, from `sm_80` on: LLVM's intrinsics, which it knows to be convergent.

use core::panic::Location;

use super::unrolled;
use crate::compiler::mark;
use crate::warp::Warp;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.isspacep.shared"]
    safe fn isspacep_shared(address: *const u8) -> bool;
}

/// Whether it is an address in shared memory, which LLVM mostly knows.
#[inline(always)]
pub(super) fn is_shared<T>(address: *const T) -> bool {
    isspacep_shared(address.cast())
}

#[repr(C)]
struct Words4(u32, u32, u32, u32);
#[repr(C)]
struct Words2(u32, u32);

macro_rules! loads {
    ($($(#[$doc:meta])* $name:ident $intrinsic:literal $words:ident($($word:ident),*) as $array:ty;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// The addresses of the first eight threads for each matrix, one matrix after the other, are those of 16 bytes in the shared
        /// memory of the block, aligned to 16, which none writes.
        #[track_caller]
        #[inline(always)]
        pub(super) unsafe fn $name<T>(row: *const T) -> $array {
            unsafe extern "unadjusted" {
                #[link_name = $intrinsic]
                fn ldmatrix(row: *const u8) -> $words;
            }
            mark::of_warp(Location::caller(), None);
            // SAFETY: as the caller vouches; that all threads of the warp come is proven for the mark, or checked there.
            let $words($($word),*) = unsafe { ldmatrix(row.cast()) };
            [$($word),*]
        }
    )* };
}

loads! {
    /// Four matrices of 8 rows of 16 bytes.
    load_four "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p0" Words4(a, b, c, d) as [u32; 4];
    /// Four matrices, transposed.
    load_four_transposed "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p0" Words4(a, b, c, d) as [u32; 4];
    /// Two matrices.
    load_two "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p0" Words2(a, b) as [u32; 2];
    /// Two matrices, transposed.
    load_two_transposed "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p0" Words2(a, b) as [u32; 2];
}

macro_rules! products {
    ($($name:ident $intrinsic:literal $word:ty, $sum:ty as $sums:ident;)*) => { $(
        #[track_caller]
        #[inline(always)]
        pub(super) fn $name<const M: usize, const N: usize>(
            _: &Warp,
            a: &[[$word; 4]; M],
            b: &[[$word; 2]; N],
            sums: &mut [[[$sum; 4]; N]; M],
        ) {
            #[repr(C)]
            struct $sums($sum, $sum, $sum, $sum);

            unsafe extern "unadjusted" {
                #[link_name = $intrinsic]
                fn mma(
                    a0: $word, a1: $word, a2: $word, a3: $word, b0: $word, b1: $word,
                    c0: $sum, c1: $sum, c2: $sum, c3: $sum,
                ) -> $sums;
            }
            unrolled!(m in M, {
                unrolled!(n in N, {
                    let ([a0, a1, a2, a3], [b0, b1], [c0, c1, c2, c3]) = (a[m], b[n], sums[m][n]);
                    mark::of_warp(Location::caller(), None);
                    // SAFETY: it reads its arguments only; that all threads of the warp come is proven for the mark, or checked there.
                    let $sums(c0, c1, c2, c3) = unsafe { mma(a0, a1, a2, a3, b0, b1, c0, c1, c2, c3) };
                    sums[m][n] = [c0, c1, c2, c3];
                });
            });
        }
    )* };
}

products! {
    product_i8 "llvm.nvvm.mma.m16n8k32.row.col.s8" u32, i32 as Sums;
    product_u8 "llvm.nvvm.mma.m16n8k32.row.col.u8" u32, i32 as Sums;
    product_tf32 "llvm.nvvm.mma.m16n8k8.row.col.tf32" u32, f32 as Sums;
}

#[cfg(feature = "half")]
products! {
    product_bf16 "llvm.nvvm.mma.m16n8k16.row.col.bf16" u32, f32 as Sums;
}

#[cfg(target_feature = "sm_90")]
products! {
    product_f64 "llvm.nvvm.mma.m16n8k8.row.col.f64" f64, f64 as Sums;
}

/// Of 8 x 4 and 4 x 8 elements, the only ones before `sm_90`: two products along the depth for each half of the rows.
#[cfg(not(target_feature = "sm_90"))]
#[track_caller]
#[inline(always)]
pub(super) fn product_f64<const M: usize, const N: usize>(
    _: &Warp,
    a: &[[f64; 4]; M],
    b: &[[f64; 2]; N],
    sums: &mut [[[f64; 4]; N]; M],
) {
    #[repr(C)]
    struct Sums(f64, f64);

    unsafe extern "unadjusted" {
        #[link_name = "llvm.nvvm.mma.m8n8k4.row.col.f64"]
        fn mma(a: f64, b: f64, c0: f64, c1: f64) -> Sums;
    }
    unrolled!(m in M, {
        unrolled!(n in N, {
            unrolled!(word in 4, {
                let first = word % 2 * 2;
                let [c0, c1] = [sums[m][n][first], sums[m][n][first + 1]];
                mark::of_warp(Location::caller(), None);
                // SAFETY: it reads its arguments only; that all threads of the warp come is proven for the mark, or checked there.
                let Sums(c0, c1) = unsafe { mma(a[m][word], b[n][word / 2], c0, c1) };
                [sums[m][n][first], sums[m][n][first + 1]] = [c0, c1];
            });
        });
    });
}

/// Inline assembly, where LLVM has no intrinsic that rustc can call for the target. LLVM does not know it to be convergent, but leaves it
/// behind the barrier of the warp, which is.
#[cfg(any(feature = "half", target_feature = "sm_89"))]
macro_rules! assembled {
    ($($name:ident $instruction:literal;)*) => { $(
        #[track_caller]
        #[inline(always)]
        pub(super) fn $name<const M: usize, const N: usize>(
            warp: &Warp,
            a: &[[u32; 4]; M],
            b: &[[u32; 2]; N],
            sums: &mut [[[f32; 4]; N]; M],
        ) {
            warp.sync();
            unrolled!(m in M, {
                unrolled!(n in N, {
                    let [c0, c1, c2, c3] = &mut sums[m][n];
                    // SAFETY: it reads its arguments only; all threads of the warp come from the barrier.
                    unsafe {
                        core::arch::asm!(
                            concat!($instruction, " {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}};"),
                            inout(reg32) *c0, inout(reg32) *c1, inout(reg32) *c2, inout(reg32) *c3,
                            in(reg32) a[m][0], in(reg32) a[m][1], in(reg32) a[m][2], in(reg32) a[m][3],
                            in(reg32) b[n][0], in(reg32) b[n][1],
                            options(nostack, preserves_flags),
                        );
                    }
                });
            });
        }
    )* };
}

// The intrinsic takes vectors of `f16`, with which rustc calls no function of this target.
#[cfg(feature = "half")]
assembled! {
    product_f16 "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
}

// The intrinsics are for PTX 8.4, which needs a newer driver; the build step raises the version of modules with these instructions.
#[cfg(target_feature = "sm_89")]
assembled! {
    product_f8e4m3 "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
    product_f8e5m2 "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32";
}
