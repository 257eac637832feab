//! The build step from beginning to end: the order of its parts, the results that targets share, and cargo's
//! directives. `step/build.rs` has its options and entry points.

mod build;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ferrogrid_syntax::compiled::TARGETS_VARIABLE;

use crate::cache::{self, Caches};
use crate::cargo::Environment;
use crate::cargo::dependencies::Plan;
use crate::cargo::metadata::Package;
use crate::compile::cubin::Cubins;
use crate::compile::{Compiler, Image, compile_all};
use crate::error::Error;
use crate::options::{Arch, ArchChoice, Math, Options, PanicStrategy};
use crate::output::directives::{directives, rerun_if_changed};
use crate::output::manifest::{self, Outcomes};
use crate::output::record;
use crate::source::cfg::Cfgs;
use crate::source::device_crate::DeviceCrate;
use crate::source::scan::{Scan, scan};
use crate::toolchain::core_cache::{self, CoreEntry};
use crate::toolchain::{self, Toolchain, message_layout};

pub use build::{Build, compile};

/// The result of a build step.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// The lines for cargo: `cargo::rerun-if-changed=...` and the like.
    pub directives: Vec<String>,
    /// The PTX files.
    pub ptx: Vec<PathBuf>,
    /// The files with machine code, if any.
    pub cubins: Vec<PathBuf>,
    /// The library of mathematical functions; `None` if nothing could be compiled.
    pub math: Option<Math>,
    /// The annotated modules, in the order of their targets.
    pub modules: Vec<CompiledModule>,
}

/// An annotated module of which the step has compiled the kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledModule {
    /// Its name.
    pub name: String,
    /// The cargo target that it belongs to, such as "example `saxpy`".
    pub target: String,
    /// The file that contains it.
    pub file: PathBuf,
    /// Its entry points.
    pub entries: Vec<String>,
    /// The manifest that the host half includes.
    pub manifest: PathBuf,
}

/// A step, once its options and its compiler are known.
pub(crate) struct Step<'a> {
    pub(crate) options: Options,
    /// The slug of the only device crate to compile; `None` for all.
    only: Option<&'a str>,
    /// libdevice, if mathematical functions come from it.
    libdevice: Option<PathBuf>,
    pub(crate) environment: &'a Environment,
    pub(crate) package: &'a Package,
    pub(crate) toolchain: &'a Toolchain,
    /// `OUT_DIR/ferrogrid`.
    pub(crate) folder: PathBuf,
    cubins: Cubins,
    caches: Caches,
}

/// The result of a step.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) output: Output,
    /// The files that the device code includes.
    pub(crate) included: BTreeSet<PathBuf>,
    /// The reasons why some kernels have no device code.
    pub(crate) refusal: Option<Error>,
}

impl Output {
    /// Adds the files and modules of a device crate.
    fn add(&mut self, device_crate: &DeviceCrate, images: &[Image], manifest: &Path) {
        self.ptx.extend(images.iter().map(|image| image.file.clone()));
        self.cubins.extend(images.iter().filter_map(|image| image.cubin.clone()));
        self.modules.extend(device_crate.modules.iter().map(|module| CompiledModule {
            name: module.name.clone(),
            target: device_crate.target.clone(),
            file: module.file.clone(),
            entries: module.kernels.iter().map(|kernel| kernel.entry.clone()).collect(),
            manifest: manifest.to_owned(),
        }));
    }
}

impl Step<'_> {
    fn run(&self, choice: &ArchChoice) -> Result<Outcome, Error> {
        let cfgs = self.core(&choice.general[0])?.cfgs;
        let device = Cfgs::from_rustc(&cfgs).beside_host(&self.environment.host_cfgs);
        let mut scan = scan(self.environment, self.package, &self.options, choice, &device)?;
        if let Some(only) = self.only {
            scan.units.iter_mut().for_each(|unit| unit.device_crates.retain(|it| it.slug == only));
        }
        let names = scan.names(self.package);
        let (panic, libdevice) = (self.panic_strategy(), self.libdevice.as_deref());
        let plan = Plan::new(self.package, self.toolchain, panic, libdevice, &names);
        let directives = self.directives(&scan, &plan)?;
        let mut output = Output { directives, math: Some(self.math()), ..Output::default() };
        if scan.units.is_empty() {
            manifest::write(&scan, &[], self.package, false, &self.targets())?;
            record::write(self, &[], Vec::new())?;
            self.remove_stale_ptx(&output)?;
            return Ok(Outcome { output, ..Outcome::default() });
        }
        let local_folders = self.local_folders(&plan);
        let folders = self.folders_of_lines(&local_folders);
        let archs = scan.archs();
        let compilers = self.compilers(&archs, &plan, &folders)?;
        output.directives.extend(self.caches.warning());
        // A tool's device crate may no longer exist. Some files are read for some architectures only.
        let inputs: BTreeSet<String> =
            compilers.iter().flat_map(|it| it.externs.inputs.directives()).collect();
        output.directives.extend(inputs);
        let mut outcomes = compile_all(&scan, &compilers, &self.cubins);
        // These are not the kernels' errors, which stay recorded until an input changes.
        if let Some(failure) = take_failure_of_machine(&mut outcomes) {
            return Err(failure);
        }
        let device_crates = || scan.units.iter().flat_map(|unit| &unit.device_crates);
        for (device_crate, outcome) in device_crates().zip(outcomes.iter_mut().flatten()) {
            let images = outcome.as_ref().map_or(&[][..], Vec::as_slice);
            if let Some(problem) = disagreement(device_crate, images) {
                *outcome = Err(problem);
            }
        }
        let debug_assertions = self.options.debug_assertions == Some(true);
        let files = manifest::write(&scan, &outcomes, self.package, debug_assertions, &self.targets())?;
        output.directives.push(targets_directive(&self.targets()));
        let images = || outcomes.iter().flatten().flatten().flatten();
        output.directives.extend(self.cubins.warnings(images()));
        let inputs: BTreeSet<String> = images().flat_map(|image| image.inputs.directives()).collect();
        let included = images().flat_map(|image| image.inputs.files.iter().cloned()).collect();
        output.directives.extend(inputs);
        let mut records = Vec::new();
        for ((unit, outcomes), file) in scan.units.iter().zip(&outcomes).zip(files) {
            for (device_crate, images) in unit.device_crates.iter().zip(outcomes) {
                let Ok(images) = images else { continue };
                output.add(device_crate, images, &file);
                records.push(record::unit(device_crate, images));
            }
        }
        // Last, so that at no time a file is named that has been removed.
        record::write(self, &local_folders, records)?;
        self.remove_stale_ptx(&output)?;
        self.cubins.remove_stale(&output.cubins)?;
        let refusal = outcomes.into_iter().flatten().find_map(Result::err);
        Ok(Outcome { output, included, refusal })
    }

    /// The folder in which the macros find the file of their target.
    fn targets(&self) -> PathBuf {
        self.folder.join("targets")
    }

    fn math(&self) -> Math {
        if self.libdevice.is_some() { Math::Libdevice } else { Math::Libm }
    }

    /// Removes the PTX of targets and architectures that are no longer built, and what a killed build has left of
    /// one: the PTX files of the folder are those of the program.
    fn remove_stale_ptx(&self, output: &Output) -> Result<(), Error> {
        let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ptx = |file: &Path| name(file).ends_with(".ptx") || name(file).contains(".ptx.partial-");
        cache::retain(&self.folder, |file| !is_ptx(file) || output.ptx.iter().any(|it| it == file))
    }

    /// `core` for an architecture, built first if it is missing.
    fn core(&self, arch: &Arch) -> Result<CoreEntry, Error> {
        let mut progress = |line: &str| eprintln!("ferrogrid: {line}");
        self.caches.keep(|root| core_cache::ensure(root, self.toolchain, arch, &mut progress))
    }

    fn compilers<'c>(
        &'c self,
        archs: &'c BTreeSet<Arch>,
        plan: &Plan<'_>,
        folders: &'c [(PathBuf, String)],
    ) -> Result<Vec<Compiler<'c>>, Error> {
        let mut compilers = Vec::new();
        for arch in archs {
            let core = self.core(arch)?;
            let place = self.folder.join("externs").join(arch.as_str());
            let externs = self.caches.keep(|root| plan.build(arch, &core, root, &place))?;
            compilers.push(Compiler {
                toolchain: self.toolchain,
                arch,
                core,
                externs,
                options: &self.options,
                package: &self.package.id,
                math: self.math(),
                folder: &self.folder,
                workspace_root: &self.package.workspace_root,
                folders,
            });
        }
        Ok(compilers)
    }

    /// The folders of packages outside the workspace, and their names in PTX.
    fn local_folders(&self, plan: &Plan<'_>) -> Vec<(PathBuf, String)> {
        let libraries = self.package.libraries.values().map(|library| &library.folder);
        let named =
            |folder: &PathBuf| Some((folder.clone(), format!("{}/", folder.file_name()?.to_string_lossy())));
        plan.local_folders().chain(libraries).filter_map(named).collect()
    }

    /// The folders in line tables, and their machine-independent names; `local_folders` among them.
    fn folders_of_lines(&self, local_folders: &[(PathBuf, String)]) -> Vec<(PathBuf, String)> {
        let library = self.toolchain.sysroot.join("lib/rustlib/src/rust/library");
        let real = library.canonicalize().ok();
        let workspace = (self.package.workspace_root.clone(), String::new());
        let libraries = [Some(library), real].into_iter().flatten();
        let libraries = libraries.map(|folder| (folder, "/rustc/library/".to_owned()));
        [workspace].into_iter().chain(libraries).chain(local_folders.iter().cloned()).collect()
    }

    /// The chosen strategy; by default a message, or a trap if the compiler's messages cannot be decoded.
    fn panic_strategy(&self) -> PanicStrategy {
        match self.options.panic {
            Some(chosen) => chosen,
            None if message_layout::is_known(self.toolchain) => PanicStrategy::Message,
            None => PanicStrategy::Trap,
        }
    }

    /// A warning if the messages of this compiler cannot be decoded.
    fn message_warning(&self) -> Option<String> {
        (!message_layout::is_known(self.toolchain)).then(|| {
            format!(
                "cargo::warning=this version of Ferrogrid does not know how {} lays out messages: a panic on a GPU is a \
                 trap without a message, unless [package.metadata.ferrogrid] has `panic = \"message\"`, and text that \
                 kernels print may be wrong",
                self.toolchain.version
            )
        })
    }

    /// The directives of [`directives`], and those for the kernels' inputs.
    fn directives(&self, scan: &Scan, plan: &Plan<'_>) -> Result<Vec<String>, Error> {
        let mut directives = directives(self.environment, self.package, &self.options, scan)?;
        directives.extend(self.message_warning().filter(|_| !scan.units.is_empty()));
        let mut files = plan.manifests();
        files.insert(self.toolchain.rustc.clone());
        files.extend(self.libdevice.clone());
        directives.extend(files.iter().map(|file| rerun_if_changed(file)));
        Ok(directives)
    }
}

/// Tells the macros where the files of the targets are.
fn targets_directive(folder: &Path) -> String {
    format!("cargo::rustc-env={TARGETS_VARIABLE}={}", folder.display())
}

/// The step where no device code can be compiled: kernels run on CPU devices, and CUDA launches fail with
/// the reason.
///
/// # Errors
/// `missing`, if `FERROGRID_DEVICE_RUSTC` names a compiler that cannot be used.
fn without_toolchain(
    environment: &Environment,
    package: &Package,
    options: &Options,
    archs: &ArchChoice,
    missing: Error,
) -> Result<Outcome, Error> {
    let device = Cfgs::nvptx64().beside_host(&environment.host_cfgs);
    let scan = scan(environment, package, options, archs, &device)?;
    let mut output =
        Output { directives: directives(environment, package, options, &scan)?, ..Output::default() };
    if scan.units.is_empty() {
        return Ok(Outcome { output, ..Outcome::default() });
    }
    let named = toolchain::named();
    let reason = match &named {
        Some(it) if it == toolchain::NO_DEVICE_CODE => {
            "it was built with FERROGRID_DEVICE_RUSTC=none".to_owned()
        }
        Some(_) => return Err(missing),
        None => format!("when it was built, {missing}"),
    };
    let targets = environment.out_dir.join("ferrogrid/targets");
    manifest::write_reason(&reason, &targets)?;
    output.directives.push(targets_directive(&targets));
    if named.is_some() {
        return Ok(Outcome { output, ..Outcome::default() });
    }
    output.directives.push(
        "cargo::warning=no rustc on this machine compiles device code: kernels run on the CPU device only; \
         `cargo ferrogrid setup` provides one, `cargo ferrogrid doctor` says what is missing"
            .to_owned(),
    );
    // Cargo runs the script at every build while this file is missing, so a new toolchain is noticed.
    output.directives.push(rerun_if_changed(&targets.join("no-such-file")));
    Ok(Outcome { output, ..Outcome::default() })
}

/// The first error that says nothing about the kernels.
fn take_failure_of_machine(outcomes: &mut [Outcomes]) -> Option<Error> {
    let mut all = outcomes.iter_mut().flatten();
    let failed = all.find(|it| it.as_ref().is_err_and(Error::is_of_machine))?;
    std::mem::replace(failed, Ok(Vec::new())).err()
}

/// The error if entry points have other parameters for one architecture than for another.
fn disagreement(device_crate: &DeviceCrate, images: &[Image]) -> Option<Error> {
    images.iter().find_map(|image| {
        let problem = image.ptx.agrees_with(&images[0].ptx).err()?;
        Some(Error::ptx(&device_crate.target, &image.ptx.target, &image.file, problem))
    })
}
