//! NVRTC and nvJitLink: the errors when they are absent, and their results when they are
//! there. They need no GPU. Loading what they make is for the conformance suite.

use std::process::Command;

use ferrogrid_host::{
    CodeType, CompileOptions, Error, FastCompile, ForeignError, NvJitLink, Nvrtc, Nvvm, ToolkitLibrary,
    WarningKind,
};

const SOURCE: &str = r#"
    #include "scale.h"
    template <typename T> __global__ void scale(T a, T* x, size_t n) {
        size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
        if (i < n) x[i] = scaled(a, x[i]);
    }
"#;
const HEADER: &str = "template <typename T> __device__ T scaled(T a, T x) { return a * x; }";

/// The compiler, where it is installed or FERROGRID_NVRTC names it.
fn nvrtc() -> Option<Nvrtc> {
    match Nvrtc::load() {
        Ok(nvrtc) => Some(nvrtc),
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => {
            eprintln!("NVRTC is not installed: nothing is compiled");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn options() -> CompileOptions {
    CompileOptions::new()
        .with_name("scale.cu")
        .with_header("scale.h", HEADER)
        .with_name_expression("scale<float>")
        .with_architecture("compute_75")
}

#[test]
fn a_program_with_headers_and_templates_becomes_ptx() {
    let Some(nvrtc) = nvrtc() else { return };
    assert!(nvrtc.version() >= (12, 0), "{nvrtc:?}");
    let program = nvrtc.compile(SOURCE, &options()).unwrap();
    let name = program.lowered_name("scale<float>").unwrap();
    assert!(program.ptx.contains(&format!(".entry {name}(")), "{}", program.ptx);
    assert!(program.ptx.contains(".target sm_75"));
    assert!(!program.ptx.contains('\0') && program.cubin.is_empty() && program.lto_ir.is_empty());
    assert_eq!(program.lowered_name("scale<double>"), None);
}

#[test]
fn a_real_architecture_gives_machine_code() {
    let Some(nvrtc) = nvrtc() else { return };
    let program = nvrtc.compile(SOURCE, &options().with_architecture("sm_90")).unwrap();
    assert!(program.cubin.starts_with(b"\x7fELF"));
}

#[test]
fn an_error_in_a_program_comes_with_its_line() {
    let Some(nvrtc) = nvrtc() else { return };
    let error = nvrtc.compile("\n__global__ void f() { undefined_name; }", &options()).unwrap_err();
    let text = error.to_string();
    for part in
        ["NVRTC cannot compile `scale.cu`", "NVRTC_ERROR_COMPILATION", "scale.cu(2)", "undefined_name"]
    {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    let error = nvrtc.compile("", &options().with_option("--no-such-option")).unwrap_err();
    assert!(error.to_string().contains("NVRTC_ERROR_INVALID_OPTION"), "{error}");
    let error = nvrtc.compile("a\0b", &options()).unwrap_err();
    assert!(matches!(error, Error::Foreign(ForeignError::Compile { .. })), "{error}");
}

#[test]
fn the_compiler_accepts_every_option_of_its_version() {
    let Some(nvrtc) = nvrtc() else { return };
    let folder = std::env::temp_dir().join(format!("ferrogrid-nvrtc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let base = || CompileOptions::new().with_architecture("compute_90");
    let mut all = vec![
        ((12, 0), base().with_device_c(true)),
        ((12, 0), base().with_extensible_whole_program(true)),
        ((12, 0), base().with_device_debug(true).with_dopt(true)),
        ((12, 0), base().with_line_info(true).with_fast_math(true).with_extra_device_vectorization(true)),
        ((12, 0), base().with_link_time_optimization(true).with_gen_opt_lto(true)),
        ((12, 0), base().with_optix_ir(true)),
        ((12, 0), base().with_no_source_include(true).with_disable_warnings(true).with_restrict(true)),
        ((12, 0), base().with_device_as_default_execution_space(true).with_device_int128(true)),
        ((12, 0), base().with_no_display_error_number(true)),
        ((12, 0), base().with_relocatable_device_code(true).with_modify_stack_limit(false)),
        ((12, 0), base().with_ftz(true).with_prec_sqrt(false).with_prec_div(false).with_fmad(false)),
        ((12, 0), base().with_builtin_move_forward(false).with_builtin_initializer_list(false)),
        ((12, 0), base().with_max_registers(32).with_standard("c++20").with_ptxas_option("-v")),
        ((12, 0), base().with_define("A", 1).with_define_macro("B").with_undefine_macro("C")),
        ((12, 0), base().with_include_path(folder.display()).with_inline_info(true)),
        ((12, 0), base().with_diag_error([20]).with_diag_suppress([177]).with_diag_warn([550])),
        ((12, 8), base().with_brief_diagnostics(true).with_time(file("times.csv")).with_split_compile(2)),
        ((12, 8), base().with_device_syntax_only(true)),
        ((12, 8), base().with_minimal(true).with_no_cache(true)),
        ((12, 8), base().with_device_time_trace(file("trace.json"))),
        ((12, 8), base().with_device_float128(true).with_architecture("compute_100")),
        (
            (12, 8),
            base()
                .with_pch(true)
                .with_pch_dir(folder.display())
                .with_pch_verbose(false)
                .with_pch_messages(false),
        ),
        ((12, 8), base().with_create_pch(file("a.pch")).with_instantiate_templates_in_pch(false)),
        ((12, 8), base().with_use_pch(file("a.pch")).with_instantiate_templates_in_pch(false)),
        ((12, 9), base().with_fast_compile(FastCompile::Max).with_random_seed("seed")),
        ((13, 0), base().with_jump_table_density(50).with_device_stack_protector(true)),
        ((13, 0), base().with_numba_debug(true).with_device_debug(true)),
        ((13, 5), base().with_warn_reorder(true).with_bundled_headers(folder.join("headers").display())),
    ];
    for kind in [WarningKind::All, WarningKind::Reorder, WarningKind::DeprecatedDeclarations] {
        all.push(((13, 5), base().with_warning_as_error(kind)));
    }
    let source = "extern \"C\" __global__ void set(float* x) { *x = 1; }";
    for (version, options) in all {
        if nvrtc.version() < version {
            continue;
        }
        let program = nvrtc.compile(source, &options).unwrap_or_else(|error| panic!("{options:?}: {error}"));
        let has_ptx = program.ptx.contains(".entry set");
        let asks = |option: &str| options.options.iter().any(|it| it == option);
        let other = ["--optix-ir", "--dlink-time-opt", "--fdevice-syntax-only"];
        assert_eq!(has_ptx, !other.iter().any(|option| asks(option)), "{options:?}");
        assert_eq!(program.optix_ir.is_empty(), !asks("--optix-ir"), "{options:?}");
        assert_eq!(program.lto_ir.is_empty(), !asks("--dlink-time-opt"), "{options:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    let archs = nvrtc.supported_archs();
    assert!(archs.contains(&"sm_90".to_owned()), "{archs:?}");
}

/// A link for sm_90, where nvJitLink is installed or FERROGRID_NVJITLINK names it.
fn link(options: &[&str]) -> Option<NvJitLink> {
    match NvJitLink::new(options) {
        Ok(link) => Some(link),
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => {
            eprintln!("nvJitLink is not installed: nothing is linked");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn lto_ir_of_two_programs_links_into_one() {
    let Some(nvrtc) = nvrtc() else { return };
    let Some(mut link) = link(&["-arch=sm_90", "-lto"]) else { return };
    let options =
        CompileOptions::new().with_architecture("compute_90").with_option("-dlto").with_option("-rdc=true");
    let helper = "__device__ int helper(int x) { return x + 1; }";
    let kernel = "__device__ int helper(int); extern \"C\" __global__ void run(int* x) { *x = helper(*x); }";
    for (name, source) in [("helper", helper), ("kernel", kernel)] {
        let program = nvrtc.compile(source, &options).unwrap();
        assert!(!program.lto_ir.is_empty() && program.cubin.is_empty());
        link.add(CodeType::LtoIr, name, &program.lto_ir).unwrap();
    }
    let linked = link.complete().unwrap();
    assert!(linked.cubin.starts_with(b"\x7fELF"));
    assert!(linked.cubin.windows(9).any(|bytes| bytes == b".text.run"));
}

#[test]
fn a_failed_link_reports_the_reason() {
    let Some(mut linker) = link(&["-arch=sm_90"]) else { return };
    let ptx = b".version 8.0\n.target sm_90\n.address_size 64\n.extern .func helper ();\n\
        .visible .entry run () { call helper, (); ret; }\n";
    linker.add(CodeType::Ptx, "run.ptx", ptx).unwrap();
    let text = linker.complete().unwrap_err().to_string();
    assert!(text.contains("nvJitLink cannot link the program") && text.contains("helper"), "{text}");

    let mut linker = link(&["-arch=sm_90"]).unwrap();
    let text = linker
        .add(CodeType::Ptx, "broken.ptx", b".version 8.0\n.target sm_90\nnonsense\n")
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("cannot link broken.ptx") && text.contains("NVJITLINK_ERROR_PTX_COMPILE"),
        "{text}"
    );
    let text = NvJitLink::new(&["-lto"]).unwrap_err().to_string();
    assert!(text.contains("NVJITLINK_ERROR_MISSING_ARCH"), "{text}");
}

/// The kernel `twice`.
const IR: &str = include_str!("../../tests/conformance/foreign/twice.ll");

#[test]
fn nvvm_ir_becomes_ptx_or_lto_ir() {
    let nvvm = match Nvvm::load() {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => {
            eprintln!("libNVVM is not installed: nothing is compiled");
            return;
        }
        nvvm => nvvm.unwrap(),
    };
    assert!(nvvm.ir_version() >= (2, 0), "{nvvm:?}");
    let modules = [("twice.ll", IR.as_bytes())];
    let program = nvvm.compile(&modules, &["-arch=compute_90"]).unwrap();
    assert_eq!((&*program.name, &*program.architecture), ("twice.ll", "compute_90"));
    assert!(
        program.ptx.contains(".entry twice(") && program.ptx.contains(".target sm_90"),
        "{}",
        program.ptx
    );
    assert!(!program.ptx.contains('\0') && program.lto_ir.is_empty());
    let program = nvvm.compile(&modules, &["-arch=compute_90", "-gen-lto"]).unwrap();
    assert!(program.ptx.is_empty() && !program.lto_ir.is_empty());

    let refused = |modules: &[(&str, &[u8])], options: &[&str]| {
        let error = nvvm.compile(modules, options).unwrap_err();
        assert!(
            matches!(error, Error::Foreign(ForeignError::Compile { compiler: "libNVVM", .. })),
            "{error}"
        );
        error.to_string()
    };
    let text = refused(&[("broken.ll", b"define nonsense")], &[]);
    assert!(text.starts_with("libNVVM cannot compile `broken.ll`: NVVM_ERROR"), "{text}");
    let text = refused(&modules, &["-no-such-option"]);
    assert!(text.contains("NVVM_ERROR_INVALID_OPTION") && text.contains("no-such-option"), "{text}");
    assert!(refused(&[], &[]).contains("NVVM_ERROR_NO_MODULE_IN_PROGRAM"));
}

#[test]
fn absent_libraries_are_errors_with_their_source() {
    let test = std::env::current_exe().unwrap();
    let status = Command::new(test)
        .args(["--exact", "absent", "--ignored"])
        .env("FERROGRID_NVRTC", "/no/such/libnvrtc.so")
        .env("FERROGRID_NVJITLINK", "/no/such/libnvJitLink.so")
        .env("FERROGRID_NVVM", "/no/such/libnvvm.so")
        .env("FERROGRID_NCCL", "/no/such/libnccl.so")
        .status();
    assert!(status.unwrap().success());
}

/// The system's own library of mathematics stands in for one of NVIDIA's.
#[test]
fn a_library_is_found_by_its_variable() {
    let test = std::env::current_exe().unwrap();
    let status = Command::new(test)
        .args(["--exact", "found", "--ignored"])
        .env("FERROGRID_NCCL", "libm.so.6")
        .status();
    assert!(status.unwrap().success());
}

#[test]
#[ignore = "another test runs it, in a process with other variables"]
fn found() {
    assert_eq!(ToolkitLibrary::Nccl.find().unwrap(), std::path::Path::new("libm.so.6"));
}

#[test]
#[ignore = "another test runs it, in a process with other variables"]
fn absent() {
    for (error, parts) in [
        (Nvrtc::load().unwrap_err(), ["NVRTC is not installed", "nvidia-cuda-nvrtc", "FERROGRID_NVRTC"]),
        (
            NvJitLink::new(&["-arch=sm_90"]).unwrap_err(),
            ["nvJitLink is not installed", "nvidia-nvjitlink", "FERROGRID_NVJITLINK"],
        ),
        (Nvvm::load().unwrap_err(), ["libNVVM is not installed", "nvidia-nvvm", "FERROGRID_NVVM"]),
        (
            ToolkitLibrary::Nccl.find().unwrap_err(),
            ["NCCL is not installed", "nvidia-nccl-cu13", "FERROGRID_NCCL"],
        ),
    ] {
        assert!(matches!(error, Error::Foreign(ForeignError::LibraryMissing { .. })));
        for part in parts {
            assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
        }
        assert!(error.to_string().contains("/no/such/"), "{error}");
    }
}
