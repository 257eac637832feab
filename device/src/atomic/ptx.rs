//! Atomic operations of a GPU: one PTX instruction each (`ld`, `st`, `atom`) that names its ordering and
//! scope, after a `fence.sc` for `SeqCst`. LLVM's own atomics are unusable: its NVPTX back end (22) emits
//! `atomicrmw` without ordering and scope.
//!
//! Where LLVM knows the state space (global for a kernel's slices, shared for regions), it folds `is_global`
//! and `is_shared`, and `atom.global` or `atom.shared` remains; otherwise the address is tested at run time.
//! The braces are a scope for the converted address. They end in the line of the instruction, because a brace
//! that begins a line ends a function.

use core::arch::asm;
use core::sync::atomic::Ordering;

use super::scope::Reach;
use super::value::sealed::Arithmetic;
use super::value::{Cell, Manner, Word};
#[cfg(feature = "half")]
use crate::half::{Bf16x2, F16x2};

unsafe extern "C" {
    #[link_name = "llvm.nvvm.isspacep.global"]
    fn isspacep_global(address: *const u8) -> bool;
    #[link_name = "llvm.nvvm.isspacep.shared"]
    fn isspacep_shared(address: *const u8) -> bool;
}

#[inline(always)]
fn is_global<T>(place: *mut T) -> bool {
    // SAFETY: looks at the address only.
    unsafe { isspacep_global(place.cast_const().cast()) }
}

#[inline(always)]
fn is_shared<T>(place: *mut T) -> bool {
    // SAFETY: looks at the address only.
    unsafe { isspacep_shared(place.cast_const().cast()) }
}

/// `fence.sc`, which makes the following operation `SeqCst` (the mapping of the PTX memory model).
#[inline(always)]
fn fence_sc(reach: Reach) {
    // SAFETY: a fence reaches no memory itself, and has no precondition.
    unsafe {
        match reach {
            Reach::Block => asm!("fence.sc.cta;", options(nostack)),
            Reach::Device => asm!("fence.sc.gpu;", options(nostack)),
            Reach::System => asm!("fence.sc.sys;", options(nostack)),
        }
    }
}

/// `$instruction!` with the scope of `$reach` as a literal, and these semantics.
macro_rules! scoped {
    ($reach:expr, $instruction:ident!($semantics:literal, $($rest:tt)*)) => {
        match $reach {
            Reach::Block => $instruction!($semantics, "cta", $($rest)*),
            Reach::Device => $instruction!($semantics, "gpu", $($rest)*),
            Reach::System => $instruction!($semantics, "sys", $($rest)*),
        }
    };
}

/// `$instruction!`, which reads and writes, in the given manner.
macro_rules! in_manner {
    ($manner:ident, $instruction:ident!($($rest:tt)*)) => {
        match $manner.order {
            Ordering::Relaxed => scoped!($manner.reach, $instruction!("relaxed", $($rest)*)),
            Ordering::Acquire => scoped!($manner.reach, $instruction!("acquire", $($rest)*)),
            Ordering::Release => scoped!($manner.reach, $instruction!("release", $($rest)*)),
            Ordering::AcqRel => scoped!($manner.reach, $instruction!("acq_rel", $($rest)*)),
            _ => {
                fence_sc($manner.reach);
                scoped!($manner.reach, $instruction!("acq_rel", $($rest)*))
            }
        }
    };
}

/// `$instruction!` with the conversion of the address, and the name of the space, that `$place` is in.
macro_rules! in_space {
    ($place:ident, $instruction:ident!($($rest:tt)*)) => {
        if is_global($place) {
            $instruction!("{{ .reg .u64 %a; cvta.to.global.u64 %a, {place};", ".global", $place, $($rest)*)
        } else if is_shared($place) {
            $instruction!("{{ .reg .u64 %a; cvta.to.shared.u64 %a, {place};", ".shared", $place, $($rest)*)
        } else {
            $instruction!("{{ .reg .u64 %a; mov.u64 %a, {place};", "", $place, $($rest)*)
        }
    };
}

/// `atom` with one operand; the previous value.
macro_rules! atom {
    ($semantics:literal, $scope:literal, $operation:expr, $class:ident, $place:ident, $operand:ident) => {
        in_space!($place, atom_in!($semantics, $scope, $operation, $class, $operand))
    };
}

macro_rules! atom_in {
    ($convert:literal, $space:literal, $place:ident, $semantics:literal, $scope:literal, $operation:expr, $class:ident, $operand:ident) => {{
        let old;
        asm!(
            $convert,
            concat!("atom.", $semantics, ".", $scope, $space, ".", $operation, " {old}, [%a], {operand}; }}"),
            place = in(reg64) $place,
            operand = in($class) $operand,
            old = out($class) old,
            options(nostack),
        );
        old
    }};
}

/// `atom.cas`; the previous value.
macro_rules! atom_cas {
    ($semantics:literal, $scope:literal, $bits:literal, $class:ident, $place:ident, $expected:ident, $new:ident) => {
        in_space!($place, atom_cas_in!($semantics, $scope, $bits, $class, $expected, $new))
    };
}

macro_rules! atom_cas_in {
    ($convert:literal, $space:literal, $place:ident, $semantics:literal, $scope:literal, $bits:literal, $class:ident, $expected:ident, $new:ident) => {{
        let old;
        asm!(
            $convert,
            concat!("atom.", $semantics, ".", $scope, $space, ".cas.", $bits, " {old}, [%a], {expected}, {new}; }}"),
            place = in(reg64) $place,
            expected = in($class) $expected,
            new = in($class) $new,
            old = out($class) old,
            options(nostack),
        );
        old
    }};
}

/// `ld`; the value.
macro_rules! ld {
    ($semantics:literal, $scope:literal, $bits:literal, $class:ident, $place:ident) => {
        in_space!($place, ld_in!($semantics, $scope, $bits, $class))
    };
}

macro_rules! ld_in {
    ($convert:literal, $space:literal, $place:ident, $semantics:literal, $scope:literal, $bits:literal, $class:ident) => {{
        let value;
        asm!(
            $convert,
            concat!("ld.", $semantics, ".", $scope, $space, ".", $bits, " {value}, [%a]; }}"),
            place = in(reg64) $place,
            value = out($class) value,
            options(nostack),
        );
        value
    }};
}

/// `st`.
macro_rules! st {
    ($semantics:literal, $scope:literal, $bits:literal, $class:ident, $place:ident, $value:ident) => {
        in_space!($place, st_in!($semantics, $scope, $bits, $class, $value))
    };
}

macro_rules! st_in {
    ($convert:literal, $space:literal, $place:ident, $semantics:literal, $scope:literal, $bits:literal, $class:ident, $value:ident) => {
        asm!(
            $convert,
            concat!("st.", $semantics, ".", $scope, $space, ".", $bits, " [%a], {value}; }}"),
            place = in(reg64) $place,
            value = in($class) $value,
            options(nostack),
        )
    };
}

macro_rules! cell {
    ($ty:ident, $class:ident, $bits:literal) => {
        impl Cell for $ty {
            #[inline(always)]
            unsafe fn load(place: *mut Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe {
                    match manner.order {
                        Ordering::Relaxed => scoped!(manner.reach, ld!("relaxed", $bits, $class, place)),
                        Ordering::Acquire => scoped!(manner.reach, ld!("acquire", $bits, $class, place)),
                        Ordering::Release | Ordering::AcqRel => {
                            panic!("a load writes nothing: its ordering cannot release")
                        }
                        _ => {
                            fence_sc(manner.reach);
                            scoped!(manner.reach, ld!("acquire", $bits, $class, place))
                        }
                    }
                }
            }

            #[inline(always)]
            unsafe fn store(place: *mut Self, value: Self, manner: Manner) {
                // SAFETY: the caller's.
                unsafe {
                    match manner.order {
                        Ordering::Relaxed => {
                            scoped!(manner.reach, st!("relaxed", $bits, $class, place, value))
                        }
                        Ordering::Release => {
                            scoped!(manner.reach, st!("release", $bits, $class, place, value))
                        }
                        Ordering::Acquire | Ordering::AcqRel => {
                            panic!("a store reads nothing: its ordering cannot acquire")
                        }
                        _ => {
                            fence_sc(manner.reach);
                            scoped!(manner.reach, st!("release", $bits, $class, place, value))
                        }
                    }
                }
            }
        }
    };
}

cell!(u8, reg16, "b8");
cell!(u16, reg16, "b16");
cell!(u32, reg32, "b32");
cell!(u64, reg64, "b64");

macro_rules! word {
    ($ty:ident, $class:ident, $bits:literal) => {
        impl Word for $ty {
            #[inline(always)]
            unsafe fn swap(place: *mut Self, value: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { in_manner!(manner, atom!(concat!("exch.", $bits), $class, place, value)) }
            }

            #[inline(always)]
            unsafe fn compare_and_swap(place: *mut Self, expected: Self, new: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { in_manner!(manner, atom_cas!($bits, $class, place, expected, new)) }
            }

            #[inline(always)]
            unsafe fn and(place: *mut Self, operand: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { in_manner!(manner, atom!(concat!("and.", $bits), $class, place, operand)) }
            }

            #[inline(always)]
            unsafe fn or(place: *mut Self, operand: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { in_manner!(manner, atom!(concat!("or.", $bits), $class, place, operand)) }
            }

            #[inline(always)]
            unsafe fn xor(place: *mut Self, operand: Self, manner: Manner) -> Self {
                // SAFETY: the caller's.
                unsafe { in_manner!(manner, atom!(concat!("xor.", $bits), $class, place, operand)) }
            }
        }
    };
}

word!(u32, reg32, "b32");
word!(u64, reg64, "b64");

/// `Arithmetic` with one `atom` for each operation that PTX has for the type.
macro_rules! arithmetic {
    ($ty:ident, $class:ident, $($name:ident = $operation:literal),*) => {
        impl Arithmetic for $ty {
            $(
                #[inline(always)]
                unsafe fn $name(place: *mut Self, value: Self, manner: Manner) -> Self {
                    // SAFETY: the caller's.
                    unsafe { in_manner!(manner, atom!($operation, $class, place, value)) }
                }
            )*
        }
    };
}

// Two's complement: there is one addition for signed and unsigned, and for 64 bits only `add.u64`.
arithmetic!(u32, reg32, fetch_add = "add.u32", fetch_min = "min.u32", fetch_max = "max.u32");
arithmetic!(i32, reg32, fetch_add = "add.u32", fetch_min = "min.s32", fetch_max = "max.s32");
arithmetic!(u64, reg64, fetch_add = "add.u64", fetch_min = "min.u64", fetch_max = "max.u64");
arithmetic!(i64, reg64, fetch_add = "add.u64", fetch_min = "min.s64", fetch_max = "max.s64");
arithmetic!(f32, reg32, fetch_add = "add.f32");
arithmetic!(f64, reg64, fetch_add = "add.f64");

/// Both halves of a pair at once, each atomically.
#[cfg(feature = "half")]
impl Arithmetic for F16x2 {
    #[inline(always)]
    unsafe fn fetch_add(place: *mut Self, value: Self, manner: Manner) -> Self {
        let operand = value.to_bits();
        // SAFETY: the caller's.
        F16x2::from_bits(unsafe { in_manner!(manner, atom!("add.noftz.f16x2", reg32, place, operand)) })
    }
}

#[cfg(all(feature = "half", target_feature = "sm_90"))]
impl Arithmetic for Bf16x2 {
    #[inline(always)]
    unsafe fn fetch_add(place: *mut Self, value: Self, manner: Manner) -> Self {
        let operand = value.to_bits();
        // SAFETY: the caller's.
        Bf16x2::from_bits(unsafe { in_manner!(manner, atom!("add.noftz.bf16x2", reg32, place, operand)) })
    }
}

/// These architectures lack the instruction: a loop around `atom.cas`.
#[cfg(all(feature = "half", not(target_feature = "sm_90")))]
impl Arithmetic for Bf16x2 {
    #[inline(always)]
    unsafe fn fetch_add(place: *mut Self, value: Self, manner: Manner) -> Self {
        // SAFETY: the caller's.
        unsafe { super::value::update(place, manner, |found| found + value) }
    }
}
