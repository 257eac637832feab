//! libNVVM: compiles NVVM IR, a dialect of LLVM IR, to PTX or LTO IR at run time.

use std::ffi::{c_char, c_int};

use super::{CompiledProgram, Handle, Live, Toolkit, c_string, c_strings, library_calls, text};
use crate::error::Result;
use crate::error::foreign::ForeignError;

pub(super) const NVVM: Toolkit = Toolkit {
    name: "libNVVM",
    package: "nvidia-nvvm",
    variable: "FERROGRID_NVVM",
    #[cfg(not(windows))]
    files: &["libnvvm.so.4", "libnvvm.so"],
    #[cfg(windows)]
    files: &["nvvm64_40_0.dll"],
    errors: &[
        "NVVM_ERROR_OUT_OF_MEMORY",
        "NVVM_ERROR_PROGRAM_CREATION_FAILURE",
        "NVVM_ERROR_IR_VERSION_MISMATCH",
        "NVVM_ERROR_INVALID_INPUT",
        "NVVM_ERROR_INVALID_PROGRAM",
        "NVVM_ERROR_INVALID_IR",
        "NVVM_ERROR_INVALID_OPTION",
        "NVVM_ERROR_NO_MODULE_IN_PROGRAM",
        "NVVM_ERROR_COMPILATION",
        "NVVM_ERROR_CANCELLED",
    ],
};

library_calls! { NVVM, "nvvm", [""];
    version = "Version"(*mut c_int, *mut c_int);
    ir_version = "IRVersion"(*mut c_int, *mut c_int, *mut c_int, *mut c_int);
    create = "CreateProgram"(*mut Handle);
    destroy = "DestroyProgram"(*mut Handle);
    add = "AddModuleToProgram"(Handle, *const c_char, usize, *const c_char);
    compile = "CompileProgram"(Handle, c_int, *const *const c_char);
    result_size = "GetCompiledResultSize"(Handle, *mut usize);
    result = "GetCompiledResult"(Handle, *mut c_char);
    log_size = "GetProgramLogSize"(Handle, *mut usize);
    log = "GetProgramLog"(Handle, *mut c_char);
}

/// NVIDIA's compiler for NVVM IR (libNVVM), if it is installed, for generators of LLVM-like IR. It needs neither
/// a GPU nor a driver. `Copy`; the library stays open.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::Nvvm;
///
/// let device = Device::cuda(0)?;
/// let ir = std::fs::read("kernel.bc").unwrap(); // or text, `.ll`
/// let libdevice = std::fs::read("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc").unwrap();
/// let nvvm = Nvvm::load()?;
/// println!("libNVVM {:?}, IR {:?}", nvvm.version(), nvvm.ir_version());
/// let modules = [("kernel.bc", &*ir), ("libdevice", &*libdevice)];
/// let program = nvvm.compile(&modules, &["-arch=compute_90", "-ftz=1"])?;
/// let kernel = device.load_program(&program)?.function("kernel")?;
/// # let _ = kernel;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct Nvvm {
    calls: &'static Calls,
}

impl Nvvm {
    /// Finds the library: the file that the variable `FERROGRID_NVVM` names, else what the system's loader, Python's and
    /// conda's active environment, and toolkits have. The answer is kept.
    ///
    /// # Errors
    /// [`ForeignError::LibraryMissing`], which says where to get it.
    pub fn load() -> Result<Self> {
        Ok(Nvvm { calls: Calls::load()? })
    }

    /// Its version (major, minor) (`nvvmVersion`).
    pub fn version(&self) -> (u32, u32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are valid for the call. It cannot fail then, and would leave them 0.
        unsafe { (self.calls.version)(&mut major, &mut minor) };
        (major.unsigned_abs(), minor.unsigned_abs())
    }

    /// The version (major, minor) of NVVM IR that it takes (`nvvmIRVersion`), as `!nvvmir.version` states it.
    pub fn ir_version(&self) -> (u32, u32) {
        let [mut major, mut minor, mut debug_major, mut debug_minor] = [0; 4];
        // SAFETY: all are valid for the call. It cannot fail then, and would leave them 0.
        unsafe { (self.calls.ir_version)(&mut major, &mut minor, &mut debug_major, &mut debug_minor) };
        (major.unsigned_abs(), minor.unsigned_abs())
    }

    /// Links modules of NVVM IR, (name in messages, bitcode or text), and compiles them (`nvvmCompileProgram`), with
    /// options as libNVVM has them: `-arch=compute_90`, `-opt=0`, `-g`, `-ftz=1`. The program has the name of the first
    /// module, and PTX; with `-gen-lto` it has LTO IR instead.
    ///
    /// # Errors
    /// [`ForeignError::Compile`] with the compiler's messages.
    pub fn compile(&self, modules: &[(&str, &[u8])], options: &[&str]) -> Result<CompiledProgram> {
        let name = modules.first().map_or("", |(name, _)| name);
        let calls = self.calls;
        // SAFETY: the program is valid for the call.
        let (program, code) = Live::create(calls.destroy, |raw| unsafe { (calls.create)(raw) });
        let log = || program.log((calls.log_size, calls.log));
        let check = |code| match code {
            0 => Ok(()),
            code => Err(ForeignError::Compile {
                compiler: NVVM.name,
                program: name.into(),
                log: NVVM.explain(code, &log()),
            }),
        };
        check(code)?;
        for (name, ir) in modules {
            let c_name = c_string(name);
            // SAFETY: the program is live, the module has that many bytes, and its name ends in 0.
            check(unsafe { (calls.add)(program.raw, ir.as_ptr().cast(), ir.len(), c_name.as_ptr()) })?;
        }
        let (_arguments, arguments) = c_strings(options);
        // SAFETY: the program is live; there are as many options as stated, each of which ends in 0.
        check(unsafe { (calls.compile)(program.raw, arguments.len() as c_int, arguments.as_ptr()) })?;
        let result = program.bytes((calls.result_size, calls.result));
        let result = result.or_else(|code| check(code).map(|()| Vec::new()))?;
        let (ptx, lto_ir) = match options.contains(&"-gen-lto") {
            true => (String::new(), result),
            false => (text(&result), Vec::new()),
        };
        let architecture = options.iter().find_map(|option| option.strip_prefix("-arch="));
        Ok(CompiledProgram {
            name: name.into(),
            architecture: architecture.unwrap_or_default().into(),
            ptx,
            lto_ir,
            log: log(),
            ..CompiledProgram::default()
        })
    }
}

debug_by_methods!(Nvvm { version });
