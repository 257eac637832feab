//! The shared memory of a block on the CPU: poisoned before each block, reused between blocks.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr;

/// The alignment of shared memory in bytes.
const ALIGNMENT: usize = 128;

/// What every byte of shared memory holds when a block starts. On a GPU it can be anything, so a kernel that reads before
/// it writes should not find zeros here.
pub(crate) const POISON: u8 = 0xA5;

/// Shared memory for one block at a time.
pub(crate) struct SharedMemory {
    /// Null while `capacity` is 0.
    pointer: *mut u8,
    capacity: usize,
    bytes: usize,
}

// SAFETY: it owns its memory, as a `Vec<u8>` does.
unsafe impl Send for SharedMemory {}

impl Default for SharedMemory {
    fn default() -> Self {
        SharedMemory { pointer: ptr::null_mut(), capacity: 0, bytes: 0 }
    }
}

impl SharedMemory {
    /// Makes `bytes` ready for the next block; `false` if there is not so much memory.
    #[must_use]
    pub(crate) fn prepare(&mut self, bytes: usize) -> bool {
        if bytes > self.capacity && !self.grow(bytes) {
            return false;
        }
        self.bytes = bytes;
        if bytes > 0 {
            // SAFETY: the allocation has at least `bytes`.
            unsafe { self.pointer.write_bytes(POISON, bytes) };
        }
        true
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) else { return false };
        // SAFETY: `bytes` is more than the capacity, so not 0.
        let pointer = unsafe { alloc(layout) };
        if pointer.is_null() {
            return false;
        }
        self.free();
        (self.pointer, self.capacity) = (pointer, bytes);
        true
    }

    /// The memory of the current block and its size; well-aligned and not null even if the size is 0.
    #[inline]
    pub(crate) fn get(&self) -> (*mut u8, usize) {
        if self.bytes == 0 { (ptr::without_provenance_mut(ALIGNMENT), 0) } else { (self.pointer, self.bytes) }
    }

    fn free(&mut self) {
        if self.capacity == 0 {
            return;
        }
        if let Ok(layout) = Layout::from_size_align(self.capacity, ALIGNMENT) {
            // SAFETY: allocated with this layout in `grow`; replaced or dropped by the caller.
            unsafe { dealloc(self.pointer, layout) };
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_finds_poison_whatever_the_last_one_left() {
        let mut shared = SharedMemory::default();
        for bytes in [0, 1, 300, 48 * 1024, 7, 300] {
            assert!(shared.prepare(bytes));
            let (pointer, length) = shared.get();
            assert!(length == bytes && pointer.addr() % ALIGNMENT == 0 && !pointer.is_null());
            // SAFETY: the memory of this block alone.
            let memory = unsafe { std::slice::from_raw_parts_mut(pointer, length) };
            assert!(memory.iter().all(|&byte| byte == POISON), "{bytes} bytes");
            memory.fill(0);
        }
    }

    #[test]
    fn an_allocation_beyond_all_memory_is_refused_and_others_stay() {
        let mut shared = SharedMemory::default();
        assert!(shared.prepare(64));
        assert!(!shared.prepare(usize::MAX));
        assert!(shared.prepare(64));
    }
}
