//! NVRTC: compiles CUDA C++ source to PTX, machine code or LTO IR at run time.

use std::ffi::{CStr, CString, c_char, c_int};

use super::compile_options::CompileOptions;
use super::{Handle, Live, Toolkit, c_string, c_strings, library_calls, text};
use crate::error::Result;
use crate::error::foreign::ForeignError;

pub(super) const NVRTC: Toolkit = Toolkit {
    name: "NVRTC",
    package: "nvidia-cuda-nvrtc",
    variable: "FERROGRID_NVRTC",
    #[cfg(not(windows))]
    files: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
    #[cfg(windows)]
    files: &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"],
    errors: &[
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "NVRTC_ERROR_INTERNAL_ERROR",
    ],
};

library_calls! { NVRTC, "nvrtc", [""];
    version = "Version"(*mut c_int, *mut c_int);
    create = "CreateProgram"(
        *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
    );
    destroy = "DestroyProgram"(*mut Handle);
    compile = "CompileProgram"(Handle, c_int, *const *const c_char);
    log_size = "GetProgramLogSize"(Handle, *mut usize);
    log = "GetProgramLog"(Handle, *mut c_char);
    ptx_size = "GetPTXSize"(Handle, *mut usize);
    ptx = "GetPTX"(Handle, *mut c_char);
    cubin_size = "GetCUBINSize"(Handle, *mut usize);
    cubin = "GetCUBIN"(Handle, *mut c_char);
    lto_ir_size = "GetLTOIRSize"(Handle, *mut usize);
    lto_ir = "GetLTOIR"(Handle, *mut c_char);
    optix_ir_size = "GetOptiXIRSize"(Handle, *mut usize);
    optix_ir = "GetOptiXIR"(Handle, *mut c_char);
    arch_count = "GetNumSupportedArchs"(*mut c_int);
    archs = "GetSupportedArchs"(*mut c_int);
    add_name = "AddNameExpression"(Handle, *const c_char);
    lowered_name = "GetLoweredName"(Handle, *const c_char, *mut *const c_char);
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompiledProgram {
    /// The program's name.
    pub name: String,
    /// What it was compiled for: [`CompileOptions::architecture`].
    pub architecture: String,
    /// PTX; empty if LTO IR or OptiX IR was requested.
    pub ptx: String,
    /// Machine code, if the architecture was a real one (`sm_90`); else empty.
    pub cubin: Vec<u8>,
    /// LTO IR for [`NvJitLink`](crate::NvJitLink), if it was requested ([`CompileOptions::with_link_time_optimization`]);
    /// else empty.
    pub lto_ir: Vec<u8>,
    /// OptiX IR, if it was requested ([`CompileOptions::with_optix_ir`]); else empty.
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
        Ok(Nvrtc { calls: Calls::load()? })
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
        // SAFETY: there is room for as many numbers as it reported.
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
        let calls = self.calls;
        let failed = |code, log: &str| ForeignError::Compile {
            compiler: NVRTC.name,
            program: options.name.as_str().into(),
            log: NVRTC.explain(code, log),
        };
        let (source, name) = (c_string(source), c_string(&options.name));
        let (_names, names) = c_strings(options.headers.iter().map(|(name, _)| name));
        let (_texts, texts) = c_strings(options.headers.iter().map(|(_, text)| text));
        // SAFETY: the program is valid for the call, which copies the strings; each ends in 0, and there are as many headers
        // as stated.
        let (program, code) = Live::create(calls.destroy, |raw| unsafe {
            let count = names.len() as c_int;
            (calls.create)(raw, source.as_ptr(), name.as_ptr(), count, texts.as_ptr(), names.as_ptr())
        });
        let log = || program.log((calls.log_size, calls.log));
        let check = |code| if code == 0 { Ok(()) } else { Err(failed(code, &log())) };
        check(code)?;
        let (expressions, _) = c_strings(&options.name_expressions);
        for expression in &expressions {
            // SAFETY: the program is live, and the name ends in 0.
            check(unsafe { (calls.add_name)(program.raw, expression.as_ptr()) })?;
        }
        let (_arguments, arguments) = c_strings(options.arguments());
        // SAFETY: the program is live; there are as many options as stated, each of which ends in 0.
        check(unsafe { (calls.compile)(program.raw, arguments.len() as c_int, arguments.as_ptr()) })?;
        let lowered = |(expression, name): (&CString, &String)| {
            let mut lowered = std::ptr::null();
            // SAFETY: the program is live, the name ends in 0, and `lowered` is valid for the call.
            check(unsafe { (calls.lowered_name)(program.raw, expression.as_ptr(), &mut lowered) })?;
            // SAFETY: on success it is a string that lives as long as the program.
            Ok((name.clone(), unsafe { CStr::from_ptr(lowered) }.to_string_lossy().into_owned()))
        };
        let lowered_names = expressions.iter().zip(&options.name_expressions).map(lowered);
        let made = |size, get| program.bytes((size, get)).unwrap_or_default();
        Ok(CompiledProgram {
            name: options.name.clone(),
            architecture: options.architecture.clone(),
            ptx: text(&made(calls.ptx_size, calls.ptx)),
            cubin: made(calls.cubin_size, calls.cubin),
            lto_ir: made(calls.lto_ir_size, calls.lto_ir),
            optix_ir: made(calls.optix_ir_size, calls.optix_ir),
            log: log(),
            lowered_names: lowered_names.collect::<Result<_, ForeignError>>()?,
        })
    }
}

debug_by_methods!(Nvrtc { version });

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
            assert_eq!(*NVRTC.explain(code, ""), *text);
        }
        assert_eq!(*NVRTC.explain(0, "a log"), *"NVRTC error 0\na log");
    }
}
