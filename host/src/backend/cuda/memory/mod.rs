//! Memory on CUDA streams: allocation, copies, fills. Its callers order the work.
//!
//! `pool`, `own_pool` and `shared_pool` are memory pools; `pinned`, `managed`, `virtual_memory`, `ipc` and
//! `array` are kinds of memory; `fill` repeats values of any size.

pub(crate) mod array;
pub(crate) mod fill;
pub(crate) mod ipc;
pub(crate) mod managed;
pub(crate) mod own_pool;
pub(crate) mod pinned;
pub(crate) mod pool;
#[cfg(unix)]
pub(crate) mod shared_pool;
pub(crate) mod virtual_memory;

use std::ffi::c_uint;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemAttach_flags, CUmemorytype};

use super::device::address;
use super::driver::Code;
use super::stream::CudaStream;
use super::stream::per_thread::PER_THREAD;
use crate::backend::{Place, Rows};
use crate::error::Result;
use crate::memory::Contents;
use pool::RawPool;

/// Any stream of any device may use it.
const ATTACH_GLOBAL: c_uint = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as c_uint;

impl CudaStream {
    /// `bytes` (not 0) of fresh memory, in the order of this stream: from `pool`, or from that of the device.
    pub(crate) fn allocate(
        &self,
        pool: Option<RawPool>,
        bytes: usize,
        contents: Contents,
    ) -> Result<*mut u8> {
        self.bind()?;
        let stream = self.enter()?;
        let mut start = 0;
        let (code, operation) = if self.device().has_pools() {
            let pool = self.device().pool_or(pool)?.as_raw();
            // SAFETY: `start` is valid for the call, and stream and pool are live.
            let code = unsafe { self.driver().allocate_from_pool(&mut start, bytes, pool, stream.raw) };
            (code, "cuMemAllocFromPoolAsync")
        } else {
            // SAFETY: `start` is valid for the call, and the context is bound.
            (unsafe { self.driver().allocate(&mut start, bytes) }, "cuMemAlloc")
        };
        self.allocated(code, operation, bytes)?;
        let pointer = with_exposed_provenance_mut(start as usize);
        // SAFETY: the memory has just been allocated with that many bytes.
        let initialised = unsafe { self.initialise(pointer, bytes, contents) };
        // SAFETY: nothing uses it after a fill, which comes before in this stream.
        initialised.inspect_err(|_| unsafe { self.free(pointer) })?;
        Ok(pointer)
    }

    /// Whether an allocation of `bytes` has succeeded.
    fn allocated(&self, code: Code, operation: &'static str, bytes: usize) -> Result<()> {
        if code == Code::OUT_OF_MEMORY {
            return Err(self.device().out_of_memory(bytes));
        }
        self.device().check(code, operation, &format!("{bytes} bytes"))
    }

    /// Gives fresh memory its contents.
    ///
    /// # Safety
    /// `pointer` leads to `bytes` of memory that nothing uses yet.
    unsafe fn initialise(&self, pointer: *mut u8, bytes: usize, contents: Contents) -> Result<()> {
        match contents {
            Contents::Uninitialised => Ok(()),
            // SAFETY: passed on.
            Contents::Zeroed => unsafe { self.fill(pointer, &[0], bytes) },
        }
    }

    /// # Safety
    /// As for `StreamInner::free`.
    pub(crate) unsafe fn free(&self, pointer: *mut u8) {
        if !self.device().has_pools() {
            // SAFETY: passed on.
            return unsafe { self.free_waiting(pointer) };
        }
        // A failure means that the context is gone, and its memory with it.
        if self.bind().is_err() {
            return;
        }
        let Ok(stream) = self.hold() else { return };
        // SAFETY: the caller vouches for the memory, and that its uses come before on this stream.
        let _ = unsafe { self.driver().free_async(address(pointer), stream.raw) };
    }

    /// `bytes` (not 0) of managed memory.
    pub(crate) fn allocate_managed(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        self.bind()?;
        self.device().check_managed()?;
        let mut start = 0;
        // SAFETY: `start` is valid for the call, and the context is bound.
        let code = unsafe { self.driver().allocate_managed(&mut start, bytes, ATTACH_GLOBAL) };
        self.allocated(code, "cuMemAllocManaged", bytes)?;
        self.device().managed().fetch_add(1, Ordering::Relaxed);
        let pointer = with_exposed_provenance_mut(start as usize);
        // SAFETY: the memory has just been allocated with that many bytes.
        let initialised = unsafe { self.initialise(pointer, bytes, contents) };
        // SAFETY: nothing uses it after a fill, which comes before in this stream.
        initialised.inspect_err(|_| unsafe {
            self.device().managed().fetch_sub(1, Ordering::Release);
            self.free_waiting(pointer);
        })?;
        Ok(pointer)
    }

    /// Frees memory that is not of a pool, which waits for all work here.
    ///
    /// # Safety
    /// As for `StreamInner::free`.
    pub(crate) unsafe fn free_waiting(&self, pointer: *mut u8) {
        // As in `free`.
        if self.bind().is_err() {
            return;
        }
        let Ok(stream) = self.hold() else { return };
        // SAFETY: the stream is live; after it has been waited for, nothing uses the memory.
        let _ = unsafe {
            let waited = self.driver().stream_synchronize(stream.raw);
            if waited.is_success() { self.driver().free(address(pointer)) } else { waited }
        };
    }

    /// Moves managed memory to this device, or to the host.
    ///
    /// # Safety
    /// `start` is `bytes` (not 0) of live managed memory.
    pub(crate) unsafe fn prefetch(&self, start: *const u8, bytes: usize, to_host: bool) -> Result<()> {
        self.bind()?;
        let stream = self.enter()?;
        let device = self.device().location(to_host);
        // SAFETY: the caller vouches for the memory; the stream is live.
        let code = unsafe { self.driver().prefetch(address(start), bytes, device, stream.raw) };
        self.device().check(code, "cuMemPrefetchAsync", &format!("{bytes} bytes"))
    }

    /// Pageable host memory may be read after the copy call returns (the driver stages it, or the GPU
    /// reads it in place), so this waits for the copy.
    ///
    /// # Safety
    /// As for `StreamInner::copy_from_host`.
    pub(crate) unsafe fn copy_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller vouches for both; `drain` below outlasts the use of `source`.
        unsafe { self.copy(target, source, bytes)? };
        self.drain()
    }

    /// # Safety
    /// As for `StreamInner::copy`; either place may be in memory of the host.
    pub(crate) unsafe fn copy(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        self.bind()?;
        let stream = self.enter()?;
        // SAFETY: the caller vouches for both.
        let code = unsafe { self.driver().copy(address(target), address(source), bytes, stream.raw) };
        self.device().check(code, "cuMemcpyAsync", &format!("{bytes} bytes"))
    }

    /// Enqueues a copy between two places in page-locked memory of the host. `cuMemcpyAsync` waits here for the stream to
    /// come to it, which may need what this thread is about to do; a batch of one copy does not. Drivers before CUDA 13.0
    /// have no batches, the legacy stream takes none.
    ///
    /// # Safety
    /// As for `StreamInner::copy`.
    pub(crate) unsafe fn copy_on_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        self.bind()?;
        let stream = self.enter()?;
        if stream.raw.addr() >= PER_THREAD {
            let (target, source) = (address(target), address(source));
            let attributes = BatchAttributes { source_order: IN_STREAM_ORDER, ..BatchAttributes::default() };
            // SAFETY: what is read of them is read in the call; the caller vouches for both places.
            let code = unsafe {
                self.driver().copy_batch(&target, &source, &bytes, 1, &attributes, &0, 1, stream.raw)
            };
            if let Ok(code) = code {
                return self.device().check(code, "cuMemcpyBatchAsync", &format!("{bytes} bytes"));
            }
        }
        drop(stream);
        // SAFETY: passed on.
        unsafe { self.copy(target, source, bytes) }
    }

    /// Copies rows between memory of this device and of the host.
    ///
    /// # Safety
    /// As for `StreamInner::copy_rows`.
    pub(crate) unsafe fn copy_rows(
        &self,
        target: *mut u8,
        source: *const u8,
        rows: Rows,
        (target_place, source_place): (Place, Place),
    ) -> Result<()> {
        self.bind()?;
        let stream = self.enter()?;
        let (from, to) = (source_place == Place::Host, target_place == Place::Host);
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: memory_type(source_place),
            srcHost: if from { source.cast() } else { null() },
            srcDevice: if from { 0 } else { address(source) },
            srcArray: null_mut(),
            srcPitch: rows.source_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: memory_type(target_place),
            dstHost: if to { target.cast() } else { null_mut() },
            dstDevice: if to { 0 } else { address(target) },
            dstArray: null_mut(),
            dstPitch: rows.target_pitch,
            WidthInBytes: rows.width,
            Height: rows.height,
        };
        // SAFETY: `copy` is valid for the call; the caller vouches for what it leads to.
        let code = unsafe { self.driver().copy_2d(&copy, stream.raw) };
        let object = format!("{} rows of {} bytes", rows.height, rows.width);
        self.device().check(code, "cuMemcpy2DAsync", &object)
    }
}

/// The driver's `CUmemcpyAttributes`.
#[repr(C)]
#[derive(Default)]
pub(super) struct BatchAttributes {
    source_order: c_uint,
    /// Where both sides are: kind and number. Zeros are no hint.
    hints: [c_uint; 4],
    flags: c_uint,
}

/// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM`.
const IN_STREAM_ORDER: c_uint = 1;

/// Memory of a pool of the host is a device's for us, and not for the driver, which is told to find out.
pub(super) fn memory_type(place: Place) -> CUmemorytype {
    match place {
        Place::Host => CUmemorytype::CU_MEMORYTYPE_HOST,
        Place::Device => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
    }
}
