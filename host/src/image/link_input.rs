//! Code that kernels in Rust are linked with.

use std::path::Path;

use super::archive::is_archive;
use super::{CodeType, Image, read_file};
use crate::error::Result;
use crate::error::foreign::ForeignError;

/// Device code with functions that kernels in Rust call, for [`Kernel::link_with`](crate::Kernel::link_with).
///
/// ```
/// use ferrogrid::{CodeType, LinkInput};
///
/// let ptx = ".version 6.3\n.target sm_75\n.address_size 64\n";
/// let input = LinkInput::from_bytes("offset.ptx", ptx.as_bytes())?;
/// assert_eq!((input.name(), input.code_type()), ("offset.ptx", CodeType::Ptx));
/// assert!(LinkInput::from_bytes("noise", b"\0\x01").is_err());
/// # Ok::<(), ferrogrid::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkInput {
    name: Box<str>,
    code_type: CodeType,
    bytes: Box<[u8]>,
}

/// `EM_CUDA`, in the machine field of an ELF file.
const CUDA_MACHINE: [u8; 2] = [190, 0];

impl LinkInput {
    /// PTX, a cubin, a fatbin, an object file of the host with device code (`nvcc -dc`), or a library of those: the first
    /// bytes say which it is. `name` is for the linker's messages; if it ends in `.ltoir`, it is LTO IR.
    ///
    /// # Errors
    /// [`ForeignError::InvalidImage`] for bytes that are none of these, or not whole.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        let is_object = bytes.starts_with(b"\x7fELF") && bytes.get(18..20) != Some(&CUDA_MACHINE);
        let code_type = match () {
            () if name.ends_with(".ltoir") => CodeType::LtoIr,
            () if is_archive(bytes) => CodeType::Library,
            () if is_object => CodeType::Object,
            () => Image::any(bytes)?.kind(),
        };
        Ok(LinkInput { name: name.into(), code_type, bytes: bytes.into() })
    }

    /// The same from a file, under its name.
    ///
    /// # Errors
    /// [`ForeignError::Read`]; else as [`LinkInput::from_bytes`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let (name, bytes) = read_file(path.as_ref())?;
        LinkInput::from_bytes(&name, &bytes)
    }

    /// LTO IR, as `nvcc -dlto` and NVRTC make it: nvJitLink links it, and optimises over the border of languages.
    pub fn lto_ir(name: &str, bytes: &[u8]) -> Self {
        LinkInput { name: name.into(), code_type: CodeType::LtoIr, bytes: bytes.into() }
    }

    /// Its name in the linker's messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its kind.
    pub fn code_type(&self) -> CodeType {
        self.code_type
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// In the form for the driver's linker.
    pub(crate) fn image(&self) -> Result<Image, ForeignError> {
        match self.code_type {
            CodeType::Library | CodeType::Object | CodeType::LtoIr => {
                Ok(Image::unchecked(self.code_type, &self.bytes))
            }
            _ => Image::any(&self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_determine_the_kind() {
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let kind = |name: &str, bytes: &[u8]| LinkInput::from_bytes(name, bytes).unwrap().code_type();
        assert_eq!(kind("host.o", &elf), CodeType::Object);
        elf[18] = 190;
        assert!(LinkInput::from_bytes("cut.cubin", &elf[..40]).is_err());
        assert_eq!(kind("a.cubin", &elf), CodeType::Cubin);
        assert_eq!(kind("a.a", b"!<arch>\n"), CodeType::Library);
        assert_eq!(kind("a.ltoir", b"\x01\x02"), CodeType::LtoIr);
        assert_eq!(kind("a.ptx", b".version 8.0\n"), CodeType::Ptx);
    }
}
