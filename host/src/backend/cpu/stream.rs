//! Streams of the CPU device: a queue of operations, and a thread that runs them one after the other, started
//! when there is something to run. `event` marks points in a queue; `legacy` is CUDA's legacy default stream.

pub(crate) mod event;
pub(crate) mod legacy;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::device::{CpuDevice, DeviceUse};
use super::execute::spin;
use super::execute::{Launch, check_resources};
use super::graph::{self, Failures, Marks, Step};
use super::memory;
use crate::backend::failure::{Failure, Fault};
use crate::backend::host_fn::{self, HostFn};
use crate::backend::params::CopiedParams;
use crate::backend::{self, Rows};
use crate::copy::value::ValueCondition;
use crate::device::account::Account;
use crate::error::{Error, Result};
use crate::memory::Contents;
use crate::order::writers::Flow;
use crate::stream::own_thread::OwnThread;
use event::{CpuEvent, CpuMark};
use legacy::Role;

/// A stream of the CPU device. Dropping it leaves the queue to be run to its end.
pub(crate) struct CpuStream {
    device: &'static CpuDevice,
    queue: Arc<Queue>,
    role: Role,
    /// The thread that alone enqueues, if it is its default stream.
    thread: Option<OwnThread>,
}

/// The queue of a stream, as seen from outside its worker thread.
pub(super) struct Queue {
    device: &'static CpuDevice,
    /// To the worker thread; `None` until it has been started.
    entry: Mutex<Option<Entry>>,
    /// How many operations have run.
    done: Arc<AtomicU64>,
    failure: Arc<Failure>,
    /// The device keeps its threads for it.
    _use: DeviceUse,
}

/// Where operations enter a queue.
struct Entry {
    sender: Sender<Operation>,
    /// How many have entered.
    pushed: u64,
}

/// Work in a queue. Its pointers are valid until it has run: memory is freed by an operation, too.
enum Operation {
    Launch(Launch, Flow),
    Copy {
        target: Address,
        source: Address,
        bytes: usize,
    },
    CopyRows {
        target: Address,
        source: Address,
        rows: Rows,
    },
    Fill {
        target: Address,
        pattern: Box<[u8]>,
        count: usize,
    },
    Free {
        pointer: Address,
        bytes: usize,
        account: Arc<Account>,
    },
    WriteValue {
        target: Address,
        value: u64,
        is_wide: bool,
    },
    WaitValue {
        source: Address,
        condition: ValueCondition,
    },
    Call(HostFn),
    /// A graph, and its end.
    Replay(Arc<[Step]>, Marks, Flow, CpuMark),
    Reach(CpuMark),
    /// The last one.
    End(CpuMark),
    Wait(CpuMark),
    /// Waits, and takes over what has failed there.
    Join(CpuMark),
}

/// An address that travels to the worker thread.
struct Address(*mut u8);

// SAFETY: whoever enqueues it gives it to the worker thread, to use in stream order.
unsafe impl Send for Address {}

impl CpuStream {
    pub(super) fn new(device: &'static CpuDevice) -> Self {
        let (done, failure) = (Arc::default(), Arc::default());
        let queue = Queue { device, entry: Mutex::new(None), done, failure, _use: DeviceUse::begin(device) };
        let queue = Arc::new(queue);
        CpuStream { device, queue, role: Role::Independent, thread: None }
    }

    /// The same stream, of which nothing has been asked yet, as the default stream of `thread`.
    pub(super) fn of_thread(self, thread: OwnThread) -> Self {
        CpuStream { thread: Some(thread), ..self.with_role(Role::Ordered) }
    }

    /// Whether the calling thread may enqueue.
    pub(crate) fn is_usable_here(&self) -> bool {
        self.thread.is_none_or(OwnThread::is_current)
    }

    fn check_thread(&self) -> Result<()> {
        if self.is_usable_here() {
            return Ok(());
        }
        Err(Error::StreamOfOtherThread { device: self.device.to_string().into() })
    }

    /// The same stream, of which nothing has been asked yet, with a role.
    pub(crate) fn with_role(mut self, role: Role) -> Self {
        legacy::join(&self.queue, role);
        self.role = role;
        self
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// The same for handles of one stream, and for no others.
    pub(crate) fn identity(&self) -> usize {
        if self.role == Role::Legacy { 0 } else { Arc::as_ptr(&self.queue).addr() }
    }

    /// Whether it is not ordered with the legacy default stream.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.role == Role::Independent
    }

    /// Waits until all that was enqueued so far has run; tells what of it has failed.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let failed = self.drain_to_failures()?;
        // First, as a sink may panic.
        self.device.output().deliver_kept();
        self.report(failed)
    }

    /// Waits until all that was enqueued so far has run; reports no failure.
    pub(crate) fn drain(&self) -> Result<()> {
        self.drain_to_failures().map(|_| ())
    }

    /// Waits for `event`, recorded here; tells what of the work before it has failed.
    pub(crate) fn finish(&self, event: &CpuEvent) -> Result<()> {
        let failed = event.mark().map_or(0, |mark| mark.wait());
        self.device.output().deliver_kept();
        self.report(failed)
    }

    /// Waits until all that was enqueued so far has run; how many failures there had been by then.
    fn drain_to_failures(&self) -> Result<u64> {
        let ordered = legacy::order(&self.queue, self.role);
        // In any case: what the queue holds may borrow memory of the caller.
        let failed = self.queue.drain()?;
        ordered.map(|()| failed)
    }

    /// The first of the stream's first failures that was not reported.
    fn report(&self, failed: u64) -> Result<()> {
        self.queue.failure.take_until(failed).map_or(Ok(()), Err)
    }

    /// Whether all that was enqueued so far has run.
    pub(crate) fn is_complete(&self) -> bool {
        let entry = self.queue.entry();
        entry.as_ref().is_none_or(|entry| entry.pushed == self.queue.done.load(Ordering::Acquire))
    }

    pub(crate) fn record(&self, event: &CpuEvent) -> Result<()> {
        legacy::order(&self.queue, self.role)?;
        event.set(self.queue.record()?);
        Ok(())
    }

    pub(crate) fn wait(&self, event: &CpuEvent) -> Result<()> {
        self.check_thread()?;
        event.mark().map_or(Ok(()), |mark| self.push(Operation::Join(mark)))
    }

    pub(crate) fn run_after(&self, earlier: &CpuStream) -> Result<()> {
        self.check_thread()?;
        self.queue.run_after(&earlier.queue)
    }

    /// As `run_after`; what has failed there has failed here, too.
    pub(crate) fn join(&self, earlier: &CpuStream) -> Result<()> {
        self.check_thread()?;
        self.queue.enqueue_after(&earlier.queue, Operation::Join)
    }

    pub(crate) fn host_fn(&self, function: HostFn) -> Result<()> {
        self.push(Operation::Call(function))
    }

    pub(crate) fn allocate(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        self.check_thread()?;
        if !self.device.reserve(bytes) {
            return Err(memory::out_of_memory(self.device, bytes));
        }
        memory::allocate(self.device, bytes, contents).inspect_err(|_| self.device.release(bytes))
    }

    /// Frees memory in the order of the stream, and only then enters that in `account`.
    ///
    /// # Safety
    /// As for `StreamInner::free`.
    pub(crate) unsafe fn free(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>) {
        if !self.queue.is_started() {
            // SAFETY: nothing was ever enqueued here, and all uses elsewhere come before.
            return unsafe { free(self.device, pointer, bytes, account) };
        }
        // If the worker thread is gone, the memory is given up.
        let (pointer, account) = (Address(pointer), account.clone());
        let _ = self.push(Operation::Free { pointer, bytes, account });
    }

    /// # Safety
    /// As for `StreamInner::copy_from_host`.
    pub(crate) unsafe fn copy_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        self.check_thread()?;
        self.drain()?;
        // SAFETY: the caller vouches for both; all work that `target` is ordered after has run, and the
        // caller holds the only borrow of it.
        unsafe { target.copy_from_nonoverlapping(source, bytes) };
        Ok(())
    }

    /// # Safety
    /// As for `StreamInner::copy_to_host`.
    pub(crate) unsafe fn copy_to_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        self.check_thread()?;
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
        self.push(Operation::Copy { target, source, bytes })
    }

    /// # Safety
    /// As for `StreamInner::copy_rows`.
    pub(crate) unsafe fn copy_rows(&self, target: *mut u8, source: *const u8, rows: Rows) -> Result<()> {
        let (target, source) = (Address(target), Address(source.cast_mut()));
        self.push(Operation::CopyRows { target, source, rows })
    }

    /// # Safety
    /// As for `StreamInner::fill`.
    pub(crate) unsafe fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        self.push(Operation::Fill { target: Address(target), pattern: pattern.into(), count })
    }

    /// # Safety
    /// As for `Stream::write_value`.
    pub(crate) unsafe fn write_value(&self, target: *mut u8, value: u64, is_wide: bool) -> Result<()> {
        self.push(Operation::WriteValue { target: Address(target), value, is_wide })
    }

    /// # Safety
    /// As for `Stream::wait_value`.
    pub(crate) unsafe fn wait_value(&self, source: *const u8, condition: ValueCondition) -> Result<()> {
        self.push(Operation::WaitValue { source: Address(source.cast_mut()), condition })
    }

    /// # Safety
    /// As for `StreamInner::launch`.
    pub(crate) unsafe fn launch(&self, launch: backend::Launch<'_>, flow: Flow) -> Result<()> {
        let backend::Launch { kernel, config, params, .. } = launch;
        check_resources(kernel, config, self.device)?;
        // SAFETY: the caller vouches for the parameters.
        let params = Arc::new(unsafe { CopiedParams::copy(params, kernel.descriptor().params) });
        self.push(Operation::Launch(Launch { kernel, shape: *config, params }, flow))
    }

    /// Enqueues a graph; its end.
    ///
    /// # Safety
    /// The memory of its nodes is ordered here for their uses.
    pub(super) unsafe fn replay(&self, steps: Arc<[Step]>, marks: Marks, flow: Flow) -> Result<CpuMark> {
        let end = CpuMark::new();
        self.push(Operation::Replay(steps, marks, flow, end.clone()))?;
        Ok(end)
    }

    /// Makes later work here start after `end`, whether that failed or not.
    pub(super) fn follow(&self, end: CpuMark) -> Result<()> {
        self.push(Operation::Wait(end))
    }

    fn push(&self, operation: Operation) -> Result<()> {
        self.check_thread()?;
        legacy::order(&self.queue, self.role)?;
        self.queue.push(operation)
    }
}

/// The stream is gone: the device waits for what is still in the queue, and keeps its failures.
impl Drop for Queue {
    fn drop(&mut self) {
        let entry = self.entry.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = entry.take() else { return };
        let end = CpuMark::new();
        if entry.sender.send(Operation::End(end.clone())).is_ok() {
            self.device.await_end(end);
        }
    }
}

impl Queue {
    /// Waits until all that was enqueued so far has run; how many failures there had been by then.
    pub(super) fn drain(&self) -> Result<u64> {
        if self.is_started() { Ok(self.record()?.wait()) } else { Ok(0) }
    }

    /// The unreported failures.
    pub(super) fn failures(&self) -> Vec<Arc<Fault>> {
        self.failure.pending()
    }

    pub(super) fn has_device_of(&self, other: &Queue) -> bool {
        std::ptr::eq(self.device, other.device)
    }

    /// Makes later work here start after all that `earlier` holds so far.
    pub(super) fn run_after(&self, earlier: &Queue) -> Result<()> {
        self.enqueue_after(earlier, Operation::Wait)
    }

    /// As `run_after`, by an operation that waits for a mark.
    fn enqueue_after(&self, earlier: &Queue, wait: impl FnOnce(CpuMark) -> Operation) -> Result<()> {
        if std::ptr::eq(self, earlier) || !earlier.is_started() {
            return Ok(());
        }
        self.push(wait(earlier.record()?))
    }

    fn record(&self) -> Result<CpuMark> {
        let mark = CpuMark::new();
        self.push(Operation::Reach(mark.clone()))?;
        Ok(mark)
    }

    fn is_started(&self) -> bool {
        self.entry().is_some()
    }

    fn push(&self, operation: Operation) -> Result<()> {
        let mut entry = self.entry();
        let entry = match &mut *entry {
            Some(entry) => entry,
            empty => empty.insert(Entry { sender: self.start()?, pushed: 0 }),
        };
        let sent = entry.sender.send(operation);
        sent.map_err(|_| Error::WorkerThread { reason: "it has ended".into() })?;
        entry.pushed += 1;
        Ok(())
    }

    fn start(&self) -> Result<Sender<Operation>> {
        let (sender, receiver) = channel();
        let (device, done, failure) = (self.device, self.done.clone(), self.failure.clone());
        let in_use = DeviceUse::begin(device);
        let work = move || {
            let _in_use = in_use;
            run(device, &receiver, &done, &failure);
        };
        let spawned = thread::Builder::new().name("ferrogrid-stream".into()).spawn(work);
        spawned.map_err(|error| Error::WorkerThread { reason: error.to_string().into() })?;
        Ok(sender)
    }

    fn entry(&self) -> MutexGuard<'_, Option<Entry>> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// # Safety
/// As for `memory::free`, with memory that is counted on `device` and in `account`.
unsafe fn free(device: &CpuDevice, pointer: *mut u8, bytes: usize, account: &Account) {
    // SAFETY: passed on.
    unsafe { memory::free(pointer, bytes) };
    device.release(bytes);
    account.give_back(bytes);
}

/// The next operation; `None` if there will be none.
fn next(operations: &Receiver<Operation>) -> Option<Operation> {
    let look = || match operations.try_recv() {
        Err(TryRecvError::Empty) => None,
        result => Some(result.ok()),
    };
    spin::until(look).unwrap_or_else(|| operations.recv().ok())
}

/// Runs operations until the stream is gone and its queue is empty.
fn run(device: &CpuDevice, operations: &Receiver<Operation>, done: &AtomicU64, failure: &Failure) {
    while let Some(operation) = next(operations) {
        match operation {
            Operation::Launch(launch, flow) => {
                // SAFETY: whoever enqueued it vouched for it; its memory is ordered by this queue and
                // the waits in it.
                let failed = unsafe { launch.run(device) }.err();
                flow.end(failed.map(|error| failure.note(error)), failure);
            }
            // SAFETY: as above; the two do not overlap.
            Operation::Copy { target, source, bytes } => unsafe {
                target.0.copy_from_nonoverlapping(source.0, bytes);
            },
            // SAFETY: as above.
            Operation::Fill { target, pattern, count } => unsafe { memory::fill(target.0, &pattern, count) },
            // SAFETY: as above; all uses come before.
            Operation::Free { pointer, bytes, account } => unsafe {
                free(device, pointer.0, bytes, &account);
            },
            // SAFETY: as above; the two do not overlap.
            Operation::CopyRows { target, source, rows } => unsafe {
                memory::copy_rows(target.0, source.0, rows);
            },
            Operation::Replay(steps, mut marks, flow, end) => {
                let of_graph = Failure::default();
                // SAFETY: as above, for the memory of all nodes.
                unsafe {
                    graph::run(device, &steps, &mut marks, Failures { own: &of_graph, stream: failure })
                };
                graph::let_go(steps, &of_graph);
                end.reach(&of_graph);
                let faults = of_graph.pending();
                faults.iter().for_each(|fault| failure.note_shared(fault));
                flow.end(faults.into_iter().next(), failure);
            }
            // SAFETY: as above.
            Operation::WriteValue { target, value, is_wide } => unsafe {
                memory::write_value(target.0, value, is_wide);
            },
            // SAFETY: as above.
            Operation::WaitValue { source, condition } => unsafe {
                memory::wait_value(source.0, condition);
            },
            Operation::Call(function) => {
                if let Some(error) = host_fn::run(function) {
                    failure.note(error);
                }
            }
            Operation::Reach(mark) => {
                // Counted first: whoever waits for the mark is to find the queue done.
                done.fetch_add(1, Ordering::Release);
                mark.reach(failure);
                continue;
            }
            Operation::End(mark) => {
                failure.pending().into_iter().for_each(|fault| device.adopt(fault));
                return mark.reach(failure);
            }
            Operation::Wait(mark) => {
                mark.wait();
            }
            Operation::Join(mark) => mark.faults().iter().for_each(|fault| failure.note_shared(fault)),
        }
        done.fetch_add(1, Ordering::Release);
    }
}
