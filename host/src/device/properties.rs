//! Queries of a device's properties and attributes.

use crate::backend::cuda;
use crate::device::Device;
use crate::error::Result;
use crate::properties::DeviceProperties;
use crate::properties::attribute::DeviceAttribute;

impl Device {
    /// The device's properties: CUDA's `cudaGetDeviceProperties`, from `cuDeviceGetAttribute`,
    /// `cuDeviceTotalMem` and `cuDeviceGetUuid`.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// for device in ferrogrid_host::Device::all() {
    ///     let properties = device.properties()?;
    ///     println!("{}: {} multiprocessors", properties.name, properties.multiprocessor_count);
    ///     assert_eq!(properties.warp_size, 32);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the driver fails.
    pub fn properties(&self) -> Result<DeviceProperties> {
        self.backend().properties()
    }

    /// One attribute (`cuDeviceGetAttribute`): see [`DeviceAttribute`].
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::DeviceAttribute;
    ///
    /// let device = Device::cpu();
    /// assert_eq!(device.attribute(DeviceAttribute::MAX_THREADS_PER_BLOCK)?, 1024);
    /// let no_bus = device.attribute(DeviceAttribute::PCI_BUS_ID); // the CPU is on none
    /// assert!(matches!(no_bus, Err(Error::Unsupported { .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The driver's error for an unknown attribute. On the CPU device
    /// [`Error::Unsupported`](crate::Error::Unsupported) for an attribute that has no meaning there.
    pub fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        self.backend().attribute(attribute)
    }

    /// The CUDA version (major, minor) that the installed driver supports (`cuDriverGetVersion`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// match Device::driver_version() {
    ///     Ok(version) => assert!(version >= (12, 0)), // 13.0 with driver 580
    ///     Err(error) => println!("no GPU can be used: {error}"), // and says what to do
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDriver`](crate::Error::NoDriver) and what else keeps the driver from starting.
    pub fn driver_version() -> Result<(u32, u32)> {
        cuda::driver_version()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_device_answers_the_same_in_the_record_and_by_name() {
        let device = Device::cpu();
        let properties = device.properties().unwrap();
        for (name, value) in [
            ("MULTIPROCESSOR_COUNT", properties.multiprocessor_count),
            ("MAX_THREADS_PER_BLOCK", properties.max_threads_per_block),
            ("MAX_GRID_DIM_Y", properties.max_grid[1]),
            ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", properties.shared_memory_per_block_optin),
            ("MAX_REGISTERS_PER_BLOCK", properties.registers_per_block),
            ("COOPERATIVE_LAUNCH", u32::from(properties.cooperative_launch)),
        ] {
            assert_eq!(device.attribute(name.parse().unwrap()), Ok(value as i32), "{name}");
        }
        assert_eq!(properties.max_threads_per_block, device.limits().max_threads_per_block);
        assert_eq!((properties.uuid, properties.pci, properties.compute_capability), (None, None, None));
    }

    #[test]
    fn the_cpu_device_has_no_bus() {
        let error = Device::cpu().attribute(DeviceAttribute::PCI_BUS_ID).unwrap_err();
        assert!(error.to_string().contains("PCI_BUS_ID is not supported on the CPU device"), "{error}");
    }

    #[test]
    fn bandwidth_counts_both_edges_of_the_clock() {
        let mut properties = Device::cpu().properties().unwrap();
        assert_eq!(properties.peak_memory_bandwidth(), None);
        properties.memory_clock_rate = Some(3_201_000);
        properties.memory_bus_width = 6144;
        assert_eq!(properties.peak_memory_bandwidth(), Some(4_916_736_000_000));
    }
}
