//! Streams of CUDA devices: creation, order, and launches.
//!
//! `attributes` passes launch attributes, `event`, `value` and `callback` are other work in a stream.
//! `watch`, with `interval` and `recent`, finds out which launch failed; `per_thread` has the default streams
//! of threads.

pub(crate) mod attributes;
pub(crate) mod callback;
pub(crate) mod event;
pub(crate) mod interval;
pub(crate) mod per_thread;
pub(crate) mod recent;
pub(crate) mod value;
pub(crate) mod watch;

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use cudarc::driver::sys::{CUcontext, CUevent, CUfunction, CUstream};

use super::device::{CudaDevice, Handle, bind};
use super::driver::{Code, Driver};
use crate::backend::host_fn::HostFn;
use crate::backend::{EventBackend, Fault, StreamIdentity};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Loaded};
use crate::launch::grid::LaunchShape;
use crate::memory::retired::retire;
use crate::stream::event::EventOptions;
use crate::stream::options::StreamOptions;
use event::{CudaEvent, UNTIMED};
use per_thread::{Marking, PER_THREAD, PerThread};
use watch::Watch;

/// `CU_STREAM_NON_BLOCKING`: no implicit order with the legacy default stream.
const NON_BLOCKING: c_uint = 1;

/// `CU_STREAM_LEGACY`.
const LEGACY: usize = 1;

/// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`.
const MAX_THREADS_PER_BLOCK: c_uint = 0;

/// A stream of a CUDA device. Dropping it does not wait; the driver lets its work run to the end.
#[repr(C)] // What every launch reads comes first.
pub(crate) struct CudaStream {
    device: &'static CudaDevice,
    driver: &'static Driver,
    raw: Handle<CUstream>,
    watch: Arc<Watch>,
    /// Whether the handle means a stream of whatever context is current: a default stream's.
    is_default: bool,
    context: Handle<CUcontext>,
    owner: Owner,
    /// Whether it was given functions of the host.
    calls: AtomicBool,
    /// Shared by those who enqueue a wait, held alone to launch a graph: the driver loses a wait that one thread asks for
    /// while another launches a graph on the same stream (seen with 580.159; `benches/cuda/lost_waits.cu` shows it).
    /// Streams that we have not made have the device's instead: there may be several of us for one.
    waits: RwLock<()>,
}

/// Who ends a stream.
enum Owner {
    /// We do.
    Us,
    /// Nobody: it is there as long as the context.
    Context,
    /// The thread whose default stream it is, which alone enqueues.
    Thread(Box<PerThread>),
    /// Whoever made it, once the public handle is gone.
    Foreign(Box<Mutex<Use>>),
}

/// How far a foreign stream may be used.
enum Use {
    /// It is live.
    Open,
    /// It may be gone; this is the end of our work on it.
    Ended(CudaEvent),
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
    fn is_complete(&self) -> bool {
        // SAFETY: the event is live.
        let asked = self.device.call_unbound(|| unsafe { self.device.driver().event_query(self.event.0) });
        asked.is_ok_and(Code::is_success)
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
        options: StreamOptions,
    ) -> Result<Self> {
        let driver = device.driver();
        bind(driver, context)?;
        let flags = if options.is_ordered_with_legacy() { 0 } else { NON_BLOCKING };
        let mut raw = null_mut();
        // SAFETY: `raw` is valid for the call, and the context is bound.
        let code = unsafe { driver.stream_create(&mut raw, flags, options.priority()) };
        device.check(code, "cuStreamCreateWithPriority", &device.to_string())?;
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

    /// A stream that somebody else made in `context`, which is that of `device`.
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
            calls: AtomicBool::new(false),
            waits: RwLock::new(()),
        }
    }

    pub(in crate::backend) fn watch(&self) -> &Arc<Watch> {
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
        let _marking = match &self.owner {
            Owner::Thread(thread) => Some(thread.enter()?),
            _ => None,
        };
        Ok(Held { raw: self.raw.0, _open: None, _marking })
    }

    /// Whether the calling thread may enqueue.
    pub(crate) fn is_usable_here(&self) -> bool {
        self.other_thread().is_none()
    }

    /// What tells it from the other streams of its device, as long as it is there: a handle may mean several.
    pub(crate) fn identity(&self) -> StreamIdentity {
        let thread = match &self.owner {
            Owner::Thread(thread) => Some(thread.thread()),
            _ => None,
        };
        (self.raw.0.addr(), thread)
    }

    /// Whose default stream it is, if that is not the calling thread.
    fn other_thread(&self) -> Option<&PerThread> {
        match &self.owner {
            Owner::Thread(thread) if !thread.is_here() => Some(thread),
            _ => None,
        }
    }

    /// The driver's `CUstream`.
    pub(crate) fn as_raw(&self) -> *mut c_void {
        self.raw.0.cast()
    }

    #[inline]
    pub(super) fn bind(&self) -> Result<()> {
        self.device.check_not_reset()?;
        bind(self.driver, self.context.0)
    }

    /// Makes a call that takes its context from this stream, bound before only where the stream is a default one.
    #[inline]
    fn call(&self, call: impl Fn() -> Code) -> Result<Code> {
        if self.is_default {
            self.bind()?;
        }
        self.device.call_unbound(call)
    }

    pub(crate) fn priority(&self) -> Result<i32> {
        self.bind()?;
        let mut priority: c_int = 0;
        // SAFETY: `priority` is valid for the call, and the stream is live.
        let code = unsafe { self.driver.stream_priority(self.raw.0, &mut priority) };
        self.device.check(code, "cuStreamGetPriority", "")?;
        Ok(priority)
    }

    /// Whether it is not ordered with the legacy default stream.
    pub(crate) fn is_nonblocking(&self) -> Result<bool> {
        self.bind()?;
        let mut flags: c_uint = 0;
        // SAFETY: `flags` is valid for the call, and the stream is live.
        let code = unsafe { self.driver.stream_flags(self.raw.0, &mut flags) };
        self.device.check(code, "cuStreamGetFlags", "")?;
        Ok(flags & NON_BLOCKING != 0)
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        let ended = self.watch.end(true);
        self.drain()?;
        self.device.show_output()?;
        self.watch.settle(&ended)?;
        self.watch.recent().clear();
        self.report()
    }

    /// Waits for all work, and leaves what kernels have to say to the next who asks.
    pub(crate) fn drain(&self) -> Result<()> {
        if let Some(thread) = self.other_thread() {
            return thread.mark()?.wait_unheard();
        }
        // SAFETY: the stream is live.
        let code = self.call(|| unsafe { self.driver.stream_synchronize(self.raw.0) })?;
        self.device.check(code, "cuStreamSynchronize", "")
    }

    /// The first failure of its work that was found, and that nobody has been told of.
    pub(crate) fn report(&self) -> Result<()> {
        self.report_but(&[])
    }

    /// As `report`, but for failures of later work.
    pub(super) fn report_but(&self, later: &[Arc<Fault>]) -> Result<()> {
        self.watch.note_inherited();
        self.watch.failure().take_but(later).map_or(Ok(()), Err)
    }

    pub(crate) fn is_complete(&self) -> Result<bool> {
        if let Some(thread) = self.other_thread() {
            return thread.mark()?.is_complete();
        }
        // SAFETY: the stream is live.
        let code = self.call(|| unsafe { self.driver.stream_query(self.raw.0) })?;
        if code == Code::NOT_READY {
            return Ok(false);
        }
        self.device.check(code, "cuStreamQuery", "")?;
        Ok(true)
    }

    /// Records `event`, which is of the same device.
    #[inline]
    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        if let Some(thread) = self.other_thread() {
            let stand_in = self.after(thread.mark()?)?;
            return event.record(stand_in.raw);
        }
        if self.is_default {
            self.bind()?;
        }
        event.record(self.hold()?.raw)
    }

    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        event.device().check_not_reset()?;
        self.wait_raw(self.enter()?.raw, event.raw())
    }

    pub(crate) fn host_fn(&self, function: HostFn) -> Result<()> {
        self.bind()?;
        let stream = self.enter()?;
        self.calls.store(true, Ordering::Relaxed);
        callback::host_fn(self.device, stream.raw, function, self.watch.failure().clone())
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
        self.device.check(code, "cuEventRecord", "")?;
        Ok(tail)
    }

    /// Tells whether all that the stream holds now has run.
    fn has_run(&self) -> Box<dyn Fn() -> bool + Send> {
        let tail = match &self.owner {
            Owner::Us => self.tail().ok(),
            Owner::Thread(thread) => {
                let mark = thread.mark().ok().cloned();
                return Box::new(move || {
                    mark.as_ref().is_some_and(|mark| mark.is_complete().unwrap_or(false))
                });
            }
            // Another's stream may be gone; the device's synchronisation waits for its work, too.
            Owner::Context | Owner::Foreign(_) => None,
        };
        Box::new(move || tail.as_ref().is_some_and(Tail::is_complete))
    }

    fn wait_for(&self, tail: Tail) -> Result<()> {
        self.wait_raw(self.hold()?.raw, tail.event.0)
    }

    /// To be called when the public handle is gone. What is asked of a foreign stream from now on is
    /// asked of the end of our work on it.
    pub(crate) fn close(&self) {
        let Owner::Foreign(usage) = &self.owner else { return };
        let mut usage = lock(usage);
        let event = CudaEvent::new(self.device, EventOptions::new().without_timing());
        let recorded = event.and_then(|event| {
            self.bind()?;
            event.record(self.raw.0)?;
            Ok(event)
        });
        *usage = match recorded {
            Ok(event) => Use::Ended(event),
            Err(error) => Use::Lost(error),
        };
    }

    /// This stream, or its stand-in, for work that nobody but us enqueues.
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
        let stand_in = self.device.stand_in()?;
        stand_in.wait_raw(stand_in.raw.0, end.raw())?;
        Ok(Held::of(stand_in.raw.0))
    }

    fn wait_raw(&self, stream: CUstream, event: CUevent) -> Result<()> {
        let _no_graph_meanwhile = self.waits().read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles are live.
        let code = self.call(|| unsafe { self.driver.stream_wait(stream, event, 0) })?;
        self.device.check(code, "cuStreamWaitEvent", "")
    }

    /// To be held while a graph is launched here.
    pub(super) fn without_waits(&self) -> RwLockWriteGuard<'_, ()> {
        self.waits().write().unwrap_or_else(PoisonError::into_inner)
    }

    fn waits(&self) -> &RwLock<()> {
        match self.owner {
            // Of a thread's stream that thread alone asks for anything.
            Owner::Us | Owner::Thread(_) => &self.waits,
            Owner::Context | Owner::Foreign(_) => self.device.waits_of_others(),
        }
    }

    /// The function of `kernel` on this device, loaded at the first call.
    #[inline]
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Loaded> {
        let function = kernel.quiet_function(self.device.ordinal());
        if !function.is_null() {
            return Ok(Loaded { function, may_panic: false });
        }
        self.load(kernel)
    }

    /// As `prepare`, for a kernel that may panic or is not loaded.
    #[inline(never)]
    fn load(&self, kernel: &'static Kernel) -> Result<Loaded> {
        match kernel.loaded(self.device.ordinal()) {
            Some(loaded) => Ok(loaded),
            None => self.device.prepare(kernel),
        }
    }

    /// # Safety
    /// As for `StreamInner::launch`; `function` is from `prepare`.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        function: *mut c_void,
        kernel: &'static Kernel,
        shape: &LaunchShape,
        params: &[*const c_void],
    ) -> Result<()> {
        self.device.check_not_reset()?;
        if self.is_default || !shape.attributes.are_none() {
            // SAFETY: passed on.
            return unsafe { self.launch_slow(function.cast(), kernel, shape, params) };
        }
        // SAFETY: passed on.
        let code = unsafe { self.launch_now(function.cast(), shape, params) };
        if !code.is_success() {
            // SAFETY: passed on.
            return unsafe { self.launch_again(code, function.cast(), kernel, shape, params) };
        }
        self.watch.recent().note(kernel, shape.site);
        Ok(())
    }

    /// # Safety
    /// As for `launch`.
    #[inline]
    unsafe fn launch_now(&self, function: CUfunction, shape: &LaunchShape, params: &[*const c_void]) -> Code {
        let ([grid_x, grid_y, grid_z], [x, y, z]) = (shape.grid, shape.block);
        // Within the device's limit.
        let (shared, stream) = (shape.shared_bytes as c_uint, self.raw.0);
        let params = params.as_ptr().cast_mut().cast();
        // SAFETY: the function and the stream are of the same context; the caller vouches for the
        // parameters, which the driver copies (it does not write through them).
        unsafe {
            let extra = null_mut();
            self.driver
                .launch_kernel(function, grid_x, grid_y, grid_z, x, y, z, shared, stream, params, extra)
        }
    }

    /// After a launch that the driver refused with `code`: once more if it wants a context.
    ///
    /// # Safety
    /// As for `launch`.
    #[cold]
    unsafe fn launch_again(
        &self,
        code: Code,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchShape,
        params: &[*const c_void],
    ) -> Result<()> {
        let mut code = code;
        if code.may_lack_context() {
            self.bind()?;
            // SAFETY: passed on.
            code = unsafe { self.launch_now(function, shape, params) };
        }
        if code == Code::INVALID_CLUSTER_SIZE {
            return Err(self.cluster_too_large(function, kernel, shape));
        }
        if !code.is_success() {
            return Err(self.launch_error(code, function, kernel, shape.block));
        }
        self.watch.recent().note(kernel, shape.site);
        Ok(())
    }

    /// A launch on a default stream, or with attributes.
    ///
    /// # Safety
    /// As for `launch`.
    #[inline(never)]
    unsafe fn launch_slow(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchShape,
        params: &[*const c_void],
    ) -> Result<()> {
        if !shape.attributes.are_but_cooperative() {
            // SAFETY: passed on.
            return unsafe { self.launch_with_attributes(function, kernel, shape, params) };
        }
        if shape.attributes.cooperative {
            let params = params.as_ptr().cast_mut().cast();
            // SAFETY: passed on.
            unsafe { self.launch_cooperative(function, kernel, shape, params)? };
            self.watch.recent().note(kernel, shape.site);
            return Ok(());
        }
        self.bind()?;
        let _marked = self.enter()?;
        // SAFETY: passed on.
        let code = unsafe { self.launch_now(function, shape, params) };
        if code.is_success() {
            self.watch.recent().note(kernel, shape.site);
            return Ok(());
        }
        // SAFETY: passed on.
        unsafe { self.launch_again(code, function, kernel, shape, params) }
    }

    /// # Safety
    /// As for `launch`.
    unsafe fn launch_cooperative(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchShape,
        params: *mut *mut c_void,
    ) -> Result<()> {
        let ([grid_x, grid_y, grid_z], [x, y, z]) = (shape.grid, shape.block);
        let entered = self.enter()?;
        let (shared, stream) = (shape.shared_bytes as c_uint, entered.raw);
        // SAFETY: as for `launch`.
        let code = self.call(|| unsafe {
            self.driver.launch_cooperative(function, grid_x, grid_y, grid_z, x, y, z, shared, stream, params)
        })?;
        if code.is_success() {
            return Ok(());
        }
        if code == Code::COOPERATIVE_LAUNCH_TOO_LARGE {
            return Err(self.too_many_blocks(function, kernel, shape));
        }
        Err(self.launch_error(code, function, kernel, shape.block))
    }

    /// A cooperative launch has more blocks than fit on the device at the same time.
    #[cold]
    pub(super) fn too_many_blocks(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchShape,
    ) -> Error {
        let threads: u32 = shape.block.iter().product();
        let mut on_each = 0;
        // Where it cannot be bound, the driver refuses to tell.
        let _ = self.bind();
        // SAFETY: `on_each` is valid for the call, and the function is loaded.
        let code = unsafe {
            self.driver.occupancy_blocks(&mut on_each, function, threads as c_int, shape.shared_bytes)
        };
        let on_each = if code.is_success() { on_each.unsigned_abs() } else { 0 };
        Error::TooManyResidentBlocks {
            kernel: kernel.name(),
            device: self.device.to_string().into(),
            blocks: shape.grid.iter().copied().map(u64::from).product(),
            threads,
            limit: u64::from(on_each) * u64::from(self.device.multiprocessors()),
        }
    }

    /// A cluster has more blocks than the device takes of this kernel.
    #[cold]
    pub(super) fn cluster_too_large(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchShape,
    ) -> Error {
        let shared = shape.shared_bytes as c_uint;
        match self.device.max_potential_cluster_size(function, shape.grid, shape.block, shared) {
            Ok(limit) => Error::ClusterTooLarge {
                kernel: kernel.name(),
                device: self.device.to_string().into(),
                cluster: shape.cluster,
                limit,
            },
            Err(_) => self.launch_error(Code::INVALID_CLUSTER_SIZE, function, kernel, shape.block),
        }
    }

    /// Why a launch was refused; a kernel may take fewer threads than the device, by its registers.
    #[cold]
    pub(super) fn launch_error(
        &self,
        code: Code,
        function: CUfunction,
        kernel: &'static Kernel,
        block: [u32; 3],
    ) -> Error {
        let threads: u64 = block.iter().copied().map(u64::from).product();
        if code == Code::LAUNCH_OUT_OF_RESOURCES {
            let mut limit = 0;
            // Where it cannot be bound, the driver refuses to tell.
            let _ = self.bind();
            // SAFETY: `limit` is valid for the call, and the function is loaded.
            let asked =
                unsafe { self.driver.function_attribute(&mut limit, MAX_THREADS_PER_BLOCK, function) };
            let limit = limit.unsigned_abs();
            if asked.is_success() && threads > u64::from(limit) {
                return Error::TooManyThreads { kernel: kernel.name(), block, threads, limit };
            }
        }
        let object = format!("kernel `{}`", kernel.name());
        match self.device.check(code, "cuLaunchKernel", &object) {
            Err(error) => error,
            Ok(()) => self.driver.error(code, "cuLaunchKernel", &object),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        self.device.watches().keep(&self.watch, || self.has_run());
        if !matches!(self.owner, Owner::Us) {
            return;
        }
        let ended = Ended { device: self.device, context: Handle(self.context.0), raw: Handle(self.raw.0) };
        // `cuStreamDestroy` waits for a function of the host that is being called, so it comes after that.
        if *self.calls.get_mut()
            && let Ok(event) = CudaEvent::new(self.device, EventOptions::new().without_timing())
            && self.record(&event).is_ok()
        {
            retire(EventBackend::Cuda(event), Box::new(ended));
        }
    }
}

/// A stream that nobody uses any more.
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
