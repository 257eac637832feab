//! Panics on a GPU: the first panicking thread reports to the host, and every panicking thread exits. With
//! the feature `panic-trap` the whole grid traps instead.
//!
//! The build step redirects calls of core's panicking functions to [`direct`], where nothing is formatted. A
//! panic that it missed reaches the handler here, and has no message. `record` writes the report.

#[cfg(not(feature = "panic-trap"))]
mod direct;
#[cfg(not(feature = "panic-trap"))]
mod record;

use core::panic::PanicInfo;

#[cfg(all(not(feature = "panic-trap"), target_feature = "sm_90a"))]
pub(crate) use record::give_up_at_once;
#[cfg(not(feature = "panic-trap"))]
pub(crate) use record::{give_up, is_reported};

/// Whether a thread of the launch has panicked: never while any runs, because a trap ends them all.
#[cfg(feature = "panic-trap")]
#[inline(always)]
pub(crate) fn is_reported() -> bool {
    false
}

/// Ends the calling thread, which waits for one that has panicked.
#[cfg(feature = "panic-trap")]
pub(crate) fn give_up() -> ! {
    // SAFETY: `trap` ends the grid.
    unsafe { core::arch::nvptx::trap() }
}

#[cfg(all(feature = "panic-trap", target_feature = "sm_90a"))]
pub(crate) use give_up as give_up_at_once;

#[cfg(not(feature = "panic-trap"))]
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let text = info.message().as_str().unwrap_or("a panic without a message");
    let record = record::Record::claim();
    if let Some(location) = info.location() {
        record.locate(location);
    }
    record.complete(crate::failure::CONSTANT, text.as_ptr().addr() as u64, text.len() as u64)
}

#[cfg(feature = "panic-trap")]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: `trap` ends the grid; nothing of this thread runs after it.
    unsafe { core::arch::nvptx::trap() }
}
