//! Memory of the CPU device: allocation, copies, fills, all done at once by the calling thread. It
//! must not know about order: its callers see to that.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};

use super::device::CpuDevice;
use crate::error::{Error, Result};
use crate::memory::{ALIGNMENT, Contents};

/// `bytes` (not 0) of fresh memory.
pub(super) fn allocate(device: &CpuDevice, bytes: usize, contents: Contents) -> Result<*mut u8> {
    let pointer = match Layout::from_size_align(bytes, ALIGNMENT) {
        // SAFETY: the layout is not of size 0.
        Ok(layout) if bytes > 0 => unsafe {
            match contents {
                Contents::Uninitialised => alloc(layout),
                Contents::Zeroed => alloc_zeroed(layout),
            }
        },
        _ => std::ptr::null_mut(),
    };
    if pointer.is_null() { Err(out_of_memory(device, bytes)) } else { Ok(pointer) }
}

#[cold]
pub(super) fn out_of_memory(device: &CpuDevice, bytes: usize) -> Error {
    let memory = device.memory_info();
    Error::OutOfMemory {
        device: device.to_string().into(),
        requested: bytes as u64,
        free: memory.map(|memory| memory.free),
        total: memory.map(|memory| memory.total),
    }
}

/// Frees what `allocate` gave.
///
/// # Safety
/// `pointer` is from `allocate` of `bytes`, and nothing uses it any more.
pub(super) unsafe fn free(pointer: *mut u8, bytes: usize) {
    let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) else { return };
    // SAFETY: allocated with this layout, and freed once, as the caller vouches.
    unsafe { dealloc(pointer, layout) };
}

/// Copies host memory into memory that nothing has used yet, at once.
///
/// # Safety
/// Both are `bytes` of memory, and no work uses `target`.
pub(crate) unsafe fn initialise_from_host(target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
    // SAFETY: the caller vouches for both; fresh memory does not overlap a slice of the host.
    unsafe { target.copy_from_nonoverlapping(source, bytes) };
    Ok(())
}

/// Writes `pattern` (not empty) `count` times.
///
/// # Safety
/// `target` has room for it, and nothing else uses it meanwhile.
pub(super) unsafe fn fill(target: *mut u8, pattern: &[u8], count: usize) {
    if let [byte] = pattern {
        // SAFETY: the caller vouches for `count` bytes.
        return unsafe { target.write_bytes(*byte, count) };
    }
    for index in 0..count {
        // SAFETY: the caller vouches for `count` patterns from `target`.
        unsafe {
            let place = target.add(index * pattern.len());
            place.copy_from_nonoverlapping(pattern.as_ptr(), pattern.len());
        }
    }
}
