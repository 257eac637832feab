//! The backends behind the public types, `cuda`, `cpu` and `recording` (of graphs), and every choice between
//! them: each enum here has a variant for each backend, and methods that take plain data.
//!
//! `array`, `graph`, `shared_memory` and `virtual_memory` are such enums for one kind of object each.
//! `failure`, `host_fn`, `params`, `payload` and `signal` are what both backends use.

pub(crate) mod array;
pub(crate) mod cpu;
pub(crate) mod cuda;
mod failure;
#[cfg(test)]
#[path = "failure/tests.rs"]
mod failure_tests;
mod graph;
mod host_fn;
mod params;
mod payload;
pub(crate) mod recording;
mod shared_memory;
mod signal;
mod virtual_memory;

use std::ffi::c_void;
use std::hash::{Hash, Hasher};
use std::ptr::{addr_eq, from_ref, null_mut};
use std::sync::Arc;
use std::time::Instant;

pub(crate) use cuda::{EndedIntervals, Records};
pub(crate) use failure::{Failure, Fault};
pub(crate) use graph::{GraphBackend, MemoryNodes};
pub(crate) use host_fn::HostFn;
pub(crate) use params::CopiedParams;
pub(crate) use shared_memory::SharedMemory;
pub(crate) use signal::Signal;
pub(crate) use virtual_memory::VirtualMemory;

use crate::backend::recording::refusal::{not_recordable, other_stream, waiting};
use crate::backend::recording::{RecordedEvent, RecordingStream};
use crate::error::graph::GraphError;
use crate::error::{Error, Result};
use crate::kernel::Loaded;
use crate::stream::event::EventOptions;
use crate::stream::options::StreamOptions;
use crate::stream::own_thread::OwnThread;

/// A device of either backend; devices live as long as the process, a GPU that was reset as one that refuses all calls.
#[derive(Clone, Copy)]
pub(crate) enum DeviceBackend {
    Cuda(&'static cuda::CudaDevice),
    Cpu(&'static cpu::CpuDevice),
}

impl DeviceBackend {
    pub(crate) fn new_stream(self, options: StreamOptions) -> Result<StreamBackend> {
        let role = if options.is_ordered_with_legacy() { cpu::Role::Ordered } else { cpu::Role::Independent };
        match self {
            DeviceBackend::Cuda(device) => device.new_stream(options).map(StreamBackend::Cuda),
            DeviceBackend::Cpu(device) => Ok(StreamBackend::Cpu(device.new_stream()?.with_role(role))),
        }
    }

    pub(crate) fn legacy_stream(self) -> Result<StreamBackend> {
        match self {
            DeviceBackend::Cuda(device) => device.legacy_stream().map(StreamBackend::Cuda),
            DeviceBackend::Cpu(device) => {
                Ok(StreamBackend::Cpu(device.new_stream()?.with_role(cpu::Role::Legacy)))
            }
        }
    }

    /// The default stream of the calling thread.
    pub(crate) fn per_thread_stream(self) -> Result<StreamBackend> {
        match self {
            DeviceBackend::Cuda(device) => device.per_thread_stream().map(StreamBackend::Cuda),
            DeviceBackend::Cpu(device) => device.per_thread_stream().map(StreamBackend::Cpu),
        }
    }

    /// The stream that somebody else made; `None` where there are no handles.
    ///
    /// # Safety
    /// `raw` is a stream, and stays live until `StreamBackend::close` has been called.
    pub(crate) unsafe fn foreign_stream(self, raw: *mut c_void) -> Option<Result<StreamBackend>> {
        match self {
            DeviceBackend::Cuda(device) => {
                // SAFETY: passed on.
                let stream = unsafe { device.foreign_stream(raw) };
                Some(stream.map(StreamBackend::Cuda))
            }
            DeviceBackend::Cpu(_) => None,
        }
    }

    /// Whether it could use the memory of `peer`, which is another.
    pub(crate) fn can_access_peer(self, peer: DeviceBackend) -> Result<bool> {
        match (self, peer) {
            (DeviceBackend::Cuda(device), DeviceBackend::Cuda(peer)) => device.can_access_peer(peer),
            // All are the host's.
            (DeviceBackend::Cpu(_), DeviceBackend::Cpu(_)) => Ok(true),
            _ => Ok(false),
        }
    }

    /// Lets it use the memory of `peer`, which is another that it can reach.
    pub(crate) fn enable_peer_access(self, peer: DeviceBackend) -> Result<()> {
        match (self, peer) {
            (DeviceBackend::Cuda(device), DeviceBackend::Cuda(peer)) => device.enable_peer_access(peer),
            (DeviceBackend::Cpu(device), DeviceBackend::Cpu(peer)) => {
                device.enable_peer_access(peer);
                Ok(())
            }
            _ => unreachable!("a GPU and the CPU cannot reach each other's memory"),
        }
    }

    /// Whether it may use the memory of `peer`, which is another.
    #[cold]
    pub(crate) fn has_peer(self, peer: DeviceBackend) -> bool {
        match (self, peer) {
            (DeviceBackend::Cuda(device), DeviceBackend::Cuda(peer)) => device.has_peer(peer),
            (DeviceBackend::Cpu(device), DeviceBackend::Cpu(peer)) => device.has_peer(peer),
            _ => false,
        }
    }

    /// If its handles are from before a reset: the error that says so.
    #[cold]
    pub(crate) fn was_reset(self) -> Option<Error> {
        match self {
            DeviceBackend::Cuda(device) => device.has_been_reset().then(|| device.was_reset()),
            DeviceBackend::Cpu(_) => None,
        }
    }

    /// Where the device lives: its identity.
    #[inline]
    pub(crate) fn address(self) -> *const () {
        match self {
            DeviceBackend::Cuda(device) => from_ref(device).cast(),
            DeviceBackend::Cpu(device) => from_ref(device).cast(),
        }
    }
}

impl PartialEq for DeviceBackend {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        addr_eq(self.address(), other.address())
    }
}

impl Eq for DeviceBackend {}

impl Hash for DeviceBackend {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

/// What tells a stream from the others of its device: what its handle is, and to whom it means that.
pub(crate) type StreamIdentity = (usize, Option<OwnThread>);

/// A stream of either backend.
pub(crate) enum StreamBackend {
    Cuda(cuda::CudaStream),
    Cpu(cpu::CpuStream),
    /// Records a graph instead of running anything.
    Recording(RecordingStream),
}

impl StreamBackend {
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
}

/// An event of either backend.
pub(crate) enum EventBackend {
    Cuda(cuda::CudaEvent),
    Cpu(cpu::CpuEvent),
    /// A point in a recording; it never happens.
    Recorded(RecordedEvent),
}

impl EventBackend {
    /// An event of `device` that has not been recorded.
    pub(crate) fn new(device: DeviceBackend, options: EventOptions) -> Result<Self> {
        match device {
            DeviceBackend::Cuda(device) => cuda::CudaEvent::new(device, options).map(EventBackend::Cuda),
            DeviceBackend::Cpu(_) => Ok(EventBackend::Cpu(cpu::CpuEvent::new(options))),
        }
    }

    pub(crate) fn is_of(&self, device: DeviceBackend) -> bool {
        match (self, device) {
            (EventBackend::Cuda(event), DeviceBackend::Cuda(device)) => event.ordinal() == device.ordinal(),
            // All are the host's.
            (EventBackend::Cpu(_), DeviceBackend::Cpu(_)) => true,
            _ => false,
        }
    }

    /// Why launches cannot record it.
    pub(crate) fn not_at_launches(&self) -> Option<&'static str> {
        match self {
            EventBackend::Cuda(event) => event.not_at_launches(),
            EventBackend::Cpu(event) => event.has_timing().then_some(cuda::TIMED),
            EventBackend::Recorded(_) => Some("it is of a recording"),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match self {
            EventBackend::Cuda(event) => event.synchronize(),
            EventBackend::Cpu(event) => {
                event.wait();
                Ok(())
            }
            EventBackend::Recorded(_) => Err(waiting("to wait for an event")),
        }
    }

    /// Waits; leaves what kernels have to say, and failures of streams, to the next who asks.
    pub(crate) fn wait_unheard(&self) -> Result<()> {
        match self {
            EventBackend::Cuda(event) => event.wait_unheard(),
            EventBackend::Cpu(event) => {
                event.wait();
                Ok(())
            }
            EventBackend::Recorded(_) => Err(waiting("to wait for an event")),
        }
    }

    /// When it happened by the host's clock, if that is the device's, too.
    pub(crate) fn host_time(&self) -> Option<Instant> {
        match self {
            EventBackend::Cpu(event) => event.host_time(),
            _ => None,
        }
    }

    /// The seconds from `earlier` to this event, less than 0 if it came later; both are complete.
    pub(crate) fn seconds_since(&self, earlier: &EventBackend) -> Result<f64> {
        match (self, earlier) {
            (EventBackend::Cuda(end), EventBackend::Cuda(start)) => end.seconds_since(start),
            (EventBackend::Cpu(end), EventBackend::Cpu(start)) => end.seconds_since(start),
            _ => Err(Error::EventTime { reason: "they are of different devices" }),
        }
    }

    pub(crate) fn is_complete(&self) -> Result<bool> {
        match self {
            EventBackend::Cuda(event) => event.is_complete(),
            EventBackend::Cpu(event) => Ok(event.is_complete()),
            EventBackend::Recorded(_) => Err(waiting("to ask for an event")),
        }
    }

    /// Raises `signal` when the event is complete, or the device has failed.
    pub(crate) fn notify(&self, signal: Arc<Signal>) -> Result<()> {
        match self {
            EventBackend::Cuda(event) => event.notify(signal),
            EventBackend::Cpu(event) => {
                event.notify(signal);
                Ok(())
            }
            EventBackend::Recorded(_) => Err(waiting("to wait for an event")),
        }
    }
}

/// A kernel ready to be launched on a stream: the function that a GPU loaded; null on the CPU.
pub(crate) type Prepared = Loaded;

impl Default for Prepared {
    fn default() -> Self {
        Prepared { function: null_mut(), may_panic: false }
    }
}
