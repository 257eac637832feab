//! CUDA devices and their primary contexts. `properties` fills the public record, `context` converts handles,
//! `peer` enables access to other devices' memory, `reset` makes a new context after a failure.

pub(crate) mod context;
pub(crate) mod peer;
pub(crate) mod properties;
pub(crate) mod reset;

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::fmt::{self, Display};
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, RwLock};

use bytemuck::Zeroable;
use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute, CUevent, CUfunction, CUstream};

use super::driver::{Code, Driver, Returned, driver};
use super::feedback::Feedback;
use super::graph::condition;
use super::memory::pool::{self, RawPool};
use super::memory::virtual_memory::Ranges;
use super::module::Module;
use super::stream::watch::Watches;
use super::stream::{CudaStream, NON_BLOCKING};
use crate::backend::device::BackendDevice;
use crate::backend::{Limits, PoolKind};
use crate::error::{Error, LaunchedKernel, Result};
use crate::output::Sink;
use crate::sync::lock;
use peer::Peers;

/// A CUDA device. It lives as long as the process, and so do its primary context and the modules
/// loaded in it, unless it is reset: then it refuses every call, and another takes its place (`device/reset.rs`).
#[repr(C)] // What every launch reads comes first.
pub(crate) struct CudaDevice {
    /// Whether its context is gone.
    pub(super) ended: AtomicBool,
    ordinal: usize,
    limits: Limits,
    driver: &'static Driver,
    pub(super) handle: CUdevice,
    name: String,
    capability: (u32, u32),
    multiprocessors: u32,
    shared_memory_per_block: usize,
    has_pools: bool,
    context: OnceLock<Result<Context>>,
    pool: OnceLock<Result<RawPool>>,
    /// Those that users have made.
    pub(super) own_pools: Mutex<Vec<RawPool>>,
    /// Addresses that buffers of it may grow into.
    pub(super) ranges: Ranges,
    modules: Mutex<HashMap<u128, Module>>,
    /// Events without timing that are not in use.
    spare_events: Mutex<Vec<Handle<CUevent>>>,
    /// Keeps waits from launches of graphs on all streams that were not made here.
    pub(super) waits_of_others: RwLock<()>,
    /// Streams for callbacks that are not in use.
    pub(super) spare_watchers: Mutex<Vec<Handle<CUstream>>>,
    /// Does the remaining work on foreign streams that may be gone.
    fallback_stream: OnceLock<Result<CudaStream>>,
    pub(super) watches: Watches,
    pub(super) peers: Peers,
    condition_setter: OnceLock<Result<Handle<CUfunction>>>,
    pub(super) feedback: Feedback,
    /// Page-locked memory that was allocated for it.
    pub(super) pinned: AtomicUsize,
    /// Managed memory that was allocated for it.
    pub(super) managed: AtomicUsize,
}

/// A handle of the driver, which may be used from any thread.
#[derive(Clone, Copy)]
pub(crate) struct Handle<T>(pub(super) T);

// SAFETY: the driver's handles may be used from any thread (with the context bound there).
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}

type Context = Handle<CUcontext>;

/// The devices, by their numbers; each is replaced when it is reset.
static DEVICES: OnceLock<Result<Vec<AtomicPtr<CudaDevice>>>> = OnceLock::new();

/// All CUDA devices in the driver's order; at least one.
pub(crate) fn devices() -> Result<Vec<&'static CudaDevice>> {
    let devices = DEVICES.get_or_init(find).as_ref().map_err(Error::clone)?;
    // SAFETY: they are leaked.
    Ok(devices.iter().map(|device| unsafe { &*device.load(Ordering::Acquire) }).collect())
}

/// Puts `fresh` in the place of the device with its number.
pub(super) fn replace_device(fresh: &'static CudaDevice) {
    if let Some(Ok(devices)) = DEVICES.get() {
        devices[fresh.ordinal].store(from_ref(fresh).cast_mut(), Ordering::Release);
    }
}

fn find() -> Result<Vec<AtomicPtr<CudaDevice>>> {
    let driver = driver()?;
    let mut count = 0;
    // SAFETY: `count` is valid for the call.
    let code = unsafe { driver.device_count(&mut count) };
    if code == Code::NO_DEVICE {
        return Err(Error::NoDevice);
    }
    driver.check(code, "")?;
    let leaked = |ordinal| Ok(AtomicPtr::new(Box::leak(Box::new(CudaDevice::query(driver, ordinal)?))));
    let devices: Vec<_> = (0..count).map(leaked).collect::<Result<_>>()?;
    if devices.is_empty() { Err(Error::NoDevice) } else { Ok(devices) }
}

impl CudaDevice {
    fn query(driver: &'static Driver, ordinal: c_int) -> Result<Self> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for the call.
        let code = unsafe { driver.device_get(&mut handle, ordinal) };
        driver.check(code, &format_args!("device {ordinal}"))?;
        let one = |attribute| attribute_of(driver, handle, attribute);
        use CUdevice_attribute as A;
        let limits = Limits {
            max_threads_per_block: one(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_block: [
                one(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                one(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                one(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_grid: [
                one(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                one(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                one(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
        };
        Ok(CudaDevice {
            ended: AtomicBool::new(false),
            driver,
            ordinal: ordinal.unsigned_abs() as usize,
            handle,
            name: name_of(driver, handle)?,
            capability: (
                one(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                one(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            limits,
            shared_memory_per_block: one(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
            multiprocessors: one(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            has_pools: one(A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
            context: OnceLock::new(),
            pool: OnceLock::new(),
            own_pools: Mutex::new(Vec::new()),
            ranges: Ranges::default(),
            modules: Mutex::new(HashMap::new()),
            spare_events: Mutex::new(Vec::new()),
            waits_of_others: RwLock::new(()),
            spare_watchers: Mutex::new(Vec::new()),
            fallback_stream: OnceLock::new(),
            watches: Watches::new(),
            peers: Peers::none(),
            condition_setter: OnceLock::new(),
            feedback: Feedback::new(),
            pinned: AtomicUsize::new(0),
            managed: AtomicUsize::new(0),
        })
    }

    /// Whether its context has been made.
    pub(super) fn has_context(&self) -> bool {
        self.context.get().is_some_and(Result::is_ok)
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(crate) fn capability(&self) -> (u32, u32) {
        self.capability
    }

    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The most bytes of shared memory that a block can have.
    #[inline]
    pub(crate) fn shared_memory_per_block(&self) -> usize {
        self.shared_memory_per_block
    }

    pub(super) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Whether memory can be allocated in stream order.
    pub(crate) fn has_pools(&self) -> bool {
        self.has_pools
    }

    /// The pool that memory is allocated from, made at the first call; the context must be bound.
    pub(super) fn pool(&self) -> Result<RawPool> {
        self.pool.get_or_init(|| pool::create(self, PoolKind::Device, false)).clone()
    }

    /// That pool, if it has been made.
    pub(super) fn known_pool(&self) -> Option<RawPool> {
        self.pool.get()?.as_ref().ok().copied()
    }

    /// That pool, or the one of this device; the context is bound.
    pub(crate) fn pool_or(&self, other: Option<RawPool>) -> Result<RawPool> {
        self.bind()?;
        other.map_or_else(|| self.pool(), Ok)
    }

    /// The primary context, retained at the first call and released when it is reset.
    pub(crate) fn context(&self) -> Result<CUcontext> {
        self.check_not_reset()?;
        let retain = || {
            let mut context = null_mut();
            // SAFETY: `context` is valid for the call, and the handle is the driver's.
            let code = unsafe { self.driver.primary_context_retain(&mut context, self.handle) };
            self.driver.check(code, self)?;
            Ok(Handle(context))
        };
        self.context.get_or_init(retain).as_ref().map(|context| context.0).map_err(Error::clone)
    }

    /// Makes the device's context the calling thread's current one.
    pub(crate) fn bind(&self) -> Result<()> {
        bind(self.driver, self.context()?)
    }

    /// Makes a call that takes its context from a stream or an event of this device, whatever context is current.
    ///
    /// To ask which one is current costs 9 ns, as much as a fifteenth of `cuEventRecord`. It need not be asked: the
    /// CUDA programming guide lets events be queried, waited for and timed, and streams wait for events, whatever the
    /// current device; `cuLaunchKernel` takes the context "from the specified stream", says the driver API; and with
    /// driver 580 all but launches, which were not tried, were seen to work on threads without any context. A driver that wants the context refuses such a
    /// call before it does anything; then the context is bound, and the call made again.
    #[inline]
    pub(super) fn call_unbound(&self, call: impl Fn() -> Returned) -> Result<Returned> {
        self.check_not_reset()?;
        let code = call();
        if code.is_success() || !code.may_lack_context() {
            return Ok(code);
        }
        self.bind()?;
        Ok(call())
    }

    pub(crate) fn new_stream(
        &'static self,
        ordered_with_legacy: bool,
        priority: c_int,
    ) -> Result<CudaStream> {
        let stream = CudaStream::new(self, self.context()?, ordered_with_legacy, priority)?;
        Ok(self.enlist(stream))
    }

    /// The legacy default stream.
    pub(crate) fn legacy_stream(&'static self) -> Result<CudaStream> {
        Ok(self.enlist(CudaStream::legacy(self, self.context()?)))
    }

    /// The default stream of the calling thread.
    pub(crate) fn per_thread_stream(&'static self) -> Result<CudaStream> {
        Ok(self.enlist(CudaStream::per_thread(self, self.context()?)?))
    }

    /// A stream of another library with the handle `raw`.
    ///
    /// # Safety
    /// It is one, and stays live until `close` has been called.
    pub(crate) unsafe fn foreign_stream(&'static self, raw: *mut c_void) -> Result<CudaStream> {
        self.bind()?;
        // SAFETY: `to` is valid for the call, and the caller vouches for the stream.
        let context = self.get(&format_args!("stream {raw:p}"), |driver, to| unsafe {
            driver.stream_context(raw.cast(), to)
        })?;
        if context != self.context()? {
            return Err(self.foreign_context());
        }
        Ok(self.enlist(CudaStream::foreign(self, context, raw.cast())?))
    }

    fn enlist(&self, stream: CudaStream) -> CudaStream {
        self.watches.add(stream.watch());
        self.watches.settle_closed_streams();
        stream
    }

    /// The kernel that sets the conditions of graphs, loaded at the first call.
    pub(super) fn condition_setter(&'static self) -> Result<CUfunction> {
        let setter = self.condition_setter.get_or_init(|| condition::load_setter(self));
        setter.as_ref().map(|setter| setter.0).map_err(Error::clone)
    }

    /// Shows what kernels have printed; called after waiting.
    #[inline]
    pub(super) fn show_output(&self) -> Result<()> {
        self.feedback.show(self)
    }

    /// As [`Driver::check`]; the failure of a kernel names the kernels that it may be.
    #[inline]
    pub(super) fn check(&self, returned: Returned, object: &(impl Display + ?Sized)) -> Result<()> {
        if returned.is_success() { Ok(()) } else { Err(self.error(returned, object)) }
    }

    /// As `check`, for a call that allocates `bytes`, if that is known.
    pub(super) fn check_memory(
        &self,
        returned: Returned,
        bytes: usize,
        object: &(impl Display + ?Sized),
    ) -> Result<()> {
        if returned == Code::OUT_OF_MEMORY && bytes > 0 {
            return Err(self.out_of_memory(bytes));
        }
        self.check(returned, object)
    }

    /// What the function of the driver that `call` calls writes to the place it is given, if it succeeds. It may be one
    /// that a driver lacks.
    pub(super) fn get<T: Zeroable, R: Into<Result<Returned>>>(
        &self,
        object: &(impl Display + ?Sized),
        call: impl FnOnce(&Driver, &mut T) -> R,
    ) -> Result<T> {
        let mut value = T::zeroed();
        let returned = call(self.driver, &mut value).into()?;
        self.check(returned, object).map(|()| value)
    }

    /// Like [`CudaDevice::get`], of a function that allocates `bytes`.
    pub(super) fn get_memory<T: Zeroable, R: Into<Result<Returned>>>(
        &self,
        bytes: usize,
        call: impl FnOnce(&Driver, &mut T) -> R,
    ) -> Result<T> {
        let mut value = T::zeroed();
        let returned = call(self.driver, &mut value).into()?;
        self.check_memory(returned, bytes, &format_args!("{bytes} bytes")).map(|()| value)
    }

    /// Gives something back to the driver by `call`. Where the context is gone, so is what was in it.
    pub(super) fn release<R>(&self, call: impl FnOnce(&Driver) -> R) {
        if self.bind().is_ok() {
            let _ = call(self.driver);
        }
    }

    #[cold]
    fn error(&self, returned: Returned, object: &(impl Display + ?Sized)) -> Error {
        let Returned { code, .. } = returned;
        if !code.is_kernel_failure() {
            return self.driver.error(returned, object);
        }
        Error::LaunchFailed {
            kernels: self.recent_launches(),
            operation: returned.operation(),
            code: code.0,
            name: self.driver.name_of(code),
            text: self.driver.text_of(code),
        }
    }

    pub(super) fn modules(&self) -> MutexGuard<'_, HashMap<u128, Module>> {
        lock(&self.modules)
    }

    pub(super) fn spare_events(&self) -> MutexGuard<'_, Vec<Handle<CUevent>>> {
        lock(&self.spare_events)
    }

    /// The launches last made on any stream since it was waited for.
    pub(super) fn recent_launches(&self) -> Vec<LaunchedKernel> {
        let mut launches: Vec<LaunchedKernel> = Vec::new();
        for watch in self.watches.all() {
            launches.extend(watch.recent().launches());
        }
        launches.dedup();
        launches
    }

    /// An unused stream, which returns to the spare ones after its use; the context is bound.
    pub(super) fn watcher(&self) -> Result<CUstream> {
        let spare = lock(&self.spare_watchers).pop();
        if let Some(watcher) = spare {
            return Ok(watcher.0);
        }
        // SAFETY: `to` is valid for the call; the flag is `CU_STREAM_NON_BLOCKING`.
        self.get(self, |driver, to| unsafe { driver.stream_create(to, NON_BLOCKING, 0) })
    }

    pub(super) fn fallback_stream(&'static self) -> Result<&'static CudaStream> {
        let new = || CudaStream::new(self, self.context()?, false, 0);
        self.fallback_stream.get_or_init(new).as_ref().map_err(Error::clone)
    }
}

impl BackendDevice for CudaDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn works(&self) -> bool {
        self.context().is_ok()
    }

    fn priority_range(&self) -> Result<(i32, i32)> {
        self.bind()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both are valid for the call.
        let code = unsafe { self.driver.stream_priority_range(&mut least, &mut greatest) };
        self.check(code, self)?;
        Ok((least, greatest))
    }

    fn synchronize(&self) -> Result<()> {
        self.bind()?;
        let watches = self.watches.all();
        let ended: Vec<_> = watches.iter().map(|watch| watch.end(true)).collect();
        // SAFETY: a context is bound.
        let code = unsafe { self.driver.context_synchronize() };
        self.check(code, self)?;
        self.show_output()?;
        for (watch, ended) in watches.iter().zip(&ended) {
            watch.settle(ended)?;
            watch.note_inherited();
            watch.recent().clear();
        }
        let told = Watches::tell(&watches);
        self.watches.settle_closed_streams();
        told.map_or(Ok(()), Err)
    }

    fn was_reset(&self) -> Option<Error> {
        self.check_not_reset().err()
    }

    fn deliver_output(&self) {
        // A context that cannot be bound is reported by the call that needs it.
        let _ = self.show_output();
    }

    fn set_output_sink(&self, sink: Option<Sink>) {
        self.feedback.output().set(sink);
    }

    fn set_output_capacity(&self, bytes: usize) -> Result<()> {
        self.feedback.set_capacity(bytes)
    }
}

/// Whether `context` is the calling thread's current one.
#[inline]
pub(super) fn is_current(driver: &Driver, context: CUcontext) -> bool {
    let mut current = null_mut();
    // SAFETY: `current` is valid for the call.
    let code = unsafe { driver.context_current(&mut current) };
    code.is_success() && current == context
}

/// Makes `context` the calling thread's current one, if it is not.
#[inline]
pub(super) fn bind(driver: &Driver, context: CUcontext) -> Result<()> {
    if is_current(driver, context) {
        return Ok(());
    }
    // SAFETY: a retained primary context: the caller has checked that it was not reset.
    let code = unsafe { driver.context_set(context) };
    driver.check(code, "")
}

pub(super) fn attribute_of(driver: &Driver, handle: CUdevice, attribute: CUdevice_attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: `value` is valid for the call, and the handle is the driver's.
    let code = unsafe { driver.device_attribute(&mut value, attribute as c_uint, handle) };
    driver.check(code, &format_args!("{attribute:?}"))?;
    Ok(value.unsigned_abs())
}

fn name_of(driver: &Driver, handle: CUdevice) -> Result<String> {
    let mut name = [0_u8; 256];
    // SAFETY: `name` is valid for the call, for as many bytes as stated.
    let code = unsafe { driver.device_name(name.as_mut_ptr().cast(), name.len() as c_int, handle) };
    driver.check(code, "")?;
    let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}

impl Display for CudaDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUDA device {} ({})", self.ordinal, self.name)
    }
}

/// The address of device memory as the driver has it.
pub(super) fn address(pointer: *const u8) -> u64 {
    pointer.addr() as u64
}

/// The address of a value as the driver's options want it.
pub(super) fn option_value(value: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(value)
}
