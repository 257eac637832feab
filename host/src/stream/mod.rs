//! Streams: queues of work on a device, each in order. This file has [`Stream`].
//!
//! `kinds` makes the other streams (default, with `options`, of other libraries). `event` and `timing` mark
//! and measure points in a stream's work, `completion` awaits them, and `order` makes streams wait for each
//! other. `host_fn` calls host functions, `external` takes work of neighbouring crates. `announcing` guards the uses of a call that a recording may refuse.

pub(crate) mod announcing;
pub(crate) mod completion;
pub(crate) mod event;
pub(crate) mod external;
pub(crate) mod host_fn;
pub(crate) mod kinds;
pub(crate) mod options;
pub(crate) mod order;
pub(crate) mod timing;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::backend::recording::RecordingStream;
use crate::backend::recording::refusal::host_memory;
use crate::backend::{
    Account, EventBackend, EventOptions, Fill, MemoryCopy, Place, Rows, Side, StreamBackend, retired,
};
use crate::device::Device;
use crate::error::Result;
use crate::launch::parameter::block_order::KeptOrder;
use crate::order::OrderedStream;
use crate::profile::{self, Work};

/// A queue of work on one device. Work on one stream runs in the order in which it was enqueued. Work on different streams
/// may run at the same time, except when it uses the same buffer.
///
/// Functions that enqueue return at once; [`Stream::synchronize`] and [`Stream::download`] wait.
/// A stream may be used from several threads. Dropping it does not wait: what was enqueued still
/// runs.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// let stream = ferrogrid_host::Device::cpu().new_stream()?;
/// let a = stream.upload(&[1.0_f32, 2.0])?;
/// let mut b = stream.zeros::<f32>(2)?;
/// stream.copy(&a, &mut b)?;
/// assert_eq!(stream.download(&b)?, [1.0, 2.0]);
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let (stream, other) = (device.new_stream()?, device.new_stream()?);
/// assert_eq!(stream.device(), &device);
/// assert_ne!(stream.id(), other.id()); // of a `Track` in a timeline
/// assert_eq!(stream.priority()?, 0);
/// # Ok(()) }
/// ```
pub struct Stream {
    inner: Arc<StreamInner>,
}

/// A stream, shared by its handle and the buffers that still refer to it.
#[repr(C)] // What every launch reads comes first.
pub(crate) struct StreamInner {
    id: u64,
    device: Device,
    backend: StreamBackend,
    account: Arc<Account>,
    /// Whether the handle is gone, so that no more work is enqueued.
    closed: AtomicBool,
    kept_order: KeptOrder,
}

impl Stream {
    pub(crate) fn new(device: &Device, backend: impl Into<StreamBackend>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (device, account, closed) =
            (device.clone(), Account::of(device.backend()), AtomicBool::new(false));
        let (backend, kept_order) = (backend.into(), KeptOrder::default());
        Stream { inner: Arc::new(StreamInner { id, device, backend, account, closed, kept_order }) }
    }

    /// The device that runs it.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// The id of the stream, unique in this process, also after it is dropped. Timelines name
    /// it so ([`Track::Stream`](crate::profile::Track::Stream)).
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// Waits until all work enqueued so far has run (`cuStreamSynchronize`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let ones = stream.fill(1_u32, 1000)?; // enqueued
    /// stream.synchronize()?; // has run
    /// # drop(ones);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If a kernel has failed by then and the failure is unreported: [`Error::KernelPanic`](crate::Error::KernelPanic)
    /// (the device remains usable), or [`Error::LaunchFailed`](crate::Error::LaunchFailed);
    /// [`Error::HostFnPanic`](crate::Error::HostFnPanic) if a function of [`Stream::launch_host_func`] has panicked. Of several
    /// failures it is the first. If several threads share a stream, the first wait reports the failure; the data of failed
    /// work are errors for all. On a GPU a panic counts for all launches of the stream since the last wait whose kernels can
    /// panic.
    pub fn synchronize(&self) -> Result<()> {
        let backend = &self.inner.backend;
        let result = profile::observe_host(self.device(), Work::Synchronize, || backend.synchronize());
        retired::collect();
        result
    }

    /// Whether all work enqueued so far has run (`cuStreamQuery`). Does not wait.
    ///
    /// # Errors
    /// If the device has failed. Unfinished work is not an error, and failures of kernels are left to
    /// [`Stream::synchronize`].
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let _ones = stream.fill(1_u8, 1000)?;
    /// while !stream.is_complete()? {
    ///     std::thread::yield_now(); // do something else
    /// }
    /// # Ok(()) }
    /// ```
    pub fn is_complete(&self) -> Result<bool> {
        let complete = self.inner.backend.is_complete();
        self.device().deliver_output();
        complete
    }

    pub(crate) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // It refers to the stream.
        self.inner.kept_order.clear();
        self.inner.backend.close();
        self.inner.closed.store(true, Ordering::Release);
    }
}

debug_by_methods!(Stream { id, device });

impl StreamInner {
    #[inline]
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    #[inline]
    pub(crate) fn backend(&self) -> &StreamBackend {
        &self.backend
    }

    /// The recording that this stream adds to, if it runs nothing.
    #[inline]
    pub(crate) fn recording(&self) -> Option<&RecordingStream> {
        self.backend.recording()
    }

    /// An event at the end of all work enqueued so far, with the time of the device.
    pub(crate) fn mark(&self) -> Result<EventBackend> {
        let event = EventBackend::new(self.device.backend(), EventOptions::new())?;
        self.backend.record(&event)?;
        Ok(event)
    }

    /// An event at the end of all work enqueued so far.
    pub(crate) fn tail(&self) -> Result<EventBackend> {
        let event = self.new_event()?;
        self.backend.record(&event)?;
        Ok(event)
    }

    /// An event that cannot be timed.
    pub(crate) fn new_event(&self) -> Result<EventBackend> {
        EventBackend::new(self.device.backend(), EventOptions::UNTIMED)
    }

    /// Memory for the next launch with a `BlockOrder`.
    pub(crate) fn kept_order(&self) -> &KeptOrder {
        &self.kept_order
    }

    /// What its buffers count for.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// As `copy_from_host`, into memory that nothing has used yet.
    ///
    /// # Safety
    /// `source` is `bytes` of host memory, `target` as many allocated here and unused.
    pub(crate) unsafe fn initialise_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: passed on; the wait outlasts the use of `source`.
        let copy = || unsafe { self.backend.initialise_from_host(upload(target, source, bytes)) };
        self.observe_host_copy(Work::Upload { bytes }, copy, |stream| stream.drain())
    }

    /// Copies from host memory, which is not used after this returns.
    ///
    /// # Safety
    /// `source` is `bytes` of host memory, `target` as many of this device, ordered for writing here.
    pub(crate) unsafe fn copy_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.upload(upload(target, source, bytes)) }
    }

    /// Makes a copy from any memory of the host, which is not used after this returns.
    ///
    /// # Safety
    /// The source is memory of the host, the target of this device, ordered for writing here.
    pub(crate) unsafe fn upload(&self, copy: MemoryCopy) -> Result<()> {
        let work = Work::Upload { bytes: copy.bytes() };
        // SAFETY: passed on; the wait outlasts the use of the source. Pageable memory may be read after the call returns:
        // the driver stages it, or the GPU reads it in place.
        let copy = || unsafe { self.backend.copy_from_host(copy) };
        self.observe_host_copy(work, copy, |stream| stream.drain())
    }

    /// Copies to host memory, which is filled when this returns `Ok`, and not used after it returns.
    ///
    /// # Safety
    /// `target` is `bytes` of host memory, `source` as many of this device, ordered for reading here.
    pub(crate) unsafe fn copy_to_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        let (target, source) = (Side::memory(Place::Host, target), Side::memory(Place::Device, source));
        // SAFETY: passed on.
        unsafe { self.download(MemoryCopy::bytes_of(target, source, bytes)) }
    }

    /// Makes a copy to any memory of the host, which is filled when this returns `Ok`, and not used after it returns.
    ///
    /// # Safety
    /// The target is memory of the host, the source of this device, ordered for reading here.
    pub(crate) unsafe fn download(&self, copy: MemoryCopy) -> Result<()> {
        let work = Work::Download { bytes: copy.bytes() };
        // SAFETY: passed on; the wait outlasts the use of the target.
        let copy = || unsafe { self.backend.copy_to_host(copy) };
        self.observe_host_copy(work, copy, |stream| stream.synchronize())
    }

    /// Makes a copy from or to memory of the host, and waits for it.
    fn observe_host_copy(
        &self,
        work: Work,
        copy: impl FnOnce() -> Result<()>,
        wait: fn(&StreamBackend) -> Result<()>,
    ) -> Result<()> {
        if self.recording().is_some() {
            return copy(); // It is refused.
        }
        if !self.backend.enqueues_host_copies() {
            return profile::observe_host(&self.device, work, copy);
        }
        profile::observe(self, work, copy)?;
        profile::observe_host(&self.device, Work::Synchronize, || wait(&self.backend))
    }

    /// Enqueues a copy.
    ///
    /// # Safety
    /// Both have `bytes` bytes, at the named places, and do not overlap. Memory of this device is ordered on this stream for
    /// its use. Nothing else uses memory of the host until the copy has run. If both are of the host, both are page-locked.
    pub(crate) unsafe fn copy(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
        (to, from): (Place, Place),
    ) -> Result<()> {
        let (target, source) = (Side::memory(to, target), Side::memory(from, source));
        // SAFETY: passed on.
        unsafe { self.enqueue(MemoryCopy::bytes_of(target, source, bytes)) }
    }

    /// Enqueues a copy of rows.
    ///
    /// # Safety
    /// As for `copy`, with these rows.
    pub(crate) unsafe fn copy_rows(
        &self,
        target: *mut u8,
        source: *const u8,
        rows: Rows,
        (to, from): (Place, Place),
    ) -> Result<()> {
        let (target, source) = (Side::memory(to, target), Side::memory(from, source));
        // SAFETY: passed on.
        unsafe { self.enqueue(MemoryCopy { target, source, rows, layers: 1 }) }
    }

    /// Enqueues any copy.
    ///
    /// # Safety
    /// As for `copy`, with its sides and rows.
    pub(crate) unsafe fn enqueue(&self, copy: MemoryCopy) -> Result<()> {
        let bytes = copy.bytes();
        let work = match copy.places() {
            (Place::Device, Place::Host) => Work::Upload { bytes },
            (Place::Host, Place::Device) => Work::Download { bytes },
            _ => Work::Copy { bytes },
        };
        // SAFETY: passed on.
        profile::observe(self, work, || unsafe { self.backend.copy(copy) })
    }

    /// # Errors
    /// [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) in a recording, which cannot keep memory of the host.
    pub(crate) fn refuse_host_memory(&self, operation: &'static str) -> Result<()> {
        if self.recording().is_some() { Err(host_memory(operation)) } else { Ok(()) }
    }

    /// Enqueues `count` repetitions of `pattern`.
    ///
    /// # Safety
    /// `target` has room for them on this device, aligned to the pattern's length if that is 2 or 4,
    /// and is ordered here for writing.
    pub(crate) unsafe fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        let fill = Fill::new(target, pattern, count);
        // SAFETY: passed on.
        profile::observe(self, Work::Fill { bytes: fill.bytes() }, || unsafe { self.backend.fill(fill) })
    }
}

impl OrderedStream for StreamInner {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn run_after(&self, earlier: &Self) -> Result<()> {
        self.backend.run_after(&earlier.backend)
    }
}

/// A copy from host memory to this device.
fn upload(target: *mut u8, source: *const u8, bytes: usize) -> MemoryCopy {
    MemoryCopy::bytes_of(Side::memory(Place::Device, target), Side::memory(Place::Host, source), bytes)
}
