//! `cargo ferrogrid new` from outside: the package that it makes builds, runs and passes its tests.

#[path = "../../builder/tests/build/user_cargo.rs"]
mod user_cargo;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = user_cargo::command(program, folder);
    let output = command.args(arguments).env("FERROGRID_DEVICE", "cpu").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_new_package_builds_runs_and_passes_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    run(env!("CARGO_BIN_EXE_cargo-ferrogrid"), folder.path(), &["new", "my-kernels"]);
    let package = folder.path().join("my-kernels");
    // The versions of the workspace, so that cargo resolves nothing.
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let ran = run(env!("CARGO"), &package, &["run"]);
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.contains("[13.0, 26.0, 39.0]"), "{text}");
    let tested = run(env!("CARGO"), &package, &["test"]);
    assert!(String::from_utf8(tested.stdout).unwrap().contains("1 passed"));
    // A new package has no files that could be committed by accident.
    assert_eq!(fs::read_to_string(package.join(".gitignore")).unwrap(), "/target\n");
}

/// All files and folders below `folder` whose names begin so.
#[cfg(unix)]
fn named(folder: &Path, start: &str, found: &mut Vec<PathBuf>) {
    for path in folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)) {
            found.push(path.clone());
        }
        if path.is_dir() {
            named(&path, start, found);
        }
    }
}

#[cfg(unix)]
#[test]
fn set_up_fills_the_cache_with_crates_that_kernels_use() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    // This machine's `core`, so that only the crates above it are built.
    let usual = ferrogrid_build::cache::root().join("core");
    fs::create_dir(&cache).unwrap();
    std::os::unix::fs::symlink(usual, cache.join("core")).unwrap();
    let setup = || {
        let mut setup = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
        setup.arg("setup").current_dir(folder.path()).env("FERROGRID_CACHE", &cache).env_remove("RUSTFLAGS");
        // Otherwise a version published between the two runs would differ.
        setup.env("CARGO_NET_OFFLINE", "true");
        let output = setup.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let progress = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("ready: kernels compile for sm_"), "{said} {progress}");
    };
    setup();
    let mut found = Vec::new();
    named(&cache.join("crates"), "libferrogrid_device-", &mut found);
    found.retain(|path| path.extension().is_some_and(|it| it == "rlib"));
    assert_eq!(found.len(), 1, "{found:?}");
    let mut left = Vec::new();
    named(&cache, "setup-", &mut left);
    assert!(left.is_empty(), "{left:?}");
    // The next package builds only its own kernels.
    let written = || found[0].metadata().unwrap().modified().unwrap();
    let before = written();
    setup();
    assert_eq!(written(), before);
    let packages =
        found[0].ancestors().find(|path| path.ends_with("target")).unwrap().with_file_name("packages");
    assert_eq!(packages.read_dir().unwrap().count(), 1);
}
