//! Attributes, occupancy and preferences of a loaded function.

use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;

use cudarc::driver::sys::{
    CUfunction, CUfunction_attribute as FunctionAttribute, CUlaunchConfig, CUshared_carveout,
};

use crate::backend::cuda::device::CudaDevice;
use crate::backend::cuda::driver::Code;
use crate::backend::cuda::module;
use crate::backend::cuda::stream::attributes::Attribute;
use crate::error::{Error, LaunchError, Result};
use crate::kernel::attributes::{CacheConfig, KernelAttributes};
use crate::kernel::{Kernel, Loaded};

const DEFAULT_CARVEOUT: c_int = CUshared_carveout::CU_SHAREDMEM_CARVEOUT_DEFAULT as c_int;

/// The most blocks of a cluster that every device with clusters takes.
const PORTABLE_CLUSTER: u32 = 8;

impl CudaDevice {
    /// The function of `kernel`, loaded if it was not; the context is bound.
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Loaded> {
        self.bind()?;
        if let Some(loaded) = kernel.loaded(self.ordinal()) {
            return Ok(loaded);
        }
        let loaded = module::function(self, kernel)?;
        kernel.set_loaded(self.ordinal(), loaded);
        Ok(loaded)
    }

    /// `max_threads` is what the kernel itself allows.
    pub(crate) fn function_attributes(
        &self,
        function: CUfunction,
        max_threads: u32,
    ) -> Result<KernelAttributes> {
        let raw = |attribute| self.function_attribute(function, attribute);
        let one = |attribute| raw(attribute).map(c_int::unsigned_abs);
        let version = |attribute| one(attribute).map(|number| Some((number / 10, number % 10)));
        Ok(KernelAttributes {
            num_regs: one(FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared_size_bytes: one(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local_size_bytes: one(FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            const_size_bytes: one(FunctionAttribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads_per_block: one(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?
                .min(max_threads),
            max_dynamic_shared_size_bytes: one(
                FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            )?,
            preferred_shared_memory_carveout: u32::try_from(raw(
                FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            )?)
            .ok(),
            ptx_version: version(FunctionAttribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
            binary_version: version(FunctionAttribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        })
    }

    pub(crate) fn function_attribute(
        &self,
        function: CUfunction,
        attribute: FunctionAttribute,
    ) -> Result<c_int> {
        self.bind()?;
        // SAFETY: `to` is valid for the call, and the function is loaded.
        self.get(&format!("{attribute:?}"), |driver, to| unsafe {
            driver.function_attribute(to, attribute as c_uint, function)
        })
    }

    /// The architecture of the PTX that `function` was compiled from: 90 for `sm_90`.
    pub(crate) fn compiled_for(&self, function: CUfunction) -> Result<u32> {
        let version = self.function_attribute(function, FunctionAttribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?;
        Ok(version.unsigned_abs())
    }

    /// Checks that the device has clusters and the loaded code is for an architecture with them; lets a cluster be
    /// larger than what is portable, if it is.
    pub(crate) fn allow_clusters(
        &self,
        function: CUfunction,
        kernel: &Kernel,
        cluster: [u32; 3],
    ) -> Result<()> {
        if self.capability() < (9, 0) {
            return Err(Error::Launch(LaunchError::NoClusters {
                kernel: kernel.name(),
                cluster,
                device: self.to_string().into(),
                capability: self.capability(),
            }));
        }
        // Of foreign code it is not known whether it minds.
        let is_ours = kernel.descriptor().image.id().is_some();
        let architecture = if is_ours { self.compiled_for(function)? } else { 90 };
        if architecture < 90 {
            let device = self.to_string().into();
            return Err(Error::Launch(LaunchError::NoClusterCode {
                kernel: kernel.name(),
                device,
                architecture,
            }));
        }
        if cluster.iter().product::<u32>() <= PORTABLE_CLUSTER {
            return Ok(());
        }
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        self.set_function_attribute(function, attribute, 1)
    }

    /// Whether the code of `function`, as it was loaded, can wait for the launch before it.
    pub(crate) fn can_wait_for_launches(&self, function: CUfunction) -> Result<bool> {
        Ok(self.capability() >= (9, 0) && self.compiled_for(function)? >= 90)
    }

    fn set_function_attribute(
        &self,
        function: CUfunction,
        attribute: FunctionAttribute,
        value: c_int,
    ) -> Result<()> {
        self.bind()?;
        // SAFETY: the function is loaded; attributes bound what launches may ask for, no more.
        let code = unsafe { self.driver().function_set_attribute(function, attribute as c_uint, value) };
        self.check(code, &format!("{attribute:?} = {value}"))
    }

    pub(crate) fn set_cache_config(&self, function: CUfunction, preference: CacheConfig) -> Result<()> {
        self.bind()?;
        // SAFETY: the function is loaded, and the number is a `CUfunc_cache`.
        let code = unsafe { self.driver().function_set_cache(function, preference as c_uint) };
        self.check(code, &format!("{preference:?}"))
    }

    pub(crate) fn set_carveout(&self, function: CUfunction, percent: Option<u32>) -> Result<()> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        let percent =
            percent.map_or(DEFAULT_CARVEOUT, |percent| c_int::try_from(percent).unwrap_or(c_int::MAX));
        self.set_function_attribute(function, attribute, percent)
    }

    pub(crate) fn set_max_dynamic_shared(&self, function: CUfunction, bytes: u32) -> Result<()> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.set_function_attribute(function, attribute, c_int::try_from(bytes).unwrap_or(c_int::MAX))
    }

    /// Raises what launches may have of dynamic shared memory to `bytes`, if it is less.
    pub(crate) fn allow_dynamic_shared(&self, function: CUfunction, bytes: u32) -> Result<()> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        if self.function_attribute(function, attribute)?.unsigned_abs() >= bytes {
            return Ok(());
        }
        self.set_max_dynamic_shared(function, bytes)
    }

    /// Blocks on a multiprocessor at a time, where launches opt in to the shared memory that they need.
    pub(crate) fn max_active_blocks(&self, function: CUfunction, threads: u32, shared: usize) -> Result<u32> {
        if threads == 0 {
            return Ok(0);
        }
        let Ok(bytes) = u32::try_from(shared) else { return Ok(0) };
        let Ok(threads) = c_int::try_from(threads) else { return Ok(0) };
        // More than the device has is refused here, and gives no block below.
        let _ = self.allow_dynamic_shared(function, bytes);
        self.bind()?;
        let mut blocks = 0;
        // SAFETY: `blocks` is valid for the call, and the function is loaded.
        let code = unsafe { self.driver().occupancy_blocks(&mut blocks, function, threads, shared) };
        // Drivers may answer so for a block that cannot be launched.
        if code == Code::INVALID_VALUE {
            return Ok(0);
        }
        self.check(code, &format!("blocks of {threads} threads and {shared} bytes"))?;
        Ok(blocks.unsigned_abs())
    }

    pub(crate) fn available_dynamic_shared(
        &self,
        function: CUfunction,
        blocks: u32,
        threads: u32,
    ) -> Result<usize> {
        self.bind()?;
        let [count, size] = [blocks, threads].map(|number| c_int::try_from(number).unwrap_or(c_int::MAX));
        // SAFETY: `to` is valid for the call, and the function is loaded.
        self.get(&format!("{blocks} blocks of {threads} threads"), |driver, to| unsafe {
            driver.occupancy_shared(to, function, count, size)
        })
    }

    /// Clusters of that shape on the whole device at a time.
    pub(crate) fn max_active_clusters(
        &self,
        function: CUfunction,
        cluster: [u32; 3],
        block: [u32; 3],
        shared: u32,
    ) -> Result<u32> {
        self.check_clusters("cuOccupancyMaxActiveClusters")?;
        self.allow_dynamic_shared(function, shared)?;
        let mut attribute = Attribute::cluster(cluster);
        let config = config(cluster, block, shared, std::slice::from_mut(&mut attribute));
        let object = format!("clusters of {cluster:?} blocks of {block:?} threads");
        // SAFETY: `to` and `config`, with its one attribute, are valid for the call.
        let clusters =
            self.get(&object, |driver, to| unsafe { driver.occupancy_clusters(to, function, &config) })?;
        Ok(clusters.unsigned_abs())
    }

    /// The most blocks that a cluster of blocks of that shape can have. `grid` is that of some launch: of whole
    /// clusters, where the kernel fixes them.
    pub(crate) fn max_potential_cluster_size(
        &self,
        function: CUfunction,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
    ) -> Result<u32> {
        self.check_clusters("cuOccupancyMaxPotentialClusterSize")?;
        self.allow_dynamic_shared(function, shared)?;
        let config = config(grid, block, shared, &mut []);
        let object = format!("blocks of {block:?} threads");
        // SAFETY: `to` and `config`, which has no attributes, are valid for the call.
        let size =
            self.get(&object, |driver, to| unsafe { driver.occupancy_cluster_size(to, function, &config) })?;
        Ok(size.unsigned_abs())
    }

    fn check_clusters(&self, operation: &'static str) -> Result<()> {
        if self.capability().0 >= 9 {
            return Ok(());
        }
        Err(Error::unsupported(operation, self, "thread block clusters need compute capability 9.0"))
    }
}

/// A launch, on no stream in particular.
pub(crate) fn config(
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    attributes: &mut [Attribute],
) -> CUlaunchConfig {
    CUlaunchConfig {
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: shared,
        hStream: null_mut(),
        attrs: attributes.as_mut_ptr().cast(),
        numAttrs: attributes.len() as c_uint,
    }
}
