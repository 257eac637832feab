//! Commands that build packages outside this workspace, as its users do.

#![allow(dead_code, reason = "each test program uses its part")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target folder of these packages. All test programs share it, so that dependencies are built once.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside")
}

/// Runs `program`, which is cargo or calls cargo, in `folder`.
pub fn command(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("PWD", folder).env("CARGO_TARGET_DIR", target());
    command.env("CARGO_TERM_COLOR", "never").env_remove("RUSTFLAGS");
    // Debug information is not needed, and incremental data not worth their time: each build is edited once or twice.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    command
}
