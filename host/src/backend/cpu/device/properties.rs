//! The properties of the CPU device: those of a virtual CUDA device with one multiprocessor for each worker
//! thread.

use super::CpuDevice;
use crate::backend::Limits;
use crate::backend::device::{BackendDevice, DeviceMemory, DeviceQueries};
use crate::error::{Error, Result};
use crate::properties::DeviceProperties;
use crate::properties::attribute::DeviceAttribute;

/// Shared memory that a block may have without opting in, as on every GPU.
const SHARED_MEMORY_PER_BLOCK: usize = 48 * 1024;

impl DeviceQueries for CpuDevice {
    fn properties(&self) -> Result<DeviceProperties> {
        let total_memory = self.memory_info()?.map(|memory| memory.total);
        let read = DeviceProperties::read(self.name(), |attribute| self.attribute(attribute))?;
        Ok(DeviceProperties { total_memory, ..read })
    }

    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        use DeviceAttribute as A;
        const LIMITS: Limits = Limits::CUDA;
        let shared = self.shared_memory_per_block();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let value = match attribute {
            A::MAX_THREADS_PER_BLOCK | A::MAX_THREADS_PER_MULTIPROCESSOR => LIMITS.max_threads_per_block,
            A::MAX_BLOCK_DIM_X => LIMITS.max_block[0],
            A::MAX_BLOCK_DIM_Y => LIMITS.max_block[1],
            A::MAX_BLOCK_DIM_Z => LIMITS.max_block[2],
            A::MAX_GRID_DIM_X => LIMITS.max_grid[0],
            A::MAX_GRID_DIM_Y => LIMITS.max_grid[1],
            A::MAX_GRID_DIM_Z => LIMITS.max_grid[2],
            A::MAX_SHARED_MEMORY_PER_BLOCK => count(shared.min(SHARED_MEMORY_PER_BLOCK)),
            A::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN | A::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => count(shared),
            A::TOTAL_CONSTANT_MEMORY => 64 * 1024,
            A::WARP_SIZE => 32,
            A::MULTIPROCESSOR_COUNT => count(self.threads()?),
            A::MAX_BLOCKS_PER_MULTIPROCESSOR
            | A::CONCURRENT_KERNELS
            | A::INTEGRATED
            | A::UNIFIED_ADDRESSING
            | A::MANAGED_MEMORY
            | A::CONCURRENT_MANAGED_ACCESS
            | A::COOPERATIVE_LAUNCH
            | A::CLUSTER_LAUNCH
            | A::MEMORY_POOLS_SUPPORTED => 1,
            A::RESERVED_SHARED_MEMORY_PER_BLOCK
            | A::MAX_REGISTERS_PER_BLOCK
            | A::MAX_REGISTERS_PER_MULTIPROCESSOR
            | A::GLOBAL_MEMORY_BUS_WIDTH
            | A::L2_CACHE_SIZE
            | A::ASYNC_ENGINE_COUNT
            | A::ECC_ENABLED => 0,
            // Those of GPUs from compute capability 7.5 on: what is too large there is so here.
            A::MAXIMUM_TEXTURE1D_WIDTH | A::MAXIMUM_TEXTURE2D_WIDTH | A::MAXIMUM_SURFACE2D_WIDTH => 131_072,
            A::MAXIMUM_TEXTURE2D_HEIGHT | A::MAXIMUM_SURFACE2D_HEIGHT => 65_536,
            A::MAXIMUM_SURFACE1D_WIDTH => 32_768,
            A::MAXIMUM_TEXTURE3D_WIDTH
            | A::MAXIMUM_TEXTURE3D_HEIGHT
            | A::MAXIMUM_TEXTURE3D_DEPTH
            | A::MAXIMUM_SURFACE3D_WIDTH
            | A::MAXIMUM_SURFACE3D_HEIGHT
            | A::MAXIMUM_SURFACE3D_DEPTH => 16_384,
            A::MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE | A::MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE => 8_192,
            A::MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE => 32_768,
            _ => {
                let name = attribute.name().unwrap_or("this attribute");
                return Err(Error::unsupported(name, self, "it has no meaning for a processor"));
            }
        };
        Ok(i32::try_from(value).unwrap_or(i32::MAX))
    }
}
