//! Loads foreign code on a device, from text, bytes or files.

use std::path::Path;

use super::linker::Linker;
use super::module::ForeignModule;
use crate::backend::cuda::LoadedModule;
use crate::device::Device;
use crate::error::foreign::ForeignError;
use crate::error::{Error, Result};
use crate::image::{CodeType, Image, JitOptions, archive, ptx, read_file};
use crate::toolkit::{CompileOptions, CompiledProgram, NvJitLink};

impl CompileOptions {
    /// For PTX that is optimal for `device`; as [`CompileOptions::new`] for the CPU device.
    pub fn for_device(device: &Device) -> Self {
        match device.compute_capability() {
            Some((major, minor)) => {
                CompileOptions::new().with_architecture(format!("compute_{major}{minor}"))
            }
            None => CompileOptions::new(),
        }
    }
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
    /// [`ForeignError::InvalidImage`] for bytes that are not a complete cubin; [`ForeignError::Load`] if the
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

    /// Loads PTX, a cubin, a fatbin or a library (`.a`) from a file; detected by its first bytes. The module has the
    /// file's name.
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
        if !self.is_cuda() {
            return Err(self.no_foreign_code("cuModuleLoadDataEx"));
        }
        let (name, bytes) = read_file(path.as_ref())?;
        let module = match archive::is_archive(&bytes) {
            true => self.load_library(&bytes)?,
            false => self.load(|| Image::any(&bytes), &JitOptions::new())?,
        };
        Ok(module.with_name(&name))
    }

    /// Loads LTO IR, as `nvcc -dlto` and NVRTC's `-dlto` make it: nvJitLink, where it is installed, compiles it for this
    /// device.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::{CompileOptions, Nvrtc};
    ///
    /// let device = Device::cuda(0)?;
    /// let options = CompileOptions::for_device(&device).with_option("-dlto");
    /// let program = Nvrtc::load()?.compile("extern \"C\" __global__ void empty() {}", &options)?;
    /// let empty = device.load_lto_ir(&program.lto_ir)?.function("empty")?;
    /// # let _ = empty;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::LibraryMissing`] without nvJitLink; [`ForeignError::Link`] with its log; else as
    /// [`Device::load_cubin`].
    pub fn load_lto_ir(&self, bytes: &[u8]) -> Result<ForeignModule> {
        let Some(architecture) = self.arch() else {
            return Err(self.no_foreign_code("nvJitLinkCreate"));
        };
        let mut link = NvJitLink::new(&["-lto", &format!("-arch={architecture}")])?;
        link.add(CodeType::LtoIr, "the LTO IR", bytes)?;
        let linked = link.complete()?;
        Ok(self.load_cubin(&linked.cubin)?.linked_from(CodeType::LtoIr, &linked.log))
    }

    /// Loads a library of device code (`.a`), as `nvcc -lib -rdc=true` makes it: all its members, linked by the driver's
    /// linker, whether they refer to each other or not. To link parts of it to other code there is
    /// [`Linker::add_library`](crate::Linker::add_library).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cuda(0)?;
    /// let library = std::fs::read("libfilters.a").unwrap(); // nvcc -lib -rdc=true -o libfilters.a blur.cu sharpen.cu
    /// let (blur, sharpen) = {
    ///     let module = device.load_library(&library)?;
    ///     (module.function("blur")?, module.function("sharpen")?)
    /// };
    /// # let _ = (blur, sharpen);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::InvalidImage`] for bytes that are not a complete library; [`ForeignError::Link`] with the linker's log;
    /// else as [`Device::load_cubin`].
    pub fn load_library(&self, bytes: &[u8]) -> Result<ForeignModule> {
        let mut linker = Linker::new(self, &JitOptions::new())?;
        linker.add_members(archive::members(bytes)?)?;
        let linked = linker.complete()?;
        Ok(self.load_cubin(&linked.cubin)?.linked_from(CodeType::Library, &linked.log))
    }

    /// Loads NVRTC's output for a program: its machine code if that is for this device, else its PTX or LTO IR. The
    /// module has the program's name, and its functions are found by the C++ expressions of
    /// [`CompileOptions::name_expressions`](crate::CompileOptions::name_expressions), too.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::{CompileOptions, Nvrtc};
    ///
    /// let device = Device::cuda(0)?;
    /// let source = "template <class T> __global__ void scale(T a, T* x) { x[threadIdx.x] *= a; }";
    /// let options = CompileOptions::for_device(&device).with_name_expression("scale<float>");
    /// let module = device.load_program(&Nvrtc::load()?.compile(source, &options)?)?;
    /// let scale = module.function("scale<float>")?; // by its expression; the name is mangled
    /// # let _ = scale;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::load_cubin`], [`Device::load_ptx`] and [`Device::load_lto_ir`].
    pub fn load_program(&self, program: &CompiledProgram) -> Result<ForeignModule> {
        let module = match best_of(program, self.arch().as_deref()) {
            CodeType::Cubin => self.load_cubin(&program.cubin)?,
            CodeType::LtoIr => self.load_lto_ir(&program.lto_ir)?,
            _ => self.load_ptx(&program.ptx)?,
        };
        let symbols = program.lowered_names.iter().map(|(expression, name)| (expression, name));
        Ok(module.with_name(&program.name).with_symbol_mapping(symbols))
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
        let Some(cuda) = self.backend().as_cuda() else {
            return Err(self.no_foreign_code("cuModuleLoadDataEx"));
        };
        let image = image()?;
        let (loaded, log) = LoadedModule::load(cuda, &image, options)?;
        // Of machine code there is no text, and so there are no entries.
        let entries = ptx::entries(image.text());
        Ok(ForeignModule::new(self, loaded, Some(image.kind()), log, entries))
    }

    pub(super) fn no_foreign_code(&self, operation: &'static str) -> Error {
        let reason =
            "it runs the native bodies of this program's own kernels, not PTX or machine code of GPUs";
        Error::unsupported(operation, self, reason)
    }
}

/// The part of `program` to load on a device of that architecture: machine code only if it is for exactly that one, or if there
/// is nothing else.
fn best_of(program: &CompiledProgram, architecture: Option<&str>) -> CodeType {
    let is_for_this = architecture == Some(&*program.architecture);
    match (program.cubin.is_empty(), program.ptx.is_empty(), program.lto_ir.is_empty()) {
        (false, no_text, _) if is_for_this || no_text => CodeType::Cubin,
        (_, true, false) => CodeType::LtoIr,
        _ => CodeType::Ptx,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of NVRTC for an architecture: machine code if it is a real one, and no text if LTO IR was requested.
    fn program(architecture: &str, lto: bool) -> CompiledProgram {
        let is_real = architecture.starts_with("sm_");
        CompiledProgram {
            name: "program.cu".into(),
            architecture: architecture.into(),
            ptx: if lto { String::new() } else { ".version 8.0".into() },
            cubin: if is_real && !lto { b"\x7fELF".to_vec() } else { Vec::new() },
            lto_ir: if lto { b"IR".to_vec() } else { Vec::new() },
            optix_ir: Vec::new(),
            log: String::new(),
            lowered_names: Vec::new(),
        }
    }

    #[test]
    fn machine_code_is_loaded_where_it_is_for_the_device() {
        let best = |architecture, lto| best_of(&program(architecture, lto), Some("sm_90"));
        assert_eq!(best("sm_90", false), CodeType::Cubin);
        assert_eq!(best("sm_80", false), CodeType::Ptx);
        assert_eq!(best("compute_90", false), CodeType::Ptx);
        assert_eq!(best("compute_90", true), CodeType::LtoIr);
        let alone = CompiledProgram { ptx: String::new(), ..program("sm_80", false) };
        assert_eq!(best_of(&alone, Some("sm_90")), CodeType::Cubin, "there is nothing else");
    }
}
