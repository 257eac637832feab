//! Edits of inputs of device code outside the package's own modules: crates that kernels name, whatever their
//! layout, the files that these include, and patched dependencies of Ferrogrid's own.

use std::path::Path;

use crate::package::{Package, program};

/// A helper crate whose library is not in `src`, and which includes two files outside of its folder.
fn with_helper() -> Package {
    let helper = "#![no_std]\npub const NUMBERS: &[u8] = include_bytes!(\"../../data/numbers.bin\");\n\
                  pub const TEXT: u32 = include!(\"../../data/number.in\");\nmod deeper;\n\
                  pub fn value() -> u32 { TEXT + NUMBERS[0] as u32 + deeper::VALUE }\n";
    Package::new(
        "[dependencies.helper]\npath = \"helper\"",
        &[
            ("src/main.rs", &program("helper::value()")),
            (
                "helper/Cargo.toml",
                "[package]\nname = \"helper\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\npath = \"code/helper.rs\"\n",
            ),
            ("helper/code/helper.rs", helper),
            ("helper/code/deeper.rs", "pub const VALUE: u32 = 100;\n"),
            ("data/numbers.bin", "A"),
            ("data/number.in", "1000\n"),
        ],
    )
}

/// Whether the kernel stores this constant.
fn stores(ptx: &str, value: u32) -> bool {
    ptx.lines().any(|line| line.contains(&format!(", {value};")))
}

#[test]
fn every_file_that_a_helper_crate_is_made_of_is_seen() {
    let package = with_helper();
    let mut value = 1000 + 65 + 100;
    assert!(stores(&package.ptx(), value), "{}", package.ptx());
    for (file, from, to, change) in [
        ("helper/code/helper.rs", "TEXT +", "TEXT + 1 +", 1),
        ("helper/code/deeper.rs", "100", "110", 10),
        ("data/numbers.bin", "A", "B", 1),
        ("data/number.in", "1000", "3000", 2000),
    ] {
        package.edit(file, from, to);
        value += change;
        let ptx = package.ptx();
        assert!(stores(&ptx, value), "an edit of {file} is not seen:\n{ptx}");
        let output = package.built();
        let watched = output.directives.iter().filter_map(|it| it.strip_prefix("cargo::rerun-if-changed="));
        let mut watched = watched.filter_map(|path| Path::new(path).canonicalize().ok());
        assert!(watched.any(|path| path == package.path(file)), "{file} is not in {:#?}", output.directives);
    }
}

#[test]
fn files_that_one_architecture_reads_are_watched() {
    let package = Package::new(
        "[package.metadata.ferrogrid]\narch = [\"sm_75\", \"sm_90\"]\n[dependencies.helper]\npath = \"helper\"",
        &[
            ("src/main.rs", &program("helper::value()")),
            ("helper/Cargo.toml", "[package]\nname = \"helper\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
            (
                "helper/src/lib.rs",
                "#![no_std]\n#[cfg(target_feature = \"sm_90\")]\nmod hopper;\n#[cfg(not(target_feature = \"sm_90\"))]\nmod hopper { pub fn value() -> u32 { 1 } }\npub use hopper::value;\n",
            ),
            ("helper/src/hopper.rs", "pub fn value() -> u32 { 2 }\n"),
        ],
    );
    let output = package.built();
    let watched =
        |it: &String| it.starts_with("cargo::rerun-if-changed=") && it.ends_with("helper/src/hopper.rs");
    assert!(output.directives.iter().any(watched), "{:#?}", output.directives);
}

#[test]
fn a_patched_dependency_of_ferrogrids_own_is_used_on_the_device() {
    // `sin` of the device comes from `libm` here, a crate that `ferrogrid-device` depends on.
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let lock = std::fs::read_to_string(repository.join("Cargo.lock")).unwrap();
    let (_, libm) = lock.split_once("name = \"libm\"\nversion = \"").unwrap();
    let version = libm.split('"').next().unwrap();
    let manifest = "[package.metadata.ferrogrid]\nmath = \"libm\"\n[patch.crates-io.libm]\npath = \"libm\"";
    let names = ["acos", "asin", "sin", "cos", "tan"];
    let package = Package::new(
        manifest,
        &[
            ("src/main.rs", &program("libm_value()")),
            (
                "libm/Cargo.toml",
                &format!(
                    "[package]\nname = \"libm\"\nversion = \"{version}\"\nedition = \"2024\"\n[features]\narch = []\n"
                ),
            ),
            ("libm/src/lib.rs", "#![no_std]\n"),
        ],
    );
    package.edit("src/main.rs", "libm_value()", "(*y as f32).sin() as u32");
    // A `libm` without functions: if it is what the device crates are built against, they do not compile.
    let failure = package.failure();
    assert!(names.iter().any(|name| failure.contains(name)) && failure.contains("libm"), "{failure}");
}
