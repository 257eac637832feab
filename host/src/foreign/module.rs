//! Modules of foreign code on a device: loaded from text, bytes or files, and asked for what is in them.
//! It must not know how a driver loads, or how a function is launched.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use super::error::ForeignError;
use super::function::ForeignFunction;
use super::global::ForeignGlobal;
use super::image::{Image, ImageKind};
use super::jit::JitOptions;
use super::parameter::Parameter;
use super::ptx;
use crate::backend::DeviceBackend;
use crate::backend::cuda::LoadedModule;
use crate::context::{gpu, not_null};
use crate::device::Device;
use crate::error::{Error, Result};

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
}

struct Inner {
    device: Device,
    loaded: LoadedModule,
    /// `None` of another library's module.
    kind: Option<ImageKind>,
    log: Box<str>,
    /// From the text, if it is PTX.
    entries: HashMap<Box<str>, Vec<Parameter>>,
    functions: Mutex<HashMap<Box<str>, ForeignFunction>>,
}

impl Device {
    /// Loads PTX text, compiled by the driver for this device (`cuModuleLoadDataEx`).
    ///
    /// ```
    /// use ferrogrid_host::{Device, Error};
    ///
    /// let refused = Device::cpu().load_ptx(".version 8.0\n.target sm_90\n.address_size 64\n");
    /// assert!(matches!(refused, Err(Error::Unsupported { .. }))); // PTX runs on GPUs
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::Load`] with the compiler's log, if the text is wrong or newer than the driver;
    /// [`Error::Unsupported`] on the CPU.
    pub fn load_ptx(&self, text: &str) -> Result<ForeignModule> {
        self.load(|| Image::ptx(text), &JitOptions::new())
    }

    /// Loads a cubin: machine code for one architecture, which must be this device's
    /// (`cuModuleLoadDataEx`).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cuda(0)?;
    /// let (major, minor) = device.compute_capability().unwrap();
    /// let cubin = std::fs::read(format!("saxpy.sm_{major}{minor}.cubin")).unwrap(); // nvcc -cubin -arch=sm_90
    /// let saxpy = device.load_cubin(&cubin)?.function("saxpy")?;
    /// println!("machine code for {:?}", saxpy.attributes()?.binary_version);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::InvalidImage`] for bytes that are no whole cubin; [`ForeignError::Load`] if the
    /// driver refuses it; [`Error::Unsupported`] on the CPU.
    pub fn load_cubin(&self, bytes: &[u8]) -> Result<ForeignModule> {
        self.load(|| Image::cubin(bytes), &JitOptions::new())
    }

    /// Loads the best that a fatbin has for this device (`cuModuleLoadDataEx`).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let fatbin = std::fs::read("saxpy.fatbin").unwrap(); // nvcc -fatbin
    /// let saxpy = Device::cuda(0)?.load_fatbin(&fatbin)?.function("saxpy")?;
    /// println!("{} registers", saxpy.attributes()?.num_regs);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::load_cubin`].
    pub fn load_fatbin(&self, bytes: &[u8]) -> Result<ForeignModule> {
        self.load(|| Image::fatbin(bytes), &JitOptions::new())
    }

    /// Loads PTX, a cubin or a fatbin from a file; its first bytes say which it is.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// match Device::best()?.load_file("no_such_file.ptx") {
    ///     Err(Error::Foreign(error)) => println!("{error}"), // cannot read `no_such_file.ptx`: ...
    ///     Err(Error::Unsupported { .. }) => println!("the CPU device runs no PTX"),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::Read`]; else as [`Device::load_ptx`] and [`Device::load_cubin`].
    pub fn load_file(&self, path: impl AsRef<Path>) -> Result<ForeignModule> {
        let path = path.as_ref();
        let read = || {
            let failed = |error: std::io::Error| ForeignError::Read {
                path: path.to_string_lossy().into(),
                reason: error.to_string().into(),
            };
            Image::any(&std::fs::read(path).map_err(failed)?)
        };
        self.load(read, &JitOptions::new())
    }

    /// Loads PTX, a cubin or a fatbin from bytes, with options for the driver's compiler
    /// (`cuModuleLoadDataEx`).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::JitOptions;
    ///
    /// let image = std::fs::read("saxpy.ptx").unwrap(); // or a cubin, or a fatbin
    /// let options = JitOptions::new().with_max_registers(32).with_verbose(true);
    /// let module = Device::cuda(0)?.load_image(&image, &options)?;
    /// println!("{}", module.log()); // what 32 registers cost in spills
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::load_ptx`] and [`Device::load_cubin`].
    pub fn load_image(&self, bytes: &[u8], options: &JitOptions) -> Result<ForeignModule> {
        self.load(|| Image::any(bytes), options)
    }

    fn load(
        &self,
        image: impl FnOnce() -> Result<Image, ForeignError>,
        options: &JitOptions,
    ) -> Result<ForeignModule> {
        let DeviceBackend::Cuda(cuda) = self.backend() else {
            return Err(self.no_foreign_code("cuModuleLoadDataEx"));
        };
        let image = image()?;
        let (loaded, log) = LoadedModule::load(cuda, &image, options)?;
        let entries = match image.kind() {
            ImageKind::Ptx => ptx::entries(image.text()),
            _ => HashMap::new(),
        };
        let inner = Inner {
            device: self.clone(),
            loaded,
            kind: Some(image.kind()),
            log: log.into(),
            entries,
            functions: Mutex::new(HashMap::new()),
        };
        Ok(ForeignModule { inner: Arc::new(inner) })
    }

    pub(super) fn no_foreign_code(&self, operation: &'static str) -> Error {
        Error::Unsupported {
            operation,
            device: self.to_string().into(),
            reason: "it runs the native bodies of this program's own kernels, not PTX or machine code of GPUs",
        }
    }
}

impl ForeignModule {
    /// The device that it is loaded on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// What the driver's compiler said while loading, with
    /// [`JitOptions::with_verbose`](super::JitOptions::with_verbose) also what each kernel uses.
    pub fn log(&self) -> &str {
        &self.inner.log
    }

    /// The kernel of that name (`cuModuleGetFunction`), with its parameters by `cuFuncGetParamInfo` or
    /// from the PTX. What belongs to a kernel is kept until the process ends, once for each name.
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
    /// [`ForeignError::NoFunction`], with the names that there are if that is known.
    pub fn function(&self, name: &str) -> Result<ForeignFunction> {
        let mut functions = self.inner.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(name) {
            return Ok(*function);
        }
        let Some(loaded) = self.inner.loaded.function(name)? else {
            return Err(self.no_function(name).into());
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
        let Some((start, bytes)) = self.inner.loaded.global(name)? else {
            return Err(ForeignError::NoGlobal { name: name.into() }.into());
        };
        ForeignGlobal::new(self.clone(), name, start, bytes)
    }

    /// The kernels that the text declares, by name; `None` for machine code, and for modules of other libraries.
    pub fn kernel_names(&self) -> Option<Vec<&str>> {
        let mut names: Vec<&str> = self.inner.entries.keys().map(|name| &**name).collect();
        names.sort_unstable();
        (self.inner.kind == Some(ImageKind::Ptx)).then_some(names)
    }

    fn no_function(&self, name: &str) -> ForeignError {
        let known = self.kernel_names().unwrap_or_default();
        ForeignError::NoFunction { name: name.into(), known: known.into_iter().map(Into::into).collect() }
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
    /// [`Error::Unsupported`] on the CPU device; [`Error::InvalidPointer`] if `raw` is null.
    ///
    /// # Safety
    /// - `raw` is a module of the primary context of `device`, and stays loaded as long as this handle, its clones and what
    ///   came from them (functions, kernels, variables) are used.
    /// - It is no module of this program's own kernels, whose variables are this crate's.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<ForeignModule> {
        let (cuda, raw) = (gpu(device, "ForeignModule::from_raw")?, not_null(raw)?);
        let inner = Inner {
            device: device.clone(),
            // SAFETY: passed on.
            loaded: unsafe { LoadedModule::foreign(cuda, raw) },
            kind: None,
            log: "".into(),
            entries: HashMap::new(),
            functions: Mutex::new(HashMap::new()),
        };
        Ok(ForeignModule { inner: Arc::new(inner) })
    }

    /// The driver's handle (`CUmodule`), for other libraries. It is valid until the module is unloaded.
    pub fn as_raw(&self) -> *mut c_void {
        self.inner.loaded.as_raw()
    }

    /// Unloads the module before the process ends (`cuModuleUnload`).
    ///
    /// # Errors
    /// What the driver says; the module may be loaded still.
    ///
    /// # Safety
    /// No kernel of it is running or enqueued, or in a graph that will be launched, and nothing that came
    /// from any clone of this handle (functions, kernels, variables) is used from now on.
    pub unsafe fn unload(self) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.inner.loaded.unload() }
    }
}

impl fmt::Debug for ForeignModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignModule")
            .field("kind", &self.inner.kind.map(ImageKind::name))
            .field("device", &self.inner.device)
            .finish_non_exhaustive()
    }
}
