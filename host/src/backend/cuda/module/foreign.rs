//! Foreign modules in the driver: loading, and lookup of functions and variables.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut, with_exposed_provenance_mut};

use cudarc::driver::sys::{CUfunction, CUmodule};

use crate::backend::cuda::device::{CudaDevice, Handle};
use crate::backend::cuda::driver::Code;
use crate::error::Result;
use crate::error::foreign::ForeignError;
use crate::image::{Image, JitOptions};
use crate::kernel::attributes::KernelAttributes;

/// A module that the driver has loaded. It stays loaded for the rest of the process, unless it is
/// unloaded by hand: launches, graphs and copies of its handles may refer to it.
pub(crate) struct LoadedModule {
    device: &'static CudaDevice,
    raw: Handle<CUmodule>,
}

/// A function of a [`LoadedModule`].
#[derive(Clone, Copy)]
pub(crate) struct LoadedFunction {
    device: &'static CudaDevice,
    raw: Handle<CUfunction>,
}

impl LoadedModule {
    /// Loads `image`; gives the driver's information log too.
    pub(crate) fn load(
        device: &'static CudaDevice,
        image: &Image,
        options: &JitOptions,
    ) -> Result<(Self, String)> {
        device.bind()?;
        let (module, log) = super::load(device, image, options).map_err(|log| ForeignError::Load {
            kind: image.kind().name(),
            device: device.to_string().into(),
            log: log.into(),
        })?;
        Ok((LoadedModule { device, raw: Handle(module) }, log))
    }

    /// A module of another library.
    ///
    /// # Safety
    /// It is one of `device`'s primary context, and stays loaded as long as this or anything that came from it is used.
    pub(crate) unsafe fn foreign(device: &'static CudaDevice, raw: *mut c_void) -> Self {
        LoadedModule { device, raw: Handle(raw.cast()) }
    }

    pub(crate) fn as_raw(&self) -> *mut c_void {
        self.raw.0.cast()
    }

    /// The function of that name, if there is one.
    pub(crate) fn function(&self, name: &str) -> Result<Option<LoadedFunction>> {
        let Ok(c_name) = CString::new(name) else { return Ok(None) };
        self.device.bind()?;
        let mut function = null_mut();
        // SAFETY: `function` is valid for the call, the module is loaded, and the name ends in 0.
        let code =
            unsafe { self.device.driver().module_function(&mut function, self.raw.0, c_name.as_ptr()) };
        if code == Code::NOT_FOUND {
            return Ok(None);
        }
        self.device.check(code, &format!("`{name}`"))?;
        Ok(Some(LoadedFunction { device: self.device, raw: Handle(function) }))
    }

    /// The names of all functions; `None` if the driver does not report it.
    pub(crate) fn function_names(&self) -> Result<Option<Vec<String>>> {
        self.device.bind()?;
        let mut count = 0;
        // SAFETY: `count` is valid for the call, and the module is loaded.
        let Ok(code) = (unsafe { self.device.driver().module_function_count(&mut count, self.raw.0) }) else {
            return Ok(None); // an older driver
        };
        self.device.check(code, "")?;
        let mut functions = vec![null_mut(); count as usize];
        // SAFETY: there is room for `count` functions, and the module is loaded.
        let code =
            unsafe { self.device.driver().module_functions(functions.as_mut_ptr(), count, self.raw.0)? };
        self.device.check(code, "")?;
        let named = |function| LoadedFunction { device: self.device, raw: Handle(function) }.name();
        functions.into_iter().map(named).collect()
    }

    /// The start and bytes of the variable of that name, if there is one.
    pub(crate) fn global(&self, name: &str) -> Result<Option<(*mut u8, usize)>> {
        let Ok(c_name) = CString::new(name) else { return Ok(None) };
        self.device.bind()?;
        let (mut start, mut bytes) = (0, 0);
        // SAFETY: both are valid for the call, the module is loaded, and the name ends in 0.
        let code = unsafe {
            self.device.driver().module_global(&mut start, &mut bytes, self.raw.0, c_name.as_ptr())
        };
        if code == Code::NOT_FOUND {
            return Ok(None);
        }
        self.device.check(code, &format!("`{name}`"))?;
        Ok(Some((with_exposed_provenance_mut(start as usize), bytes)))
    }

    /// # Safety
    /// Nothing of the module is running, about to run, or used again.
    pub(crate) unsafe fn unload(&self) -> Result<()> {
        self.device.bind()?;
        // SAFETY: the module is loaded; the caller vouches for the rest.
        let code = unsafe { self.device.driver().module_unload(self.raw.0) };
        self.device.check(code, "")
    }
}

impl LoadedFunction {
    /// A function of another library.
    ///
    /// # Safety
    /// It is one of `device`'s primary context, and its module stays loaded as long as this is used.
    pub(crate) unsafe fn foreign(device: &'static CudaDevice, raw: *mut c_void) -> Self {
        LoadedFunction { device, raw: Handle(raw.cast()) }
    }

    pub(crate) fn as_raw(self) -> *mut c_void {
        self.raw.0.cast()
    }

    /// Its name in its module; `None` if the driver does not report it.
    pub(crate) fn name(self) -> Result<Option<String>> {
        self.device.bind()?;
        let mut name = null();
        // SAFETY: `name` is valid for the call, and the function is loaded.
        let Ok(code) = (unsafe { self.device.driver().function_name(&mut name, self.raw.0) }) else {
            return Ok(None); // an older driver
        };
        self.device.check(code, &format!("function {:p}", self.raw.0))?;
        // SAFETY: on success it is a string that lives as long as the module.
        Ok(Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()))
    }

    pub(crate) fn attributes(self) -> Result<KernelAttributes> {
        self.device.function_attributes(self.raw.0, u32::MAX)
    }

    /// The size of each parameter; `None` if the driver does not report it.
    ///
    /// It tells how many there are only by refusing the next. Tools that watch the driver report that, so it is not asked
    /// where the text has `declared` the very sizes that were found so far.
    pub(crate) fn parameter_sizes(self, declared: Option<&[usize]>) -> Result<Option<Vec<usize>>> {
        self.device.bind()?;
        let mut sizes = Vec::new();
        loop {
            if declared == Some(&sizes) {
                return Ok(Some(sizes));
            }
            let (mut offset, mut size) = (0, 0);
            // SAFETY: both are valid for the call, and the function is loaded.
            let code = unsafe {
                self.device.driver().function_param(self.raw.0, sizes.len(), &mut offset, &mut size)
            };
            match code {
                // An older driver.
                Err(_) => return Ok(None),
                // There is no parameter of that index.
                Ok(code) if code == Code::INVALID_VALUE => return Ok(Some(sizes)),
                Ok(code) => self.device.check(code, "")?,
            }
            sizes.push(size);
        }
    }

    /// Lets launches have `bytes` of dynamic shared memory.
    pub(crate) fn allow_dynamic_shared(self, bytes: u32) -> Result<()> {
        self.device.allow_dynamic_shared(self.raw.0, bytes)
    }
}
