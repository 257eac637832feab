//! A device of either backend. [`BackendDevice`] has the operations of each; features that the CPU lacks are `None`, or
//! do nothing. `kernel` has what a kernel is asked on it.

mod kernel;

use std::ffi::c_void;
use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::ptr::{addr_eq, from_ref};

use crate::backend::cpu::{self, CpuDevice};
use crate::backend::cuda::{self, CudaDevice, ModuleLease};
use crate::backend::memory::tensor_map::{Encoded, Tiled};
use crate::backend::{Limits, Prepared, StreamBackend};
use crate::error::{Error, Result};
use crate::image::CodeType;
use crate::kernel::Kernel;
use crate::kernel::image::ModuleImage;
use crate::output::Sink;
use crate::properties::DeviceProperties;
use crate::properties::attribute::DeviceAttribute;
use crate::properties::cpu_options::CpuOptions;
use crate::properties::memory_info::MemoryInfo;

/// A device of either backend; devices live as long as the process, a GPU that was reset as one that refuses all calls.
#[derive(Clone, Copy)]
pub(crate) enum DeviceBackend {
    Cuda(&'static CudaDevice),
    Cpu(&'static CpuDevice),
}

/// Operations of a device. The defaults return nothing and do nothing.
pub(crate) trait BackendDevice: DeviceMemory + DeviceQueries + Display {
    fn name(&self) -> &str;

    /// Checks that its context can be created.
    fn works(&self) -> bool {
        true
    }

    /// The least and the greatest priority of streams.
    fn priority_range(&self) -> Result<(i32, i32)> {
        Ok((0, 0))
    }

    /// Waits for all streams, including dropped ones; reports a failure that it has not reported before. Those of live
    /// streams stay with them.
    fn synchronize(&self) -> Result<()>;

    /// [`Error::DeviceReset`] if its handles are from before a reset.
    fn was_reset(&self) -> Option<Error> {
        None
    }

    /// The error of an allocation of so many bytes that failed.
    #[cold]
    fn out_of_memory(&self, requested: usize) -> Error {
        let memory = self.memory_info().ok().flatten();
        Error::OutOfMemory {
            device: self.to_string().into(),
            requested: requested as u64,
            free: memory.map(|memory| memory.free),
            total: memory.map(|memory| memory.total),
        }
    }

    /// Sets the receiver of printed text: `sink`, or standard output.
    fn set_output_sink(&self, sink: Option<Sink>);

    /// Delivers text that kernels have printed.
    fn deliver_output(&self);

    /// `bytes` is a power of two.
    fn set_output_capacity(&self, bytes: usize) -> Result<()>;
}

/// What a device is like.
pub(crate) trait DeviceQueries {
    fn properties(&self) -> Result<DeviceProperties>;
    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32>;
}

/// Operations on memory that is not allocated in stream order, and the figures of a device's memory. The defaults use host
/// memory directly.
pub(crate) trait DeviceMemory {
    fn memory_info(&self) -> Result<Option<MemoryInfo>>;

    /// Returns unused memory to the system, except `keep` bytes.
    fn trim_memory(&self, _keep: usize) -> Result<()> {
        Ok(())
    }

    /// `bytes` (not 0) of page-locked memory of the host, of unknown content.
    fn allocate_host(&self, bytes: usize, write_combined: bool) -> Result<*mut u8>;

    /// # Safety
    /// `start` is `bytes` from `allocate_host` here, is freed once, and nothing uses them.
    unsafe fn free_host(&self, start: *mut u8, bytes: usize);

    /// Locks pages of memory that was not allocated here.
    ///
    /// # Safety
    /// `start` is `bytes` of live memory, not 0, which stays until `unlock_pages`.
    unsafe fn lock_pages(&self, _start: *mut u8, _bytes: usize) -> Result<()> {
        Ok(())
    }

    /// # Safety
    /// `start` is locked by `lock_pages`, and no device uses it.
    unsafe fn unlock_pages(&self, _start: *mut u8) {}

    /// The device's address of page-locked memory; `None` if the device cannot use it.
    ///
    /// # Safety
    /// `start` is page-locked.
    unsafe fn mapped_address(&self, start: *mut u8) -> Result<Option<*mut u8>> {
        Ok(Some(start))
    }

    /// Counts memory that the host uses in place, which some GPUs must be idle for.
    fn note_managed(&self) {}

    /// The opposite of `note_managed`.
    fn forget_managed(&self) {}

    /// # Errors
    /// [`Error::Unsupported`] if the host may not use managed memory while the device works.
    fn check_managed(&self) -> Result<()> {
        Ok(())
    }

    /// `advice` is one of `CUmem_advise`.
    ///
    /// # Safety
    /// `start` is `bytes` of live managed memory, not 0.
    unsafe fn advise(&self, _start: *const u8, _bytes: usize, _advice: u32, _host: bool) -> Result<()> {
        Ok(())
    }
}

impl Deref for DeviceBackend {
    type Target = dyn BackendDevice;

    fn deref(&self) -> &Self::Target {
        match self {
            DeviceBackend::Cuda(device) => *device,
            DeviceBackend::Cpu(device) => *device,
        }
    }
}

/// Enumeration of devices.
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

    /// A further CPU device, with the machine's resources by default.
    pub(crate) fn cpu_with(options: &CpuOptions) -> Result<Self> {
        CpuDevice::limited(options).map(DeviceBackend::Cpu)
    }

    /// The GPU, for what only GPUs have: handles, code of other compilers, memory pools.
    pub(crate) fn as_cuda(self) -> Option<&'static CudaDevice> {
        match self {
            DeviceBackend::Cuda(device) => Some(device),
            DeviceBackend::Cpu(_) => None,
        }
    }
}

/// The properties of a device.
impl DeviceBackend {
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

    /// The device's address: its identity.
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
    /// The tensor map of a plane; one that is not used where tiles are not copied by it.
    pub(crate) fn encode(self, tiled: &Tiled) -> Result<Encoded> {
        self.as_cuda().map_or(Ok(Encoded::UNUSED), |device| device.encode(tiled))
    }

    pub(crate) fn new_stream(self, ordered_with_legacy: bool, priority: i32) -> Result<StreamBackend> {
        let role = if ordered_with_legacy { cpu::Role::Ordered } else { cpu::Role::Independent };
        match self {
            DeviceBackend::Cuda(device) => {
                device.new_stream(ordered_with_legacy, priority).map(StreamBackend::Cuda)
            }
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

    pub(crate) fn set_persisting_l2_cache_size(self, bytes: usize) -> Result<()> {
        self.as_cuda().map_or(Ok(()), |device| device.set_persisting_l2_cache_size(bytes))
    }

    pub(crate) fn reset_persisting_l2_cache(self) -> Result<()> {
        self.as_cuda().map_or(Ok(()), CudaDevice::reset_persisting_l2_cache)
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

    /// Whether `other` uses `bytes` of page-locked memory by the address `pointer`, as this device does.
    ///
    /// # Safety
    /// `start` is page-locked.
    pub(crate) unsafe fn maps_alike(
        self,
        other: DeviceBackend,
        start: *mut u8,
        pointer: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        match (self, other) {
            _ if self == other => Ok(true),
            (DeviceBackend::Cpu(_), DeviceBackend::Cpu(_)) => Ok(true),
            (DeviceBackend::Cuda(_), DeviceBackend::Cuda(_)) if bytes == 0 => Ok(true),
            // SAFETY: passed on.
            (DeviceBackend::Cuda(_), DeviceBackend::Cuda(other)) => unsafe {
                Ok(other.mapped_address(start)? == Some(pointer))
            },
            _ => Ok(false),
        }
    }
}

/// The memory that a device keeps for graphs.
impl DeviceBackend {
    /// Reserved bytes of graphs now and at most, and used ones; `None` where the account of graphs has them.
    pub(crate) fn graph_memory(self) -> Result<Option<[u64; 4]>> {
        self.as_cuda().map(|device| device.graph_memory()).transpose()
    }

    /// Whether there are such figures to set back.
    pub(crate) fn reset_graph_memory(self) -> Result<bool> {
        let Some(device) = self.as_cuda() else { return Ok(false) };
        device.reset_graph_memory().map(|()| true)
    }

    pub(crate) fn trim_graph_memory(self) -> Result<()> {
        self.as_cuda().map_or(Ok(()), |device| device.trim_graph_memory())
    }
}

/// Modules of kernels.
impl DeviceBackend {
    /// Loads `kernel`, if that has not been done.
    pub(crate) fn prepare(self, kernel: &'static Kernel) -> Result<Prepared> {
        self.as_cuda().map_or(Ok(Prepared::default()), |device| device.prepare(kernel))
    }

    /// Which kind of code `kernel` was loaded from.
    pub(crate) fn code_type(self, kernel: &'static Kernel) -> Result<Option<CodeType>> {
        self.as_cuda().map(|device| device.code_type(kernel)).transpose()
    }

    /// # Safety
    /// Nothing uses the module, its kernels or its variables, or will.
    pub(crate) unsafe fn unload(self, image: &'static ModuleImage) -> Result<()> {
        // SAFETY: passed on.
        self.as_cuda().map_or(Ok(()), |device| unsafe { device.unload(image) })
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

impl Display for DeviceBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&**self, f)
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
