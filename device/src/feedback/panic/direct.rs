//! Replacements for core's panicking functions, with the same arguments: the build step redirects core's
//! calls here by name. They must not call `core::fmt`, which would cost registers.

use core::arch::asm;
use core::hint::black_box;
use core::panic::Location;

use super::is_reported;
use super::record::Record;
use crate::failure::{BOUNDS, CONSTANT, LANES, MESSAGE};
use crate::message::Arguments;

/// In place of `core::panicking::panic_bounds_check`.
#[unsafe(no_mangle)]
extern "C" fn __ferrogrid_panic_bounds_check(index: usize, length: usize, location: &Location<'_>) -> ! {
    let record = Record::claim();
    record.locate(location);
    record.complete(BOUNDS, index as u64, length as u64)
}

/// In place of `core::panicking::panic_fmt`: `core::fmt::Arguments` is passed as two words.
///
/// # Safety
/// The words are those of a `core::fmt::Arguments`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __ferrogrid_panic_fmt(
    template: *const u8,
    arguments: *const u8,
    location: &Location<'_>,
) -> ! {
    let record = Record::claim();
    record.locate(location);
    // SAFETY: the caller vouches for them; they live in its frame.
    let length = record.write_message(unsafe { Arguments::from_words(template, arguments) });
    record.complete(MESSAGE, 0, length)
}

/// In place of `core::panicking::panic_fmt`, where the message is a constant: `core::fmt::Arguments` is
/// then the text's address, and twice its length plus one.
#[unsafe(no_mangle)]
extern "C" fn __ferrogrid_panic_constant(text: *const u8, tagged: usize, location: &Location<'_>) -> ! {
    let record = Record::claim();
    record.locate(location);
    record.complete(CONSTANT, text.addr() as u64, (tagged >> 1) as u64)
}

/// In place of `core::panicking::panic` and `core::option::expect_failed`.
#[unsafe(no_mangle)]
extern "C" fn __ferrogrid_panic_text(text: *const u8, length: usize, location: &Location<'_>) -> ! {
    let record = Record::claim();
    record.locate(location);
    record.complete(CONSTANT, text.addr() as u64, length as u64)
}

/// Called by a check where the lanes `missing` of an operation's `mask` are absent; the operation is at this
/// location.
#[unsafe(no_mangle)]
extern "C" fn __ferrogrid_panic_lanes(
    mask: u32,
    missing: u32,
    file: *const u8,
    length: usize,
    line: u32,
    column: u32,
) -> ! {
    // A lane that has panicked is missing, too. Its own report says more, so it gets time to write it.
    for _ in 0..100 {
        if is_reported() {
            break;
        }
        // SAFETY: waiting has no precondition.
        unsafe { asm!("nanosleep.u32 1000;", options(nomem, nostack, preserves_flags)) }
    }
    let record = Record::claim();
    record.locate_in(file, length, line, column);
    record.complete(LANES, mask.into(), missing.into())
}

/// Panics in each of these ways, with arguments that the compiler does not know. Otherwise it would see that
/// all callers agree on an argument, and drop it from core's functions. Nothing calls this function, and the
/// build step removes it from the PTX.
///
/// # Safety
/// `text` is UTF-8 of that length.
#[unsafe(no_mangle)]
unsafe extern "C" fn __ferrogrid_panic_signatures(index: usize, text: *const u8, length: usize) -> u8 {
    // SAFETY: the caller vouches for it.
    let text = unsafe { core::slice::from_raw_parts(text, length) };
    // SAFETY: as above.
    let message = unsafe { core::str::from_utf8_unchecked(text) };
    match black_box(index) {
        0 => panic!("{message}"),
        1 => black_box(None).expect(message),
        _ => text[index],
    }
}
