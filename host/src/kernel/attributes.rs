//! The attributes of a compiled kernel on a device, and its two preferences.

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
/// assert_eq!((attributes.max_threads_per_block, attributes.shared_size_bytes), (512, 4096));
/// // What ptxas found, on a GPU; the CPU device has no such registers.
/// println!("{} registers, {} bytes of local memory", attributes.num_regs, attributes.local_size_bytes);
/// assert_eq!(attributes.binary_version, None);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// 32-bit registers of each thread (`NUM_REGS`). 0 on the CPU.
    pub num_regs: u32,
    /// Bytes of shared memory whose size is fixed in the kernel: for Rust kernels that of their `Shared`
    /// parameters (`SHARED_SIZE_BYTES`).
    pub shared_size_bytes: u32,
    /// Bytes of local memory of each thread: its stack, and registers that did not fit (`LOCAL_SIZE_BYTES`). 0 on the
    /// CPU.
    pub local_size_bytes: u32,
    /// Bytes of constant memory for the constants of the user (`CONST_SIZE_BYTES`). 0 on the CPU.
    pub const_size_bytes: u32,
    /// Threads that a block of this kernel may have on this device (`MAX_THREADS_PER_BLOCK`).
    pub max_threads_per_block: u32,
    /// Bytes of dynamic shared memory that a launch may have now (`MAX_DYNAMIC_SHARED_SIZE_BYTES`); launches raise it
    /// as they need. That of the `Shared` parameters of Rust kernels counts as dynamic here, because the launch passes
    /// it.
    pub max_dynamic_shared_size_bytes: u32,
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
/// use ferrogrid::CacheConfig;
///
/// // It reads a small table again and again, and has no shared memory.
/// Device::cpu().set_cache_config(kernels::gather::kernel(), CacheConfig::L1)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheConfig {
    /// No preference (`CU_FUNC_CACHE_PREFER_NONE`).
    None = 0,
    /// More shared memory (`CU_FUNC_CACHE_PREFER_SHARED`).
    Shared = 1,
    /// More L1 cache (`CU_FUNC_CACHE_PREFER_L1`).
    L1 = 2,
    /// As much of one as of the other (`CU_FUNC_CACHE_PREFER_EQUAL`).
    Equal = 3,
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
    /// println!("{} registers, {} bytes of stack", attributes.num_regs, attributes.local_size_bytes);
    /// assert_eq!(attributes.max_threads_per_block, 256); // as the kernel says: `max_threads = 256`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn attributes(&self, kernel: &'static Kernel) -> Result<KernelAttributes> {
        kernel.attributes(self)
    }

    /// Says how `kernel` would rather have the L1 cache and shared memory divided
    /// (`cuFuncSetCacheConfig`). The driver may do otherwise. No effect on the CPU.
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
    /// use ferrogrid::CacheConfig;
    ///
    /// stream.device().set_cache_config(kernels::stencil::kernel(), CacheConfig::L1)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn set_cache_config(&self, kernel: &'static Kernel, config: CacheConfig) -> Result<()> {
        kernel.set_cache_config(self, config)
    }

    /// Says how much of the L1 cache `kernel` would rather have as shared memory, in per cent
    /// (`CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`); `None` leaves it to the driver. The
    /// driver rounds up to what the hardware can. No effect on the CPU.
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
    /// device.set_preferred_shared_memory_carveout(kernel, Some(50))?; // half of it, and the other half for the cache
    /// println!("{:?}", device.attributes(kernel)?.preferred_shared_memory_carveout); // Some(50) on a GPU
    /// device.set_preferred_shared_memory_carveout(kernel, None)?; // as the driver thinks best
    /// assert_eq!(device.attributes(kernel)?.preferred_shared_memory_carveout, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; the driver's error for more than 100.
    pub fn set_preferred_shared_memory_carveout(
        &self,
        kernel: &'static Kernel,
        percent: Option<u32>,
    ) -> Result<()> {
        kernel.set_preferred_shared_memory_carveout(self, percent)
    }

    /// Allows launches of `kernel` up to `bytes` of dynamic shared memory
    /// (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`). Launches by this crate do it themselves; it is
    /// for other libraries that launch the same function. No effect on the CPU.
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
    /// device.set_max_dynamic_shared_size_bytes(kernel, 64 << 10)?; // before another library launches it with 64 KiB
    /// assert!(device.attributes(kernel)?.max_dynamic_shared_size_bytes >= 64 << 10);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; the driver's error for more than the device has.
    pub fn set_max_dynamic_shared_size_bytes(&self, kernel: &'static Kernel, bytes: u32) -> Result<()> {
        kernel.set_max_dynamic_shared_size_bytes(self, bytes)
    }
}
