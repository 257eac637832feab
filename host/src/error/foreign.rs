//! Errors of foreign code.

use std::fmt::{Display, from_fn};

/// An error about code that this program did not compile.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{ForeignError, Nvrtc};
///
/// match Nvrtc::load() {
///     Ok(nvrtc) => println!("NVRTC {:?}", nvrtc.version()),
///     // Its text says where to get it, and which variable names the file.
///     Err(Error::Foreign(ForeignError::LibraryMissing { package, .. })) => println!("pip install {package}"),
///     Err(error) => return Err(error),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    /// A file could not be read.
    #[error("cannot read `{path}`: {reason}")]
    Read {
        /// The file.
        path: Box<str>,
        /// The system's message.
        reason: Box<str>,
    },
    /// The bytes are not an image of the expected kind.
    #[error("invalid {kind}: {reason}")]
    InvalidImage {
        /// The expected kind: `PTX`, `cubin`, `fatbin` or `library`.
        kind: &'static str,
        /// What is wrong.
        reason: Box<str>,
    },
    /// The driver refused an image.
    #[error("the {kind} does not load on {device}: {log}")]
    Load {
        /// What it is: `PTX`, `cubin` or `fatbin`.
        kind: &'static str,
        /// The device.
        device: Box<str>,
        /// The driver's error, and the log of its compiler.
        log: Box<str>,
    },
    /// The linker refused an input, or could not link them.
    #[error("{linker} cannot link {input}: {log}")]
    Link {
        /// The linker: the driver's, or nvJitLink.
        linker: &'static str,
        /// The name of the input at fault, or `the program`.
        input: Box<str>,
        /// The linker's error and log.
        log: Box<str>,
    },
    /// Kernels in Rust call functions that they declare as `extern`, and no linked code defines them.
    #[error(
        "no linked code has {}, which kernels call: name the file that has it at the `extern` block, `#[link(file = \"..\")]`, or give it by `Kernel::link_with` before the first launch",
        quoted(functions)
    )]
    UnresolvedFunctions {
        /// Their names in the PTX.
        functions: Vec<Box<str>>,
    },
    /// Code cannot be linked with kernels that are already loaded.
    #[error(
        "kernel `{kernel}`: its module was loaded before; what it is linked with is given before its first launch"
    )]
    AlreadyLinked {
        /// The kernel's name.
        kernel: &'static str,
    },
    /// A program in CUDA C++ or NVVM IR did not compile.
    #[error("{compiler} cannot compile `{program}`: {log}")]
    Compile {
        /// The compiler: NVRTC or libNVVM.
        compiler: &'static str,
        /// The program's name.
        program: Box<str>,
        /// The compiler's error and log.
        log: Box<str>,
    },
    /// A library of the CUDA toolkit is missing.
    #[error(
        "{library} is not installed: {reason}; it comes with the CUDA toolkit and with the PyPI package `{package}`; the variable {variable} names the file"
    )]
    LibraryMissing {
        /// The library.
        library: &'static str,
        /// The PyPI package that has it.
        package: &'static str,
        /// The environment variable that names its file.
        variable: &'static str,
        /// The loader's message.
        reason: Box<str>,
    },
    /// A library of the CUDA toolkit failed.
    #[error("{operation} failed: {reason}")]
    Library {
        /// The function of the library.
        operation: &'static str,
        /// The library's error message.
        reason: Box<str>,
    },
    /// A module has no such function.
    #[error(
        "{} has no kernel `{name}`: C++ names are mangled unless declared `extern \"C\"`{}",
        of_module(module),
        known_names(known)
    )]
    NoFunction {
        /// The module's name; empty if it has none.
        module: Box<str>,
        /// The requested name.
        name: Box<str>,
        /// The kernels that it has, if known.
        known: Vec<Box<str>>,
    },
    /// A module has no such global variable.
    #[error("{} has no global variable `{name}`", of_module(module))]
    NoGlobal {
        /// The module's name; empty if it has none.
        module: Box<str>,
        /// The requested name.
        name: Box<str>,
    },
    /// A global variable is not as large as its stated type.
    #[error(
        "the global variable `{name}` has {bytes} bytes, which is no whole number of elements of {element_size} bytes"
    )]
    GlobalSize {
        /// Its name.
        name: Box<str>,
        /// Its size in bytes.
        bytes: usize,
        /// The size of an element in bytes.
        element_size: usize,
    },
    /// The parameters of a kernel are not known, so a launch cannot be checked.
    #[error(
        "kernel `{kernel}`: its parameters are not known; for machine code they come from the driver, of CUDA 12.4 or newer; load PTX instead"
    )]
    UnknownParameters {
        /// The kernel's name.
        kernel: &'static str,
    },
    /// A launch has another number of arguments than the kernel has parameters.
    #[error("kernel `{kernel}` has {expected} parameters, but this is for {found}")]
    ParameterCount {
        /// The kernel's name.
        kernel: &'static str,
        /// How many it has.
        expected: usize,
        /// How many arguments there are, each slice counted as a pointer and a length where it is.
        found: usize,
    },
    /// An argument has another size than the kernel's parameter.
    #[error(
        "kernel `{kernel}`: parameter {number}{} has {expected} bytes, but the argument has {found}",
        called(name)
    )]
    ParameterSize {
        /// The kernel's name.
        kernel: &'static str,
        /// The number of the parameter, from 1.
        number: usize,
        /// Its name, if known.
        name: Option<Box<str>>,
        /// Its size in bytes.
        expected: usize,
        /// The size of the argument in bytes.
        found: usize,
    },
    /// A launch asks for more dynamic shared memory than a block can have.
    #[error(
        "kernel `{kernel}`: {dynamic} bytes of dynamic and {fixed} of static shared memory are more than the {limit} that a block can have"
    )]
    SharedMemory {
        /// The kernel's name.
        kernel: &'static str,
        /// The bytes requested.
        dynamic: u32,
        /// The bytes of the kernel's static shared memory.
        fixed: u32,
        /// The device's limit to both.
        limit: u32,
    },
    /// A cluster has no blocks, or more than can be counted.
    #[error(
        "kernel `{kernel}`: a cluster of {} x {} x {} blocks is not possible; most devices take 1 to 16 blocks",
        cluster[0], cluster[1], cluster[2]
    )]
    ClusterSize {
        /// The kernel's name.
        kernel: &'static str,
        /// Blocks of a cluster along each axis, x first.
        cluster: [u32; 3],
    },
    /// A function was launched on a stream of another device than it was loaded on.
    #[error("kernel `{kernel}` was loaded on {loaded}, but launched on a stream of {stream}")]
    OtherDevice {
        /// The kernel's name.
        kernel: &'static str,
        /// The device of the module.
        loaded: Box<str>,
        /// The stream's device.
        stream: Box<str>,
    },
}

fn of_module(name: &str) -> impl Display {
    from_fn(
        move |f| {
            if name.is_empty() { f.write_str("the module") } else { write!(f, "the module `{name}`") }
        },
    )
}

fn known_names(names: &[Box<str>]) -> impl Display {
    from_fn(move |f| if names.is_empty() { Ok(()) } else { write!(f, "; it has {}", quoted(names)) })
}

fn quoted(names: &[Box<str>]) -> String {
    format!("`{}`", names.join("`, `"))
}

fn called(name: &Option<Box<str>>) -> impl Display {
    from_fn(move |f| name.as_ref().map_or(Ok(()), |name| write!(f, " (`{name}`)")))
}
