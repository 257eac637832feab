//! `cargo ferrogrid doctor`: installed and missing components, with advice. It changes nothing.

use std::path::Path;
use std::process::ExitCode;

use ferrogrid_build::cuda_toolkit::{self, CudaTool};
use ferrogrid_build::toolchain::{self, Candidate, Toolchain};
use ferrogrid_build::{Arch, cache, core_cache, libdevice, variables};
use ferrogrid_host::{Device, Error, NEEDED_DRIVER, NvJitLink, Nvrtc};

use serde_json::Value;

use crate::Failure;
use crate::cargo::Package;
use crate::finding::{Finding, none_is_wrong, report};
use crate::output;
use crate::selection::Members;
use crate::verb::setup;

/// The arguments of `doctor`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Prints all findings; fails if something is wrong.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let packages = Members::find().map(|it| it.family(&it.current_or_all())).unwrap_or_default();
    let mut findings: Vec<Finding> = packages.iter().map(package_finding).collect();
    let target_folder = packages.first().and_then(Package::target_folder);
    findings.extend(packages.iter().flat_map(manifest_settings));
    findings.extend(variable_settings());
    let architectures = match setup::architectures() {
        Ok(architectures) => architectures,
        Err(error) => {
            findings.push(Finding::wrong(
                "architectures",
                error.to_string(),
                "correct it; sm_75 is checked instead",
            ));
            vec![Arch::baseline()]
        }
    };
    findings.extend(compilers(&architectures));
    findings.push(mathematics());
    findings.push(driver());
    findings.extend(Device::all().iter().map(|it| device(it, &architectures)));
    findings.extend(CudaTool::ALL.map(|tool| cuda_tool(tool, target_folder)));
    findings.extend([nvrtc(), nvjitlink()]);
    if options.json {
        output::line(format_args!("{:#}", report(&findings)))?;
    } else {
        findings.iter().try_for_each(output::line)?;
    }
    Ok(if none_is_wrong(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the current package can have kernels.
fn package_finding(package: &Package) -> Finding {
    let place = package.manifest.display();
    let has_script = package.has_build_script();
    if package.name() == "ferrogrid" {
        return Finding::ok("package", format!("{place} is Ferrogrid"));
    }
    match (uses(package), package.depends_on("ferrogrid-build", Some("build"))) {
        (false, false) => Finding::note("package", format!("{place} does not use Ferrogrid"), None),
        (true, true) if has_script => Finding::ok("package", format!("{place} compiles kernels")),
        (true, true) => Finding::wrong(
            "package",
            format!("{place} has no build script, so its kernels are not compiled"),
            "write a build.rs with\n    fn main() { ferrogrid_build::compile() }",
        ),
        (true, false) => Finding::wrong(
            "package",
            format!("{place} has no build step for kernels"),
            "cargo add --build ferrogrid-build, and call ferrogrid_build::compile() in build.rs",
        ),
        (false, true) => Finding::wrong(
            "package",
            format!("{place} has a build step for kernels, but not the crate that they use"),
            "cargo add ferrogrid",
        ),
    }
}

/// The settings in the package's Cargo.toml.
fn manifest_settings(package: &Package) -> Vec<Finding> {
    let settings = package.settings();
    let one = |(key, value): (&String, &Value)| {
        Finding::ok("setting", format!("{key} = {value} in {}", package.manifest.display()))
    };
    settings.into_iter().flatten().map(one).collect()
}

/// The variables that are set, and unknown ones.
fn variable_settings() -> Vec<Finding> {
    let in_force = variables::in_force();
    let in_force =
        in_force.into_iter().map(|(name, value)| Finding::ok("setting", format!("{name}={value}")));
    let unknown = variables::unknown().into_iter().map(|text| Finding::note("setting", text, None));
    in_force.chain(unknown).collect()
}

/// Whether the package depends on Ferrogrid, at least for tests, examples and benches.
fn uses(package: &Package) -> bool {
    package.depends_on("ferrogrid", None) || package.depends_on("ferrogrid", Some("dev"))
}

/// The compilers, and the `core` of the chosen one for each architecture.
fn compilers(architectures: &[Arch]) -> Vec<Finding> {
    let discovery = toolchain::discover(architectures);
    let Some(used) = discovery.best() else {
        let text = discovery.candidates.iter().map(|candidate| format!("{candidate}\n"));
        let text: String =
            ["no rustc on this machine can compile kernels\n".to_owned()].into_iter().chain(text).collect();
        return vec![Finding::wrong("device compiler", text, "cargo ferrogrid setup")];
    };
    let is_used = |candidate: &&Candidate| candidate.verdict.as_ref().is_ok_and(|found| found == used);
    let (usable, others): (Vec<_>, Vec<_>) = discovery.candidates.iter().partition(is_used);
    let usable = usable.iter().map(|it| Finding::ok("device compiler", it.to_string()));
    let cores = architectures.iter().map(|architecture| core(used, architecture));
    // No advice for the others: one compiler suffices.
    let others = others.iter().map(|it| Finding::note("other compiler", it.to_string(), None));
    usable.chain(cores).chain(others).collect()
}

fn core(used: &Toolchain, architecture: &Arch) -> Finding {
    let place = core_cache::location(&cache::root(), &used.key, architecture.as_str());
    match place.is_dir() {
        true => Finding::ok("core", format!("{architecture} in {}", place.display())),
        false => Finding::note(
            "core",
            format!("{architecture} is built at the first use, in about half a minute"),
            "cargo ferrogrid setup builds it now".to_owned(),
        ),
    }
}

/// The library of mathematical functions, unless a build selects it.
fn mathematics() -> Finding {
    match libdevice::find() {
        Ok(Some(file)) => Finding::ok("libdevice", file.display().to_string()),
        Ok(None) => Finding::note(
            "libdevice",
            "not installed; kernels use the mathematical functions of libm, which are slower",
            "pip install nvidia-nvvm, in a virtual environment that is active where you build".to_owned(),
        ),
        Err(error) => {
            Finding::wrong("libdevice", error.to_string(), "correct FERROGRID_LIBDEVICE, or unset it")
        }
    }
}

fn driver() -> Finding {
    let (major, minor) = NEEDED_DRIVER;
    match Device::driver_version() {
        Ok(found) if found >= NEEDED_DRIVER => {
            Finding::ok("driver", format!("NVIDIA, for CUDA {}.{}", found.0, found.1))
        }
        Ok(found) => Finding::wrong(
            "driver",
            format!("NVIDIA, for CUDA {}.{} only", found.0, found.1),
            format!("install a driver for CUDA {major}.{minor} or newer"),
        ),
        Err(Error::NoDriver { .. }) => Finding::note(
            "driver",
            "no NVIDIA driver; programs run on the CPU device",
            format!(
                "on a machine with an NVIDIA GPU, install its driver (for CUDA {major}.{minor} or newer)"
            ),
        ),
        Err(error) => Finding::wrong("driver", error.to_string(), "check that nvidia-smi works"),
    }
}

/// A device, and whether kernels for `architectures` run on it.
fn device(device: &Device, architectures: &[Arch]) -> Finding {
    let Some((major, minor)) = device.compute_capability() else {
        return Finding::ok("device", device.name());
    };
    let text = format!("{}, compute capability {major}.{minor}", device.name());
    if architectures.iter().any(|architecture| architecture.runs_on((major, minor))) {
        return Finding::ok("device", text);
    }
    Finding::wrong(
        "device",
        format!("{text}: kernels for {} do not run on it", setup::names(architectures)),
        format!("add \"sm_{major}{minor}\" to `arch` in [package.metadata.ferrogrid]"),
    )
}

/// An optional NVIDIA program, with which `inspect` shows more.
fn cuda_tool(tool: CudaTool, target_folder: Option<&Path>) -> Finding {
    let advice = || Some(format!("{}, for `cargo ferrogrid inspect`", tool.advice(target_folder)));
    let Some(program) = tool.find(target_folder) else {
        return Finding::note(tool.name(), "not installed, and not required to build or run", advice());
    };
    match cuda_toolkit::version(&program) {
        Some(version) => Finding::ok(tool.name(), format!("{}: {version}", program.display())),
        None => Finding::note(tool.name(), format!("{} does not run", program.display()), advice()),
    }
}

fn nvrtc() -> Finding {
    match Nvrtc::load() {
        Ok(nvrtc) => Finding::ok("NVRTC", format!("version {}.{}", nvrtc.version().0, nvrtc.version().1)),
        Err(_) => Finding::note(
            "NVRTC",
            "not installed; only required to compile CUDA C++ while a program runs",
            "pip install nvidia-cuda-nvrtc, in a virtual environment that is active where programs run"
                .to_owned(),
        ),
    }
}

fn nvjitlink() -> Finding {
    match NvJitLink::new(&["-arch=sm_75"]) {
        Ok(_) => Finding::ok("nvJitLink", "installed"),
        Err(_) => Finding::note(
            "nvJitLink",
            "not installed; only required to link LTO IR while a program runs",
            "pip install nvidia-nvjitlink, in a virtual environment that is active where programs run"
                .to_owned(),
        ),
    }
}
