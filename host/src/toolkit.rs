//! Libraries of the CUDA toolkit that are used if they are installed: found at run time, with an error that
//! says where to get one. `nvrtc` (with `compile_options`), `nvvm` and `nvjitlink` have one each.

mod compile_options;
mod nvjitlink;
mod nvrtc;
mod nvvm;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::foreign::ForeignError;
use crate::library;

pub use compile_options::{CompileOptions, FastCompile, WarningKind};
pub use nvjitlink::NvJitLink;
pub use nvrtc::{CompiledProgram, Nvrtc};
pub use nvvm::Nvvm;

/// A library of NVIDIA's that is found as this crate finds the compilers and linkers that it uses: for other crates that
/// open libraries by a path.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{Error, ForeignError, ToolkitLibrary};
///
/// match ToolkitLibrary::Nccl.find() {
///     Ok(file) => println!("NCCL is {}", file.display()), // for `dlopen`, or a crate that takes a path
///     // Its text has all places, the package, and the variable that names the file.
///     Err(Error::Foreign(ForeignError::LibraryMissing { package, .. })) => println!("pip install {package}"),
///     Err(error) => return Err(error),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolkitLibrary {
    /// The compiler of CUDA C++ ([`Nvrtc`]; `FERROGRID_NVRTC`).
    Nvrtc,
    /// The linker of LTO IR ([`NvJitLink`]; `FERROGRID_NVJITLINK`).
    NvJitLink,
    /// The compiler of NVVM IR ([`Nvvm`]; `FERROGRID_NVVM`).
    Nvvm,
    /// Communication between GPUs, which this crate does not use (`FERROGRID_NCCL`).
    Nccl,
}

impl ToolkitLibrary {
    /// Opens the library for the rest of the process, and gives its file, or the name by which the system's loader knows
    /// it: what the variable names, and then nothing else; else what the loader finds, the active environment of Python
    /// (`VIRTUAL_ENV`) or conda (`CONDA_PREFIX`) has, or a toolkit (`CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`,
    /// `/opt/cuda`).
    ///
    /// # Errors
    /// [`ForeignError::LibraryMissing`], with all that was tried, and where to get it.
    pub fn find(self) -> crate::Result<PathBuf> {
        let toolkit = match self {
            ToolkitLibrary::Nvrtc => &nvrtc::NVRTC,
            ToolkitLibrary::NvJitLink => &nvjitlink::NVJITLINK,
            ToolkitLibrary::Nvvm => &nvvm::NVVM,
            ToolkitLibrary::Nccl => &NCCL,
        };
        Ok(toolkit.open_any()?.1.into())
    }
}

const NCCL: Toolkit = Toolkit {
    name: "NCCL",
    package: "nvidia-nccl-cu13",
    variable: "FERROGRID_NCCL",
    files: &["libnccl.so.2", "libnccl.so"],
};

/// A library of the toolkit: what it is called, and where it comes from.
struct Toolkit {
    name: &'static str,
    /// The PyPI package that has it.
    package: &'static str,
    /// The environment variable that names its file.
    variable: &'static str,
    /// What its file may be called, newest first.
    files: &'static [&'static str],
}

/// The folders of a toolkit in which libraries are.
const FOLDERS: [&str; 3] =
    if cfg!(windows) { ["bin", "bin/x64", "lib"] } else { ["lib64", "lib", "lib/x86_64-linux-gnu"] };

/// Where in a toolkit a part of it may have folders of its own: libNVVM has.
const PARTS: [&str; 2] = ["", "nvvm"];

impl Toolkit {
    /// Opens the library for the rest of the process.
    fn open(&self) -> Result<&'static Library, ForeignError> {
        self.open_any().map(|(library, _)| library)
    }

    /// The first that can be opened, and by which name.
    fn open_any(&self) -> Result<(&'static Library, OsString), ForeignError> {
        let mut reasons = Vec::new();
        for file in self.candidates(|name| env::var_os(name).filter(|value| !value.is_empty())) {
            // SAFETY: the initialisers of NVIDIA's libraries have no preconditions; whoever sets the variables
            // vouches for what they name.
            match unsafe { library::open([&file]) } {
                Ok(library) => return Ok((library, file)),
                Err(refused) => reasons.extend(refused),
            }
        }
        Err(ForeignError::LibraryMissing {
            library: self.name,
            package: self.package,
            variable: self.variable,
            reason: reasons.join("; ").into(),
        })
    }

    /// What may be its file: what its `variable` names, and then nothing else; else what the system's loader finds, and
    /// the files in the active environment of Python or conda and in toolkits.
    fn candidates(&self, variable: impl Fn(&str) -> Option<OsString>) -> Vec<OsString> {
        if let Some(file) = variable(self.variable) {
            return vec![file];
        }
        let roots = roots(variable).into_iter().flat_map(|root| PARTS.map(|part| root.join(part)));
        let folders = roots.flat_map(|root| FOLDERS.map(|folder| root.join(folder)));
        let installed = folders.flat_map(|folder| self.files.iter().map(move |file| folder.join(file)));
        let by_loader = self.files.iter().map(OsString::from);
        by_loader.chain(installed.filter(|file| file.is_file()).map(PathBuf::into_os_string)).collect()
    }
}

/// The folders that can have what a toolkit has, the most wanted first.
fn roots(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from);
    let mut roots = Vec::new();
    for python in folder("VIRTUAL_ENV").iter().flat_map(|root| children(&root.join("lib"))) {
        roots.extend(children(&python.join("site-packages/nvidia")));
    }
    roots.extend(["CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(folder));
    roots.extend(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
    roots
}

/// What is in a folder, by name.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
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

#[cfg(all(test, not(windows)))]
mod tests {
    use std::fs;

    use super::*;

    const SOME: Toolkit = Toolkit {
        name: "Some",
        package: "nvidia-some",
        variable: "FERROGRID_TEST_LIBRARY",
        files: &["libsome.so.13", "libsome.so.12"],
    };

    #[test]
    fn a_library_is_sought_by_the_loader_in_environments_and_in_toolkits() {
        let dir = std::env::temp_dir().join(format!("ferrogrid-toolkit-{}", std::process::id()));
        let [wheel, conda, toolkit, part] = [
            "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libsome.so.13",
            "conda/lib/libsome.so.12",
            "cuda/lib64/libsome.so.13",
            "cuda/nvvm/lib64/libsome.so.12",
        ]
        .map(|file| dir.join(file));
        for file in [&wheel, &conda, &toolkit, &part] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let variable = |name: &str| match name {
            "VIRTUAL_ENV" => Some(dir.join("venv").into_os_string()),
            "CONDA_PREFIX" => Some(dir.join("conda").into()),
            "CUDA_HOME" => Some(dir.join("cuda").into()),
            _ => None,
        };
        let found = SOME.candidates(variable);
        let files = [wheel, conda, toolkit, part].map(PathBuf::into_os_string);
        assert_eq!(found, [["libsome.so.13".into(), "libsome.so.12".into()].as_slice(), &files].concat());
        let named = |name: &str| {
            if name == "FERROGRID_TEST_LIBRARY" { Some("/mine.so".into()) } else { variable(name) }
        };
        assert_eq!(SOME.candidates(named), ["/mine.so"]);
        fs::remove_dir_all(dir).unwrap();
    }
}
