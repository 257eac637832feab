//! Functions that cudarc calls and the crate under test does not. A copy from or to ordinary memory of the host has ended when they
//! return.

use crate::pointer::Out;

use super::streams::create;
use super::{Code, Pointer, SUCCESS, allocate, copy, drain, enter_bound, is_live, real};

call! { bound:
    fn cuStreamCreate(stream: Out<usize>, flags: u32) {
        stream.set(create(flags, 0));
        Ok(())
    }
    fn cuMemAllocAsync(pointer: Out<u64>, bytes: usize, stream: Pointer) {
        assert!(is_live(stream));
        pointer.set(allocate(bytes)? as u64);
        Ok(())
    }
    fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: Pointer) {
        copy(target as usize, source as usize, bytes, stream)
    }
    fn cuMemcpyHtoDAsync_v2(target: u64, source: Pointer, bytes: usize, stream: Pointer) {
        copy(target as usize, source as usize, bytes, stream)?;
        drain(real(stream) as usize);
        Ok(())
    }
    fn cuMemcpyDtoHAsync_v2(target: Pointer, source: u64, bytes: usize, stream: Pointer) {
        copy(target as usize, source as usize, bytes, stream)?;
        drain(real(stream) as usize);
        Ok(())
    }
}
