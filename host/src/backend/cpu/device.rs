//! The CPU device: its name, its threads, its streams. It must not know how kernels run.

use std::fmt;
use std::fs;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::available_parallelism;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::stream::{CpuStream, Queue};
use crate::device::MemoryInfo;
use crate::error::{Error, Result};

/// The environment variable that sets the number of threads that run blocks.
const VARIABLE: &str = "FERROGRID_CPU_THREADS";

/// The process's CPU device.
pub(crate) struct CpuDevice {
    name: String,
    /// How many threads run blocks.
    threads: Result<usize>,
    /// Started by the first kernel that is worth sharing out; `None` if it runs without.
    pool: OnceLock<Option<ThreadPool>>,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// The first failure on a stream that was dropped before anyone asked.
    orphaned: Mutex<Option<Error>>,
}

impl CpuDevice {
    pub(crate) fn get() -> &'static CpuDevice {
        static DEVICE: OnceLock<CpuDevice> = OnceLock::new();
        DEVICE.get_or_init(|| CpuDevice {
            name: processor_name().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            threads: thread_count(),
            pool: OnceLock::new(),
            queues: Mutex::new(Vec::new()),
            orphaned: Mutex::new(None),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many threads run blocks.
    pub(super) fn threads(&self) -> Result<usize> {
        self.threads.clone()
    }

    pub(crate) fn new_stream(&'static self) -> Result<CpuStream> {
        self.threads.clone()?;
        let stream = CpuStream::new(self);
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(stream.queue()));
        Ok(stream)
    }

    /// Waits for all streams; tells the first failure among them, which stays with its stream.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let queues: Vec<Arc<Queue>> = {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            queues.iter().filter_map(Weak::upgrade).collect()
        };
        for queue in &queues {
            queue.drain()?;
        }
        let orphaned = self.orphaned.lock().unwrap_or_else(PoisonError::into_inner).take();
        let failure = orphaned.or_else(|| queues.iter().find_map(|queue| queue.failure()));
        failure.map_or(Ok(()), Err)
    }

    /// Keeps the failure of a stream that is gone.
    pub(super) fn adopt(&self, failure: Error) {
        self.orphaned.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }

    /// The threads that run blocks; `None` if there is only one, or none can be started.
    pub(super) fn pool(&self) -> Option<&ThreadPool> {
        let start = || {
            let threads = *self.threads.as_ref().unwrap_or(&1);
            let name = |index| format!("ferrogrid-cpu-{index}");
            let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(name);
            if threads == 1 { None } else { builder.build().ok() }
        };
        self.pool.get_or_init(start).as_ref()
    }

    pub(crate) fn memory_info(&self) -> Option<MemoryInfo> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let bytes = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key))?;
            let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kibibytes * 1024)
        };
        Some(MemoryInfo { free: bytes("MemAvailable:")?, total: bytes("MemTotal:")? })
    }
}

impl fmt::Display for CpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the CPU device ({})", self.name)
    }
}

fn thread_count() -> Result<usize> {
    let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(available_parallelism().map_or(1, usize::from));
    };
    let value = value.to_string_lossy();
    match value.parse() {
        Ok(threads @ 1..=65_535) => Ok(threads),
        _ => Err(Error::Environment {
            variable: VARIABLE,
            value: value.into(),
            expected: "a number of threads from 1 to 65535",
        }),
    }
}

fn processor_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().to_owned())
}
