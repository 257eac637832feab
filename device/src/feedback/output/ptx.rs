//! Printing on a GPU: writes messages to the ring buffer that the host drains. It never waits: a message that
//! does not fit is dropped and counted.

use core::arch::asm;
use core::fmt;
use core::ptr::with_exposed_provenance_mut;

use super::{ENTRY_BYTES, OutputHeader, piece_bytes};
use crate::message::{Arguments, Length, Sink, each_word, send_flat};

unsafe extern "C" {
    /// [`super::OUTPUT_SYMBOL`]; the build step defines it in the PTX, and the host sets it before any
    /// launch.
    static __ferrogrid_output: u64;
}

/// Sends the message twice, the first time to measure its length.
#[cold]
#[inline(never)]
pub(super) fn print(text: fmt::Arguments<'_>) {
    // SAFETY: the symbol is a `u64` of the module that nothing writes to while kernels run.
    let address = unsafe { __ferrogrid_output };
    if address == 0 {
        return;
    }
    let ring = Ring { header: with_exposed_provenance_mut(address as usize) };
    let message = Arguments::of(text);
    let mut length = Length(0);
    send_flat(message, &mut length);
    let Some(mut piece) = ring.reserve(length.0) else { return };
    send_flat(message, &mut piece);
    piece.finish();
}

/// The buffer, which the host keeps alive for the rest of the process.
#[derive(Clone, Copy)]
struct Ring {
    header: *mut OutputHeader,
}

impl Ring {
    /// Reserves space for a message of `length` bytes.
    fn reserve(self, length: u64) -> Option<Piece> {
        // SAFETY: the host set it before it gave the buffer out, and does not change it.
        let capacity = unsafe { (*self.header).capacity };
        let fits = move |end: u64| end.saturating_sub(self.start()) <= capacity;
        let Some(bytes) = piece_bytes(length).filter(|&bytes| fits(self.reserved() + bytes)) else {
            self.lose_piece();
            return None;
        };
        // SAFETY: a counter of the header.
        let position = unsafe { add(&raw mut (*self.header).reserved, bytes) };
        if fits(position + bytes) {
            return Some(Piece { ring: self, capacity, position, length, written: 0 });
        }
        // Other threads took the space meanwhile. Pieces are counted before bytes, which the host reads
        // first.
        self.lose_piece();
        fence();
        // SAFETY: a counter of the header.
        unsafe { add(&raw mut (*self.header).lost_bytes, bytes) };
        None
    }

    /// The host has read everything before this position. It never passes a position that is reserved but not
    /// written.
    fn start(self) -> u64 {
        // SAFETY: an aligned word of the header, which the host may set meanwhile.
        unsafe { (&raw const (*self.header).start).read_volatile() }
    }

    fn reserved(self) -> u64 {
        // SAFETY: an aligned word of the header, which other threads add to meanwhile.
        unsafe { (&raw const (*self.header).reserved).read_volatile() }
    }

    fn lose_piece(self) {
        // SAFETY: a counter of the header.
        unsafe { add(&raw mut (*self.header).lost_pieces, 1) };
    }
}

/// A part of the ring that belongs to this thread until it is finished.
struct Piece {
    ring: Ring,
    capacity: u64,
    position: u64,
    length: u64,
    written: u64,
}

impl Piece {
    /// The word at `position`, a multiple of 8 inside the piece.
    fn at(&self, position: u64) -> *mut u64 {
        let offset = (position & (self.capacity - 1)) as usize;
        // SAFETY: the ring, `capacity` bytes long, follows the header, and the offset is below that.
        unsafe { self.ring.header.add(1).cast::<u8>().add(offset).cast() }
    }

    /// Passes the piece to the host.
    fn finish(self) {
        let entry = self.at(self.position);
        // SAFETY: both words are in the piece and aligned: positions are multiples of 16, and so is the
        // ring's length. The fence makes the message visible to the host before the first word is.
        unsafe {
            entry.add(1).write_volatile(self.length);
            fence();
            entry.write_volatile(self.position + 1);
        }
    }
}

impl Sink for Piece {
    fn word(&mut self, word: u64) {
        // Another thread may have changed the length of a text meanwhile.
        if self.written < self.length {
            // SAFETY: inside the piece.
            unsafe { self.at(self.position + ENTRY_BYTES + self.written).write_volatile(word) };
            self.written += 8;
        }
    }

    unsafe fn bytes(&mut self, start: *const u8, length: u64) {
        // SAFETY: the caller vouches for the bytes.
        unsafe { each_word(start, length, |word| self.word(word)) }
    }
}

/// Adds to a counter that the host reads, and returns its previous value. Only threads of this device add, so
/// device scope suffices. That matters: many machines have no atomic operations across the bus. [`fence`] and
/// the host's own loads order messages and counters for the host.
///
/// # Safety
/// `counter` is a counter of the header.
unsafe fn add(counter: *mut u64, amount: u64) -> u64 {
    let before: u64;
    // SAFETY: an aligned word of live memory that the device may write to; host memory has the same
    // address as a generic one and in the global window.
    unsafe {
        asm!(
            "atom.relaxed.gpu.global.add.u64 {before}, [{counter}], {amount};",
            before = out(reg64) before,
            counter = in(reg64) counter,
            amount = in(reg64) amount,
            options(nostack)
        );
    }
    before
}

/// Makes earlier writes visible to the host before later ones.
fn fence() {
    // SAFETY: a fence reaches no memory itself, and has no precondition.
    unsafe { asm!("fence.acq_rel.sys;", options(nostack)) };
}
