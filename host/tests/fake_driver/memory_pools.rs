//! Memory pools of the fake driver: pools created by programs, and pools that processes share by file descriptors.
//!
//! SAFETY: as in `libcuda.rs`.

use std::ffi::c_char;

use super::{CONTEXT, Code, Pointer, SUCCESS, Work, allocate, enter_bound, is_live, log, pool, real, with};

unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: u32) -> i32;
    fn pwrite(file: i32, bytes: *const u8, count: usize, offset: i64) -> isize;
    fn pread(file: i32, bytes: *mut u8, count: usize, offset: i64) -> isize;
}

/// A pool is one of the thread's device: from 0x900 on are those that it made, 0xa00 is another library's; those of the next
/// device are one higher.
fn check_pool(pool: usize) {
    let device = CONTEXT.get() - 0x100;
    assert!([0x900 + device, 0xa00 + device].contains(&(pool & 0xffff)), "a pool of this device");
}

call! { bound:
    fn cuMemPoolCreate(pool: *mut usize, properties: *const [u32; 4]) {
        let device = CONTEXT.get() - 0x100;
        // Allocation type, handle types, location type and number.
        let found = unsafe { *properties };
        log(&format!("pool of {found:?}"));
        match found {
            [1 | 2, 0, 1, place] | [1, 1, 1, place] => assert_eq!(place, device as u32, "of this device"),
            [1, 0, 2, 0] | [1, 0, 3, _] => {}
            other => panic!("a pool of {other:?}"),
        }
        let number = with(|state| {
            state.pools += 1;
            state.pools
        });
        unsafe { *pool = number << 16 | 0x900 + device };
        if found[2] != 1 {
            with(|state| state.host_pools.insert(unsafe { *pool }));
        }
        Ok(())
    }
    fn cuMemPoolDestroy(pool: usize) {
        check_pool(pool);
        log(&format!("pool {} destroyed", pool >> 16));
        Ok(())
    }
    fn cuMemPoolSetAccess(pool: usize, access: *const [u32; 3], count: usize) {
        check_pool(pool);
        assert_eq!(count, 1);
        let [kind, peer, flags] = unsafe { *access };
        assert_eq!((kind, flags), (1, 3), "a device that reads and writes");
        let itself = (pool & 0xffff) - 0x900 == peer as usize;
        assert!(!itself || with(|state| state.host_pools.contains(&pool)), "a device may use its own memory");
        log(&format!("pool {} allows {peer}", pool >> 16));
        Ok(())
    }
    fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: *mut u64) {
        check_pool(pool);
        // The first ones are `int`s.
        let given = unsafe { if attribute < 4 { u64::from(*value.cast::<u32>()) } else { *value } };
        log(&format!("pool attribute {attribute} = {given}"));
        if matches!(attribute, 6 | 8) {
            with(|state| {
                let used = state.used_of(pool);
                state.high_of.insert(pool, used);
            });
        }
        Ok(())
    }
    fn cuMemPoolGetAttribute(pool: usize, attribute: u32, value: *mut u64) {
        check_pool(pool);
        let value_now = with(|state| match attribute {
            5 | 7 => state.used_of(pool),
            6 | 8 => state.high_of.get(&pool).copied().unwrap_or(0),
            other => panic!("pool attribute {other}"),
        });
        unsafe { *value = value_now };
        Ok(())
    }
    fn cuMemPoolExportToShareableHandle(handle: *mut i32, pool: usize, kind: u32, flags: u64) {
        check_pool(pool);
        assert_eq!((kind, flags), (1, 0));
        let file = unsafe { memfd_create(c"pool".as_ptr(), 0) };
        let bytes = pool.to_ne_bytes();
        assert_eq!(unsafe { pwrite(file, bytes.as_ptr(), bytes.len(), 0) }, 8);
        unsafe { *handle = file };
        with(|state| state.exported.insert(pool));
        Ok(())
    }
    fn cuMemPoolImportFromShareableHandle(pool: *mut usize, handle: usize, kind: u32, flags: u64) {
        assert_eq!((kind, flags), (1, 0));
        let mut bytes = [0; 8];
        if handle == 0 || unsafe { pread(handle as i32, bytes.as_mut_ptr(), bytes.len(), 0) } != 8 {
            return Err(1);
        }
        check_pool(usize::from_ne_bytes(bytes));
        let number = with(|state| {
            state.pools += 1;
            state.pools
        });
        unsafe { *pool = number << 16 | usize::from_ne_bytes(bytes) & 0xffff };
        with(|state| state.imported.insert(unsafe { *pool }));
        Ok(())
    }
    fn cuMemPoolExportPointer(data: *mut [u64; 8], pointer: u64) {
        assert!(with(|state| state.allocations.contains_key(&(pointer as usize))));
        unsafe { *data = [pointer, 0, 0, 0, 0, 0, 0, 1] };
        // Before its pool nothing of it.
        if with(|state| state.exported.is_empty()) { Err(1) } else { Ok(()) }
    }
    fn cuMemPoolImportPointer(pointer: *mut u64, pool: usize, data: *const [u64; 8]) {
        assert!(with(|state| state.imported.contains(&pool)), "a pool of another process");
        let [start, .., last] = unsafe { *data };
        if last != 1 {
            return Err(1);
        }
        // One process may have it several times.
        with(|state| state.opened.push(start as usize));
        unsafe { *pointer = start };
        Ok(())
    }
    fn cuMemPoolTrimTo(pool: usize, _keep: usize) {
        check_pool(pool);
        Ok(())
    }
    fn cuMemAllocFromPoolAsync(pointer: *mut u64, bytes: usize, pool: usize, stream: Pointer) {
        check_pool(pool);
        assert!(!with(|state| state.imported.contains(&pool)), "a pool of another process");
        assert!(is_live(stream));
        if pool >> 16 != 1 {
            log(&format!("allocated from pool {}", pool >> 16));
        }
        if !pool::reuses() {
            allocate(pointer, bytes)?;
            with(|state| state.enter(unsafe { *pointer } as usize, pool));
            return Ok(());
        }
        let (stream, owner) = (real(stream) as usize, CONTEXT.get());
        let found = with(|state| state.pool.take(stream, owner, bytes));
        match found {
            Some(found) => unsafe { *pointer = found as u64 },
            None => allocate(pointer, bytes)?,
        }
        let start = unsafe { *pointer } as usize;
        with(|state| state.push(stream as Pointer, Work::Begin { pointer: start, bytes }));
        Ok(())
    }
}
