//! `cargo ferrogrid doctor` from outside: its findings about packages, and the shape of its JSON.

mod shape;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A package with this Cargo.toml after its first lines.
fn package(manifest: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{manifest}\n[workspace]\n"
    );
    fs::write(folder.path().join("Cargo.toml"), text).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/main.rs"), "fn main() {}").unwrap();
    folder
}

fn ferrogrid(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.args(arguments).current_dir(folder).env_remove("FERROGRID_ARCH");
    command.output().unwrap()
}

fn doctor(folder: &Path) -> Value {
    serde_json::from_slice(&ferrogrid(folder, &["doctor", "--json"]).stdout).unwrap()
}

/// The finding about `subject`: status, text and advice.
fn of(report: &Value, subject: &str) -> Vec<(String, String, String)> {
    let findings = report["findings"].as_array().unwrap().iter().filter(|it| it["subject"] == subject);
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    findings.map(|it| (text(it, "status"), text(it, "finding"), text(it, "advice"))).collect()
}

#[test]
fn the_report_has_the_shape_that_programs_rely_on() {
    let report = doctor(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    assert_eq!(report["schema"], 1);
    shape::assert_golden("doctor", &report);
    for subject in
        ["package", "device compiler", "core", "libdevice", "driver", "device", "ptxas", "nvdisasm"]
    {
        assert!(!of(&report, subject).is_empty(), "{subject}");
    }
    // These tests run where kernels compile.
    assert_eq!(of(&report, "device compiler")[0].0, "ok");
    assert_eq!(report["ok"], true, "{report:#}");
}

#[test]
fn every_architecture_that_the_package_asks_for_is_looked_at() {
    let asks = package("[package.metadata.ferrogrid]\narch = [\"sm_90a\", \"sm_80\"]");
    let cores: Vec<String> = of(&doctor(asks.path()), "core").into_iter().map(|(_, text, _)| text).collect();
    let names: Vec<&str> = cores.iter().map(|text| text.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["sm_80", "sm_90a"]);
}

#[test]
fn a_misspelt_setting_is_wrong_and_is_named() {
    let folder = package("[package.metadata.ferrogrid]\nfast_math = true");
    let output = ferrogrid(folder.path(), &["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ferrogrid.fast_math` in"), "{text}");
    assert!(text.contains("did you mean `fast-math`?"), "{text}");
    let setup = ferrogrid(folder.path(), &["setup"]);
    assert!(!setup.status.success());
    assert!(String::from_utf8(setup.stderr).unwrap().contains("did you mean `fast-math`?"));
}

#[test]
fn missing_parts_of_a_package_are_reported_with_advice() {
    let plain = package("");
    assert_eq!(of(&doctor(plain.path()), "package")[0].0, "note");

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let without_step = package(&format!("[dependencies]\nferrogrid = {{ path = {root:?} }}"));
    let report = doctor(without_step.path());
    let (status, _, advice) = &of(&report, "package")[0];
    assert_eq!((status.as_str(), report["ok"].as_bool()), ("wrong", Some(false)));
    assert!(advice.contains("ferrogrid_build::compile()"), "{advice}");
}

#[test]
fn doctor_works_outside_packages() {
    let folder = tempfile::tempdir().unwrap();
    let output = ferrogrid(folder.path(), &["doctor", "--json"]);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(of(&report, "package").is_empty());
    assert!(of(&report, "core")[0].1.starts_with("sm_75 "));
}

#[test]
fn settings_in_force_are_shown_and_misspelt_variables_reported() {
    let asks = package("[package.metadata.ferrogrid]\nftz = true\narch = [\"sm_80\"]");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.args(["doctor", "--json"]).current_dir(asks.path()).env_remove("FERROGRID_ARCH");
    command.env("FERROGRID_CPU_THREADS", "2").env("FERROGRID_DEVISE", "cpu");
    let report = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let settings = of(&report, "setting");
    let text: Vec<&str> = settings.iter().map(|(_, text, _)| text.as_str()).collect();
    assert!(text.iter().any(|it| it.starts_with("ftz = true in ")), "{text:?}");
    assert!(text.iter().any(|it| it.starts_with("arch = [\"sm_80\"] in ")), "{text:?}");
    assert!(text.contains(&"FERROGRID_CPU_THREADS=2"), "{text:?}");
    let misspelt = settings.iter().find(|(status, _, _)| status == "note").unwrap();
    assert!(misspelt.1.contains("FERROGRID_DEVISE is set"), "{misspelt:?}");
    assert!(misspelt.1.ends_with("did you mean FERROGRID_DEVICE?"), "{misspelt:?}");
}
