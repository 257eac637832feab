//! NVTX ranges as recorded by a tool that is loaded like Nsight Systems' (`nvtx_tool/lib.rs`). Each case runs in a
//! separate process, because a process loads one tool.
#![cfg(target_os = "linux")]

mod kernels;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ferrogrid_host::{Device, Grid, Result, profile};
use kernels::saxpy;

#[test]
#[ignore = "the other tests run it, in processes with a tool"]
fn work() {
    launches_in_a_range().unwrap();
}

fn launches_in_a_range() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let _range = profile::range("all\0 of it");
    let x = stream.upload(&[1.0_f32; 10])?;
    let mut y = stream.fill(2.0_f32, 10)?;
    saxpy(&stream, Grid::cover(10), 3.0, &x, &mut y)?;
    stream.synchronize()?;
    assert_eq!(stream.download(&y)?, [5.0; 10]);
    Ok(())
}

/// The tool, compiled once.
fn tool() -> &'static Path {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libnvtx_tool.so");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition=2024", "--crate-type=cdylib", "-Anon_snake_case", "-o"]).arg(&path);
        rustc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvtx_tool/lib.rs"));
        let output = rustc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        path
    })
}

/// The ranges that a tool gets, if `path` is the one that the environment names.
fn ranges(name: &str, path: &Path, variables: &[(&str, &str)]) -> String {
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvtx_{name}_{}.log", std::process::id()));
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "work", "--ignored", "--nocapture"])
        .env("NVTX_INJECTION64_PATH", path)
        .env("NVTX_TOOL_LOG", &log)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let _absent = std::fs::remove_file(&log);
    text
}

#[test]
fn a_tool_gets_ranges_of_launches_copies_and_synchronisations() {
    let lines = ranges("told", tool(), &[]);
    let expected = [
        "push all",
        "push upload",
        "pop",
        "push fill",
        "pop",
        "push saxpy",
        "pop",
        "push synchronize",
        "pop",
        "push download",
        "pop",
        "pop",
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_tool_that_refuses_or_is_not_there_does_no_harm() {
    assert_eq!(ranges("refuses", tool(), &[("NVTX_TOOL_REFUSES", "1")]), "");
    assert_eq!(ranges("absent", Path::new("/nowhere/libtool.so"), &[]), "");
    assert_eq!(ranges("none", Path::new(""), &[]), "");
}
