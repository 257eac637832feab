//! The address of a block's shared memory, and the layout of regions in it, one after the other. All of it is
//! what CUDA calls dynamic: the launch passes the total size, so one rule serves regions of any size.

use super::{Shared, SharedArray, SharedElement};
use crate::thread::Thread;

/// The alignment of regions in bytes.
#[doc(hidden)]
pub const ALIGNMENT: usize = 16;

/// The offset of the next region after one at `offset` with `bytes` bytes.
#[doc(hidden)]
#[inline(always)]
pub const fn offset_after(offset: usize, bytes: usize) -> usize {
    (offset + bytes).next_multiple_of(ALIGNMENT)
}

/// What a thread does with a region before and after the kernel's function.
#[doc(hidden)]
pub struct Around<A> {
    start: *mut A,
    is_first: bool,
    begin: unsafe fn(*mut A),
    end: unsafe fn(*mut A),
}

impl<A> Around<A> {
    /// # Safety
    /// Nothing has used the region; once.
    #[inline(always)]
    pub unsafe fn begin(&self) {
        if self.is_first {
            // SAFETY: the first thread of the block; and the caller's.
            unsafe { (self.begin)(self.start) }
        }
    }

    /// # Safety
    /// After `begin`; once.
    #[inline(always)]
    pub unsafe fn end(self) {
        if self.is_first {
            // SAFETY: the first thread of the block; and the caller's.
            unsafe { (self.end)(self.start) }
        }
    }
}

/// The region of an array `offset` bytes into the shared memory of the thread's block, and what the thread does with it before and after
/// the kernel's function. What cannot be shared memory is an error of this call alone.
///
/// # Safety
/// The launch gave the block so much memory, and the thread makes the region once.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn array_region<'b, A: SharedArray<Element: SharedElement>, const R: usize, const ID: usize>(
    thread: &Thread<'_, R>,
    offset: usize,
) -> (Shared<'b, A, ID>, Around<A>) {
    // SAFETY: the caller's.
    let start = unsafe { region::<A, R>(thread, offset) };
    let around = Around { start, is_first: thread.thread_rank() == 0, begin: A::begin, end: A::end };
    // SAFETY: the caller's.
    (unsafe { Shared::from_raw(start) }, around)
}

/// The address `offset` bytes into the shared memory of the thread's block.
///
/// # Safety
/// The launch gave the block more than `offset` bytes, or the address is not used.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn region<T, const R: usize>(thread: &Thread<'_, R>, offset: usize) -> *mut T {
    const { assert!(align_of::<T>() <= ALIGNMENT, "shared memory is aligned to 16 bytes") };
    // SAFETY: within the block's shared memory, as the caller vouches.
    unsafe { start_for(thread).add(offset).cast() }
}

#[cfg(not(target_arch = "nvptx64"))]
#[inline]
fn start_for<const R: usize>(thread: &Thread<'_, R>) -> *mut u8 {
    thread.block.shared().0
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn start_for<const R: usize>(_: &Thread<'_, R>) -> *mut u8 {
    start()
}

#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(".extern .shared .align 16 .b8 ferrogrid_shared[];");

/// The block's shared memory as a generic address.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(super) fn start() -> *mut u8 {
    let start: *mut u8;
    // SAFETY: the code takes an address and reaches no memory.
    unsafe {
        core::arch::asm!(
            "{{ .reg .u64 %t; mov.u64 %t, ferrogrid_shared; cvta.shared.u64 {0}, %t; }}",
            out(reg64) start,
            options(pure, nomem, nostack),
        );
        in_shared(start)
    }
}

/// Returns `start` and tells LLVM that it is in shared memory, which makes the accesses `ld.shared` and
/// `st.shared`.
///
/// # Safety
/// It is a generic address in shared memory.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn in_shared(start: *mut u8) -> *mut u8 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.isspacep.shared"]
        fn isspacep_shared(address: *const u8) -> bool;
    }
    // SAFETY: what is assumed holds of the address. The empty code between keeps LLVM from dropping the assumption before it is
    // of use.
    unsafe {
        let is_shared = isspacep_shared(start);
        core::arch::asm!("// {0}", in(reg32) u32::from(is_shared), options(nomem, nostack));
        core::hint::assert_unchecked(is_shared);
        // Avoids a null check at run time for an `Option` of an element.
        core::hint::assert_unchecked(!start.is_null());
    }
    start
}
