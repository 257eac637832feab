//! Typed options of NVRTC.

use std::fmt;

/// How to compile a program with [`Nvrtc::compile`](super::Nvrtc::compile). All options that NVRTC documents have a method;
/// one that is given again takes the place of the one before, but for those that add up. An option that the installed
/// NVRTC does not know is an error of the compilation, with its words.
///
/// ```
/// use ferrogrid::{CompileOptions, Device};
///
/// let options = CompileOptions::new()
///     .with_name("scale.cu") // in messages
///     .with_architecture("compute_90")
///     .with_header("factor.h", "#define FACTOR 3.0f")
///     .with_option("-use_fast_math")
///     .with_name_expression("scale<float>"); // a template: its mangled name is requested
/// assert_eq!((&*options.name, &*options.architecture), ("scale.cu", "compute_90"));
/// assert_eq!(options.headers[0].0, "factor.h"); // for `#include "factor.h"`
/// assert_eq!((options.options.len(), options.name_expressions.len()), (1, 1));
/// // For the GPU at hand; for the CPU device as `new`.
/// assert_eq!(CompileOptions::for_device(&Device::cpu()), CompileOptions::new());
/// ```
///
/// ```
/// use ferrogrid::{CompileOptions, FastCompile};
///
/// let options = CompileOptions::new()
///     .with_fast_math(true)
///     .with_prec_div(true) // but for division
///     .with_max_registers(64)
///     .with_standard("c++20")
///     .with_define("TILE", "16")
///     .with_include_path("/usr/local/cuda/include")
///     .with_fast_compile(FastCompile::Min)
///     .with_diag_suppress([177, 550]);
/// assert_eq!(options.options[..3], ["--use_fast_math", "--prec-div=true", "--maxrregcount=64"]);
/// assert_eq!(options.options[4], "--define-macro=TILE=16");
/// assert_eq!(options.with_fast_math(false).options.len(), 7); // taken back
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The program's name in messages.
    pub name: String,
    /// `compute_75` for PTX, `sm_90` for machine code as well; NVRTC's own default if empty (`--gpu-architecture`).
    pub architecture: String,
    /// Headers that the program may include: (name in the `#include`, text).
    pub headers: Vec<(String, String)>,
    /// C++ names, such as `scale<float>`, whose mangled names are requested.
    pub name_expressions: Vec<String>,
    /// The other options as NVRTC has them: `--use_fast_math`, `--include-path=/usr/local/cuda/include`.
    pub options: Vec<String>,
}

/// How much NVRTC leaves out to compile faster (`--Ofast-compile`).
///
/// ```
/// use ferrogrid::{CompileOptions, FastCompile};
///
/// let options = CompileOptions::new().with_fast_compile(FastCompile::Max);
/// assert_eq!(options.options, ["--Ofast-compile=max"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FastCompile {
    /// Nothing (`0`).
    Off,
    /// Some expensive optimisations do less (`min`).
    Min,
    /// No expensive optimisations (`mid`).
    Mid,
    /// As little as it can (`max`).
    Max,
}

display_words!(FastCompile { Off = "0", Min = "min", Mid = "mid", Max = "max" });

/// Warnings that are errors (`--warning-as-error`).
///
/// ```
/// use ferrogrid::{CompileOptions, WarningKind};
///
/// let options = CompileOptions::new().with_warning_as_error(WarningKind::All);
/// assert_eq!(options.options, ["--warning-as-error=all-warnings"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// All (`all-warnings`).
    All,
    /// Members that are initialised in another order than they are declared (`reorder`).
    Reorder,
    /// What is declared deprecated (`deprecated-declarations`).
    DeprecatedDeclarations,
}

display_words!(WarningKind {
    All = "all-warnings",
    Reorder = "reorder",
    DeprecatedDeclarations = "deprecated-declarations",
});

impl CompileOptions {
    /// The default: the oldest architecture that NVRTC compiles for.
    pub fn new() -> Self {
        CompileOptions { name: "program.cu".into(), ..CompileOptions::default() }
    }

    /// The same under this name in messages.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same for this architecture: `compute_75`, `sm_90`.
    #[must_use]
    pub fn with_architecture(mut self, architecture: impl Into<String>) -> Self {
        self.architecture = architecture.into();
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// The same with one more C++ name whose mangled name is requested (`nvrtcAddNameExpression`).
    #[must_use]
    pub fn with_name_expression(mut self, expression: impl Into<String>) -> Self {
        self.name_expressions.push(expression.into());
        self
    }

    /// The same with one more option in NVRTC's form, for options without a method here.
    #[must_use]
    pub fn with_option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// The same with the macro `name` of this value; adds to those before (`--define-macro`).
    #[must_use]
    pub fn with_define(self, name: impl fmt::Display, value: impl fmt::Display) -> Self {
        self.with_option(format!("--define-macro={name}={value}"))
    }

    /// All options for NVRTC, in order.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = self.options.clone();
        if !self.architecture.is_empty() {
            arguments.push(format!("--gpu-architecture={}", self.architecture));
        }
        arguments
    }

    /// The option `name` without a value, or not at all.
    fn flag(self, name: &str, on: bool) -> Self {
        self.set(name, on.then(|| name.to_owned()))
    }

    fn value(self, name: &str, value: impl fmt::Display) -> Self {
        self.set(name, Some(format!("{name}={value}")))
    }

    /// The option `name` in this form only, or not at all.
    fn set(mut self, name: &str, option: Option<String>) -> Self {
        let is_it = |option: &String| {
            option.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        self.options.retain(|option| !is_it(option));
        self.options.extend(option);
        self
    }
}

/// Methods for options of one kind; each has the option's name at the end of its documentation.
macro_rules! options {
    (|$options:ident, $name:ident, $value:ident: $ty:ty| $set:expr;
        $( $(#[$doc:meta])* $method:ident = $text:literal; )*) => { $(
        impl CompileOptions {
            $(#[$doc])*
            #[doc = concat!("(`", $text, "`).")]
            #[must_use]
            pub fn $method(self, $value: $ty) -> Self {
                let ($options, $name) = (self, $text);
                $set
            }
        }
    )* };
}

// What is there or not.
options! { |options, name, on: bool| options.flag(name, on);
    /// The same, as code that is linked with other code later, or not: without saying so a program is whole
    with_device_c = "--device-c";
    /// The same, as a whole program that others may extend, or not
    with_extensible_whole_program = "--extensible-whole-program";
    /// The same with or without debug information, which switches optimisation off unless [`CompileOptions::with_dopt`] says
    /// otherwise
    with_device_debug = "--device-debug";
    /// The same with or without line numbers, for profilers
    with_line_info = "--generate-line-info";
    /// The same with or without [`CompileOptions::with_ftz`] and [`CompileOptions::with_fmad`], approximate division and square
    /// root, and approximate functions
    with_fast_math = "--use_fast_math";
    /// The same with or without more vectorisation
    with_extra_device_vectorization = "--extra-device-vectorization";
    /// The same as LTO IR, in place of PTX and machine code, or not: for [`NvJitLink`](crate::NvJitLink)
    with_link_time_optimization = "--dlink-time-opt";
    /// The same with or without optimisation before the LTO IR is written
    with_gen_opt_lto = "--gen-opt-lto";
    /// The same as OptiX IR, in place of PTX and machine code, or not: for NVIDIA's ray tracer
    with_optix_ir = "--optix-ir";
    /// The same past the compiler's cache on disk, or through it
    with_no_cache = "--no-cache";
    /// The same without the folder of the program's name among those of headers, or with it
    with_no_source_include = "--no-source-include";
    /// The same with precompiled headers, made and found by themselves, or without; CUDA 12.8
    with_pch = "--pch";
    /// The same without any warnings, or with them
    with_disable_warnings = "--disable-warnings";
    /// The same with or without warnings of members that are initialised in another order than they are declared
    with_warn_reorder = "--Wreorder";
    /// The same with or without the promise that no two pointer parameters of a kernel lead to the same memory
    with_restrict = "--restrict";
    /// The same, in which what says nothing is `__device__`, or not
    with_device_as_default_execution_space = "--device-as-default-execution-space";
    /// The same with or without `__int128` in device code
    with_device_int128 = "--device-int128";
    /// The same with or without `__float128` in device code; from `sm_100` on, CUDA 12.8
    with_device_float128 = "--device-float128";
    /// The same with or without numbers of warnings
    with_no_display_error_number = "--no-display-error-number";
    /// The same, which ends after the check of the syntax and makes no code, or not
    with_device_syntax_only = "--fdevice-syntax-only";
    /// The same without textures, surfaces, launches from kernels and the runtime's declarations, which makes small programs
    /// compile faster; or with them
    with_minimal = "--minimal";
    /// The same with or without debug information for Numba; needs [`CompileOptions::with_device_debug`]
    with_numba_debug = "--numba-debug";
}

// What is true or false.
options! { |options, name, on: bool| options.value(name, on);
    /// The same, as code that is linked with other code later, or not; `false` unless set
    with_relocatable_device_code = "--relocatable-device-code";
    /// The same, in which subnormal `float`s are zero, or not; `false` unless set
    with_ftz = "--ftz";
    /// The same, in which square roots of `float`s are rounded exactly, or not; `true` unless set
    with_prec_sqrt = "--prec-sqrt";
    /// The same, in which divisions of `float`s are rounded exactly, or not; `true` unless set
    with_prec_div = "--prec-div";
    /// The same, in which a product and a sum may be rounded once, or not; `true` unless set
    with_fmad = "--fmad";
    /// The same, in which the compiler raises the limit of this process's stack while it runs (`setrlimit`), or not; `true`
    /// unless set
    with_modify_stack_limit = "--modify-stack-limit";
    /// The same with or without canaries in the stacks of threads; `false` unless set, CUDA 13.0
    with_device_stack_protector = "--device-stack-protector";
    /// The same with or without `std::move` and `std::forward`; `true` unless set
    with_builtin_move_forward = "--builtin-move-forward";
    /// The same with or without `std::initializer_list`; `true` unless set
    with_builtin_initializer_list = "--builtin-initializer-list";
    /// The same, in which the log says why a precompiled header was not used, or not; `true` unless set, CUDA 12.8
    with_pch_verbose = "--pch-verbose";
    /// The same, in which the log says which precompiled headers were made and used, or not; `true` unless set, CUDA 12.8
    with_pch_messages = "--pch-messages";
    /// The same, in which precompiled headers have the instances of templates, or not; `true` unless set, CUDA 12.8
    with_instantiate_templates_in_pch = "--instantiate-templates-in-pch";
    /// The same, whose messages lack lines and columns, or have them; `false` unless set
    with_brief_diagnostics = "--brief-diagnostics";
}

// Numbers.
options! { |options, name, number: u32| options.value(name, number);
    /// The same with at most so many registers for a thread
    with_max_registers = "--maxrregcount";
    /// The same, in which a `switch` with cases for at least so many percent of its range jumps by a table; 101, which is
    /// never, unless set; CUDA 13.0
    with_jump_table_density = "--jump-table-density";
    /// The same, optimised by so many threads; 0 for as many as there are
    with_split_compile = "--split-compile";
}

// Names of files and the like.
options! { |options, name, text: impl fmt::Display| options.value(name, text);
    /// The same with this seed for the names of symbols, a number or any text, so that the result is the same again;
    /// CUDA 12.9
    with_random_seed = "--frandom-seed";
    /// The same in this dialect: `c++03` to `c++20`, and what later versions add; `c++17` unless set
    with_standard = "--std";
    /// The same with the headers that NVRTC has in itself laid out in this folder; CUDA 13.1
    with_bundled_headers = "--use-bundled-headers";
    /// The same, which makes a precompiled header of this name; CUDA 12.8
    with_create_pch = "--create-pch";
    /// The same, which uses the precompiled header of this name; CUDA 12.8
    with_use_pch = "--use-pch";
    /// The same with precompiled headers in this folder; CUDA 12.8
    with_pch_dir = "--pch-dir";
    /// The same, which appends the times of its phases to this file, or to the log if it is `-`
    with_time = "--time";
    /// The same, which writes a trace of its work to this file, for Perfetto
    with_device_time_trace = "--fdevice-time-trace";
}

// What adds up.
options! { |options, name, text: impl fmt::Display| options.with_option(format!("{name}={text}"));
    /// The same with this option of ptxas, `-v` or `--opt-level=2`; adds to those before
    with_ptxas_option = "--ptxas-options";
    /// The same with the macro `name`, which is 1, or `name=value`; adds to those before
    with_define_macro = "--define-macro";
    /// The same without the macro `name`; adds to those before
    with_undefine_macro = "--undefine-macro";
    /// The same with one more folder of headers, after those that are given as text
    with_include_path = "--include-path";
    /// The same with one more header that is included at the beginning
    with_pre_include = "--pre-include";
}

// Numbers of diagnostics.
options! { |options, name, numbers: impl IntoIterator<Item = u32>| options.numbers(name, numbers);
    /// The same, in which diagnostics of these numbers are errors; adds to those before
    with_diag_error = "--diag-error";
    /// The same, in which diagnostics of these numbers are not shown; adds to those before
    with_diag_suppress = "--diag-suppress";
    /// The same, in which diagnostics of these numbers are warnings; adds to those before
    with_diag_warn = "--diag-warn";
}

options! { |options, name, level: FastCompile| options.value(name, level);
    /// The same, compiled faster to slower code; CUDA 12.9
    with_fast_compile = "--Ofast-compile";
}

options! { |options, name, kind: WarningKind| options.with_option(format!("{name}={kind}"));
    /// The same, in which warnings of this kind are errors; adds to those before; CUDA 13.0
    with_warning_as_error = "--warning-as-error";
}

impl CompileOptions {
    /// The same, optimised also with [`CompileOptions::with_device_debug`], whose information is line numbers then; or as that
    /// says (`--dopt=on`).
    #[must_use]
    pub fn with_dopt(self, on: bool) -> Self {
        self.set("--dopt", on.then(|| "--dopt=on".to_owned()))
    }

    /// The same, whose log says which functions were inlined, or not (`--optimization-info=inline`).
    #[must_use]
    pub fn with_inline_info(self, on: bool) -> Self {
        self.set("--optimization-info", on.then(|| "--optimization-info=inline".to_owned()))
    }

    fn numbers(self, name: &str, numbers: impl IntoIterator<Item = u32>) -> Self {
        let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
        if numbers.is_empty() { self } else { self.with_option(format!("{name}={}", numbers.join(","))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the only option that `set` sets.
    #[track_caller]
    fn text(set: impl Fn(CompileOptions) -> CompileOptions) -> String {
        let options = set(CompileOptions::new()).options;
        let [only] = options.as_slice() else { panic!("{options:?}") };
        only.clone()
    }

    #[test]
    fn every_option_has_the_text_that_nvrtc_documents() {
        type Set = fn(CompileOptions) -> CompileOptions;
        let all: &[(Set, &str)] = &[
            (|it| it.with_device_c(true), "--device-c"),
            (|it| it.with_extensible_whole_program(true), "--extensible-whole-program"),
            (|it| it.with_device_debug(true), "--device-debug"),
            (|it| it.with_line_info(true), "--generate-line-info"),
            (|it| it.with_fast_math(true), "--use_fast_math"),
            (|it| it.with_extra_device_vectorization(true), "--extra-device-vectorization"),
            (|it| it.with_link_time_optimization(true), "--dlink-time-opt"),
            (|it| it.with_gen_opt_lto(true), "--gen-opt-lto"),
            (|it| it.with_optix_ir(true), "--optix-ir"),
            (|it| it.with_no_cache(true), "--no-cache"),
            (|it| it.with_no_source_include(true), "--no-source-include"),
            (|it| it.with_pch(true), "--pch"),
            (|it| it.with_disable_warnings(true), "--disable-warnings"),
            (|it| it.with_warn_reorder(true), "--Wreorder"),
            (|it| it.with_restrict(true), "--restrict"),
            (|it| it.with_device_as_default_execution_space(true), "--device-as-default-execution-space"),
            (|it| it.with_device_int128(true), "--device-int128"),
            (|it| it.with_device_float128(true), "--device-float128"),
            (|it| it.with_no_display_error_number(true), "--no-display-error-number"),
            (|it| it.with_device_syntax_only(true), "--fdevice-syntax-only"),
            (|it| it.with_minimal(true), "--minimal"),
            (|it| it.with_numba_debug(true), "--numba-debug"),
            (|it| it.with_relocatable_device_code(true), "--relocatable-device-code=true"),
            (|it| it.with_ftz(true), "--ftz=true"),
            (|it| it.with_prec_sqrt(false), "--prec-sqrt=false"),
            (|it| it.with_prec_div(false), "--prec-div=false"),
            (|it| it.with_fmad(false), "--fmad=false"),
            (|it| it.with_modify_stack_limit(false), "--modify-stack-limit=false"),
            (|it| it.with_device_stack_protector(true), "--device-stack-protector=true"),
            (|it| it.with_builtin_move_forward(false), "--builtin-move-forward=false"),
            (|it| it.with_builtin_initializer_list(false), "--builtin-initializer-list=false"),
            (|it| it.with_pch_verbose(false), "--pch-verbose=false"),
            (|it| it.with_pch_messages(false), "--pch-messages=false"),
            (|it| it.with_instantiate_templates_in_pch(false), "--instantiate-templates-in-pch=false"),
            (|it| it.with_brief_diagnostics(true), "--brief-diagnostics=true"),
            (|it| it.with_max_registers(32), "--maxrregcount=32"),
            (|it| it.with_jump_table_density(50), "--jump-table-density=50"),
            (|it| it.with_split_compile(0), "--split-compile=0"),
            (|it| it.with_random_seed(7), "--frandom-seed=7"),
            (|it| it.with_standard("c++20"), "--std=c++20"),
            (|it| it.with_bundled_headers("/h"), "--use-bundled-headers=/h"),
            (|it| it.with_create_pch("a.pch"), "--create-pch=a.pch"),
            (|it| it.with_use_pch("a.pch"), "--use-pch=a.pch"),
            (|it| it.with_pch_dir("/p"), "--pch-dir=/p"),
            (|it| it.with_time("-"), "--time=-"),
            (|it| it.with_device_time_trace("t.json"), "--fdevice-time-trace=t.json"),
            (|it| it.with_ptxas_option("-v"), "--ptxas-options=-v"),
            (|it| it.with_define_macro("DEBUG"), "--define-macro=DEBUG"),
            (|it| it.with_define("TILE", 16), "--define-macro=TILE=16"),
            (|it| it.with_undefine_macro("DEBUG"), "--undefine-macro=DEBUG"),
            (|it| it.with_include_path("/include"), "--include-path=/include"),
            (|it| it.with_pre_include("all.h"), "--pre-include=all.h"),
            (|it| it.with_diag_error([1, 2]), "--diag-error=1,2"),
            (|it| it.with_diag_suppress([177]), "--diag-suppress=177"),
            (|it| it.with_diag_warn([3]), "--diag-warn=3"),
            (|it| it.with_fast_compile(FastCompile::Off), "--Ofast-compile=0"),
            (|it| it.with_fast_compile(FastCompile::Min), "--Ofast-compile=min"),
            (|it| it.with_fast_compile(FastCompile::Mid), "--Ofast-compile=mid"),
            (|it| it.with_fast_compile(FastCompile::Max), "--Ofast-compile=max"),
            (|it| it.with_warning_as_error(WarningKind::All), "--warning-as-error=all-warnings"),
            (|it| it.with_warning_as_error(WarningKind::Reorder), "--warning-as-error=reorder"),
            (
                |it| it.with_warning_as_error(WarningKind::DeprecatedDeclarations),
                "--warning-as-error=deprecated-declarations",
            ),
            (|it| it.with_dopt(true), "--dopt=on"),
            (|it| it.with_inline_info(true), "--optimization-info=inline"),
        ];
        for (set, expected) in all {
            assert_eq!(text(set), *expected);
        }
    }

    #[test]
    fn later_settings_replace_earlier_ones_and_lists_grow() {
        let options =
            CompileOptions::new().with_ftz(true).with_pch(true).with_ftz(false).with_max_registers(8);
        assert_eq!(options.options, ["--pch", "--ftz=false", "--maxrregcount=8"]);
        assert_eq!(options.clone().with_pch(false).options, ["--ftz=false", "--maxrregcount=8"]);
        let pch = CompileOptions::new().with_pch_dir("/p").with_pch(false);
        assert_eq!(pch.options, ["--pch-dir=/p"], "another option, whose name only begins so");
        let lists = CompileOptions::new().with_define("A", 1).with_define("B", 2).with_diag_error([]);
        assert_eq!(lists.options, ["--define-macro=A=1", "--define-macro=B=2"]);
        assert!(CompileOptions::new().with_dopt(false).with_inline_info(false).options.is_empty());
        assert_eq!(lists.with_architecture("sm_90").arguments()[2], "--gpu-architecture=sm_90");
    }
}
