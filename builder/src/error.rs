//! The errors of the build step, of the discovery of a toolchain, and of the set-up.

use std::io;
use std::path::{Path, PathBuf};

use ferrogrid_syntax::ARCHITECTURE_NAMES;
use ferrogrid_syntax::compiled::Diagnostic;

use crate::toolchain::Discovery;

/// Why the build step, the discovery of a toolchain or the set-up failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No rustc on this machine can compile device code.
    #[error("{0}")]
    NoToolchain(Box<Discovery>),

    /// A name that is not a device architecture.
    #[error(
        "`{given}` is not a device architecture that Ferrogrid supports: {names}",
        names = ARCHITECTURE_NAMES
    )]
    Arch {
        /// What was given.
        given: String,
    },

    /// A variable that cargo sets for build scripts is missing.
    #[error(
        "the environment variable `{0}` is not set: `ferrogrid_build` is called from a build script (build.rs)"
    )]
    NotABuildScript(&'static str),

    /// A file or directory could not be used.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// The action: "read", "write", ...
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A program could not be started.
    #[error("cannot run {program}: {source}", program = program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A program failed.
    #[error("{what} failed\n  command: {command}\n{output}")]
    Program {
        /// The purpose of the run.
        what: String,
        /// The command line.
        command: String,
        /// What it printed.
        output: String,
    },

    /// `cargo metadata` returned something unexpected.
    #[error("cannot read the package's metadata: {0}")]
    Metadata(String),

    /// A setting in Cargo.toml has a value that is not allowed.
    #[error("`package.metadata.ferrogrid.{key}` in Cargo.toml is {value}; expected {expected}")]
    Setting {
        /// The setting's name.
        key: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        expected: &'static str,
    },

    /// An environment variable of Ferrogrid's has a value that is not allowed.
    #[error("the environment variable `{name}` is `{value}`; expected {expected}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        expected: &'static str,
    },

    /// A setting in Cargo.toml that does not exist.
    #[error(
        "`package.metadata.ferrogrid.{key}` in {manifest} is not a setting of Ferrogrid; {hint}",
        manifest = manifest.display(),
        hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        }
    )]
    UnknownSetting {
        /// The manifest.
        manifest: PathBuf,
        /// The unknown name.
        key: String,
        /// The most similar setting.
        near: Option<&'static str>,
        /// All settings of that table.
        known: Vec<&'static str>,
    },

    /// The package does not depend on Ferrogrid.
    #[error(
        "package `{package}` has kernels but does not depend on `ferrogrid`: add it to [dependencies] in Cargo.toml"
    )]
    NoFerrogrid {
        /// The package.
        package: String,
    },

    /// Two annotated modules of one target have the same content.
    #[error(
        "two kernel modules of {target} have the same name and content:\n  --> {first}\n  --> {second}\nEntry points are named after a module's content; keep one module and use it from both places"
    )]
    DuplicateModule {
        /// The cargo target.
        target: String,
        /// `file:line` of the first.
        first: String,
        /// `file:line` of the second.
        second: String,
    },

    /// A kernel includes a file outside of the workspace by a relative path.
    #[error(
        "{from} includes {path:?} in a module of kernels, which is outside of the workspace: name it from the package's \
         folder, `concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/..\")`",
        from = from.display()
    )]
    IncludedOutside {
        /// The file with the module.
        from: PathBuf,
        /// What it includes.
        path: String,
    },

    /// A program given as text is not valid Rust, or has invalid kernels.
    #[error("{problems}", problems = problems.iter().map(|(line, column, problem)| format!(
        "error: {problem}\n  --> {name}:{line}:{column}"
    )).collect::<Vec<_>>().join("\n"))]
    Syntax {
        /// The program's name.
        name: String,
        /// Line and column of each problem, counted from 1, and what it is.
        problems: Vec<(usize, usize, String)>,
    },

    /// A safe program contains `unsafe` code, or includes files, which may contain some.
    #[error(
        "{name} {finding}, which nothing can check at run time; if you know that the code is sound, compile it by an \
         `unsafe` call"
    )]
    UnsafeProgram {
        /// The program's name.
        name: String,
        /// The unsafe code or the file, and where.
        finding: String,
    },

    /// rustc refused the device code; its diagnostics name the user's files.
    #[error("{diagnostics}\nerror: the kernels of {target} do not compile for the device ({arch}){hint}")]
    Device {
        /// The cargo target.
        target: String,
        /// The architecture.
        arch: String,
        /// What rustc printed.
        diagnostics: String,
        /// Advice that fits the diagnostics, or nothing.
        hint: String,
        /// The diagnostics by their places in the user's files.
        places: Vec<(PathBuf, Diagnostic)>,
    },

    /// A crate that kernels name does not compile for the device.
    #[error(
        "{diagnostics}\nerror: the crates that kernels use do not compile for the device ({crates})\n  kernels can use no_std crates; look for a feature (often `std`) to switch off"
    )]
    Dependencies {
        /// The crates' names.
        crates: String,
        /// What cargo printed.
        diagnostics: String,
    },

    /// Two targets with the same cargo variables have the same annotated module.
    #[error(
        "{first} and {second} both have the kernels of module `{module}`, and cargo does not say which of the two is being \
         compiled: give one of them another name"
    )]
    AmbiguousTarget {
        /// One target.
        first: String,
        /// The other target.
        second: String,
        /// The module.
        module: String,
    },

    /// The package's library, which other targets' kernels use, could not be compiled.
    #[error("the library that these kernels use: {problem}")]
    Library {
        /// The reason.
        problem: String,
    },

    /// libdevice is required and not installed.
    #[error(
        "`math` is `\"libdevice\"`, which is not installed on this machine\n{places}\
         a CUDA toolkit contains it, and so does a PyPI package: `pip install nvidia-nvvm`; if it is in another place, \
         set FERROGRID_LIBDEVICE to the file libdevice.10.bc",
        places = places.iter().map(|place| format!("  not there: {}\n", place.display())).collect::<String>()
    )]
    NoLibdevice {
        /// The places that were searched.
        places: Vec<PathBuf>,
    },

    /// The file named as libdevice is not LLVM bitcode.
    #[error(
        "{file} is not a file of LLVM bitcode: FERROGRID_LIBDEVICE names the file libdevice.10.bc",
        file = file.display()
    )]
    BadLibdevice {
        /// The named file.
        file: PathBuf,
    },

    /// A build has left no record of its kernels.
    #[error(
        "the build left no record of its kernels in {folder}: its build script does not call ferrogrid_build::compile(), \
         or a ferrogrid-build of another version; with the same version, build again",
        folder = folder.display()
    )]
    NoRecord {
        /// The `OUT_DIR` of the build script.
        folder: PathBuf,
    },

    /// The source of a kernel is not that of its compiled code.
    #[error("{} has no kernel `{kernel}` as it was built: it was edited meanwhile, or a macro makes its module; build again", file.display())]
    Edited {
        /// The source file.
        file: PathBuf,
        /// The kernel.
        kernel: String,
    },

    /// There is no kernel of that name, or none at all.
    #[error("{place} has no kernel{which}{hint}",
        which = wanted.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default(),
        hint = match (near, known.as_slice()) {
            (Some(near), _) => format!("; did you mean `{near}`?"),
            (None, []) => String::new(),
            (None, known) if known.len() <= 10 => format!("; there are: {}", known.join(", ")),
            (None, known) => format!(
                "; there are {}, such as {}; `cargo ferrogrid inspect` shows all",
                known.len(),
                known[..5].join(", ")
            ),
        }
    )]
    NoKernel {
        /// The requested name.
        wanted: Option<String>,
        /// The package or cargo target that was searched.
        place: String,
        /// The kernel with the most similar name.
        near: Option<String>,
        /// All kernels there, most similar first.
        known: Vec<String>,
    },

    /// The PTX does not match the source.
    #[error("the PTX of {target} for {arch} is not as expected: {problem}\n  file: {file}", file = file.display())]
    Ptx {
        /// The cargo target.
        target: String,
        /// The architecture.
        arch: String,
        /// The mismatch.
        problem: String,
        /// The PTX.
        file: PathBuf,
    },

    /// No device toolchain could be provided.
    #[error("no device toolchain could be set up:\n{tried}By hand, do one of these:\n{by_hand}", by_hand = crate::toolchain::BY_HAND)]
    Setup {
        /// One line for each attempt, with its outcome.
        tried: String,
    },
}

impl Error {
    /// The error of a library, as that of a target that uses it.
    pub(crate) fn for_others(&self) -> Error {
        match self {
            Error::Device { target, arch, diagnostics, hint, places } => Error::Device {
                target: target.clone(),
                arch: arch.clone(),
                diagnostics: diagnostics.clone(),
                hint: hint.clone(),
                places: places.clone(),
            },
            other => Error::Library { problem: other.to_string() },
        }
    }

    /// Whether it is about this machine and not about the program: a full disk, or a killed compiler.
    pub(crate) fn is_of_machine(&self) -> bool {
        matches!(self, Error::Io { .. } | Error::Spawn { .. } | Error::Program { .. })
    }

    /// PTX that does not match the source.
    pub(crate) fn ptx(target: &str, arch: impl ToString, file: &Path, problem: impl ToString) -> Error {
        let (target, file) = (target.to_owned(), file.to_owned());
        Error::Ptx { target, arch: arch.to_string(), problem: problem.to_string(), file }
    }

    /// Whether it is about a file or directory in `folder`, or about a folder above it.
    pub(crate) fn is_below(&self, folder: &Path) -> bool {
        matches!(self, Error::Io { path, .. } if path.starts_with(folder) || folder.starts_with(path))
    }

    /// For `map_err` on file operations: `Error::io("read", path)`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }
}
