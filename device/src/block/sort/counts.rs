//! Digit counts of a radix sort: those of one thread in registers, those of the block in shared memory.

#![expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]

use crate::thread::Thread;

/// Words of a thread's counts, with two digits in each.
pub(super) const WORDS: usize = 8;

/// The words that a thread sums: an odd number, to avoid bank conflicts. The last row is 0.
pub(super) const SEGMENT: usize = WORDS + 1;

/// The number of each digit among a thread's items, two in a word, `d` and `d + 8`; and for each item, how
/// many before it have the same digit. All stay in registers: 4 bits per digit suffice for up to 15 items, 8
/// bits otherwise.
#[inline(always)]
pub(super) fn own_counts<const N: usize>(digits: [u32; N]) -> ([u32; WORDS], [u32; N]) {
    let mut before = [0; N];
    if N < 16 {
        let mut counts = 0_u64;
        for k in 0..N {
            let shift = 4 * digits[k];
            before[k] = (counts >> shift) as u32 & 15;
            counts += 1 << shift;
        }
        let (low, high) = (counts as u32, (counts >> 32) as u32);
        return (core::array::from_fn(|d| low >> (4 * d) & 15 | (high >> (4 * d) & 15) << 16), before);
    }
    let (mut low, mut high) = (0_u64, 0_u64);
    for k in 0..N {
        let (shift, is_low) = (8 * (digits[k] % 8), digits[k] < 8);
        before[k] = (if is_low { low } else { high } >> shift) as u32 & 255;
        let one = 1 << shift;
        (low, high) = if is_low { (low + one, high) } else { (low, high + one) };
    }
    let word = |d: usize| (low >> (8 * d)) as u32 & 255 | ((high >> (8 * d)) as u32 & 255) << 16;
    (core::array::from_fn(word), before)
}

/// The block's counts in shared memory: one row for each word of a thread, one column for each thread.
#[derive(Clone, Copy)]
pub(super) struct Counts<const B: usize> {
    start: *mut u32,
    /// The thread's rank.
    rank: u32,
}

impl<const B: usize> Counts<B> {
    /// For memory of `SEGMENT * B` words.
    #[inline(always)]
    pub(super) fn new<const R: usize>(start: *mut u32, thread: &Thread<'_, R>) -> Self {
        Counts { start, rank: thread.thread_rank() }
    }

    /// Writes the thread's own words, and 0 into the last row.
    ///
    /// # Safety
    /// Other threads only write their own columns.
    #[inline(always)]
    pub(super) unsafe fn write_columns(self, words: [u32; WORDS]) {
        let column = self.start.wrapping_add(self.rank as usize);
        for row in 0..WORDS {
            // SAFETY: within the memory, and this thread's alone, as the caller vouches.
            unsafe { column.add(row * B).write(words[row]) };
        }
        // SAFETY: as above.
        unsafe { column.add(WORDS * B).write(0) };
    }

    /// The words that the thread sums, consecutive in row order.
    ///
    /// # Safety
    /// No thread writes.
    #[inline(always)]
    pub(super) unsafe fn read_segment(self) -> [u32; SEGMENT] {
        let first = self.start.wrapping_add(self.rank as usize * SEGMENT);
        // SAFETY: within the memory, and not written now, as the caller vouches.
        core::array::from_fn(|at| unsafe { first.add(at).read() })
    }

    /// Replaces those words by their exclusive prefix sums, starting at `first`.
    ///
    /// # Safety
    /// Other threads only write such words of their own.
    #[inline(always)]
    pub(super) unsafe fn write_segment(self, words: [u32; SEGMENT], first: u32) {
        let place = self.start.wrapping_add(self.rank as usize * SEGMENT);
        let mut sum = first;
        for at in 0..SEGMENT {
            // SAFETY: within the memory, and this thread's alone, as the caller vouches.
            unsafe { place.add(at).write(sum) };
            sum += words[at];
        }
    }

    /// The count of one of the thread's digits.
    ///
    /// # Safety
    /// No thread writes.
    #[inline(always)]
    pub(super) unsafe fn read(self, digit: u32) -> u32 {
        let word = (digit % 8) * B as u32 + self.rank;
        // SAFETY: within the memory, half a word, and not written now, as the caller vouches.
        u32::from(unsafe { self.start.cast::<u16>().add((2 * word + digit / 8) as usize).read() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted<const N: usize>(digit: u32) {
        let (words, before) = own_counts([digit; N]);
        assert_eq!(before, core::array::from_fn(|k| k as u32), "{N} items with digit {digit}");
        let count = |d: u32| words[d as usize % WORDS] >> (16 * (d / WORDS as u32)) & 0xffff;
        for other in 0..16 {
            assert_eq!(count(other), if other == digit { N as u32 } else { 0 }, "{N} items, digit {other}");
        }
    }

    #[test]
    fn equal_digits_are_counted_up_to_the_last_item() {
        for digit in 0..16 {
            counted::<1>(digit);
            counted::<15>(digit);
            counted::<16>(digit);
            counted::<17>(digit);
        }
    }
}
