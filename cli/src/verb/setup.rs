//! `cargo ferrogrid setup`: installs what kernels are compiled with, and compiles a first kernel.

use std::fs;
use std::process::ExitCode;

use ferrogrid_build::setup::{self, Progress};
use ferrogrid_build::toolchain::{self, Toolchain};
use ferrogrid_build::{Arch, Build, Environment, cache, cache_size, core_cache, variables};

use crate::Failure;
use crate::cargo;
use crate::progress::{Stderr, Steps};
use crate::verb::{clean, new};

/// The text before each line about a step.
const TITLE: &str = "setup";

/// Installs what is missing, and compiles a first kernel.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    provide()?;
    let architectures = architectures()?;
    match compile_first_kernel(&architectures) {
        Ok(()) => println!("ready: kernels compile for {}", names(&architectures)),
        // For instance without a network: the first build fetches what is missing.
        Err(reason) => {
            eprintln!(
                "setup: the crates that kernels use could not be built; the first build tries again.\n{reason}"
            );
            println!("ready: the device toolchain for {}", names(&architectures));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles the kernel of a package such as `new` makes. That verifies the set-up, and leaves the crates that
/// kernels use in the cache, for the first build of such a package.
fn compile_first_kernel(architectures: &[Arch]) -> Result<(), Failure> {
    let mut steps = Steps::new(TITLE, Stderr);
    steps.step("compiling a first kernel, and the crates that kernels use: once, about 30 s");
    let folder = cache::root().join(format!("setup-{}", std::process::id()));
    let package = folder.join("first-kernel");
    let compile = || -> Result<(), Failure> {
        new::create(&package, new::Kind::Program, new::SOURCES.as_ref())?;
        // The newest versions, as in the first build of a package; without a network, those in the cache.
        let _ = cargo::command().args(["generate-lockfile", "--quiet"]).current_dir(&package).output();
        let mut environment = Environment::new(&package, folder.join("out"));
        environment.arch = Some(names(architectures));
        let output = Build::new().try_run(&environment)?;
        if output.ptx.len() == architectures.len() { Ok(()) } else { Err("it has no PTX".into()) }
    };
    let result = compile();
    // Nothing depends on the folder.
    let _ = fs::remove_dir_all(&folder);
    result
}

/// Installs what is missing, silently if nothing is, and keeps the cache below its limit.
pub(crate) fn ensure() -> Result<(), Failure> {
    variables::unknown().iter().for_each(|text| eprintln!("warning: {text}"));
    let architectures = architectures()?;
    let Ok(toolchain) = toolchain::find(&architectures) else {
        return provide();
    };
    trim_cache(&toolchain)?;
    let is_there = |arch: &Arch| core_cache::location(&cache::root(), &toolchain.key, arch.as_str()).is_dir();
    if architectures.iter().all(is_there) { Ok(()) } else { provide() }
}

fn trim_cache(used: &Toolchain) -> Result<(), Failure> {
    for entry in cache_size::trim(&cache::root(), cache_size::limit()?, Some(&used.key))? {
        let (size, path) = (clean::size(entry.bytes), entry.path.display());
        eprintln!("the cache was above {}: removed {size}, {path}", cache_size::LIMIT_VARIABLE);
    }
    Ok(())
}

fn provide() -> Result<(), Failure> {
    let mut steps = Steps::new(TITLE, Stderr);
    setup::setup(&architectures()?, &mut |progress| match progress {
        Progress::Step(text) => steps.step(text),
        Progress::Note(text) => steps.note(text),
        Progress::Failed(printed) => steps.failed(printed),
    })?;
    Ok(())
}

/// The architectures that builds in this folder target.
pub(crate) fn architectures() -> Result<Vec<Arch>, Failure> {
    Ok(ferrogrid_build::architectures(&std::env::current_dir()?)?)
}

/// The architectures' names as text.
pub(crate) fn names(architectures: &[Arch]) -> String {
    architectures.iter().map(Arch::as_str).collect::<Vec<_>>().join(", ")
}
