//! A CPU device: its name, its threads, its streams, its limits; `properties` describes it as a virtual CUDA
//! device.

pub(crate) mod properties;

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::available_parallelism;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::execute::block::BlockExecutor;
use super::execute::executors;
use super::execute::overflow;
use super::execute::stack::{environment, stack_size};
use super::stream::event::CpuMark;
use super::stream::{CpuStream, Queue};
use crate::backend::Limits;
use crate::backend::device::BackendDevice;
use crate::backend::failure::Fault;
use crate::error::{Error, Result};
use crate::output::{self, Output, Sink};
use crate::own_thread::{OwnThread, ending_thread};
use crate::properties::cpu_options::CpuOptions;
use crate::sync::lock;

/// The environment variable that sets the number of threads that run blocks.
const VARIABLE: &str = "FERROGRID_CPU_THREADS";

/// The most failures of dropped streams that are kept until the device is synchronised.
const KEPT_FAULTS: usize = 64;

/// The most threads that can be asked to run blocks.
const MAX_THREADS: usize = 65_535;

/// The most bytes of shared memory that a block can have, unless the device was made with less: that of
/// an H100.
pub(crate) const SHARED_MEMORY_PER_BLOCK: usize = 227 * 1024;

/// A CPU device. The process's own has number 0.
pub(crate) struct CpuDevice {
    number: u64,
    name: String,
    /// How many threads run blocks.
    threads: Result<usize>,
    /// The size of the stack of a kernel thread that may wait, in bytes.
    stack_size: Result<usize>,
    shared_memory_per_block: usize,
    /// The bytes that it may allocate, and has allocated; `None` for as much as the machine has.
    memory: Option<u64>,
    allocated: AtomicU64,
    /// Whether kernels with a native body run that.
    runs_native_bodies: bool,
    threads_of_pool: Mutex<Pool>,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// The numbers of the devices whose memory kernels here may use.
    peers: Mutex<Vec<u64>>,
    /// The ends of streams that were dropped with work in their queues.
    ends: Mutex<Vec<CpuMark>>,
    /// Unreported failures of streams that were dropped.
    orphaned: Mutex<VecDeque<Arc<Fault>>>,
    output: Output,
}

/// The threads of a device that run blocks.
#[derive(Default)]
struct Pool {
    /// How many streams and worker threads of streams there are.
    uses: usize,
    /// Started by the first kernel that is worth sharing out; `None` inside if there are to be none.
    started: Option<Option<Arc<ThreadPool>>>,
}

/// A stream of a device, or the thread that runs one. While there is any, the device keeps the threads that run blocks. A
/// virtual device ends them with the last: it lives as long as the process, and may never be used again.
pub(super) struct DeviceUse(&'static CpuDevice);

impl DeviceUse {
    pub(super) fn begin(device: &'static CpuDevice) -> Self {
        lock(&device.threads_of_pool).uses += 1;
        DeviceUse(device)
    }
}

impl Drop for DeviceUse {
    fn drop(&mut self) {
        let mut pool = lock(&self.0.threads_of_pool);
        pool.uses -= 1;
        let is_idle = pool.uses == 0 && self.0.number != 0;
        let ended = if is_idle { pool.started.take() } else { None };
        // Without the lock: to end them takes a moment.
        drop(pool);
        drop(ended);
    }
}

impl CpuDevice {
    pub(crate) fn get() -> &'static CpuDevice {
        static DEVICE: OnceLock<CpuDevice> = OnceLock::new();
        DEVICE.get_or_init(|| Self::new(0, thread_count(), SHARED_MEMORY_PER_BLOCK, &CpuOptions::new()))
    }

    /// A further device. Devices live as long as the process.
    pub(crate) fn limited(options: &CpuOptions) -> Result<&'static CpuDevice> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let threads = match options.workers {
            None => thread_count()?,
            Some(threads @ 1..=MAX_THREADS) => threads,
            Some(value) => return Err(option("workers", value, "1 to 65535 threads")),
        };
        let shared_memory = options.shared_memory_per_block.unwrap_or(SHARED_MEMORY_PER_BLOCK);
        if shared_memory > SHARED_MEMORY_PER_BLOCK {
            return Err(option("shared_memory_per_block", shared_memory, "at most 232448 bytes"));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Box::leak(Box::new(Self::new(number, Ok(threads), shared_memory, options))))
    }

    fn new(
        number: u64,
        threads: Result<usize>,
        shared_memory_per_block: usize,
        options: &CpuOptions,
    ) -> Self {
        // Memory must not be left in the middle if the kernel's stack is used up here.
        ferrogrid_device::output::connect(|text| overflow::holding(|| output::print(text)));
        CpuDevice {
            number,
            name: processor_name().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            threads,
            stack_size: stack_size(),
            shared_memory_per_block,
            memory: options.memory,
            allocated: AtomicU64::new(0),
            runs_native_bodies: !options.without_native_bodies,
            threads_of_pool: Mutex::default(),
            queues: Mutex::new(Vec::new()),
            peers: Mutex::new(Vec::new()),
            ends: Mutex::new(Vec::new()),
            orphaned: Mutex::new(VecDeque::new()),
            output: Output::new(),
        }
    }

    /// Where the text goes that its kernels print.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// How many threads run blocks.
    pub(super) fn threads(&self) -> Result<usize> {
        self.threads.clone()
    }

    pub(crate) fn new_stream(&'static self) -> Result<CpuStream> {
        self.threads.clone()?;
        self.stack_size.clone()?;
        let stream = CpuStream::new(self);
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(stream.queue()));
        Ok(stream)
    }

    /// The default stream of the calling thread.
    pub(crate) fn per_thread_stream(&'static self) -> Result<CpuStream> {
        let thread = OwnThread::current().ok_or_else(|| ending_thread(self))?;
        Ok(self.new_stream()?.of_thread(thread))
    }

    /// Lets `synchronize` wait for `end`, of a stream that is gone.
    pub(super) fn await_end(&self, end: CpuMark) {
        let mut ends = lock(&self.ends);
        ends.retain(|end| !end.is_reached());
        ends.push(end);
    }

    /// Lets kernels here use the memory of `peer`.
    pub(crate) fn enable_peer_access(&self, peer: &CpuDevice) {
        lock(&self.peers).push(peer.number);
    }

    pub(crate) fn has_peer(&self, peer: &CpuDevice) -> bool {
        lock(&self.peers).contains(&peer.number)
    }

    /// Keeps the failure of a stream that is gone.
    pub(super) fn adopt(&self, fault: Arc<Fault>) {
        let mut orphaned = lock(&self.orphaned);
        if orphaned.len() < KEPT_FAULTS {
            orphaned.push_back(fault);
        }
    }

    /// The threads that run blocks; `None` if there is only one, or none can be started.
    pub(super) fn pool(&self) -> Option<Arc<ThreadPool>> {
        if self.workers() == 1 { None } else { self.started_pool() }
    }

    /// The threads that run native bodies, one or more; `None` if kernels are to run as kernels, or no threads can be started.
    pub(super) fn native_pool(&self) -> Option<Arc<ThreadPool>> {
        if self.runs_native_bodies { self.started_pool() } else { None }
    }

    fn started_pool(&self) -> Option<Arc<ThreadPool>> {
        let threads = self.workers();
        let start = || {
            let name = |index| format!("ferrogrid-cpu-{index}");
            let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(name);
            builder.build().ok().map(Arc::new)
        };
        lock(&self.threads_of_pool).started.get_or_insert_with(start).clone()
    }

    /// How many threads run blocks.
    pub(super) fn workers(&self) -> usize {
        *self.threads.as_ref().unwrap_or(&1)
    }

    /// The most bytes of shared memory that a block can have.
    pub(crate) fn shared_memory_per_block(&self) -> usize {
        self.shared_memory_per_block
    }

    /// An executor for blocks of any size; give it back with [`CpuDevice::keep`].
    pub(super) fn executor(&self) -> BlockExecutor {
        let new = || self.new_executor(Limits::CUDA.max_threads_per_block);
        executors::idle().take().unwrap_or_else(new)
    }

    /// Keeps an executor that is idle again.
    pub(super) fn keep(&self, executor: BlockExecutor) {
        if !executor.is_spoiled() {
            executors::idle().keep(executor);
        }
    }

    /// An executor for blocks of `threads` threads; give it back with [`CpuDevice::keep_resident`].
    pub(super) fn resident_executor(&self, threads: u32) -> BlockExecutor {
        executors::idle().take_resident(threads).unwrap_or_else(|| self.new_executor(threads))
    }

    /// Keeps an executor that is idle again.
    pub(super) fn keep_resident(&self, executor: BlockExecutor) {
        if !executor.is_spoiled() {
            executors::idle().keep_resident(executor);
        }
    }

    fn new_executor(&self, threads: u32) -> BlockExecutor {
        overflow::install();
        BlockExecutor::new(threads, self.stack_size())
    }

    /// The size of the stack of a kernel thread that may wait, in bytes.
    pub(super) fn stack_size(&self) -> usize {
        // A bad size is an error when a stream is made, so no kernel runs on stacks of another.
        self.stack_size.clone().unwrap_or(0)
    }

    /// Counts `bytes` as allocated, if the device has a limit; `false` if that would be over it.
    #[must_use]
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let Some(limit) = self.memory else { return true };
        let more = |allocated: u64| allocated.checked_add(bytes as u64).filter(|&sum| sum <= limit);
        self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// The bytes that it may allocate, if there is a limit, and has allocated.
    pub(super) fn memory(&self) -> Option<(u64, u64)> {
        self.memory.map(|total| (total, self.allocated.load(Ordering::Relaxed)))
    }

    /// Counts `bytes` as free again.
    pub(super) fn release(&self, bytes: usize) {
        if self.memory.is_some() {
            self.allocated.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }
}

impl BackendDevice for CpuDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn synchronize(&self) -> Result<()> {
        let queues: Vec<Arc<Queue>> = lock(&self.queues).iter().filter_map(Weak::upgrade).collect();
        for queue in &queues {
            queue.drain()?;
        }
        let ends = lock(&self.ends).clone();
        for end in ends {
            end.wait();
        }
        self.output.deliver_kept();
        let told =
            std::iter::from_fn(|| lock(&self.orphaned).pop_front()).find_map(|fault| fault.tell_device());
        let live = || queues.iter().flat_map(|queue| queue.failures()).find_map(|fault| fault.tell_device());
        told.or_else(live).map_or(Ok(()), Err)
    }

    fn set_output_sink(&self, sink: Option<Sink>) {
        self.output.set(sink);
    }

    fn deliver_output(&self) {
        self.output.deliver_kept();
    }

    fn set_output_capacity(&self, bytes: usize) -> Result<()> {
        self.output.set_capacity(bytes);
        Ok(())
    }
}

impl fmt::Display for CpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => write!(f, "the CPU device ({})", self.name),
            number => write!(f, "virtual CPU device {number} ({})", self.name),
        }
    }
}

fn option(option: &'static str, value: usize, expected: &'static str) -> Error {
    Error::CpuOption { option, value, expected }
}

fn thread_count() -> Result<usize> {
    let threads = environment(VARIABLE, 1..=MAX_THREADS, "a number of threads from 1 to 65535")?;
    Ok(threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)))
}

fn processor_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().to_owned())
}
