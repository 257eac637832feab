//! Virtual memory of the host: addresses are reserved first and mapped later (Unix).

#[cfg(not(unix))]
pub(crate) use nowhere::VirtualRange;
#[cfg(unix)]
pub(crate) use unix::VirtualRange;

#[cfg(unix)]
mod unix {
    use std::ptr::null_mut;

    use crate::backend::cpu::device::CpuDevice;
    use crate::backend::device::BackendDevice;
    use crate::backend::memory::virtual_memory::BackendRange;
    use crate::error::Result;

    /// A multiple of the pages of all systems.
    const GRANULARITY: usize = 64 << 10;

    /// Addresses that are reserved on the host.
    pub(crate) struct VirtualRange {
        device: &'static CpuDevice,
        start: *mut u8,
        bytes: usize,
    }

    // SAFETY: a mapping, which only its owner ends; it may be used from any thread.
    unsafe impl Send for VirtualRange {}
    // SAFETY: as above; its functions leave the value as it is.
    unsafe impl Sync for VirtualRange {}

    impl VirtualRange {
        pub(crate) fn reserve(device: &'static CpuDevice, bytes: usize) -> Result<Self> {
            let too_large = || device.out_of_memory(bytes);
            let bytes = bytes.max(1).checked_next_multiple_of(GRANULARITY).ok_or_else(too_large)?;
            // SAFETY: a new mapping, wherever the system wants it.
            let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, FLAGS, -1, 0) };
            if start == libc::MAP_FAILED {
                return Err(device.out_of_memory(bytes));
            }
            Ok(VirtualRange { device, start: start.cast(), bytes })
        }
    }

    impl BackendRange for VirtualRange {
        fn start(&self) -> *mut u8 {
            self.start
        }

        fn granularity(&self) -> usize {
            GRANULARITY
        }

        fn map(&self, start: usize, bytes: usize) -> Result<()> {
            if !self.device.reserve(bytes) {
                return Err(self.device.out_of_memory(bytes));
            }
            let target = self.start.wrapping_add(start).cast();
            // SAFETY: pages of this mapping, which nothing uses yet.
            if unsafe { libc::mprotect(target, bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
                self.device.release(bytes);
                return Err(self.device.out_of_memory(bytes));
            }
            Ok(())
        }

        unsafe fn unmap(&self, start: usize, bytes: usize) -> Result<()> {
            let target = self.start.wrapping_add(start).cast();
            // SAFETY: pages of this mapping, which nothing uses any more; new ones without memory take their place.
            let fresh = unsafe { libc::mmap(target, bytes, libc::PROT_NONE, FLAGS | libc::MAP_FIXED, -1, 0) };
            if fresh == libc::MAP_FAILED {
                return Err(self.device.out_of_memory(bytes));
            }
            self.device.release(bytes);
            Ok(())
        }
    }

    const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;

    impl Drop for VirtualRange {
        fn drop(&mut self) {
            // SAFETY: mapped once with that many bytes, and not used any more.
            unsafe { libc::munmap(self.start.cast(), self.bytes) };
        }
    }
}

#[cfg(not(unix))]
mod nowhere {
    use crate::backend::cpu::device::CpuDevice;
    use crate::backend::memory::virtual_memory::BackendRange;
    use crate::error::{Error, Result};

    /// There is none on this system.
    pub(crate) enum VirtualRange {}

    impl VirtualRange {
        pub(crate) fn reserve(device: &'static CpuDevice, _: usize) -> Result<Self> {
            Err(Error::unsupported("a buffer that grows", device, "it reserves addresses on Unix only"))
        }
    }

    impl BackendRange for VirtualRange {
        fn start(&self) -> *mut u8 {
            match *self {}
        }

        fn granularity(&self) -> usize {
            match *self {}
        }

        fn map(&self, _: usize, _: usize) -> Result<()> {
            match *self {}
        }

        unsafe fn unmap(&self, _: usize, _: usize) -> Result<()> {
            match *self {}
        }
    }
}
