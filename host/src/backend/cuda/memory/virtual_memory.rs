//! Virtual memory of a CUDA device: addresses are reserved first and mapped later.

use std::ffi::c_uint;
use std::ptr::with_exposed_provenance_mut;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use cudarc::driver::sys::{CUdevice_attribute, CUmemAllocationGranularity_flags};

use super::pool::{AllocationProperties, PoolAccess};
use crate::backend::PoolKind;
use crate::backend::cuda::device::{CudaDevice, address, attribute_of, devices};
use crate::backend::device::BackendDevice;
use crate::backend::memory::virtual_memory::BackendRange;
use crate::error::{Error, Result};
use crate::sync::lock;

const RECOMMENDED: c_uint = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED as c_uint;

/// Addresses that are reserved on a device.
pub(crate) struct VirtualRange {
    device: &'static CudaDevice,
    reserved: Arc<Reserved>,
    granularity: usize,
}

/// The part of it that peers need.
pub(crate) struct Reserved {
    start: *mut u8,
    bytes: usize,
    /// Each mapping, as its first byte and its length.
    mapped: Mutex<Vec<(usize, usize)>>,
}

// SAFETY: an address, which is only given to the driver.
unsafe impl Send for Reserved {}
// SAFETY: as above; what changes is behind the lock.
unsafe impl Sync for Reserved {}

/// The ranges of a device that may be alive.
pub(crate) type Ranges = Mutex<Vec<Weak<Reserved>>>;

impl Reserved {
    fn mapped(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        lock(&self.mapped)
    }

    /// Lets `user` read and write the mapping of `bytes` from `start` on, which is memory of `device`.
    fn allow(&self, device: &CudaDevice, user: &CudaDevice, start: usize, bytes: usize) -> Result<()> {
        let access = PoolAccess::read_write(user);
        let start = address(self.start.wrapping_add(start));
        // SAFETY: the range is mapped, and `access` is valid for the call.
        let code = unsafe { device.driver().memory_set_access(start, bytes, &access, 1)? };
        device.check(code, &format_args!("{user}"))
    }

    /// Lets `peer` use all that has memory.
    pub(crate) fn allow_all(&self, device: &CudaDevice, peer: &CudaDevice) -> Result<()> {
        self.mapped().iter().try_for_each(|(start, bytes)| self.allow(device, peer, *start, *bytes))
    }
}

impl VirtualRange {
    /// At least `bytes` of addresses.
    pub(crate) fn reserve(device: &'static CudaDevice, bytes: usize) -> Result<Self> {
        device.bind()?;
        let supported = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        if attribute_of(device.driver(), device.handle, supported)? == 0 {
            let reason =
                "it cannot map memory to addresses (CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)";
            return Err(Error::unsupported("a buffer that grows", device, reason));
        }
        let granularity = granularity(device)?;
        let too_large = || device.out_of_memory(bytes);
        let bytes = bytes.max(1).checked_next_multiple_of(granularity).ok_or_else(too_large)?;
        // SAFETY: `to` is valid for the call; the driver chooses alignment and address.
        let start =
            device.get_memory(bytes, |driver, to| unsafe { driver.address_reserve(to, bytes, 0, 0, 0) })?;
        let start = with_exposed_provenance_mut(start as usize);
        let reserved = Arc::new(Reserved { start, bytes, mapped: Mutex::default() });
        let mut ranges = lock(&device.ranges);
        ranges.retain(|range| range.strong_count() > 0);
        ranges.push(Arc::downgrade(&reserved));
        drop(ranges);
        Ok(VirtualRange { device, reserved, granularity })
    }

    /// Lets the device and its peers use a new mapping.
    fn allow(&self, start: usize, bytes: usize) -> Result<()> {
        // Held until peers are enabled: a peer added meanwhile must not miss the mapping.
        let _ranges = lock(&self.device.ranges);
        let peers = devices().into_iter().flatten().filter(|peer| peer.has_peer(self.device));
        let mut users = std::iter::once(self.device).chain(peers);
        users.try_for_each(|user| self.reserved.allow(self.device, user, start, bytes))?;
        self.reserved.mapped().push((start, bytes));
        Ok(())
    }
}

impl BackendRange for VirtualRange {
    fn start(&self) -> *mut u8 {
        self.reserved.start
    }

    fn granularity(&self) -> usize {
        self.granularity
    }

    fn map(&self, start: usize, bytes: usize) -> Result<()> {
        let device = self.device;
        device.bind()?;
        let properties = AllocationProperties::new(device, PoolKind::Device, false);
        // SAFETY: both are valid for the call.
        let handle = device
            .get_memory(bytes, |driver, to| unsafe { driver.memory_create(to, bytes, &properties, 0) })?;
        let target = address(self.reserved.start.wrapping_add(start));
        // SAFETY: the memory has just been made with that many bytes, and these addresses have none.
        let mapped = unsafe { device.driver().memory_map(target, bytes, 0, handle, 0) };
        // SAFETY: it is not asked for again; memory that is mapped stays until it is unmapped.
        let _released = unsafe { device.driver().memory_release(handle) };
        device.check(mapped?, &format_args!("{bytes} bytes"))?;
        self.allow(start, bytes).inspect_err(|_| {
            // SAFETY: mapped above, and nothing uses it yet.
            let _failed = unsafe { device.driver().memory_unmap(target, bytes) };
        })
    }

    unsafe fn unmap(&self, start: usize, bytes: usize) -> Result<()> {
        self.device.bind()?;
        let mut mapped = self.reserved.mapped();
        let target = address(self.reserved.start.wrapping_add(start));
        // SAFETY: passed on.
        let code = unsafe { self.device.driver().memory_unmap(target, bytes)? };
        self.device.check(code, &format_args!("{bytes} bytes"))?;
        mapped.retain(|(other, _)| *other != start);
        Ok(())
    }
}

impl Drop for VirtualRange {
    fn drop(&mut self) {
        // Addresses with memory cannot be given back; a failure means that the context is gone.
        if self.reserved.mapped().is_empty() {
            let start = address(self.reserved.start);
            // SAFETY: reserved once with that many bytes, and nothing is mapped there.
            self.device.release(|driver| unsafe { driver.address_free(start, self.reserved.bytes) });
        }
    }
}

/// What sizes of memory are multiples of.
fn granularity(device: &CudaDevice) -> Result<usize> {
    let properties = AllocationProperties::new(device, PoolKind::Device, false);
    // SAFETY: both are valid for the call.
    let granularity = device
        .get(device, |driver, to| unsafe { driver.memory_granularity(to, &properties, RECOMMENDED) })?;
    Ok(granularity.max(1))
}
