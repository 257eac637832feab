//! Marks in the PTX that say what the build step must prove of the threads that execute them. It removes each
//! mark that it has proven. No assembler accepts the rest, so unproven code never runs.

use core::arch::asm;
use core::panic::Location;

macro_rules! marks {
    ($($(#[$doc:meta])* $name:ident $level:literal;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(place: &Location<'_>, region: Option<*const u8>) {
            let (file, line, column) = (place.file(), place.line(), place.column());
            let (start, length) = (file.as_ptr(), file.len());
            // SAFETY: the assembly is empty.
            unsafe {
                match region {
                    None => asm!(
                        concat!("ferrogrid.together.", $level, " {0}, {1}, {2}, {3};"),
                        in(reg64) start, in(reg64) length, in(reg32) line, in(reg32) column,
                        options(nomem, nostack, preserves_flags),
                    ),
                    Some(region) => asm!(
                        concat!("ferrogrid.together.", $level, " {0}, {1}, {2}, {3}, {4};"),
                        in(reg64) start, in(reg64) length, in(reg32) line, in(reg32) column, in(reg64) region,
                        options(nomem, nostack, preserves_flags),
                    ),
                }
            }
        }
    )* };
}

// All threads arrive together, and pass the same region if there is one. An unproven warp operation gets a
// check. `place` is the call in the user's code.
marks! {
    /// The lanes that the next warp operation names arrive together.
    of_warp "warp";
    /// All threads of the block arrive together.
    of_block "block";
    /// All threads of the cluster arrive together.
    of_cluster "cluster";
    /// All threads of the grid arrive together, in a cooperative launch.
    of_grid "grid";
}

/// Asserts that `word` is the same in all threads of the block.
#[inline(always)]
pub(crate) fn assumed(word: u32) -> u32 {
    let same: u32;
    // SAFETY: the assembly returns the word unchanged.
    unsafe {
        asm!("ferrogrid.assumed.block {0}, {1};", out(reg32) same, in(reg32) word, options(pure, nomem, nostack, preserves_flags));
    }
    same
}
