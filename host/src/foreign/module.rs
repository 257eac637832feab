//! Modules of foreign code on a device: lookup of functions and variables.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};

use bytemuck::Pod;

use super::function::ForeignFunction;
use super::global::ForeignGlobal;
use crate::backend::cuda::LoadedModule;
use crate::device::Device;
use crate::device::context::{gpu, not_null};
use crate::error::Result;
use crate::error::foreign::ForeignError;
use crate::image::{CodeType, Parameter};
use crate::sync::lock;

/// A module of code that this program did not compile, loaded on a GPU: PTX, a cubin or a fatbin, from
/// CUDA C++ or any other compiler (`CUmodule`). A cheap handle; clones are the same module.
///
/// It stays loaded until the process ends, because launches in flight, functions and variables refer to
/// it; [`ForeignModule::unload`] ends it earlier.
///
/// ```no_run
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{Device, Grid};
///
/// let device = Device::cuda(0)?;
/// let stream = device.new_stream()?;
/// let x = stream.upload(&[1.0_f32; 1000])?;
/// let mut y = stream.upload(&[2.0_f32; 1000])?;
///
/// // extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
/// let module = device.load_file("saxpy.ptx")?;
/// let saxpy = module.function("saxpy")?;
/// // SAFETY: the kernel's types, in order; it keeps to its first `n` elements.
/// unsafe { saxpy.launch(&stream, Grid::cover(1000), (1000_i32, 3.0_f32, &x, &mut y))? };
/// assert_eq!(stream.download(&y)?[0], 5.0);
/// # Ok(()) }
/// ```
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::JitOptions;
///
/// let device = Device::cuda(0)?;
/// let ptx = std::fs::read("saxpy.ptx").unwrap();
/// let module = device.load_image(&ptx, &JitOptions::new().with_verbose(true))?;
/// assert_eq!(module.device(), &device);
/// println!("{}", module.log()); // registers and spills of each kernel
/// println!("{:?}", module.kernel_names()); // Some(["saxpy"])
/// module.global::<f32>("factor")?.set(&device.new_stream()?, &[3.0])?; // __constant__ float factor;
/// // SAFETY: nothing of it runs, and nothing that came from it is used again.
/// unsafe { module.unload()? };
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ForeignModule {
    inner: Arc<Inner>,
    name: Arc<str>,
    /// Mangled names by the expressions that they are known as here.
    symbols: Arc<HashMap<Box<str>, Box<str>>>,
}

struct Inner {
    device: Device,
    loaded: LoadedModule,
    /// `None` of another library's module.
    code_type: Option<CodeType>,
    log: Box<str>,
    /// From the text, if it is PTX.
    entries: HashMap<Box<str>, Vec<Parameter>>,
    functions: Mutex<HashMap<Box<str>, ForeignFunction>>,
    /// Of all kernels, after the first query.
    names: OnceLock<Option<Vec<Box<str>>>>,
}

impl ForeignModule {
    pub(super) fn new(
        device: &Device,
        loaded: LoadedModule,
        code_type: Option<CodeType>,
        log: String,
        entries: HashMap<Box<str>, Vec<Parameter>>,
    ) -> Self {
        let (device, log, functions) = (device.clone(), log.into(), Mutex::new(HashMap::new()));
        let names = OnceLock::new();
        let inner = Inner { device, loaded, code_type, log, entries, functions, names };
        ForeignModule { inner: Arc::new(inner), name: "".into(), symbols: Arc::default() }
    }

    /// The same module, whose code came as `code_type` before it was linked, with the linker's log.
    pub(super) fn linked_from(mut self, code_type: CodeType, log: &str) -> Self {
        // A module that was just loaded has no other owner.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.code_type = Some(code_type);
            inner.log = [log, &*inner.log].concat().into();
        }
        self
    }

    /// The same module under this name, which appears in errors. Only this handle and its clones have it.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        ForeignModule { name: name.into(), ..self }
    }

    /// The same module, in which functions and variables are known by C++ expressions, too: pairs of an expression, such as
    /// `scale<float>`, and a mangled name. [`Device::load_program`] does this for programs of NVRTC. Only this handle and
    /// its clones have them.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let module = Device::cuda(0)?.load_file("scale.cubin")?;
    /// let module = module.with_symbol_mapping([("scale<float>", "_Z5scaleIfEvT_PS0_")]);
    /// let scale = module.function("scale<float>")?;
    /// assert_eq!(scale.name(), "_Z5scaleIfEvT_PS0_");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_symbol_mapping<E: AsRef<str>, M: AsRef<str>>(
        self,
        symbols: impl IntoIterator<Item = (E, M)>,
    ) -> Self {
        let pairs = symbols.into_iter().map(|(one, other)| (one.as_ref().into(), other.as_ref().into()));
        ForeignModule { symbols: Arc::new(pairs.collect()), ..self }
    }

    /// Its name: what [`ForeignModule::with_name`] gave it, else that of the file or program that it was loaded from;
    /// empty for bytes and text.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of code that it was loaded from; `None` if another library loaded it.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let module = Device::cuda(0)?.load_file("build/saxpy.ptx")?;
    /// assert_eq!((module.name(), module.code_type()), ("saxpy.ptx", Some(ferrogrid::CodeType::Ptx)));
    /// # Ok(()) }
    /// ```
    pub fn code_type(&self) -> Option<CodeType> {
        self.inner.code_type
    }

    /// The name in the module of what is known as `name` here.
    fn mangled<'a>(&'a self, name: &'a str) -> &'a str {
        self.symbols.get(name).map_or(name, |mangled| mangled)
    }

    /// The device that it is loaded on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// The log of the driver's compiler from loading, with
    /// [`JitOptions::with_verbose`](crate::JitOptions::with_verbose) also the resources of each kernel.
    pub fn log(&self) -> &str {
        &self.inner.log
    }

    /// The kernel of that name (`cuModuleGetFunction`), with its parameters by `cuFuncGetParamInfo` or
    /// from the PTX; a C++ expression is enough where the module knows its mangled name
    /// ([`ForeignModule::with_symbol_mapping`]). What belongs to a kernel is kept until the process ends, once for each
    /// name.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let module = Device::cuda(0)?.load_file("saxpy.ptx")?;
    /// let saxpy = module.function("saxpy")?;
    /// println!("{} takes {} parameters", saxpy.name(), saxpy.parameters().map_or(0, |all| all.len()));
    /// println!("{}", module.function("saxpi").unwrap_err()); // ... it has `saxpy`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::NoFunction`], with the existing names if known.
    pub fn function(&self, name: &str) -> Result<ForeignFunction> {
        let (asked, name) = (name, self.mangled(name));
        let mut functions = lock(&self.inner.functions);
        if let Some(function) = functions.get(name) {
            return Ok(*function);
        }
        let Some(loaded) = self.inner.loaded.function(name)? else {
            return Err(self.no_function(asked).into());
        };
        let declared = self.inner.entries.get(name).map(Vec::as_slice);
        let function = ForeignFunction::new(&self.inner.device, name, loaded, declared)?;
        functions.insert(name.into(), function);
        Ok(function)
    }

    /// The global or `__constant__` variable of that name as elements of type `T` (`cuModuleGetGlobal`).
    ///
    /// # Errors
    /// [`ForeignError::NoGlobal`]; [`ForeignError::GlobalSize`] if it is no whole number of `T`s.
    pub fn global<T: Pod>(&self, name: &str) -> Result<ForeignGlobal<T>> {
        let Some((start, bytes)) = self.inner.loaded.global(self.mangled(name))? else {
            return Err(ForeignError::NoGlobal { module: (&*self.name).into(), name: name.into() }.into());
        };
        ForeignGlobal::new(self.clone(), name, start, bytes)
    }

    /// The names of its kernels, from the PTX or the driver (`cuModuleEnumerateFunctions`). `None` for machine code and
    /// modules of other libraries if the driver is older than CUDA 12.4.
    pub fn kernel_names(&self) -> Option<Vec<&str>> {
        let names = self.inner.names.get_or_init(|| {
            let mut names: Vec<Box<str>> = if self.inner.code_type == Some(CodeType::Ptx) {
                self.inner.entries.keys().cloned().collect()
            } else {
                // If the device has failed, the next call that returns a `Result` says so.
                self.inner.loaded.function_names().ok()??.into_iter().map(Into::into).collect()
            };
            names.sort_unstable();
            Some(names)
        });
        names.as_ref().map(|names| names.iter().map(|name| &**name).collect())
    }

    fn no_function(&self, name: &str) -> ForeignError {
        let names = self.kernel_names().unwrap_or_default().into_iter();
        let mut known: Vec<Box<str>> =
            names.chain(self.symbols.keys().map(|name| &**name)).map(Into::into).collect();
        known.sort_unstable();
        ForeignError::NoFunction { module: (&*self.name).into(), name: name.into(), known }
    }

    /// A module that another library loaded on `device`: `raw` is its `CUmodule`. It is not unloaded when this handle
    /// is dropped.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::ForeignModule;
    ///
    /// let device = Device::cuda(0)?;
    /// let theirs = device.load_file("saxpy.ptx")?; // as if another library had loaded it
    /// // SAFETY: it is a module of this device, and stays loaded.
    /// let module = unsafe { ForeignModule::from_raw(&device, theirs.as_raw())? };
    /// println!("{} parameters", module.function("saxpy")?.parameters().map_or(0, |all| all.len()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device;
    /// [`Error::InvalidPointer`](crate::Error::InvalidPointer) if `raw` is null.
    ///
    /// # Safety
    /// - `raw` is a module of the primary context of `device`, and stays loaded as long as this handle, its clones and what
    ///   came from them (functions, kernels, variables) are used.
    /// - It is no module of this program's own kernels, whose variables are this crate's.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<ForeignModule> {
        let (cuda, raw) = (gpu(device, "ForeignModule::from_raw")?, not_null(raw)?);
        // SAFETY: passed on.
        let loaded = unsafe { LoadedModule::foreign(cuda, raw) };
        Ok(ForeignModule::new(device, loaded, None, String::new(), HashMap::new()))
    }

    /// The driver's handle (`CUmodule`), for other libraries. It is valid until the module is unloaded.
    pub fn as_raw(&self) -> *mut c_void {
        self.inner.loaded.as_raw()
    }

    /// Unloads the module before the process ends (`cuModuleUnload`).
    ///
    /// # Errors
    /// The driver's error; the module may still be loaded.
    ///
    /// # Safety
    /// No kernel of it is running or enqueued, or in a graph that will be launched, and nothing that came
    /// from any clone of this handle (functions, kernels, variables) is used from now on.
    pub unsafe fn unload(self) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.inner.loaded.unload() }
    }
}

debug_by_methods!(ForeignModule { name, code_type, device });
