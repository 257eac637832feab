//! The attributes of a device by their CUDA names.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// An attribute of a device: a `CUdevice_attribute`, for [`Device::attribute`](crate::Device::attribute).
///
/// Each constant has the name of the CUDA attribute without `CU_DEVICE_ATTRIBUTE_`. An attribute can
/// also be had from its name at run time, with or without that prefix, and from its number, which
/// reaches those that are newer than this crate.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{Device, DeviceAttribute};
///
/// let device = Device::cpu();
/// assert_eq!(device.attribute(DeviceAttribute::WARP_SIZE)?, 32);
///
/// let named: DeviceAttribute = "CU_DEVICE_ATTRIBUTE_WARP_SIZE".parse()?;
/// assert_eq!((named, named.name()), (DeviceAttribute::WARP_SIZE, Some("WARP_SIZE")));
/// assert_eq!(DeviceAttribute::from_number(10), named);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceAttribute(u32);

const PREFIX: &str = "CU_DEVICE_ATTRIBUTE_";

// The numbers are written out because they are fixed forever, while the enum of the bindings has
// only those of the CUDA version that it is pinned to.
macro_rules! attributes {
    ($( $name:ident = $number:literal, )*) => {
        impl DeviceAttribute {
            /// Every attribute that this crate has a name for (CUDA 13.4), by number.
            pub const ALL: &[DeviceAttribute] = &[$( DeviceAttribute($number) ),*];

            $(
                #[doc = concat!("`CU_DEVICE_ATTRIBUTE_", stringify!($name), "`.")]
                pub const $name: DeviceAttribute = DeviceAttribute($number);
            )*
        }

        const NAMES: &[(&str, u32)] = &[$( (stringify!($name), $number) ),*];
    };
}

attributes! {
    MAX_THREADS_PER_BLOCK = 1,
    MAX_BLOCK_DIM_X = 2,
    MAX_BLOCK_DIM_Y = 3,
    MAX_BLOCK_DIM_Z = 4,
    MAX_GRID_DIM_X = 5,
    MAX_GRID_DIM_Y = 6,
    MAX_GRID_DIM_Z = 7,
    MAX_SHARED_MEMORY_PER_BLOCK = 8,
    TOTAL_CONSTANT_MEMORY = 9,
    WARP_SIZE = 10,
    MAX_PITCH = 11,
    MAX_REGISTERS_PER_BLOCK = 12,
    CLOCK_RATE = 13,
    TEXTURE_ALIGNMENT = 14,
    GPU_OVERLAP = 15,
    MULTIPROCESSOR_COUNT = 16,
    KERNEL_EXEC_TIMEOUT = 17,
    INTEGRATED = 18,
    CAN_MAP_HOST_MEMORY = 19,
    COMPUTE_MODE = 20,
    MAXIMUM_TEXTURE1D_WIDTH = 21,
    MAXIMUM_TEXTURE2D_WIDTH = 22,
    MAXIMUM_TEXTURE2D_HEIGHT = 23,
    MAXIMUM_TEXTURE3D_WIDTH = 24,
    MAXIMUM_TEXTURE3D_HEIGHT = 25,
    MAXIMUM_TEXTURE3D_DEPTH = 26,
    MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27,
    MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28,
    MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29,
    SURFACE_ALIGNMENT = 30,
    CONCURRENT_KERNELS = 31,
    ECC_ENABLED = 32,
    PCI_BUS_ID = 33,
    PCI_DEVICE_ID = 34,
    TCC_DRIVER = 35,
    MEMORY_CLOCK_RATE = 36,
    GLOBAL_MEMORY_BUS_WIDTH = 37,
    L2_CACHE_SIZE = 38,
    MAX_THREADS_PER_MULTIPROCESSOR = 39,
    ASYNC_ENGINE_COUNT = 40,
    UNIFIED_ADDRESSING = 41,
    MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42,
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43,
    CAN_TEX2D_GATHER = 44,
    MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45,
    MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46,
    MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47,
    MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48,
    MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49,
    PCI_DOMAIN_ID = 50,
    TEXTURE_PITCH_ALIGNMENT = 51,
    MAXIMUM_TEXTURECUBEMAP_WIDTH = 52,
    MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53,
    MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54,
    MAXIMUM_SURFACE1D_WIDTH = 55,
    MAXIMUM_SURFACE2D_WIDTH = 56,
    MAXIMUM_SURFACE2D_HEIGHT = 57,
    MAXIMUM_SURFACE3D_WIDTH = 58,
    MAXIMUM_SURFACE3D_HEIGHT = 59,
    MAXIMUM_SURFACE3D_DEPTH = 60,
    MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61,
    MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62,
    MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63,
    MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64,
    MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65,
    MAXIMUM_SURFACECUBEMAP_WIDTH = 66,
    MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67,
    MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68,
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69,
    MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70,
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71,
    MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72,
    MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73,
    MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74,
    COMPUTE_CAPABILITY_MAJOR = 75,
    COMPUTE_CAPABILITY_MINOR = 76,
    MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77,
    STREAM_PRIORITIES_SUPPORTED = 78,
    GLOBAL_L1_CACHE_SUPPORTED = 79,
    LOCAL_L1_CACHE_SUPPORTED = 80,
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    MANAGED_MEMORY = 83,
    MULTI_GPU_BOARD = 84,
    MULTI_GPU_BOARD_GROUP_ID = 85,
    HOST_NATIVE_ATOMIC_SUPPORTED = 86,
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
    PAGEABLE_MEMORY_ACCESS = 88,
    CONCURRENT_MANAGED_ACCESS = 89,
    COMPUTE_PREEMPTION_SUPPORTED = 90,
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    CAN_USE_STREAM_MEM_OPS_V1 = 92,
    CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93,
    CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94,
    COOPERATIVE_LAUNCH = 95,
    COOPERATIVE_MULTI_DEVICE_LAUNCH = 96,
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CAN_FLUSH_REMOTE_WRITES = 98,
    HOST_REGISTER_SUPPORTED = 99,
    PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
    DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101,
    VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102,
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104,
    HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105,
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    GENERIC_COMPRESSION_SUPPORTED = 107,
    MAX_PERSISTING_L2_CACHE_SIZE = 108,
    MAX_ACCESS_POLICY_WINDOW_SIZE = 109,
    GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
    SPARSE_CUDA_ARRAY_SUPPORTED = 112,
    READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
    TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114,
    MEMORY_POOLS_SUPPORTED = 115,
    GPU_DIRECT_RDMA_SUPPORTED = 116,
    GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
    GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
    MEMPOOL_SUPPORTED_HANDLE_TYPES = 119,
    CLUSTER_LAUNCH = 120,
    DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121,
    CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
    CAN_USE_STREAM_WAIT_VALUE_NOR = 123,
    DMA_BUF_SUPPORTED = 124,
    IPC_EVENT_SUPPORTED = 125,
    MEM_SYNC_DOMAIN_COUNT = 126,
    TENSOR_MAP_ACCESS_SUPPORTED = 127,
    HANDLE_TYPE_FABRIC_SUPPORTED = 128,
    UNIFIED_FUNCTION_POINTERS = 129,
    NUMA_CONFIG = 130,
    NUMA_ID = 131,
    MULTICAST_SUPPORTED = 132,
    MPS_ENABLED = 133,
    HOST_NUMA_ID = 134,
    D3D12_CIG_SUPPORTED = 135,
    MEM_DECOMPRESS_ALGORITHM_MASK = 136,
    MEM_DECOMPRESS_MAXIMUM_LENGTH = 137,
    VULKAN_CIG_SUPPORTED = 138,
    GPU_PCI_DEVICE_ID = 139,
    GPU_PCI_SUBSYSTEM_ID = 140,
    HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141,
    HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142,
    HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143,
    HOST_MEMORY_POOLS_SUPPORTED = 144,
    HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 145,
    HOST_ALLOC_DMA_BUF_SUPPORTED = 146,
    ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED = 147,
    ATOMIC_REDUCTION_SUPPORTED = 148,
    LOCALITY_DOMAIN_COUNT = 149,
    MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK = 150,
    D3D12_CIG_STREAMS_SUPPORTED = 151,
    DMA_BUF_MMAP_SUPPORTED = 152,
    LOGICAL_ENDPOINT_UNICAST_SUPPORTED = 153,
    LOGICAL_ENDPOINT_MULTICAST_SUPPORTED = 154,
    LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED = 155,
    LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED = 156,
    LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT = 157,
    LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES = 158,
    GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED = 161,
}

impl DeviceAttribute {
    /// The attribute with this number in the driver's interface, whether it has a name here or not.
    pub const fn from_number(number: u32) -> Self {
        DeviceAttribute(number)
    }

    /// Its number in the driver's interface.
    ///
    /// ```
    /// use ferrogrid::DeviceAttribute;
    ///
    /// assert_eq!(DeviceAttribute::MULTIPROCESSOR_COUNT.number(), 16); // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    /// ```
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Its CUDA name without `CU_DEVICE_ATTRIBUTE_`; `None` if it is newer than this crate.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(_, number)| *number == self.0).map(|(name, _)| *name)
    }
}

impl FromStr for DeviceAttribute {
    type Err = Error;

    /// The attribute of that CUDA name, with or without `CU_DEVICE_ATTRIBUTE_`, in capitals.
    fn from_str(text: &str) -> Result<Self, Error> {
        let name = text.strip_prefix(PREFIX).unwrap_or(text);
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, number)| DeviceAttribute(*number))
            .ok_or_else(|| Error::UnknownAttribute { name: text.into() })
    }
}

impl fmt::Display for DeviceAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{PREFIX}{name}"),
            None => write!(f, "device attribute {}", self.0),
        }
    }
}

impl fmt::Debug for DeviceAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudarc::driver::sys::CUdevice_attribute as Raw;

    #[test]
    fn names_have_the_numbers_of_the_driver_interface() {
        for (name, raw) in [
            ("MAX_THREADS_PER_BLOCK", Raw::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            ("MULTIPROCESSOR_COUNT", Raw::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            ("COOPERATIVE_LAUNCH", Raw::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH),
            ("MEMORY_POOLS_SUPPORTED", Raw::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
            ("CLUSTER_LAUNCH", Raw::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
        ] {
            let attribute: DeviceAttribute = name.parse().unwrap();
            assert_eq!(attribute.number(), raw as u32, "{name}");
            assert_eq!(attribute.to_string(), format!("{raw:?}"));
        }
    }

    #[test]
    fn every_attribute_is_found_by_both_of_its_names() {
        for &attribute in DeviceAttribute::ALL {
            let name = attribute.name().unwrap();
            assert_eq!(name.parse(), Ok(attribute));
            assert_eq!(attribute.to_string().parse(), Ok(attribute));
        }
        assert_eq!(DeviceAttribute::from_number(9999).name(), None);
    }

    #[test]
    fn an_unknown_name_is_named_in_the_error() {
        let error = "WARP_SIZES".parse::<DeviceAttribute>().unwrap_err();
        assert_eq!(error, Error::UnknownAttribute { name: "WARP_SIZES".into() });
    }
}
