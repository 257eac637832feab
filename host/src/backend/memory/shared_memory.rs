//! Memory that processes share, of either backend: allocated or opened, and freed on drop.

use crate::backend::{Charge, DeviceBackend, cpu, cuda};
use crate::error::ipc::IpcError;
use crate::error::{Error, Result};

/// The bytes of the driver's handles.
pub(crate) const CUDA_HANDLE: usize = 64;

/// Where a shared buffer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IpcMemoryOrigin {
    /// The driver's `CUipcMemHandle`.
    Cuda([u8; CUDA_HANDLE]),
    /// The driver's `CUmemPoolPtrExportData`, of a shareable pool.
    Pool([u8; CUDA_HANDLE]),
    /// An open file of a process, and what tells it from later ones of the same number.
    Cpu { process: u32, file: u32, inode: u64 },
}

/// Memory that other processes may use; freed or closed when dropped, which must be after all work that uses
/// it.
pub(crate) struct SharedMemory {
    mapped: Mapped,
    /// What the device's account has of it, given back after the memory; nothing where another process allocated.
    _charge: Option<Charge>,
}

enum Mapped {
    Cuda(cuda::IpcMemory),
    Cpu(cpu::IpcMemory),
}

impl SharedMemory {
    /// `bytes` (not 0) of new memory, all 0, and what names it.
    pub(crate) fn allocate(device: DeviceBackend, bytes: usize) -> Result<(Self, IpcMemoryOrigin)> {
        let charge = Charge::take(device, bytes)?;
        let (mapped, origin) = match device {
            DeviceBackend::Cuda(device) => {
                let (memory, handle) = cuda::IpcMemory::allocate(device, bytes)?;
                (Mapped::Cuda(memory), IpcMemoryOrigin::Cuda(handle))
            }
            DeviceBackend::Cpu(device) => {
                let (memory, origin) = cpu::IpcMemory::allocate(device, bytes)?;
                (Mapped::Cpu(memory), origin)
            }
        };
        Ok((SharedMemory { mapped, _charge: Some(charge) }, origin))
    }

    /// The `bytes` that another process has named.
    pub(crate) fn open(device: DeviceBackend, origin: &IpcMemoryOrigin, bytes: usize) -> Result<Self> {
        let other_kind = |made_on| {
            Err::<Self, Error>(IpcError::OtherKind { made_on, device: device.to_string().into() }.into())
        };
        let mapped = match (device, origin) {
            (DeviceBackend::Cuda(device), IpcMemoryOrigin::Cuda(handle)) => {
                Mapped::Cuda(cuda::IpcMemory::open(device, handle)?)
            }
            (DeviceBackend::Cpu(device), IpcMemoryOrigin::Cpu { process, file, inode }) => {
                Mapped::Cpu(cpu::IpcMemory::open(device, *process, *file, *inode, bytes)?)
            }
            (_, IpcMemoryOrigin::Pool(_)) => return other_kind("a memory pool (see `SharedPool`)"),
            (_, IpcMemoryOrigin::Cuda(_)) => return other_kind("a CUDA device"),
            (_, IpcMemoryOrigin::Cpu { .. }) => return other_kind("the CPU device"),
        };
        Ok(SharedMemory { mapped, _charge: None })
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        match &self.mapped {
            Mapped::Cuda(memory) => memory.start(),
            Mapped::Cpu(memory) => memory.start(),
        }
    }
}
