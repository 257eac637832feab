//! The driver's linker: combines PTX, cubins, fatbins and libraries of device code into one cubin.

use crate::backend::cuda::CudaLinker;
use crate::device::Device;
use crate::error::Result;
use crate::error::foreign::ForeignError;
use crate::image::archive::Member;
use crate::image::{CodeType, Image, JitOptions, LinkedImage};

/// Links device code for a device, by the driver's own linker (`cuLinkCreate`, `cuLinkAddData`,
/// `cuLinkComplete`). Functions that one input declares `extern` may be defined in another. For LTO IR
/// there is [`NvJitLink`](crate::NvJitLink).
///
/// ```no_run
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{Device, JitOptions, Linker};
///
/// let device = Device::cuda(0)?;
/// let kernel = ".version 8.0 ..."; // .extern .func helper; .entry main ...
/// let helper = ".version 8.0 ..."; // .visible .func helper
/// let mut linker = Linker::new(&device, &JitOptions::new().with_verbose(true))?;
/// linker.add_ptx("kernel.ptx", kernel)?;
/// linker.add_ptx("helper.ptx", helper)?;
/// let linked = linker.complete()?;
/// println!("{}", linked.log);
/// let module = device.load_cubin(&linked.cubin)?;
/// # Ok(()) }
/// ```
///
/// Of machine code and libraries:
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{JitOptions, Linker};
///
/// let device = Device::cuda(0)?;
/// let read = |path: &str| std::fs::read(path).unwrap();
/// let mut linker = Linker::new(&device, &JitOptions::new())?;
/// linker.add_cubin("kernel.cubin", &read("kernel.cubin"))?; // nvcc -rdc=true -cubin
/// linker.add_fatbin("helper.fatbin", &read("helper.fatbin"))?;
/// linker.add_library("libcudadevrt.a", &read("libcudadevrt.a"))?;
/// let linked = linker.complete()?;
/// println!("{} bytes; {}", linked.cubin.len(), linked.log);
/// let module = device.load_cubin(&linked.cubin)?;
/// # drop(module);
/// # Ok(()) }
/// ```
pub struct Linker {
    cuda: CudaLinker<'static>,
}

impl Linker {
    /// A link for `device` (`cuLinkCreate`).
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU, or the driver's error.
    pub fn new(device: &Device, options: &JitOptions) -> Result<Self> {
        let cuda = device.backend().as_cuda().ok_or_else(|| device.no_foreign_code("cuLinkCreate"))?;
        Ok(Linker { cuda: CudaLinker::new(cuda, options)? })
    }

    /// Adds PTX text; `name` is for the linker's messages (`cuLinkAddData`).
    ///
    /// # Errors
    /// [`ForeignError::Link`] with the compiler's log.
    pub fn add_ptx(&mut self, name: &str, text: &str) -> Result<()> {
        self.add(name, Image::ptx(text))
    }

    /// Adds a cubin (`cuLinkAddData`).
    ///
    /// # Errors
    /// [`ForeignError::InvalidImage`] for bytes that are not a complete cubin; [`ForeignError::Link`].
    pub fn add_cubin(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.add(name, Image::cubin(bytes))
    }

    /// Adds a fatbin (`cuLinkAddData`).
    ///
    /// # Errors
    /// As [`Linker::add_cubin`].
    pub fn add_fatbin(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.add(name, Image::fatbin(bytes))
    }

    /// Adds an object file of the host with relocatable device code, as `nvcc -dc` makes it (`cuLinkAddData`).
    ///
    /// # Errors
    /// [`ForeignError::Link`].
    pub fn add_object(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.add(name, Ok(Image::unchecked(CodeType::Object, bytes)))
    }

    /// Adds a library with device code, such as `libcudadevrt.a` (`cuLinkAddData`).
    ///
    /// # Errors
    /// [`ForeignError::Link`].
    pub fn add_library(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.add(name, Ok(Image::unchecked(CodeType::Library, bytes)))
    }

    /// Adds all members of a library, whether anything refers to them or not.
    pub(crate) fn add_members(&mut self, members: Vec<Member<'_>>) -> Result<()> {
        for Member { name, bytes } in members {
            let object = || Image::unchecked(CodeType::Object, bytes);
            let image = Image::cubin(bytes).or_else(|_| Image::fatbin(bytes)).unwrap_or_else(|_| object());
            self.cuda.add(&name, &image)?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, image: Result<Image, ForeignError>) -> Result<()> {
        self.cuda.add(name, &image?)
    }

    /// Links what was added (`cuLinkComplete`).
    ///
    /// # Errors
    /// [`ForeignError::Link`] with the linker's log: an undefined symbol, for example.
    pub fn complete(self) -> Result<LinkedImage> {
        let (cubin, log) = self.cuda.complete()?;
        Ok(LinkedImage::new(cubin, log))
    }
}

debug_by_methods!(Linker {});
