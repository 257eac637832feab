//! What kernels report while they run: panics (`panic`, `lent`, `suspects`) and printed text (`print`,
//! `addresses`). Both are in page-locked host memory. A launch that may panic gets the address of a record;
//! modules find the buffer of texts through a variable. The host reads both after it has waited for the
//! device.

mod addresses;
mod lent;
mod panic;
mod print;
mod suspects;

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use cudarc::driver::sys::CUmodule;
use ferrogrid_device::failure::FailureRecord;
use ferrogrid_device::output::OUTPUT_SYMBOL;

pub(crate) use self::lent::Lent;
use self::panic::PanicRecord;
use self::print::PrintBuffer;
use super::device::CudaDevice;
use super::memory::host::PORTABLE_AND_MAPPED;
use crate::backend::device::DeviceMemory;
use crate::error::{Error, LaunchedKernel, Result};
use crate::kernel::Kernel;
use crate::output::Output;
use crate::sync::lock;

/// The bytes of the print buffer by default: as many as CUDA's printf has.
const DEFAULT_CAPACITY: usize = 1 << 20;

/// The feedback of one device.
pub(super) struct Feedback {
    /// The free ones.
    records: Mutex<Vec<PanicRecord>>,
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

// SAFETY: both are plain addresses of memory that is never freed; no code reads it after a reset of the device.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Feedback {
    pub(super) fn new() -> Self {
        Feedback {
            records: Mutex::new(Vec::new()),
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
        lock(&self.loaded).push(kernel);
    }

    /// Tells a freshly loaded module of `device`, whose context is bound, where to write, if it `prints`. One that does not has no
    /// such variable, and is not asked for it: to tools that watch the driver that would be an error of the program.
    pub(super) fn connect(&self, device: &CudaDevice, module: CUmodule, prints: bool) -> Result<()> {
        if prints {
            let variable = variable(device, module, OUTPUT_SYMBOL)?;
            let make = || PrintBuffer::new(device, self.capacity.load(Ordering::Relaxed));
            let buffer = self.buffer.get_or_init(make).as_ref();
            set(device, variable, buffer.map_err(Error::clone)?.address())?;
        }
        Ok(())
    }

    /// A free record of `device`.
    fn lend(&self, device: &CudaDevice) -> Result<PanicRecord> {
        let mut free = lock(&self.records);
        if let Some(record) = free.pop() {
            return Ok(record);
        }
        device.bind()?;
        let [record, rest @ ..] = PanicRecord::several(device)?;
        free.extend(rest);
        Ok(record)
    }

    fn take_back(&self, device: &CudaDevice, record: PanicRecord) {
        if device.has_been_reset() {
            return; // its memory is gone
        }
        record.clear();
        lock(&self.records).push(record);
    }

    /// Shows what has been printed on `device`.
    #[inline]
    pub(super) fn show(&self, device: &CudaDevice) -> Result<()> {
        if !device.has_been_reset()
            && let Some(Ok(buffer)) = self.buffer.get()
            && buffer.has_text()
        {
            device.bind()?;
            buffer.read(device).iter().for_each(|text| self.output.deliver(text));
        }
        Ok(())
    }

    /// The panic in `record`, if there is one. Waits for a thread that is writing it. `recent` are the launches that
    /// may have been given the record.
    fn panic_in(
        &self,
        record: &PanicRecord,
        device: &CudaDevice,
        recent: &[LaunchedKernel],
    ) -> Result<Option<Error>> {
        if record.is_free() {
            return Ok(None);
        }
        while record.is_being_written() {
            // A device that has failed meanwhile says so.
            device.memory_info()?;
            std::thread::yield_now();
        }
        device.bind()?;
        let Some(panic) = record.read(device) else { return Ok(None) };
        let loaded = lock(&self.loaded).clone();
        let (kernel, launched) = suspects::find(&loaded, recent, &panic.file, panic.line);
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

/// The address of a module's variable, which is a `u64`.
fn variable(device: &CudaDevice, module: CUmodule, name: &str) -> Result<u64> {
    let symbol = CString::new(name).unwrap_or_default();
    let (mut address, mut bytes) = (0, 0);
    // SAFETY: both are valid for the call, the module is loaded, and the name ends in 0.
    let code = unsafe { device.driver().module_global(&mut address, &mut bytes, module, symbol.as_ptr()) };
    device.check(code, name)?;
    debug_assert_eq!(bytes, size_of::<u64>(), "{name}");
    Ok(address)
}

fn set(device: &CudaDevice, variable: u64, value: u64) -> Result<()> {
    // SAFETY: the variable has eight bytes, and no kernel that knows of it runs yet.
    let code = unsafe { device.driver().write_now(variable, (&raw const value).cast(), size_of::<u64>()) };
    device.check(code, "a variable of device code")
}

impl Mapped {
    /// What is `offset` bytes further on; inside the memory.
    fn at(self, offset: usize) -> Self {
        Mapped { host: self.host.wrapping_add(offset), device: self.device + offset as u64 }
    }

    /// `bytes` of zeros, for the rest of the process: kernels may write to them whenever they run.
    fn allocate(device: &CudaDevice, bytes: usize) -> Result<Self> {
        let driver = device.driver();
        let mut host: *mut c_void = null_mut();
        // SAFETY: `host` is valid for the call, and the context is bound.
        let code = unsafe { driver.host_allocate(&mut host, bytes, PORTABLE_AND_MAPPED) };
        device.check(code, &format_args!("{bytes} bytes"))?;
        // SAFETY: just allocated with that many bytes.
        unsafe { host.cast::<u8>().write_bytes(0, bytes) };
        // SAFETY: `to` is valid for the call, and the memory was allocated as mapped.
        let address = device
            .get(&format_args!("{bytes} bytes"), |driver, to| unsafe { driver.host_address(to, host, 0) })?;
        Ok(Mapped { host: host.cast(), device: address })
    }
}

/// The record is written as whole by the device.
const _: () = assert!(size_of::<FailureRecord>().is_multiple_of(16));
