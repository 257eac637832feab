//! Memory on CUDA streams: allocation, copies, fills, numbers to write and wait for. Its callers order the work.
//!
//! `pool`, `own_pool` and `shared_pool` are memory pools; `host` (page-locked, managed), `virtual_memory`, `ipc` and
//! `array` are kinds of memory; `fill` repeats values of any size.

pub(crate) mod array;
pub(crate) mod fill;
pub(crate) mod host;
pub(crate) mod ipc;
pub(crate) mod own_pool;
pub(crate) mod pool;
#[cfg(unix)]
pub(crate) mod shared_pool;
mod tensor_map;
pub(crate) mod virtual_memory;

use std::ffi::c_uint;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemAttach_flags, CUstreamWriteValue_flags};

use super::device::address;
use super::driver::{Code, Returned};
use super::stream::CudaStream;
use super::stream::per_thread::PER_THREAD;
use crate::backend::device::DeviceMemory;
use crate::backend::operation::{Fill, MemoryCopy, Place, Rows, ValueCondition};
use crate::backend::stream::StreamMemory;
use crate::backend::{Account, Contents};
use crate::error::{Error, Result};
use array::DriverSide;
use pool::RawPool;

/// Any stream of any device may use it.
const ATTACH_GLOBAL: c_uint = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as c_uint;

/// After a memory barrier.
const AFTER_BARRIER: u32 = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32;

impl StreamMemory for CudaStream {
    fn allocate(&self, pool: Option<RawPool>, bytes: usize, contents: Contents) -> Result<*mut u8> {
        self.bind()?;
        let stream = self.enter()?;
        let mut start = 0;
        let code = if self.device().has_pools() {
            let pool = self.device().pool_or(pool)?.as_raw();
            // SAFETY: `start` is valid for the call, and stream and pool are live.
            unsafe { self.driver().allocate_from_pool(&mut start, bytes, pool, stream.raw) }
        } else {
            // SAFETY: `start` is valid for the call, and the context is bound.
            unsafe { self.driver().allocate(&mut start, bytes) }
        };
        self.device().check_memory(code, bytes, &format_args!("{bytes} bytes"))?;
        let pointer = with_exposed_provenance_mut(start as usize);
        // SAFETY: the memory has just been allocated with that many bytes.
        let initialised = unsafe { self.initialise(pointer, bytes, contents) };
        // SAFETY: nothing uses it after a fill, which comes before in this stream.
        initialised.inspect_err(|_| unsafe { self.free_async(pointer) })?;
        Ok(pointer)
    }

    /// The bytes are returned at once: the pool can reuse them for the next allocation here, without waiting.
    unsafe fn free(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>) {
        account.give_back(bytes);
        // SAFETY: passed on.
        unsafe { self.free_async(pointer) }
    }

    fn allocate_managed(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        self.bind()?;
        self.device().check_managed()?;
        // SAFETY: `to` is valid for the call, and the context is bound.
        let start = self
            .device()
            .get_memory(bytes, |driver, to| unsafe { driver.allocate_managed(to, bytes, ATTACH_GLOBAL) })?;
        self.device().note_managed();
        let pointer = with_exposed_provenance_mut(start as usize);
        // SAFETY: the memory has just been allocated with that many bytes.
        let initialised = unsafe { self.initialise(pointer, bytes, contents) };
        // SAFETY: nothing uses it after a fill, which comes before in this stream.
        initialised.inspect_err(|_| unsafe {
            self.device().forget_managed();
            self.free_waiting(pointer);
        })?;
        Ok(pointer)
    }

    unsafe fn free_managed(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>) {
        // SAFETY: passed on.
        unsafe { self.free_waiting(pointer) };
        account.give_back(bytes);
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<()> {
        let (target, source) = (copy.target.start(), copy.source.start());
        // SAFETY: passed on, to what copies between these places.
        unsafe {
            match copy.places() {
                _ if copy.has_array() => self.copy_array(&copy),
                _ if copy.rows.height > 1 => self.copy_rows(&copy),
                (Place::Host, Place::Host) => self.copy_on_host(target, source, copy.bytes()),
                _ => self.copy_bytes(target, source, copy.bytes()),
            }
        }
    }

    unsafe fn fill(&self, fill: Fill<'_>) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.fill_by_words(&fill) }
    }

    fn has_prefetches(&self) -> Result<bool> {
        Ok(true)
    }

    unsafe fn prefetch(&self, start: *const u8, bytes: usize, to_host: bool) -> Result<()> {
        let device = self.device().location(to_host);
        self.enqueue(format_args!("{bytes} bytes"), |stream| {
            // SAFETY: the caller vouches for the memory; the stream is live.
            unsafe { self.driver().prefetch(address(start), bytes, device, stream) }
        })
    }

    unsafe fn write_value(&self, target: *mut u8, value: u64, is_wide: bool) -> Result<()> {
        self.bind()?;
        let entered = self.enter()?;
        let (driver, target, stream) = (self.driver(), address(target), entered.raw);
        // SAFETY: the caller vouches for the memory; the handle is live.
        let code = unsafe {
            match is_wide {
                true => driver.write_value_64(stream, target, value, AFTER_BARRIER),
                // It was made of so many bits.
                false => driver.write_value_32(stream, target, value as u32, AFTER_BARRIER),
            }
        };
        self.check_value(code.of_function("cuStreamWriteValue"), value)
    }

    unsafe fn wait_value(&self, source: *const u8, condition: ValueCondition) -> Result<()> {
        self.bind()?;
        let ValueCondition { kind, value, is_wide } = condition;
        let entered = self.enter()?;
        let (driver, source, stream) = (self.driver(), address(source), entered.raw);
        // SAFETY: the caller vouches for the memory; the handle is live.
        let code = unsafe {
            match is_wide {
                true => driver.wait_value_64(stream, source, value, kind),
                false => driver.wait_value_32(stream, source, value as u32, kind),
            }
        };
        if code == Code::NOT_SUPPORTED {
            let reason = "the GPU cannot wait for this condition";
            return Err(Error::unsupported("a stream's wait for a value", self.device(), reason));
        }
        self.check_value(code.of_function("cuStreamWaitValue"), value)
    }
}

impl CudaStream {
    /// Gives fresh memory its contents.
    ///
    /// # Safety
    /// `pointer` leads to `bytes` of memory that nothing uses yet.
    unsafe fn initialise(&self, pointer: *mut u8, bytes: usize, contents: Contents) -> Result<()> {
        match contents {
            Contents::Uninitialised => Ok(()),
            // SAFETY: passed on.
            Contents::Zeroed => unsafe { self.fill(Fill::new(pointer, &[0], bytes)) },
        }
    }

    /// # Safety
    /// As for `StreamMemory::free`.
    unsafe fn free_async(&self, pointer: *mut u8) {
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

    /// Frees memory that is not of a pool, which waits for all work here.
    ///
    /// # Safety
    /// As for `StreamMemory::free`.
    unsafe fn free_waiting(&self, pointer: *mut u8) {
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

    /// # Safety
    /// As for `StreamMemory::copy`; either place may be in memory of the host.
    pub(super) unsafe fn copy_bytes(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        self.enqueue(format_args!("{bytes} bytes"), |stream| {
            // SAFETY: the caller vouches for both.
            unsafe { self.driver().copy(address(target), address(source), bytes, stream) }
        })
    }

    /// Enqueues a copy between two places in page-locked memory of the host. `cuMemcpyAsync` waits here for the stream to
    /// come to it, which may need what this thread is about to do; a batch of one copy does not. Drivers before CUDA 13.0
    /// have no batches, the legacy stream takes none.
    ///
    /// # Safety
    /// As for `StreamMemory::copy`.
    unsafe fn copy_on_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
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
                return self.device().check(code, &format_args!("{bytes} bytes"));
            }
        }
        drop(stream);
        // SAFETY: passed on.
        unsafe { self.copy_bytes(target, source, bytes) }
    }

    /// Copies rows between memory of this device and of the host.
    ///
    /// # Safety
    /// As for `StreamMemory::copy`.
    unsafe fn copy_rows(&self, copy: &MemoryCopy) -> Result<()> {
        let (rows, from, to) = (copy.rows, DriverSide::of(copy.source), DriverSide::of(copy.target));
        let params = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: from.kind,
            srcHost: from.host.cast(),
            srcDevice: from.device,
            srcArray: from.array,
            srcPitch: rows.source_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: to.kind,
            dstHost: to.host.cast(),
            dstDevice: to.device,
            dstArray: to.array,
            dstPitch: rows.target_pitch,
            WidthInBytes: rows.width,
            Height: rows.height,
        };
        let Rows { width, height, .. } = rows;
        self.enqueue(format_args!("{height} rows of {width} bytes"), |stream| {
            // SAFETY: `params` is valid for the call; the caller vouches for what it leads to.
            unsafe { self.driver().copy_2d(&params, stream) }
        })
    }

    /// An H200's driver 580 takes numbers in page-locked memory and in that of `cuMemAlloc`, and says of all others that
    /// the value is invalid.
    fn check_value(&self, returned: Returned, value: u64) -> Result<()> {
        if returned == Code::INVALID_VALUE {
            let operation = "a number that a stream writes or waits for in this memory";
            let reason = "the driver takes none in memory of pools, where buffers are; put it in page-locked memory \
                          (`Device::pinned_zeros`, `PinnedBuffer::view_mut`)";
            return Err(Error::unsupported(operation, self.device(), reason));
        }
        self.device().check(returned, &format_args!("value {value}"))
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
