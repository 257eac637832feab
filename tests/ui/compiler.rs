//! Answers trybuild in cargo's place. Cargo would build Ferrogrid and its dependencies twice more, in a folder of trybuild;
//! here rustc compiles the cases with the crates that this program is linked with.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::thread;
use std::time::SystemTime;

/// Names the real cargo. Where it is set, this program was called as cargo.
pub const REAL_CARGO: &str = "FERROGRID_UI_CARGO";

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a command line of trybuild's.
pub fn answer(cargo: &Path) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |argument: &str| arguments.iter().any(|it| it == argument);
    if has("metadata") {
        let status = Command::new(cargo).args(&arguments).status().expect("cargo runs");
        return if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // All other commands prepare a build of cargo's.
    if has("--message-format=json") {
        check_all(cases());
    }
    ExitCode::SUCCESS
}

/// The sources of the binaries in trybuild's Cargo.toml.
fn cases() -> Vec<PathBuf> {
    let manifest = fs::read_to_string("Cargo.toml").expect("trybuild's package");
    let paths = manifest.lines().filter_map(|line| line.strip_prefix("path = "));
    let paths = paths.map(|path| PathBuf::from(path.trim_matches(['"', '\''])));
    paths.filter(|path| path.is_absolute() && path.extension().is_some_and(|it| it == "rs")).collect()
}

/// Compiles the cases, and prints rustc's messages as cargo would.
fn check_all(cases: Vec<PathBuf>) {
    let library = library();
    let cases = Mutex::new(cases.into_iter());
    let next = || cases.lock().expect("no thread panics").next();
    let work = || {
        while let Some(case) = next() {
            let output = rustc(&library, &case).output().expect("rustc runs");
            for message in String::from_utf8_lossy(&output.stderr).lines() {
                let message = with_absolute_paths(message);
                println!(
                    r#"{{"reason":"compiler-message","target":{{"src_path":{case:?}}},"message":{message}}}"#
                );
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

/// The message as of a crate outside this workspace: for its members, cargo passes relative paths to rustc.
fn with_absolute_paths(message: &str) -> String {
    let mut message = message.to_owned();
    for arrow in ["--> ", "::: "] {
        for member in ["device/", "host/"] {
            message = message.replace(&format!("{arrow}{member}"), &format!("{arrow}{ROOT}/{member}"));
        }
    }
    message
}

/// The folder of the crates that this program is linked with.
fn crates() -> PathBuf {
    env::current_exe().expect("its path").parent().expect("its folder").to_owned()
}

fn rustc(library: &Path, case: &Path) -> Command {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    // There it finds the sources of Ferrogrid, for its messages.
    rustc.current_dir(ROOT).arg(case).arg("--out-dir").arg(env::current_dir().expect("trybuild's package"));
    rustc.args(["--crate-name=case", "--edition=2024", "--emit=metadata"]);
    rustc.args(["--error-format=json", "--diagnostic-width=140", "--verbose"]);
    rustc.args(["-A", "dead_code", "-L"]).arg(format!("dependency={}", crates().display()));
    rustc.arg("--extern").arg(format!("ferrogrid={}", library.display()));
    rustc
}

/// The library of the newest build with the features of the tests: other commands leave builds with other features.
fn library() -> PathBuf {
    let files = fs::read_dir(crates()).expect("the crates").flatten().map(|file| file.path());
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let libraries =
        files.filter(|path| name(path).starts_with("libferrogrid-") && name(path).ends_with(".rlib"));
    let time =
        |path: &PathBuf| path.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut libraries: Vec<PathBuf> = libraries.collect();
    libraries.sort_by_key(time);
    let probe = env::current_dir().expect("trybuild's package").join("probe.rs");
    fs::write(&probe, "fn main() { let _ = ferrogrid::device::half::f16::ONE; }").expect("a writable folder");
    let compiles = |library: &PathBuf| {
        let output: Output = rustc(library, &probe).output().expect("rustc runs");
        output.status.success()
    };
    libraries.into_iter().rev().find(compiles).expect("a build of Ferrogrid with the feature `half`")
}
