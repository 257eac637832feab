//! The two backends behind the public types, and the choice between them. It must not know what
//! either does: `cuda` drives GPUs, `cpu` runs kernels natively.

pub(crate) mod cpu;
pub(crate) mod cuda;

use std::ffi::c_void;
use std::hash::{Hash, Hasher};
use std::ptr::{addr_eq, from_ref, null_mut};

use crate::error::Result;

/// A device of either backend; devices live as long as the process.
#[derive(Clone, Copy)]
pub(crate) enum DeviceBackend {
    Cuda(&'static cuda::CudaDevice),
    Cpu(&'static cpu::CpuDevice),
}

impl DeviceBackend {
    pub(crate) fn new_stream(self) -> Result<StreamBackend> {
        match self {
            DeviceBackend::Cuda(device) => device.new_stream().map(StreamBackend::Cuda),
            DeviceBackend::Cpu(device) => device.new_stream().map(StreamBackend::Cpu),
        }
    }

    /// Where the device lives: its identity.
    #[inline]
    fn address(self) -> *const () {
        match self {
            DeviceBackend::Cuda(device) => from_ref(device).cast(),
            DeviceBackend::Cpu(device) => from_ref(device).cast(),
        }
    }
}

impl PartialEq for DeviceBackend {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        addr_eq(self.address(), other.address())
    }
}

impl Eq for DeviceBackend {}

impl Hash for DeviceBackend {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

/// A stream of either backend.
pub(crate) enum StreamBackend {
    Cuda(cuda::CudaStream),
    Cpu(cpu::CpuStream),
}

impl StreamBackend {
    /// Makes later work here start after all that `earlier` holds so far.
    pub(crate) fn run_after(&self, earlier: &StreamBackend) -> Result<()> {
        match (self, earlier) {
            (StreamBackend::Cuda(stream), StreamBackend::Cuda(earlier)) => stream.run_after(earlier),
            (StreamBackend::Cpu(stream), StreamBackend::Cpu(earlier)) => stream.run_after(earlier),
            (_, StreamBackend::Cuda(earlier)) => earlier.synchronize(),
            (_, StreamBackend::Cpu(earlier)) => earlier.synchronize(),
        }
    }

    /// Makes later work here start after `event`.
    pub(crate) fn wait(&self, event: &EventBackend) -> Result<()> {
        match (self, event) {
            (StreamBackend::Cuda(stream), EventBackend::Cuda(event)) => stream.wait(event),
            (StreamBackend::Cpu(stream), EventBackend::Cpu(event)) => stream.wait(event),
            (_, event) => event.synchronize(),
        }
    }
}

/// An event of either backend.
pub(crate) enum EventBackend {
    Cuda(cuda::CudaEvent),
    Cpu(cpu::CpuEvent),
}

impl EventBackend {
    pub(crate) fn synchronize(&self) -> Result<()> {
        match self {
            EventBackend::Cuda(event) => event.synchronize(),
            EventBackend::Cpu(event) => {
                event.wait();
                Ok(())
            }
        }
    }
}

impl From<cuda::CudaEvent> for EventBackend {
    fn from(event: cuda::CudaEvent) -> Self {
        EventBackend::Cuda(event)
    }
}

impl From<cpu::CpuEvent> for EventBackend {
    fn from(event: cpu::CpuEvent) -> Self {
        EventBackend::Cpu(event)
    }
}

/// A kernel ready to be launched on a stream: the function that a GPU loaded; null on the CPU.
#[derive(Clone, Copy)]
pub(crate) struct Prepared(pub(crate) *mut c_void);

impl Default for Prepared {
    fn default() -> Self {
        Prepared(null_mut())
    }
}
