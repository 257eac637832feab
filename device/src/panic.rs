//! What a panic does on the device: it stops the grid with a trap, which the host sees as a failed
//! launch. It must not know what panicked.

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: `trap` ends the grid; nothing of this thread runs after it.
    unsafe { core::arch::nvptx::trap() }
}
