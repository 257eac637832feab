//! `cargo ferrogrid` in workspaces, on packages of plain programs: which package a verb applies to.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A workspace of these files.
fn workspace(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.args(arguments).current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn error(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A package that has its examples in a package of their own, and a member with separate examples.
const WITH_EXAMPLES_BESIDE: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"whole\"\nedition = \"2024\"\nautoexamples = false\n[workspace]\nmembers = [\"examples\", \"other\"]\n",
    ),
    ("src/lib.rs", ""),
    (
        "examples/Cargo.toml",
        "[package]\nname = \"whole-examples\"\nedition = \"2024\"\n[[example]]\nname = \"show\"\npath = \"show.rs\"\n",
    ),
    ("examples/show.rs", "//! 1.1 show: what there is.\nfn main() { println!(\"shown\"); }\n"),
    ("other/Cargo.toml", "[package]\nname = \"other\"\nedition = \"2024\"\n"),
    ("other/src/main.rs", "fn main() { println!(\"the other's program\"); }\n"),
    ("other/examples/apart.rs", "//! 1.2 apart: the other's.\nfn main() {}\n"),
];

#[test]
fn examples_of_the_package_below_are_those_of_the_package() {
    let folder = workspace(WITH_EXAMPLES_BESIDE);
    assert_eq!(stdout(&run(folder.path(), &["run", "--list"])), "1.1  show  what there is.\n");
    let all = stdout(&run(folder.path(), &["run", "--all"]));
    assert!(all.contains("\nshown\n") && all.ends_with("1 passed, 0 skipped, 0 failed\n"), "{all}");
}

#[test]
fn an_option_chooses_another_package() {
    let folder = workspace(WITH_EXAMPLES_BESIDE);
    assert_eq!(stdout(&run(folder.path(), &["run", "--list", "-p", "other"])), "1.2  apart  the other's.\n");
    assert_eq!(stdout(&run(folder.path(), &["run", "--list", "-p", "whole"])), "1.1  show  what there is.\n");
    let text = error(&run(folder.path(), &["run", "--list", "-p", "others"]));
    assert!(text.contains("no package `others`; there are: other, whole, whole-examples"), "{text}");
    for verb in [&["test", "-p", "others"][..], &["bench", "-p", "others"], &["bundle", "-p", "others"]] {
        assert!(error(&run(folder.path(), verb)).contains("no package `others`"), "{verb:?}");
    }
}

/// Of its members one is no default member.
const WITH_DEFAULTS: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"whole\"\nedition = \"2024\"\n[workspace]\nmembers = [\"a\", \"b\"]\ndefault-members = [\".\", \"a\"]\n",
    ),
    ("src/main.rs", "fn main() {}\n#[test]\nfn in_whole() {}\n"),
    ("a/Cargo.toml", "[package]\nname = \"a\"\nedition = \"2024\"\n"),
    ("a/src/main.rs", "fn main() {}\n#[test]\nfn in_a() {}\n"),
    ("b/Cargo.toml", "[package]\nname = \"b\"\nedition = \"2024\"\n"),
    ("b/src/lib.rs", "//! ```\n//! b::b()\n//! ```\npub fn b() {}\n#[test]\nfn in_b() {}\n"),
];

#[test]
fn tests_are_those_of_the_packages_that_cargo_selects() {
    let folder = workspace(WITH_DEFAULTS);
    let ran = |place: &str, options: &[&str]| {
        let text = stdout(&run(&folder.path().join(place), &[&["test"], options].concat()));
        let programs = text.lines().last().unwrap().to_owned();
        (
            ["in_whole", "in_a", "in_b", "(line 1)"].map(|test| text.contains(&format!("{test} ... ok"))),
            programs,
        )
    };
    let expected = |tests, count| (tests, format!("{count} test programs passed"));
    assert_eq!(ran(".", &[]), expected([true, true, false, false], 2));
    assert_eq!(ran("b", &[]), expected([false, false, true, true], 2));
    assert_eq!(ran(".", &["-p", "a"]), expected([false, true, false, false], 1));
    assert_eq!(ran(".", &["--workspace"]), expected([true; 4], 4));
    assert_eq!(
        ran(".", &["--workspace", "--exclude", "whole", "--exclude", "b"]),
        expected([false, true, false, false], 1)
    );
    let text = error(&run(folder.path(), &["test", "--workspace", "-p", "a"]));
    assert!(text.contains("cannot be used with"), "{text}");
}

const VIRTUAL: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"a\", \"b\"]\n"),
    ("a/Cargo.toml", "[package]\nname = \"a\"\nedition = \"2024\"\n"),
    ("a/src/main.rs", "fn main() { println!(\"a's program\"); }\n"),
    ("a/examples/show.rs", "//! 1.1 show: a's.\nfn main() { println!(\"a's example\"); }\n"),
    ("a/examples/alone.rs", "//! 1.3 alone: a's.\nfn main() { println!(\"alone\"); }\n"),
    ("b/Cargo.toml", "[package]\nname = \"b\"\nedition = \"2024\"\n"),
    ("b/src/main.rs", "fn main() { println!(\"b's program\"); }\n"),
    ("b/examples/show.rs", "//! 1.2 show: b's.\nfn main() { println!(\"b's example\"); }\n"),
];

#[test]
fn in_a_virtual_workspace_all_members_are_meant() {
    let folder = workspace(VIRTUAL);
    let list = "1.1  show   a's.\n1.2  show   b's.\n1.3  alone  a's.\n";
    assert_eq!(stdout(&run(folder.path(), &["run", "--list"])), list);
    assert!(stdout(&run(folder.path(), &["run", "--all"])).ends_with("3 passed, 0 skipped, 0 failed\n"));
    assert_eq!(stdout(&run(folder.path(), &["run", "alone"])), "alone\n");
    let text = error(&run(folder.path(), &["run", "show"]));
    assert!(text.contains("several packages have an example or program `show`"), "{text}");
    assert!(text.contains("choose one with --package: a, b"), "{text}");
    assert_eq!(stdout(&run(folder.path(), &["run", "-p", "b", "show"])), "b's example\n");
    let text = error(&run(folder.path(), &["run"]));
    assert!(text.contains("there are the examples alone, show, show and the programs a, b"), "{text}");
    let text = error(&run(folder.path(), &["inspect", "kernel"]));
    assert!(text.contains("kernels are in none of the packages a, b"), "{text}");
    let text = error(&run(folder.path(), &["bench"]));
    assert!(text.contains("benches are in none of the packages a, b"), "{text}");
}

#[test]
fn without_a_name_the_only_program_runs() {
    let folder = workspace(&VIRTUAL[1..3]);
    let package = folder.path().join("a");
    assert_eq!(stdout(&run(&package, &["run"])), "a's program\n");
    assert_eq!(stdout(&run(&package, &["run", "a"])), "a's program\n");
    let text = error(&run(&package, &["run", "show"]));
    assert!(text.contains("no example or program `show`; there are the programs a"), "{text}");
    for option in ["--list", "--all"] {
        let text = error(&run(&package, &["run", option]));
        assert!(text.contains("no examples in a"), "{text}");
    }
}

#[test]
fn all_test_programs_run_and_the_end_says_what_failed_and_why() {
    let folder = workspace(&[
        ("Cargo.toml", "[package]\nname = \"whole\"\nedition = \"2024\"\n[workspace]\n"),
        ("src/lib.rs", "//! ```\n//! assert_eq!(1 + 1, 2);\n//! ```\n"),
        ("tests/bad.rs", "#[test]\nfn it_fails() { panic!(\"as it should\") }\n"),
        (
            "tests/good.rs",
            "#[test]\nfn it_passes() {\n    assert!(std::fs::exists(\"tests/good.rs\").unwrap());\n    \
             assert_eq!(std::env::var(\"CARGO_PKG_NAME\").unwrap(), \"whole\");\n}\n",
        ),
    ]);
    let output = run(folder.path(), &["test"]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "as it should",
        "test it_passes ... ok",
        "     Running documentation (",
        "test src/lib.rs - (line 1) ... ok",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let (_, end) = text.split_once("1 of 4 test programs failed: tests/bad.rs\n").expect("a summary");
    assert!(end.contains("as it should") && end.trim_end().ends_with("    it_fails"), "{end}");
}
