//! The kinds of device code that are loaded and linked.

use std::fmt;

/// A kind of device code: what a module was loaded from ([`ForeignModule::code_type`](crate::ForeignModule::code_type)), or
/// an input of [`NvJitLink`](crate::NvJitLink) (`nvJitLinkInputType`).
///
/// ```no_run
/// use ferrogrid::{CodeType, NvJitLink, Result};
///
/// /// A cubin for `sm_90` of PTX and a library of device code.
/// fn link(ptx: &str, library: &[u8]) -> Result<Vec<u8>> {
///     let mut link = NvJitLink::new(&["-arch=sm_90"])?;
///     link.add(CodeType::Ptx, "kernel.ptx", ptx.as_bytes())?;
///     link.add(CodeType::Library, "libcudadevrt.a", library)?;
///     Ok(link.complete()?.cubin)
/// }
/// assert_eq!(CodeType::LtoIr.to_string(), "LTO IR");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeType {
    /// Machine code.
    Cubin = 1,
    /// PTX text.
    Ptx = 2,
    /// Intermediate code for optimisation at link time.
    LtoIr = 3,
    /// A fatbin: PTX and cubins for several architectures.
    Fatbin = 4,
    /// An object file of the host with device code in it.
    Object = 5,
    /// A library of such objects (`.a`).
    Library = 6,
}

impl CodeType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            CodeType::Cubin => "cubin",
            CodeType::Ptx => "PTX",
            CodeType::LtoIr => "LTO IR",
            CodeType::Fatbin => "fatbin",
            CodeType::Object => "object",
            CodeType::Library => "library",
        }
    }
}

impl fmt::Display for CodeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
