//! NVRTC: CUDA C++ source to PTX, machine code or LTO IR, at run time.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use super::compile_options::CompileOptions;
use super::{Toolkit, library_calls, text};
use crate::error::Result;
use crate::foreign::ForeignError;

pub(super) const NVRTC: Toolkit = Toolkit {
    name: "NVRTC",
    package: "nvidia-cuda-nvrtc",
    variable: "FERROGRID_NVRTC",
    #[cfg(not(windows))]
    files: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
    #[cfg(windows)]
    files: &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"],
};

type Program = *mut c_void;

library_calls! {
    version = "Version"(*mut c_int, *mut c_int);
    create = "CreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
    );
    destroy = "DestroyProgram"(*mut Program);
    compile = "CompileProgram"(Program, c_int, *const *const c_char);
    log_size = "GetProgramLogSize"(Program, *mut usize);
    log = "GetProgramLog"(Program, *mut c_char);
    ptx_size = "GetPTXSize"(Program, *mut usize);
    ptx = "GetPTX"(Program, *mut c_char);
    cubin_size = "GetCUBINSize"(Program, *mut usize);
    cubin = "GetCUBIN"(Program, *mut c_char);
    lto_ir_size = "GetLTOIRSize"(Program, *mut usize);
    lto_ir = "GetLTOIR"(Program, *mut c_char);
    optix_ir_size = "GetOptiXIRSize"(Program, *mut usize);
    optix_ir = "GetOptiXIR"(Program, *mut c_char);
    arch_count = "GetNumSupportedArchs"(*mut c_int);
    archs = "GetSupportedArchs"(*mut c_int);
    add_name = "AddNameExpression"(Program, *const c_char);
    lowered_name = "GetLoweredName"(Program, *const c_char, *mut *const c_char);
}

/// NVIDIA's run-time compiler for CUDA C++ (NVRTC), if it is installed. It needs neither a GPU nor a
/// driver. `Copy`; the library stays open.
///
/// ```no_run
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{CompileOptions, Device, Nvrtc};
///
/// const SOURCE: &str = r#"
///     extern "C" __global__ void scale(float a, float* x, size_t n) {
///         size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
///         if (i < n) x[i] *= a;
///     }
/// "#;
/// let device = Device::cuda(0)?;
/// let program = Nvrtc::load()?.compile(SOURCE, &CompileOptions::for_device(&device))?;
/// let scale = device.load_ptx(&program.ptx)?.function("scale")?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct Nvrtc {
    calls: &'static Calls,
}

/// What a compiler, [`Nvrtc`] or [`Nvvm`](crate::Nvvm), made of a program.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{CompileOptions, Nvrtc};
///
/// let device = Device::cuda(0)?;
/// let nvrtc = Nvrtc::load()?;
/// println!("NVRTC of CUDA {:?}", nvrtc.version()); // (13, 0)
/// let source = "template <class T> __global__ void scale(T a, T* x) { x[threadIdx.x] *= a; }";
/// let options = CompileOptions::for_device(&device).with_name_expression("scale<float>");
/// let program = nvrtc.compile(source, &options)?;
/// println!("{}", program.log); // warnings
/// let scale = device.load_program(&program)?.function("scale<float>")?;
/// assert_eq!(program.lowered_name("scale<float>"), Some(scale.name())); // _Z5scaleIfEvT_PS0_
/// # let _ = scale;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompiledProgram {
    /// The program's name.
    pub name: String,
    /// What it was compiled for: [`CompileOptions::architecture`].
    pub architecture: String,
    /// PTX; empty if LTO IR or OptiX IR was asked for.
    pub ptx: String,
    /// Machine code, if the architecture was a real one (`sm_90`); else empty.
    pub cubin: Vec<u8>,
    /// LTO IR for [`NvJitLink`](crate::NvJitLink), if it was asked for ([`CompileOptions::with_link_time_optimization`]);
    /// else empty.
    pub lto_ir: Vec<u8>,
    /// OptiX IR, if it was asked for ([`CompileOptions::with_optix_ir`]); else empty.
    pub optix_ir: Vec<u8>,
    /// Warnings of the compiler.
    pub log: String,
    /// (C++ name, mangled name) for each of [`CompileOptions::name_expressions`].
    pub lowered_names: Vec<(String, String)>,
}

impl CompiledProgram {
    /// The mangled name (`nvrtcGetLoweredName`) of a C++ name that was among [`CompileOptions::name_expressions`]: what
    /// [`ForeignModule::function`](crate::ForeignModule::function) takes.
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        self.lowered_names.iter().find(|(name, _)| name == expression).map(|(_, lowered)| &**lowered)
    }
}

impl Nvrtc {
    /// Finds the library: the file that the variable `FERROGRID_NVRTC` names, else what the system's loader
    /// knows as `libnvrtc.so.13` or `.12`. The answer is kept.
    ///
    /// # Errors
    /// [`ForeignError::LibraryMissing`], which says where to get it.
    pub fn load() -> Result<Self> {
        static CALLS: OnceLock<Result<Calls, ForeignError>> = OnceLock::new();
        let find = || Calls::find(NVRTC.open()?, "nvrtc", "");
        match CALLS.get_or_init(find) {
            Ok(calls) => Ok(Nvrtc { calls }),
            Err(error) => Err(error.clone().into()),
        }
    }

    /// Its version (major, minor), which is that of its CUDA toolkit (`nvrtcVersion`).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let nvrtc = ferrogrid::Nvrtc::load()?;
    /// let newest = if nvrtc.version() >= (12, 8) { "compute_120" } else { "compute_90" };
    /// println!("compiling for {newest}");
    /// # Ok(()) }
    /// ```
    pub fn version(&self) -> (u32, u32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are valid for the call. It cannot fail then, and would leave them 0.
        unsafe { (self.calls.version)(&mut major, &mut minor) };
        (major.unsigned_abs(), minor.unsigned_abs())
    }

    /// The architectures that it compiles for (`nvrtcGetSupportedArchs`), oldest first: `sm_75`, for which it also takes
    /// `compute_75`.
    ///
    /// ```no_run
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let newest = ferrogrid_host::Nvrtc::load()?.supported_archs().pop();
    /// println!("{newest:?}"); // Some("sm_121")
    /// # Ok(()) }
    /// ```
    pub fn supported_archs(&self) -> Vec<String> {
        let mut count = 0;
        // SAFETY: the number is valid for the call.
        let code = unsafe { (self.calls.arch_count)(&mut count) };
        let mut numbers = vec![0; if code == 0 { count.unsigned_abs() as usize } else { 0 }];
        // SAFETY: there is room for as many numbers as it said.
        if numbers.is_empty() || unsafe { (self.calls.archs)(numbers.as_mut_ptr()) } != 0 {
            return Vec::new();
        }
        numbers.sort_unstable();
        numbers.iter().map(|number| format!("sm_{number}")).collect()
    }

    /// Compiles a program in CUDA C++ (`nvrtcCompileProgram`).
    ///
    /// # Errors
    /// [`ForeignError::Compile`] with the compiler's messages.
    pub fn compile(&self, source: &str, options: &CompileOptions) -> Result<CompiledProgram> {
        let program = Live::create(self.calls, source, options)?;
        for expression in &options.name_expressions {
            let name = c_string(expression, options)?;
            // SAFETY: the program is live, and the name ends in 0.
            let code = unsafe { (self.calls.add_name)(program.raw, name.as_ptr()) };
            program.check(code, options)?;
        }
        let arguments = c_strings(options.arguments().iter(), options)?;
        let pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
        // SAFETY: the program is live; there are as many options as stated, each of which ends in 0.
        let code = unsafe { (self.calls.compile)(program.raw, pointers.len() as c_int, pointers.as_ptr()) };
        program.check(code, options)?;
        let calls = self.calls;
        Ok(CompiledProgram {
            ptx: String::from_utf8_lossy(&program.bytes(calls.ptx_size, calls.ptx))
                .trim_end_matches('\0')
                .to_owned(),
            cubin: program.bytes(calls.cubin_size, calls.cubin),
            name: options.name.clone(),
            architecture: options.architecture.clone(),
            lto_ir: program.bytes(calls.lto_ir_size, calls.lto_ir),
            optix_ir: program.bytes(calls.optix_ir_size, calls.optix_ir),
            log: program.log(),
            lowered_names: program.lowered_names(options)?,
        })
    }
}

/// A program in the compiler, destroyed when dropped.
struct Live {
    calls: &'static Calls,
    raw: Program,
}

type Size = unsafe extern "C" fn(Program, *mut usize) -> u32;
type Get = unsafe extern "C" fn(Program, *mut c_char) -> u32;

impl Live {
    fn create(calls: &'static Calls, source: &str, options: &CompileOptions) -> Result<Self> {
        let (source, name) = (c_string(source, options)?, c_string(&options.name, options)?);
        let names = c_strings(options.headers.iter().map(|(name, _)| name), options)?;
        let texts = c_strings(options.headers.iter().map(|(_, text)| text), options)?;
        let pointers = |strings: &[CString]| strings.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (name_pointers, text_pointers) = (pointers(&names), pointers(&texts));
        let mut raw = null_mut();
        // SAFETY: `raw` is valid for the call, which copies the strings; each ends in 0, and there are as
        // many headers as stated.
        let code = unsafe {
            (calls.create)(
                &mut raw,
                source.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                text_pointers.as_ptr(),
                name_pointers.as_ptr(),
            )
        };
        if code != 0 {
            return Err(failed(options, &explain(code), ""));
        }
        Ok(Live { calls, raw })
    }

    fn check(&self, code: u32, options: &CompileOptions) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(failed(options, &explain(code), &self.log())) }
    }

    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is valid for the call.
        let code = unsafe { (self.calls.log_size)(self.raw, &mut size) };
        // SAFETY: the program is live, and there is room for as many bytes as it said.
        text(if code == 0 { size } else { 0 }, |target| unsafe { (self.calls.log)(self.raw, target) })
    }

    /// What `get` writes; empty if there is no such thing.
    fn bytes(&self, size: Size, get: Get) -> Vec<u8> {
        let mut len = 0;
        // SAFETY: the program is live, and `len` is valid for the call.
        if unsafe { size(self.raw, &mut len) } != 0 {
            return Vec::new();
        }
        let mut bytes = vec![0; len];
        // SAFETY: the program is live, and there is room for as many bytes as it said.
        if len == 0 || unsafe { get(self.raw, bytes.as_mut_ptr().cast()) } != 0 {
            return Vec::new();
        }
        bytes
    }

    fn lowered_names(&self, options: &CompileOptions) -> Result<Vec<(String, String)>> {
        let mut names = Vec::new();
        for expression in &options.name_expressions {
            let name = c_string(expression, options)?;
            let mut lowered = std::ptr::null();
            // SAFETY: the program is live, the name ends in 0, and `lowered` is valid for the call.
            let code = unsafe { (self.calls.lowered_name)(self.raw, name.as_ptr(), &mut lowered) };
            self.check(code, options)?;
            // SAFETY: on success it is a string that lives as long as the program.
            let lowered = unsafe { CStr::from_ptr(lowered) }.to_string_lossy().into_owned();
            names.push((expression.clone(), lowered));
        }
        Ok(names)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // SAFETY: the program is live, and not used again.
        unsafe { (self.calls.destroy)(&mut self.raw) };
    }
}

fn failed(options: &CompileOptions, reason: &str, log: &str) -> crate::Error {
    let log = if log.is_empty() { reason.to_owned() } else { format!("{reason}\n{log}") };
    ForeignError::Compile { compiler: NVRTC.name, program: options.name.as_str().into(), log: log.into() }
        .into()
}

/// The name of a code; later versions may have further ones.
fn explain(code: u32) -> String {
    let name = match code {
        1 => "NVRTC_ERROR_OUT_OF_MEMORY",
        2 => "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        3 => "NVRTC_ERROR_INVALID_INPUT",
        4 => "NVRTC_ERROR_INVALID_PROGRAM",
        5 => "NVRTC_ERROR_INVALID_OPTION",
        6 => "NVRTC_ERROR_COMPILATION",
        7 => "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        10 => "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        11 => "NVRTC_ERROR_INTERNAL_ERROR",
        _ => return format!("NVRTC error {code}"),
    };
    format!("{name} ({code})")
}

fn c_string(text: &str, options: &CompileOptions) -> Result<CString> {
    CString::new(text).map_err(|error| failed(options, &format!("{error}: {text:?}"), ""))
}

fn c_strings<'a>(texts: impl Iterator<Item = &'a String>, options: &CompileOptions) -> Result<Vec<CString>> {
    texts.map(|text| c_string(text, options)).collect()
}

impl std::fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.version();
        write!(f, "Nvrtc({major}.{minor})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_that_nvrtc_gives_them() {
        for (code, text) in [
            (1, "NVRTC_ERROR_OUT_OF_MEMORY (1)"),
            (2, "NVRTC_ERROR_PROGRAM_CREATION_FAILURE (2)"),
            (6, "NVRTC_ERROR_COMPILATION (6)"),
            (11, "NVRTC_ERROR_INTERNAL_ERROR (11)"),
            (99, "NVRTC error 99"),
        ] {
            assert_eq!(explain(code), text);
        }
    }
}
