//! Commands for inner compilers and cargos, with an environment that inherits nothing from the build around
//! them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Output};

use crate::cache;
use crate::error::Error;

/// Variables that control a cargo or rustc and do not begin with `CARGO_` or `DEP_`.
const SCRUBBED: [&str; 24] = [
    "CARGO",
    "DEBUG",
    "FERROGRID_EXPAND",
    "HOST",
    "MAKEFLAGS",
    "MFLAGS",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC",
    "RUSTC_BOOTSTRAP",
    "RUSTC_FORCE_RUSTC_VERSION",
    "RUSTC_LINKER",
    "RUSTC_LOG",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "SYSROOT",
    "TARGET",
    "__CARGO_DEFAULT_LIB_METADATA",
];

/// Groups of `CARGO_*` variables with cargo's locations, which do not affect what it builds.
const KEPT: [&str; 6] =
    ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"];

/// Whether an inner process must not see the variable.
fn is_scrubbed(name: &str) -> bool {
    if SCRUBBED.contains(&name) || name.starts_with("DEP_") {
        return true;
    }
    name.starts_with("CARGO_") && !KEPT.iter().any(|kept| name.starts_with(kept))
}

/// A command whose environment is scrubbed.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_scrubbed) {
            command.env_remove(name);
        }
    }
    for name in ["LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"] {
        if let Some(paths) = std::env::var_os(name) {
            command.env(name, without_toolchains(&paths));
        }
    }
    command
}

/// Library search paths without those of the toolchain around us: another rustc must not load its libraries.
fn without_toolchains(paths: &OsStr) -> OsString {
    let foreign = |path: &Path| {
        path.components().any(|part| part.as_os_str() == "rustlib" || part.as_os_str() == "toolchains")
    };
    let kept: Vec<_> = std::env::split_paths(paths).filter(|path| !foreign(path)).collect();
    std::env::join_paths(kept).unwrap_or_default()
}

/// Runs a command and returns its output.
pub(crate) fn run(command: &mut Command) -> Result<Output, Error> {
    command.output().map_err(|source| Error::Spawn { program: command.get_program().into(), source })
}

/// Runs a command; if it fails, its output becomes the error. Returns its standard output.
pub(crate) fn run_checked(what: &str, command: &mut Command) -> Result<String, Error> {
    let output = run(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Program {
        what: what.to_owned(),
        command: command_line(command),
        output: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
    })
}

/// The variables of a command's process, except those that are not text.
pub(crate) fn variables(command: &Command) -> BTreeMap<String, String> {
    let text = |value: &OsStr| value.to_str().map(str::to_owned);
    let inherited = std::env::vars_os().filter_map(|(name, value)| Some((text(&name)?, text(&value)?)));
    let mut variables: BTreeMap<String, String> = inherited.collect();
    for (name, value) in command.get_envs() {
        let Some(name) = text(name) else { continue };
        match value.and_then(text) {
            Some(value) => variables.insert(name, value),
            None => variables.remove(&name),
        };
    }
    variables
}

/// A text that identifies the version of the program at `path`.
pub(crate) fn identity(path: &Path) -> String {
    format!("{}\n{}", path.display(), cache::file_key(path))
}

/// The command line as text, for errors.
pub(crate) fn command_line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_as_it_was_called() {
        assert_eq!(command_line(&Command::new("rustc")), "rustc");
        assert_eq!(
            command_line(Command::new("/usr/bin/rustc").args(["-C", "lto=fat"])),
            "/usr/bin/rustc -C lto=fat"
        );
    }

    #[test]
    fn variables_of_the_outer_build_are_scrubbed() {
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "TARGET",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "CARGO_FEATURE_DEFAULT",
            "CARGO_CFG_UNIX",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_MAKEFLAGS",
            "DEP_Z_INCLUDE",
            "FERROGRID_EXPAND",
        ] {
            assert!(is_scrubbed(name), "{name}");
        }
    }

    #[test]
    fn variables_with_locations_are_kept() {
        for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "CARGO_HTTP_PROXY", "CARGO_NET_OFFLINE"] {
            assert!(!is_scrubbed(name), "{name}");
        }
    }

    #[test]
    fn libraries_of_the_outer_toolchain_are_not_found() {
        let paths = "/opt/lib:/home/u/.rustup/toolchains/nightly/lib:/usr/lib/rustlib/x/lib";
        assert_eq!(without_toolchains(OsStr::new(paths)), "/opt/lib");
    }

    #[test]
    fn a_failed_command_reports_its_command_line_and_output() {
        let mut command = command(Path::new("sh"));
        command.args(["-c", "echo broken >&2; exit 3"]);
        let error = run_checked("the test", &mut command).unwrap_err().to_string();
        assert!(error.contains("the test failed") && error.contains("broken"), "{error}");
    }
}
