//! Libraries of the CUDA toolkit, loaded at run time if they are installed; the error for a missing one
//! names its source. `nvrtc` (with `compile_options`), `nvvm` and `nvjitlink` have one each.

mod compile_options;
mod nvjitlink;
mod nvrtc;
mod nvvm;

use std::env;
use std::ffi::{CString, OsString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use libloading::Library;

use crate::error::foreign::ForeignError;
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
    /// Communication between GPUs, for `ferrogrid-nccl` (`FERROGRID_NCCL`).
    Nccl,
}

impl ToolkitLibrary {
    /// Opens the library for the rest of the process, and returns its file, or the name under which the system's loader finds
    /// it: the file that the variable names, or that is in the folder that it names, and then nothing else; else what the loader finds, the active environment of Python
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
    errors: &[],
};

/// A library of the toolkit: its names and its source.
struct Toolkit {
    name: &'static str,
    /// The PyPI package that has it.
    package: &'static str,
    /// The environment variable that names its file.
    variable: &'static str,
    /// Its possible file names, newest first.
    files: &'static [&'static str],
    /// The names of its error codes, from 1 on.
    errors: &'static [&'static str],
}

/// The folders of a toolkit in which libraries are.
const FOLDERS: [&str; 3] =
    if cfg!(windows) { ["bin", "bin/x64", "lib"] } else { ["lib64", "lib", "lib/x86_64-linux-gnu"] };

/// The subfolders of a toolkit's component; libNVVM has one.
const PARTS: [&str; 2] = ["", "nvvm"];

impl Toolkit {
    /// Opens the library for the rest of the process.
    fn open(&self) -> Result<&'static Library, ForeignError> {
        self.open_any().map(|(library, _)| library)
    }

    /// The first library that can be opened, and its name.
    fn open_any(&self) -> Result<(&'static Library, OsString), ForeignError> {
        let mut reasons = Vec::new();
        for file in self.candidates(|name| env::var_os(name).filter(|value| !value.is_empty())) {
            // SAFETY: the initialisers of NVIDIA's libraries have no preconditions; setting the variables
            // vouches for the files that they name.
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

    /// The name of an error's code, and below it what its `log` says; later versions may have further codes.
    fn explain(&self, code: u32, log: &str) -> Box<str> {
        let named = (code as usize).checked_sub(1).and_then(|index| self.errors.get(index));
        let error = match named {
            Some(name) => format!("{name} ({code})"),
            None => format!("{} error {code}", self.name),
        };
        if log.is_empty() { error.into() } else { format!("{error}\n{log}").into() }
    }

    /// The candidates for its file: the one named by its `variable` alone, or those in the folder that it names; otherwise those that the system's loader finds, and
    /// the files in the active environment of Python or conda and in toolkits.
    fn candidates(&self, variable: impl Fn(&str) -> Option<OsString>) -> Vec<OsString> {
        if let Some(file) = variable(self.variable) {
            let folder = Path::new(&file);
            return match folder.is_dir() {
                true => self.files.iter().map(|file| folder.join(file).into_os_string()).collect(),
                false => vec![file],
            };
        }
        let roots = roots(variable).into_iter().flat_map(|root| PARTS.map(|part| root.join(part)));
        let folders = roots.flat_map(|root| FOLDERS.map(|folder| root.join(folder)));
        let installed = folders.flat_map(|folder| self.files.iter().map(move |file| folder.join(file)));
        let by_loader = self.files.iter().map(OsString::from);
        by_loader.chain(installed.filter(|file| file.is_file()).map(PathBuf::into_os_string)).collect()
    }
}

/// The folders that can be toolkits, the preferred ones first.
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

/// The entries of a folder, by name.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The functions of a library, found by name once for the process; every one returns a code that is 0 for success. Their
/// names in the library are the prefix, their own, and the first suffix for which there are all.
macro_rules! library_calls {
    ($toolkit:ident, $prefix:literal, $suffixes:expr; $( $name:ident = $symbol:literal ( $($ty:ty),* $(,)? ); )*) => {
        #[derive(Clone, Copy)]
        struct Calls {
            $( $name: unsafe extern "C" fn($($ty),*) -> u32, )*
        }

        impl Calls {
            fn load() -> $crate::Result<&'static Calls> {
                static CALLS: std::sync::OnceLock<Result<Calls, $crate::error::foreign::ForeignError>> =
                    std::sync::OnceLock::new();
                let find = || {
                    let library = $toolkit.open()?;
                    let mut all = $suffixes.iter().map(|suffix| Calls::find(library, suffix));
                    all.clone().find(Result::is_ok).or_else(|| all.next_back()).expect("there is a suffix")
                };
                CALLS.get_or_init(find).as_ref().map_err(|error| error.clone().into())
            }

            fn find(
                library: &'static libloading::Library,
                suffix: &str,
            ) -> Result<Self, $crate::error::foreign::ForeignError> {
                Ok(Calls { $(
                    $name: {
                        let symbol = format!("{}{}{suffix}", $prefix, $symbol);
                        // SAFETY: these are the signatures that NVIDIA documents; the library is never closed.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($ty),*) -> u32>(symbol.as_bytes())
                        };
                        *found.map_err(|error| $crate::error::foreign::ForeignError::Library {
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

/// A program in a compiler, or a link in a linker, as its library names it.
type Handle = *mut c_void;

/// Two functions of a library: one gives the bytes of something, the other writes as many.
type Output =
    (unsafe extern "C" fn(Handle, *mut usize) -> u32, unsafe extern "C" fn(Handle, *mut c_char) -> u32);

/// A program or a link, destroyed when dropped.
struct Live {
    raw: Handle,
    destroy: unsafe extern "C" fn(*mut Handle) -> u32,
}

impl Live {
    /// The object that `create` returns, and its code. A failure may also return an object, which has a log.
    fn create(
        destroy: unsafe extern "C" fn(*mut Handle) -> u32,
        create: impl FnOnce(&mut Handle) -> u32,
    ) -> (Self, u32) {
        let mut live = Live { raw: null_mut(), destroy };
        let code = create(&mut live.raw);
        (live, code)
    }

    /// # Errors
    /// The library's code for a missing object.
    fn bytes(&self, (size, get): Output) -> Result<Vec<u8>, u32> {
        let checked = |code| if code == 0 { Ok(()) } else { Err(code) };
        let mut len = 0;
        // SAFETY: the object is live, and `len` is valid for the call.
        checked(unsafe { size(self.raw, &mut len) })?;
        let mut bytes = vec![0; len];
        if len > 0 {
            // SAFETY: the object is live, and there is room for as many bytes as it reported.
            checked(unsafe { get(self.raw, bytes.as_mut_ptr().cast()) })?;
        }
        Ok(bytes)
    }

    /// The text of a log; empty if there is none.
    fn log(&self, output: Output) -> String {
        let bytes = if self.raw.is_null() { Vec::new() } else { self.bytes(output).unwrap_or_default() };
        text(&bytes).trim().to_owned()
    }
}

/// The text before the final 0.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the object is live, and not used again.
            unsafe { (self.destroy)(&mut self.raw) };
        }
    }
}

/// C strings for libraries, with their addresses; a byte of 0 in one is replaced.
fn c_strings<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> (Vec<CString>, Vec<*const c_char>) {
    let strings: Vec<CString> = texts.into_iter().map(|text| c_string(text.as_ref())).collect();
    let pointers = strings.iter().map(|text| text.as_ptr()).collect();
    (strings, pointers)
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
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
        errors: &["SOME_ERROR_FIRST", "SOME_ERROR_SECOND"],
    };

    #[test]
    fn errors_have_the_names_of_their_codes_and_a_log_below_them() {
        assert_eq!(*SOME.explain(1, ""), *"SOME_ERROR_FIRST (1)");
        assert_eq!(*SOME.explain(2, "a log"), *"SOME_ERROR_SECOND (2)\na log");
        assert_eq!([0, 3].map(|code| SOME.explain(code, "")), ["Some error 0".into(), "Some error 3".into()]);
    }

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
        let folder = |name: &str| (name == "FERROGRID_TEST_LIBRARY").then(|| dir.join("conda/lib").into());
        let files = SOME.files.iter().map(|file| dir.join("conda/lib").join(file).into_os_string());
        assert_eq!(SOME.candidates(folder), files.collect::<Vec<_>>());
        fs::remove_dir_all(dir).unwrap();
    }
}
