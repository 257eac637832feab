//! `cargo ferrogrid run --list` and `--all`, from outside, on a package of plain programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const PASSES: &str = "//! 1.10 passes: it works.\nfn main() { println!(\"device  a test's\"); }\n";
const FAILS: &str =
    "//! 1.9 fails: it does not.\nfn main() { println!(\"on my way\"); std::process::exit(3) }\n";
const PLAIN: &str = "fn main() {}\n";

/// A package with these examples.
fn package(examples: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("Cargo.toml", "[package]\nname = \"gallery\"\nedition = \"2024\"\n[workspace]\n");
    write("src/lib.rs", "");
    for (name, text) in examples {
        write(&format!("examples/{name}.rs"), text);
    }
    folder
}

fn run(folder: &Path, option: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.args(["run", option]).current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    command.output().unwrap()
}

/// What it printed from the summary on, the seconds left out.
fn summary(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("example "));
    let is_time = |word: &&str| word.len() == 4 && word.parse::<f64>().is_ok();
    lines
        .map(|line| line.split_whitespace().filter(|word| !is_time(word)).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn the_list_is_in_learning_order_with_summaries() {
    let package = package(&[("a_plain_one", PLAIN), ("fails", FAILS), ("passes", PASSES)]);
    let output = run(package.path(), "--list");
    assert!(output.status.success());
    let expected = "\
1.9   fails        it does not.
1.10  passes       it works.
a_plain_one
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn one_failure_among_all_is_shown_and_is_the_exit_status() {
    let package = package(&[("passes", PASSES), ("a_plain_one", PLAIN), ("fails", FAILS)]);
    let output = run(package.path(), "--all");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = [
        "example result seconds device",
        "fails FAIL (exit status: 3) not told",
        "passes PASS a test's",
        "a_plain_one PASS not told",
        "",
        "2 passed, 0 skipped, 1 failed",
    ];
    assert_eq!(summary(&output), expected);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n== 1.9 fails\non my way\n"), "{text}");
}

#[test]
fn all_pass_is_success() {
    let package = package(&[("passes", PASSES)]);
    let output = run(package.path(), "--all");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        summary(&output),
        ["example result seconds device", "passes PASS a test's", "", "1 passed, 0 skipped, 0 failed"]
    );
}

#[test]
fn a_package_without_examples_is_an_error() {
    let package = package(&[]);
    let output = run(package.path(), "--all");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no examples"));
}

#[test]
fn the_kernels_of_one_example_are_compiled_until_all_are() {
    let shows = "fn main() { println!(\"only {:?}\", std::env::var(\"FERROGRID_ONLY\").ok()) }\n";
    let package = package(&[("one", shows), ("two", shows)]);
    let only = || {
        let output = run(package.path(), "one");
        let text = String::from_utf8(output.stdout).unwrap();
        text.strip_prefix("only ").map(|it| it.trim_end().to_owned()).expect("it ran")
    };
    assert_eq!(only(), "None", "a library has kernels that other targets need");
    fs::remove_file(package.path().join("src/lib.rs")).unwrap();
    assert_eq!(only(), "Some(\"example-one\")");
    let built = package.path().join("target/release/build/gallery-0/out/ferrogrid");
    fs::create_dir_all(&built).unwrap();
    fs::write(built.join("record.json"), "{\"schema\": 1, \"only\": \"example-two\"}").unwrap();
    assert_eq!(only(), "Some(\"example-one\")");
    fs::write(built.join("record.json"), "{\"schema\": 1, \"only\": null}").unwrap();
    assert_eq!(only(), "None");
}
