//! Callbacks from the driver into the host, in stream order.
//!
//! They are made with `cuStreamAddCallback`, not with `cuLaunchHostFunc`: once a kernel has failed, the
//! driver drops functions of the second kind without a word (seen on an H200, driver 580), so that
//! a thread that waits for one would wait forever, and what it holds would leak. Those of the first kind are
//! called then, too, with the failure.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUstream};

use crate::backend::cuda::device::{CudaDevice, Handle};
use crate::backend::failure::Failure;
use crate::backend::host_fn::{self, HostFn};
use crate::backend::signal::Signal;
use crate::error::Result;
use crate::sync::lock;

/// What the driver calls: with whether the device is well.
type Job = Box<dyn FnOnce(bool) + Send>;

/// Calls `function` when all work of `stream`, which is of `device`, whose context is bound, has run. If
/// the device fails first, it is dropped and not called.
pub(crate) fn host_fn(
    device: &CudaDevice,
    stream: CUstream,
    function: HostFn,
    failure: Arc<Failure>,
) -> Result<()> {
    let job = move |is_well: bool| {
        // Dropping what a function has captured may panic as well.
        let function: HostFn = if is_well { function } else { Box::new(move || drop(function)) };
        if let Some(error) = host_fn::run(function) {
            failure.note(error);
        }
    };
    add(device, stream, Box::new(job))
}

/// Raises `signal` when `event`, of `device`, whose context is bound, is complete, or the device fails.
///
/// The callback is on a separate stream, because a stream does not proceed while one runs.
pub(crate) fn notify(device: &'static CudaDevice, event: CUevent, signal: Arc<Signal>) -> Result<()> {
    let watcher = Handle(device.watcher()?);
    // SAFETY: the handles are live, and of the bound context.
    let code = unsafe { device.driver().stream_wait(watcher.0, event, 0) };
    let waits = device.check(code, "");
    let job = move |_| {
        lock(&device.spare_watchers).push(watcher);
        signal.raise();
    };
    let added = waits.and_then(|()| add(device, watcher.0, Box::new(job)));
    if added.is_err() {
        lock(&device.spare_watchers).push(watcher);
    }
    added
}

fn add(device: &CudaDevice, stream: CUstream, job: Job) -> Result<()> {
    let job = Box::into_raw(Box::new(job));
    let flags: c_uint = 0;
    // SAFETY: the stream is live, and of the bound context; `call` takes what `job` points to, once.
    let code = unsafe { device.driver().stream_callback(stream, call, job.cast(), flags) };
    if !code.is_success() {
        // SAFETY: the driver refused, so it has no other owner.
        drop(unsafe { Box::from_raw(job) });
    }
    device.check(code, "")
}

/// Called by a thread of the driver, once.
///
/// # Safety
/// `data` is a [`Job`]'s, from `Box::into_raw`, and has no other owner.
unsafe extern "C" fn call(_stream: CUstream, code: u32, data: *mut c_void) {
    // SAFETY: `data` is from `Box::into_raw` in `add`, and the driver calls once.
    let job = unsafe { Box::from_raw(data.cast::<Job>()) };
    job(code == 0);
}
