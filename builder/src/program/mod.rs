//! Programs given as text at run time, without a package: compiled by the build step, and described for
//! launches.
//!
//! | file | holds |
//! |---|---|
//! | `text.rs` | the text of a program, and its annotated modules |
//! | `kernels.rs` | the description of each kernel for launches |

mod kernels;
mod text;

use std::path::PathBuf;

use crate::cache::{self, Lock};
use crate::cargo::Environment;
use crate::cargo::metadata::Package;
use crate::error::Error;
use crate::options::{Arch, variables};
use crate::ptx::{Ptx, layout};
use crate::step::Build;
use crate::toolchain;

pub use kernels::{Facts, ProgramKernel, ProgramParameter, Travels};
use text::Text;

/// Kernels as text: an annotated module, or the content of one.
///
/// ```no_run
/// use ferrogrid_build::{Build, Program};
///
/// let text = "#[kernel] pub fn zero(t: Thread<1>, mut y: DisjointSlice<f32>) {
///     if let Some(y) = y.get_mut(t.index()) { *y = 0.0; }
/// }";
/// let program = Program::new("zero.rs", text);
/// let compiled = Build::new().fast_math(true).compile_program(&program, &"sm_90".parse()?)?;
/// assert_eq!(compiled.kernels[0].name, "program::zero");
/// # Ok::<(), ferrogrid_build::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file name in messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// Whether it may have `unsafe` code, and include files.
    pub allows_unsafe: bool,
    /// The features of `ferrogrid-device` that it uses, such as `half`.
    pub features: Vec<String>,
}

/// A compiled [`Program`].
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledProgram {
    /// A hash of the code and of the kernels' signatures.
    pub id: u128,
    /// The architecture that it was compiled for.
    pub arch: Arch,
    /// The PTX ISA version.
    pub version: (u32, u32),
    /// The PTX.
    pub ptx: String,
    /// The kernels, in the order of the text.
    pub kernels: Vec<ProgramKernel>,
}

impl Program {
    /// A program that has no `unsafe` code.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Program { name: name.into(), text: text.into(), allows_unsafe: false, features: Vec::new() }
    }

    /// Its folder in the cache, by its text and the options.
    fn folder(&self, build: &Build, arch: &Arch) -> PathBuf {
        let key =
            cache::key(format!("{self:?}\n{build:?}\n{arch}\n{}", env!("CARGO_PKG_VERSION")).as_bytes());
        cache::root().join("programs").join(key)
    }
}

impl Build {
    /// Compiles a program for `arch`. The result for the same text and options is kept in the cache
    /// ([`cache::root`]), also for other processes.
    ///
    /// # Errors
    /// [`Error::NoToolchain`], with what to do; [`Error::Syntax`] and [`Error::Device`] with lines of the
    /// text; [`Error::UnsafeProgram`]; [`Error::NoKernel`] if there is none.
    pub fn compile_program(&self, program: &Program, arch: &Arch) -> Result<CompiledProgram, Error> {
        let text = Text::read(program)?;
        toolchain::find(std::slice::from_ref(arch))?;
        let folder = program.folder(self, arch);
        cache::create_dir(&folder)?;
        let _alone = Lock::exclusive(&folder.join("lock"), || ())?;
        let source = folder.join(&text.file);
        cache::write(&source, &text.whole)?;
        let mut environment = Environment::new(&folder, folder.join("out"));
        environment.libdevice = variables::path("FERROGRID_LIBDEVICE");
        let package = Package::of_program(&folder, &source, &program.features, Default::default());
        let build = self.clone().for_tool(arch).cubin(false);
        let outcome = build.outcome_of(&package, &environment)?;
        if let Some(refusal) = outcome.refusal {
            return Err(refusal);
        }
        if let Some(file) = outcome.included.first().filter(|_| !program.allows_unsafe) {
            let finding = format!("includes {}", file.display());
            return Err(Error::UnsafeProgram { name: program.name.clone(), finding });
        }
        let [file] = outcome.output.ptx.as_slice() else { return Err(no_kernel(program)) };
        let ptx = cache::read(file)?;
        let wrong = |problem: String| Error::ptx(&program.name, arch, file, problem);
        let (parsed, layouts) = (Ptx::parse(&ptx).map_err(wrong)?, layout::read(&ptx));
        let kernels = kernels::describe(&text.modules, &parsed, &layouts).map_err(wrong)?;
        if kernels.is_empty() {
            return Err(no_kernel(program));
        }
        let id = xxhash_rust::xxh3::xxh3_128(format!("{ptx}{kernels:?}").as_bytes());
        Ok(CompiledProgram { id, arch: arch.clone(), version: parsed.version, ptx, kernels })
    }
}

fn no_kernel(program: &Program) -> Error {
    Error::NoKernel { wanted: None, place: program.name.clone(), near: None, known: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_options_and_architectures_have_folders_of_their_own() {
        let (build, arch) = (Build::new(), Arch::baseline());
        let program = Program::new("scale.rs", "a text");
        let other: Arch = "sm_90".parse().unwrap();
        let folders = [
            program.folder(&build, &arch),
            Program::new("scale.rs", "another").folder(&build, &arch),
            program.folder(&build.clone().fast_math(true), &arch),
            program.folder(&build, &other),
        ];
        for (at, folder) in folders.iter().enumerate() {
            assert!(!folders[..at].contains(folder), "{at}: {folders:?}");
        }
        assert_eq!(program.folder(&build, &arch), folders[0]);
    }
}
