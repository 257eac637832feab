//! Host memory that processes share: in-memory files (Linux).

#[cfg(target_os = "linux")]
pub(crate) use linux::IpcMemory;
#[cfg(not(target_os = "linux"))]
pub(crate) use nowhere::IpcMemory;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::fs::MetadataExt;
    use std::ptr::null_mut;

    use crate::backend::cpu::device::CpuDevice;
    use crate::backend::device::BackendDevice;
    use crate::backend::memory::shared_memory::IpcMemoryOrigin;
    use crate::error::ipc::IpcError;
    use crate::error::{Error, Result};

    /// A mapping of a file in memory, and the file, which others open by way of this process.
    pub(crate) struct IpcMemory {
        start: *mut u8,
        bytes: usize,
        _file: File,
        reserved: Option<Reserved>,
    }

    /// Bytes that are counted as allocated on a device until this is dropped.
    struct Reserved {
        device: &'static CpuDevice,
        bytes: usize,
    }

    impl Drop for Reserved {
        fn drop(&mut self) {
            self.device.release(self.bytes);
        }
    }

    // SAFETY: a mapping, which only its owner ends; it may be used from any thread.
    unsafe impl Send for IpcMemory {}

    impl IpcMemory {
        pub(crate) fn allocate(device: &'static CpuDevice, bytes: usize) -> Result<(Self, IpcMemoryOrigin)> {
            let out_of_memory = || device.out_of_memory(bytes);
            if !device.reserve(bytes) {
                return Err(out_of_memory());
            }
            let reserved = Reserved { device, bytes };
            // SAFETY: the name ends in 0.
            let raw = unsafe {
                libc::memfd_create(c"ferrogrid".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
            };
            if raw < 0 {
                return Err(out_of_memory());
            }
            // SAFETY: it has just been opened, and has no other owner.
            let file = unsafe { File::from_raw_fd(raw) };
            file.set_len(bytes as u64).map_err(|_| out_of_memory())?;
            // A mapping of a file that another process cuts short would fault.
            let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
            // SAFETY: the file is open.
            if unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, seals) } < 0 {
                return Err(out_of_memory());
            }
            let inode = file.metadata().map_err(|_| out_of_memory())?.ino();
            let origin =
                IpcMemoryOrigin::Cpu { process: std::process::id(), file: raw.unsigned_abs(), inode };
            let mut memory = IpcMemory::map(file, bytes).map_err(|_| out_of_memory())?;
            memory.reserved = Some(reserved);
            Ok((memory, origin))
        }

        pub(crate) fn open(_: &CpuDevice, process: u32, file: u32, inode: u64, bytes: usize) -> Result<Self> {
            let gone = |reason: String| Error::from(IpcError::Gone { process, reason: reason.into() });
            let path = format!("/proc/{process}/fd/{file}");
            let opened = OpenOptions::new().read(true).write(true).open(path);
            let opened = opened.map_err(|error| gone(error.to_string()))?;
            let found = opened.metadata().map_err(|error| gone(error.to_string()))?;
            if (found.ino(), found.len()) != (inode, bytes as u64) {
                return Err(gone("its file is another now".into()));
            }
            IpcMemory::map(opened, bytes).map_err(|error| gone(error.to_string()))
        }

        fn map(file: File, bytes: usize) -> std::io::Result<Self> {
            let (access, raw) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
            // SAFETY: a new mapping of an open file, which has that many bytes.
            let start = unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, raw, 0) };
            if start == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            Ok(IpcMemory { start: start.cast(), bytes, _file: file, reserved: None })
        }

        pub(crate) fn start(&self) -> *mut u8 {
            self.start
        }
    }

    impl Drop for IpcMemory {
        fn drop(&mut self) {
            // SAFETY: mapped once with that many bytes, and not used any more.
            unsafe { libc::munmap(self.start.cast(), self.bytes) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod nowhere {
    use crate::backend::cpu::device::CpuDevice;
    use crate::backend::memory::shared_memory::IpcMemoryOrigin;
    use crate::error::{Error, Result};

    /// There is none on this system.
    pub(crate) enum IpcMemory {}

    impl IpcMemory {
        pub(crate) fn allocate(device: &'static CpuDevice, _: usize) -> Result<(Self, IpcMemoryOrigin)> {
            Err(unsupported(device))
        }

        pub(crate) fn open(device: &CpuDevice, _: u32, _: u32, _: u64, _: usize) -> Result<Self> {
            Err(unsupported(device))
        }

        pub(crate) fn start(&self) -> *mut u8 {
            match *self {}
        }
    }

    fn unsupported(device: &CpuDevice) -> Error {
        Error::unsupported("memory for several processes", device, "it shares memory on Linux only")
    }
}
