//! Handles of shared buffers and events, as bytes for other processes.

use crate::backend::memory::shared_memory::{CUDA_HANDLE, IpcMemoryOrigin};
use crate::error::ipc::IpcError;

/// Identifies a buffer for another process; made by [`IpcBuffer::ipc_handle`](crate::IpcBuffer::ipc_handle).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// # #[cfg(target_os = "linux")]
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::IpcMemoryHandle;
///
/// let buffer = stream.ipc_zeros::<u32>(100)?;
/// let bytes = buffer.ipc_handle().to_bytes(); // to another process
/// let handle = IpcMemoryHandle::from_bytes(&bytes)?; // there
/// assert_eq!((handle.byte_len(), &handle), (400, buffer.ipc_handle()));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct IpcMemoryHandle {
    pub(crate) origin: IpcMemoryOrigin,
    pub(crate) bytes: usize,
}

/// Identifies an event for another process; made by [`Event::ipc_handle`](crate::Event::ipc_handle).
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{EventOptions, IpcEventHandle};
///
/// let device = Device::cuda(0)?;
/// let event = device.new_event(EventOptions::new().interprocess())?;
/// let bytes = event.ipc_handle()?.to_bytes(); // to another process
/// let theirs = device.ipc_open_event(&IpcEventHandle::from_bytes(&bytes)?)?; // there
/// # drop(theirs);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct IpcEventHandle {
    pub(crate) origin: IpcEventOrigin,
}

/// The driver's `CUipcEventHandle`.
pub(crate) type IpcEventOrigin = [u8; CUDA_HANDLE];

const CUDA_MEMORY: &[u8; 4] = b"FGm1";
const CPU_MEMORY: &[u8; 4] = b"FGc1";
const POOL_MEMORY: &[u8; 4] = b"FGp1";
const CUDA_EVENT: &[u8; 4] = b"FGe1";

impl IpcMemoryHandle {
    /// The bytes of the buffer.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }

    /// How many elements of that type the buffer has.
    pub(crate) fn elements<T>(&self) -> Result<usize, IpcError> {
        let (bytes, element_size) = (self.bytes, size_of::<T>());
        let len = bytes.checked_div(element_size).filter(|len| *len > 0 && len * element_size == bytes);
        len.ok_or(IpcError::Elements { bytes, element: std::any::type_name::<T>(), element_size })
    }

    /// The handle as bytes, to be sent to another process of this machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = (self.bytes as u64).to_le_bytes();
        match &self.origin {
            IpcMemoryOrigin::Cuda(handle) => [&CUDA_MEMORY[..], &length, handle].concat(),
            IpcMemoryOrigin::Pool(data) => [&POOL_MEMORY[..], &length, data].concat(),
            IpcMemoryOrigin::Cpu { process, file, inode } => {
                let parts = [&process.to_le_bytes()[..], &file.to_le_bytes(), &inode.to_le_bytes()];
                [&CPU_MEMORY[..], &length, &parts.concat()].concat()
            }
        }
    }

    /// The handle from the bytes of [`IpcMemoryHandle::to_bytes`].
    ///
    /// ```
    /// use ferrogrid_host::IpcMemoryHandle;
    ///
    /// let error = IpcMemoryHandle::from_bytes(b"something else").unwrap_err();
    /// assert!(error.to_string().contains("14 bytes"), "{error}");
    /// ```
    ///
    /// # Errors
    /// [`IpcError::NoHandle`] for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, IpcError> {
        let parse = || {
            let (tag, rest) = bytes.split_first_chunk::<4>()?;
            let (length, rest) = rest.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let origin = match tag {
                CUDA_MEMORY => IpcMemoryOrigin::Cuda(rest.try_into().ok()?),
                POOL_MEMORY => IpcMemoryOrigin::Pool(rest.try_into().ok()?),
                CPU_MEMORY => {
                    let parts: [u8; 16] = rest.try_into().ok()?;
                    let (process, rest) = parts.split_first_chunk::<4>()?;
                    let (file, inode) = rest.split_first_chunk::<4>()?;
                    IpcMemoryOrigin::Cpu {
                        process: u32::from_le_bytes(*process),
                        file: u32::from_le_bytes(*file),
                        inode: u64::from_le_bytes(inode.try_into().ok()?),
                    }
                }
                _ => return None,
            };
            Some(IpcMemoryHandle { origin, bytes: length })
        };
        parse().ok_or_else(|| no_handle(bytes, "the handle of a buffer"))
    }
}

impl IpcEventHandle {
    /// The handle as bytes, to be sent to another process of this machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&CUDA_EVENT[..], &self.origin].concat()
    }

    /// The handle from the bytes of [`IpcEventHandle::to_bytes`].
    ///
    /// ```
    /// use ferrogrid::{IpcError, IpcEventHandle};
    ///
    /// let error = IpcEventHandle::from_bytes(b"something else").unwrap_err();
    /// assert!(matches!(error, IpcError::NoHandle { length: 14, .. }), "{error}");
    /// ```
    ///
    /// # Errors
    /// [`IpcError::NoHandle`] for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, IpcError> {
        let handle = bytes.strip_prefix(CUDA_EVENT).and_then(|rest| rest.try_into().ok());
        handle
            .map(|origin| IpcEventHandle { origin })
            .ok_or_else(|| no_handle(bytes, "the handle of an event"))
    }
}

fn no_handle(bytes: &[u8], expected: &'static str) -> IpcError {
    IpcError::NoHandle { length: bytes.len(), start: bytes[..bytes.len().min(8)].to_vec(), expected }
}

debug_by_methods!(IpcMemoryHandle { byte_len });

debug_by_methods!(IpcEventHandle {});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_survive_as_bytes() {
        let cuda = IpcMemoryOrigin::Cuda(std::array::from_fn(|index| index as u8));
        let cpu = IpcMemoryOrigin::Cpu { process: 7, file: u32::MAX, inode: 1 << 40 };
        let pool = IpcMemoryOrigin::Pool(std::array::from_fn(|index| index as u8 ^ 0x55));
        for origin in [cuda, cpu, pool] {
            let handle = IpcMemoryHandle { origin, bytes: 1 << 33 };
            let bytes = handle.to_bytes();
            assert_eq!(IpcMemoryHandle::from_bytes(&bytes), Ok(handle));
            for wrong in [&bytes[1..], &bytes[..bytes.len() - 1], &[], &[&bytes[..], &[0]].concat()] {
                let error = IpcMemoryHandle::from_bytes(wrong).unwrap_err();
                assert!(matches!(error, IpcError::NoHandle { length, .. } if length == wrong.len()));
            }
            assert!(IpcEventHandle::from_bytes(&bytes).is_err());
        }
        let event = IpcEventHandle { origin: [3; CUDA_HANDLE] };
        assert_eq!(IpcEventHandle::from_bytes(&event.to_bytes()), Ok(event));
    }

    #[test]
    fn fuzz_handles() {
        let cuda = IpcMemoryHandle { origin: IpcMemoryOrigin::Cuda([7; CUDA_HANDLE]), bytes: 1 << 33 };
        let origin = IpcMemoryOrigin::Cpu { process: 7, file: 3, inode: 9 };
        let cpu = IpcMemoryHandle { origin, bytes: 4096 };
        let event = IpcEventHandle { origin: [3; CUDA_HANDLE] };
        crate::fuzz::survive(&[cuda.to_bytes(), cpu.to_bytes(), event.to_bytes()], |bytes| {
            match IpcMemoryHandle::from_bytes(bytes) {
                Ok(handle) => assert_eq!(handle.to_bytes(), bytes),
                Err(error) => assert!(error.to_string().len() < 1000),
            }
            if let Ok(handle) = IpcEventHandle::from_bytes(bytes) {
                assert_eq!(handle.to_bytes(), bytes);
            }
        });
    }
}
