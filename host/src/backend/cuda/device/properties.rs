//! Fills the public record of a device's properties from the driver.

use std::ffi::c_uint;

use cudarc::driver::sys::CUuuid;

use super::CudaDevice;
use crate::backend::cuda::driver::{self, driver};
use crate::backend::device::{BackendDevice, DeviceQueries};
use crate::error::Result;
use crate::properties::attribute::DeviceAttribute;
use crate::properties::{DeviceProperties, DeviceUuid, PciAddress};

/// The CUDA version (major, minor) that the driver supports.
pub(crate) fn driver_version() -> Result<(u32, u32)> {
    driver()?;
    driver::supported_version()
}

impl DeviceQueries for CudaDevice {
    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        // SAFETY: `to` is valid for the call, and the handle is the driver's; any number is allowed.
        self.get(&attribute, |driver, to| unsafe {
            driver.device_attribute(to, attribute.number() as c_uint, self.handle)
        })
    }

    fn properties(&self) -> Result<DeviceProperties> {
        let attribute = |attribute| self.attribute(attribute);
        let pci = |number| attribute(number).map(i32::unsigned_abs);
        Ok(DeviceProperties {
            uuid: Some(self.uuid()?),
            pci: Some(PciAddress {
                domain: pci(DeviceAttribute::PCI_DOMAIN_ID)?,
                bus: pci(DeviceAttribute::PCI_BUS_ID)?,
                device: pci(DeviceAttribute::PCI_DEVICE_ID)?,
            }),
            compute_capability: Some(self.capability()),
            total_memory: Some(self.total_memory()?),
            memory_pools_supported: self.has_pools(),
            ..DeviceProperties::read(self.name(), attribute)?
        })
    }
}

impl CudaDevice {
    fn total_memory(&self) -> Result<u64> {
        // SAFETY: `to` is valid for the call, and the handle is the driver's.
        let bytes = self.get(self, |driver, to| unsafe { driver.device_total_memory(to, self.handle) })?;
        Ok(bytes as u64)
    }

    fn uuid(&self) -> Result<DeviceUuid> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: `uuid` is valid for the call, and the handle is the driver's.
        let code = unsafe { self.driver().device_uuid(&mut uuid, self.handle) };
        self.check(code, self)?;
        Ok(DeviceUuid(uuid.bytes.map(|byte| byte as u8)))
    }
}
