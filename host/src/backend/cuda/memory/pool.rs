//! The memory pool of a CUDA device, for stream-ordered allocations. It is not the device's default pool, so
//! that no other library shares its settings.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{from_mut, null_mut};

use cudarc::driver::sys::{CUdevice_attribute, CUmemPool_attribute as Attribute};

use crate::backend::cuda::device::{CudaDevice, Handle};
use crate::backend::cuda::driver;
use crate::backend::device::DeviceMemory;
use crate::backend::{PoolKind, PoolOptions};
use crate::error::{Error, Result};

/// The driver's `CUmemoryPool`.
pub(crate) type PoolHandle = *mut c_void;

/// A pool, of this crate or of another library.
#[derive(Clone, Copy)]
pub(crate) struct RawPool(Handle<PoolHandle>);

impl RawPool {
    pub(crate) fn new(raw: *mut c_void) -> Self {
        RawPool(Handle(raw))
    }

    pub(crate) fn as_raw(self) -> *mut c_void {
        self.0.0
    }
}

/// How memory is allocated: the driver's `CUmemPoolProps` and `CUmemAllocationProp`, which begin alike.
#[repr(C)]
pub(crate) struct MemoryProperties<const REST: usize> {
    /// `CU_MEM_ALLOCATION_TYPE_PINNED` (memory that stays where it is) or `_MANAGED`.
    allocation_type: c_uint,
    /// `CU_MEM_HANDLE_TYPE_NONE` or `_POSIX_FILE_DESCRIPTOR`.
    handle_types: c_uint,
    /// `CU_MEM_LOCATION_TYPE_DEVICE`, `_HOST` or `_HOST_NUMA`.
    location_type: c_uint,
    location_id: c_int,
    /// For handles on Windows.
    security_attributes: *mut c_void,
    /// Of pools: maximum size and usage in newer drivers, reserved in older ones; zero means no limit. Of allocations:
    /// compression, RDMA and usage, where zero is none.
    rest: [u8; REST],
}

/// The driver's `CUmemPoolProps`.
pub(crate) type PoolProperties = MemoryProperties<64>;

/// The driver's `CUmemAllocationProp`.
pub(crate) type AllocationProperties = MemoryProperties<8>;

/// The driver's `CUmemAccessDesc`, for a device that may read and write memory.
#[repr(C)]
pub(crate) struct PoolAccess {
    /// `CU_MEM_LOCATION_TYPE_DEVICE`.
    location_type: c_uint,
    location_id: c_int,
    /// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
    flags: c_uint,
}

impl<const REST: usize> MemoryProperties<REST> {
    pub(crate) fn new(device: &CudaDevice, kind: PoolKind, shareable: bool) -> Self {
        let (allocation_type, location_type, location_id) = match kind {
            PoolKind::Device => (1, 1, device.handle),
            // The place is where it is at best, and the device may be anywhere.
            PoolKind::Managed => (2, 1, device.handle),
            PoolKind::Host => (1, 2, 0),
            PoolKind::HostNuma(node) => (1, 3, c_int::from(node)),
        };
        MemoryProperties {
            allocation_type,
            handle_types: if shareable { FILE_DESCRIPTOR } else { 0 },
            location_type,
            location_id,
            security_attributes: null_mut(),
            rest: [0; REST],
        }
    }
}

impl PoolAccess {
    pub(crate) fn read_write(device: &CudaDevice) -> Self {
        PoolAccess { location_type: 1, location_id: device.handle, flags: 3 }
    }
}

const REUSE: [c_uint; 3] = [
    Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES as c_uint,
    Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC as c_uint,
    Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES as c_uint,
];

const RELEASE_THRESHOLD: c_uint = Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as c_uint;

const STATISTICS: [c_uint; 4] = [
    Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT as c_uint,
    Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH as c_uint,
    Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT as c_uint,
    Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH as c_uint,
];

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
pub(crate) const FILE_DESCRIPTOR: c_uint = 1;

/// A pool of `device`, whose context is bound. It keeps freed memory until it is trimmed: a pool as
/// the driver makes it would give all of it back at every synchronisation, and each allocation
/// after one would be slow.
pub(crate) fn create(device: &CudaDevice, kind: PoolKind, shareable: bool) -> Result<RawPool> {
    let properties = PoolProperties::new(device, kind, shareable);
    // SAFETY: both are valid for the call.
    let pool = device.get(device, |driver, to| unsafe { driver.pool_create(to, &properties) })?;
    let pool = RawPool::new(pool);
    device.set_release_threshold(Some(pool), u64::MAX)?;
    Ok(pool)
}

/// `CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED`, and `_HOST_MEMORY_POOLS_SUPPORTED`.
const HOST_NUMA_POOLS: c_uint = 142;
const HOST_POOLS: c_uint = 144;
const HANDLE_TYPES: c_uint = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES as c_uint;

/// Why a device without pools refuses what needs them.
pub(crate) const NO_POOLS: &str =
    "it allocates no memory in stream order (CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)";

/// Whether `device` can have such a pool.
pub(crate) fn check(device: &CudaDevice, kind: PoolKind, shareable: bool) -> Result<()> {
    let refuse = |operation, reason| Err(Error::unsupported(operation, device, reason));
    if !device.has_pools() {
        return refuse("memory pools", NO_POOLS);
    }
    if shareable && kind != PoolKind::Device {
        return refuse("a shareable pool", "only pools of a device's own memory can be shared");
    }
    if shareable && attribute(device, HANDLE_TYPES) & FILE_DESCRIPTOR == 0 {
        return refuse(
            "a shareable pool",
            "it has no file descriptors for pools (CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES)",
        );
    }
    match kind {
        PoolKind::Device => Ok(()),
        PoolKind::Managed if driver::supported_version()? < (13, 0) => {
            refuse("a pool of managed memory", "the driver is older than CUDA 13.0")
        }
        PoolKind::Managed => device.check_managed(),
        PoolKind::Host if attribute(device, HOST_POOLS) == 0 => refuse(
            "a pool of page-locked memory",
            "it has none (CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, from CUDA 13.0 on)",
        ),
        PoolKind::HostNuma(_) if attribute(device, HOST_NUMA_POOLS) == 0 => refuse(
            "a pool of page-locked memory of a node",
            "it has none (CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, from CUDA 12.9 on)",
        ),
        PoolKind::Host | PoolKind::HostNuma(_) => Ok(()),
    }
}

/// A number that older drivers do not know, and then it is 0.
fn attribute(device: &CudaDevice, number: c_uint) -> c_uint {
    let mut value: c_int = 0;
    // SAFETY: `value` is valid for the call; any number is allowed.
    let code = unsafe { device.driver().device_attribute(&mut value, number, device.handle) };
    if code.is_success() { value.unsigned_abs() } else { 0 }
}

/// Sets how much a pool from `create` keeps, and how it may reuse memory: by event dependencies, opportunistically, and
/// by dependencies that the driver adds.
pub(crate) fn configure(device: &CudaDevice, pool: RawPool, options: &PoolOptions) -> Result<()> {
    if options.release_threshold != u64::MAX {
        device.set_release_threshold(Some(pool), options.release_threshold)?;
    }
    for (attribute, _) in REUSE.into_iter().zip(options.reuse()).filter(|(_, allowed)| !allowed) {
        let mut value: c_int = 0;
        // SAFETY: the pool is live, and these attributes are `int`s.
        let code = unsafe { device.driver().pool_set(pool.as_raw(), attribute, from_mut(&mut value).cast()) };
        device.check(code, device)?;
    }
    Ok(())
}

/// Lets `peer` use all memory of `pool`, which is one of `device`.
pub(crate) fn allow(device: &CudaDevice, pool: RawPool, peer: &CudaDevice) -> Result<()> {
    let access = PoolAccess::read_write(peer);
    // SAFETY: the pool is live, and `access` is valid for the call.
    let code = unsafe { device.driver().pool_set_access(pool.as_raw(), &access, 1)? };
    device.check(code, &format_args!("{peer}"))
}

/// Of the pool that is named, or of the device's own.
impl CudaDevice {
    /// Sets how many free bytes it keeps at a synchronisation.
    pub(crate) fn set_release_threshold(&self, pool: Option<RawPool>, bytes: u64) -> Result<()> {
        self.set_of_pool(pool, RELEASE_THRESHOLD, bytes)
    }

    /// Reserved now and at most, used now and at most, in bytes.
    pub(crate) fn pool_statistics(&self, pool: Option<RawPool>) -> Result<[u64; 4]> {
        let (pool, mut values) = (self.pool_or(pool)?.as_raw(), [0; 4]);
        for (value, attribute) in values.iter_mut().zip(STATISTICS) {
            // SAFETY: the pool is live, and these attributes are `u64`s.
            let code = unsafe { self.driver().pool_get(pool, attribute, from_mut(value).cast()) };
            self.check(code, self)?;
        }
        Ok(values)
    }

    /// Sets the highest figures back to the current ones.
    pub(crate) fn reset_pool_statistics(&self, pool: Option<RawPool>) -> Result<()> {
        // The driver takes 0 only, and means the current value.
        self.set_of_pool(pool, STATISTICS[1], 0)?;
        self.set_of_pool(pool, STATISTICS[3], 0)
    }

    fn set_of_pool(&self, pool: Option<RawPool>, attribute: c_uint, mut value: u64) -> Result<()> {
        let pool = self.pool_or(pool)?.as_raw();
        // SAFETY: the pool is live, and all attributes that are set by this are `u64`s.
        let code = unsafe { self.driver().pool_set(pool, attribute, from_mut(&mut value).cast()) };
        self.check(code, self)
    }

    /// Gives back to the driver what it does not use, but for `keep` bytes.
    pub(crate) fn trim_pool(&self, pool: Option<RawPool>, keep: usize) -> Result<()> {
        let pool = self.pool_or(pool)?.as_raw();
        // SAFETY: the pool is live: that of a device is never destroyed, others not before their last handle is dropped.
        let code = unsafe { self.driver().pool_trim(pool, keep) };
        self.check(code, self)
    }
}
