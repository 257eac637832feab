//! Runs a bench on the CPU device, and checks its output and the shape of its JSON.

#[path = "../../cli/tests/shape/mod.rs"]
mod shape;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the example `tiny` of this package, which cargo builds beside the tests.
fn tiny(arguments: &[&str]) -> Output {
    let deps = std::env::current_exe().unwrap();
    let program = deps.parent().unwrap().with_file_name("examples").join("tiny");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .output()
        .expect("`cargo test -p ferrogrid-bench` builds the example, `--test report` does not")
}

fn report(arguments: &[&str]) -> (Value, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let plots = folder.path().join("plots");
    let (json_text, plots_text) = (json.to_str().unwrap(), plots.to_str().unwrap());
    let fixed = ["--device", "cpu", "--json", json_text, "--plots", plots_text];
    let output = tiny(&[&fixed, arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files =
        |folder: &Path| folder.read_dir().unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files(&plots).collect();
    names.sort();
    (serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap(), names)
}

#[test]
fn the_report_has_the_shape_that_programs_rely_on() {
    let (report, plots) = report(&["--bench"]);
    assert_eq!(
        (&report["schema"], &report["quick"], &report["bench"]),
        (&1.into(), &false.into(), &"tiny".into())
    );
    shape::assert_golden("bench", &report);
    let device = &report["devices"][0];
    assert_eq!(device["kind"], "cpu");
    let threads: Vec<&Value> =
        device["cases"][0]["runs"].as_array().unwrap().iter().map(|run| &run["threads_per_block"]).collect();
    assert_eq!(threads, [&Value::Null, &64.into(), &256.into()]);
    let run = &device["cases"][0]["runs"][0];
    let (seconds, rate) = (run["seconds"].as_f64().unwrap(), run["bytes_per_second"].as_f64().unwrap());
    let bytes = device["cases"][0]["bytes"].as_f64().unwrap();
    assert!((rate * seconds / bytes - 1.0).abs() < 1e-9, "{run}");
    assert_eq!(plots, ["cpu-double-blocks.svg", "cpu-roofline.svg"]);
}

#[test]
fn only_the_cases_asked_for_run() {
    let (report, _) = report(&["--bench", "--no-sweep", "fil"]);
    let cases = report["devices"][0]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 1);
    assert_eq!((&cases[0]["name"], cases[0]["runs"].as_array().unwrap().len()), (&"fill".into(), 1));
    let output = tiny(&["--device", "cpu", "nothing"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no case has `nothing` in its name"));
}

#[test]
fn without_bench_each_case_runs_once() {
    let (report, _) = report(&[]);
    assert_eq!(report["quick"], true);
    for case in report["devices"][0]["cases"].as_array().unwrap() {
        let runs = case["runs"].as_array().unwrap();
        assert_eq!(
            (runs.len(), &runs[0]["samples"], &runs[0]["launches_per_sample"]),
            (1, &1.into(), &1.into())
        );
    }
}

#[test]
fn a_missing_device_is_an_error() {
    let output = tiny(&["--device", "cuda:99"]);
    assert!(!output.status.success());
    assert!(!output.stderr.is_empty());
}
