//! What device code tells the host while kernels run: the first panic, and printed text. Both are in
//! page-locked host memory that modules find through a variable of theirs; the host looks after it has
//! waited for the device. It must not know who waits for what.

mod addresses;
mod panic;
mod print;
mod suspects;

use std::ffi::{CString, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::CUmodule;
use ferrogrid_device::failure::{FAILURE_SYMBOL, FailureRecord};
use ferrogrid_device::output::OUTPUT_SYMBOL;

use self::panic::PanicRecord;
use self::print::PrintBuffer;
use super::device::CudaDevice;
use super::driver::Code;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::output::Output;

/// `CU_MEMHOSTALLOC_PORTABLE` and `CU_MEMHOSTALLOC_DEVICEMAP`.
const PORTABLE_AND_MAPPED: c_uint = 1 | 2;

/// The bytes of the print buffer if nobody says otherwise: as many as CUDA's printf has.
const DEFAULT_CAPACITY: usize = 1 << 20;

/// The feedback of one device.
pub(super) struct Feedback {
    record: OnceLock<Result<PanicRecord>>,
    buffer: OnceLock<Result<PrintBuffer>>,
    /// The bytes that the print buffer gets when it is made.
    capacity: AtomicUsize,
    output: Output,
    /// The kernels loaded so far, any of which may panic.
    loaded: Mutex<Vec<&'static Kernel>>,
}

/// Memory of the host that the device can reach: its addresses on either side.
#[derive(Clone, Copy)]
struct Mapped {
    host: *mut u8,
    device: u64,
}

// SAFETY: both are plain addresses of memory that is never freed.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Feedback {
    pub(super) fn new() -> Self {
        Feedback {
            record: OnceLock::new(),
            buffer: OnceLock::new(),
            capacity: AtomicUsize::new(DEFAULT_CAPACITY),
            output: Output::new(),
            loaded: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    /// Sets the bytes of the print buffer, a power of two, before it is made.
    pub(super) fn set_capacity(&self, bytes: usize) -> Result<()> {
        if self.buffer.get().is_some() {
            return Err(Error::OutputInUse { capacity: self.capacity.load(Ordering::Relaxed) });
        }
        self.capacity.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Remembers a kernel of a module that has been connected.
    pub(super) fn note_loaded(&self, kernel: &'static Kernel) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).push(kernel);
    }

    fn loaded(&self) -> Vec<&'static Kernel> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells a freshly loaded module of `device`, whose context is bound, where to write. Modules that
    /// neither panic with a message nor print have no such variables.
    pub(super) fn connect(&self, device: &CudaDevice, module: CUmodule) -> Result<()> {
        if let Some(variable) = variable(device, module, FAILURE_SYMBOL)? {
            set(device, variable, self.record(device)?.address())?;
        }
        if let Some(variable) = variable(device, module, OUTPUT_SYMBOL)? {
            let make = || PrintBuffer::new(device, self.capacity.load(Ordering::Relaxed));
            let buffer = self.buffer.get_or_init(make).as_ref();
            set(device, variable, buffer.map_err(Error::clone)?.address())?;
        }
        Ok(())
    }

    /// The address of the count of threads that have panicked, or given up because others have, on `device`, whose
    /// context is bound.
    pub(super) fn alarm(&self, device: &CudaDevice) -> Result<u64> {
        self.record(device).map(PanicRecord::alarm)
    }

    fn record(&self, device: &CudaDevice) -> Result<&PanicRecord> {
        self.record.get_or_init(|| PanicRecord::new(device)).as_ref().map_err(Error::clone)
    }

    /// Shows what has been printed on `device`.
    #[inline]
    pub(super) fn show(&self, device: &CudaDevice) -> Result<()> {
        if let Some(Ok(buffer)) = self.buffer.get()
            && buffer.has_text()
        {
            device.bind()?;
            buffer.read(device).iter().for_each(|text| self.output.deliver(text));
        }
        Ok(())
    }

    /// Shows what has been printed on `device`, and reports a panic, once.
    #[inline]
    pub(super) fn hear(&self, device: &CudaDevice) -> Result<()> {
        self.show(device)?;
        match self.record.get() {
            Some(Ok(record)) if record.is_complete() => self.report(device, record),
            _ => Ok(()),
        }
    }

    #[cold]
    fn report(&self, device: &CudaDevice, record: &PanicRecord) -> Result<()> {
        device.bind()?;
        let Some(panic) = record.take(device) else { return Ok(()) };
        let (kernel, launched) =
            suspects::find(&self.loaded(), &device.recent_launches(), &panic.file, panic.line);
        Err(Error::KernelPanic {
            kernel,
            launched,
            message: panic.message.into(),
            file: panic.file.into(),
            line: panic.line,
            column: panic.column,
            block: panic.block,
            thread: panic.thread,
        })
    }
}

/// The address of a module's variable, if it has it.
fn variable(device: &CudaDevice, module: CUmodule, name: &str) -> Result<Option<u64>> {
    let symbol = CString::new(name).unwrap_or_default();
    let (mut address, mut bytes) = (0, 0);
    // SAFETY: both are valid for the call, the module is loaded, and the name ends in 0.
    let code = unsafe { device.driver().module_global(&mut address, &mut bytes, module, symbol.as_ptr()) };
    if code == Code::NOT_FOUND {
        return Ok(None);
    }
    device.check(code, "cuModuleGetGlobal", name)?;
    Ok((bytes == size_of::<u64>()).then_some(address))
}

fn set(device: &CudaDevice, variable: u64, value: u64) -> Result<()> {
    // SAFETY: the variable has eight bytes, and no kernel that knows of it runs yet.
    let code = unsafe { device.driver().write_now(variable, (&raw const value).cast(), size_of::<u64>()) };
    device.check(code, "cuMemcpyHtoD", "a variable of device code")
}

impl Mapped {
    /// `bytes` of zeros, for the rest of the process: kernels may write to them whenever they run.
    fn allocate(device: &CudaDevice, bytes: usize) -> Result<Self> {
        let driver = device.driver();
        let mut host: *mut c_void = null_mut();
        // SAFETY: `host` is valid for the call, and the context is bound.
        let code = unsafe { driver.host_allocate(&mut host, bytes, PORTABLE_AND_MAPPED) };
        device.check(code, "cuMemHostAlloc", &format!("{bytes} bytes"))?;
        // SAFETY: just allocated with that many bytes.
        unsafe { host.cast::<u8>().write_bytes(0, bytes) };
        let mut address = 0;
        // SAFETY: `address` is valid for the call, and the memory was allocated as mapped.
        let code = unsafe { driver.host_address(&mut address, host, 0) };
        device.check(code, "cuMemHostGetDevicePointer", &format!("{bytes} bytes"))?;
        Ok(Mapped { host: host.cast(), device: address })
    }
}

/// The record is written as whole by the device.
const _: () = assert!(size_of::<FailureRecord>().is_multiple_of(16));
