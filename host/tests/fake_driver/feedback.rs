//! Reports of kernels to the host: panics, through the record of their launch, and text, through a
//! variable of their module; written here as device code would.

use std::sync::atomic::{AtomicU64, Ordering};

/// The variable of a module through which kernels print.
pub(crate) static OUTPUT: AtomicU64 = AtomicU64::new(0);

/// As a thread that panics does: a bounds check of index 7 and length 5.
pub(crate) fn panic_as_kernels_do(record: usize) {
    panic(record, 1, 7, 5);
}

/// As a thread that panics with a constant message does. The message stays, as those of modules do.
pub(crate) fn panic_with(record: usize, message: String) {
    let message: &'static str = message.leak();
    panic(record, 2, message.as_ptr() as u64, message.len() as u64);
}

/// What a thread that panics does, from `FailureRecord`'s layout: into a free record it writes a panic of that kind at
/// `src/kernels.rs:33:9`, in block (1, 0, 0), thread (2, 0, 0).
fn panic(record: usize, kind: u32, first: u64, second: u64) {
    const FILE: &str = "src/kernels.rs";
    assert_ne!(record, 0, "a kernel that may panic is given a record");
    let record = record as *mut u32;
    // SAFETY: the launch passed the address of a `FailureRecord`, which the host keeps until its stream has run the launch. Only
    // this thread runs work of streams, under the lock of `State`; the host reads the record after that.
    if unsafe { *record } != 0 {
        return;
    }
    // SAFETY: as above; the offsets are those of the fields, ten words and then four of 8 bytes.
    unsafe {
        for (at, word) in [kind, 1, 0, 0, 2, 0, 0, 33, 9].into_iter().enumerate() {
            *record.add(1 + at) = word;
        }
        let words = record.add(10).cast::<u64>();
        for (at, word) in [FILE.as_ptr() as u64, FILE.len() as u64, first, second].into_iter().enumerate() {
            *words.add(at) = word;
        }
        *record = 2;
    }
}

/// What a thread that prints does, from `OutputHeader`'s layout: one literal text, if it fits.
pub(crate) fn print_as_kernels_do(text: &'static str) {
    let header = OUTPUT.load(Ordering::Relaxed) as *mut u64;
    // SAFETY: a module that prints was loaded, and at that the host set `OUTPUT` to the address of an `OutputHeader`, which has six
    // words and then `capacity` bytes, and is never freed. Work runs under the lock of `State`, so no other kernel writes to it
    // meanwhile, and the host reads only up to what has been published.
    unsafe {
        let (start, capacity, bytes) = (*header.add(3), *header.add(4), 16 + 32);
        let position = *header;
        if position + bytes - start > capacity {
            *header.add(2) += 1;
            return;
        }
        *header += bytes;
        let words = [24, text.as_ptr() as u64, text.len() as u64, u64::MAX];
        let at = |offset: u64| header.add(6).add(((position + offset) % capacity / 8) as usize);
        for (word, offset) in words.into_iter().zip([8_u64, 16, 24, 32]) {
            *at(offset) = word;
        }
        *at(0) = position + 1;
    }
}
