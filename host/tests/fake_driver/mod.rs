//! The fake driver (`libcuda.rs`) as a library in a folder, and processes that run with it. It must not know
//! what is tested.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of a fake driver, compiled once; one without stream-ordered allocation if asked.
pub(crate) fn fake_driver(without_pools: bool) -> &'static Path {
    static DRIVERS: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    DRIVERS[usize::from(without_pools)].get_or_init(|| {
        let name = if without_pools { "fake_driver_without_pools" } else { "fake_driver" };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let unfinished = folder.join(format!("{}.so", std::process::id()));
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition=2024", "--crate-type=cdylib", "-Copt-level=1", "-Anon_snake_case"]);
        rustc.args(["--check-cfg=cfg(without_pools)", "-o"]).arg(&unfinished);
        if without_pools {
            rustc.args(["--cfg", "without_pools"]);
        }
        rustc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver/libcuda.rs"));
        let output = rustc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::rename(unfinished, folder.join("libcuda.so.1")).unwrap();
        folder
    })
}

/// Runs the scenario of that name in a process with a fake driver; gives the calls that it made.
#[track_caller]
pub(crate) fn run(scenario: &str, settings: &str) -> Vec<String> {
    run_with(scenario, settings, fake_driver(false))
}

#[track_caller]
pub(crate) fn run_with(scenario: &str, settings: &str, driver: &Path) -> Vec<String> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let log = driver.join(format!("{}_{number}.log", std::process::id()));
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "scenario", "--ignored", "--nocapture"])
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
    calls.lines().map(str::to_owned).collect()
}

pub(crate) fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| *call == name).count()
}
