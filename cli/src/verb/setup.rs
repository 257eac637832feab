//! `cargo ferrogrid setup`: what kernels are compiled with. It must not know how that is found or
//! provided, only how to say what happens.

use std::process::ExitCode;

use ferrogrid_build::{Arch, cache, core_cache, setup, toolchain};

use crate::Failure;

/// Provides all, and says so.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    provide()?;
    println!("ready: kernels compile for {}", names(&architectures()?));
    Ok(ExitCode::SUCCESS)
}

/// Provides what is missing; says nothing where nothing is.
pub(crate) fn ensure() -> Result<(), Failure> {
    let architectures = architectures()?;
    let Ok(toolchain) = toolchain::find(&architectures) else {
        return provide();
    };
    let is_there = |arch: &Arch| core_cache::location(&cache::root(), &toolchain.key, arch.as_str()).is_dir();
    if architectures.iter().all(is_there) { Ok(()) } else { provide() }
}

fn provide() -> Result<(), Failure> {
    setup::setup(&architectures()?, &mut |line| eprintln!("setup: {line}"))?;
    Ok(())
}

/// The architectures that builds in this folder are for.
pub(crate) fn architectures() -> Result<Vec<Arch>, Failure> {
    Ok(ferrogrid_build::architectures(&std::env::current_dir()?)?)
}

/// The architectures' names, for people.
pub(crate) fn names(architectures: &[Arch]) -> String {
    architectures.iter().map(Arch::as_str).collect::<Vec<_>>().join(", ")
}
