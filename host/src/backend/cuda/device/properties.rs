//! What the driver says of a device, put into the public record.

use std::ffi::c_uint;

use cudarc::driver::sys::CUuuid;

use super::CudaDevice;
use crate::backend::cuda::driver::{self, driver};
use crate::backend::device::BackendDevice;
use crate::device::attribute::DeviceAttribute;
use crate::device::properties::{DeviceProperties, DeviceUuid, PciAddress};
use crate::error::Result;

/// The CUDA version (major, minor) that the driver supports.
pub(crate) fn driver_version() -> Result<(u32, u32)> {
    driver()?;
    driver::supported_version()
}

impl CudaDevice {
    pub(crate) fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        let mut value = 0;
        // SAFETY: `value` is valid for the call, and the handle is the driver's; any number may be asked for.
        let code =
            unsafe { self.driver().device_attribute(&mut value, attribute.number() as c_uint, self.handle) };
        self.check(code, "cuDeviceGetAttribute", &attribute)?;
        Ok(value)
    }

    pub(crate) fn properties(&self) -> Result<DeviceProperties> {
        use DeviceAttribute as A;
        let one = |attribute| self.attribute(attribute).map(i32::unsigned_abs);
        let is = |attribute| self.attribute(attribute).map(|value| value != 0);
        let limits = self.limits();
        Ok(DeviceProperties {
            name: self.name().to_owned(),
            uuid: Some(self.uuid()?),
            pci: Some(PciAddress {
                domain: one(A::PCI_DOMAIN_ID)?,
                bus: one(A::PCI_BUS_ID)?,
                device: one(A::PCI_DEVICE_ID)?,
            }),
            compute_capability: Some(self.capability()),
            total_memory: Some(self.total_memory()?),
            total_constant_memory: one(A::TOTAL_CONSTANT_MEMORY)?,
            multiprocessor_count: one(A::MULTIPROCESSOR_COUNT)?,
            warp_size: one(A::WARP_SIZE)?,
            max_threads_per_block: limits.max_threads_per_block,
            max_block: limits.max_block,
            max_grid: limits.max_grid,
            max_threads_per_multiprocessor: one(A::MAX_THREADS_PER_MULTIPROCESSOR)?,
            max_blocks_per_multiprocessor: one(A::MAX_BLOCKS_PER_MULTIPROCESSOR)?,
            registers_per_block: one(A::MAX_REGISTERS_PER_BLOCK)?,
            registers_per_multiprocessor: one(A::MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            shared_memory_per_block: one(A::MAX_SHARED_MEMORY_PER_BLOCK)?,
            shared_memory_per_block_optin: one(A::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_memory_per_multiprocessor: one(A::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            reserved_shared_memory_per_block: one(A::RESERVED_SHARED_MEMORY_PER_BLOCK)?,
            clock_rate: one(A::CLOCK_RATE).ok().filter(|&rate| rate > 0),
            memory_clock_rate: one(A::MEMORY_CLOCK_RATE).ok().filter(|&rate| rate > 0),
            memory_bus_width: one(A::GLOBAL_MEMORY_BUS_WIDTH)?,
            l2_cache_size: one(A::L2_CACHE_SIZE)?,
            async_engine_count: one(A::ASYNC_ENGINE_COUNT)?,
            concurrent_kernels: is(A::CONCURRENT_KERNELS)?,
            ecc_enabled: is(A::ECC_ENABLED)?,
            integrated: is(A::INTEGRATED)?,
            unified_addressing: is(A::UNIFIED_ADDRESSING)?,
            managed_memory: is(A::MANAGED_MEMORY)?,
            concurrent_managed_access: is(A::CONCURRENT_MANAGED_ACCESS)?,
            cooperative_launch: is(A::COOPERATIVE_LAUNCH)?,
            cluster_launch: is(A::CLUSTER_LAUNCH)?,
            memory_pools_supported: self.has_pools(),
        })
    }

    fn total_memory(&self) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: `bytes` is valid for the call, and the handle is the driver's.
        let code = unsafe { self.driver().device_total_memory(&mut bytes, self.handle) };
        self.check(code, "cuDeviceTotalMem", self)?;
        Ok(bytes as u64)
    }

    fn uuid(&self) -> Result<DeviceUuid> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: `uuid` is valid for the call, and the handle is the driver's.
        let code = unsafe { self.driver().device_uuid(&mut uuid, self.handle) };
        self.check(code, "cuDeviceGetUuid", self)?;
        Ok(DeviceUuid(uuid.bytes.map(|byte| byte as u8)))
    }
}
