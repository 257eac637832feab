//! Asynchronous copies of elements from global to shared memory, from `sm_80` on.

use core::arch::asm;

use super::Advance;
use crate::element::device_copy::DeviceCopy;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.isspacep.global"]
    fn isspacep_global(address: *const u8) -> bool;
}

/// The address within shared memory of a generic one there.
#[inline(always)]
pub(crate) fn within_shared<T>(to: *mut T) -> u32 {
    let within: u64;
    // SAFETY: it computes with an address and reaches no memory.
    unsafe {
        asm!("cvta.to.shared.u64 {}, {};", out(reg64) within, in(reg64) to, options(pure, nomem, nostack, preserves_flags));
    }
    within as u32
}

/// Starts to copy an element, or zeros, and returns whether it could: if it has 4, 8 or 16 bytes, is aligned to as many, and lies in
/// global memory.
///
/// # Safety
/// `to` is the address of an element in the block's shared memory, for any bits. Until [`wait`] has waited for the copy nothing else
/// reaches it, and nothing writes the source, or what is copied is not used.
#[inline(always)]
pub(super) unsafe fn start<T: DeviceCopy>(to: *mut T, from: Option<&T>) -> bool {
    let bytes = const { size_of::<T>() };
    let is_copied_at_once =
        const { matches!(size_of::<T>(), 4 | 8 | 16) && align_of::<T>() >= size_of::<T>() };
    // SAFETY: the address of an element, of which none is reached.
    let is_global = from.is_none_or(|from| unsafe { isspacep_global((&raw const *from).cast()) });
    if !(is_copied_at_once && is_global) {
        return false;
    }
    let (within, address) = (within_shared(to), from.map_or(core::ptr::null(), |from| &raw const *from));
    // The rest of the element becomes zeros.
    let copied = if from.is_some() { bytes as u32 } else { 0 };
    macro_rules! copy {
        ($level:literal, $bytes:literal) => {
            asm!(
                concat!("cp.async.", $level, ".shared.global [{}], [{}], ", $bytes, ", {};"),
                in(reg32) within, in(reg64) address, in(reg32) copied, options(nostack, preserves_flags),
            )
        };
    }
    // SAFETY: as the caller vouches; nothing is read at the address if nothing is copied.
    unsafe {
        match bytes {
            4 => copy!("ca", "4"),
            8 => copy!("ca", "8"),
            _ => copy!("cg", "16"), // not by L1
        }
    }
    true
}

/// The copies that the thread has started since the last call belong together.
#[inline(always)]
pub(super) fn commit() {
    // SAFETY: it reaches no memory.
    unsafe { asm!("cp.async.commit_group;", options(nostack, preserves_flags)) };
}

/// Waits for the thread's copies but those of the last `S::LAG` calls of [`commit`].
#[inline(always)]
pub(super) fn wait<S: Advance>() {
    // SAFETY: it waits, and LLVM moves no access to memory across it.
    unsafe { asm!("cp.async.wait_group {};", const S::LAG, options(nostack, preserves_flags)) };
}

/// Waits for all of the thread's copies.
#[inline(always)]
pub(super) fn wait_for_all() {
    // SAFETY: as in `wait`.
    unsafe { asm!("cp.async.wait_all;", options(nostack, preserves_flags)) };
}
