//! libNVVM: NVVM IR, a dialect of LLVM's, to PTX or LTO IR at run time.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::OnceLock;

use super::{CompiledProgram, Toolkit, library_calls, text};
use crate::error::Result;
use crate::foreign::ForeignError;

pub(super) const NVVM: Toolkit = Toolkit {
    name: "libNVVM",
    package: "nvidia-nvvm",
    variable: "FERROGRID_NVVM",
    #[cfg(not(windows))]
    files: &["libnvvm.so.4", "libnvvm.so"],
    #[cfg(windows)]
    files: &["nvvm64_40_0.dll"],
};

type Program = *mut c_void;

library_calls! {
    version = "Version"(*mut c_int, *mut c_int);
    ir_version = "IRVersion"(*mut c_int, *mut c_int, *mut c_int, *mut c_int);
    create = "CreateProgram"(*mut Program);
    destroy = "DestroyProgram"(*mut Program);
    add = "AddModuleToProgram"(Program, *const c_char, usize, *const c_char);
    compile = "CompileProgram"(Program, c_int, *const *const c_char);
    result_size = "GetCompiledResultSize"(Program, *mut usize);
    result = "GetCompiledResult"(Program, *mut c_char);
    log_size = "GetProgramLogSize"(Program, *mut usize);
    log = "GetProgramLog"(Program, *mut c_char);
}

/// NVIDIA's compiler for NVVM IR (libNVVM), if it is installed: for who generates kernels as LLVM does. It needs neither
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
        static CALLS: OnceLock<Result<Calls, ForeignError>> = OnceLock::new();
        let find = || Calls::find(NVVM.open()?, "nvvm", "");
        match CALLS.get_or_init(find) {
            Ok(calls) => Ok(Nvvm { calls }),
            Err(error) => Err(error.clone().into()),
        }
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
        let program = Live::create(self.calls, name)?;
        for (name, ir) in modules {
            let c_name = c_string(name);
            // SAFETY: the program is live, the module has that many bytes, and its name ends in 0.
            let code =
                unsafe { (self.calls.add)(program.raw, ir.as_ptr().cast(), ir.len(), c_name.as_ptr()) };
            program.check(code)?;
        }
        let arguments: Vec<CString> = options.iter().map(|option| c_string(option)).collect();
        let pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
        // SAFETY: the program is live; there are as many options as stated, each of which ends in 0.
        let code = unsafe { (self.calls.compile)(program.raw, pointers.len() as c_int, pointers.as_ptr()) };
        program.check(code)?;
        let result = program.result()?;
        let (ptx, lto_ir) = match options.contains(&"-gen-lto") {
            true => (String::new(), result),
            false => (String::from_utf8_lossy(&result).trim_end_matches('\0').to_owned(), Vec::new()),
        };
        let architecture = options.iter().find_map(|option| option.strip_prefix("-arch="));
        Ok(CompiledProgram {
            name: name.into(),
            architecture: architecture.unwrap_or_default().into(),
            ptx,
            cubin: Vec::new(),
            lto_ir,
            optix_ir: Vec::new(),
            log: program.log(),
            lowered_names: Vec::new(),
        })
    }
}

/// A program in the compiler, destroyed when dropped.
struct Live<'a> {
    calls: &'static Calls,
    name: &'a str,
    raw: Program,
}

impl<'a> Live<'a> {
    fn create(calls: &'static Calls, name: &'a str) -> Result<Self> {
        let mut program = Live { calls, name, raw: null_mut() };
        // SAFETY: `raw` is valid for the call.
        let code = unsafe { (calls.create)(&mut program.raw) };
        program.check(code)?;
        Ok(program)
    }

    fn check(&self, code: u32) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let log = if self.raw.is_null() { String::new() } else { self.log() };
        let log = format!("{}\n{log}", explain(code)).trim_end().into();
        Err(ForeignError::Compile { compiler: NVVM.name, program: self.name.into(), log }.into())
    }

    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is valid for the call.
        let code = unsafe { (self.calls.log_size)(self.raw, &mut size) };
        // SAFETY: the program is live, and there is room for as many bytes as it said.
        text(if code == 0 { size } else { 0 }, |target| unsafe { (self.calls.log)(self.raw, target) })
    }

    fn result(&self) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is live and compiled, and `size` is valid for the call.
        self.check(unsafe { (self.calls.result_size)(self.raw, &mut size) })?;
        let mut bytes = vec![0_u8; size];
        // SAFETY: the program is live, and there is room for as many bytes as it said.
        self.check(unsafe { (self.calls.result)(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the program is live, and not used again.
            unsafe { (self.calls.destroy)(&mut self.raw) };
        }
    }
}

impl fmt::Debug for Nvvm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.version();
        write!(f, "Nvvm({major}.{minor})")
    }
}

/// The name of a code; later versions may have further ones.
fn explain(code: u32) -> String {
    let name = match code {
        1 => "NVVM_ERROR_OUT_OF_MEMORY",
        2 => "NVVM_ERROR_PROGRAM_CREATION_FAILURE",
        3 => "NVVM_ERROR_IR_VERSION_MISMATCH",
        4 => "NVVM_ERROR_INVALID_INPUT",
        5 => "NVVM_ERROR_INVALID_PROGRAM",
        6 => "NVVM_ERROR_INVALID_IR",
        7 => "NVVM_ERROR_INVALID_OPTION",
        8 => "NVVM_ERROR_NO_MODULE_IN_PROGRAM",
        9 => "NVVM_ERROR_COMPILATION",
        10 => "NVVM_ERROR_CANCELLED",
        _ => return format!("libNVVM error {code}"),
    };
    format!("{name} ({code})")
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}
