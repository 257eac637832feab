//! Compiled modules in the driver: the best image that the device and the driver support, loaded once per
//! device.
//!
//! `program` reads what a module's text says of itself, `function` answers questions about kernels, `foreign`
//! loads other compilers' code, `link` and `jit` are the driver's linker and its options, `linking` links kernels with
//! functions of other code.

pub(crate) mod foreign;
pub(crate) mod function;
pub(crate) mod jit;
pub(crate) mod link;
pub(crate) mod linking;
pub(crate) mod program;

use std::ffi::{CString, c_int};
use std::fmt::Write;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule};

use super::device::{CudaDevice, Handle};
use crate::backend::device::BackendDevice;
use crate::error::foreign::ForeignError;
use crate::error::{Error, LaunchError, Result};
use crate::image::{CodeType, Image, JitOptions};
use crate::kernel::image::{ModuleImage, Ptx};
use crate::kernel::{Kernel, Loaded};
use crate::sync::lock;
use jit::Jit;
use linking::linked;
use program::Program;

/// A module that is loaded.
#[derive(Clone)]
pub(super) struct Module {
    raw: Handle<CUmodule>,
    /// What its text says, or that of which its machine code was made.
    program: Arc<Program>,
    /// What of its image was loaded.
    code_type: CodeType,
    users: Arc<Users>,
}

/// What refers to a loaded module.
#[derive(Default)]
struct Users {
    /// Kernels that hold their functions.
    kernels: Mutex<Vec<&'static Kernel>>,
    /// Shared with those who hold addresses of its variables.
    lease: ModuleLease,
}

impl Users {
    fn add(&self, kernel: &'static Kernel) {
        let mut kernels = lock(&self.kernels);
        if !kernels.iter().any(|known| std::ptr::eq(*known, kernel)) {
            kernels.push(kernel);
        }
    }

    /// Marks the module as unloaded, and clears the functions that its kernels have of it.
    fn forget(&self, device: &CudaDevice) {
        self.lease.0.store(true, Ordering::Release);
        let kernels = lock(&self.kernels);
        kernels.iter().for_each(|kernel| kernel.forget_loaded(device.ordinal()));
    }
}

/// Whether a module is still loaded.
#[derive(Clone, Default)]
pub(crate) struct ModuleLease(Arc<AtomicBool>);

impl ModuleLease {
    pub(crate) fn has_ended(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The function of `kernel` on `device`, whose context is bound.
pub(super) fn function(device: &CudaDevice, kernel: &'static Kernel) -> Result<Loaded> {
    if let Some(loaded) = kernel.descriptor().image.loaded() {
        return Ok(loaded);
    }
    let Module { raw: Handle(module), program, users, .. } =
        module(device, kernel.descriptor().image, kernel.name())?;
    let entry = c_string(kernel.entry());
    let object = format!("kernel `{}` ({})", kernel.name(), kernel.entry());
    // SAFETY: `to` is valid for the call, the module is loaded, and the name ends in 0.
    let function =
        device.get(&object, |driver, to| unsafe { driver.module_function(to, module, entry.as_ptr()) })?;
    if kernel.descriptor().uses_shared_memory {
        allow_all_shared_memory(device, function)?;
    }
    if let Some(cluster) = kernel.cluster() {
        device.allow_clusters(function, kernel, cluster)?;
    }
    users.add(kernel);
    let may_panic = program.may_panic(kernel.entry());
    if may_panic {
        device.feedback.note_loaded(kernel);
    }
    Ok(Loaded { function: function.cast(), may_panic })
}

/// Lets launches of `function` ask for as much shared memory as the device has for a block; without this,
/// the limit is 48 KiB.
fn allow_all_shared_memory(device: &CudaDevice, function: CUfunction) -> Result<()> {
    // Kernels whose blocks are in order have a number there.
    let own =
        device.function_attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    let bytes = c_int::try_from(device.shared_memory_per_block()).unwrap_or(c_int::MAX) - own;
    device.set_max_dynamic_shared(function, bytes.unsigned_abs())
}

impl CudaDevice {
    /// What the module of `kernel` was loaded from; it is loaded if it was not.
    pub(crate) fn code_type(&self, kernel: &'static Kernel) -> Result<CodeType> {
        self.bind()?;
        Ok(module(self, kernel.descriptor().image, kernel.name())?.code_type)
    }

    /// Unloads the module of `image`, if it is loaded, once all work has run. Its kernels forget their functions.
    ///
    /// # Safety
    /// Its kernels are not launched, and its variables and handles not used, until this returns; what came from it before is
    /// not used afterwards either.
    pub(crate) unsafe fn unload(&self, image: &'static ModuleImage) -> Result<()> {
        let Some(id) = image.id() else { return Ok(()) };
        if !self.modules().contains_key(&id) {
            return Ok(());
        }
        // Messages of kernels are read from the module's memory.
        self.synchronize()?;
        let Some(Module { raw, users, .. }) = self.modules().remove(&id) else { return Ok(()) };
        users.forget(self);
        self.bind()?;
        // SAFETY: the module is loaded, all work has run, and the caller vouches for the rest.
        let code = unsafe { self.driver().module_unload(raw.0) };
        self.check(code, "")
    }

    /// Clears all references of kernels and constants to what is loaded here, for good.
    pub(super) fn forget_modules(&self) {
        for (_, Module { users, .. }) in self.modules().drain() {
            users.forget(self);
        }
    }

    /// Where the constant `name` is, in the module of `image` under the name `symbol`, and how long; the module is
    /// loaded if it was not.
    pub(crate) fn constant(
        &self,
        image: &'static ModuleImage,
        name: &'static str,
        symbol: &str,
        bytes: usize,
    ) -> Result<(*mut u8, ModuleLease)> {
        self.bind()?;
        let Module { raw: Handle(module), users, .. } = module(self, image, name)?;
        let c_symbol = c_string(symbol);
        let (mut start, mut found) = (0, 0);
        // SAFETY: both are valid for the call, the module is loaded, and the name ends in 0.
        let code = unsafe { self.driver().module_global(&mut start, &mut found, module, c_symbol.as_ptr()) };
        self.check(code, &format_args!("constant `{name}` ({symbol})"))?;
        if found != bytes {
            return Err(Error::ConstantSize { constant: name, bytes, found });
        }
        Ok((with_exposed_provenance_mut(start as usize), users.lease.clone()))
    }
}

/// The module of `image`, loaded once; `name` is the kernel or constant that is wanted of it.
fn module(device: &CudaDevice, image: &'static ModuleImage, name: &'static str) -> Result<Module> {
    let id = image
        .id()
        .ok_or(Error::Launch(LaunchError::NoDeviceCode { kernel: name, reason: image.reason() }))?;
    let mut modules = device.modules();
    if let Some(module) = modules.get(&id) {
        return Ok(module.clone());
    }
    let candidates = image.candidates(device.capability());
    if candidates.is_empty() {
        return Err(Error::Launch(LaunchError::NoImageForDevice {
            kernel: name,
            available: image.texts().map(|ptx| ptx.arch).collect(),
            device: device.to_string().into(),
            capability: device.capability(),
        }));
    }
    let (module, ptx, code_type) = load_best(device, name, (id, image), &candidates)?;
    let program = Program::of(ptx.text).map_err(|error| Error::ModuleLoad {
        kernel: name,
        device: device.to_string().into(),
        log: format!("its PTX cannot be read: {error}").into(),
    })?;
    device.feedback.connect(device, module, program.prints)?;
    let module = Module { raw: Handle(module), program: Arc::new(program), code_type, users: Arc::default() };
    modules.insert(id, module.clone());
    Ok(module)
}

/// The first of `candidates` that loads, which it is, and as what. A driver may be older than the PTX version of the best.
fn load_best<'a>(
    device: &CudaDevice,
    name: &'static str,
    (id, image): (u128, &'static ModuleImage),
    candidates: &'a [Ptx],
) -> Result<(CUmodule, &'a Ptx, CodeType)> {
    let mut refusals = String::new();
    let refused = |log: String| Error::ModuleLoad {
        kernel: name,
        device: device.to_string().into(),
        log: log.trim_end().into(),
    };
    let load = |image: Result<Image, ForeignError>| -> Result<CUmodule, String> {
        let image = image.map_err(|error| error.to_string())?;
        load(device, &image, &JitOptions::new()).map(|(module, _)| module)
    };
    for ptx in candidates {
        if let Some(cubin) = linked(device, id, image.links(), ptx.text)? {
            return Ok((load(Image::cubin(&cubin)).map_err(refused)?, ptx, CodeType::Cubin));
        }
        // A driver older than the ptxas may refuse it; then it compiles the PTX.
        match ptx.machine_code(device.capability()).map(|cubin| load(Image::cubin(cubin))) {
            Some(Ok(module)) => return Ok((module, ptx, CodeType::Cubin)),
            Some(Err(refusal)) => {
                let _ = writeln!(refusals, "{} (machine code): {refusal}", ptx.arch);
            }
            None => {}
        }
        match load(Image::ptx(ptx.text)) {
            Ok(module) => return Ok((module, ptx, CodeType::Ptx)),
            Err(refusal) => {
                let (major, minor) = ptx.version;
                let _ = writeln!(refusals, "{} (PTX {major}.{minor}): {refusal}", ptx.arch);
            }
        }
    }
    Err(refused(refusals))
}

/// Loads `image` in the context that is bound: the module, and the driver's information log; or why not, in the words of the
/// driver and its compiler.
fn load(device: &CudaDevice, image: &Image, options: &JitOptions) -> Result<(CUmodule, String), String> {
    let mut jit = Jit::new(options);
    let (count, keys, values) = jit.arguments();
    let mut module = null_mut();
    // SAFETY: the image is complete by its own headers (a text ends in 0), keys and values are as many
    // as stated, and they and the logs outlive the call.
    let code = unsafe { device.driver().module_load(&mut module, image.start().cast(), count, keys, values) };
    match device.check(code, "") {
        // SAFETY: the call has returned.
        Ok(()) => Ok((module, unsafe { jit.information() })),
        // SAFETY: as above.
        Err(error) => Err(unsafe { jit.explain(&error.to_string()) }),
    }
}

/// `text` as the driver wants it, up to its first 0 byte.
fn c_string(text: &str) -> CString {
    let end = text.bytes().position(|byte| byte == 0).unwrap_or(text.len());
    let bytes: Vec<u8> = text.as_bytes()[..end].to_vec();
    CString::new(bytes).unwrap_or_default()
}
