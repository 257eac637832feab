//! Devices and their contexts: number, properties, the current context; and the names of errors.

use std::ffi::c_char;

use super::*;

// SAFETY: the declaration is that of POSIX.
unsafe extern "C" {
    fn mprotect(start: *mut u8, bytes: usize, access: i32) -> i32;
}

call! {
    fn cuDriverGetVersion(version: Out<i32>) {
        version.set(number("version", 12_040) as i32);
        Ok(())
    }
    fn cuInit(_flags: u32) { Ok(()) }
    fn cuDeviceGetCount(count: Out<i32>) {
        count.set(number("devices", 1) as i32);
        Ok(())
    }
    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        device.set(ordinal);
        Ok(())
    }
    fn cuDeviceGetName(name: *mut c_char, length: i32, _device: i32) {
        let text = c"Fake GPU".to_bytes_with_nul();
        assert!(text.len() <= length as usize);
        // SAFETY: the caller passes `length` bytes for the name, which are enough.
        unsafe { name.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        Ok(())
    }
    fn cuDeviceGetAttribute(value: Out<i32>, attribute: u32, _device: i32) {
        let capability = number("capability", 90);
        let answer = match attribute {
            1..=3 => 1024,
            4 => 64,
            5 => i32::MAX as u64,
            6 | 7 => 65_535,
            75 => capability / 10,
            76 => capability % 10,
            16 => 132,
            97 => 232_448,
            19 => number("maps", 1),
            89 => number("managed", 1),
            102 => number("virtual_memory", 1),
            115 => number("pools", 1),
            119 => number("handle_types", 1),
            // Older drivers do not know them.
            142 | 144 if number("version", 12_040) < 13_000 => return Err(1),
            142 | 144 => number("host_pools", 1),
            _ => arrays::attribute(attribute).or_else(|| loading::device_attribute(attribute)).ok_or(1_u32)?,
        };
        value.set(answer as i32);
        Ok(())
    }
    fn cuDevicePrimaryCtxRetain(context: Out<usize>, device: i32) {
        context.set(0x100 + device as usize);
        Ok(())
    }
    fn cuDevicePrimaryCtxRelease_v2(_device: i32) { Ok(()) }
    fn cuDevicePrimaryCtxReset_v2(device: i32) {
        // As the real one, which gives a new context the handle of the old.
        let pinned = with(|state| state.reset(0x100 + device as usize));
        for (start, bytes) in pinned {
            // Any access ends the process.
            // SAFETY: these are whole pages, from `cuMemHostAlloc`, and nothing accesses them after a reset: that is under test.
            assert_eq!(unsafe { mprotect(start as *mut u8, bytes.next_multiple_of(4096), 0) }, 0);
        }
        Ok(())
    }
    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        assert_ne!(device, peer);
        can.set(number("peers", 1) as i32);
        Ok(())
    }
    fn cuCtxGetCurrent(context: Out<usize>) {
        context.set(CONTEXT.get());
        Ok(())
    }
    fn cuCtxSetCurrent(context: usize) {
        CONTEXT.set(context);
        Ok(())
    }
    fn cuCtxGetDevice(device: Out<i32>) {
        // The low byte of a context is its device; a primary one begins with 0x100.
        device.set((CONTEXT.get() & 0xff) as i32);
        Ok(())
    }
    fn cuGetErrorName(code: u32, name: Out<*const c_char>) {
        let text = match code {
            2 => c"CUDA_ERROR_OUT_OF_MEMORY",
            218 => c"CUDA_ERROR_INVALID_PTX",
            222 => c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            500 => c"CUDA_ERROR_NOT_FOUND",
            719 => c"CUDA_ERROR_LAUNCH_FAILED",
            _ => return Err(1),
        };
        name.set(text.as_ptr());
        Ok(())
    }
    fn cuGetErrorString(code: u32, text: Out<*const c_char>) {
        if code == 719 {
            text.set(c"unspecified launch failure".as_ptr());
            return Ok(());
        }
        Err(1)
    }
}

call! { bound:
    fn cuCtxSynchronize() {
        let streams: Vec<usize> = with(|state| state.streams.keys().copied().collect());
        streams.into_iter().for_each(drain);
        Ok(())
    }
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let all = number("memory", 1 << 30);
        free.set(with(|state| all - state.used()) as usize);
        total.set(all as usize);
        Ok(())
    }
    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        least.set(0);
        greatest.set(-5);
        Ok(())
    }
    fn cuCtxEnablePeerAccess(peer: usize, flags: u32) {
        assert_eq!(flags, 0);
        assert_ne!(peer, CONTEXT.get(), "a peer is another device");
        // It is said once for each pair.
        if with(|state| state.peers.insert((CONTEXT.get(), peer))) { Ok(()) } else { Err(704) }
    }
}
