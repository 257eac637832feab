//! Properties and preferences of a kernel on a device of either backend. On a GPU, each call loads the kernel
//! if necessary.

use cudarc::driver::sys::CUfunction;

use super::DeviceBackend;
use crate::backend::cuda::CudaDevice;
use crate::error::{Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::kernel::attributes::{CacheConfig, KernelAttributes};

/// The most blocks of a cluster on the CPU device: what `#[kernel(cluster = ...)]` takes.
const CPU_CLUSTER: u32 = 16;

impl DeviceBackend {
    /// Asks a GPU by `ask`; `None` on the CPU, where it follows from what else is known, or there is nothing to do.
    fn ask<T>(
        self,
        kernel: &'static Kernel,
        ask: impl FnOnce(&CudaDevice, CUfunction) -> Result<T>,
    ) -> Result<Option<T>> {
        let ask = |device: &CudaDevice| ask(device, device.prepare(kernel)?.function.cast());
        self.as_cuda().map(ask).transpose()
    }

    /// `max_threads` is what the kernel itself allows. Without shared memory that the launch passes.
    pub(crate) fn function_attributes(
        self,
        kernel: &'static Kernel,
        max_threads: u32,
    ) -> Result<KernelAttributes> {
        let asked = self.ask(kernel, |device, function| device.function_attributes(function, max_threads))?;
        if let Some(attributes) = asked {
            return Ok(attributes);
        }
        Ok(KernelAttributes {
            num_regs: 0,
            shared_size_bytes: 0,
            local_size_bytes: 0,
            const_size_bytes: 0,
            max_threads_per_block: max_threads,
            max_dynamic_shared_size_bytes: self.properties()?.shared_memory_per_block_optin,
            preferred_shared_memory_carveout: None,
            ptx_version: None,
            binary_version: None,
        })
    }

    pub(crate) fn set_cache_config(self, kernel: &'static Kernel, config: CacheConfig) -> Result<()> {
        self.ask(kernel, |device, function| device.set_cache_config(function, config)).map(drop)
    }

    pub(crate) fn set_carveout(self, kernel: &'static Kernel, percent: Option<u32>) -> Result<()> {
        self.ask(kernel, |device, function| device.set_carveout(function, percent)).map(drop)
    }

    pub(crate) fn set_max_dynamic_shared(self, kernel: &'static Kernel, bytes: u32) -> Result<()> {
        self.ask(kernel, |device, function| device.set_max_dynamic_shared(function, bytes)).map(drop)
    }

    /// `None` where no driver knows: it follows from the attributes.
    pub(crate) fn max_active_blocks(
        self,
        kernel: &'static Kernel,
        threads: u32,
        shared: usize,
    ) -> Result<Option<u32>> {
        self.ask(kernel, |device, function| device.max_active_blocks(function, threads, shared))
    }

    /// `None` where no driver knows.
    pub(crate) fn available_dynamic_shared(
        self,
        kernel: &'static Kernel,
        blocks: u32,
        threads: u32,
    ) -> Result<Option<usize>> {
        self.ask(kernel, |device, function| device.available_dynamic_shared(function, blocks, threads))
    }

    pub(crate) fn max_active_clusters(
        self,
        kernel: &'static Kernel,
        cluster: [u32; 3],
        block: [u32; 3],
        shared: u32,
    ) -> Result<u32> {
        let asked = self
            .ask(kernel, |device, function| device.max_active_clusters(function, cluster, block, shared))?;
        if let Some(clusters) = asked {
            return Ok(clusters);
        }
        let most = u64::from(self.limits().max_threads_per_block);
        let fits = (1..=u64::from(CPU_CLUSTER)).contains(&size_of_shape(cluster))
            && (1..=most).contains(&size_of_shape(block))
            && usize::try_from(shared).is_ok_and(|shared| shared <= self.shared_memory_per_block());
        Ok(if fits { self.properties()?.multiprocessor_count } else { 0 })
    }

    /// Lets a launch of `kernel` have clusters of that size, if the device may take them.
    pub(crate) fn allow_cluster(self, kernel: &'static Kernel, cluster: [u32; 3]) -> Result<()> {
        let allowed =
            self.ask(kernel, |device, function| device.allow_clusters(function, kernel, cluster))?;
        if allowed.is_some() || size_of_shape(cluster) <= u64::from(CPU_CLUSTER) {
            return Ok(());
        }
        let (kernel, device) = (kernel.name(), self.to_string().into());
        Err(Error::Launch(LaunchError::ClusterTooLarge { kernel, device, cluster, limit: CPU_CLUSTER }))
    }

    pub(crate) fn max_potential_cluster_size(
        self,
        kernel: &'static Kernel,
        block: [u32; 3],
        shared: u32,
    ) -> Result<u32> {
        let grid = kernel.cluster().unwrap_or([1; 3]);
        let size = self
            .ask(kernel, |device, function| device.max_potential_cluster_size(function, grid, block, shared));
        Ok(size?.unwrap_or(CPU_CLUSTER))
    }
}

fn size_of_shape(shape: [u32; 3]) -> u64 {
    shape.iter().copied().map(u64::from).product()
}
