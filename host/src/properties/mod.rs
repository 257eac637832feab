//! What a device is like, as plain data: [`DeviceProperties`], with CUDA's names. `attribute` has the single attributes by
//! their names, `memory_info` the bytes of memory, `cpu_options` the requested limits of a CPU device.

pub(crate) mod attribute;
pub(crate) mod cpu_options;
pub(crate) mod memory_info;

use std::fmt;

use crate::error::Result;
use attribute::DeviceAttribute;

/// The properties of a device: CUDA's `cudaDeviceProp`, from
/// [`Device::properties`](crate::Device::properties).
///
/// Sizes are in bytes, clock rates in kHz; capitals name the driver's attribute, without `CU_DEVICE_ATTRIBUTE_`. The
/// CPU device answers as the virtual CUDA device that it is for kernels: a multiprocessor is a worker thread, which
/// runs one block at a time.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let properties = device.properties()?;
/// assert_eq!((&*properties.name, properties.warp_size), (device.name(), 32));
/// assert!(properties.cooperative_launch && properties.cluster_launch);
/// assert_eq!(properties.compute_capability, None); // of a GPU, and then Some((9, 0)) for an H200
/// // For a roofline: bytes per second at most. The CPU's clock is not known.
/// assert_eq!(properties.peak_memory_bandwidth(), None);
/// // For occupancy by hand.
/// assert_eq!(properties.multiprocessor_limits().max_threads_per_block, properties.max_threads_per_block);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DeviceProperties {
    /// The device's name from its vendor (`cuDeviceGetName`).
    pub name: String,
    /// A number that no other device has, also after a restart (`cuDeviceGetUuid`). `None` for the CPU.
    pub uuid: Option<DeviceUuid>,
    /// Where the device is on the PCI bus. `None` for the CPU.
    pub pci: Option<PciAddress>,
    /// CUDA compute capability (major, minor) (`COMPUTE_CAPABILITY_MAJOR`, `COMPUTE_CAPABILITY_MINOR`). `None` for the
    /// CPU.
    pub compute_capability: Option<(u32, u32)>,
    /// Bytes of memory (`cuDeviceTotalMem`); `None` if the system does not report it.
    pub total_memory: Option<u64>,
    /// Bytes of constant memory for the `__constant__` variables of a module (`TOTAL_CONSTANT_MEMORY`).
    pub total_constant_memory: u32,
    /// Multiprocessors (`MULTIPROCESSOR_COUNT`); worker threads of the CPU device.
    pub multiprocessor_count: u32,
    /// Threads in a warp (`WARP_SIZE`).
    pub warp_size: u32,
    /// Threads in a block (`MAX_THREADS_PER_BLOCK`).
    pub max_threads_per_block: u32,
    /// Threads of a block along each axis, x first (`MAX_BLOCK_DIM_X`, `_Y`, `_Z`).
    pub max_block: [u32; 3],
    /// Blocks of a grid along each axis, x first (`MAX_GRID_DIM_X`, `_Y`, `_Z`).
    pub max_grid: [u32; 3],
    /// Threads on a multiprocessor at a time (`MAX_THREADS_PER_MULTIPROCESSOR`).
    pub max_threads_per_multiprocessor: u32,
    /// Blocks on a multiprocessor at a time (`MAX_BLOCKS_PER_MULTIPROCESSOR`).
    pub max_blocks_per_multiprocessor: u32,
    /// 32-bit registers of a block (`MAX_REGISTERS_PER_BLOCK`); 0 for the CPU, where they are unlimited.
    pub registers_per_block: u32,
    /// 32-bit registers of a multiprocessor (`MAX_REGISTERS_PER_MULTIPROCESSOR`); 0 for the CPU.
    pub registers_per_multiprocessor: u32,
    /// Shared memory of a block that has not opted in to more (`MAX_SHARED_MEMORY_PER_BLOCK`).
    pub shared_memory_per_block: u32,
    /// Shared memory of a block that has opted in to more (`MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`); launches do so by
    /// themselves.
    pub shared_memory_per_block_optin: u32,
    /// Shared memory of a multiprocessor (`MAX_SHARED_MEMORY_PER_MULTIPROCESSOR`).
    pub shared_memory_per_multiprocessor: u32,
    /// Shared memory that the system reserves in each block (`RESERVED_SHARED_MEMORY_PER_BLOCK`).
    pub reserved_shared_memory_per_block: u32,
    /// Peak clock rate in kHz (`CLOCK_RATE`); `None` if the driver does not report it.
    pub clock_rate: Option<u32>,
    /// Peak memory clock rate in kHz (`MEMORY_CLOCK_RATE`); `None` if the driver does not report it.
    pub memory_clock_rate: Option<u32>,
    /// Width of the memory bus in bits (`GLOBAL_MEMORY_BUS_WIDTH`); 0 for the CPU.
    pub memory_bus_width: u32,
    /// Bytes of L2 cache (`L2_CACHE_SIZE`); 0 for the CPU.
    pub l2_cache_size: u32,
    /// Copies that can run beside kernels (`ASYNC_ENGINE_COUNT`).
    pub async_engine_count: u32,
    /// Whether several kernels can run at a time (`CONCURRENT_KERNELS`).
    pub concurrent_kernels: bool,
    /// Whether memory errors are corrected (`ECC_ENABLED`).
    pub ecc_enabled: bool,
    /// Whether the GPU shares the memory of the processor (`INTEGRATED`).
    pub integrated: bool,
    /// Whether host and device addresses are one space (`UNIFIED_ADDRESSING`).
    pub unified_addressing: bool,
    /// Whether managed memory can be allocated (`MANAGED_MEMORY`).
    pub managed_memory: bool,
    /// Whether host and GPU may use managed memory at the same time (`CONCURRENT_MANAGED_ACCESS`).
    pub concurrent_managed_access: bool,
    /// Whether the device supports cooperative launches, with a barrier over the grid (`COOPERATIVE_LAUNCH`).
    pub cooperative_launch: bool,
    /// Whether the device supports launches in clusters of blocks (`CLUSTER_LAUNCH`).
    pub cluster_launch: bool,
    /// Whether memory can be allocated in stream order (`MEMORY_POOLS_SUPPORTED`).
    pub memory_pools_supported: bool,
}

/// Where a device is on the PCI bus.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// for device in Device::all() {
///     match device.properties()?.pci {
///         Some(pci) => println!("{device} is at {pci}"), // 0000:3b:00.0
///         None => assert!(!device.is_cuda()),
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PciAddress {
    /// The domain (`PCI_DOMAIN_ID`).
    pub domain: u32,
    /// The bus (`PCI_BUS_ID`).
    pub bus: u32,
    /// The device on the bus (`PCI_DEVICE_ID`).
    pub device: u32,
}

/// The identity of a GPU, printed as `nvidia-smi -L` does: `GPU-8f6a0d3e-...`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::DeviceUuid;
///
/// let uuid = DeviceUuid([0x8f, 0x6a, 0x0d, 0x3e, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
/// assert_eq!(uuid.to_string(), "GPU-8f6a0d3e-0001-0203-0405-060708090a0b");
/// // The GPU of that identity, whatever its number is today.
/// let is_it = |device: &Device| device.properties().is_ok_and(|found| found.uuid == Some(uuid));
/// let _found = Device::all().into_iter().find(is_it);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceUuid(pub [u8; 16]);

impl DeviceProperties {
    /// The record of a device that answers these attributes; other figures are `None`.
    pub(crate) fn read(name: &str, attribute: impl Fn(DeviceAttribute) -> Result<i32>) -> Result<Self> {
        use DeviceAttribute as A;
        let one = |name| attribute(name).map(i32::unsigned_abs);
        let is = |name| attribute(name).map(|value| value != 0);
        let rate = |name| one(name).ok().filter(|&rate| rate > 0);
        Ok(DeviceProperties {
            name: name.to_owned(),
            uuid: None,
            pci: None,
            compute_capability: None,
            total_memory: None,
            total_constant_memory: one(A::TOTAL_CONSTANT_MEMORY)?,
            multiprocessor_count: one(A::MULTIPROCESSOR_COUNT)?,
            warp_size: one(A::WARP_SIZE)?,
            max_threads_per_block: one(A::MAX_THREADS_PER_BLOCK)?,
            max_block: [one(A::MAX_BLOCK_DIM_X)?, one(A::MAX_BLOCK_DIM_Y)?, one(A::MAX_BLOCK_DIM_Z)?],
            max_grid: [one(A::MAX_GRID_DIM_X)?, one(A::MAX_GRID_DIM_Y)?, one(A::MAX_GRID_DIM_Z)?],
            max_threads_per_multiprocessor: one(A::MAX_THREADS_PER_MULTIPROCESSOR)?,
            max_blocks_per_multiprocessor: one(A::MAX_BLOCKS_PER_MULTIPROCESSOR)?,
            registers_per_block: one(A::MAX_REGISTERS_PER_BLOCK)?,
            registers_per_multiprocessor: one(A::MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            shared_memory_per_block: one(A::MAX_SHARED_MEMORY_PER_BLOCK)?,
            shared_memory_per_block_optin: one(A::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_memory_per_multiprocessor: one(A::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            reserved_shared_memory_per_block: one(A::RESERVED_SHARED_MEMORY_PER_BLOCK)?,
            clock_rate: rate(A::CLOCK_RATE),
            memory_clock_rate: rate(A::MEMORY_CLOCK_RATE),
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
            memory_pools_supported: is(A::MEMORY_POOLS_SUPPORTED)?,
        })
    }

    /// The bytes per second that the memory bus moves at its peak, both clock edges counted; `None`
    /// if the driver does not report its clock.
    pub fn peak_memory_bandwidth(&self) -> Option<u64> {
        let hertz = u64::from(self.memory_clock_rate?) * 1000;
        Some(2 * hertz * u64::from(self.memory_bus_width) / 8)
    }
}

impl fmt::Display for PciAddress {
    /// As `cuDeviceGetPCIBusId`: `0000:3b:00.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.0", self.domain, self.bus, self.device)
    }
}

impl fmt::Display for DeviceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU")?;
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 0 | 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// As they are displayed.
#[cfg(feature = "serde")]
mod serialize {
    use serde::{Serialize, Serializer};

    use super::{DeviceUuid, PciAddress};

    impl Serialize for DeviceUuid {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl Serialize for PciAddress {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }
}

impl fmt::Debug for DeviceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_read_as_in_the_tools() {
        let pci = PciAddress { domain: 0, bus: 0x3b, device: 0 };
        assert_eq!(pci.to_string(), "0000:3b:00.0");
        let uuid = DeviceUuid(std::array::from_fn(|index| index as u8));
        assert_eq!(uuid.to_string(), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
