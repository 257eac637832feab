//! A device of either backend, and what is asked of it. What does not exist on the CPU is `None`, or done by doing nothing.

use std::ffi::c_void;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr::{addr_eq, from_ref};

use super::cpu::{self, CpuDevice};
use super::cuda::{self, CudaDevice, ModuleLease};
use super::{Limits, Prepared, StreamBackend};
use crate::device::MemoryInfo;
use crate::device::attribute::DeviceAttribute;
use crate::device::cpu_options::CpuOptions;
use crate::device::properties::DeviceProperties;
use crate::error::{Error, Result};
use crate::image::CodeType;
use crate::kernel::Kernel;
use crate::kernel::image::ModuleImage;
use crate::output::Sink;
use crate::stream::options::StreamOptions;

/// A device of either backend; devices live as long as the process, a GPU that was reset as one that refuses all calls.
#[derive(Clone, Copy)]
pub(crate) enum DeviceBackend {
    Cuda(&'static CudaDevice),
    Cpu(&'static CpuDevice),
}

/// Which devices there are.
impl DeviceBackend {
    /// GPU number `ordinal`, with its context.
    pub(crate) fn cuda(ordinal: usize) -> Result<Self> {
        let devices = cuda::devices()?;
        let device = *devices.get(ordinal).ok_or(Error::InvalidDevice { ordinal, count: devices.len() })?;
        device.context()?;
        Ok(DeviceBackend::Cuda(device))
    }

    /// All GPUs, in the driver's order; none where there is no driver.
    pub(crate) fn all_cuda() -> impl Iterator<Item = Self> {
        cuda::devices().unwrap_or_default().into_iter().map(DeviceBackend::Cuda)
    }

    /// The GPU with that handle of the driver (`CUdevice`).
    pub(crate) fn cuda_of_handle(raw: i32) -> Result<Self> {
        let devices = cuda::devices()?;
        let found = devices.iter().find(|device| device.as_raw() == raw);
        let unknown = Error::InvalidDevice { ordinal: raw.unsigned_abs() as usize, count: devices.len() };
        DeviceBackend::cuda(found.ok_or(unknown)?.ordinal())
    }

    /// The GPU of that context (`CUcontext`).
    ///
    /// # Safety
    /// `raw` is a live context.
    pub(crate) unsafe fn cuda_of_context(raw: *mut c_void) -> Result<Self> {
        // SAFETY: passed on.
        unsafe { cuda::device_of_context(raw) }.map(DeviceBackend::Cuda)
    }

    pub(crate) fn cpu() -> Self {
        DeviceBackend::Cpu(CpuDevice::get())
    }

    pub(crate) fn cpu_with(options: &CpuOptions) -> Result<Self> {
        CpuDevice::with_options(options).map(DeviceBackend::Cpu)
    }

    /// Whether its context can be made.
    pub(crate) fn works(self) -> bool {
        match self {
            DeviceBackend::Cuda(device) => device.context().is_ok(),
            DeviceBackend::Cpu(_) => true,
        }
    }

    /// The GPU, for what only GPUs have: handles, code of other compilers, memory pools.
    pub(crate) fn as_cuda(self) -> Option<&'static CudaDevice> {
        match self {
            DeviceBackend::Cuda(device) => Some(device),
            DeviceBackend::Cpu(_) => None,
        }
    }
}

/// What a device is.
impl DeviceBackend {
    pub(crate) fn name(&self) -> &str {
        match self {
            DeviceBackend::Cuda(device) => device.name(),
            DeviceBackend::Cpu(device) => device.name(),
        }
    }

    pub(crate) fn is_cuda(self) -> bool {
        self.as_cuda().is_some()
    }

    pub(crate) fn ordinal(self) -> Option<usize> {
        self.as_cuda().map(CudaDevice::ordinal)
    }

    pub(crate) fn compute_capability(self) -> Option<(u32, u32)> {
        self.as_cuda().map(CudaDevice::capability)
    }

    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        match self {
            DeviceBackend::Cuda(device) => device.limits(),
            DeviceBackend::Cpu(_) => &Limits::CUDA,
        }
    }

    #[inline]
    pub(crate) fn shared_memory_per_block(self) -> usize {
        match self {
            DeviceBackend::Cuda(device) => device.shared_memory_per_block(),
            DeviceBackend::Cpu(device) => device.shared_memory_per_block(),
        }
    }

    pub(crate) fn properties(self) -> Result<DeviceProperties> {
        match self {
            DeviceBackend::Cuda(device) => device.properties(),
            DeviceBackend::Cpu(device) => device.properties(),
        }
    }

    pub(crate) fn attribute(self, attribute: DeviceAttribute) -> Result<i32> {
        match self {
            DeviceBackend::Cuda(device) => device.attribute(attribute),
            DeviceBackend::Cpu(device) => device.attribute(attribute),
        }
    }

    /// The least and the greatest priority of streams.
    pub(crate) fn priority_range(self) -> Result<(i32, i32)> {
        match self {
            DeviceBackend::Cuda(device) => device.priority_range(),
            DeviceBackend::Cpu(_) => Ok((0, 0)),
        }
    }

    pub(crate) fn memory_info(self) -> Result<Option<MemoryInfo>> {
        match self {
            DeviceBackend::Cuda(device) => device.memory_info().map(Some),
            DeviceBackend::Cpu(device) => Ok(device.memory_info()),
        }
    }

    /// Where the device lives: its identity.
    #[inline]
    pub(crate) fn address(self) -> *const () {
        match self {
            DeviceBackend::Cuda(device) => from_ref(device).cast(),
            DeviceBackend::Cpu(device) => from_ref(device).cast(),
        }
    }
}

/// Streams, and the device as a whole.
impl DeviceBackend {
    pub(crate) fn new_stream(self, options: StreamOptions) -> Result<StreamBackend> {
        let role = if options.ordered_with_legacy { cpu::Role::Ordered } else { cpu::Role::Independent };
        match self {
            DeviceBackend::Cuda(device) => device.new_stream(options).map(StreamBackend::Cuda),
            DeviceBackend::Cpu(device) => Ok(StreamBackend::Cpu(device.new_stream()?.with_role(role))),
        }
    }

    pub(crate) fn legacy_stream(self) -> Result<StreamBackend> {
        match self {
            DeviceBackend::Cuda(device) => device.legacy_stream().map(StreamBackend::Cuda),
            DeviceBackend::Cpu(device) => {
                Ok(StreamBackend::Cpu(device.new_stream()?.with_role(cpu::Role::Legacy)))
            }
        }
    }

    /// The default stream of the calling thread.
    pub(crate) fn per_thread_stream(self) -> Result<StreamBackend> {
        match self {
            DeviceBackend::Cuda(device) => device.per_thread_stream().map(StreamBackend::Cuda),
            DeviceBackend::Cpu(device) => device.per_thread_stream().map(StreamBackend::Cpu),
        }
    }

    /// A stream that another library made; `None` where there are no handles.
    ///
    /// # Safety
    /// `raw` is a stream, and stays live until `StreamBackend::close` has been called.
    pub(crate) unsafe fn foreign_stream(self, raw: *mut c_void) -> Option<Result<StreamBackend>> {
        // SAFETY: passed on.
        self.as_cuda().map(|device| unsafe { device.foreign_stream(raw) }.map(StreamBackend::Cuda))
    }

    pub(crate) fn synchronize(self) -> Result<()> {
        match self {
            DeviceBackend::Cuda(device) => device.synchronize(),
            DeviceBackend::Cpu(device) => device.synchronize(),
        }
    }

    /// If its handles are from before a reset: the error that says so.
    #[cold]
    pub(crate) fn was_reset(self) -> Option<Error> {
        match self {
            DeviceBackend::Cuda(device) => device.has_been_reset().then(|| device.was_reset()),
            DeviceBackend::Cpu(_) => None,
        }
    }

    /// Sets who gets printed text: `sink`, or standard output.
    pub(crate) fn set_output_sink(self, sink: Option<Sink>) {
        match self {
            DeviceBackend::Cuda(device) => device.set_output(sink),
            DeviceBackend::Cpu(device) => device.output().set(sink),
        }
    }

    pub(crate) fn deliver_output(self) {
        match self {
            DeviceBackend::Cuda(device) => device.deliver_output(),
            DeviceBackend::Cpu(device) => device.output().deliver_kept(),
        }
    }

    /// `bytes` is a power of two.
    pub(crate) fn set_output_capacity(self, bytes: usize) -> Result<()> {
        match self {
            DeviceBackend::Cuda(device) => device.set_output_capacity(bytes),
            DeviceBackend::Cpu(device) => {
                device.output().set_capacity(bytes);
                Ok(())
            }
        }
    }

    pub(crate) fn set_persisting_l2_cache_size(self, bytes: usize) -> Result<()> {
        match self {
            DeviceBackend::Cuda(device) => device.set_persisting_l2_cache_size(bytes),
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    pub(crate) fn reset_persisting_l2_cache(self) -> Result<()> {
        match self {
            DeviceBackend::Cuda(device) => device.reset_persisting_l2_cache(),
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }
}

/// Other devices.
impl DeviceBackend {
    /// Whether it could use the memory of `peer`, which is another.
    pub(crate) fn can_access_peer(self, peer: DeviceBackend) -> Result<bool> {
        match (self, peer) {
            (DeviceBackend::Cuda(device), DeviceBackend::Cuda(peer)) => device.can_access_peer(peer),
            // All are the host's.
            (DeviceBackend::Cpu(_), DeviceBackend::Cpu(_)) => Ok(true),
            _ => Ok(false),
        }
    }

    /// Lets it use the memory of `peer`, which is another that it can reach.
    pub(crate) fn enable_peer_access(self, peer: DeviceBackend) -> Result<()> {
        match (self, peer) {
            (DeviceBackend::Cuda(device), DeviceBackend::Cuda(peer)) => device.enable_peer_access(peer),
            (DeviceBackend::Cpu(device), DeviceBackend::Cpu(peer)) => {
                device.enable_peer_access(peer);
                Ok(())
            }
            _ => unreachable!("a GPU and the CPU cannot reach each other's memory"),
        }
    }

    /// Whether it may use the memory of `peer`, which is another.
    #[cold]
    pub(crate) fn has_peer(self, peer: DeviceBackend) -> bool {
        match (self, peer) {
            (DeviceBackend::Cuda(device), DeviceBackend::Cuda(peer)) => device.has_peer(peer),
            (DeviceBackend::Cpu(device), DeviceBackend::Cpu(peer)) => device.has_peer(peer),
            _ => false,
        }
    }
}

/// Modules of kernels.
impl DeviceBackend {
    /// Loads `kernel`, if that has not been done.
    pub(crate) fn prepare(self, kernel: &'static Kernel) -> Result<Prepared> {
        match self {
            DeviceBackend::Cuda(device) => device.prepare(kernel),
            DeviceBackend::Cpu(_) => Ok(Prepared::default()),
        }
    }

    /// Which kind of code `kernel` was loaded from.
    pub(crate) fn code_type(self, kernel: &'static Kernel) -> Result<Option<CodeType>> {
        self.as_cuda().map(|device| device.code_type(kernel)).transpose()
    }

    /// # Safety
    /// Nothing uses the module, its kernels or its variables, or will.
    pub(crate) unsafe fn unload(self, image: &'static ModuleImage) -> Result<()> {
        match self {
            // SAFETY: passed on.
            DeviceBackend::Cuda(device) => unsafe { device.unload(image) },
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    /// A variable of a module, which the lease keeps loaded; `None` where modules have none, so that the host allocates it.
    pub(crate) fn variable(
        self,
        image: &'static ModuleImage,
        name: &'static str,
        symbol: &'static str,
        bytes: usize,
    ) -> Result<Option<(*mut u8, ModuleLease)>> {
        self.as_cuda().map(|device| device.constant(image, name, symbol, bytes)).transpose()
    }
}

impl From<&'static CudaDevice> for DeviceBackend {
    fn from(device: &'static CudaDevice) -> Self {
        DeviceBackend::Cuda(device)
    }
}

impl fmt::Display for DeviceBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceBackend::Cuda(device) => write!(f, "{device}"),
            DeviceBackend::Cpu(device) => write!(f, "{device}"),
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
