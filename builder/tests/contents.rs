//! Contents of kernels and their modules: variables by `env!`, files by relative paths, modules behind `cfg`s
//! of the host or in included files. cargo's variables are set as for a build script.

mod package;

use std::sync::Once;

use ferrogrid_build::{Build, Environment};
use package::{Package, program};

/// A package whose build script is this test, on Linux as far as cargo says; all are version 1.2.3.
fn package(files: &[(&str, &str)]) -> Package {
    static VARIABLES: Once = Once::new();
    VARIABLES.call_once(|| {
        for (name, value) in [
            ("CARGO_MANIFEST_DIR", "/replaced"),
            ("OUT_DIR", "/replaced"),
            ("CARGO_PKG_VERSION_MINOR", "7"),
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_UNIX", ""),
        ] {
            // SAFETY: every test calls this first, and all others wait here until it is done.
            unsafe { std::env::set_var(name, value) };
        }
    });
    let mut package = Package::new("", files);
    let mut environment = Environment::from_process().unwrap();
    environment.manifest_dir = package.environment.manifest_dir.clone();
    environment.out_dir = package.environment.out_dir.clone();
    package.environment = environment;
    package
}

/// Whether the kernel stores this constant.
fn stores(ptx: &str, value: u32) -> bool {
    ptx.lines().any(|line| line.contains(&format!(", {value};")))
}

#[test]
fn kernels_see_variables_of_cargo_and_the_build_script() {
    let value = "env!(\"CARGO_PKG_VERSION_MINOR\").as_bytes()[0] as u32 + 1000";
    let package = package(&[("src/main.rs", &program(value))]);
    assert!(stores(&package.ptx(), 1055), "{}", package.ptx());

    package.edit("src/main.rs", "CARGO_PKG_VERSION_MINOR", "TABLE");
    let failure = package.failure();
    assert!(failure.contains("`TABLE` not defined at compile time"), "{failure}");
    assert!(failure.contains("ferrogrid_build::Build::new().env(\"NAME\", value).run()"), "{failure}");
    let output = Build::new().env("TABLE", "8").try_run(&package.environment).unwrap();
    assert!(stores(&std::fs::read_to_string(&output.ptx[0]).unwrap(), 1056));
    assert!(output.directives.iter().any(|it| it == "cargo::rustc-env=TABLE=8"), "the host sees it, too");
}

#[test]
fn relative_paths_of_included_files_resolve_as_on_the_host() {
    let value = "include!(\"number.in\") + include_bytes!(\"../data/table.bin\")[0] as u32";
    let package =
        package(&[("src/main.rs", &program(value)), ("src/number.in", "2000"), ("data/table.bin", "A")]);
    assert!(stores(&package.ptx(), 2065), "{}", package.ptx());
    package.write("data/table.bin", "B");
    assert!(stores(&package.ptx(), 2066), "an edit is seen");
    package.write("src/number.in", "3000");
    assert!(stores(&package.ptx(), 3066), "an edit is seen");
    let directive = format!("cargo::rerun-if-changed={}", package.path("src/number.in").display());
    assert!(package.built().directives.contains(&directive));

    package.edit("src/main.rs", "number.in", "../../outside.in");
    std::fs::write(package.path("../outside.in"), "1").unwrap();
    let failure = package.failure();
    std::fs::remove_file(package.path("../outside.in")).unwrap();
    assert!(failure.contains("\"../../outside.in\"") && failure.contains("CARGO_MANIFEST_DIR"), "{failure}");
}

#[test]
fn a_module_that_the_host_has_is_compiled_whatever_the_devices_options_say() {
    let of =
        |cfg: &str, value: &str| format!("#[cfg({cfg})]\n{}", program(value).replace("fn main() {}\n", ""));
    let linux = of("target_os = \"linux\"", "71");
    let other = of("not(target_os = \"linux\")", "72");
    let package = package(&[("src/main.rs", &format!("{linux}{other}fn main() {{}}\n"))]);
    let ptx = package.ptx();
    assert!(stores(&ptx, 71) && !stores(&ptx, 72), "{ptx}");
    // Device-only modules remain possible.
    package.write("src/main.rs", &format!("{}fn main() {{}}\n", of("target_os = \"cuda\"", "73")));
    assert!(stores(&package.ptx(), 73));
    // The host module wins over a device-only module of its name.
    let native = of("unix", "74").replace("::module]", "::module(host_only)]");
    package.edit("src/main.rs", "fn main", &format!("{native}fn main"));
    assert!(stores(&package.ptx(), 73));
}

#[test]
fn modules_in_included_files_are_found() {
    let kernels = program("81").replace("fn main() {}\n", "");
    let package = package(&[
        ("src/main.rs", "mod inner {\n    include!(\"../generated/kernels.in\");\n}\nfn main() {}\n"),
        ("generated/kernels.in", &format!("use std::fs;\n{kernels}")),
    ]);
    let ptx = package.ptx();
    assert!(stores(&ptx, 81), "{ptx}");
    assert!(ptx.contains("generated/kernels.in\""), "lines point into it:\n{ptx}");
    package.edit("generated/kernels.in", "81", "82");
    assert!(stores(&package.ptx(), 82));
}
