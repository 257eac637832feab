//! Runs scenarios against a fake CUDA driver (`fake_driver/libcuda.rs`), each in a separate process,
//! because a process loads one driver.

#![allow(dead_code, reason = "each test binary uses some of this")]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use ferrogrid_host::Result;

/// A scenario: its name, and what it does in its process.
pub(crate) type Scenario = (&'static str, fn() -> Result<()>);

/// The folder of a fake driver without what `lacks` says (`pools`, `param_info`, `batches`, `virtual_memory`), compiled once.
pub(crate) fn fake_driver(lacks: &[&'static str]) -> PathBuf {
    static DRIVERS: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let name = format!("{}_without_{}", env!("CARGO_CRATE_NAME"), lacks.join("_"));
    let mut drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let drivers = drivers.get_or_insert_default();
    drivers.entry(name).or_insert_with_key(|name| compile(name, lacks)).clone()
}

/// The folder of a driver, which is compiled unless an earlier run has left it: that would take most of these tests' time.
fn compile(name: &str, lacks: &[&str]) -> PathBuf {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}_{:016x}", digest(&rustc, lacks)));
    let finished = folder.join("libcuda.so.1");
    if finished.exists() {
        return folder;
    }
    std::fs::create_dir_all(&folder).unwrap();
    let unfinished = folder.join(format!("{}.so", std::process::id()));
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "--crate-type=cdylib", "-Copt-level=1", "-Anon_snake_case"]);
    command
        .args([
            "--check-cfg=cfg(without_pools, without_param_info, without_batches, without_virtual_memory)",
            "-o",
        ])
        .arg(&unfinished);
    for lack in lacks {
        command.args(["--cfg", &format!("without_{lack}")]);
    }
    command.arg(sources().join("libcuda.rs"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(unfinished, finished).unwrap();
    folder
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver")
}

/// Of all that a driver is made of: the compiler, what the driver lacks, and its files.
fn digest(rustc: &OsStr, lacks: &[&str]) -> u64 {
    let version = Command::new(rustc).arg("-vV").output().unwrap().stdout;
    let mut files = files(&sources());
    files.sort();
    let mut hasher = DefaultHasher::new();
    (version, lacks).hash(&mut hasher);
    for file in files {
        let text = std::fs::read(&file).unwrap();
        (file, text).hash(&mut hasher);
    }
    hasher.finish()
}

/// The files in a folder and in the folders below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Runs the scenario of that name in a process with a fake driver; gives the calls that it made.
#[track_caller]
pub(crate) fn run(scenario: &str, settings: &str) -> Vec<String> {
    run_with(scenario, settings, &fake_driver(&[]))
}

#[track_caller]
pub(crate) fn run_with(scenario: &str, settings: &str, driver: &Path) -> Vec<String> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let log = driver.join(format!("{}_{number}.log", std::process::id()));
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &entry(Location::caller()), "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", driver)
        .env("FERROGRID_TEST_SCENARIO", scenario)
        .env("FAKE_CUDA", settings)
        .env("FAKE_CUDA_LOG", &log)
        .env_remove("FERROGRID_DEVICE")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario} with {settings:?}:\n{text}");
    let calls = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert!(
        !calls.contains("refused symbol __ferrogrid"),
        "asked for what no module of {scenario} has:\n{calls}"
    );
    calls.lines().map(str::to_owned).collect()
}

/// The test that runs the scenarios of the caller's file: `scenario` in its module.
fn entry(caller: &Location<'_>) -> String {
    let file = caller.file().replace('\\', "/");
    let (_, module) = file.trim_end_matches(".rs").trim_end_matches("/mod").rsplit_once("tests/").unwrap();
    // What comes first is the program's name.
    let module = module.split_once('/').map_or(String::new(), |(_, module)| module.replace('/', "::") + "::");
    format!("{module}scenario")
}

pub(crate) fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| *call == name).count()
}

/// Runs the scenario that this process is for, if it is for one.
pub(crate) fn run_requested(scenarios: &[Scenario]) {
    let Ok(name) = std::env::var("FERROGRID_TEST_SCENARIO") else { return };
    let (_, scenario) = scenarios.iter().find(|(known, _)| *known == name).unwrap();
    scenario().unwrap();
}
