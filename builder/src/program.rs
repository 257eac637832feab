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
        let build = self.clone().arch([arch.as_str()]).cubin(false);
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
    use crate::inspect::Assembler;
    use crate::toolchain::cuda_toolkit::CudaTool;

    const SCALE: &str = "\
//! Scales.
/// x <- a x
#[kernel(T = [f32, f64], max_threads = 512)]
pub fn scale<T: DeviceCopy + core::ops::MulAssign>(t: Thread<1>, a: T, mut x: DisjointSlice<T>) {
    if let Some(x) = x.get_mut(t.index()) {
        *x *= a;
    }
}
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Pair { left: f32, right: u32 }
use core::sync::atomic::Ordering;
#[kernel(wide, same_shape(x, p))]
pub fn pairs(t: Thread<1>, x: &[f32], p: &[Pair], n: &[DeviceAtomic<u32>], s: SharedSlice<u32>, y: Shared<[f32; 8]>, mut z: DisjointRows<f32>, pair: (u32, f32)) {
    let _ = (&s, &y, &mut z, pair);
    n[0].fetch_add(p[t.index().get()].right + x.len() as u32, Ordering::Relaxed);
}
";

    fn compile(text: &str) -> Result<CompiledProgram, Error> {
        let build = Build::new().debug_assertions(false).math(crate::Math::Libm);
        build.compile_program(&Program::new("scale.rs", text), &Arch::baseline())
    }

    #[test]
    fn a_program_is_compiled_and_its_kernels_described() {
        let compiled = compile(SCALE).unwrap();
        assert!(compiled.ptx.contains(".target sm_75"), "{}", compiled.ptx);
        let names: Vec<&str> = compiled.kernels.iter().map(|kernel| &*kernel.name).collect();
        assert_eq!(names, ["program::scale::<f32>", "program::scale::<f64>", "program::pairs"]);
        let [single, double, pairs] = compiled.kernels.as_slice() else { panic!() };
        assert_eq!((single.line, single.rank, single.max_threads, single.wide), (4, 1, Some(512), false));
        assert_eq!((single.sizes.as_slice(), double.sizes[0]), ([(4, 4), (8, 8), (4, 4)].as_slice(), (8, 8)));
        assert!(compiled.ptx.contains(&format!(".entry {}(", double.entry)));

        let travels: Vec<Travels> = pairs.parameters.iter().map(|parameter| parameter.travels).collect();
        let number = |of: &ProgramKernel| match of.parameters[2].travels {
            Travels::Output { facts, rank: 1, rows: false } => facts,
            other => panic!("{other:?}"),
        };
        let f32_facts = number(single);
        assert_eq!((f32_facts.size, number(double).size), (Some((4, 4)), Some((8, 8))));
        assert_ne!(f32_facts.layout, number(double).layout);
        let Travels::Value { facts } = single.parameters[1].travels else { panic!() };
        assert_eq!(facts, Facts { size: None, layout: f32_facts.layout });
        let Travels::Input { facts: pair, rank: 1 } = travels[2] else { panic!("{travels:?}") };
        assert_eq!(pair.size, Some((8, 4)));
        let Travels::Input { facts: atomic, rank: 1 } = travels[3] else { panic!("{travels:?}") };
        assert_eq!(atomic.size, Some((4, 4)));
        assert_ne!(atomic.layout, f32_facts.layout, "a buffer of numbers is no atomic view");
        assert_eq!((travels[0], travels[5]), (Travels::Nowhere, Travels::Nowhere));
        assert_eq!(travels[1], Travels::Input { facts: f32_facts, rank: 1 });
        assert_eq!(travels[4], Travels::SharedSlice { size: 4 });
        assert_eq!(travels[6], Travels::Output { facts: f32_facts, rank: 2, rows: true });
        assert_eq!((travels[7], pairs.shared_bytes, pairs.wide), (Travels::Otherwise, 32, true));
        assert_eq!((pairs.parameters[2].ty.as_str(), &pairs.same_shape), ("& [Pair]", &vec![(1, vec![2])]));
    }

    #[test]
    fn a_program_that_was_compiled_before_is_not_compiled_again() {
        let text = format!("{SCALE}// Kept.");
        let program = Program::new("scale.rs", &*text);
        let (build, arch) = (Build::new().debug_assertions(false).math(crate::Math::Libm), Arch::baseline());
        let folder = program.folder(&build, &arch);
        let work = folder.join("out/ferrogrid/build");
        cache::remove(&folder).unwrap();
        let first = compile(&text).unwrap();
        assert!(work.is_dir());
        cache::remove(&work).unwrap();
        assert_eq!(compile(&text).unwrap(), first);
        assert!(!work.is_dir(), "rustc ran again");
        assert_ne!(program.folder(&build.fast_math(true), &arch), folder, "other options give other code");
    }

    #[test]
    fn errors_of_the_device_compiler_name_lines_of_the_text() {
        let error = compile(&SCALE.replace("*= a", "*= \"a\"")).unwrap_err();
        let Error::Device { diagnostics, places, .. } = &error else { panic!("{error}") };
        assert!(diagnostics.contains("scale.rs:6:"), "{diagnostics}");
        assert_eq!(places[0].1.start.0, 6);
        let none = compile("pub fn f() {}").unwrap_err().to_string();
        assert_eq!(none, "scale.rs has no kernel");
    }

    #[test]
    fn debug_information_has_variables_in_a_form_that_ptxas_takes() {
        let build = Build::new().debug_assertions(false).math(crate::Math::Libm);
        let compiled = |on: bool| {
            let text = SCALE
                .replace("*x *= a;", "assert!(*x > a, \"{x:?}\"); *x *= a;")
                .replace("core::ops::MulAssign>", "core::ops::MulAssign + PartialOrd + core::fmt::Debug>");
            let program = Program::new("scale.rs", text);
            build
                .clone()
                .debug_info(on)
                .line_info(false)
                .compile_program(&program, &Arch::baseline())
                .unwrap()
        };
        let (without, with) = (compiled(false).ptx, compiled(true).ptx);
        assert!(!without.contains(".debug_info") && with.contains(".section\t.debug_info"));
        assert!(!with.contains(".debug_aranges") && with.contains(".loc\t"), "lines belong to it");
        assert!(with.contains(".version 7.0"), "the first that has labels in sections");
        let named = std::env::var_os("FERROGRID_PTXAS").map(PathBuf::from);
        let Some(ptxas) = named.or_else(|| CudaTool::Ptxas.find(None)) else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("debug.ptx");
        cache::write(&file, &with).unwrap();
        let assembler = Assembler::new(ptxas, folder.path().to_owned());
        let cubin = assembler.assemble(&file, &Arch::baseline(), None).unwrap().cubin;
        let cubin = std::fs::read(cubin).unwrap();
        let name = b".debug_info";
        assert!(cubin.windows(name.len()).any(|bytes| bytes == name));
    }

    #[test]
    fn a_program_that_must_be_safe_reads_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("body.in");
        std::fs::write(&file, "unsafe { core::hint::unreachable_unchecked() }").unwrap();
        let text = format!("#[kernel] pub fn k(_t: Thread<1>) {{ include!({file:?}) }}");
        let error = compile(&text).unwrap_err();
        assert!(
            matches!(&error, Error::UnsafeProgram { finding, .. } if finding.contains("body.in")),
            "{error}"
        );
        let program = Program { allows_unsafe: true, ..Program::new("scale.rs", text) };
        Build::new().compile_program(&program, &Arch::baseline()).unwrap();
    }
}
