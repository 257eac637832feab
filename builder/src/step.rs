//! The build step from beginning to end, and its options: which part runs when, what is shared
//! between targets, and what cargo is told. It must not know the details of any part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferrogrid_syntax::Arithmetic;

use crate::arch::Arch;
use crate::cache::Caches;
use crate::cfg::Cfgs;
use crate::compile::{Compiler, Image, OwnLibrary};
use crate::core_cache::CoreEntry;
use crate::cubin::{self, Cubins};
use crate::dependencies::Plan;
use crate::directives::{directives, rerun_if_changed};
use crate::environment::Environment;
use crate::error::Error;
use crate::math::Math;
use crate::metadata::Package;
use crate::options::Options;
use crate::panic_strategy::PanicStrategy;
use crate::record;
use crate::scan::{Scan, Unit, scan};
use crate::toolchain::{self, Toolchain};
use crate::{core_cache, libdevice, manifest, message_layout};

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

    /// Runs the step and tells cargo the result; on failure prints the reason to standard error and
    /// ends the process with status 1.
    #[track_caller]
    pub fn run(&self) {
        let result = Environment::from_process().and_then(|environment| self.try_run(&environment));
        match result {
            Ok(output) => output.directives.iter().for_each(|directive| println!("{directive}")),
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
        let package = Package::load(environment)?;
        let archs = self.archs(environment, &package)?;
        let mut options = self.options.clone().or(package.options.clone());
        // What a tool builds for itself (`only`) has no program that would load it.
        if self.only.is_none() {
            options.cubin = cubin::asked(environment)?.or(options.cubin);
        }
        options.check()?;
        let toolchain = match toolchain::find(&archs) {
            Ok(toolchain) => toolchain,
            Err(missing) => return without_toolchain(environment, &package, &options, missing),
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
            package: &package,
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

impl Step<'_> {
    fn run(&self, archs: &[Arch], cores: Vec<CoreEntry>) -> Result<Output, Error> {
        let device = Cfgs::from_rustc(&cores[0].cfgs).beside_host(&self.environment.host_cfgs);
        let mut scan = scan(self.environment, self.package, &self.options, &device)?;
        if let Some(only) = self.only {
            // Others may take code from the library.
            scan.units.retain(|unit| unit.device_crate.slug == only || unit.is_library());
        }
        let modules = scan.units.iter().flat_map(|unit| &unit.device_crate.modules);
        let names: BTreeSet<&String> = modules.flat_map(|module| &module.names).collect();
        let plan = Plan::new(
            self.package,
            self.toolchain,
            self.panic_strategy(),
            self.libdevice.as_deref(),
            names.iter().copied(),
        );
        let directives = self.directives(&scan, &plan)?;
        let mut output = Output { directives, math: Some(self.math()), ..Output::default() };
        if scan.units.is_empty() {
            record::write(self, &[], Vec::new())?;
            self.remove_stale(&output)?;
            return Ok(output);
        }
        let compilers = self.compilers(archs, cores, &plan)?;
        output.directives.extend(self.caches.warning());
        output.directives.extend(compilers[0].externs.inputs.directives());
        let libraries = self.libraries(&scan.units, &compilers)?;
        let images = compile_all(&scan.units, &compilers, &libraries, &self.cubins)?;
        output.directives.extend(self.cubins.warnings(images.iter().flatten()));
        let mut records = Vec::new();
        for (unit, images) in scan.units.iter().zip(images) {
            self.finish(unit, &images, &mut output)?;
            records.push(record::unit(unit, &images));
        }
        self.remove_stale(&output)?;
        self.cubins.remove_stale(&output.cubins)?;
        record::write(self, &compilers[0].local_folders, records)?;
        Ok(output)
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
                variables: &self.environment.crate_variables,
                math: self.math(),
                folder: &self.folder,
                workspace_root: &self.package.workspace_root,
                local_folders: plan.local_folders().filter_map(|folder| named(folder)).collect(),
            });
        }
        Ok(compilers)
    }

    /// The package's own library for each architecture, if another target's modules name it.
    fn libraries(&self, units: &[Unit], compilers: &[Compiler<'_>]) -> Result<Vec<OwnLibrary>, Error> {
        let library = units.iter().find(|unit| unit.is_library());
        let Some(library) = library.map(|unit| &unit.device_crate) else { return Ok(Vec::new()) };
        // In the package `ferrogrid` itself that name is the facade, there as everywhere.
        if library.crate_name == "ferrogrid" {
            return Ok(Vec::new());
        }
        if !units.iter().any(|unit| unit.names_library(&library.crate_name)) {
            return Ok(Vec::new());
        }
        compilers.iter().map(|compiler| compiler.library(library)).collect()
    }

    /// Writes the manifests of a compiled unit.
    fn finish(&self, unit: &Unit, images: &[Image], output: &mut Output) -> Result<(), Error> {
        for image in images {
            if let Err(problem) = image.ptx.agrees_with(&images[0].ptx) {
                return Err(Error::Ptx {
                    target: unit.device_crate.target.clone(),
                    arch: image.ptx.target.clone(),
                    problem,
                    file: image.file.clone(),
                });
            }
            output.ptx.push(image.file.clone());
            output.cubins.extend(image.cubin.clone());
        }
        for &at in &unit.provides {
            let module = &unit.device_crate.modules[at];
            let file = manifest::write(module, images, &self.folder)?;
            let variable = manifest::variable(module);
            output.directives.push(format!("cargo::rustc-env={variable}={}", file.display()));
            output.modules.push(CompiledModule {
                name: module.name.clone(),
                target: unit.device_crate.target.clone(),
                file: module.file.clone(),
                entries: module.kernels.iter().map(|kernel| kernel.entry.clone()).collect(),
                manifest: file,
            });
        }
        Ok(())
    }

    /// When cargo must run the step again: also when what the kernels are compiled with changes.
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

/// What is left of the step where no device code can be compiled: nothing, if the package has none.
///
/// # Errors
/// `missing`, if the package has kernels to compile.
fn without_toolchain(
    environment: &Environment,
    package: &Package,
    options: &Options,
    missing: Error,
) -> Result<Output, Error> {
    let device = Cfgs::nvptx64().beside_host(&environment.host_cfgs);
    let scan = scan(environment, package, options, &device)?;
    if !scan.units.is_empty() {
        return Err(missing);
    }
    Ok(Output { directives: directives(environment, package, options, &scan)?, ..Output::default() })
}

/// A folder, and its name as the beginning of a path.
fn named(folder: &Path) -> Option<(PathBuf, String)> {
    let name = folder.file_name()?.to_string_lossy().into_owned();
    Some((folder.to_owned(), format!("{name}/")))
}

/// Compiles every unit for every architecture, as many at once as there are processors. Returns the
/// images by unit, in the order of the architectures.
fn compile_all(
    units: &[Unit],
    compilers: &[Compiler<'_>],
    libraries: &[OwnLibrary],
    cubins: &Cubins,
) -> Result<Vec<Vec<Image>>, Error> {
    let jobs: Vec<(usize, usize)> =
        (0..units.len()).flat_map(|unit| (0..compilers.len()).map(move |arch| (unit, arch))).collect();
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<(usize, usize), Result<Image, Error>>> = Mutex::default();
    let work = || {
        while let Some(&(unit, arch)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let library = libraries.get(arch).filter(|library| units[unit].names_library(&library.name));
            let mut image = compilers[arch].image(&units[unit].device_crate, library);
            if let Ok(image) = &mut image {
                cubins.add_to(image, compilers[arch].arch);
            }
            done.lock().unwrap_or_else(|it| it.into_inner()).insert((unit, arch), image);
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..processors.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    let done = done.into_inner().unwrap_or_else(|it| it.into_inner());
    let mut images: Vec<Vec<Image>> = units.iter().map(|_| Vec::new()).collect();
    for ((unit, _), image) in done {
        images[unit].push(image?);
    }
    Ok(images)
}
