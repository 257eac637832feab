//! A kernel on a device, of this program or foreign: what it is asked, and the preferences that it may be given. The
//! public forms, on [`Device`], [`Kernel`] and [`ForeignFunction`](crate::ForeignFunction), all end here.

use crate::backend::Prepared;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kernel::attributes::{CacheConfig, KernelAttributes};
use crate::kernel::occupancy::{BlockResources, BlockSuggestion, Occupancy, fullest};

/// A kernel that `device` has loaded.
#[derive(Clone, Copy)]
pub(crate) struct LoadedKernel<'a> {
    device: &'a Device,
    kernel: &'a Kernel,
    prepared: Prepared,
}

impl<'a> LoadedKernel<'a> {
    /// `kernel`, loaded if it was not.
    pub(crate) fn of(device: &'a Device, kernel: &'static Kernel) -> Result<Self> {
        Ok(LoadedKernel { device, kernel, prepared: device.backend().prepare(kernel)? })
    }

    /// A kernel that was loaded by other means.
    pub(crate) fn foreign(device: &'a Device, kernel: &'a Kernel, prepared: Prepared) -> Self {
        LoadedKernel { device, kernel, prepared }
    }

    pub(crate) fn attributes(self) -> Result<KernelAttributes> {
        let most = self.device.limits().max_threads_per_block;
        let max_threads = self.kernel.max_threads().unwrap_or(most).min(most);
        // Shared memory of fixed size in Rust kernels is passed by the launch.
        let fixed = u32::try_from(self.kernel.shared_size_bytes()).unwrap_or(u32::MAX);
        let mut attributes = self.device.backend().function_attributes(self.prepared, max_threads)?;
        attributes.shared_size_bytes = attributes.shared_size_bytes.saturating_add(fixed);
        Ok(attributes)
    }

    pub(crate) fn set_cache_config(self, config: CacheConfig) -> Result<()> {
        self.device.backend().set_cache_config(self.prepared, config)
    }

    pub(crate) fn set_carveout(self, percent: Option<u32>) -> Result<()> {
        self.device.backend().set_carveout(self.prepared, percent)
    }

    pub(crate) fn set_max_dynamic_shared(self, bytes: u32) -> Result<()> {
        self.device.backend().set_max_dynamic_shared(self.prepared, bytes)
    }

    pub(crate) fn occupancy(self, threads: u32, dynamic_shared: usize) -> Result<Occupancy> {
        let attributes = self.attributes()?;
        let block = BlockResources::new(threads)
            .with_max_threads(attributes.max_threads_per_block)
            .with_registers(attributes.num_regs)
            .with_shared_memory(attributes.shared_size_bytes, dynamic_shared);
        Ok(self.device.properties()?.multiprocessor_limits().occupancy(&block))
    }

    pub(crate) fn max_active_blocks(self, threads: u32, dynamic_shared: usize) -> Result<u32> {
        // The driver knows nothing of the `Shared` parameters, which the launch passes.
        let shared = dynamic_shared.saturating_add(self.kernel.shared_size_bytes());
        match self.device.backend().max_active_blocks(self.prepared, threads, shared)? {
            Some(blocks) => Ok(blocks),
            None => Ok(self.occupancy(threads, dynamic_shared)?.active_blocks),
        }
    }

    pub(crate) fn max_potential_block_size(
        self,
        dynamic_shared: impl Fn(u32) -> usize,
        limit: Option<u32>,
    ) -> Result<BlockSuggestion> {
        let properties = self.device.properties()?;
        let takes = self.attributes()?.max_threads_per_block;
        let most = limit.unwrap_or(takes).min(takes);
        let blocks_of = |threads| self.max_active_blocks(threads, dynamic_shared(threads));
        let (blocks, block_size) =
            fullest(most, properties.warp_size, properties.max_threads_per_multiprocessor, blocks_of)?;
        if blocks == 0 {
            return Err(self.no_block_fits());
        }
        Ok(BlockSuggestion { block_size, min_grid_size: blocks * properties.multiprocessor_count })
    }

    pub(crate) fn available_dynamic_shared(self, blocks: u32, threads: u32) -> Result<usize> {
        let available =
            match self.device.backend().available_dynamic_shared(self.prepared, blocks, threads)? {
                Some(bytes) => bytes,
                None if blocks == 0 || self.max_active_blocks(threads, 0)? < blocks => {
                    return Err(self.no_block_fits());
                }
                None => self.device.shared_memory_per_block(),
            };
        Ok(available.saturating_sub(self.kernel.shared_size_bytes()))
    }

    pub(crate) fn max_active_clusters(
        self,
        cluster: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
    ) -> Result<u32> {
        let shared = self.all_shared(dynamic_shared);
        self.device.backend().max_active_clusters(self.prepared, cluster, block, shared)
    }

    /// Lets a launch have clusters of that size, if the device may take them.
    pub(crate) fn allow_cluster(self, cluster: [u32; 3]) -> Result<()> {
        self.device.backend().allow_cluster(self.prepared, self.kernel, cluster)
    }

    pub(crate) fn max_potential_cluster_size(self, block: [u32; 3], dynamic_shared: u32) -> Result<u32> {
        let cluster = self.kernel.cluster().unwrap_or([1; 3]);
        let shared = self.all_shared(dynamic_shared);
        self.device.backend().max_potential_cluster_size(self.prepared, cluster, block, shared)
    }

    /// The bytes that a launch passes for `Shared` and `SharedSlice` parameters together.
    fn all_shared(self, dynamic: u32) -> u32 {
        dynamic.saturating_add(u32::try_from(self.kernel.shared_size_bytes()).unwrap_or(u32::MAX))
    }

    #[cold]
    fn no_block_fits(self) -> Error {
        Error::NoBlockFits { kernel: self.kernel.name(), device: self.device.to_string().into() }
    }
}
