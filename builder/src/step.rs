//! The build step from beginning to end, and its options: which part runs when, what is shared
//! between targets, and what cargo is told. It must not know the details of any part.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ferrogrid_syntax::Arithmetic;
use ferrogrid_syntax::compiled::TARGETS_VARIABLE;

use crate::cache::Caches;
use crate::cargo::Environment;
use crate::cargo::dependencies::Plan;
use crate::cargo::metadata::Package;
use crate::compile::cubin::{self, Cubins};
use crate::compile::{Compiler, Image, compile_all};
use crate::error::Error;
use crate::options::{Arch, Math, Options, PanicStrategy};
use crate::output::directives::{directives, rerun_if_changed};
use crate::output::{manifest, record};
use crate::source::cfg::Cfgs;
use crate::source::device_crate::DeviceCrate;
use crate::source::scan::{Scan, scan};
use crate::toolchain::core_cache::CoreEntry;
use crate::toolchain::{self, Toolchain, core_cache, libdevice, message_layout};

/// Compiles the kernels of the package whose build script calls this, with the default options; on
/// failure prints the reason and ends the build script.
///
/// ```no_run
/// // in `fn main` of build.rs
/// ferrogrid_build::compile()
/// ```
#[track_caller]
pub fn compile() {
    Build::new().run();
}

/// The build step with options.
///
/// ```no_run
/// // in `fn main` of build.rs
/// ferrogrid_build::Build::new().arch(["sm_75", "sm_90"]).run()
/// ```
#[derive(Debug, Clone, Default)]
pub struct Build {
    archs: Vec<String>,
    options: Options,
    /// The slug of the only device crate that is wanted; a tool's wish, which no build script has.
    only: Option<String>,
}

/// What a build step made.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// What cargo must be told, one line for each.
    pub directives: Vec<String>,
    /// The PTX files.
    pub ptx: Vec<PathBuf>,
    /// The files of machine code, if that was asked for.
    pub cubins: Vec<PathBuf>,
    /// The library that mathematical functions come from; `None` if nothing could be compiled.
    pub math: Option<Math>,
    /// The annotated modules, in the order of their targets.
    pub modules: Vec<CompiledModule>,
}

/// An annotated module and what was made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledModule {
    /// Its name.
    pub name: String,
    /// The cargo target that it was compiled for, such as "example `saxpy`".
    pub target: String,
    /// The file that it stands in.
    pub file: PathBuf,
    /// Its entry points.
    pub entries: Vec<String>,
    /// The manifest that the host half includes.
    pub manifest: PathBuf,
}

impl Build {
    /// The default options: for `sm_75`, unless `FERROGRID_ARCH` or
    /// `package.metadata.ferrogrid.arch` in Cargo.toml say otherwise.
    pub fn new() -> Self {
        Build::default()
    }

    /// Only the device crate called `slug`, with `options` and nothing of the package's own.
    pub(crate) fn only(slug: &str, options: Options) -> Self {
        let options = Options { cubin: Some(false), ..options };
        Build { options, only: Some(slug.to_owned()), ..Build::default() }
    }

    /// The architectures to compile for. `FERROGRID_ARCH`, if set, wins over this; this wins over
    /// Cargo.toml.
    pub fn arch<S: Into<String>>(mut self, archs: impl IntoIterator<Item = S>) -> Self {
        self.archs = archs.into_iter().map(Into::into).collect();
        self
    }

    /// What a panic does on the device. This wins over `package.metadata.ferrogrid.panic` in Cargo.toml
    /// (`"message"` or `"trap"`); if neither is set [`PanicStrategy::Message`], or [`PanicStrategy::Trap`] with a
    /// compiler whose messages are not known.
    pub fn panic(mut self, strategy: PanicStrategy) -> Self {
        self.options.panic = Some(strategy);
        self
    }

    /// Whether integer overflow in the package's own device code panics (`-C overflow-checks`). This wins
    /// over `package.metadata.ferrogrid.overflow-checks` in Cargo.toml; off if neither is set, whatever
    /// the profile of the host's code says.
    pub fn overflow_checks(mut self, on: bool) -> Self {
        self.options.overflow_checks = Some(on);
        self
    }

    /// Whether the PTX says which source line each instruction comes from (nvcc's `-lineinfo`), for profilers,
    /// and to tell which kernel panicked; on unless switched off here or by
    /// `package.metadata.ferrogrid.line-info`. It costs nothing at run time.
    pub fn line_info(mut self, on: bool) -> Self {
        self.options.line_info = Some(on);
        self
    }

    /// Whether the PTX has variables and types for debuggers, cuda-gdb for instance, besides lines; off unless this or
    /// `package.metadata.ferrogrid.debug-info` says otherwise. Code is optimised as ever, unlike with nvcc's `-G`: a
    /// variable that is in no register has no value. The PTX is five to fifty times as long, and names folders of this
    /// machine.
    pub fn debug_info(mut self, on: bool) -> Self {
        self.options.debug_info = Some(on);
        self
    }

    /// Whether subnormal `f32`s count as zero on a GPU, as operands and as results (nvcc's `-ftz=true`); off
    /// unless this or `package.metadata.ferrogrid.ftz` says otherwise. A kernel can say it for itself,
    /// `#[kernel(ftz)]`. On the CPU device it changes nothing, as do the other options of arithmetic.
    pub fn ftz(mut self, on: bool) -> Self {
        self.options.arithmetic.ftz = Some(on);
        self
    }

    /// Whether `/` of `f32` is approximate on a GPU (nvcc's `-prec-div=false`): at most 2 ulp off (PTX
    /// `div.full.f32`, `rcp.approx.f32`); with [`ftz`](Build::ftz) `div.approx.ftz.f32`, which gives 0 for
    /// divisors above 2^126. Off unless this, `package.metadata.ferrogrid.approx-div` or
    /// `#[kernel(approx_div)]` says otherwise.
    pub fn approx_div(mut self, on: bool) -> Self {
        self.options.arithmetic.approx_div = Some(on);
        self
    }

    /// Whether the square root of `f32` is approximate on a GPU (nvcc's `-prec-sqrt=false`, PTX
    /// `sqrt.approx.f32`): relative error at most 2^-23. Off unless this,
    /// `package.metadata.ferrogrid.approx-sqrt` or `#[kernel(approx_sqrt)]` says otherwise.
    pub fn approx_sqrt(mut self, on: bool) -> Self {
        self.options.arithmetic.approx_sqrt = Some(on);
        self
    }

    /// Whether a multiplication and an addition may become one fused operation on a GPU, which rounds once
    /// (nvcc's `-fmad=true`, its default); off unless this, `package.metadata.ferrogrid.contract` or
    /// `#[kernel(contract)]` says otherwise. `mul_add` fuses in any case. The PTX leaves it to ptxas, as that
    /// of nvcc does: `mul.f32` in place of `mul.rn.f32`.
    pub fn contract(mut self, on: bool) -> Self {
        self.options.arithmetic.contract = Some(on);
        self
    }

    /// [`ftz`](Build::ftz), [`approx_div`](Build::approx_div), [`approx_sqrt`](Build::approx_sqrt) and
    /// [`contract`](Build::contract) at once; each can be switched back afterwards. Unlike nvcc's
    /// `-use_fast_math`, this replaces no functions: `fast_sin` and the like are called by name. The same as
    /// `package.metadata.ferrogrid.fast-math` and `#[kernel(fast_math)]`.
    ///
    /// ```no_run
    /// // in `fn main` of build.rs
    /// ferrogrid_build::Build::new().fast_math(true).ftz(false).run()
    /// ```
    pub fn fast_math(mut self, on: bool) -> Self {
        self.options.arithmetic = Arithmetic::fast_math(on);
        self
    }

    /// The most registers of a thread (nvcc's `-maxrregcount`, PTX `.maxnreg`), from 24 to 255, for kernels
    /// that say neither `max_registers` nor `min_blocks` themselves. Also
    /// `package.metadata.ferrogrid.max-registers`; unlimited if neither is set.
    pub fn max_registers(mut self, count: u32) -> Self {
        self.options.max_registers = Some(count);
        self
    }

    /// Whether the program has machine code (a cubin) beside the PTX for each architecture, made by ptxas here, so that
    /// the driver compiles nothing when the kernels are first used; off unless this or
    /// `package.metadata.ferrogrid.cubin` says otherwise, and `FERROGRID_CUBIN=1` or `=0` wins over both. A device
    /// whose compute capability is exactly that of an architecture loads it, every other the PTX. What was made is
    /// kept by content. Where ptxas is not found, or refuses, cargo shows a warning, and the PTX does.
    ///
    /// ```no_run
    /// // in `fn main` of build.rs
    /// ferrogrid_build::Build::new().arch(["sm_75", "sm_90"]).cubin(true).run()
    /// ```
    pub fn cubin(mut self, on: bool) -> Self {
        self.options.cubin = Some(on);
        self
    }

    /// Sets a `cfg` for the package's kernels, on the device and natively: `name`, or `name="value"`, as after
    /// rustc's `--cfg`. The rest of the package sees it, too. Adds to those of
    /// `package.metadata.ferrogrid.cfg`. Features of the package need no mention.
    pub fn cfg(mut self, cfg: impl Into<String>) -> Self {
        self.options.cfgs.push(cfg.into());
        self
    }

    /// Sets an environment variable for the package's crates, for `env!` on both sides: in place of the build script's own
    /// `println!("cargo::rustc-env=NAME=value")`, which this crate cannot see. Adds to those of
    /// `package.metadata.ferrogrid.env`.
    ///
    /// ```no_run
    /// // in `fn main` of build.rs
    /// ferrogrid_build::Build::new().env("TABLE_SIZE", "64").run()
    /// ```
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.variables.insert(name.into(), value.into());
        self
    }

    /// Where mathematical functions of device code come from. This wins over
    /// `package.metadata.ferrogrid.math` (`"libm"` or `"libdevice"`). If neither is set, it is libdevice where
    /// that is found and `libm` elsewhere, so that the same program may give other last bits when it is
    /// built on another machine: the PTX says in its first line which one it has.
    pub fn math(mut self, math: Math) -> Self {
        self.options.math = Some(math);
        self
    }

    /// Whether `debug_assertions` holds in device code. Unless this or `package.metadata.ferrogrid.debug-assertions`
    /// says otherwise, it does where it holds in this crate, to which cargo gives the profile of the build; if the
    /// host's half of a module has it otherwise, the module does not compile and says so.
    pub fn debug_assertions(mut self, on: bool) -> Self {
        self.options.debug_assertions = Some(on);
        self
    }

    /// Runs the step and tells cargo the result. Kernels that do not compile for the device are errors of the modules
    /// that they are in, which the macros show when the target is compiled; on any other failure this prints the
    /// reason to standard error and ends the process with status 1.
    #[track_caller]
    pub fn run(&self) {
        let result = Environment::from_process().and_then(|environment| self.outcome(&environment));
        match result {
            Ok(outcome) => outcome.output.directives.iter().for_each(|directive| println!("{directive}")),
            Err(error) => {
                eprintln!("{}", described(&error));
                std::process::exit(1);
            }
        }
    }

    /// Runs the step for a package and returns what was made; prints progress of long steps to
    /// standard error, and nothing else.
    ///
    /// # Errors
    /// See [`Error`]; a device compile error carries rustc's diagnostics.
    pub fn try_run(&self, environment: &Environment) -> Result<Output, Error> {
        let outcome = self.outcome(environment)?;
        outcome.refusal.map_or(Ok(outcome.output), Err)
    }

    fn outcome(&self, environment: &Environment) -> Result<Outcome, Error> {
        self.outcome_of(&Package::load(environment)?, environment)
    }

    /// What is made of `package`, whatever says what is in it.
    pub(crate) fn outcome_of(&self, package: &Package, environment: &Environment) -> Result<Outcome, Error> {
        let archs = self.archs(environment, package)?;
        let mut options = self.options.clone().or(package.options.clone());
        options.debug_assertions.get_or_insert(cfg!(debug_assertions));
        // What a tool builds for itself (`only`) has no program that would load it.
        if self.only.is_none() {
            options.cubin = cubin::asked(environment)?.or(options.cubin);
        }
        options.check()?;
        let toolchain = match toolchain::find(&archs) {
            Ok(toolchain) => toolchain,
            Err(missing) => return without_toolchain(environment, package, &options, missing),
        };
        let caches = Caches::of_build(environment);
        let mut cores = Vec::new();
        for arch in &archs {
            let mut progress = |line: &str| eprintln!("ferrogrid: {line}");
            cores.push(caches.keep(|root| core_cache::ensure(root, &toolchain, arch, &mut progress))?);
        }
        let folder = environment.out_dir.join("ferrogrid");
        let target = package.workspace_root.join("target");
        let step = Step {
            cubins: Cubins::new(options.cubin == Some(true), environment, &folder, &target),
            libdevice: libdevice::choose(options.math, environment.libdevice.as_deref())?,
            options,
            only: self.only.as_deref(),
            environment,
            package,
            toolchain: &toolchain,
            folder,
            caches,
        };
        step.run(&archs, cores)
    }

    fn archs(&self, environment: &Environment, package: &Package) -> Result<Vec<Arch>, Error> {
        if let Some(list) = &environment.arch {
            return Arch::parse_list(list);
        }
        let named = if self.archs.is_empty() { &package.archs } else { &self.archs };
        if named.is_empty() {
            return Ok(vec![Arch::baseline()]);
        }
        Arch::parse_list(&named.join(","))
    }
}

/// The error as the last words of a build script: diagnostics begin with their own `error`.
fn described(error: &Error) -> String {
    match error {
        Error::Device { .. } | Error::Dependencies { .. } => error.to_string(),
        other => format!("error: {other}"),
    }
}

pub(crate) struct Step<'a> {
    pub(crate) options: Options,
    /// The slug of the only device crate that is wanted.
    only: Option<&'a str>,
    /// Where mathematics comes from, if not from `libm`.
    libdevice: Option<PathBuf>,
    pub(crate) environment: &'a Environment,
    pub(crate) package: &'a Package,
    pub(crate) toolchain: &'a Toolchain,
    /// `OUT_DIR/ferrogrid`.
    pub(crate) folder: PathBuf,
    cubins: Cubins,
    caches: Caches,
}

/// What a step has come to.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) output: Output,
    /// Files that the device code includes.
    pub(crate) included: BTreeSet<PathBuf>,
    /// Why some kernels have no device code.
    pub(crate) refusal: Option<Error>,
}

impl Step<'_> {
    fn run(&self, archs: &[Arch], cores: Vec<CoreEntry>) -> Result<Outcome, Error> {
        let device = Cfgs::from_rustc(&cores[0].cfgs).beside_host(&self.environment.host_cfgs);
        let mut scan = scan(self.environment, self.package, &self.options, &device)?;
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
            self.remove_stale(&output)?;
            return Ok(Outcome { output, ..Outcome::default() });
        }
        let compilers = self.compilers(archs, cores, &plan)?;
        output.directives.extend(self.caches.warning());
        output.directives.extend(compilers[0].externs.inputs.directives());
        let mut outcomes = compile_all(&scan, &compilers, &self.cubins);
        for (unit, outcomes) in scan.units.iter().zip(&mut outcomes) {
            for (device_crate, outcome) in unit.device_crates.iter().zip(outcomes) {
                if let Some(problem) =
                    outcome.as_ref().ok().and_then(|images| disagreement(device_crate, images))
                {
                    *outcome = Err(problem);
                }
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
                finish(device_crate, images, &file, &mut output);
                records.push(record::unit(device_crate, images));
            }
        }
        self.remove_stale(&output)?;
        self.cubins.remove_stale(&output.cubins)?;
        record::write(self, &compilers[0].local_folders, records)?;
        let refusal = outcomes.into_iter().flatten().find_map(Result::err);
        Ok(Outcome { output, included, refusal })
    }

    /// The folder in which the macros find what was made.
    fn targets(&self) -> PathBuf {
        self.folder.join("targets")
    }

    fn math(&self) -> Math {
        if self.libdevice.is_some() { Math::Libdevice } else { Math::Libm }
    }

    /// Removes the PTX of targets and architectures that are no longer built: who collects PTX files
    /// shall find those that the program has.
    fn remove_stale(&self, output: &Output) -> Result<(), Error> {
        let entries = self.folder.read_dir().map_err(Error::io("read", &self.folder))?;
        for file in entries.flatten().map(|entry| entry.path()) {
            if file.extension().is_some_and(|it| it == "ptx") && !output.ptx.contains(&file) {
                std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
            }
        }
        Ok(())
    }

    fn compilers<'c>(
        &'c self,
        archs: &'c [Arch],
        cores: Vec<CoreEntry>,
        plan: &Plan<'_>,
    ) -> Result<Vec<Compiler<'c>>, Error> {
        let mut compilers = Vec::new();
        for (arch, core) in archs.iter().zip(cores) {
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
                local_folders: self.local_folders(plan),
            });
        }
        Ok(compilers)
    }

    /// The folders of packages that are not below the workspace, and what stands for them in PTX.
    fn local_folders(&self, plan: &Plan<'_>) -> Vec<(PathBuf, String)> {
        let libraries = self.package.libraries.values().map(|library| &library.folder);
        plan.local_folders().chain(libraries).filter_map(|folder| named(folder)).collect()
    }

    /// A trap where nobody chose, and messages could not be read.
    fn panic_strategy(&self) -> PanicStrategy {
        match self.options.panic {
            Some(chosen) => chosen,
            None if message_layout::is_known(self.toolchain) => PanicStrategy::Message,
            None => PanicStrategy::Trap,
        }
    }

    /// What becomes of panics and printed text if messages of this compiler's cannot be read.
    fn message_warning(&self) -> Option<String> {
        (!message_layout::is_known(self.toolchain)).then(|| {
            format!(
                "cargo::warning=this version of Ferrogrid does not know how {} keeps messages: on a GPU a panic is a \
                 trap without one, unless `panic = \"message\"` in [package.metadata.ferrogrid] says otherwise, and \
                 text that kernels print may be wrong",
                self.toolchain.version
            )
        })
    }

    /// When cargo must run the step again: also when what the kernels are compiled with changes.
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

/// Tells the macros where to find what was made.
fn targets_directive(folder: &Path) -> String {
    format!("cargo::rustc-env={TARGETS_VARIABLE}={}", folder.display())
}

/// What is left of the step where no device code can be compiled: kernels run on CPU devices, and CUDA launches say why.
///
/// # Errors
/// `missing`, if `FERROGRID_DEVICE_RUSTC` names a compiler that cannot do it.
fn without_toolchain(
    environment: &Environment,
    package: &Package,
    options: &Options,
    missing: Error,
) -> Result<Outcome, Error> {
    let device = Cfgs::nvptx64().beside_host(&environment.host_cfgs);
    let scan = scan(environment, package, options, &device)?;
    let mut output =
        Output { directives: directives(environment, package, options, &scan)?, ..Output::default() };
    if scan.units.is_empty() {
        return Ok(Outcome { output, ..Outcome::default() });
    }
    let named = std::env::var("FERROGRID_DEVICE_RUSTC").ok().filter(|it| !it.is_empty());
    let reason = match named.as_deref() {
        Some(toolchain::NO_DEVICE_CODE) => "it was built with FERROGRID_DEVICE_RUSTC=none".to_owned(),
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
    // Cargo runs the script again as long as the file is not there, so that a toolchain is noticed.
    output.directives.push(rerun_if_changed(&targets.join("no-such-file")));
    Ok(Outcome { output, ..Outcome::default() })
}

/// Adds what was made of a device crate.
fn finish(device_crate: &DeviceCrate, images: &[Image], manifest: &Path, output: &mut Output) {
    for image in images {
        output.ptx.push(image.file.clone());
        output.cubins.extend(image.cubin.clone());
    }
    output.modules.extend(device_crate.modules.iter().map(|module| CompiledModule {
        name: module.name.clone(),
        target: device_crate.target.clone(),
        file: module.file.clone(),
        entries: module.kernels.iter().map(|kernel| kernel.entry.clone()).collect(),
        manifest: manifest.to_owned(),
    }));
}

/// The error if architectures do not have the same entry points.
fn disagreement(device_crate: &DeviceCrate, images: &[Image]) -> Option<Error> {
    images.iter().find_map(|image| {
        let problem = image.ptx.agrees_with(&images[0].ptx).err()?;
        Some(Error::Ptx {
            target: device_crate.target.clone(),
            arch: image.ptx.target.clone(),
            problem,
            file: image.file.clone(),
        })
    })
}

/// A folder, and its name as the beginning of a path.
fn named(folder: &Path) -> Option<(PathBuf, String)> {
    let name = folder.file_name()?.to_string_lossy().into_owned();
    Some((folder.to_owned(), format!("{name}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_kept() {
        let build = Build::new().arch(["sm_90"]).overflow_checks(true).debug_assertions(false);
        assert_eq!(build.archs, ["sm_90"]);
        assert_eq!(
            (build.options.overflow_checks, build.options.debug_assertions),
            (Some(true), Some(false))
        );
    }
}
