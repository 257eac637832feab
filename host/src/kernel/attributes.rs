//! The attributes of a compiled kernel on a device, and its two preferences.

/// The attributes of a kernel on a device: CUDA's `cudaFuncAttributes`, from
/// [`Device::attributes`](crate::Device::attributes). Capitals name the driver's attribute, without `CU_FUNC_ATTRIBUTE_`.
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
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
