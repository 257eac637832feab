//! Streams of CUDA devices: creation, order, and launches.
//!
//! `launch` launches kernels, `attributes` passes their attributes, `event`, `callback` and `external` are other work in a stream;
//! `burst` finds out when what another library enqueues has run.
//! `watch`, with `interval` and `recent`, finds out which launch failed; `per_thread` has the default streams
//! of threads.

pub(crate) mod attributes;
pub(crate) mod burst;
pub(crate) mod callback;
pub(crate) mod event;
mod external;
pub(crate) mod interval;
mod launch;
pub(crate) mod per_thread;
pub(crate) mod recent;
pub(crate) mod watch;

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::fmt::Display;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use cudarc::driver::sys::{CUcontext, CUevent, CUstream, CUstream_flags};

use super::device::{CudaDevice, Handle, bind};
use super::driver::{Code, Driver, Returned};
use crate::backend::event::BackendEvent;
use crate::backend::host_fn::HostFn;
use crate::backend::retired::retire;
use crate::backend::stream::BackendStream;
use crate::backend::{
    AccessPolicyWindow, EndedIntervals, EventBackend, EventOptions, Fault, MemorySyncDomain, StreamIdentity,
};
use crate::error::{Error, Result};
use crate::sync::lock;
use attributes::Attribute;
use burst::Burst;
use event::{CudaEvent, UNTIMED};
use per_thread::{Marking, PER_THREAD, PerThread};
use watch::Watch;

/// No implicit order with the legacy default stream.
pub(crate) const NON_BLOCKING: c_uint = CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;

/// `CU_STREAM_LEGACY`.
const LEGACY: usize = 1;

/// A stream of a CUDA device. Dropping it does not wait; the driver lets its work run to the end.
#[repr(C)] // What every launch reads comes first.
pub(crate) struct CudaStream {
    device: &'static CudaDevice,
    driver: &'static Driver,
    raw: Handle<CUstream>,
    watch: Arc<Watch>,
    /// Whether the handle means a stream of whatever context is current: a default stream's.
    is_default: bool,
    /// Whether `burst` has one.
    has_burst: AtomicBool,
    context: Handle<CUcontext>,
    owner: Owner,
    /// Whether it was given functions of the host.
    calls: AtomicBool,
    /// Whether the program has been given its handle.
    is_handed_out: AtomicBool,
    /// Works of a library that nothing has followed.
    burst: Mutex<Option<Arc<Burst>>>,
    /// Shared by those who enqueue a wait, held alone to launch a graph: the driver loses a wait that one thread asks for
    /// while another launches a graph on the same stream (seen with 580.159; `benches/cuda/lost_waits.cu` shows it).
    /// Streams that we have not made have the device's instead: there may be several of us for one.
    waits: RwLock<()>,
}

/// Who ends a stream.
enum Owner {
    /// We do.
    Us,
    /// None: it exists as long as the context.
    Context,
    /// The thread whose default stream it is, which alone enqueues.
    Thread(Box<PerThread>),
    /// Its creator, once the public handle is gone.
    Foreign(Box<Mutex<Use>>),
}

/// How far a foreign stream may be used.
enum Use {
    /// It is live.
    Open,
    /// It may be gone; this is the end of our work on it.
    Ended(Arc<CudaEvent>),
    /// It may be gone, and the driver could not mark the end.
    Lost(Error),
}

/// A stream that takes work which must come after all of another's: that one, kept from being ended
/// meanwhile, or if it has ended a stand-in. Work on the default stream of a thread is marked when this is dropped.
pub(super) struct Held<'a> {
    pub(super) raw: CUstream,
    _open: Option<MutexGuard<'a, Use>>,
    _marking: Option<Marking<'a>>,
}

impl Held<'_> {
    fn of(raw: CUstream) -> Self {
        Held { raw, _open: None, _marking: None }
    }
}

/// A spare event, recorded at the end of a stream; spare again when it is dropped: a wait keeps
/// what the event stood for when it was asked for.
struct Tail {
    device: &'static CudaDevice,
    event: Handle<CUevent>,
}

impl Tail {
    fn is_complete(&self) -> Result<bool> {
        // SAFETY: the event is live.
        let code = self.device.call_unbound(|| unsafe { self.device.driver().event_query(self.event.0) })?;
        if code == Code::NOT_READY {
            return Ok(false);
        }
        self.device.check(code, "")?;
        Ok(true)
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.device.spare_events().push(self.event);
    }
}

impl CudaStream {
    /// A new stream in `context`, which is that of `device`.
    pub(super) fn new(
        device: &'static CudaDevice,
        context: CUcontext,
        ordered_with_legacy: bool,
        priority: c_int,
    ) -> Result<Self> {
        let driver = device.driver();
        bind(driver, context)?;
        let flags = if ordered_with_legacy { 0 } else { NON_BLOCKING };
        // SAFETY: `to` is valid for the call, and the context is bound.
        let raw = device.get(device, |driver, to| unsafe { driver.stream_create(to, flags, priority) })?;
        Ok(CudaStream::of(device, context, raw, Owner::Us))
    }

    /// The legacy default stream of `context`, which is that of `device`.
    pub(super) fn legacy(device: &'static CudaDevice, context: CUcontext) -> Self {
        CudaStream::of(device, context, without_provenance_mut(LEGACY), Owner::Context)
    }

    /// The default stream of the calling thread in `context`, which is that of `device`.
    pub(super) fn per_thread(device: &'static CudaDevice, context: CUcontext) -> Result<Self> {
        let owner = Owner::Thread(Box::new(PerThread::new(device)?));
        Ok(CudaStream::of(device, context, without_provenance_mut(PER_THREAD), owner))
    }

    /// A stream that another library made in `context`, which is that of `device`.
    pub(super) fn foreign(device: &'static CudaDevice, context: CUcontext, raw: CUstream) -> Result<Self> {
        match raw.addr() {
            0 | LEGACY => Ok(CudaStream::legacy(device, context)),
            PER_THREAD => CudaStream::per_thread(device, context),
            _ => Ok(CudaStream::of(device, context, raw, Owner::Foreign(Box::new(Mutex::new(Use::Open))))),
        }
    }

    fn of(device: &'static CudaDevice, context: CUcontext, raw: CUstream, owner: Owner) -> Self {
        CudaStream {
            device,
            driver: device.driver(),
            context: Handle(context),
            raw: Handle(raw),
            is_default: raw.addr() <= PER_THREAD,
            owner,
            watch: Arc::new(Watch::new()),
            has_burst: AtomicBool::new(false),
            calls: AtomicBool::new(false),
            is_handed_out: AtomicBool::new(false),
            burst: Mutex::new(None),
            waits: RwLock::new(()),
        }
    }

    pub(super) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    pub(super) fn device(&self) -> &'static CudaDevice {
        self.device
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// The stream for work that its public handle is given, from the call that enqueues it on until that is done.
    #[inline]
    pub(super) fn enter(&self) -> Result<Held<'_>> {
        self.end_burst();
        let _marking = match &self.owner {
            Owner::Thread(thread) => Some(thread.enter()?),
            _ => None,
        };
        Ok(Held { raw: self.raw.0, _open: None, _marking })
    }

    /// Whose default stream it is, if that is not the calling thread.
    fn other_thread(&self) -> Option<&PerThread> {
        match &self.owner {
            Owner::Thread(thread) if !thread.is_here() => Some(thread),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn bind(&self) -> Result<()> {
        self.device.check_not_reset()?;
        bind(self.driver, self.context.0)
    }

    /// Makes a call that takes its context from this stream, bound before only where the stream is a default one.
    #[inline]
    fn call(&self, call: impl Fn() -> Returned) -> Result<Returned> {
        if self.is_default {
            self.bind()?;
        }
        self.device.call_unbound(call)
    }

    /// Whether another library captures it.
    fn is_captured(&self) -> Result<bool> {
        let status = Cell::new(0);
        // SAFETY: `status` is valid for the call, and the stream is live.
        let code = self.call(|| unsafe { self.driver.stream_capturing(self.raw.0, status.as_ptr()) })?;
        self.device.check(code, "")?;
        Ok(status.get() != 0)
    }

    /// The first failure of its work that was found and not reported, and is none of `later` work.
    pub(super) fn report_except(&self, later: &[Arc<Fault>]) -> Result<()> {
        self.watch.note_inherited();
        self.watch.failure().take_except(later).map_or(Ok(()), Err)
    }

    /// Records `event`, which is of the same device.
    #[inline]
    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        if let Some(thread) = self.other_thread() {
            let fallback_stream = self.after(thread.mark()?)?;
            return event.record(fallback_stream.raw);
        }
        if self.is_default {
            self.bind()?;
        }
        event.record(self.hold()?.raw)
    }

    /// Makes a call that enqueues work.
    pub(super) fn enqueue<R: Into<Result<Returned>>>(
        &self,
        object: impl Display,
        call: impl FnOnce(CUstream) -> R,
    ) -> Result<()> {
        self.bind()?;
        let stream = self.enter()?;
        self.device.check(call(stream.raw).into()?, &object)
    }

    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        event.device().check_not_reset()?;
        self.wait_raw(self.enter()?.raw, event.raw())
    }

    /// Makes later work here start after all that `earlier` holds so far.
    pub(crate) fn run_after(&self, earlier: &CudaStream) -> Result<()> {
        if let Some(thread) = earlier.other_thread() {
            return self.wait_raw(self.hold()?.raw, thread.mark()?.raw());
        }
        let Owner::Foreign(usage) = &earlier.owner else { return self.wait_for(earlier.tail()?) };
        let usage = lock(usage);
        let end = match &*usage {
            // Under the lock, so that the stream stays: its handle is dropped before it is ended.
            Use::Open => {
                let tail = earlier.tail();
                // Without the lock: to hold this stream takes another such, and another thread may want the two the
                // other way round.
                drop(usage);
                return self.wait_for(tail?);
            }
            Use::Ended(end) => {
                end.device().check_not_reset()?;
                end.raw()
            }
            Use::Lost(error) => return Err(error.clone()),
        };
        // The event lives as long as `earlier`. The lock does not, as above.
        drop(usage);
        self.wait_raw(self.hold()?.raw, end)
    }

    /// A spare event that stands for all that this stream holds so far.
    fn tail(&self) -> Result<Tail> {
        let spare = self.device.spare_events().pop();
        let event = match spare {
            Some(event) => event,
            None => {
                self.bind()?;
                Handle(event::create(self.device, UNTIMED)?)
            }
        };
        let tail = Tail { device: self.device, event };
        // SAFETY: the handles are live, and of one context.
        let code = self.call(|| unsafe { self.driver.event_record(tail.event.0, self.raw.0) })?;
        self.device.check(code, "")?;
        Ok(tail)
    }

    /// Tells whether all that the stream holds now has run.
    fn has_run(&self) -> Box<dyn Fn() -> bool + Send> {
        let end = match &self.owner {
            Owner::Us | Owner::Context => {
                let tail = self.tail().ok();
                return Box::new(move || {
                    tail.as_ref().is_some_and(|tail| tail.is_complete().unwrap_or(false))
                });
            }
            Owner::Thread(thread) => thread.mark().ok().cloned(),
            // Another's stream may be gone, but its end has been marked.
            Owner::Foreign(usage) => match &*lock(usage) {
                Use::Ended(end) => Some(end.clone()),
                Use::Open | Use::Lost(_) => None,
            },
        };
        Box::new(move || end.as_ref().is_some_and(|end| end.is_complete().unwrap_or(false)))
    }

    fn wait_for(&self, tail: Tail) -> Result<()> {
        self.wait_raw(self.hold()?.raw, tail.event.0)
    }

    /// This stream, or its stand-in, for internal work.
    #[inline]
    pub(super) fn hold(&self) -> Result<Held<'_>> {
        let Owner::Foreign(usage) = &self.owner else { return self.enter() };
        let usage = lock(usage);
        match &*usage {
            Use::Open => Ok(Held { _open: Some(usage), ..Held::of(self.raw.0) }),
            Use::Ended(end) => self.after(end),
            Use::Lost(error) => Err(error.clone()),
        }
    }

    /// A stand-in whose later work comes after `end`.
    fn after(&self, end: &CudaEvent) -> Result<Held<'static>> {
        let fallback_stream = self.device.fallback_stream()?;
        fallback_stream.wait_raw(fallback_stream.raw.0, end.raw())?;
        Ok(Held::of(fallback_stream.raw.0))
    }

    fn wait_raw(&self, stream: CUstream, event: CUevent) -> Result<()> {
        let _no_graph_meanwhile = self.waits().read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles are live.
        let code = self.call(|| unsafe { self.driver.stream_wait(stream, event, 0) })?;
        self.device.check(code, "")
    }

    /// To be held while a graph is launched here.
    pub(super) fn without_waits(&self) -> RwLockWriteGuard<'_, ()> {
        self.waits().write().unwrap_or_else(PoisonError::into_inner)
    }

    fn waits(&self) -> &RwLock<()> {
        match self.owner {
            // Of a thread's stream that thread alone asks for anything.
            Owner::Us | Owner::Thread(_) => &self.waits,
            Owner::Context | Owner::Foreign(_) => &self.device.waits_of_others,
        }
    }
}

impl BackendStream for CudaStream {
    fn is_usable_here(&self) -> bool {
        self.other_thread().is_none()
    }

    /// To be called when the public handle is gone. What is asked of a foreign stream from now on is
    /// asked of the end of our work on it.
    fn close(&self) {
        let Owner::Foreign(usage) = &self.owner else { return };
        let mut usage = lock(usage);
        let event = CudaEvent::new(self.device, EventOptions::UNTIMED);
        let recorded = event.and_then(|event| {
            self.bind()?;
            event.record(self.raw.0)?;
            Ok(event)
        });
        *usage = match recorded {
            Ok(event) => Use::Ended(Arc::new(event)),
            Err(error) => Use::Lost(error),
        };
    }

    fn as_raw(&self) -> Option<*mut c_void> {
        self.is_handed_out.store(true, Ordering::Relaxed);
        self.end_burst();
        Some(self.raw.0.cast())
    }

    fn identity(&self) -> Option<StreamIdentity> {
        let thread = match &self.owner {
            Owner::Thread(thread) => Some(thread.thread()),
            _ => None,
        };
        Some((self.raw.0.addr(), thread))
    }

    fn end_interval(&self) -> Option<EndedIntervals> {
        Some(self.watch.end(false))
    }

    /// Not while another library captures the stream: its graph would use the memory again at any time.
    fn renews_orders(&self) -> bool {
        !self.is_captured().unwrap_or(true)
    }

    fn priority(&self) -> Result<i32> {
        self.bind()?;
        // SAFETY: `to` is valid for the call, and the stream is live.
        self.device.get("", |driver, to| unsafe { driver.stream_priority(self.raw.0, to) })
    }

    fn is_nonblocking(&self) -> Result<bool> {
        self.bind()?;
        // SAFETY: `to` is valid for the call, and the stream is live.
        let flags = self.device.get("", |driver, to| unsafe { driver.stream_flags(self.raw.0, to) })?;
        Ok(flags & NON_BLOCKING != 0)
    }

    fn synchronize(&self) -> Result<()> {
        let ended = self.watch.end(true);
        self.drain()?;
        self.device.show_output()?;
        self.watch.settle(&ended)?;
        self.watch.recent().clear();
        self.report_except(&[])
    }

    /// Waits for all work, and leaves what kernels have to say to the next who asks.
    fn drain(&self) -> Result<()> {
        if let Some(thread) = self.other_thread() {
            return thread.mark()?.wait_unreported();
        }
        // SAFETY: the stream is live.
        let code = self.call(|| unsafe { self.driver.stream_synchronize(self.raw.0) })?;
        self.device.check(code, "")
    }

    fn is_complete(&self) -> Result<bool> {
        if let Some(thread) = self.other_thread() {
            return thread.mark()?.is_complete();
        }
        // SAFETY: the stream is live.
        let code = self.call(|| unsafe { self.driver.stream_query(self.raw.0) })?;
        if code == Code::NOT_READY {
            return Ok(false);
        }
        self.device.check(code, "")?;
        Ok(true)
    }

    fn host_fn(&self, function: HostFn) -> Result<()> {
        self.bind()?;
        let stream = self.enter()?;
        self.calls.store(true, Ordering::Relaxed);
        callback::host_fn(self.device, stream.raw, function, self.watch.failure().clone())
    }

    fn set_access_policy_window(&self, window: Option<AccessPolicyWindow>) -> Result<()> {
        let object = window.map_or_else(|| "no window".into(), |window| window.to_string());
        self.set_attribute(Attribute::access_policy_window(window), &object)
    }

    fn set_memory_sync_domain(&self, domain: MemorySyncDomain) -> Result<()> {
        self.set_attribute(Attribute::memory_sync_domain(domain), &format!("{domain:?}"))
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        self.device.watches.keep(&self.watch, || self.has_run());
        if !matches!(self.owner, Owner::Us) {
            return;
        }
        let ended = Ended { device: self.device, context: Handle(self.context.0), raw: Handle(self.raw.0) };
        // `cuStreamDestroy` waits for a function of the host that is being called, so it comes after that.
        if *self.calls.get_mut()
            && let Ok(event) = CudaEvent::new(self.device, EventOptions::UNTIMED)
            && self.record(&event).is_ok()
        {
            retire(EventBackend::Cuda(event), Box::new(ended));
        }
    }
}

/// A stream that is no longer used.
struct Ended {
    device: &'static CudaDevice,
    context: Handle<CUcontext>,
    raw: Handle<CUstream>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let driver = self.device.driver();
        if self.device.check_not_reset().and_then(|()| bind(driver, self.context.0)).is_ok() {
            // SAFETY: the stream is live and not used again; the driver lets its work finish.
            let _ = unsafe { driver.stream_destroy(self.raw.0) };
        }
    }
}
