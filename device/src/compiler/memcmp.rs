//! `memcmp`, which LLVM calls to compare slices of bytes and strings; no other crate provides it on this
//! target.

/// C's `memcmp`: 0 if `length` bytes at `a` and `b` are the same, else the sign of the first difference.
///
/// # Safety
/// Both are valid for reads of `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, length: usize) -> i32 {
    for at in 0..length {
        // SAFETY: below `length`.
        let (a, b) = unsafe { (*a.add(at), *b.add(at)) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}
