//! The ring buffer through which the threads of a GPU pass printed text to the host.

/// The name of the module's variable (a `u64`) that holds the address of an [`OutputHeader`], or 0 if there
/// is no buffer. Only modules that print have it.
pub const OUTPUT_SYMBOL: &str = "__ferrogrid_output";

/// The header of each piece of text, and the alignment of pieces: the position plus one, and the length of
/// the message in bytes, as two `u64`.
pub const ENTRY_BYTES: u64 = 16;

/// The header of the buffer; `capacity` bytes, a power of two, follow it. They are a ring: position `p` lies
/// at `p % capacity`.
///
/// A thread reserves a position by adding the size of its piece to `reserved`. If the piece fits between
/// `start` and `start + capacity`, the thread writes the message, and last, before it, the position plus one.
/// Otherwise it adds the size to `lost_bytes`. So `reserved` is the sum of what was written, what was lost,
/// and what threads are about to write; the host knows how much of it it has read.
#[repr(C, align(16))]
pub struct OutputHeader {
    /// The position of the next piece; the device adds to it.
    pub reserved: u64,
    /// Bytes that were reserved but lost; the device adds to it.
    pub lost_bytes: u64,
    /// Pieces of text that were lost; the device adds to it.
    pub lost_pieces: u64,
    /// Everything before this position may be overwritten; the host sets it.
    pub start: u64,
    /// The size of the ring in bytes; the host sets it once.
    pub capacity: u64,
    /// Padding to the alignment.
    pub unused: u64,
}

/// The size in the ring of a piece with a message of `length` bytes; `None` if it exceeds any ring.
#[inline]
pub const fn piece_bytes(length: u64) -> Option<u64> {
    match length.checked_next_multiple_of(ENTRY_BYTES) {
        Some(bytes) => bytes.checked_add(ENTRY_BYTES),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_a_header_and_whole_entries() {
        let known = [(0, Some(16)), (1, Some(32)), (16, Some(32)), (17, Some(48)), (u64::MAX - 15, None)];
        for (length, bytes) in known {
            assert_eq!(piece_bytes(length), bytes, "{length}");
        }
    }
}
