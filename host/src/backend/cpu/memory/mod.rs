//! Memory of the CPU device: allocation, copies, fills, done immediately by the calling thread. Its callers
//! order the work. `virtual_memory` reserves addresses, `ipc` shares memory between processes.

pub(crate) mod ipc;
pub(crate) mod virtual_memory;

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fs;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use super::device::CpuDevice;
use super::execute::spin;
use crate::backend::device::{BackendDevice, DeviceMemory};
use crate::backend::operation::{Address, Fill, MemoryCopy, ValueCondition};
use crate::backend::{ALIGNMENT, Contents};
use crate::error::Result;
use crate::properties::memory_info::MemoryInfo;

/// How long a stream that waits for a value sleeps between looks.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// `bytes` (not 0) of fresh memory.
pub(crate) fn allocate(device: &CpuDevice, bytes: usize, contents: Contents) -> Result<*mut u8> {
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
    if pointer.is_null() { Err(device.out_of_memory(bytes)) } else { Ok(pointer) }
}

impl DeviceMemory for CpuDevice {
    fn memory_info(&self) -> Result<Option<MemoryInfo>> {
        Ok(match self.memory() {
            Some((total, allocated)) => Some(MemoryInfo { free: total - allocated, total }),
            None => memory_of_machine(),
        })
    }

    fn allocate_host(&self, bytes: usize, _: bool) -> Result<*mut u8> {
        allocate(self, bytes, Contents::Uninitialised)
    }

    unsafe fn free_host(&self, start: *mut u8, bytes: usize) {
        // SAFETY: passed on.
        unsafe { free(start, bytes) }
    }
}

fn memory_of_machine() -> Option<MemoryInfo> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key))?;
        let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    };
    Some(MemoryInfo { free: bytes("MemAvailable:")?, total: bytes("MemTotal:")? })
}

/// Memory that counts as the device's, until this is dropped, when no work uses it any more.
pub(crate) struct Block {
    device: &'static CpuDevice,
    start: Address,
    bytes: usize,
}

impl Block {
    /// `bytes` (not 0) that are not initialised.
    pub(crate) fn allocate(device: &'static CpuDevice, bytes: usize) -> Result<Self> {
        if !device.reserve(bytes) {
            return Err(device.out_of_memory(bytes));
        }
        let start = allocate(device, bytes, Contents::Uninitialised);
        let start = Address(start.inspect_err(|_| device.release(bytes))?);
        Ok(Block { device, start, bytes })
    }

    pub(crate) fn start(&self) -> Address {
        self.start
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: from `allocate` with that many bytes; the owner vouches that nothing uses them any more.
        unsafe { free(self.start.0, self.bytes) };
        self.device.release(self.bytes);
    }
}

/// Frees what `allocate` gave.
///
/// # Safety
/// `pointer` is from `allocate` of `bytes`, and nothing uses it any more.
pub(crate) unsafe fn free(pointer: *mut u8, bytes: usize) {
    let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) else { return };
    // SAFETY: allocated with this layout, and freed once, as the caller vouches.
    unsafe { dealloc(pointer, layout) };
}

/// # Safety
/// Both sides have these rows, which do not overlap, and nothing else uses them meanwhile.
pub(super) unsafe fn copy(copy: &MemoryCopy) {
    let (target, source, rows) = (copy.target.start(), copy.source.start(), copy.rows);
    // An array is its elements here, one after the other.
    for row in 0..rows.height * copy.layers {
        // SAFETY: the caller vouches for `width` bytes at each multiple of the pitch.
        unsafe {
            let (target, source) = (target.add(row * rows.target_pitch), source.add(row * rows.source_pitch));
            target.copy_from_nonoverlapping(source, rows.width);
        }
    }
}

/// # Safety
/// There is room for all values, and nothing else uses it meanwhile.
pub(super) unsafe fn fill(fill: &Fill<'_>) {
    let (target, value) = (fill.target.0, &*fill.value);
    if let ([byte], 1) = (value, fill.pitch) {
        // SAFETY: the caller vouches for `count` bytes.
        return unsafe { target.write_bytes(*byte, fill.count) };
    }
    for index in 0..fill.count {
        // SAFETY: the caller vouches for `count` values from `target` on.
        unsafe {
            let place = target.add(index * fill.pitch);
            place.copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
    }
}

/// Writes a number of 64 or 32 bits for waiting threads.
///
/// # Safety
/// `target` is aligned, and leads to such a number, which others use atomically meanwhile.
pub(super) unsafe fn write_value(target: *mut u8, value: u64, is_wide: bool) {
    // SAFETY: the caller vouches for it.
    unsafe {
        if is_wide {
            AtomicU64::from_ptr(target.cast()).store(value, Ordering::Release);
        } else {
            // It was made of so many bits.
            AtomicU32::from_ptr(target.cast()).store(value as u32, Ordering::Release);
        }
    }
}

/// Waits until `condition` holds of the number at `source`. Writes send no notification, so this polls.
///
/// # Safety
/// As for `write_value`.
pub(super) unsafe fn wait_value(source: *mut u8, condition: ValueCondition) {
    let look = || {
        // SAFETY: the caller vouches for it.
        let found = unsafe {
            if condition.is_wide {
                AtomicU64::from_ptr(source.cast()).load(Ordering::Acquire)
            } else {
                u64::from(AtomicU32::from_ptr(source.cast()).load(Ordering::Acquire))
            }
        };
        condition.holds(found).then_some(())
    };
    while spin::until(look).is_none() {
        sleep(BETWEEN_LOOKS);
    }
}
