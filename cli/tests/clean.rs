//! `cargo ferrogrid clean`, the cache's limit and `completions`, from outside.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn ferrogrid(arguments: &[&str], cache: &Path, folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.args(arguments).current_dir(folder).env("FERROGRID_CACHE", cache);
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A cache with an entry of a compiler that no longer exists: 3 MiB.
fn cache() -> tempfile::TempDir {
    let cache = tempfile::tempdir().unwrap();
    fs::create_dir_all(cache.path().join("crates/gone/sm_75")).unwrap();
    fs::write(cache.path().join("crates/gone/sm_75/library"), vec![0; 3 << 20]).unwrap();
    fs::write(cache.path().join("mine.txt"), "not of Ferrogrid").unwrap();
    cache
}

#[test]
fn clean_reports_the_size_and_the_folder() {
    let cache = cache();
    let shown = stdout(&ferrogrid(&["clean", "--dry-run"], cache.path(), cache.path()));
    assert!(shown.contains("3.0 MiB  built 0 days ago  crates/gone/sm_75"), "{shown}");
    assert!(cache.path().join("crates/gone/sm_75/library").exists());
    let said = stdout(&ferrogrid(&["clean"], cache.path(), cache.path()));
    assert!(said.starts_with(&format!("removed 3.0 MiB from {}", cache.path().display())), "{said}");
    assert!(!cache.path().join("crates").exists());
    assert!(cache.path().join("mine.txt").exists());
}

#[test]
fn scripts_for_shells_know_the_verbs() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&ferrogrid(&["completions", shell], folder.path(), folder.path()));
        assert!(script.contains("cargo-ferrogrid") && script.contains("inspect"), "{shell}: {script}");
    }
}

/// With this machine's `core`, so that nothing is built.
#[test]
fn a_cache_above_its_limit_loses_entries_that_no_build_needs() {
    let cache = cache();
    let usual = ferrogrid_build::cache::root().join("core");
    std::os::unix::fs::symlink(usual, cache.path().join("core")).unwrap();
    let package = tempfile::tempdir().unwrap();
    fs::create_dir(package.path().join("src")).unwrap();
    fs::write(
        package.path().join("Cargo.toml"),
        "[package]\nname = \"app\"\nedition = \"2024\"\n[workspace]\n",
    )
    .unwrap();
    fs::write(package.path().join("src/main.rs"), "fn main() {}").unwrap();
    let run = |limit: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
        command.arg("run").current_dir(package.path()).env("FERROGRID_CACHE", cache.path());
        command.env("CARGO_TARGET_DIR", package.path().join("target"));
        String::from_utf8(command.env("FERROGRID_CACHE_LIMIT", limit).output().unwrap().stderr).unwrap()
    };
    let entry = cache.path().join("crates/gone/sm_75");
    assert!(!run("").contains("removed") && entry.exists());
    assert!(run("much").contains("`FERROGRID_CACHE_LIMIT` is `much`; expected a number of MiB"));
    let said = run("2");
    assert!(said.contains("FERROGRID_CACHE_LIMIT: removed 3.0 MiB") && !entry.exists(), "{said}");
}
