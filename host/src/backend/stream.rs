//! A stream of a backend, or of a recording, and the work that it is given. What a recording cannot hold is refused here.

use std::ffi::c_void;
use std::sync::Arc;

use super::cuda::{EndedIntervals, RawPool};
use super::recording::RecordingStream;
use super::recording::refusal::{allocation, host_memory, not_recordable, other_stream, waiting};
use super::{
    AccessPolicyWindow, DeviceBackend, EventBackend, HostFn, Launch, LaunchEvent, MemorySyncDomain, Place,
    Prepared, Rows, cpu, cuda,
};
use crate::copy::value::ValueCondition;
use crate::device::account::Account;
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::kernel::Kernel;
use crate::memory::Contents;
use crate::order::writers::{Effect, Flow};
use crate::stream::own_thread::OwnThread;

/// What tells a stream from the others of its device: what its handle is, and to whom it means that.
pub(crate) type StreamIdentity = (usize, Option<OwnThread>);

/// A stream of either backend.
pub(crate) enum StreamBackend {
    Cuda(cuda::CudaStream),
    Cpu(cpu::CpuStream),
    /// Records a graph instead of running anything.
    Recording(RecordingStream),
}

impl From<RecordingStream> for StreamBackend {
    fn from(stream: RecordingStream) -> Self {
        StreamBackend::Recording(stream)
    }
}

/// What a stream is, and its order to others.
impl StreamBackend {
    /// The recording that it adds to, if it runs nothing.
    #[inline]
    pub(crate) fn recording(&self) -> Option<&RecordingStream> {
        match self {
            StreamBackend::Recording(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether the calling thread may enqueue: not on the default stream of another.
    pub(crate) fn is_usable_here(&self) -> bool {
        match self {
            StreamBackend::Cuda(stream) => stream.is_usable_here(),
            StreamBackend::Cpu(stream) => stream.is_usable_here(),
            StreamBackend::Recording(_) => true,
        }
    }

    /// Makes later work here start after all that `earlier` holds so far.
    pub(crate) fn run_after(&self, earlier: &StreamBackend) -> Result<()> {
        match (self, earlier) {
            (StreamBackend::Cuda(stream), StreamBackend::Cuda(earlier)) => stream.run_after(earlier),
            (StreamBackend::Cpu(stream), StreamBackend::Cpu(earlier)) => stream.run_after(earlier),
            (StreamBackend::Recording(stream), StreamBackend::Recording(earlier)) => {
                stream.run_after(&[earlier])
            }
            (StreamBackend::Recording(_), _) | (_, StreamBackend::Recording(_)) => Err(other_stream()),
            // Failures are left to those who wait for that stream.
            (_, StreamBackend::Cuda(earlier)) => earlier.drain(),
            (_, StreamBackend::Cpu(earlier)) => earlier.drain(),
        }
    }

    /// As `run_after`, where the user has asked for it: what has failed there has failed here, too.
    pub(crate) fn join(&self, earlier: &StreamBackend) -> Result<()> {
        match (self, earlier) {
            (StreamBackend::Cpu(stream), StreamBackend::Cpu(earlier)) => stream.join(earlier),
            (StreamBackend::Cuda(stream), StreamBackend::Cuda(earlier)) => stream.join(earlier),
            _ => self.run_after(earlier),
        }
    }

    /// To be called when the public handle is gone.
    pub(crate) fn close(&self) {
        if let StreamBackend::Cuda(stream) = self {
            stream.close();
        }
    }

    pub(crate) fn as_raw(&self) -> Option<*mut c_void> {
        match self {
            StreamBackend::Cuda(stream) => Some(stream.as_raw()),
            StreamBackend::Cpu(_) | StreamBackend::Recording(_) => None,
        }
    }

    /// The same for handles of one stream of a device; `None` if there is but this handle.
    pub(crate) fn identity(&self) -> Option<StreamIdentity> {
        match self {
            StreamBackend::Cuda(stream) => Some(stream.identity()),
            StreamBackend::Cpu(stream) => Some((stream.identity(), None)),
            StreamBackend::Recording(_) => None,
        }
    }

    pub(crate) fn is_nonblocking(&self) -> Result<bool> {
        match self {
            StreamBackend::Cuda(stream) => stream.is_nonblocking(),
            StreamBackend::Cpu(stream) => Ok(stream.is_nonblocking()),
            StreamBackend::Recording(_) => Ok(true),
        }
    }

    pub(crate) fn priority(&self) -> Result<i32> {
        match self {
            StreamBackend::Cuda(stream) => stream.priority(),
            StreamBackend::Cpu(_) | StreamBackend::Recording(_) => Ok(0),
        }
    }

    pub(crate) fn is_complete(&self) -> Result<bool> {
        match self {
            StreamBackend::Cuda(stream) => stream.is_complete(),
            StreamBackend::Cpu(stream) => Ok(stream.is_complete()),
            StreamBackend::Recording(_) => Err(waiting("a query")),
        }
    }

    /// Ends the interval of work that may have failed together, before a wait for a point in the stream; `None` where
    /// each launch is known by itself.
    pub(crate) fn end_interval(&self) -> Option<EndedIntervals> {
        match self {
            StreamBackend::Cuda(stream) => Some(stream.watch().end(false)),
            StreamBackend::Cpu(_) | StreamBackend::Recording(_) => None,
        }
    }

    pub(crate) fn host_fn(&self, function: HostFn) -> Result<()> {
        match self {
            StreamBackend::Cuda(stream) => stream.host_fn(function),
            StreamBackend::Cpu(stream) => stream.host_fn(function),
            StreamBackend::Recording(_) => Err(not_recordable(
                "a function that is called once",
                "a graph may be launched many times; use `Capture::launch_host_func`",
            )),
        }
    }

    /// Records `event`, which is of this device.
    pub(crate) fn record(&self, event: &EventBackend) -> Result<()> {
        match (self, event) {
            (StreamBackend::Cuda(stream), EventBackend::Cuda(event)) => stream.record(event),
            (StreamBackend::Cpu(stream), EventBackend::Cpu(event)) => stream.record(event),
            (StreamBackend::Recording(stream), EventBackend::Recorded(event)) => stream.record(event),
            (StreamBackend::Recording(_), _) | (_, EventBackend::Recorded(_)) => Err(not_recordable(
                "to record this event",
                "a recording has events of its own, made by `record` on its streams",
            )),
            _ => unreachable!("the event is of the stream's device"),
        }
    }

    /// Makes later work here start after `event`.
    pub(crate) fn wait(&self, event: &EventBackend) -> Result<()> {
        match (self, event) {
            (StreamBackend::Cuda(stream), EventBackend::Cuda(event)) => stream.wait(event),
            (StreamBackend::Cpu(stream), EventBackend::Cpu(event)) => stream.wait(event),
            (StreamBackend::Recording(stream), EventBackend::Recorded(event)) => stream.wait(event),
            (StreamBackend::Recording(_), _) | (_, EventBackend::Recorded(_)) => {
                Err(GraphError::EventNotRecorded.into())
            }
            (_, event) => event.synchronize(),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match self {
            StreamBackend::Cuda(stream) => stream.synchronize(),
            StreamBackend::Cpu(stream) => stream.synchronize(),
            StreamBackend::Recording(_) => Err(waiting("to synchronise")),
        }
    }

    /// Waits for all work enqueued so far, and reports no failures.
    pub(crate) fn drain(&self) -> Result<()> {
        match self {
            StreamBackend::Cuda(stream) => stream.drain(),
            StreamBackend::Cpu(stream) => stream.drain(),
            StreamBackend::Recording(_) => Err(waiting("to synchronise")),
        }
    }

    /// Waits for `event`, recorded here, and reports what had failed by then, as a synchronisation does. What fails
    /// later is left to those who wait for it. `ended` is what `end_interval` gave before.
    pub(crate) fn finish(&self, event: &EventBackend, ended: Option<&EndedIntervals>) -> Result<()> {
        match (self, event, ended) {
            (StreamBackend::Cpu(stream), EventBackend::Cpu(event), _) => stream.finish(event),
            (StreamBackend::Cuda(stream), EventBackend::Cuda(event), Some(ended)) => {
                stream.finish(event, ended)
            }
            (_, event, _) => event.synchronize(),
        }
    }

    pub(crate) fn set_access_policy_window(&self, window: Option<AccessPolicyWindow>) -> Result<()> {
        match self {
            StreamBackend::Cuda(stream) => stream.set_access_policy_window(window),
            StreamBackend::Cpu(_) => Ok(()),
            StreamBackend::Recording(_) => Err(not_recordable(
                "a stream's access policy window",
                "nodes have those of their launches: `Grid::with_access_policy_window`",
            )),
        }
    }

    pub(crate) fn set_memory_sync_domain(&self, domain: MemorySyncDomain) -> Result<()> {
        match self {
            StreamBackend::Cuda(stream) => stream.set_memory_sync_domain(domain),
            StreamBackend::Cpu(_) => Ok(()),
            StreamBackend::Recording(_) => Err(not_recordable(
                "a stream's memory-synchronisation domain",
                "nodes have those of their launches: `Grid::with_memory_sync_domain`",
            )),
        }
    }
}

/// Memory, its contents and copies.
impl StreamBackend {
    /// Whether zeroed memory is filled by work in the stream.
    pub(crate) fn enqueues_zeroing(&self) -> bool {
        matches!(self, StreamBackend::Cuda(_))
    }

    /// From `pool`, or from that of the device.
    pub(crate) fn allocate(
        &self,
        pool: Option<RawPool>,
        bytes: usize,
        contents: Contents,
    ) -> Result<*mut u8> {
        match self {
            StreamBackend::Cuda(stream) => stream.allocate(pool, bytes, contents),
            StreamBackend::Cpu(stream) => stream.allocate(bytes, contents),
            StreamBackend::Recording(_) => Err(allocation()),
        }
    }

    /// Frees in stream order, and takes the bytes from `account`.
    ///
    /// # Safety
    /// `pointer` is from `allocate` of `bytes` on this device, is freed once, and work enqueued here runs after all work
    /// that uses it.
    pub(crate) unsafe fn free(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>) {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe {
                // At once: the pool gives it to whoever allocates next here, without waiting.
                account.give_back(bytes);
                stream.free(pointer);
            },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.free(pointer, bytes, account) },
            // It has allocated nothing.
            StreamBackend::Recording(_) => {}
        }
    }

    pub(crate) fn allocate_managed(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        match self {
            StreamBackend::Cuda(stream) => stream.allocate_managed(bytes, contents),
            StreamBackend::Cpu(stream) => stream.allocate(bytes, contents),
            StreamBackend::Recording(_) => Err(allocation()),
        }
    }

    /// Frees managed memory, once all work enqueued here has run.
    ///
    /// # Safety
    /// As for `free`, with memory from `allocate_managed`.
    pub(crate) unsafe fn free_managed(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>) {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe {
                stream.free_waiting(pointer);
                account.give_back(bytes);
            },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.free(pointer, bytes, account) },
            // It has allocated nothing.
            StreamBackend::Recording(_) => {}
        }
    }

    /// Whether `copy_from_host` and `copy_to_host` only enqueue, so that the caller waits; else they return when it is done.
    #[inline]
    pub(crate) fn enqueues_host_copies(&self) -> bool {
        matches!(self, StreamBackend::Cuda(_))
    }

    /// As `copy_from_host`, into memory that nothing has used yet.
    ///
    /// # Safety
    /// As for `copy_from_host`; `target` was allocated here.
    pub(crate) unsafe fn initialise_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cpu(_) => unsafe { cpu::initialise_from_host(target, source, bytes) },
            // SAFETY: passed on; what was allocated here is ordered here.
            _ => unsafe { self.copy_from_host(target, source, bytes) },
        }
    }

    /// # Safety
    /// `source` is `bytes` of host memory, which stay until the copy has run; `target` as many of this device, ordered for
    /// writing here.
    pub(crate) unsafe fn copy_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.copy(target, source, bytes) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.copy_from_host(target, source, bytes) },
            StreamBackend::Recording(_) => Err(host_memory("an upload")),
        }
    }

    /// # Safety
    /// `target` is `bytes` of host memory, which stay until the copy has run; `source` as many of this device, ordered for
    /// reading here.
    pub(crate) unsafe fn copy_to_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.copy(target, source, bytes) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.copy_to_host(target, source, bytes) },
            StreamBackend::Recording(_) => Err(host_memory("a download")),
        }
    }

    /// Enqueues a copy.
    ///
    /// # Safety
    /// Both are `bytes`, at the places that are named, which do not overlap. Memory of this device is ordered here for its
    /// use, memory of the host used by nobody else until the copy has run; if both are of the host, both are page-locked.
    pub(crate) unsafe fn copy(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
        places: (Place, Place),
    ) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe {
                match places {
                    (Place::Host, Place::Host) => stream.copy_on_host(target, source, bytes),
                    _ => stream.copy(target, source, bytes),
                }
            },
            // SAFETY: passed on: this device's memory is that of the host.
            StreamBackend::Cpu(stream) => unsafe { stream.copy(target, source, bytes) },
            StreamBackend::Recording(stream) => stream.copy(target, source, bytes),
        }
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
        places: (Place, Place),
    ) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.copy_rows(target, source, rows, places) },
            // SAFETY: passed on: this device's memory is that of the host.
            StreamBackend::Cpu(stream) => unsafe { stream.copy_rows(target, source, rows) },
            StreamBackend::Recording(stream) => stream.copy_rows(target, source, rows, places),
        }
    }

    /// Copies between the memory of two GPUs.
    ///
    /// # Safety
    /// As for `copy`, with memory of the devices that are named; those and the stream's are GPUs.
    pub(crate) unsafe fn copy_peer(
        &self,
        (target, to): (*mut u8, DeviceBackend),
        (source, from): (*const u8, DeviceBackend),
        bytes: usize,
    ) -> Result<()> {
        match (self, to, from) {
            (StreamBackend::Cuda(stream), DeviceBackend::Cuda(to), DeviceBackend::Cuda(from)) => {
                // SAFETY: passed on.
                unsafe { stream.copy_peer((target, to), (source, from), bytes) }
            }
            _ => unreachable!("all three are GPUs"),
        }
    }

    /// Enqueues `count` repetitions of `pattern`.
    ///
    /// # Safety
    /// `target` has room for them on this device, aligned to the pattern's length if that is 2 or 4,
    /// and is ordered here for writing.
    pub(crate) unsafe fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.fill(target, pattern, count) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.fill(target, pattern, count) },
            StreamBackend::Recording(stream) => stream.fill(target, pattern, count),
        }
    }

    /// Whether `prefetch` moves anything.
    pub(crate) fn has_prefetches(&self) -> Result<bool> {
        match self {
            StreamBackend::Cuda(_) => Ok(true),
            StreamBackend::Cpu(_) => Ok(false),
            StreamBackend::Recording(_) => Err(not_recordable("a prefetch", "CUDA has no such node")),
        }
    }

    /// Moves managed memory to the host or the device.
    ///
    /// # Safety
    /// `start` is `bytes` of live managed memory, not 0.
    pub(crate) unsafe fn prefetch(&self, start: *const u8, bytes: usize, to_host: bool) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.prefetch(start, bytes, to_host) },
            StreamBackend::Cpu(_) | StreamBackend::Recording(_) => Ok(()),
        }
    }

    /// # Safety
    /// `target` is live memory for such a number, aligned to its size, which the device can write.
    pub(crate) unsafe fn write_value(&self, target: *mut u8, value: u64, is_wide: bool) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.write_value(target, value, is_wide) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.write_value(target, value, is_wide) },
            StreamBackend::Recording(_) => Err(no_value_node("to write a value")),
        }
    }

    /// # Safety
    /// `source` is live memory for such a number, aligned to its size, which the device can read.
    pub(crate) unsafe fn wait_value(&self, source: *const u8, condition: ValueCondition) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.wait_value(source, condition) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe { stream.wait_value(source, condition) },
            StreamBackend::Recording(_) => Err(no_value_node("to wait for a value")),
        }
    }
}

/// Kernels.
impl StreamBackend {
    /// Loads `kernel` for this device, if that has not been done.
    #[inline]
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Prepared> {
        match self {
            StreamBackend::Cuda(stream) => stream.prepare(kernel),
            StreamBackend::Cpu(_) => Ok(Prepared::default()),
            StreamBackend::Recording(stream) => stream.prepare(kernel),
        }
    }

    /// The stream, if a launch on it is no more than a call of the driver.
    #[inline]
    pub(crate) fn driver_stream(&self) -> Option<&cuda::CudaStream> {
        match self {
            StreamBackend::Cuda(stream) => Some(stream),
            _ => None,
        }
    }

    /// Enqueues a kernel, of this program or foreign.
    ///
    /// # Safety
    /// The parameters are the kernel's, and the memory they lead to is ordered here; the sizes are within the device's limits,
    /// and the kernel is loaded here.
    pub(crate) unsafe fn launch<'e>(
        &self,
        launch: Launch<'_>,
        effects: impl Iterator<Item = Effect<'e>> + Clone,
    ) -> Result<()> {
        match self {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.launch_watched(launch, effects) },
            // SAFETY: passed on.
            StreamBackend::Cpu(stream) => unsafe {
                stream.launch(launch, Flow::of(effects))?;
                let event = launch.config.attributes().completion_event.and_then(LaunchEvent::find);
                event.map_or(Ok(()), |event| self.record(&event))
            },
            // SAFETY: passed on.
            StreamBackend::Recording(stream) => unsafe { stream.launch(launch) },
        }
    }
}

#[cold]
fn no_value_node(operation: &'static str) -> crate::error::Error {
    not_recordable(operation, "launches of a graph are ordered by its buffers and by event nodes")
}
