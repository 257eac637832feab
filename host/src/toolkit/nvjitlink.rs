//! nvJitLink: PTX, cubins, fatbins, libraries and LTO IR into one cubin, optimised across all of them.

use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::OnceLock;

use super::{Toolkit, library_calls, text};
use crate::error::Result;
use crate::foreign::{CodeType, ForeignError, LinkedImage};

pub(super) const NVJITLINK: Toolkit = Toolkit {
    name: "nvJitLink",
    package: "nvidia-nvjitlink",
    variable: "FERROGRID_NVJITLINK",
    #[cfg(not(windows))]
    files: &["libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"],
    #[cfg(windows)]
    files: &["nvJitLink_130_0.dll", "nvJitLink_120_0.dll"],
};

/// What follows the names of its functions: each has that of the first version that had it in this form.
const SUFFIXES: [&str; 2] = ["_13_0", "_12_0"];

type Handle = *mut c_void;

library_calls! {
    create = "Create"(*mut Handle, u32, *const *const c_char);
    destroy = "Destroy"(*mut Handle);
    add = "AddData"(Handle, u32, *const c_void, usize, *const c_char);
    complete = "Complete"(Handle);
    cubin_size = "GetLinkedCubinSize"(Handle, *mut usize);
    cubin = "GetLinkedCubin"(Handle, *mut c_void);
    error_log_size = "GetErrorLogSize"(Handle, *mut usize);
    error_log = "GetErrorLog"(Handle, *mut c_char);
    info_log_size = "GetInfoLogSize"(Handle, *mut usize);
    info_log = "GetInfoLog"(Handle, *mut c_char);
}

/// A link by NVIDIA's nvJitLink, if it is installed. Unlike [`Linker`](crate::Linker) it takes LTO IR, and
/// needs neither a GPU nor a driver.
///
/// ```no_run
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{CodeType, CompileOptions, NvJitLink, Nvrtc};
///
/// let options = CompileOptions::new().with_architecture("compute_90").with_option("-dlto");
/// let program = Nvrtc::load()?.compile("__global__ void empty() {}", &options)?;
/// let mut link = NvJitLink::new(&["-arch=sm_90", "-lto"])?;
/// link.add(CodeType::LtoIr, "empty", &program.lto_ir)?;
/// let cubin = link.complete()?.cubin;
/// # Ok(()) }
/// ```
pub struct NvJitLink {
    calls: &'static Calls,
    raw: Handle,
}

// SAFETY: a link is used by one thread at a time (`&mut self`), which need not be the same.
unsafe impl Send for NvJitLink {}

/// The number of a `nvJitLinkInputType`.
fn number(kind: CodeType) -> u32 {
    match kind {
        CodeType::Cubin => 1,
        CodeType::Ptx => 2,
        CodeType::LtoIr => 3,
        CodeType::Fatbin => 4,
        CodeType::Object => 5,
        CodeType::Library => 6,
    }
}

fn calls() -> Result<&'static Calls> {
    static CALLS: OnceLock<Result<Calls, ForeignError>> = OnceLock::new();
    let find = || {
        let library = NVJITLINK.open()?;
        let [new, old] = SUFFIXES.map(|suffix| Calls::find(library, "__nvJitLink", suffix));
        new.or(old)
    };
    CALLS.get_or_init(find).as_ref().map_err(|error| error.clone().into())
}

impl NvJitLink {
    /// A link with options as nvJitLink has them; `-arch=sm_90` or the like must be among them
    /// (`nvJitLinkCreate`). The library is the file that the variable `FERROGRID_NVJITLINK` names, else what
    /// the system's loader knows as `libnvJitLink.so.13` or `.12`.
    ///
    /// # Errors
    /// [`ForeignError::LibraryMissing`], which says where to get it; [`ForeignError::Link`] for options
    /// that make no sense.
    pub fn new(options: &[&str]) -> Result<Self> {
        let calls = calls()?;
        let strings: Vec<CString> = options.iter().map(|option| c_string(option)).collect();
        let pointers: Vec<*const c_char> = strings.iter().map(|option| option.as_ptr()).collect();
        let mut raw = null_mut();
        // SAFETY: `raw` is valid for the call; there are as many options as stated, each ends in 0.
        let code = unsafe { (calls.create)(&mut raw, pointers.len() as u32, pointers.as_ptr()) };
        let link = NvJitLink { calls, raw };
        link.check(code, "the options")?;
        Ok(link)
    }

    /// Adds an input; `name` is for messages (`nvJitLinkAddData`).
    ///
    /// # Errors
    /// [`ForeignError::Link`] with the linker's log.
    pub fn add(&mut self, kind: CodeType, name: &str, data: &[u8]) -> Result<()> {
        // PTX must end in a 0, which is counted.
        let mut copy;
        let data = if kind == CodeType::Ptx && data.last() != Some(&0) {
            copy = data.to_vec();
            copy.push(0);
            &copy
        } else {
            data
        };
        let c_name = c_string(name);
        // SAFETY: the link is live; the data has that many bytes, and the name ends in 0.
        let code = unsafe {
            (self.calls.add)(self.raw, number(kind), data.as_ptr().cast(), data.len(), c_name.as_ptr())
        };
        self.check(code, name)
    }

    /// Links what was added (`nvJitLinkComplete`, `nvJitLinkGetLinkedCubin`).
    ///
    /// # Errors
    /// [`ForeignError::Link`] with the linker's log: an undefined symbol, for example.
    pub fn complete(self) -> Result<LinkedImage> {
        // SAFETY: the link is live.
        self.check(unsafe { (self.calls.complete)(self.raw) }, "the program")?;
        let mut size = 0;
        // SAFETY: the link is live and complete, and `size` is valid for the call.
        self.check(unsafe { (self.calls.cubin_size)(self.raw, &mut size) }, "the program")?;
        let mut cubin = vec![0_u8; size];
        // SAFETY: there is room for as many bytes as it said.
        let code = unsafe { (self.calls.cubin)(self.raw, cubin.as_mut_ptr().cast()) };
        self.check(code, "the program")?;
        let log = self.log(self.calls.info_log_size, self.calls.info_log);
        Ok(LinkedImage::new(cubin, log))
    }

    fn check(&self, code: u32, input: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let log = match self.raw.is_null() {
            true => String::new(),
            false => self.log(self.calls.error_log_size, self.calls.error_log),
        };
        let log = format!("{}\n{log}", explain(code)).trim_end().into();
        Err(ForeignError::Link { linker: "nvJitLink", input: input.into(), log }.into())
    }

    fn log(
        &self,
        size: unsafe extern "C" fn(Handle, *mut usize) -> u32,
        get: unsafe extern "C" fn(Handle, *mut c_char) -> u32,
    ) -> String {
        let mut bytes = 0;
        // SAFETY: the link is live, and `bytes` is valid for the call.
        let code = unsafe { size(self.raw, &mut bytes) };
        // SAFETY: the link is live, and there is room for as many bytes as it said.
        text(if code == 0 { bytes } else { 0 }, |target| unsafe { get(self.raw, target) })
    }
}

impl Drop for NvJitLink {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the link is live, and not used again.
            unsafe { (self.calls.destroy)(&mut self.raw) };
        }
    }
}

impl fmt::Debug for NvJitLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NvJitLink").finish_non_exhaustive()
    }
}

/// The name of a code; later versions may have further ones.
fn explain(code: u32) -> String {
    let name = match code {
        1 => "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
        2 => "NVJITLINK_ERROR_MISSING_ARCH",
        3 => "NVJITLINK_ERROR_INVALID_INPUT",
        4 => "NVJITLINK_ERROR_PTX_COMPILE",
        5 => "NVJITLINK_ERROR_NVVM_COMPILE",
        6 => "NVJITLINK_ERROR_INTERNAL",
        7 => "NVJITLINK_ERROR_THREADPOOL",
        8 => "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
        9 => "NVJITLINK_ERROR_FINALIZE",
        _ => return format!("nvJitLink error {code}"),
    };
    format!("{name} ({code})")
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}
