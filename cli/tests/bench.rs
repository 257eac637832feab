//! `cargo ferrogrid bench` from outside, on a package of programs that stand in for benches: which of them
//! run, with which arguments, and how their results are collected.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Has the mark of the harness, and writes its arguments into its report; `fail` as its case makes it fail.
const WITH_HARNESS: &str = r#"
#[used]
static MARK: [u8; 36] = *b"ferrogrid-bench harness, interface 1";

fn main() {
    let told: Vec<String> = std::env::args().skip(1).collect();
    let json = told.iter().position(|it| it == "--json").map(|at| &told[at + 1]).unwrap();
    let rest: Vec<String> = told.iter().filter(|it| !it.contains('/')).map(|it| format!("{it:?}")).collect();
    std::fs::write(json, format!("{{\"told\": [{}]}}", rest.join(", "))).unwrap();
    println!("{}", std::hint::black_box(&MARK).len());
    std::process::exit(i32::from(told.iter().any(|it| it == "fail")));
}
"#;

const WITHOUT: &str = "fn main() { panic!(\"this has another harness\") }\n";

fn package(benches: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::create_dir(folder.path().join("benches")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), "").unwrap();
    let mut manifest = "[package]\nname = \"app\"\nedition = \"2024\"\n[workspace]\n".to_owned();
    for (name, text) in benches {
        manifest += &format!("[[bench]]\nname = \"{name}\"\nharness = false\n");
        fs::write(folder.path().join(format!("benches/{name}.rs")), text).unwrap();
    }
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    folder
}

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.arg("bench").args(arguments).current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    command.output().unwrap()
}

#[test]
fn benches_with_the_harness_run_and_their_reports_are_merged() {
    let package = package(&[("first", WITH_HARNESS), ("other", WITHOUT), ("second", WITH_HARNESS)]);
    let output = bench(package.path(), &["--json", "--device", "cpu", "--no-sweep", "--case", "saxpy"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let report: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let told = ["--json", "--plots", "--bench", "--no-sweep", "--quiet", "--device", "cpu", "saxpy"];
    let benches = report["benches"].as_array().unwrap();
    assert_eq!(benches.len(), 2, "{report}");
    assert_eq!(benches[0]["told"], Value::from(told.to_vec()));
    assert_eq!((&report["schema"], &report["package"]), (&1.into(), &"app".into()));
    let file = package.path().join("target/ferrogrid/bench/results.json");
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap(), report);
}

#[test]
fn a_named_bench_runs_alone_and_its_failure_is_reported() {
    let package = package(&[("first", WITH_HARNESS), ("second", WITH_HARNESS)]);
    let out = package.path().join("here");
    let output =
        bench(package.path(), &["second", "--quick", "--case", "fail", "--out", out.to_str().unwrap()]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("error: failed: second\n"));
    let report: Value = serde_json::from_str(&fs::read_to_string(out.join("results.json")).unwrap()).unwrap();
    assert_eq!(report["benches"][0]["told"], Value::from(vec!["--json", "--plots", "fail"]));
}

#[test]
fn missing_files_are_reported() {
    let plain = package(&[("other", WITHOUT)]);
    let output = bench(plain.path(), &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no bench here calls ferrogrid_bench::main"));
    let output = bench(plain.path(), &["third"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no bench `third`; there are: other"));
}
