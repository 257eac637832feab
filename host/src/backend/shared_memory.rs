//! Memory that processes share, of either backend: allocated or opened, and given back when it is dropped. It
//! must not know what uses it.

use super::{DeviceBackend, cpu, cuda};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ipc::{IpcError, IpcMemoryOrigin};

/// Memory that other processes may use; freed or closed when dropped, which must be after all work that uses
/// it.
pub(crate) enum SharedMemory {
    Cuda(cuda::IpcMemory),
    Cpu(cpu::IpcMemory),
}

impl SharedMemory {
    /// `bytes` (not 0) of new memory, all 0, and what names it.
    pub(crate) fn allocate(device: &Device, bytes: usize) -> Result<(Self, IpcMemoryOrigin)> {
        match device.backend() {
            DeviceBackend::Cuda(device) => {
                let (memory, handle) = cuda::IpcMemory::allocate(device, bytes)?;
                Ok((SharedMemory::Cuda(memory), IpcMemoryOrigin::Cuda(handle)))
            }
            DeviceBackend::Cpu(_) => {
                let (memory, origin) = cpu::IpcMemory::allocate(device, bytes)?;
                Ok((SharedMemory::Cpu(memory), origin))
            }
        }
    }

    /// The `bytes` that another process has named.
    pub(crate) fn open(device: &Device, origin: &IpcMemoryOrigin, bytes: usize) -> Result<Self> {
        let other_kind = |made_on| {
            Err::<Self, Error>(IpcError::OtherKind { made_on, device: device.to_string().into() }.into())
        };
        match (device.backend(), origin) {
            (DeviceBackend::Cuda(device), IpcMemoryOrigin::Cuda(handle)) => {
                cuda::IpcMemory::open(device, handle).map(SharedMemory::Cuda)
            }
            (DeviceBackend::Cpu(_), IpcMemoryOrigin::Cpu { process, file, inode }) => {
                cpu::IpcMemory::open(device, *process, *file, *inode, bytes).map(SharedMemory::Cpu)
            }
            (_, IpcMemoryOrigin::Cuda(_)) => other_kind("a CUDA device"),
            (_, IpcMemoryOrigin::Cpu { .. }) => other_kind("the CPU device"),
        }
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        match self {
            SharedMemory::Cuda(memory) => memory.start(),
            SharedMemory::Cpu(memory) => memory.start(),
        }
    }
}
