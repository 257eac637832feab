//! `cargo ferrogrid doctor`: what is there, what is missing, and what to do, a line each. It changes
//! nothing, and must not know how to provide anything.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use ferrogrid_build::{Arch, cache, core_cache, libdevice, toolchain};
use ferrogrid_host::Device;

use crate::Failure;
use crate::verb::setup;

/// Prints all findings; fails if kernels cannot be compiled.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let architectures = setup::architectures()?;
    let can_build = toolchains(&architectures);
    mathematics();
    devices();
    ptxas();
    Ok(if can_build { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(verdict: &str, subject: &str, finding: &str) {
    println!("{verdict:<5} {subject:<17} {finding}");
}

/// The compilers that were looked at, and the one that is used; whether there is one.
fn toolchains(architectures: &[Arch]) -> bool {
    let discovery = toolchain::discover(architectures);
    for candidate in &discovery.candidates {
        let place = format!("{} ({})", candidate.rustc.display(), candidate.origin);
        match &candidate.verdict {
            Ok(found) => line("ok", "device compiler", &format!("{place}: {}", found.version)),
            Err(reason) => line("-", "not used", &format!("{place}: {reason}")),
        }
    }
    let Some(used) = discovery.best() else {
        line("NO", "device compiler", "kernels cannot be compiled; run `cargo ferrogrid setup`");
        return false;
    };
    line("ok", "used", &used.rustc.display().to_string());
    for arch in architectures {
        let place = core_cache::location(&cache::root(), &used.key, arch.as_str());
        match place.is_dir() {
            true => line("ok", "core", &format!("{} in {}", arch.as_str(), place.display())),
            false => line(
                "-",
                "core",
                &format!("{} is built at the first use, in about half a minute", arch.as_str()),
            ),
        }
    }
    true
}

/// Where kernels get their mathematical functions, unless the build pins that.
fn mathematics() {
    match libdevice::find() {
        Ok(Some(file)) => line("ok", "mathematics", &format!("libdevice: {}", file.display())),
        Ok(None) => {
            line("-", "mathematics", "libm; libdevice is faster, PyPI has it: pip install nvidia-nvvm")
        }
        Err(error) => line("NO", "mathematics", &error.to_string()),
    }
}

/// The devices that programs can run on.
fn devices() {
    if let Err(error) = Device::cuda(0) {
        line("-", "CUDA", &format!("{error}; programs run on the CPU device"));
    }
    for device in Device::all() {
        let capability = device.compute_capability();
        let capability = capability.map(|(major, minor)| format!(", compute capability {major}.{minor}"));
        line("ok", "device", &format!("{}{}", device.name(), capability.unwrap_or_default()));
    }
}

/// NVIDIA's assembler: not needed, but used by tests of generated code.
fn ptxas() {
    let program = std::env::var_os("FERROGRID_PTXAS").map_or_else(|| PathBuf::from("ptxas"), PathBuf::from);
    let output = Command::new(&program).arg("--version").output();
    let version = output.ok().filter(|output| output.status.success()).map(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find(|line| line.contains("release")).unwrap_or("of unknown version").to_owned()
    });
    match version {
        Some(version) => line("ok", "ptxas", &format!("{}: {version}", program.display())),
        None => line("-", "ptxas", "not found, and not needed; PyPI has it: pip install nvidia-cuda-nvcc"),
    }
}
