//! Memory pools of the fake driver: pools created by programs, and pools that processes share by file descriptors.

use std::ffi::c_char;

use crate::pointer::{In, Out};

use super::{CONTEXT, Code, Pointer, SUCCESS, Work, allocate, enter_bound, is_live, log, pool, real, with};

// SAFETY: the declarations are those of Linux and POSIX.
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
    fn cuMemPoolCreate(pool: Out<usize>, properties: In<[u32; 4]>) {
        let device = CONTEXT.get() - 0x100;
        // Allocation type, handle types, location type and number.
        let found = *properties.get();
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
        let made = number << 16 | 0x900 + device;
        pool.set(made);
        if found[2] != 1 {
            with(|state| state.host_pools.insert(made));
        }
        Ok(())
    }
    fn cuMemPoolDestroy(pool: usize) {
        check_pool(pool);
        log(&format!("pool {} destroyed", pool >> 16));
        Ok(())
    }
    fn cuMemPoolSetAccess(pool: usize, access: In<[u32; 3]>, count: usize) {
        check_pool(pool);
        assert_eq!(count, 1);
        let [kind, peer, flags] = *access.get();
        assert_eq!((kind, flags), (1, 3), "a device that reads and writes");
        let itself = (pool & 0xffff) - 0x900 == peer as usize;
        assert!(!itself || with(|state| state.host_pools.contains(&pool)), "a device may use its own memory");
        log(&format!("pool {} allows {peer}", pool >> 16));
        Ok(())
    }
    fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: *mut u64) {
        check_pool(pool);
        // The first ones are `int`s.
        // SAFETY: the caller passes a value of the attribute's type.
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
    fn cuMemPoolGetAttribute(pool: usize, attribute: u32, value: Out<u64>) {
        check_pool(pool);
        let value_now = with(|state| match attribute {
            5 | 7 => state.used_of(pool),
            6 | 8 => state.high_of.get(&pool).copied().unwrap_or(0),
            other => panic!("pool attribute {other}"),
        });
        value.set(value_now);
        Ok(())
    }
    fn cuMemPoolExportToShareableHandle(handle: Out<i32>, pool: usize, kind: u32, flags: u64) {
        check_pool(pool);
        assert_eq!((kind, flags), (1, 0));
        // SAFETY: the name is a text with a zero byte, and lives as long as the program.
        let file = unsafe { memfd_create(c"pool".as_ptr(), 0) };
        let bytes = pool.to_ne_bytes();
        // SAFETY: `bytes` has so many.
        assert_eq!(unsafe { pwrite(file, bytes.as_ptr(), bytes.len(), 0) }, 8);
        handle.set(file);
        with(|state| state.exported.insert(pool));
        Ok(())
    }
    fn cuMemPoolImportFromShareableHandle(pool: Out<usize>, handle: usize, kind: u32, flags: u64) {
        assert_eq!((kind, flags), (1, 0));
        let mut bytes = [0; 8];
        // SAFETY: `bytes` has room for so many. What is no file is an error of the system.
        let mut read = || unsafe { pread(handle as i32, bytes.as_mut_ptr(), bytes.len(), 0) };
        if handle == 0 || read() != 8 {
            return Err(1);
        }
        check_pool(usize::from_ne_bytes(bytes));
        let number = with(|state| {
            state.pools += 1;
            state.pools
        });
        let made = number << 16 | usize::from_ne_bytes(bytes) & 0xffff;
        pool.set(made);
        with(|state| state.imported.insert(made));
        Ok(())
    }
    fn cuMemPoolExportPointer(data: Out<[u64; 8]>, pointer: u64) {
        assert!(with(|state| state.allocations.contains_key(&(pointer as usize))));
        data.set([pointer, 0, 0, 0, 0, 0, 0, 1]);
        // Before its pool nothing of it.
        if with(|state| state.exported.is_empty()) { Err(1) } else { Ok(()) }
    }
    fn cuMemPoolImportPointer(pointer: Out<u64>, pool: usize, data: In<[u64; 8]>) {
        assert!(with(|state| state.imported.contains(&pool)), "a pool of another process");
        let [start, .., last] = *data.get();
        if last != 1 {
            return Err(1);
        }
        // One process may have it several times.
        with(|state| state.opened.push(start as usize));
        pointer.set(start);
        Ok(())
    }
    fn cuMemPoolTrimTo(pool: usize, _keep: usize) {
        check_pool(pool);
        Ok(())
    }
    fn cuMemAllocFromPoolAsync(pointer: Out<u64>, bytes: usize, pool: usize, stream: Pointer) {
        check_pool(pool);
        assert!(!with(|state| state.imported.contains(&pool)), "a pool of another process");
        assert!(is_live(stream));
        if pool >> 16 != 1 {
            log(&format!("allocated from pool {}", pool >> 16));
        }
        if !pool::reuses() {
            let start = allocate(bytes)?;
            with(|state| state.enter(start, pool));
            pointer.set(start as u64);
            return Ok(());
        }
        let (stream, owner) = (real(stream) as usize, CONTEXT.get());
        let found = with(|state| state.pool.take(stream, owner, bytes));
        let start = found.map_or_else(|| allocate(bytes), Ok)?;
        pointer.set(start as u64);
        with(|state| state.push(stream as Pointer, Work::Begin { pointer: start, bytes }));
        Ok(())
    }
}
