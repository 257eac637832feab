//! A stream of a backend, or of a recording. [`BackendStream`] has the operations of each; those with two
//! objects, and launches, which must stay fast, are dispatched here.

use std::ffi::c_void;
use std::sync::Arc;

use super::cuda::{EndedIntervals, RawPool};
use super::operation::{Fill, MemoryCopy, ValueCondition};
use super::recording::RecordingStream;
use super::recording::refusal::{not_recordable, other_stream};
use super::{
    AccessPolicyWindow, DeviceBackend, EventBackend, HostFn, Launch, LaunchEvent, MemorySyncDomain, Prepared,
    cpu, cuda,
};
use crate::backend::external::ExternalStream;
use crate::backend::writers::{Effect, Flow};
use crate::backend::{Account, Contents};
use crate::error::Result;
use crate::error::graph::GraphError;
use crate::kernel::Kernel;
use crate::own_thread::OwnThread;

/// The identity of a stream on its device: its handle, and the threads for which the handle is valid.
pub(crate) type StreamIdentity = (usize, Option<OwnThread>);

/// A stream of either backend.
pub(crate) enum StreamBackend {
    Cuda(cuda::CudaStream),
    Cpu(cpu::CpuStream),
    /// Records a graph instead of running anything.
    Recording(RecordingStream),
}

/// Queries of a stream, and waits for it.
pub(crate) trait BackendStream: StreamMemory + ExternalStream {
    /// Whether the calling thread may enqueue: not on the default stream of another.
    fn is_usable_here(&self) -> bool {
        true
    }

    /// To be called when the public handle is gone.
    fn close(&self) {}

    /// The driver's handle.
    fn as_raw(&self) -> Option<*mut c_void> {
        None
    }

    /// The same for handles of one stream of a device; `None` if there is but this handle.
    fn identity(&self) -> Option<StreamIdentity> {
        None
    }

    /// Whether it is not ordered with the legacy default stream.
    fn is_nonblocking(&self) -> Result<bool>;

    /// Whether kernels leave the memory of a `BlockOrder` ready for the next launch. If not, it is zeroed for each.
    fn renews_orders(&self) -> bool {
        false
    }

    fn priority(&self) -> Result<i32> {
        Ok(0)
    }

    /// Whether all that was enqueued so far has run.
    fn is_complete(&self) -> Result<bool>;

    /// Ends the interval of work that may have failed together, before a wait for a point in the stream; `None` where
    /// each launch is known by itself.
    fn end_interval(&self) -> Option<EndedIntervals> {
        None
    }

    fn host_fn(&self, function: HostFn) -> Result<()>;

    /// Waits until all that was enqueued so far has run; returns its failures.
    fn synchronize(&self) -> Result<()>;

    /// Waits until all that was enqueued so far has run, and reports no failures.
    fn drain(&self) -> Result<()>;

    fn set_access_policy_window(&self, _window: Option<AccessPolicyWindow>) -> Result<()> {
        Ok(())
    }

    fn set_memory_sync_domain(&self, _domain: MemorySyncDomain) -> Result<()> {
        Ok(())
    }
}

/// Memory operations of a stream: allocation, contents and copies.
pub(crate) trait StreamMemory {
    /// From `pool`, or from that of the device.
    fn allocate(&self, pool: Option<RawPool>, bytes: usize, contents: Contents) -> Result<*mut u8>;

    /// Frees in stream order, and takes the bytes from `account`.
    ///
    /// # Safety
    /// `pointer` is from `allocate` of `bytes` on this device, is freed once, and work enqueued here runs after all work
    /// that uses it.
    unsafe fn free(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>);

    fn allocate_managed(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        self.allocate(None, bytes, contents)
    }

    /// Frees managed memory, once all work enqueued here has run.
    ///
    /// # Safety
    /// As for `free`, with memory from `allocate_managed`.
    unsafe fn free_managed(&self, pointer: *mut u8, bytes: usize, account: &Arc<Account>) {
        // SAFETY: passed on.
        unsafe { self.free(pointer, bytes, account) }
    }

    /// Enqueues a copy.
    ///
    /// # Safety
    /// Both sides have these rows, at the places that are named, and do not overlap. Memory of this device is ordered here
    /// for its use, memory of the host not used otherwise until the copy has run; if both are of the host, both are
    /// page-locked.
    unsafe fn copy(&self, copy: MemoryCopy) -> Result<()>;

    /// Copies from any memory of the host: enqueues that where `enqueues_host_copies`, and has done it otherwise.
    ///
    /// # Safety
    /// As for `copy`.
    unsafe fn copy_from_host(&self, copy: MemoryCopy) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.copy(copy) }
    }

    /// As `copy_from_host`, into memory that was allocated here, and that nothing has used yet.
    ///
    /// # Safety
    /// As for `copy`.
    unsafe fn initialise_from_host(&self, copy: MemoryCopy) -> Result<()> {
        // SAFETY: passed on; what was allocated here is ordered here.
        unsafe { self.copy_from_host(copy) }
    }

    /// As `copy_from_host`, to any memory of the host.
    ///
    /// # Safety
    /// As for `copy`.
    unsafe fn copy_to_host(&self, copy: MemoryCopy) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.copy(copy) }
    }

    /// Enqueues a fill with values side by side.
    ///
    /// # Safety
    /// The target has room for it on this device, aligned to the value's length if that is 2 or 4, and is ordered here for
    /// writing.
    unsafe fn fill(&self, fill: Fill<'_>) -> Result<()>;

    /// Whether `prefetch` moves anything.
    fn has_prefetches(&self) -> Result<bool> {
        Ok(false)
    }

    /// Moves managed memory to the host or the device.
    ///
    /// # Safety
    /// `start` is `bytes` of live managed memory, not 0.
    unsafe fn prefetch(&self, _start: *const u8, _bytes: usize, _to_host: bool) -> Result<()> {
        Ok(())
    }

    /// # Safety
    /// `target` is live memory for such a number, aligned to its size, which the device can write.
    unsafe fn write_value(&self, target: *mut u8, value: u64, is_wide: bool) -> Result<()>;

    /// # Safety
    /// `source` is live memory for such a number, aligned to its size, which the device can read.
    unsafe fn wait_value(&self, source: *const u8, condition: ValueCondition) -> Result<()>;
}

deref_to_trait!(StreamBackend: BackendStream { Cuda, Cpu, Recording });

impl From<RecordingStream> for StreamBackend {
    fn from(stream: RecordingStream) -> Self {
        StreamBackend::Recording(stream)
    }
}

impl StreamBackend {
    /// The recording that it adds to, if it runs nothing.
    #[inline]
    pub(crate) fn recording(&self) -> Option<&RecordingStream> {
        match self {
            StreamBackend::Recording(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether copies from and to any memory of the host, and zeroing, are work in the stream, so that the caller waits;
    /// otherwise they are done when the call returns.
    #[inline]
    pub(crate) fn enqueues_host_copies(&self) -> bool {
        matches!(self, StreamBackend::Cuda(_))
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

    /// As `run_after`, at the user's request: failures there are failures here, too.
    pub(crate) fn join(&self, earlier: &StreamBackend) -> Result<()> {
        match (self, earlier) {
            (StreamBackend::Cpu(stream), StreamBackend::Cpu(earlier)) => stream.join(earlier),
            (StreamBackend::Cuda(stream), StreamBackend::Cuda(earlier)) => stream.join(earlier),
            _ => self.run_after(earlier),
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

    /// Waits for `event`, recorded here, and reports what had failed by then, as a synchronisation does. Later
    /// failures are left to later waits. `ended` is what `end_interval` gave before.
    pub(crate) fn finish(&self, event: &EventBackend, ended: Option<&EndedIntervals>) -> Result<()> {
        match (self, event, ended) {
            (StreamBackend::Cpu(stream), EventBackend::Cpu(event), _) => stream.finish(event),
            (StreamBackend::Cuda(stream), EventBackend::Cuda(event), Some(ended)) => {
                stream.finish(event, ended)
            }
            (_, event, _) => event.synchronize(),
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

    /// Loads `kernel` for this device, if that has not been done.
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Prepared> {
        match self {
            StreamBackend::Cuda(stream) => stream.prepare(kernel),
            StreamBackend::Cpu(_) => Ok(Prepared::default()),
            StreamBackend::Recording(stream) => stream.prepare(kernel),
        }
    }

    /// The stream and what it has loaded for `kernel`, if a launch is no more than a call of the driver.
    #[inline]
    pub(crate) fn driver_launch(&self, kernel: &'static Kernel) -> Option<(&cuda::CudaStream, Prepared)> {
        match self {
            StreamBackend::Cuda(stream) => Some((stream, stream.loaded(kernel)?)),
            _ => None,
        }
    }

    /// The driver's handle of a stream that is no default one, if the driver's context is current.
    #[inline]
    pub(crate) fn handle_if_current(&self) -> Option<*mut c_void> {
        match self {
            StreamBackend::Cuda(stream) => stream.handle_if_current(),
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
