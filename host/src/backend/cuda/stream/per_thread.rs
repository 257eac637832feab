//! The default streams of threads (`CU_STREAM_PER_THREAD`). The handle means the stream of the calling
//! thread, so only the thread of a stream makes calls with it. It marks the end of its work by an
//! event, after each call that enqueues something; other threads ask that event.

use std::ptr::without_provenance_mut;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::CUstream;

use super::event::CudaEvent;
use crate::backend::EventOptions;
use crate::backend::cuda::device::CudaDevice;
use crate::error::{Error, Result};
use crate::own_thread::{OwnThread, ending_thread};

/// `CU_STREAM_PER_THREAD`, the last of the handles that mean a stream of the current context; the null stream is 0.
pub(crate) const PER_THREAD: usize = 2;

/// Whose default stream a stream is.
pub(crate) struct PerThread {
    device: &'static CudaDevice,
    thread: OwnThread,
    /// The end of what the thread has enqueued so far.
    mark: Arc<CudaEvent>,
    /// Why something has no mark.
    unmarked: OnceLock<Error>,
}

impl PerThread {
    /// That of the calling thread.
    pub(crate) fn new(device: &'static CudaDevice) -> Result<Self> {
        device.bind()?;
        let mark = Arc::new(CudaEvent::new(device, EventOptions::UNTIMED)?);
        // The first use makes the stream: before the end of the thread is awaited, and so most likely ended after it.
        mark.record(without_provenance_mut(PER_THREAD))?;
        let thread = OwnThread::current().ok_or_else(|| ending_thread(device))?;
        Ok(PerThread { device, thread, mark, unmarked: OnceLock::new() })
    }

    pub(crate) fn thread(&self) -> OwnThread {
        self.thread
    }

    /// Whether the calling thread is that of the stream.
    pub(crate) fn is_here(&self) -> bool {
        self.thread.is_current()
    }

    /// That the calling thread may enqueue. What it enqueues is marked when the result is dropped, which must be before
    /// other threads can see it.
    pub(crate) fn enter(&self) -> Result<Marking<'_>> {
        if !self.is_here() {
            return Err(Error::StreamOfOtherThread { device: self.device.to_string().into() });
        }
        self.device.bind()?;
        Ok(Marking(self))
    }

    /// The end of what the thread has enqueued so far, for other threads.
    pub(crate) fn mark(&self) -> Result<&Arc<CudaEvent>> {
        match self.unmarked.get() {
            Some(error) => Err(error.clone()),
            None => Ok(&self.mark),
        }
    }
}

/// Marks the end of the stream's work when it is dropped.
pub(crate) struct Marking<'a>(&'a PerThread);

impl Drop for Marking<'_> {
    fn drop(&mut self) {
        let stream: CUstream = without_provenance_mut(PER_THREAD);
        let marked = self.0.device.bind().and_then(|()| self.0.mark.record(stream));
        if let Err(error) = marked {
            // Only the first is of interest: it is not known what runs from there on.
            let _ = self.0.unmarked.set(error);
        }
    }
}
