//! What a device of either backend says of a kernel, and the preferences that a kernel may be given there.

use super::{DeviceBackend, Prepared};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kernel::attributes::{CacheConfig, KernelAttributes};

/// The most blocks of a cluster on the CPU device: what `#[kernel(cluster = ...)]` takes.
const CPU_CLUSTER: u32 = 16;

impl DeviceBackend {
    /// `max_threads` is what the kernel itself allows. Without shared memory that the launch passes.
    pub(crate) fn function_attributes(
        self,
        prepared: Prepared,
        max_threads: u32,
    ) -> Result<KernelAttributes> {
        match self {
            DeviceBackend::Cuda(device) => device.function_attributes(prepared.function.cast(), max_threads),
            DeviceBackend::Cpu(device) => Ok(KernelAttributes {
                num_regs: 0,
                shared_size_bytes: 0,
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

    pub(crate) fn set_cache_config(self, prepared: Prepared, config: CacheConfig) -> Result<()> {
        self.as_cuda().map_or(Ok(()), |device| device.set_cache_config(prepared.function.cast(), config))
    }

    pub(crate) fn set_carveout(self, prepared: Prepared, percent: Option<u32>) -> Result<()> {
        self.as_cuda().map_or(Ok(()), |device| device.set_carveout(prepared.function.cast(), percent))
    }

    pub(crate) fn set_max_dynamic_shared(self, prepared: Prepared, bytes: u32) -> Result<()> {
        self.as_cuda().map_or(Ok(()), |device| device.set_max_dynamic_shared(prepared.function.cast(), bytes))
    }

    /// `None` where no driver knows: it follows from the attributes.
    pub(crate) fn max_active_blocks(
        self,
        prepared: Prepared,
        threads: u32,
        shared: usize,
    ) -> Result<Option<u32>> {
        let ask = |device: &super::cuda::CudaDevice| {
            device.max_active_blocks(prepared.function.cast(), threads, shared)
        };
        self.as_cuda().map(ask).transpose()
    }

    /// `None` where no driver knows.
    pub(crate) fn available_dynamic_shared(
        self,
        prepared: Prepared,
        blocks: u32,
        threads: u32,
    ) -> Result<Option<usize>> {
        let ask = |device: &super::cuda::CudaDevice| {
            device.available_dynamic_shared(prepared.function.cast(), blocks, threads)
        };
        self.as_cuda().map(ask).transpose()
    }

    pub(crate) fn max_active_clusters(
        self,
        prepared: Prepared,
        cluster: [u32; 3],
        block: [u32; 3],
        shared: u32,
    ) -> Result<u32> {
        match self {
            DeviceBackend::Cuda(device) => {
                device.max_active_clusters(prepared.function.cast(), cluster, block, shared)
            }
            DeviceBackend::Cpu(device) => {
                let shared = usize::try_from(shared).unwrap_or(usize::MAX);
                let most = u64::from(self.limits().max_threads_per_block);
                let fits = (1..=u64::from(CPU_CLUSTER)).contains(&size_of_shape(cluster))
                    && (1..=most).contains(&size_of_shape(block))
                    && shared <= device.shared_memory_per_block();
                Ok(if fits { device.properties()?.multiprocessor_count } else { 0 })
            }
        }
    }

    /// Lets a launch of `kernel` have clusters of that size, if the device may take them.
    pub(crate) fn allow_cluster(self, prepared: Prepared, kernel: &Kernel, cluster: [u32; 3]) -> Result<()> {
        match self {
            DeviceBackend::Cuda(device) => device.allow_clusters(prepared.function.cast(), kernel, cluster),
            DeviceBackend::Cpu(_) if size_of_shape(cluster) <= u64::from(CPU_CLUSTER) => Ok(()),
            DeviceBackend::Cpu(_) => Err(Error::ClusterTooLarge {
                kernel: kernel.name(),
                device: self.to_string().into(),
                cluster,
                limit: CPU_CLUSTER,
            }),
        }
    }

    pub(crate) fn max_potential_cluster_size(
        self,
        prepared: Prepared,
        cluster: [u32; 3],
        block: [u32; 3],
        shared: u32,
    ) -> Result<u32> {
        match self {
            DeviceBackend::Cuda(device) => {
                device.max_potential_cluster_size(prepared.function.cast(), cluster, block, shared)
            }
            DeviceBackend::Cpu(_) => Ok(CPU_CLUSTER),
        }
    }
}

fn size_of_shape(shape: [u32; 3]) -> u64 {
    shape.iter().copied().map(u64::from).product()
}
