//! The options of a build step, and its entry points: [`compile`] for build scripts, [`Build`] with options.

use ferrogrid_syntax::Arithmetic;

use super::{Outcome, Output, Step, without_toolchain};
use crate::cache::{Caches, Lock};
use crate::cargo::Environment;
use crate::cargo::metadata::Package;
use crate::compile::cubin::{self, Cubins};
use crate::error::Error;
use crate::options::{Arch, ArchChoice, Math, Options, Origin, PanicStrategy};
use crate::toolchain::{self, libdevice};

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
    /// The slug of the only device crate to compile, for tools; `None` in build scripts.
    only: Option<String>,
    /// Whether a tool requires the architectures as given, whatever modules name.
    for_tool: bool,
}

impl Build {
    /// The default options: for `sm_75`, unless `FERROGRID_ARCH` or
    /// `package.metadata.ferrogrid.arch` in Cargo.toml say otherwise.
    pub fn new() -> Self {
        Build::default()
    }

    /// A build for `arch` alone, whatever modules name.
    pub(crate) fn for_tool(self, arch: &Arch) -> Self {
        Build { for_tool: true, ..self.arch([arch.as_str()]) }
    }

    /// A build of the device crate `slug` alone, with `options`, for tools.
    pub(crate) fn only(slug: &str, options: Options) -> Self {
        let options = Options { cubin: Some(false), ..options };
        Build { options, only: Some(slug.to_owned()), ..Build::default() }
    }

    /// The architectures to compile for. `FERROGRID_ARCH`, if set, wins over this; this wins over
    /// Cargo.toml. A module with `#[ferrogrid::module(arch = [..])]` has its own.
    pub fn arch<S: Into<String>>(mut self, archs: impl IntoIterator<Item = S>) -> Self {
        self.archs = archs.into_iter().map(Into::into).collect();
        self
    }

    /// What a panic does on the device. This wins over `package.metadata.ferrogrid.panic` in Cargo.toml
    /// (`"message"` or `"trap"`); if neither is set [`PanicStrategy::Message`], or [`PanicStrategy::Trap`]
    /// with a compiler whose messages are not known.
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

    /// Whether the PTX has the source line of each instruction (nvcc's `-lineinfo`), for profilers and for
    /// the location of panics. On unless disabled here or by `package.metadata.ferrogrid.line-info`. It costs
    /// nothing at run time.
    pub fn line_info(mut self, on: bool) -> Self {
        self.options.line_info = Some(on);
        self
    }

    /// Whether the PTX has variables and types for debuggers such as cuda-gdb, besides lines; off unless
    /// this or `package.metadata.ferrogrid.debug-info` says otherwise. Unlike with nvcc's `-G`, the code
    /// stays optimised, so a variable that is in no register has no value. The PTX becomes five to fifty
    /// times as long, and names folders of this machine.
    pub fn debug_info(mut self, on: bool) -> Self {
        self.options.debug_info = Some(on);
        self
    }

    /// Whether subnormal `f32`s count as zero on a GPU, as operands and as results (nvcc's `-ftz=true`); off
    /// unless this or `package.metadata.ferrogrid.ftz` says otherwise. A kernel can set it for itself,
    /// `#[kernel(ftz)]`. Like all arithmetic options it has no effect on the CPU device.
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

    /// Whether the program has machine code (a cubin) beside the PTX for each architecture, made by ptxas
    /// during the build, so that the driver compiles nothing at the first use of a kernel. Off unless this
    /// or `package.metadata.ferrogrid.cubin` says otherwise; `FERROGRID_CUBIN=1` or `=0` overrides both. A
    /// device whose compute capability is exactly that of an architecture loads it; all others load the PTX.
    /// Unchanged kernels are not assembled again. Where ptxas is missing or fails, cargo shows a warning,
    /// and the PTX is used.
    ///
    /// ```no_run
    /// // in `fn main` of build.rs
    /// ferrogrid_build::Build::new().arch(["sm_75", "sm_90"]).cubin(true).run()
    /// ```
    pub fn cubin(mut self, on: bool) -> Self {
        self.options.cubin = Some(on);
        self
    }

    /// Sets a `cfg` for the package's kernels, on the device and natively: `name`, or `name="value"`, as
    /// after rustc's `--cfg`. The rest of the package sees it, too. Adds to those of
    /// `package.metadata.ferrogrid.cfg`. Features of the package need no mention.
    pub fn cfg(mut self, cfg: impl Into<String>) -> Self {
        self.options.cfgs.push(cfg.into());
        self
    }

    /// Sets an environment variable for the package's crates, for `env!` on both sides. It takes the place
    /// of the build script's own `println!("cargo::rustc-env=NAME=value")`, which this crate cannot see.
    /// Adds to those of `package.metadata.ferrogrid.env`.
    ///
    /// ```no_run
    /// // in `fn main` of build.rs
    /// ferrogrid_build::Build::new().env("TABLE_SIZE", "64").run()
    /// ```
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.variables.insert(name.into(), value.into());
        self
    }

    /// The library of mathematical functions for device code. This overrides
    /// `package.metadata.ferrogrid.math` (`"libm"` or `"libdevice"`). If neither is set, it is libdevice
    /// where that is installed, else `libm`. So a program built on another machine may give other last bits;
    /// the first line of the PTX names the library.
    pub fn math(mut self, math: Math) -> Self {
        self.options.math = Some(math);
        self
    }

    /// Whether `debug_assertions` holds in device code. Unless this or
    /// `package.metadata.ferrogrid.debug-assertions` says otherwise, it does if it holds in this crate,
    /// which cargo compiles with the profile of the build. If the host half of a module has another setting,
    /// the module does not compile and says so.
    pub fn debug_assertions(mut self, on: bool) -> Self {
        self.options.debug_assertions = Some(on);
        self
    }

    /// Runs the step and prints its directives for cargo. Kernels that do not compile for the device become
    /// errors of their modules, which the macros report when the target is compiled. On any other failure
    /// this prints the reason to standard error and ends the process with status 1.
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

    /// Runs the step for a package and returns its result. It prints progress of long steps to standard
    /// error, and nothing else.
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

    /// Runs the step for `package`, described by cargo or not.
    pub(crate) fn outcome_of(&self, package: &Package, environment: &Environment) -> Result<Outcome, Error> {
        let archs = ArchChoice {
            general: self.archs(environment, package)?,
            origin: match &environment.arch {
                _ if self.for_tool => Origin::Tool,
                Some(_) => Origin::Variable,
                None => Origin::Package,
            },
        };
        let mut options = self.options.clone().or(package.options.clone());
        options.debug_assertions.get_or_insert(cfg!(debug_assertions));
        // No program loads the result of a tool's own build (`only`).
        if self.only.is_none() {
            options.cubin = cubin::asked(environment)?.or(options.cubin);
        }
        options.check()?;
        let folder = environment.out_dir.join("ferrogrid");
        // A killed cargo leaves its build script running. Without locks builds only cannot wait for each other.
        let waiting = || eprintln!("ferrogrid: waiting for another build in {}", folder.display());
        let _alone = Lock::exclusive(&folder.join("lock"), waiting).ok();
        let toolchain = match toolchain::find(&archs.general) {
            Ok(toolchain) => toolchain,
            Err(missing) => return without_toolchain(environment, package, &options, &archs, missing),
        };
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
            caches: Caches::of_build(environment),
        };
        step.run(&archs)
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

/// The error as the last output of a build script; diagnostics begin with their own `error`.
fn described(error: &Error) -> String {
    match error {
        Error::Device { .. } | Error::Dependencies { .. } => error.to_string(),
        other => format!("error: {other}"),
    }
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
