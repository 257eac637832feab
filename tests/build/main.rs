//! What a user meets who builds a crate of their own, outside this workspace: it builds and runs,
//! edits are seen, mistakes are explained. The crate is tests/build/outside. It must not know the
//! inside of the build step.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// A copy of the crate in a folder of its own; one at a time, as they share a target folder.
struct Outside {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Outside {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().unwrap();
        copy_folder(&root.join("tests/build/outside"), folder.path(), root);
        // The versions of the workspace, so that nothing is looked up.
        fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        Outside { folder, _alone: alone }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        // Cargo sees edits by their time.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(self.path(file), text.replace(from, to)).unwrap();
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("CARGO_TARGET_DIR", self.target()).env("FERROGRID_DEVICE", "cpu");
        command.env("CARGO_TERM_COLOR", "never").env_remove("RUSTFLAGS");
        command
    }

    fn target(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside")
    }

    fn run(&self) -> String {
        let output = self.cargo(&["run"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn build_fails(&self) -> String {
        let output = self.cargo(&["build"]).output().unwrap();
        assert!(!output.status.success(), "the build went through");
        stderr(&output)
    }

    /// When each PTX of this crate's builds was written, newest first.
    fn ptx_written(&self) -> Vec<SystemTime> {
        let mut times = Vec::new();
        collect_ptx(&self.target(), &mut times);
        times.sort();
        times.reverse();
        times
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn copy_folder(from: &Path, to: &Path, root: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let target = to.join(name.trim_end_matches(".in"));
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target, root);
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        fs::write(target, text.replace("@ROOT@", root.to_str().unwrap())).unwrap();
    }
}

fn collect_ptx(folder: &Path, times: &mut Vec<SystemTime>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_ptx(&path, times);
        } else if path.extension().is_some_and(|extension| extension == "ptx") && is_of_outside(&path) {
            times.push(entry.metadata().unwrap().modified().unwrap());
        }
    }
}

/// Whether a path is in the output of the crate `outside` itself, not of its dependencies.
fn is_of_outside(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("outside-"))
}

#[test]
fn a_profile_whose_panics_abort_is_warned_of() {
    let outside = Outside::new();
    let mut cargo = outside.cargo(&["build"]);
    let output = cargo.env("CARGO_PROFILE_DEV_PANIC", "abort").output().unwrap();
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    let warning =
        "with `panic = \"abort\"` in the profile, a kernel that fails on the CPU device ends the process";
    assert!(text.contains(warning) && text.contains("src/main.rs"), "{text}");
    let output = outside.cargo(&["build"]).output().unwrap();
    assert!(!stderr(&output).contains("abort"), "{}", stderr(&output));
}

#[test]
fn a_crate_outside_the_workspace_builds_and_runs() {
    let outside = Outside::new();
    let output = outside.run();
    for line in ["scaled [10, 20, 30, 40]", "divisors [2, 4, 6, 4]", "field [0.5, 1.5, 2.5]", "plain 42"] {
        assert!(output.lines().any(|printed| printed == line), "{line} is missing in {output}");
    }
}

/// The target folder is not below this crate, so where it lies does not tell whose build it is.
#[test]
fn of_a_path_dependency_only_the_librarys_kernels_are_compiled() {
    let outside = Outside::new();
    let output = outside.cargo(&["build", "--message-format=json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let of_step = |package: &str| {
        let messages = std::str::from_utf8(&output.stdout).unwrap().lines();
        let mut steps = messages.filter(|line| line.contains("\"build-script-executed\""));
        let step = steps.find(|line| line.contains(package)).unwrap();
        let message: tinyjson::JsonValue = step.parse().unwrap();
        let folder = message["out_dir"].get::<String>().unwrap();
        let files = fs::read_dir(Path::new(folder).join("ferrogrid")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".ptx")).collect::<Vec<_>>()
    };
    assert_eq!(of_step("#outside@"), ["bin-outside.sm_75.ptx"]);
    assert_eq!(of_step("#ferrogrid@"), Vec::<String>::new(), "its library has no kernels");
}

#[test]
fn a_kernel_edit_is_seen() {
    let outside = Outside::new();
    outside.run();
    outside.edit("src/main.rs", "* factor + 0", "* factor + 5");
    assert!(outside.run().contains("scaled [15, 25, 35, 45]"));
    outside.edit("src/physics/force_fields.rs", "0.5", "0.25");
    assert!(outside.run().contains("field [0.25, 1.25, 2.25]"));
}

#[test]
fn an_edit_elsewhere_compiles_nothing_for_the_device() {
    let outside = Outside::new();
    outside.run();
    let before = outside.ptx_written();
    assert!(!before.is_empty());
    outside.edit("src/plain.rs", "42", "43");
    outside.edit("src/main.rs", "\"plain {}\"", "\"plain: {}\"");
    assert!(outside.run().contains("plain: 43"));
    assert_eq!(outside.ptx_written(), before);
}

#[test]
fn a_build_without_edits_builds_nothing() {
    let outside = Outside::new();
    outside.run();
    let output = outside.cargo(&["build", "--verbose"]).output().unwrap();
    let text = stderr(&output);
    assert!(text.contains("Fresh outside"), "{text}");
    assert!(!text.contains("Dirty") && !text.contains("Compiling"), "{text}");
}

#[test]
fn features_reach_the_device() {
    let outside = Outside::new();
    let output = outside.cargo(&["run", "--features", "double"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("field [1.0, 3.0, 5.0]"), "{}", stderr(&output));
}

#[test]
fn an_error_in_a_kernel_is_shown_once_with_file_and_line() {
    let outside = Outside::new();
    outside.edit("src/main.rs", "* factor + 0", "* factor + missing");
    let text = outside.build_fails();
    assert_eq!(text.matches("cannot find value `missing`").count(), 1, "{text}");
    let line = 1 + fs::read_to_string(outside.path("src/main.rs"))
        .unwrap()
        .lines()
        .position(|l| l.contains("missing"))
        .unwrap();
    assert!(text.contains(&format!("src/main.rs:{line}:")), "{text}");
}

#[test]
fn std_in_a_kernel_is_an_error_at_its_line() {
    let outside = Outside::new();
    outside.edit("src/physics/force_fields.rs", "*value = ", "std::println!(\"x\"); *value = ");
    let text = outside.build_fails();
    assert!(text.contains("src/physics/force_fields.rs:"), "{text}");
}

#[test]
fn a_kernel_that_cannot_be_one_is_explained_once() {
    let outside = Outside::new();
    outside.edit(
        "src/main.rs",
        "x: &[u32], mut y: DisjointSlice<u32>) {\n        let i",
        "x: &mut [u32], mut y: DisjointSlice<u32>) {\n        let i",
    );
    let text = outside.build_fails();
    assert_eq!(text.matches("`&mut [T]` would alias").count(), 1, "{text}");
}

#[test]
fn without_a_build_script_the_compiler_says_what_to_add() {
    let outside = Outside::new();
    fs::remove_file(outside.path("build.rs")).unwrap();
    let text = outside.build_fails();
    assert!(text.contains("this package needs a `build.rs` with"), "{text}");
    assert!(text.contains("ferrogrid_build::compile()"), "{text}");
}

#[test]
fn without_a_device_toolchain_the_build_says_what_to_do() {
    let outside = Outside::new();
    outside.edit("src/main.rs", "* factor + 0", "* factor + 6");
    let output = outside.cargo(&["build"]).env("FERROGRID_DEVICE_RUSTC", "/nowhere/rustc").output().unwrap();
    let text = stderr(&output);
    assert!(!output.status.success());
    assert!(text.contains("/nowhere/rustc") && text.contains("cargo ferrogrid setup"), "{text}");
}
