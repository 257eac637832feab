//! What a compiled kernel needs and takes on a device, and the two preferences that it may be given. It
//! must not know how a kernel is launched.

use crate::backend::{DeviceBackend, Prepared};
use crate::device::Device;
use crate::error::Result;
use crate::kernel::Kernel;

/// The attributes of a kernel on a device: CUDA's `cudaFuncAttributes`, from [`Device::attributes`]. Capitals name the
/// driver's attribute, without `CU_FUNC_ATTRIBUTE_`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Each block has 4 KiB.
/// #[kernel(max_threads = 512)]
/// pub fn tiled(_t: Thread<1>, _tile: Shared<[f32; 1024]>) {}
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// let attributes = Device::cpu().attributes(kernels::tiled::kernel())?;
/// assert_eq!((attributes.max_threads_per_block, attributes.static_shared_memory), (512, 4096));
/// // What ptxas found, on a GPU; the CPU device has no such registers.
/// println!("{} registers, {} bytes of local memory", attributes.registers, attributes.local_memory);
/// assert_eq!(attributes.binary_version, None);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// 32-bit registers of each thread (`NUM_REGS`). 0 on the CPU.
    pub registers: u32,
    /// Bytes of shared memory whose size is fixed in the kernel: for Rust kernels that of their `Shared`
    /// parameters (`SHARED_SIZE_BYTES`).
    pub static_shared_memory: u32,
    /// Bytes of local memory of each thread: its stack, and registers that did not fit (`LOCAL_SIZE_BYTES`). 0 on the
    /// CPU.
    pub local_memory: u32,
    /// Bytes of constant memory for the constants of the user (`CONST_SIZE_BYTES`). 0 on the CPU.
    pub constant_memory: u32,
    /// Threads that a block of this kernel may have on this device (`MAX_THREADS_PER_BLOCK`).
    pub max_threads_per_block: u32,
    /// Bytes of dynamic shared memory that a launch may have now (`MAX_DYNAMIC_SHARED_SIZE_BYTES`); launches raise it
    /// as they need. That of the `Shared` parameters of Rust kernels counts as dynamic here, because the launch passes
    /// it.
    pub max_dynamic_shared_memory: u32,
    /// The part of the L1 cache preferred for shared memory in per cent (`PREFERRED_SHARED_MEMORY_CARVEOUT`); `None`
    /// leaves it to the driver.
    pub preferred_shared_memory_carveout: Option<u32>,
    /// The virtual architecture that its PTX was compiled for: (9, 0) for `compute_90` (`PTX_VERSION`). `None` on the
    /// CPU.
    pub ptx_version: Option<(u32, u32)>,
    /// The architecture of its machine code: (9, 0) for `sm_90` (`BINARY_VERSION`). `None` on the CPU.
    pub binary_version: Option<(u32, u32)>,
}

/// How a kernel would rather divide the memory that the L1 cache and shared memory share.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # #[kernel]
/// # pub fn gather(t: Thread<1>, table: &[f32], mut y: DisjointSlice<f32>) {
/// #     if let Some(y) = y.get_mut(t.index()) {
/// #         *y = table[0];
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::CachePreference;
///
/// // It reads a small table again and again, and has no shared memory.
/// Device::cpu().set_cache_preference(kernels::gather::kernel(), CachePreference::L1)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CachePreference {
    /// No preference (`CU_FUNC_CACHE_PREFER_NONE`).
    None,
    /// More shared memory (`CU_FUNC_CACHE_PREFER_SHARED`).
    Shared,
    /// More L1 cache (`CU_FUNC_CACHE_PREFER_L1`).
    L1,
    /// As much of one as of the other (`CU_FUNC_CACHE_PREFER_EQUAL`).
    Equal,
}

impl Device {
    /// The attributes of `kernel` on this device (`cuFuncGetAttribute`); it is loaded if it was not.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel(max_threads = 256)]
    /// # pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    /// #     let i = t.index();
    /// #     if let Some(y) = y.get_mut(i) {
    /// #         *y += a * x[i.get()];
    /// #     }
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let attributes = stream.device().attributes(kernels::saxpy::kernel())?;
    /// println!("{} registers, {} bytes of stack", attributes.registers, attributes.local_memory);
    /// assert_eq!(attributes.max_threads_per_block, 256); // as the kernel says: `max_threads = 256`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn attributes(&self, kernel: &'static Kernel) -> Result<KernelAttributes> {
        self.attributes_of(self.prepare(kernel)?, kernel)
    }

    /// Says how `kernel` would rather have the L1 cache and shared memory divided
    /// (`cuFuncSetCacheConfig`). The driver may do otherwise. Nothing happens on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn stencil(t: Thread<1>, mut y: DisjointSlice<f32>) {
    /// #     let _ = y.get_mut(t.index());
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::CachePreference;
    ///
    /// stream.device().set_cache_preference(kernels::stencil::kernel(), CachePreference::L1)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn set_cache_preference(&self, kernel: &'static Kernel, preference: CachePreference) -> Result<()> {
        let prepared = self.prepare(kernel)?;
        match self.backend() {
            DeviceBackend::Cuda(device) => device.set_cache_preference(prepared.function.cast(), preference),
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    /// Says how much of the L1 cache `kernel` would rather have as shared memory, in per cent
    /// (`CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`); `None` leaves it to the driver. The
    /// driver rounds up to what the hardware can. Nothing happens on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn tiled(_t: Thread<1>, _tile: Shared<[f32; 1024]>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (device, kernel) = (Device::cpu(), kernels::tiled::kernel());
    /// device.set_shared_memory_carveout(kernel, Some(50))?; // half of it, and the other half for the cache
    /// println!("{:?}", device.attributes(kernel)?.preferred_shared_memory_carveout); // Some(50) on a GPU
    /// device.set_shared_memory_carveout(kernel, None)?; // as the driver thinks best
    /// assert_eq!(device.attributes(kernel)?.preferred_shared_memory_carveout, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; what the driver says of more than 100.
    pub fn set_shared_memory_carveout(&self, kernel: &'static Kernel, percent: Option<u32>) -> Result<()> {
        let prepared = self.prepare(kernel)?;
        match self.backend() {
            DeviceBackend::Cuda(device) => device.set_carveout(prepared.function.cast(), percent),
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    /// Lets launches of `kernel` have up to `bytes` of dynamic shared memory
    /// (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`). Launches by this crate do it themselves; it is
    /// for other libraries that launch the same function. Nothing happens on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn sized(_t: Thread<1>, _tile: SharedSlice<f32>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (device, kernel) = (Device::cpu(), kernels::sized::kernel());
    /// device.set_max_dynamic_shared_memory(kernel, 64 << 10)?; // before another library launches it with 64 KiB
    /// assert!(device.attributes(kernel)?.max_dynamic_shared_memory >= 64 << 10);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; what the driver says of more than the device has.
    pub fn set_max_dynamic_shared_memory(&self, kernel: &'static Kernel, bytes: u32) -> Result<()> {
        let prepared = self.prepare(kernel)?;
        match self.backend() {
            DeviceBackend::Cuda(device) => device.set_max_dynamic_shared(prepared.function.cast(), bytes),
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    /// Loads `kernel` for this device, if that has not been done.
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Prepared> {
        match self.backend() {
            DeviceBackend::Cuda(device) => device.prepare(kernel),
            DeviceBackend::Cpu(_) => Ok(Prepared::default()),
        }
    }

    pub(crate) fn attributes_of(&self, prepared: Prepared, kernel: &Kernel) -> Result<KernelAttributes> {
        let most = self.limits().max_threads_per_block;
        let max_threads = kernel.max_threads().unwrap_or(most).min(most);
        // Shared memory of fixed size in Rust kernels is passed by the launch.
        let fixed = u32::try_from(kernel.shared_bytes()).unwrap_or(u32::MAX);
        match self.backend() {
            DeviceBackend::Cuda(device) => {
                let mut attributes = device.function_attributes(prepared.function.cast(), max_threads)?;
                attributes.static_shared_memory = attributes.static_shared_memory.saturating_add(fixed);
                Ok(attributes)
            }
            DeviceBackend::Cpu(device) => Ok(KernelAttributes {
                registers: 0,
                static_shared_memory: fixed,
                local_memory: 0,
                constant_memory: 0,
                max_threads_per_block: max_threads,
                max_dynamic_shared_memory: device.properties()?.shared_memory_per_block_optin,
                preferred_shared_memory_carveout: None,
                ptx_version: None,
                binary_version: None,
            }),
        }
    }
}
