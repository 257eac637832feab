//! Libraries of the CUDA toolkit that are used if they are installed, and never needed: found at run time,
//! with an error that says where to get one. It must not know what they do.

mod nvjitlink;
mod nvrtc;

use std::env;
use std::ffi::OsString;

use libloading::Library;

use crate::foreign::ForeignError;
use crate::library;

pub use nvjitlink::{NvJitLink, NvJitLinkInput};
pub use nvrtc::{CompileOptions, CompiledProgram, Nvrtc};

/// A library of the toolkit: what it is called, and where it comes from.
struct Toolkit {
    name: &'static str,
    /// The PyPI package that has it.
    package: &'static str,
    /// The environment variable that names its file.
    variable: &'static str,
    /// What the system's loader may find it by, newest first.
    files: &'static [&'static str],
}

impl Toolkit {
    /// Opens the library for the rest of the process.
    fn open(&self) -> Result<&'static Library, ForeignError> {
        let chosen = env::var_os(self.variable).filter(|file| !file.is_empty());
        let files: Vec<OsString> = match chosen {
            Some(file) => vec![file],
            None => self.files.iter().map(OsString::from).collect(),
        };
        // SAFETY: the initialisers of NVIDIA's libraries have no preconditions; whoever sets the variable
        // vouches for what it names.
        let opened = unsafe { library::open(files) };
        opened.map_err(|reasons| ForeignError::LibraryMissing {
            library: self.name,
            package: self.package,
            variable: self.variable,
            reason: reasons.join("; ").into(),
        })
    }
}

/// The functions of a library, found by name; every one returns a code that is 0 for
/// success.
macro_rules! library_calls {
    ($( $name:ident = $symbol:literal ( $($ty:ty),* $(,)? ); )*) => {
        #[derive(Clone, Copy)]
        struct Calls {
            $( $name: unsafe extern "C" fn($($ty),*) -> u32, )*
        }

        impl Calls {
            /// The functions whose names in the library are `prefix`, their own, `suffix`.
            fn find(
                library: &'static libloading::Library,
                prefix: &str,
                suffix: &str,
            ) -> Result<Self, $crate::foreign::ForeignError> {
                Ok(Calls { $(
                    $name: {
                        let symbol = format!("{prefix}{}{suffix}", $symbol);
                        // SAFETY: these are the signatures that NVIDIA documents; the library is never closed.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($ty),*) -> u32>(symbol.as_bytes())
                        };
                        *found.map_err(|error| $crate::foreign::ForeignError::Library {
                            operation: $symbol,
                            reason: $crate::library::reason(&error).into(),
                        })?
                    },
                )* })
            }
        }
    };
}

use library_calls;

/// The text of a log that is `size` bytes with its final 0, which `fill` writes.
fn text(size: usize, fill: impl FnOnce(*mut std::ffi::c_char) -> u32) -> String {
    let mut bytes = vec![0_u8; size];
    if size == 0 || fill(bytes.as_mut_ptr().cast()) != 0 {
        return String::new();
    }
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(size);
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}
