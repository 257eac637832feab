//! Virtual memory of the fake driver, reserved first and mapped later: pages of the system that are inaccessible
//! before they are mapped and given to the device that asks.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::{CONTEXT, Code, OUT_OF_MEMORY, enter_bound};
use crate::log;
use crate::pointer::{In, Out};
use crate::work::{SUCCESS, with};

const GRANULARITY: usize = 2 << 20;
const PRIVATE_ANONYMOUS_NORESERVE: i32 = 2 | 0x20 | 0x4000;
const FIXED: i32 = 0x10;

// SAFETY: the declarations are those of POSIX.
unsafe extern "C" {
    fn mmap(start: *mut c_void, bytes: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut c_void;
    fn munmap(start: *mut c_void, bytes: usize) -> i32;
    fn mprotect(start: *mut c_void, bytes: usize, access: i32) -> i32;
}

#[derive(Default)]
struct Virtual {
    next: u64,
    reserved: BTreeMap<usize, usize>,
    /// Memory by its handle: its bytes, and whether it was released.
    memory: HashMap<u64, usize>,
    /// Mappings: bytes, and the devices that may use them.
    mapped: BTreeMap<usize, (usize, Vec<u32>)>,
}

static VIRTUAL: Mutex<Option<Virtual>> = Mutex::new(None);

fn state<T>(f: impl FnOnce(&mut Virtual) -> T) -> T {
    f(VIRTUAL.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Pinned memory of the thread's device, for this process.
fn check(properties: &[u32; 8]) {
    let device = (CONTEXT.get() - 0x100) as u32;
    assert_eq!(*properties, [1, 0, 1, device, 0, 0, 0, 0]);
}

call! { bound:
    fn cuMemGetAllocationGranularity(granularity: Out<usize>, properties: In<[u32; 8]>, option: u32) {
        check(properties.get());
        assert_eq!(option, 1, "the recommended one");
        granularity.set(GRANULARITY);
        Ok(())
    }
    fn cuMemAddressReserve(start: Out<u64>, bytes: usize, alignment: usize, wanted: u64, flags: u64) {
        assert_eq!((bytes % GRANULARITY, alignment, wanted, flags), (0, 0, 0, 0));
        // SAFETY: a new mapping, wherever the system has room, changes no other memory.
        let found = unsafe { mmap(std::ptr::null_mut(), bytes, 0, PRIVATE_ANONYMOUS_NORESERVE, -1, 0) };
        if found as isize == -1 {
            return Err(OUT_OF_MEMORY);
        }
        state(|state| state.reserved.insert(found as usize, bytes));
        start.set(found as u64);
        Ok(())
    }
    fn cuMemAddressFree(start: u64, bytes: usize) {
        let start = start as usize;
        state(|state| {
            assert_eq!(state.reserved.remove(&start), Some(bytes), "freed once, as a whole");
            assert!(state.mapped.range(start..start + bytes).next().is_none(), "freed with memory");
        });
        // SAFETY: `cuMemAddressReserve` mapped these pages, and none has memory any more, so nothing uses them.
        assert_eq!(unsafe { munmap(start as *mut c_void, bytes) }, 0);
        Ok(())
    }
    fn cuMemCreate(handle: Out<u64>, bytes: usize, properties: In<[u32; 8]>, flags: u64) {
        check(properties.get());
        assert_eq!((bytes % GRANULARITY, bytes > 0, flags), (0, true, 0));
        let used = with(|state| state.used());
        state(|state| {
            let mapped: usize = state.mapped.values().map(|(bytes, _)| bytes).sum();
            if used + (mapped + bytes) as u64 > crate::number("memory", 1 << 30) {
                return Err(OUT_OF_MEMORY);
            }
            state.next += 1;
            state.memory.insert(state.next, bytes);
            handle.set(state.next);
            Ok(())
        })
    }
    fn cuMemRelease(handle: u64) {
        state(|state| state.memory.remove(&handle)).expect("released once");
        Ok(())
    }
    fn cuMemMap(start: u64, bytes: usize, offset: usize, handle: u64, flags: u64) {
        assert_eq!((offset, flags), (0, 0));
        let start = start as usize;
        state(|state| {
            assert_eq!(state.memory.get(&handle), Some(&bytes), "live memory of that size");
            let inside = |(from, length): (&usize, &usize)| *from <= start && start + bytes <= from + length;
            assert!(state.reserved.iter().any(inside), "mapped to what is not reserved");
            let overlaps = |(from, (length, _)): (&usize, &(usize, _))| *from < start + bytes && start < from + length;
            assert!(!state.mapped.iter().any(overlaps), "mapped twice");
            state.mapped.insert(start, (bytes, Vec::new()));
        });
        Ok(())
    }
    fn cuMemSetAccess(start: u64, bytes: usize, access: In<[u32; 3]>, count: usize) {
        assert_eq!(count, 1);
        let [kind, device, flags] = *access.get();
        assert_eq!((kind, flags), (1, 3), "a device that reads and writes");
        let start = start as usize;
        state(|state| {
            let (mapped, users) = state.mapped.get_mut(&start).expect("access to what is not mapped");
            assert_eq!(*mapped, bytes);
            users.push(device);
            if users.len() == 1 {
                // SAFETY: the pages are reserved. Access is added, so nothing becomes invalid.
                assert_eq!(unsafe { mprotect(start as *mut c_void, bytes, 3) }, 0);
                // SAFETY: the pages are writable now, and nothing could use them before.
                unsafe { (start as *mut u8).write_bytes(0xaa, bytes) };
            }
        });
        log(&format!("mapping allows {device}"));
        Ok(())
    }
    fn cuMemUnmap(start: u64, bytes: usize) {
        let start = start as usize;
        let (mapped, _) = state(|state| state.mapped.remove(&start)).expect("unmapped once");
        assert_eq!(mapped, bytes, "a mapping as a whole");
        assert!(!with(|state| state.is_in_use(start, bytes)), "unmapped while it is used");
        // SAFETY: this replaces the pages of a mapping, which was removed above and which no work uses.
        let fresh = unsafe { mmap(start as *mut c_void, bytes, 0, PRIVATE_ANONYMOUS_NORESERVE | FIXED, -1, 0) };
        assert_eq!(fresh as usize, start);
        Ok(())
    }
}
