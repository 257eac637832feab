//! Streams: queues of work on a device, each in order. It must not know how a backend runs the work.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::backend::{Prepared, StreamBackend, cpu};
use crate::device::Device;
use crate::error::Result;
use crate::event::Event;
use crate::grid::LaunchShape;
use crate::kernel::Kernel;
use crate::memory::Contents;
use crate::order::OrderedStream;

/// A queue of work on one device. Work on one stream runs in the order in which it was given; work
/// on different streams may run at the same time, except where it uses the same buffer.
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
pub struct Stream {
    inner: Arc<StreamInner>,
}

/// A stream, shared by its handle and the buffers that still refer to it.
pub(crate) struct StreamInner {
    id: u64,
    device: Device,
    backend: StreamBackend,
    /// Whether the handle is gone, so that nobody can enqueue.
    closed: AtomicBool,
}

impl Stream {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let backend = device.backend().new_stream()?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let closed = AtomicBool::new(false);
        Ok(Stream { inner: Arc::new(StreamInner { id, device: device.clone(), backend, closed }) })
    }

    /// The device that runs it.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Waits until all work enqueued so far has run (`cuStreamSynchronize`).
    ///
    /// # Errors
    /// If a kernel has failed since the last synchronisation: [`Error::KernelPanic`](crate::Error::KernelPanic)
    /// on the CPU (the stream can be used again), [`Error::LaunchFailed`](crate::Error::LaunchFailed) on a GPU.
    pub fn synchronize(&self) -> Result<()> {
        match &self.inner.backend {
            StreamBackend::Cuda(stream) => stream.synchronize(),
            StreamBackend::Cpu(stream) => stream.synchronize(),
        }
    }

    /// An event after all work enqueued so far (`cuEventRecord`).
    ///
    /// # Errors
    /// If the device fails.
    pub fn record(&self) -> Result<Event> {
        let event = match &self.inner.backend {
            StreamBackend::Cuda(stream) => stream.record_timed()?.into(),
            StreamBackend::Cpu(stream) => stream.record()?.into(),
        };
        Ok(Event::new(event))
    }

    /// Makes work enqueued here from now on start after `event`, of any stream or device
    /// (`cuStreamWaitEvent`). Buffers need no such call: their work is ordered anyway.
    ///
    /// # Errors
    /// If the device fails.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.inner.backend.wait(event.backend())
    }

    pub(crate) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.inner.closed.store(true, Ordering::Release);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("id", &self.inner.id).field("device", &self.inner.device).finish()
    }
}

impl StreamInner {
    #[inline]
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all work enqueued so far has run; failures are left to whoever synchronises.
    pub(crate) fn drain(&self) -> Result<()> {
        match &self.backend {
            StreamBackend::Cuda(stream) => stream.record_timed()?.synchronize(),
            StreamBackend::Cpu(stream) => {
                stream.record()?.wait();
                Ok(())
            }
        }
    }

    pub(crate) fn backend(&self) -> &StreamBackend {
        &self.backend
    }

    pub(crate) fn allocate(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        match &self.backend {
            StreamBackend::Cuda(stream) => stream.allocate(bytes, contents),
            StreamBackend::Cpu(stream) => stream.allocate(bytes, contents),
        }
    }

    /// Frees in stream order.
    ///
    /// # Safety
    /// `pointer` is from `allocate` of `bytes` on this device, is freed once, and work enqueued here
    /// runs after all work that uses it.
    pub(crate) unsafe fn free(&self, pointer: *mut u8, bytes: usize) {
        match &self.backend {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.free(pointer) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.free(pointer, bytes) },
        }
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
        match &self.backend {
            // SAFETY: passed on; what was allocated here is ordered here.
            StreamBackend::Cuda(stream) => unsafe { stream.copy_from_host(target, source, bytes) },
            // SAFETY: passed on.
            StreamBackend::Cpu(_) => unsafe { cpu::initialise_from_host(target, source, bytes) },
        }
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
        match &self.backend {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.copy_from_host(target, source, bytes) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.copy_from_host(target, source, bytes) },
        }
    }

    /// Copies to host memory, which is filled when this returns `Ok`, and not used after it returns.
    ///
    /// # Safety
    /// `target` is `bytes` of host memory, `source` as many of this device, ordered for reading here.
    pub(crate) unsafe fn copy_to_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        match &self.backend {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.copy_to_host(target, source, bytes) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.copy_to_host(target, source, bytes) },
        }
    }

    /// Enqueues a copy within the device.
    ///
    /// # Safety
    /// Both are `bytes` of this device that do not overlap, ordered here for their use.
    pub(crate) unsafe fn copy(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        match &self.backend {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.copy(target, source, bytes) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.copy(target, source, bytes) },
        }
    }

    /// Enqueues `count` repetitions of `pattern`.
    ///
    /// # Safety
    /// `target` has room for them on this device, aligned to the pattern's length if that is 2 or 4,
    /// and is ordered here for writing.
    pub(crate) unsafe fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        match &self.backend {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.fill(target, pattern, count) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.fill(target, pattern, count) },
        }
    }

    /// Loads `kernel` for this device, if that has not been done.
    #[inline]
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Prepared> {
        match &self.backend {
            StreamBackend::Cuda(stream) => stream.prepare(kernel).map(Prepared),
            StreamBackend::Cpu(_) => Ok(Prepared::default()),
        }
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// As [`launch`](crate::launch::launch), with memory ordered, the shape within the limits, and
    /// `prepared` from `prepare` of this kernel here.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        prepared: Prepared,
        kernel: &'static Kernel,
        shape: LaunchShape,
        params: &[*const c_void],
    ) -> Result<()> {
        match &self.backend {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.launch(prepared.0, kernel, shape, params) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.launch(kernel, shape, params) },
        }
    }
}

impl OrderedStream for StreamInner {
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
