//! A kernel on a device, of this program or foreign: what it is asked, and the preferences that it may be given. The
//! public forms, on [`Device`], [`Kernel`] and [`ForeignFunction`](crate::ForeignFunction), all end here.

use crate::backend::cuda::CudaDevice;
use crate::backend::{DeviceBackend, Prepared};
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

/// The most blocks of a cluster on the CPU device: what `#[kernel(cluster = ...)]` takes.
const CPU_CLUSTER: u64 = 16;

impl<'a> LoadedKernel<'a> {
    /// `kernel`, loaded if it was not.
    pub(crate) fn of(device: &'a Device, kernel: &'static Kernel) -> Result<Self> {
        Ok(LoadedKernel { device, kernel, prepared: device.prepare(kernel)? })
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
        match self.device.backend() {
            DeviceBackend::Cuda(device) => {
                let mut attributes =
                    device.function_attributes(self.prepared.function.cast(), max_threads)?;
                attributes.shared_size_bytes = attributes.shared_size_bytes.saturating_add(fixed);
                Ok(attributes)
            }
            DeviceBackend::Cpu(device) => Ok(KernelAttributes {
                num_regs: 0,
                shared_size_bytes: fixed,
                local_size_bytes: 0,
                const_size_bytes: 0,
                max_threads_per_block: max_threads,
                max_dynamic_shared_size_bytes: device.properties()?.shared_memory_per_block_optin,
                preferred_shared_memory_carveout: None,
                ptx_version: None,
                binary_version: None,
            }),
        }
    }

    pub(crate) fn set_cache_config(self, config: CacheConfig) -> Result<()> {
        self.on_gpu(|device| device.set_cache_config(self.prepared.function.cast(), config))
    }

    pub(crate) fn set_carveout(self, percent: Option<u32>) -> Result<()> {
        self.on_gpu(|device| device.set_carveout(self.prepared.function.cast(), percent))
    }

    pub(crate) fn set_max_dynamic_shared(self, bytes: u32) -> Result<()> {
        self.on_gpu(|device| device.set_max_dynamic_shared(self.prepared.function.cast(), bytes))
    }

    /// Preferences mean nothing to the CPU device.
    fn on_gpu(self, set: impl FnOnce(&'static CudaDevice) -> Result<()>) -> Result<()> {
        match self.device.backend() {
            DeviceBackend::Cuda(device) => set(device),
            DeviceBackend::Cpu(_) => Ok(()),
        }
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
        match self.device.backend() {
            DeviceBackend::Cuda(device) => {
                // The driver knows nothing of the `Shared` parameters, which the launch passes.
                let shared = dynamic_shared.saturating_add(self.kernel.shared_size_bytes());
                device.max_active_blocks(self.prepared.function.cast(), threads, shared)
            }
            DeviceBackend::Cpu(_) => Ok(self.occupancy(threads, dynamic_shared)?.active_blocks),
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
        let fixed = self.kernel.shared_size_bytes();
        match self.device.backend() {
            DeviceBackend::Cuda(device) => {
                let bytes =
                    device.available_dynamic_shared(self.prepared.function.cast(), blocks, threads)?;
                Ok(bytes.saturating_sub(fixed))
            }
            DeviceBackend::Cpu(_) if blocks == 0 || self.max_active_blocks(threads, 0)? < blocks => {
                Err(self.no_block_fits())
            }
            DeviceBackend::Cpu(device) => Ok(device.shared_memory_per_block().saturating_sub(fixed)),
        }
    }

    pub(crate) fn max_active_clusters(
        self,
        cluster: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
    ) -> Result<u32> {
        let shared = self.all_shared(dynamic_shared);
        match self.device.backend() {
            DeviceBackend::Cuda(device) => {
                device.max_active_clusters(self.prepared.function.cast(), cluster, block, shared)
            }
            DeviceBackend::Cpu(device) => {
                let shared = usize::try_from(shared).unwrap_or(usize::MAX);
                let most = u64::from(self.device.limits().max_threads_per_block);
                let fits = (1..=CPU_CLUSTER).contains(&size_of_shape(cluster))
                    && (1..=most).contains(&size_of_shape(block))
                    && shared <= device.shared_memory_per_block();
                Ok(if fits { self.device.properties()?.multiprocessor_count } else { 0 })
            }
        }
    }

    /// Lets a launch have clusters of that size, if the device may take them.
    pub(crate) fn allow_cluster(self, cluster: [u32; 3]) -> Result<()> {
        match self.device.backend() {
            DeviceBackend::Cuda(device) => {
                device.allow_clusters(self.prepared.function.cast(), self.kernel, cluster)
            }
            DeviceBackend::Cpu(_) if size_of_shape(cluster) <= CPU_CLUSTER => Ok(()),
            DeviceBackend::Cpu(_) => Err(Error::ClusterTooLarge {
                kernel: self.kernel.name(),
                device: self.device.to_string().into(),
                cluster,
                limit: CPU_CLUSTER as u32,
            }),
        }
    }

    pub(crate) fn max_potential_cluster_size(self, block: [u32; 3], dynamic_shared: u32) -> Result<u32> {
        match self.device.backend() {
            DeviceBackend::Cuda(device) => {
                let (grid, shared) =
                    (self.kernel.cluster().unwrap_or([1; 3]), self.all_shared(dynamic_shared));
                device.max_potential_cluster_size(self.prepared.function.cast(), grid, block, shared)
            }
            DeviceBackend::Cpu(_) => Ok(CPU_CLUSTER as u32),
        }
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

fn size_of_shape(shape: [u32; 3]) -> u64 {
    shape.iter().copied().map(u64::from).product()
}
