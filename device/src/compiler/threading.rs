//! Conditions that LLVM's jump threading leaves where they are.

unsafe extern "C" {
    #[link_name = "llvm.is.constant.i32"]
    fn is_constant(number: u32) -> bool;
}

/// `number < end`, of which LLVM does not know that it has been there before, unless it knows the answer. Else it joins two branches
/// with this condition, and moves what stands between them into both: a call that all threads make together counts as one that some of them
/// may not reach, then.
#[inline(always)]
pub(crate) fn is_below(number: usize, end: usize) -> bool {
    let mut is_below = u32::from(number < end);
    // SAFETY: both compute nothing: a question to the compiler, and assembly without instructions.
    unsafe {
        if !is_constant(is_below) {
            core::arch::asm!("// {0}", inout(reg32) is_below, options(pure, nomem, nostack, preserves_flags));
        }
    }
    is_below != 0
}
