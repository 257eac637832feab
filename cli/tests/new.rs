//! `cargo ferrogrid new` from outside: the package that it makes builds, runs and passes its tests as it is. It must not know
//! what the package computes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs a program in `folder`, in the target folder that the other tests of packages outside the workspace use.
fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    let target: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "outside"].iter().collect();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("CARGO_TARGET_DIR", target).env_remove("RUSTFLAGS");
    let output = command.env("FERROGRID_DEVICE", "cpu").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_new_package_builds_runs_and_passes_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    run(env!("CARGO_BIN_EXE_cargo-ferrogrid"), folder.path(), &["new", "my-kernels"]);
    let package = folder.path().join("my-kernels");
    // The versions of the workspace, so that nothing is looked up.
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let ran = run(env!("CARGO"), &package, &["run"]);
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.contains("[13.0, 26.0, 39.0]"), "{text}");
    let tested = run(env!("CARGO"), &package, &["test"]);
    assert!(String::from_utf8(tested.stdout).unwrap().contains("1 passed"));
    // The folder of the package as it was made has nothing to be committed by accident.
    assert_eq!(fs::read_to_string(package.join(".gitignore")).unwrap(), "/target\n");
}
