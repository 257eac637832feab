//! Queries about a kernel, of this program or foreign, and its preferences. [`Device`] and
//! [`ForeignFunction`](crate::ForeignFunction) pass them on to here.

use std::ffi::c_void;

use crate::device::Device;
use crate::error::{Error, LaunchError, Result};
use crate::image::CodeType;
use crate::kernel::Kernel;
use crate::kernel::attributes::{CacheConfig, KernelAttributes};
use crate::kernel::dimensions::{Dimensions, padded};
use crate::kernel::occupancy::{BlockResources, BlockSuggestion, Occupancy, fullest};

/// The attributes of a kernel on a device: each call loads it there if it was not, and fails if it does not load, as a launch
/// does.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Each block has 4 KiB, and as much more as the launch gives it.
/// #[kernel(max_threads = 512)]
/// pub fn tiled(_t: Thread<1>, _tile: Shared<[f32; 1024]>, _more: SharedSlice<f32>) {}
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::CacheConfig;
///
/// let (device, kernel) = (Device::cpu(), kernels::tiled::kernel());
/// kernel.set_cache_config(&device, CacheConfig::Shared)?;
/// kernel.set_preferred_shared_memory_carveout(&device, Some(75))?; // three quarters of it shared memory
/// println!("{} registers", kernel.attributes(&device)?.num_regs);
/// assert_eq!(kernel.code_type(&device)?, None); // of a GPU: PTX or a cubin
///
/// let best = kernel.max_potential_block_size(&device, |threads| threads as usize * 4, None)?;
/// let shared = best.block_size as usize * 4;
/// let blocks = kernel.max_active_blocks_per_multiprocessor(&device, best.block_size, shared)?;
/// println!("{}", kernel.occupancy(&device, best.block_size, shared)?); // and what limits it
/// let available = kernel.available_dynamic_shared_memory_per_block(&device, blocks, best.block_size)?;
/// assert!(available >= shared && best.block_size <= 512);
/// # Ok(()) }
/// ```
impl Kernel {
    /// The driver's handle (`CUfunction`) on `device`, for calls such as `cuFuncGetAttribute` and `cuFuncGetModule`; it
    /// is loaded if it was not, and valid until it is unloaded by [`Kernel::unload`]. `None` on the CPU device.
    ///
    /// A launch by that handle passes the parameters that the generated launch function would, in the order of the `.param`s of
    /// its PTX: at the end of those of a kernel that may panic, `__ferrogrid_record`, which is 0. A panic is then a trap.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn step(_t: Thread<1>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// assert_eq!(kernels::step::kernel().as_raw(&Device::cpu())?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn as_raw(&'static self, device: &Device) -> Result<Option<*mut c_void>> {
        let device = device.backend();
        Ok(device.is_cuda().then(|| device.prepare(self)).transpose()?.map(|loaded| loaded.function))
    }

    /// The image of its module that was loaded on `device`: [`CodeType::Cubin`] if the build made machine code for that very
    /// architecture, else [`CodeType::Ptx`], which the driver compiled. `None` on the CPU device.
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn code_type(&'static self, device: &Device) -> Result<Option<CodeType>> {
        device.backend().code_type(self)
    }

    /// Unloads the device code of this kernel from `device` before the process ends (`cuModuleUnload`), once all work on
    /// it has run, as [`Device::synchronize`] waits for it: with this kernel all others of the same program, test or
    /// library, which share one module, and its constants. The next launch loads it again, and constants have the values
    /// in the source again. No effect if it is not loaded, and on the CPU device.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn once(_t: Thread<1>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// kernels::once(&stream, Grid::new(1, 32))?; // the set-up of a long-lived program
    /// // SAFETY: no other thread launches kernels of this program, and no graph has any.
    /// unsafe { kernels::once::kernel().unload(&device)? };
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::synchronize`], and the code is loaded still; or the driver's error.
    ///
    /// # Safety
    /// - Until this returns no other thread launches kernels of that module on `device`, sets or reads its constants, or
    ///   asks its kernels for anything.
    /// - No graph with kernels or constants of it is launched afterwards, and no handle of it
    ///   ([`Kernel::as_raw`]) is used.
    pub unsafe fn unload(&'static self, device: &Device) -> Result<()> {
        // SAFETY: passed on.
        unsafe { device.backend().unload(self.descriptor().image) }
    }

    /// As [`Device::attributes`].
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn attributes(&'static self, device: &Device) -> Result<KernelAttributes> {
        let most = device.limits().max_threads_per_block;
        let max_threads = self.max_threads().unwrap_or(most).min(most);
        // Shared memory of fixed size in Rust kernels is passed by the launch.
        let fixed = u32::try_from(self.shared_size_bytes()).unwrap_or(u32::MAX);
        let mut attributes = device.backend().function_attributes(self, max_threads)?;
        attributes.shared_size_bytes = attributes.shared_size_bytes.saturating_add(fixed);
        Ok(attributes)
    }

    /// As [`Device::occupancy`].
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn occupancy(
        &'static self,
        device: &Device,
        threads: u32,
        dynamic_shared: usize,
    ) -> Result<Occupancy> {
        let attributes = self.attributes(device)?;
        let block = BlockResources::new(threads)
            .with_max_threads(attributes.max_threads_per_block)
            .with_registers(attributes.num_regs)
            .with_shared_memory(attributes.shared_size_bytes, dynamic_shared);
        Ok(device.properties()?.multiprocessor_limits().occupancy(&block))
    }

    /// As [`Device::max_active_blocks_per_multiprocessor`].
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn max_active_blocks_per_multiprocessor(
        &'static self,
        device: &Device,
        threads: u32,
        dynamic_shared: usize,
    ) -> Result<u32> {
        // The driver knows nothing of the `Shared` parameters, which the launch passes.
        let shared = dynamic_shared.saturating_add(self.shared_size_bytes());
        match device.backend().max_active_blocks(self, threads, shared)? {
            Some(blocks) => Ok(blocks),
            None => Ok(self.occupancy(device, threads, dynamic_shared)?.active_blocks),
        }
    }

    /// As [`Device::max_potential_block_size`]: `dynamic_shared` gives the bytes of a block of a number of threads.
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch;
    /// [`LaunchError::NoBlockFits`](crate::LaunchError::NoBlockFits) if not even one warp fits.
    pub fn max_potential_block_size(
        &'static self,
        device: &Device,
        dynamic_shared: impl Fn(u32) -> usize,
        limit: Option<u32>,
    ) -> Result<BlockSuggestion> {
        let properties = device.properties()?;
        let takes = self.attributes(device)?.max_threads_per_block;
        let most = limit.unwrap_or(takes).min(takes);
        let blocks_of =
            |threads| self.max_active_blocks_per_multiprocessor(device, threads, dynamic_shared(threads));
        let (blocks, block_size) =
            fullest(most, properties.warp_size, properties.max_threads_per_multiprocessor, blocks_of)?;
        if blocks == 0 {
            return Err(self.no_block_fits(device));
        }
        Ok(BlockSuggestion { block_size, min_grid_size: blocks * properties.multiprocessor_count })
    }

    /// As [`Device::available_dynamic_shared_memory_per_block`].
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; if that many blocks do not fit even with none.
    pub fn available_dynamic_shared_memory_per_block(
        &'static self,
        device: &Device,
        blocks: u32,
        threads: u32,
    ) -> Result<usize> {
        let available = match device.backend().available_dynamic_shared(self, blocks, threads)? {
            Some(bytes) => bytes,
            None if blocks == 0
                || self.max_active_blocks_per_multiprocessor(device, threads, 0)? < blocks =>
            {
                return Err(self.no_block_fits(device));
            }
            None => device.shared_memory_per_block(),
        };
        Ok(available.saturating_sub(self.shared_size_bytes()))
    }

    /// As [`Device::max_active_clusters`].
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel(cluster = 4)]
    /// # pub fn clustered(_t: Thread<1>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (device, kernel) = (Device::cpu(), kernels::clustered::kernel());
    /// assert_eq!(kernel.max_potential_cluster_size(&device, 256, 0)?, 16);
    /// assert!(kernel.max_active_clusters(&device, 4, 256, 0)? > 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on GPUs before compute capability 9.0; if the kernel does not
    /// load; the driver's error for a shape that it cannot launch.
    pub fn max_active_clusters<const R: usize>(
        &'static self,
        device: &Device,
        cluster: impl Dimensions<R>,
        block: impl Dimensions<R>,
        dynamic_shared: u32,
    ) -> Result<u32> {
        let shared = self.all_shared(dynamic_shared);
        device.backend().max_active_clusters(self, padded(cluster), padded(block), shared)
    }

    /// As [`Device::max_potential_cluster_size`].
    ///
    /// # Errors
    /// As [`Kernel::max_active_clusters`].
    pub fn max_potential_cluster_size<const R: usize>(
        &'static self,
        device: &Device,
        block: impl Dimensions<R>,
        dynamic_shared: u32,
    ) -> Result<u32> {
        let shared = self.all_shared(dynamic_shared);
        device.backend().max_potential_cluster_size(self, padded(block), shared)
    }

    /// As [`Device::set_cache_config`].
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn set_cache_config(&'static self, device: &Device, config: CacheConfig) -> Result<()> {
        device.backend().set_cache_config(self, config)
    }

    /// As [`Device::set_preferred_shared_memory_carveout`].
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; the driver's error for more than 100.
    pub fn set_preferred_shared_memory_carveout(
        &'static self,
        device: &Device,
        percent: Option<u32>,
    ) -> Result<()> {
        device.backend().set_carveout(self, percent)
    }

    /// As [`Device::set_max_dynamic_shared_size_bytes`].
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; the driver's error for more than the device has.
    pub fn set_max_dynamic_shared_size_bytes(&'static self, device: &Device, bytes: u32) -> Result<()> {
        device.backend().set_max_dynamic_shared(self, bytes)
    }

    /// The bytes that a launch passes for `Shared` and `SharedSlice` parameters together.
    fn all_shared(&self, dynamic: u32) -> u32 {
        dynamic.saturating_add(u32::try_from(self.shared_size_bytes()).unwrap_or(u32::MAX))
    }

    #[cold]
    fn no_block_fits(&self, device: &Device) -> Error {
        Error::Launch(LaunchError::NoBlockFits { kernel: self.name(), device: device.to_string().into() })
    }
}
