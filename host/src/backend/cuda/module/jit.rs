//! Options for the driver's compiler and linker in the driver's form, and the logs that it writes.

use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};

use cudarc::driver::sys::CUjit_option as Key;

use crate::backend::cuda::device::option_value;
use crate::image::JitOptions;

/// The room for each log in bytes.
const LOG_BYTES: usize = 64 * 1024;

/// The options of one compilation or link. The driver may write to the values and logs as long as it
/// works on it, so this must live as long; all of it is on the heap, so it may be moved meanwhile.
pub(crate) struct Jit {
    keys: Vec<c_uint>,
    values: Vec<*mut c_void>,
    errors: Log,
    information: Log,
}

/// Text that the driver writes.
struct Log(Box<UnsafeCell<[u8; LOG_BYTES]>>);

impl Log {
    fn new() -> Self {
        Log(Box::new(UnsafeCell::new([0; LOG_BYTES])))
    }

    fn start(&self) -> *mut c_void {
        self.0.get().cast()
    }

    /// What is there now.
    ///
    /// # Safety
    /// No driver call that may write to it is running.
    unsafe fn text(&self) -> String {
        // SAFETY: the caller vouches that nothing writes.
        let bytes = unsafe { &*self.0.get() };
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(LOG_BYTES);
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }
}

impl Jit {
    pub(crate) fn new(options: &JitOptions) -> Self {
        let (errors, information) = (Log::new(), Log::new());
        let mut jit = Jit { keys: Vec::new(), values: Vec::new(), errors, information };
        jit.push(Key::CU_JIT_ERROR_LOG_BUFFER, jit.errors.start());
        jit.push(Key::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, option_value(LOG_BYTES));
        jit.push(Key::CU_JIT_INFO_LOG_BUFFER, jit.information.start());
        jit.push(Key::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, option_value(LOG_BYTES));
        let flag = |on: bool| on.then_some(1);
        for (key, value) in [
            (Key::CU_JIT_MAX_REGISTERS, options.max_registers),
            (Key::CU_JIT_THREADS_PER_BLOCK, options.threads_per_block),
            (Key::CU_JIT_OPTIMIZATION_LEVEL, options.optimization_level),
            (Key::CU_JIT_GENERATE_DEBUG_INFO, flag(options.debug_info)),
            (Key::CU_JIT_GENERATE_LINE_INFO, flag(options.line_info)),
            (Key::CU_JIT_LOG_VERBOSE, flag(options.verbose)),
            (Key::CU_JIT_CACHE_MODE, options.cache_mode.map(|mode| mode as u32)),
        ] {
            if let Some(value) = value {
                jit.push(key, option_value(value as usize));
            }
        }
        jit
    }

    fn push(&mut self, key: Key, value: *mut c_void) {
        self.keys.push(key as c_uint);
        self.values.push(value);
    }

    /// Count, keys and values.
    pub(crate) fn arguments(&mut self) -> (c_uint, *mut c_uint, *mut *mut c_void) {
        (self.keys.len() as c_uint, self.keys.as_mut_ptr(), self.values.as_mut_ptr())
    }

    /// What the driver calls information, such as the registers of each kernel.
    ///
    /// # Safety
    /// No driver call that was given these options is running.
    pub(crate) unsafe fn information(&self) -> String {
        // SAFETY: passed on.
        unsafe { self.information.text() }
    }

    /// `error` with the log of errors below it.
    ///
    /// # Safety
    /// As for `information`.
    pub(crate) unsafe fn explain(&self, error: &str) -> String {
        // SAFETY: passed on.
        let log = unsafe { self.errors.text() };
        if log.is_empty() { error.to_owned() } else { format!("{error}\n{log}") }
    }
}
