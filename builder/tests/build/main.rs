//! Builds a user's crate outside this workspace: it builds and runs, edits trigger rebuilds, mistakes get
//! clear errors. The crate is `outside`.

mod user_cargo;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use tempfile::TempDir;

/// A copy of the crate in a separate folder; one at a time, because they share a target folder.
struct Outside {
    folder: Arc<TempDir>,
    _alone: MutexGuard<'static, ()>,
}

/// The folder, while a test uses or awaits it: in the same folder, a test rebuilds only what differs from the one before.
static FOLDER: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());

static ALONE: Mutex<()> = Mutex::new(());

impl Outside {
    fn new() -> Self {
        let folder = {
            let mut current = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
            let folder = current.upgrade().unwrap_or_else(|| Arc::new(tempfile::tempdir().unwrap()));
            *current = Arc::downgrade(&folder);
            folder
        };
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        // Cargo detects edits by their time.
        std::thread::sleep(std::time::Duration::from_millis(20));
        restore_folder(&root.join("builder/tests/build/outside"), folder.path(), root);
        // The versions of the workspace, so that cargo resolves nothing.
        fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        Outside { folder, _alone: alone }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        // Cargo detects edits by their time.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(self.path(file), text.replace(from, to)).unwrap();
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = user_cargo::command(env!("CARGO"), self.folder.path());
        command.args(arguments).env("FERROGRID_DEVICE", "cpu");
        command
    }

    fn run(&self) -> String {
        let output = self.cargo(&["run"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn build_fails(&self) -> String {
        let output = self.cargo(&["build"]).output().unwrap();
        assert!(!output.status.success(), "the build succeeded");
        stderr(&output)
    }

    /// When each PTX of this crate's builds was written, newest first.
    fn ptx_written(&self) -> Vec<SystemTime> {
        let mut times = Vec::new();
        collect_ptx(&user_cargo::target(), &mut times);
        times.sort();
        times.reverse();
        times
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Makes one folder like another, and leaves files that are alike untouched.
fn restore_folder(from: &Path, to: &Path, root: &Path) {
    fs::create_dir_all(to).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap().trim_end_matches(".in").to_owned();
        let target = to.join(&name);
        names.push(name);
        if entry.file_type().unwrap().is_dir() {
            restore_folder(&entry.path(), &target, root);
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap().replace("@ROOT@", root.to_str().unwrap());
        if fs::read_to_string(&target).ok().as_ref() != Some(&text) {
            fs::write(target, text).unwrap();
        }
    }
    for entry in fs::read_dir(to).unwrap().map(|entry| entry.unwrap()) {
        if names.iter().any(|name| entry.file_name() == **name) {
            continue;
        }
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
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
fn a_build_with_aborting_panics_gets_a_warning() {
    let outside = Outside::new();
    // As by `panic = "abort"` in the profile, but only for this crate, so that its dependencies are not built once more.
    let aborting = ["rustc", "--bin", "outside", "--", "-C", "panic=abort", "--emit=metadata"];
    let output = outside.cargo(&aborting).output().unwrap();
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
    let expected = ["scaled [10, 20, 30, 40]", "divisors [2, 4, 6, 4]", "walked [7, 9, 11, 9]"];
    for line in expected.into_iter().chain(["field [0.5, 1.5, 2.5]", "plain 42"]) {
        assert!(output.lines().any(|printed| printed == line), "{line} is missing in {output}");
    }
}

/// The target folder is not below this crate, so its location does not tell which package is being built.
#[test]
fn of_a_path_dependency_only_the_librarys_kernels_are_compiled() {
    let outside = Outside::new();
    let output = outside.cargo(&["build", "--message-format=json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let messages = std::str::from_utf8(&output.stdout).unwrap().lines();
    let steps: Vec<tinyjson::JsonValue> = messages
        .filter(|line| line.contains("\"build-script-executed\""))
        .map(|line| line.parse().unwrap())
        .collect();
    let of_step = |package: &str| {
        let is_it = |step: &&tinyjson::JsonValue| {
            package_name(step["package_id"].get::<String>().unwrap()) == package
        };
        let step = steps.iter().find(is_it).unwrap_or_else(|| panic!("{package} has no build step"));
        let folder = step["out_dir"].get::<String>().unwrap();
        let files = fs::read_dir(Path::new(folder).join("ferrogrid")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".ptx")).collect();
        names.sort();
        names
    };
    // Its kernels use another crate, whose macros may expand differently under `cfg(test)`.
    assert_eq!(of_step("outside"), ["bin-outside-test.sm_75.ptx", "bin-outside.sm_75.ptx"]);
    assert_eq!(of_step("with-kernels"), ["lib-with_kernels.sm_75.ptx"]);
}

/// The name in a package id of cargo: `path+file:///folder#name@0.1.0`, or `path+file:///name#0.1.0` if the
/// folder has the package's name.
fn package_name(id: &str) -> &str {
    let (source, package) = id.rsplit_once('#').unwrap();
    match package.split_once('@') {
        Some((name, _)) => name,
        None => source.rsplit('/').next().unwrap(),
    }
}

#[test]
fn package_ids_of_both_forms_are_read() {
    assert_eq!(package_name("path+file:///a/main#ferrogrid@0.1.0"), "ferrogrid");
    assert_eq!(package_name("path+file:///a/ferrogrid#0.1.0"), "ferrogrid");
    assert_eq!(package_name("registry+https://host/index#half@2.4.0"), "half");
}

#[test]
fn the_code_of_a_target_is_embedded_once() {
    let outside = Outside::new();
    outside.run();
    let program = fs::read(user_cargo::target().join("debug/outside")).unwrap();
    let directive = b".target sm_75";
    let copies = program.windows(directive.len()).filter(|bytes| bytes == directive).count();
    assert_eq!(copies, 1, "for its two modules together");
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
fn an_edit_outside_kernels_compiles_nothing_for_the_device() {
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

/// Cargo's messages with a level, as (text, line, column, all that rustc prints).
fn compiler_messages(output: &Output, level: &str) -> Vec<(String, f64, f64, String)> {
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    let messages = lines.filter(|line| line.contains("\"compiler-message\""));
    let messages = messages.map(|line| line.parse::<tinyjson::JsonValue>().unwrap());
    let of_level = messages.filter(|it| it["message"]["level"].get::<String>().unwrap() == level);
    let with_place = of_level.filter_map(|it| {
        let text = |name: &str| it["message"][name].get::<String>().unwrap().clone();
        let spans: &Vec<tinyjson::JsonValue> = it["message"]["spans"].get().unwrap();
        let first = spans.first()?;
        let number = |name: &str| *first[name].get::<f64>().unwrap();
        Some((text("message"), number("line_start"), number("column_start"), text("rendered")))
    });
    with_place.collect()
}

/// The line of `part` in a file, counted from 1, and its column.
fn place_of(outside: &Outside, file: &str, part: &str) -> (f64, f64) {
    let text = fs::read_to_string(outside.path(file)).unwrap();
    let (number, line) = text.lines().enumerate().find(|(_, line)| line.contains(part)).unwrap();
    ((number + 1) as f64, (line.find(part).unwrap() + 1) as f64)
}

#[test]
fn errors_in_kernels_reach_editors_once_and_beside_the_hosts() {
    let outside = Outside::new();
    outside.edit("src/main.rs", "* factor + 0", "* factor + 1.5");
    outside.edit("src/main.rs", "\"plain {}\", plain::answer()", "\"plain {}\", plain::answers()");
    let output = outside.cargo(&["check", "--message-format=json"]).output().unwrap();
    let errors = compiler_messages(&output, "error");
    let texts: Vec<&String> = errors.iter().map(|(text, ..)| text).collect();
    let in_kernel: Vec<_> =
        errors.iter().filter(|(text, ..)| text.contains("cannot add `{float}` to `u32`")).collect();
    let [(text, line, column, _)] = in_kernel.as_slice() else { panic!("{texts:#?}\n{}", stderr(&output)) };
    assert_eq!((*line, *column), place_of(&outside, "src/main.rs", "+ 1.5"), "{text}");
    assert_eq!(texts.iter().filter(|text| text.contains("cannot find function `answers`")).count(), 1);
    assert_eq!(errors.len(), 2, "{texts:#?}");
}

#[test]
fn an_error_that_only_the_device_has_is_the_modules_too() {
    let outside = Outside::new();
    outside.edit(
        "src/main.rs",
        "use with_kernels::kernels::Step;",
        "use with_kernels::kernels::Step;\n    use std::vec::Vec;",
    );
    let output = outside.cargo(&["check", "--message-format=json"]).output().unwrap();
    let errors = compiler_messages(&output, "error");
    let place = place_of(&outside, "src/main.rs", "std::vec");
    assert!(errors.iter().any(|(_, line, column, _)| (*line, *column) == place), "{errors:#?}");
    assert!(!output.status.success());
}

#[test]
fn a_broken_example_leaves_the_program_as_it_is() {
    let outside = Outside::new();
    let broken = fs::read_to_string(outside.path("src/physics/force_fields.rs")).unwrap();
    fs::create_dir(outside.path("examples")).unwrap();
    let broken = format!("{}\nfn main() {{}}\n", broken.replace("0.5", "missing"));
    fs::write(outside.path("examples/broken.rs"), broken).unwrap();
    let output = outside.cargo(&["build", "--bins"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let output = outside.cargo(&["build", "--examples"]).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(stderr(&output).matches("cannot find value `missing`").count(), 1, "{}", stderr(&output));
}

#[test]
fn layouts_that_differ_between_host_and_device_do_not_compile() {
    let outside = Outside::new();
    let kernels = "#[ferrogrid::module]
        mod layouts {
            use ferrogrid::device::prelude::*;
            #[derive(Clone, Copy, DeviceCopy)]
            #[repr(C)]
            pub struct Pair {
                FIELDS
            }
            const N: usize = ELEMENTS;
            #[kernel]
            pub fn pairs(t: Thread<1>, mut y: DisjointSlice<Pair>, mut s: Shared<[u32; N]>) {
                s.fill_with(&t, |i| i as u32);
                if let Some(y) = y.get_mut(t.index()) {
                    y.first = N as f32;
                }
            }
        }\n";
    let main = fs::read_to_string(outside.path("src/main.rs")).unwrap();
    let case = |fields: &str, elements: &str| {
        let kernels = kernels.replace("FIELDS", fields).replace("ELEMENTS", elements);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(outside.path("src/main.rs"), format!("{main}{kernels}")).unwrap();
        let output = outside.cargo(&["check"]).output().unwrap();
        (output.status.success(), stderr(&output))
    };
    let (passes, text) = case("pub first: f32, pub second: f32,", "64");
    assert!(passes, "{text}");
    let (passes, text) = case("pub first: f32, #[cfg(target_arch = \"nvptx64\")] pub second: f32,", "64");
    assert!(
        !passes && text.contains("the size of an element of `y` is 4 on the host, but 8 on the device"),
        "{text}"
    );
    let (passes, text) = case(
        "#[cfg(target_arch = \"nvptx64\")] pub second: f32, pub first: f32, #[cfg(not(target_arch = \"nvptx64\"))] pub second: f32,",
        "64",
    );
    assert!(!passes && text.contains("the layout of the fields of an element of `y` differs"), "{text}");
    let (passes, text) =
        case("pub first: f32, pub second: f32,", "if cfg!(target_arch = \"nvptx64\") { 4096 } else { 16 }");
    assert!(
        !passes && text.contains("the number of bytes of its shared memory is 64 on the host, but 16384"),
        "{text}"
    );
}

#[test]
fn a_library_that_differs_between_host_and_kernels_does_not_compile() {
    let outside = Outside::new();
    let case = |choice: &str, call: &str| {
        fs::write(outside.path("with-kernels/build.rs"), format!("fn main() {{ {call} }}")).unwrap();
        let mut library = fs::read_to_string(outside.path("with-kernels/src/lib.rs")).unwrap();
        library = library.replace("x + self.by", &format!("x + self.by + {choice}"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(outside.path("with-kernels/src/lib.rs"), library).unwrap();
        let output = outside.cargo(&["check"]).output().unwrap();
        (output.status.success(), stderr(&output))
    };
    let unmentioned = "ferrogrid_build::Build::new().cfg(\"quick\").run()";
    let (passes, text) = case("0", unmentioned);
    assert!(passes, "{text}");
    let (passes, text) = case("cfg!(quick) as u32", unmentioned);
    let message = "the library `with_kernels` is not the same on the host and in these kernels";
    assert!(!passes && text.contains(message) && text.contains("src/main.rs"), "{text}");
    let manifest = fs::read_to_string(outside.path("with-kernels/Cargo.toml")).unwrap();
    let manifest = format!("{manifest}\n[package.metadata.ferrogrid]\ncfg = [\"quick\"]\n");
    fs::write(outside.path("with-kernels/Cargo.toml"), manifest).unwrap();
    let (passes, text) = case("0", "ferrogrid_build::compile()");
    assert!(passes, "{text}");
}

#[test]
fn a_library_without_kernels_needs_no_build_script() {
    let outside = Outside::new();
    let library = "#[ferrogrid::module]\npub mod kernels {
        use ferrogrid::device::prelude::*;
        #[derive(Clone, Copy, DeviceCopy)]
        #[repr(C)]
        pub struct Step { pub by: u32 }
        impl Step { pub fn from(self, x: u32) -> u32 { x + self.by } }
    }\n";
    fs::write(outside.path("with-kernels/src/lib.rs"), library).unwrap();
    fs::remove_file(outside.path("with-kernels/build.rs")).unwrap();
    outside.edit(
        "with-kernels/Cargo.toml",
        "[build-dependencies]",
        "[target.'cfg(any())'.build-dependencies]",
    );
    let printed = outside.run();
    assert!(printed.contains("walked [7, 9, 11, 9]"), "{printed}");

    // A feature enabled only on the command line is unknown where device code is compiled.
    let library = library.replace("x + self.by", "x + self.by + cfg!(feature = \"far\") as u32");
    fs::write(outside.path("with-kernels/src/lib.rs"), library).unwrap();
    outside.edit("with-kernels/Cargo.toml", "[dependencies]", "[features]\nfar = []\n[dependencies]");
    let output = outside.cargo(&["check", "--features", "with-kernels/far"]).output().unwrap();
    let text = stderr(&output);
    let message = "the library `with_kernels` is not the same on the host and in these kernels";
    assert!(!output.status.success() && text.contains(message), "{text}");
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
fn without_a_build_script_the_error_has_advice() {
    let outside = Outside::new();
    fs::remove_file(outside.path("build.rs")).unwrap();
    let text = outside.build_fails();
    assert!(text.contains("this package needs a `build.rs` with"), "{text}");
    assert!(text.contains("ferrogrid_build::compile()"), "{text}");
}

#[test]
fn a_missing_named_compiler_is_an_error() {
    let outside = Outside::new();
    outside.edit("src/main.rs", "* factor + 0", "* factor + 6");
    let output = outside.cargo(&["build"]).env("FERROGRID_DEVICE_RUSTC", "/nowhere/rustc").output().unwrap();
    let text = stderr(&output);
    assert!(!output.status.success());
    assert!(text.contains("/nowhere/rustc") && text.contains("cargo ferrogrid setup"), "{text}");
}

#[test]
fn without_a_device_toolchain_everything_works_on_the_cpu() {
    let outside = Outside::new();
    for arguments in [["check"].as_slice(), &["doc", "--no-deps"], &["clippy"]] {
        let output = outside.cargo(arguments).env("FERROGRID_DEVICE_RUSTC", "none").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    }
    let output = outside.cargo(&["run"]).env("FERROGRID_DEVICE_RUSTC", "none").output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("scaled [10, 20, 30, 40]"),
        "{}",
        stderr(&output)
    );
}
