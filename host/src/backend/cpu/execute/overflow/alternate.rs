//! The stack on which a CPU thread handles signals when its own is used up.
//!
//! std gives one to each thread that it starts, but only in programs whose `main` is Rust's.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

/// Enough for the handler above all registers that a processor may have (AMX: 11 KiB).
const BYTES: usize = 64 * 1024;

thread_local! {
    static SEEN_TO: Cell<bool> = const { Cell::new(false) };
    static OWN: Cell<Option<Alternate>> = const { Cell::new(None) };
}

/// Sees to it that this CPU thread has one.
#[inline]
pub(super) fn ensure() {
    if !SEEN_TO.replace(true) && !is_there() {
        OWN.set(Alternate::install());
    }
}

fn is_there() -> bool {
    let mut current = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: a null stack only asks; all-zero is a valid `stack_t` if the call should fail.
    let current = unsafe {
        libc::sigaltstack(ptr::null(), current.as_mut_ptr());
        current.assume_init()
    };
    current.ss_flags & libc::SS_DISABLE == 0
}

/// A signal stack of this CPU thread, until the thread ends.
struct Alternate(*mut c_void);

impl Alternate {
    /// `None` if there is no memory for it; then an overflow ends the process without a word.
    fn install() -> Option<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: fresh memory, wherever the system likes.
        let memory = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return None;
        }
        let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: BYTES };
        // SAFETY: the memory is this thread's alone, until `drop` takes it back.
        unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
        Some(Alternate(memory))
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: BYTES };
        // SAFETY: it was mapped by `install`, in this size, and no signal is handled on it now.
        unsafe {
            libc::sigaltstack(&none, ptr::null_mut());
            libc::munmap(self.0, BYTES);
        }
    }
}
