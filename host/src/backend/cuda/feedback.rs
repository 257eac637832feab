//! What device code tells the host while kernels run: the first panic, and printed text. Both are in
//! page-locked host memory that modules find through a variable of theirs; the host looks after it has
//! waited for the device. It must not know who waits for what.

mod addresses;
mod panic;
mod print;
mod reach;
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
pub(super) use self::reach::Reach;
use super::device::CudaDevice;
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
    /// The kernels loaded so far that may panic.
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

    /// Remembers a kernel that may panic, of a module that has been connected.
    pub(super) fn note_loaded(&self, kernel: &'static Kernel) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).push(kernel);
    }

    fn loaded(&self) -> Vec<&'static Kernel> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells a freshly loaded module of `device`, whose context is bound, where to write. `ptx` is the module's text, or
    /// that of which its machine code was made. Modules that neither panic with a message nor print have no such
    /// variables, and are not asked for them: to tools that watch the driver that would be an error of the program.
    pub(super) fn connect(&self, device: &CudaDevice, module: CUmodule, ptx: &str) -> Result<()> {
        if defines(ptx, FAILURE_SYMBOL) {
            let variable = variable(device, module, FAILURE_SYMBOL)?;
            set(device, variable, self.record(device)?.address())?;
        }
        if defines(ptx, OUTPUT_SYMBOL) {
            let variable = variable(device, module, OUTPUT_SYMBOL)?;
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

    /// Whether no thread of the device has panicked, or is about to say so.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.record.get().is_none_or(|record| record.as_ref().is_ok_and(PanicRecord::is_free))
    }

    /// The panic in the record, if there is one, which is free then for the next. Waits for a thread that is writing it:
    /// others that panic meanwhile leave nothing else.
    #[cold]
    pub(super) fn take(&self, device: &CudaDevice) -> Result<Option<Error>> {
        let Some(Ok(record)) = self.record.get() else { return Ok(None) };
        while record.is_being_written() {
            // A device that has failed meanwhile says so.
            device.memory_info()?;
            std::thread::yield_now();
        }
        if record.is_free() {
            return Ok(None);
        }
        device.bind()?;
        let Some(panic) = record.take(device) else { return Ok(None) };
        let (kernel, launched) =
            suspects::find(&self.loaded(), &device.recent_launches(), &panic.file, panic.line);
        Ok(Some(Error::KernelPanic {
            kernel,
            launched,
            message: panic.message.into(),
            file: panic.file.into(),
            line: panic.line,
            column: panic.column,
            block: panic.block,
            thread: panic.thread,
        }))
    }
}

/// Whether `ptx` defines the variable `symbol`, in the words of the build step, which writes each definition on a line of
/// its own.
fn defines(ptx: &str, symbol: &str) -> bool {
    ptx.match_indices(symbol).any(|(at, _)| {
        let line = &ptx[ptx[..at].rfind('\n').map_or(0, |end| end + 1)..];
        let rest = line.strip_prefix(".visible .global .align 8 .u64 ");
        rest.and_then(|rest| rest.strip_prefix(symbol)).is_some_and(|rest| rest.starts_with([' ', ';']))
    })
}

/// The address of a module's variable, which is a `u64`.
fn variable(device: &CudaDevice, module: CUmodule, name: &str) -> Result<u64> {
    let symbol = CString::new(name).unwrap_or_default();
    let (mut address, mut bytes) = (0, 0);
    // SAFETY: both are valid for the call, the module is loaded, and the name ends in 0.
    let code = unsafe { device.driver().module_global(&mut address, &mut bytes, module, symbol.as_ptr()) };
    device.check(code, "cuModuleGetGlobal", name)?;
    debug_assert_eq!(bytes, size_of::<u64>(), "{name}");
    Ok(address)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_where_they_are_defined() {
        const DEFINED: &str = ".visible .global .align 8 .u64 __ferrogrid_failure = 0;\n";
        let with = |line: &str| format!(".version 7.0\n{line}.visible .entry k()\n{{\n\tret;\n}}\n");
        assert!(defines(&with(DEFINED), FAILURE_SYMBOL));
        assert!(defines(DEFINED, FAILURE_SYMBOL) && !defines(DEFINED, OUTPUT_SYMBOL));
        for other in [
            "",
            ".extern .global .align 8 .u64 __ferrogrid_failure;\n",
            "// .visible .global .align 8 .u64 __ferrogrid_failure = 0;\n",
            ".visible .global .align 8 .u64 __ferrogrid_failures = 0;\n",
            "\tld.global.b64 \t%rd1, [__ferrogrid_failure];\n",
        ] {
            assert!(!defines(&with(other), FAILURE_SYMBOL), "{other}");
        }
    }
}
