//! Cache operators as PTX: one instruction each, written as `asm!` because LLVM has no intrinsics for them.
//!
//! Where LLVM knows that the element is in global memory, as for a kernel's slices, it folds `is_global`;
//! otherwise the address is tested at run time, because the instructions are for global memory only. The
//! braces are a scope for the converted address. They end in the line of the instruction, because a brace
//! that begins a line ends a function.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::ptr;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.isspacep.global"]
    fn isspacep_global(address: *const u8) -> bool;
}

#[inline(always)]
fn is_global<T>(place: *const T) -> bool {
    // SAFETY: looks at the address only.
    unsafe { isspacep_global(place.cast()) }
}

/// The first, which is of PTX 7.4, or the second where PTX is older.
#[cfg(any(target_feature = "sm_87", target_feature = "ptx74"))]
macro_rules! since_7_4 {
    ($operator:literal, $_older:literal) => {
        $operator
    };
}

#[cfg(not(any(target_feature = "sm_87", target_feature = "ptx74")))]
macro_rules! since_7_4 {
    ($_operator:literal, $older:literal) => {
        $older
    };
}

/// The value's bytes as the first ones of a `W`.
///
/// # Safety
/// It has no fewer.
#[inline(always)]
unsafe fn register<T, W>(value: T) -> MaybeUninit<W> {
    let mut word = MaybeUninit::<W>::uninit();
    // SAFETY: the bytes are within both, as the caller vouches, and the two do not overlap.
    unsafe {
        ptr::copy_nonoverlapping(
            ptr::from_ref(&value).cast::<MaybeUninit<u8>>(),
            word.as_mut_ptr().cast(),
            size_of::<T>(),
        );
    }
    word
}

/// The value whose bytes are the first ones of `word`.
///
/// # Safety
/// It has no fewer, and they are those of a valid `T`.
#[inline(always)]
unsafe fn value<T, W>(word: W) -> T {
    // SAFETY: within `word`, and valid, as the caller vouches.
    unsafe { ptr::from_ref(&word).cast::<T>().read_unaligned() }
}

macro_rules! load {
    ($place:ident, $class:ident, $ty:literal, $operator:expr $(, $policy:ident)?) => {{
        let word;
        asm!(
            "{{ .reg .u64 %a; cvta.to.global.u64 %a, {place};",
            concat!("ld.global", $operator, ".", $ty, " {word}, [%a]", hint!($($policy)?), "; }}"),
            place = in(reg64) $place,
            word = out($class) word,
            $($policy = in(reg64) $policy,)?
            options(pure, readonly, nostack, preserves_flags),
        );
        word
    }};
}

macro_rules! store {
    ($place:ident, $class:ident, $ty:literal, $operator:expr, $word:expr $(, $policy:ident)?) => {
        asm!(
            "{{ .reg .u64 %a; cvta.to.global.u64 %a, {place};",
            concat!("st.global", $operator, ".", $ty, " [%a], {word}", hint!($($policy)?), "; }}"),
            place = in(reg64) $place,
            word = in($class) $word,
            $($policy = in(reg64) $policy,)?
            options(nostack, preserves_flags),
        )
    };
}

/// The operand behind the others, where there is one.
macro_rules! hint {
    () => {
        ""
    };
    ($policy:ident) => {
        concat!(", {", stringify!($policy), "}")
    };
}

/// The `T` at `place`.
macro_rules! load_any {
    ($place:ident, $operator:expr $(, $policy:ident)?) => {
        match crate::cache::width::<T>() {
            1 => {
                let word: u16 = load!($place, reg16, "u8", $operator $(, $policy)?);
                value(word as u8)
            }
            2 => {
                let word: u16 = load!($place, reg16, "u16", $operator $(, $policy)?);
                value(word)
            }
            4 => {
                let word: u32 = load!($place, reg32, "u32", $operator $(, $policy)?);
                value(word)
            }
            8 => {
                let word: u64 = load!($place, reg64, "u64", $operator $(, $policy)?);
                value(word)
            }
            _ => {
                let (a, b, c, d): (u32, u32, u32, u32);
                asm!(
                    "{{ .reg .u64 %a; cvta.to.global.u64 %a, {place};",
                    concat!("ld.global", $operator, ".v4.u32 {{{a}, {b}, {c}, {d}}}, [%a]", hint!($($policy)?), "; }}"),
                    place = in(reg64) $place,
                    a = out(reg32) a,
                    b = out(reg32) b,
                    c = out(reg32) c,
                    d = out(reg32) d,
                    $($policy = in(reg64) $policy,)?
                    options(pure, readonly, nostack, preserves_flags),
                );
                value([a, b, c, d])
            }
        }
    };
}

/// Writes `new` to `place`.
macro_rules! store_any {
    ($place:ident, $new:ident, $operator:expr $(, $policy:ident)?) => {
        match crate::cache::width::<T>() {
            1 => store!($place, reg16, "u8", $operator, register::<T, u16>($new) $(, $policy)?),
            2 => store!($place, reg16, "u16", $operator, register::<T, u16>($new) $(, $policy)?),
            4 => store!($place, reg32, "u32", $operator, register::<T, u32>($new) $(, $policy)?),
            8 => store!($place, reg64, "u64", $operator, register::<T, u64>($new) $(, $policy)?),
            _ => {
                let [a, b, c, d]: [MaybeUninit<u32>; 4] = register::<T, _>($new).assume_init();
                asm!(
                    "{{ .reg .u64 %a; cvta.to.global.u64 %a, {place};",
                    concat!("st.global", $operator, ".v4.u32 [%a], {{{a}, {b}, {c}, {d}}}", hint!($($policy)?), "; }}"),
                    place = in(reg64) $place,
                    a = in(reg32) a,
                    b = in(reg32) b,
                    c = in(reg32) c,
                    d = in(reg32) d,
                    $($policy = in(reg64) $policy,)?
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

macro_rules! loads {
    ($($name:ident = $operator:expr;)*) => { $(
        #[inline(always)]
        pub(super) fn $name<T: Copy>(place: &T) -> T {
            let place = ptr::from_ref(place);
            if !is_global(place) {
                // SAFETY: it was a reference.
                return unsafe { *place };
            }
            // SAFETY: the place is in global memory, holds a valid `T` of this size, and is aligned to its size.
            unsafe { load_any!(place, $operator) }
        }
    )* };
}

macro_rules! stores {
    ($($name:ident = $operator:expr;)*) => { $(
        #[inline(always)]
        pub(super) fn $name<T: Copy>(place: &mut T, new: T) {
            let place = ptr::from_mut(place);
            if !is_global(place) {
                // SAFETY: it was an exclusive reference.
                return unsafe { *place = new };
            }
            // SAFETY: the place is in global memory, this thread's alone, for a `T` of this size, and aligned to it.
            unsafe { store_any!(place, new, $operator) }
        }
    )* };
}

macro_rules! prefetches {
    ($($name:ident = $level:literal;)*) => { $(
        #[inline(always)]
        pub(super) fn $name<T>(place: &T) {
            let place = ptr::from_ref(place);
            if !is_global(place) {
                return;
            }
            // SAFETY: the place is in global memory; a prefetch changes no memory, and nothing waits for it.
            unsafe {
                asm!(
                    "{{ .reg .u64 %a; cvta.to.global.u64 %a, {place};",
                    concat!("prefetch.global.", $level, " [%a]; }}"),
                    place = in(reg64) place,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    )* };
}

loads! {
    ldca = ".ca";
    ldcg = ".cg";
    ldcs = ".cs";
    ldlu = ".lu";
    load_no_allocate = since_7_4!(".L1::no_allocate", ".cg");
    load_evict_first = since_7_4!(".L1::evict_first", ".cs");
    load_evict_last = since_7_4!(".L1::evict_last", "");
}

stores! {
    stwb = ".wb";
    stcg = ".cg";
    stcs = ".cs";
    stwt = ".wt";
    store_no_allocate = since_7_4!(".L1::no_allocate", ".cg");
    store_evict_first = since_7_4!(".L1::evict_first", ".cs");
    store_evict_last = since_7_4!(".L1::evict_last", "");
}

prefetches! {
    prefetch_l1 = "L1";
    prefetch_l2 = "L2";
}

/// Second-level policies: opaque words that an instruction makes (PTX `createpolicy`), of PTX 7.4.
#[cfg(any(target_feature = "sm_87", target_feature = "ptx74"))]
mod policy {
    use super::*;
    use crate::cache::{L2Policy, PrimaryPriority, SecondaryPriority};

    /// One instruction for each pair of priorities, which are part of its name.
    macro_rules! policy {
        ($primary:ident, $secondary:ident, $form:literal, $operands:literal, $($name:ident = $class:tt $value:expr),*) => {{
            use PrimaryPriority::*;
            use SecondaryPriority as Or;
            match ($primary, $secondary) {
                (EvictLast, Or::EvictUnchanged) => policy!(@ $form, ".L2::evict_last", $operands, $($name = $class $value),*),
                (EvictLast, Or::EvictFirst) => policy!(@ $form, ".L2::evict_last.L2::evict_first", $operands, $($name = $class $value),*),
                (EvictNormal, Or::EvictUnchanged) => policy!(@ $form, ".L2::evict_normal", $operands, $($name = $class $value),*),
                (EvictNormal, Or::EvictFirst) => policy!(@ $form, ".L2::evict_normal.L2::evict_first", $operands, $($name = $class $value),*),
                (EvictFirst, Or::EvictUnchanged) => policy!(@ $form, ".L2::evict_first", $operands, $($name = $class $value),*),
                (EvictFirst, Or::EvictFirst) => policy!(@ $form, ".L2::evict_first.L2::evict_first", $operands, $($name = $class $value),*),
                (EvictUnchanged, Or::EvictUnchanged) => policy!(@ $form, ".L2::evict_unchanged", $operands, $($name = $class $value),*),
                (EvictUnchanged, Or::EvictFirst) => policy!(@ $form, ".L2::evict_unchanged.L2::evict_first", $operands, $($name = $class $value),*),
            }
        }};
        (@ $form:literal, $priorities:literal, $operands:literal, $($name:ident = $class:tt $value:expr),*) => {{
            let bits: u64;
            asm!(
                concat!("createpolicy.", $form, $priorities, ".b64 {bits}, ", $operands, ";"),
                bits = out(reg64) bits,
                $($name = in($class) $value,)*
                options(pure, nomem, nostack, preserves_flags),
            );
            L2Policy { bits }
        }};
    }

    /// `fraction` is above 0, and no more than 1.
    #[inline(always)]
    pub(in crate::memory::cache) fn fractional(
        primary: PrimaryPriority,
        fraction: f32,
        secondary: SecondaryPriority,
    ) -> L2Policy {
        // SAFETY: makes a word of its operands, of which the fraction is in bounds.
        unsafe { policy!(primary, secondary, "fractional", "{fraction}", fraction = reg32 fraction) }
    }

    /// `primary_bytes` is no more than `bytes`.
    #[inline(always)]
    pub(in crate::memory::cache) fn range<T>(
        primary: PrimaryPriority,
        start: *const T,
        [primary_bytes, bytes]: [u32; 2],
        secondary: SecondaryPriority,
    ) -> L2Policy {
        if bytes == 0 || !is_global(start) {
            return fractional(PrimaryPriority::EvictUnchanged, 1.0, SecondaryPriority::EvictUnchanged);
        }
        // SAFETY: makes a word of its operands; the address, which is in global memory, is not read from.
        unsafe {
            policy!(
                primary, secondary, "range", "[{start}], {primary_bytes}, {bytes}",
                start = reg64 start, primary_bytes = reg32 primary_bytes, bytes = reg32 bytes
            )
        }
    }

    #[inline(always)]
    pub(in crate::memory::cache) fn load<T: Copy>(place: &T, policy: L2Policy) -> T {
        let (place, policy) = (ptr::from_ref(place), policy.bits);
        if !is_global(place) {
            // SAFETY: it was a reference.
            return unsafe { *place };
        }
        // SAFETY: the place is in global memory, holds a valid `T` of this size, and is aligned to its size; the policy was
        // made by `createpolicy`.
        unsafe { load_any!(place, ".L2::cache_hint", policy) }
    }

    #[inline(always)]
    pub(in crate::memory::cache) fn store<T: Copy>(place: &mut T, new: T, policy: L2Policy) {
        let (place, policy) = (ptr::from_mut(place), policy.bits);
        if !is_global(place) {
            // SAFETY: it was an exclusive reference.
            return unsafe { *place = new };
        }
        // SAFETY: the place is in global memory, this thread's alone, for a `T` of this size, and aligned to it; the policy
        // was made by `createpolicy`.
        unsafe { store_any!(place, new, ".L2::cache_hint", policy) }
    }
}

#[cfg(any(target_feature = "sm_87", target_feature = "ptx74"))]
pub(super) use policy::{fractional, load, range, store};
