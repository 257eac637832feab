//! Streams of the CPU device: a queue of operations, and a thread that runs them one after the
//! other, started when there is something to run. It must not know how a kernel's blocks are run.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::device::CpuDevice;
use super::event::CpuEvent;
use super::execute::{Launch, check_resources};
use super::memory;
use super::params::CopiedParams;
use crate::error::{Error, Result};
use crate::grid::LaunchShape;
use crate::kernel::Kernel;
use crate::memory::Contents;

/// A stream of the CPU device. Dropping it leaves the queue to be run to its end.
pub(crate) struct CpuStream {
    device: &'static CpuDevice,
    queue: Arc<Queue>,
}

/// The queue of a stream, as seen from outside its worker thread.
pub(super) struct Queue {
    device: &'static CpuDevice,
    /// To the worker thread; `None` until it has been started.
    sender: Mutex<Option<Sender<Operation>>>,
    failure: Arc<Failure>,
}

/// The first failure of a stream since anyone asked, shared with its worker thread.
#[derive(Default)]
struct Failure(Mutex<Option<Error>>);

/// Work in a queue. Its pointers are valid until it has run: memory is freed by an operation, too.
enum Operation {
    Launch(Launch),
    Copy { target: Address, source: Address, bytes: usize },
    Fill { target: Address, pattern: Box<[u8]>, count: usize },
    Free { pointer: Address, bytes: usize },
    Complete(CpuEvent),
    Wait(CpuEvent),
}

/// An address that travels to the worker thread.
struct Address(*mut u8);

// SAFETY: whoever enqueues it gives it to the worker thread, to use in stream order.
unsafe impl Send for Address {}

impl CpuStream {
    pub(super) fn new(device: &'static CpuDevice) -> Self {
        let failure = Arc::new(Failure::default());
        CpuStream { device, queue: Arc::new(Queue { device, sender: Mutex::new(None), failure }) }
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.queue.drain()?;
        self.queue.failure.take().map_or(Ok(()), Err)
    }

    pub(crate) fn record(&self) -> Result<CpuEvent> {
        self.queue.record()
    }

    pub(crate) fn wait(&self, event: &CpuEvent) -> Result<()> {
        self.queue.push(Operation::Wait(event.clone()))
    }

    pub(crate) fn run_after(&self, earlier: &CpuStream) -> Result<()> {
        if !earlier.queue.is_started() {
            return Ok(());
        }
        self.wait(&earlier.record()?)
    }

    pub(crate) fn allocate(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        if !self.device.reserve(bytes) {
            return Err(memory::out_of_memory(self.device, bytes));
        }
        memory::allocate(self.device, bytes, contents).inspect_err(|_| self.device.release(bytes))
    }

    /// # Safety
    /// As for `StreamInner::free`.
    pub(crate) unsafe fn free(&self, pointer: *mut u8, bytes: usize) {
        if !self.queue.is_started() {
            self.device.release(bytes);
            // SAFETY: nothing was ever enqueued here, and all uses elsewhere come before.
            return unsafe { memory::free(pointer, bytes) };
        }
        // If the worker thread is gone, the memory is given up.
        let _ = self.queue.push(Operation::Free { pointer: Address(pointer), bytes });
    }

    /// # Safety
    /// As for `StreamInner::copy_from_host`.
    pub(crate) unsafe fn copy_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        self.queue.drain()?;
        // SAFETY: the caller vouches for both; all work that `target` is ordered after has run, and the
        // caller holds the only borrow of it.
        unsafe { target.copy_from_nonoverlapping(source, bytes) };
        Ok(())
    }

    /// # Safety
    /// As for `StreamInner::copy_to_host`.
    pub(crate) unsafe fn copy_to_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        self.synchronize()?;
        // SAFETY: the caller vouches for both; all writes that `source` is ordered after have run, and
        // the caller's borrow keeps others from being enqueued.
        unsafe { target.copy_from_nonoverlapping(source, bytes) };
        Ok(())
    }

    /// # Safety
    /// As for `StreamInner::copy`.
    pub(crate) unsafe fn copy(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        let (target, source) = (Address(target), Address(source.cast_mut()));
        self.queue.push(Operation::Copy { target, source, bytes })
    }

    /// # Safety
    /// As for `StreamInner::fill`.
    pub(crate) unsafe fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        self.queue.push(Operation::Fill { target: Address(target), pattern: pattern.into(), count })
    }

    /// # Safety
    /// As for `StreamInner::launch`.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &'static Kernel,
        shape: LaunchShape,
        params: &[*const c_void],
    ) -> Result<()> {
        check_resources(kernel, &shape, self.device)?;
        // SAFETY: the caller vouches for the parameters.
        let params = unsafe { CopiedParams::copy(params, kernel.descriptor().params) };
        self.queue.push(Operation::Launch(Launch { kernel, shape, params }))
    }
}

impl Queue {
    /// Waits until all that was enqueued so far has run.
    pub(super) fn drain(&self) -> Result<()> {
        if self.is_started() {
            self.record()?.wait();
        }
        Ok(())
    }

    /// The first failure since anyone took it.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.get()
    }

    fn record(&self) -> Result<CpuEvent> {
        let event = CpuEvent::new();
        self.push(Operation::Complete(event.clone()))?;
        Ok(event)
    }

    fn is_started(&self) -> bool {
        self.sender().is_some()
    }

    fn push(&self, operation: Operation) -> Result<()> {
        let mut sender = self.sender();
        let sender = match &mut *sender {
            Some(sender) => sender,
            empty => empty.insert(self.start()?),
        };
        sender.send(operation).map_err(|_| Error::WorkerThread { reason: "it has ended".into() })
    }

    fn start(&self) -> Result<Sender<Operation>> {
        let (sender, receiver) = channel();
        let (device, failure) = (self.device, self.failure.clone());
        let work = move || {
            run(device, &receiver, &failure);
            if let Some(failure) = failure.take() {
                device.adopt(failure);
            }
        };
        let spawned = thread::Builder::new().name("ferrogrid-stream".into()).spawn(work);
        spawned.map_err(|error| Error::WorkerThread { reason: error.to_string().into() })?;
        Ok(sender)
    }

    fn sender(&self) -> MutexGuard<'_, Option<Sender<Operation>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failure {
    fn note(&self, failure: Error) {
        self.lock().get_or_insert(failure);
    }

    fn get(&self) -> Option<Error> {
        self.lock().clone()
    }

    fn take(&self) -> Option<Error> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs operations until the stream is gone and its queue is empty.
fn run(device: &CpuDevice, operations: &Receiver<Operation>, failure: &Failure) {
    for operation in operations {
        match operation {
            Operation::Launch(launch) => {
                // SAFETY: whoever enqueued it vouched for it; its memory is ordered by this queue and
                // the waits in it.
                if let Err(error) = unsafe { launch.run(device) } {
                    failure.note(error);
                }
            }
            // SAFETY: as above; the two do not overlap.
            Operation::Copy { target, source, bytes } => unsafe {
                target.0.copy_from_nonoverlapping(source.0, bytes);
            },
            // SAFETY: as above.
            Operation::Fill { target, pattern, count } => unsafe { memory::fill(target.0, &pattern, count) },
            Operation::Free { pointer, bytes } => {
                device.release(bytes);
                // SAFETY: as above; all uses come before.
                unsafe { memory::free(pointer.0, bytes) }
            }
            Operation::Complete(event) => event.complete(failure.get()),
            Operation::Wait(event) => {
                // What came before has failed, so what comes after works on wrong data.
                if let Some(error) = event.wait() {
                    failure.note(error);
                }
            }
        }
    }
}
