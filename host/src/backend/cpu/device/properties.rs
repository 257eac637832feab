//! The properties of the CPU device: those of a virtual CUDA device with one multiprocessor for each worker
//! thread.

use super::CpuDevice;
use crate::backend::device::{BackendDevice, DeviceMemory};
use crate::device::attribute::DeviceAttribute;
use crate::device::properties::DeviceProperties;
use crate::error::{Error, Result};
use crate::launch::grid::Limits;

/// Shared memory that a block may have without opting in, as on every GPU.
const SHARED_MEMORY_PER_BLOCK: u32 = 48 * 1024;

const WARP_SIZE: u32 = 32;

impl CpuDevice {
    pub(crate) fn properties(&self) -> Result<DeviceProperties> {
        let Limits { max_threads_per_block, max_block, max_grid, .. } = Limits::CUDA;
        let optin = u32::try_from(self.shared_memory_per_block()).unwrap_or(u32::MAX);
        Ok(DeviceProperties {
            name: self.name().to_owned(),
            uuid: None,
            pci: None,
            compute_capability: None,
            total_memory: self.memory_info()?.map(|memory| memory.total),
            total_constant_memory: 64 * 1024,
            multiprocessor_count: u32::try_from(self.threads()?).unwrap_or(u32::MAX),
            warp_size: WARP_SIZE,
            max_threads_per_block,
            max_block,
            max_grid,
            max_threads_per_multiprocessor: max_threads_per_block,
            max_blocks_per_multiprocessor: 1,
            registers_per_block: 0,
            registers_per_multiprocessor: 0,
            shared_memory_per_block: SHARED_MEMORY_PER_BLOCK.min(optin),
            shared_memory_per_block_optin: optin,
            shared_memory_per_multiprocessor: optin,
            reserved_shared_memory_per_block: 0,
            clock_rate: None,
            memory_clock_rate: None,
            memory_bus_width: 0,
            l2_cache_size: 0,
            async_engine_count: 0,
            concurrent_kernels: true,
            ecc_enabled: false,
            integrated: true,
            unified_addressing: true,
            managed_memory: true,
            concurrent_managed_access: true,
            cooperative_launch: true,
            cluster_launch: true,
            memory_pools_supported: true,
        })
    }

    pub(crate) fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        use DeviceAttribute as A;
        let properties = self.properties()?;
        let value = match attribute {
            A::MAX_THREADS_PER_BLOCK => properties.max_threads_per_block,
            A::MAX_BLOCK_DIM_X => properties.max_block[0],
            A::MAX_BLOCK_DIM_Y => properties.max_block[1],
            A::MAX_BLOCK_DIM_Z => properties.max_block[2],
            A::MAX_GRID_DIM_X => properties.max_grid[0],
            A::MAX_GRID_DIM_Y => properties.max_grid[1],
            A::MAX_GRID_DIM_Z => properties.max_grid[2],
            A::MAX_SHARED_MEMORY_PER_BLOCK => properties.shared_memory_per_block,
            A::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => properties.shared_memory_per_block_optin,
            A::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => properties.shared_memory_per_multiprocessor,
            A::RESERVED_SHARED_MEMORY_PER_BLOCK => properties.reserved_shared_memory_per_block,
            A::TOTAL_CONSTANT_MEMORY => properties.total_constant_memory,
            A::WARP_SIZE => properties.warp_size,
            A::MAX_REGISTERS_PER_BLOCK => properties.registers_per_block,
            A::MAX_REGISTERS_PER_MULTIPROCESSOR => properties.registers_per_multiprocessor,
            A::MULTIPROCESSOR_COUNT => properties.multiprocessor_count,
            A::MAX_THREADS_PER_MULTIPROCESSOR => properties.max_threads_per_multiprocessor,
            A::MAX_BLOCKS_PER_MULTIPROCESSOR => properties.max_blocks_per_multiprocessor,
            A::GLOBAL_MEMORY_BUS_WIDTH => properties.memory_bus_width,
            A::L2_CACHE_SIZE => properties.l2_cache_size,
            A::ASYNC_ENGINE_COUNT => properties.async_engine_count,
            A::CONCURRENT_KERNELS => u32::from(properties.concurrent_kernels),
            A::ECC_ENABLED => u32::from(properties.ecc_enabled),
            A::INTEGRATED => u32::from(properties.integrated),
            A::UNIFIED_ADDRESSING => u32::from(properties.unified_addressing),
            A::MANAGED_MEMORY => u32::from(properties.managed_memory),
            A::CONCURRENT_MANAGED_ACCESS => u32::from(properties.concurrent_managed_access),
            A::COOPERATIVE_LAUNCH => u32::from(properties.cooperative_launch),
            A::CLUSTER_LAUNCH => u32::from(properties.cluster_launch),
            A::MEMORY_POOLS_SUPPORTED => u32::from(properties.memory_pools_supported),
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
                return Err(Error::Unsupported {
                    operation: attribute.name().unwrap_or("this attribute"),
                    device: self.to_string().into(),
                    reason: "it has no meaning for a processor",
                });
            }
        };
        Ok(i32::try_from(value).unwrap_or(i32::MAX))
    }
}
