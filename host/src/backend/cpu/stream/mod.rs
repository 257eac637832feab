//! Streams of the CPU device: a queue of work, and a thread that runs it in order, started when there is something to
//! run. `event` marks points in a queue, `external` takes work of other crates; `legacy` is CUDA's legacy default stream.

pub(crate) mod event;
mod external;
pub(crate) mod legacy;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::device::{CpuDevice, DeviceUse};
use super::execute::check_resources;
use super::execute::spin;
use super::graph::{self, Marks, Step};
use super::memory;
use super::operation::{self, Failures};
use crate::backend::cuda::RawPool;
use crate::backend::device::BackendDevice;
use crate::backend::external::{self as external_work, ExternalFn};
use crate::backend::failure::{Failure, Fault};
use crate::backend::host_fn::{self, HostFn};
use crate::backend::operation::{Address, Fill, MemoryCopy, Operation, OwnedLaunch, ValueCondition};
use crate::backend::stream::{BackendStream, StreamMemory};
use crate::backend::writers::Flow;
use crate::backend::{Account, Contents, Launch, StreamIdentity};
use crate::error::{Error, Result};
use crate::own_thread::OwnThread;
use crate::sync::lock;
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
    sender: Sender<Item>,
    /// How many have entered.
    pushed: u64,
}

/// What is in a queue. Its pointers are valid until it has run: memory is freed by an item, too.
enum Item {
    /// An operation, and for a launch what it rests on and what rests on it.
    Run(Operation, Option<Flow>),
    /// A graph, and its end.
    Replay(Arc<[Step]>, Marks, Flow, CpuMark),
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
    /// Work of another crate.
    External(ExternalFn, Flow),
    Reach(CpuMark),
    /// The last one.
    End(CpuMark),
    Wait(CpuMark),
    /// Waits, and takes over what has failed there.
    Join(CpuMark),
}

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

    /// Waits for `event`, recorded here; returns failures of the work before it.
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

    pub(crate) fn record(&self, event: &CpuEvent) -> Result<()> {
        legacy::order(&self.queue, self.role)?;
        event.set(self.queue.record()?);
        Ok(())
    }

    pub(crate) fn wait(&self, event: &CpuEvent) -> Result<()> {
        self.check_thread()?;
        event.mark().map_or(Ok(()), |mark| self.push(Item::Join(mark)))
    }

    pub(crate) fn run_after(&self, earlier: &CpuStream) -> Result<()> {
        self.check_thread()?;
        self.queue.run_after(&earlier.queue)
    }

    /// As `run_after`; what has failed there has failed here, too.
    pub(crate) fn join(&self, earlier: &CpuStream) -> Result<()> {
        self.check_thread()?;
        self.queue.enqueue_after(&earlier.queue, Item::Join)
    }

    /// # Safety
    /// As for `StreamBackend::launch`.
    pub(crate) unsafe fn launch(&self, launch: Launch<'_>, flow: Flow) -> Result<()> {
        check_resources(launch.kernel, launch.config, self.device)?;
        // SAFETY: passed on.
        let launch = unsafe { OwnedLaunch::copy(launch) };
        self.push(Item::Run(Operation::Kernel(launch), Some(flow)))
    }

    /// Enqueues a graph; its end.
    ///
    /// # Safety
    /// The memory of its nodes is ordered here for their uses.
    pub(super) unsafe fn replay(&self, steps: Arc<[Step]>, marks: Marks, flow: Flow) -> Result<CpuMark> {
        let end = CpuMark::new();
        self.push(Item::Replay(steps, marks, flow, end.clone()))?;
        Ok(end)
    }

    /// Makes later work here start after `end`, whether that failed or not.
    pub(super) fn follow(&self, end: CpuMark) -> Result<()> {
        self.push(Item::Wait(end))
    }

    fn push(&self, item: Item) -> Result<()> {
        self.check_thread()?;
        legacy::order(&self.queue, self.role)?;
        self.queue.push(item)
    }
}

impl BackendStream for CpuStream {
    fn is_usable_here(&self) -> bool {
        self.thread.is_none_or(OwnThread::is_current)
    }

    fn identity(&self) -> Option<StreamIdentity> {
        Some((if self.role == Role::Legacy { 0 } else { Arc::as_ptr(&self.queue).addr() }, None))
    }

    fn is_nonblocking(&self) -> Result<bool> {
        Ok(self.role == Role::Independent)
    }

    fn is_complete(&self) -> Result<bool> {
        let entry = lock(&self.queue.entry);
        Ok(entry.as_ref().is_none_or(|entry| entry.pushed == self.queue.done.load(Ordering::Acquire)))
    }

    fn host_fn(&self, function: HostFn) -> Result<()> {
        self.push(Item::Call(function))
    }

    fn synchronize(&self) -> Result<()> {
        let failed = self.drain_to_failures()?;
        // First, as a sink may panic.
        self.device.output().deliver_kept();
        self.report(failed)
    }

    fn drain(&self) -> Result<()> {
        self.drain_to_failures().map(drop)
    }
}

impl StreamMemory for CpuStream {
    fn allocate(&self, _: Option<RawPool>, bytes: usize, contents: Contents) -> Result<*mut u8> {
        self.check_thread()?;
        if !self.device.reserve(bytes) {
            return Err(self.device.out_of_memory(bytes));
        }
        memory::allocate(self.device, bytes, contents).inspect_err(|_| self.device.release(bytes))
    }

    /// Enters the bytes in `account` only when they are free.
    unsafe fn free(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>) {
        if !self.queue.is_started() {
            // SAFETY: nothing was ever enqueued here, and all uses on other streams come before.
            return unsafe { free(self.device, pointer, bytes, account) };
        }
        // If the worker thread is gone, the memory is given up.
        let (pointer, account) = (Address(pointer), account.clone());
        let _ = self.push(Item::Free { pointer, bytes, account });
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<()> {
        self.push(Item::Run(Operation::Copy(copy), None))
    }

    unsafe fn copy_from_host(&self, copy: MemoryCopy) -> Result<()> {
        self.check_thread()?;
        self.drain()?;
        // SAFETY: the caller vouches for both; all work that the target is ordered after has run, and the
        // caller holds the only borrow of it.
        unsafe { memory::copy(&copy) };
        Ok(())
    }

    unsafe fn initialise_from_host(&self, copy: MemoryCopy) -> Result<()> {
        // SAFETY: the caller vouches for both; no work uses the target, and fresh memory does not overlap a slice of the
        // host.
        unsafe { memory::copy(&copy) };
        Ok(())
    }

    unsafe fn copy_to_host(&self, copy: MemoryCopy) -> Result<()> {
        self.check_thread()?;
        self.synchronize()?;
        // SAFETY: the caller vouches for both; all writes that the source is ordered after have run, and
        // the caller's borrow keeps others from being enqueued.
        unsafe { memory::copy(&copy) };
        Ok(())
    }

    unsafe fn fill(&self, fill: Fill<'_>) -> Result<()> {
        self.push(Item::Run(Operation::Fill(fill.into_owned()), None))
    }

    unsafe fn write_value(&self, target: *mut u8, value: u64, is_wide: bool) -> Result<()> {
        self.push(Item::WriteValue { target: Address(target), value, is_wide })
    }

    unsafe fn wait_value(&self, source: *const u8, condition: ValueCondition) -> Result<()> {
        self.push(Item::WaitValue { source: Address(source.cast_mut()), condition })
    }
}

/// The stream is gone: the device waits for what is still in the queue, and keeps its failures.
impl Drop for Queue {
    fn drop(&mut self) {
        let entry = self.entry.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = entry.take() else { return };
        let end = CpuMark::new();
        if entry.sender.send(Item::End(end.clone())).is_ok() {
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
        self.enqueue_after(earlier, Item::Wait)
    }

    /// As `run_after`, by an operation that waits for a mark.
    fn enqueue_after(&self, earlier: &Queue, wait: impl FnOnce(CpuMark) -> Item) -> Result<()> {
        if std::ptr::eq(self, earlier) || !earlier.is_started() {
            return Ok(());
        }
        self.push(wait(earlier.record()?))
    }

    fn record(&self) -> Result<CpuMark> {
        let mark = CpuMark::new();
        self.push(Item::Reach(mark.clone()))?;
        Ok(mark)
    }

    fn is_started(&self) -> bool {
        lock(&self.entry).is_some()
    }

    fn push(&self, item: Item) -> Result<()> {
        let mut entry = lock(&self.entry);
        let entry = match &mut *entry {
            Some(entry) => entry,
            empty => empty.insert(Entry { sender: self.start()?, pushed: 0 }),
        };
        let sent = entry.sender.send(item);
        sent.map_err(|_| Error::WorkerThread { reason: "it has ended".into() })?;
        entry.pushed += 1;
        Ok(())
    }

    fn start(&self) -> Result<Sender<Item>> {
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
fn next(items: &Receiver<Item>) -> Option<Item> {
    let look = || match items.try_recv() {
        Err(TryRecvError::Empty) => None,
        result => Some(result.ok()),
    };
    spin::until(look).unwrap_or_else(|| items.recv().ok())
}

/// Runs operations until the stream is gone and its queue is empty.
fn run(device: &CpuDevice, items: &Receiver<Item>, done: &AtomicU64, failure: &Failure) {
    while let Some(item) = next(items) {
        match item {
            Item::Run(operation, flow) => {
                let own = Failure::default();
                let failures = Failures { own: &own, stream: failure };
                // SAFETY: the enqueueing call vouched for it; its memory is ordered by this queue and
                // the waits in it.
                unsafe { operation::run(device, &operation, &mut Marks::default(), failures) };
                end(&own, flow, failure);
            }
            Item::Replay(steps, mut marks, flow, mark) => {
                let own = Failure::default();
                // SAFETY: as above, for the memory of all nodes.
                unsafe { graph::run(device, &steps, &mut marks, Failures { own: &own, stream: failure }) };
                graph::let_go(steps, &own);
                mark.reach(&own);
                end(&own, Some(flow), failure);
            }
            // SAFETY: as above; all uses come before.
            Item::Free { pointer, bytes, account } => unsafe {
                free(device, pointer.0, bytes, &account);
            },
            // SAFETY: as above.
            Item::WriteValue { target, value, is_wide } => unsafe {
                memory::write_value(target.0, value, is_wide);
            },
            // SAFETY: as above.
            Item::WaitValue { source, condition } => unsafe {
                memory::wait_value(source.0, condition);
            },
            Item::Call(function) => {
                if let Some(error) = host_fn::run(function) {
                    failure.note(error);
                }
            }
            Item::External(work, flow) => {
                let own = Failure::default();
                if let Some(error) = external_work::run(work) {
                    own.note(error);
                }
                end(&own, Some(flow), failure);
            }
            Item::Reach(mark) => {
                // Counted first: threads that wait for the mark must find the queue done.
                done.fetch_add(1, Ordering::Release);
                mark.reach(failure);
                continue;
            }
            Item::End(mark) => {
                failure.pending().into_iter().for_each(|fault| device.adopt(fault));
                return mark.reach(failure);
            }
            Item::Wait(mark) => {
                mark.wait();
            }
            Item::Join(mark) => mark.faults().iter().for_each(|fault| failure.note_shared(fault)),
        }
        done.fetch_add(1, Ordering::Release);
    }
}

/// Hands what work has failed with to its stream, and to what rests on it.
fn end(own: &Failure, flow: Option<Flow>, stream: &Failure) {
    let faults = own.pending();
    faults.iter().for_each(|fault| stream.note_shared(fault));
    if let Some(flow) = flow {
        flow.end(faults.into_iter().next(), stream);
    }
}
