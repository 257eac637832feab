//! nvJitLink: links PTX, cubins, fatbins, libraries and LTO IR into one cubin, with optimisation across all of them.

use std::ffi::{c_char, c_void};

use super::{Handle, Live, Toolkit, c_string, c_strings, library_calls};
use crate::error::Result;
use crate::error::foreign::ForeignError;
use crate::image::{CodeType, LinkedImage};

pub(super) const NVJITLINK: Toolkit = Toolkit {
    name: "nvJitLink",
    package: "nvidia-nvjitlink",
    variable: "FERROGRID_NVJITLINK",
    #[cfg(not(windows))]
    files: &["libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"],
    #[cfg(windows)]
    files: &["nvJitLink_130_0.dll", "nvJitLink_120_0.dll"],
    errors: &[
        "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
        "NVJITLINK_ERROR_MISSING_ARCH",
        "NVJITLINK_ERROR_INVALID_INPUT",
        "NVJITLINK_ERROR_PTX_COMPILE",
        "NVJITLINK_ERROR_NVVM_COMPILE",
        "NVJITLINK_ERROR_INTERNAL",
        "NVJITLINK_ERROR_THREADPOOL",
        "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
        "NVJITLINK_ERROR_FINALIZE",
    ],
};

/// What follows the names of its functions: each has that of the first version that had it in this form.
const SUFFIXES: [&str; 2] = ["_13_0", "_12_0"];

library_calls! { NVJITLINK, "__nvJitLink", SUFFIXES;
    create = "Create"(*mut Handle, u32, *const *const c_char);
    destroy = "Destroy"(*mut Handle);
    add = "AddData"(Handle, u32, *const c_void, usize, *const c_char);
    complete = "Complete"(Handle);
    cubin_size = "GetLinkedCubinSize"(Handle, *mut usize);
    cubin = "GetLinkedCubin"(Handle, *mut c_char);
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
    live: Live,
}

// SAFETY: a link is used by one thread at a time (`&mut self`), which need not be the same.
unsafe impl Send for NvJitLink {}

impl NvJitLink {
    /// A link with options as nvJitLink has them; `-arch=sm_90` or the like must be among them
    /// (`nvJitLinkCreate`). The library is the file that the variable `FERROGRID_NVJITLINK` names, else what
    /// the system's loader knows as `libnvJitLink.so.13` or `.12`.
    ///
    /// # Errors
    /// [`ForeignError::LibraryMissing`], which says where to get it; [`ForeignError::Link`] for options
    /// that make no sense.
    pub fn new(options: &[&str]) -> Result<Self> {
        let calls = Calls::load()?;
        let (_strings, options) = c_strings(options);
        // SAFETY: the link is valid for the call; there are as many options as stated, each ends in 0.
        let (live, code) = Live::create(calls.destroy, |raw| unsafe {
            (calls.create)(raw, options.len() as u32, options.as_ptr())
        });
        let link = NvJitLink { calls, live };
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
            (self.calls.add)(self.live.raw, kind as u32, data.as_ptr().cast(), data.len(), c_name.as_ptr())
        };
        self.check(code, name)
    }

    /// Links what was added (`nvJitLinkComplete`, `nvJitLinkGetLinkedCubin`).
    ///
    /// # Errors
    /// [`ForeignError::Link`] with the linker's log: an undefined symbol, for example.
    pub fn complete(self) -> Result<LinkedImage> {
        // SAFETY: the link is live.
        self.check(unsafe { (self.calls.complete)(self.live.raw) }, "the program")?;
        let cubin = self.live.bytes((self.calls.cubin_size, self.calls.cubin));
        let cubin = cubin.or_else(|code| self.check(code, "the program").map(|()| Vec::new()))?;
        let log = self.live.log((self.calls.info_log_size, self.calls.info_log));
        Ok(LinkedImage::new(cubin, log))
    }

    fn check(&self, code: u32, input: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let log = self.live.log((self.calls.error_log_size, self.calls.error_log));
        let log = NVJITLINK.explain(code, &log);
        Err(ForeignError::Link { linker: NVJITLINK.name, input: input.into(), log }.into())
    }
}

debug_by_methods!(NvJitLink {});
