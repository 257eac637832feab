//! The command line of an inner `cargo build` for the device: the compiler, the flags that device crates
//! share, and the variables that it must not see.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::Arch;
use crate::toolchain::{DEVICE_TARGET, NO_DEVICE_CODE, Toolchain, process};

/// The codegen flags of every crate that ends in PTX, besides its architecture: no unwinding, and bitcode in
/// the rlibs, so that the last compilation optimises across all of them.
const DEVICE_FLAGS: [&str; 3] =
    ["-Cpanic=abort", "-Clinker-plugin-lto", "-Zmir-enable-passes=-JumpThreading"];

/// `cargo build --release` of `manifest` for the device, with `toolchain`'s compiler.
pub(crate) fn build(toolchain: &Toolchain, manifest: &Path, target_dir: &Path) -> Command {
    let mut command = command();
    command.env("RUSTC", &toolchain.rustc).env("RUSTC_BOOTSTRAP", "1");
    // A build script of a dependency that compiles kernels would deadlock on this build's lock.
    command.env("FERROGRID_DEVICE_RUSTC", NO_DEVICE_CODE);
    // Empty means none, and wins over the user's cargo configuration.
    command.env("RUSTC_WRAPPER", "").env("RUSTC_WORKSPACE_WRAPPER", "");
    command.env("CARGO_INCREMENTAL", "0");
    command.args(["build", "--release", "--color=never", "--target", DEVICE_TARGET]);
    command.arg("--manifest-path").arg(manifest).arg("--target-dir").arg(target_dir);
    command
}

/// Sets the flags for device crates. With `--target`, cargo does not give them to proc macros and build
/// scripts.
pub(crate) fn device_flags(command: &mut Command, arch: &Arch, extra: &[String]) {
    let mut flags: Vec<String> = DEVICE_FLAGS.map(str::to_owned).to_vec();
    flags.push(format!("-Ctarget-cpu={arch}"));
    flags.extend_from_slice(extra);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
}

/// The cargo that runs us, else the one in `PATH`, with the toolchain that was chosen: a rustup proxy would
/// otherwise follow a `rust-toolchain.toml` or the default.
pub(crate) fn command() -> Command {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = process::command(&cargo);
    if let Some(toolchain) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        command.env("RUSTUP_TOOLCHAIN", toolchain);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::{CoreOrigin, Origin};

    #[test]
    fn build_scripts_of_an_inner_build_compile_no_kernels() {
        let toolchain = Toolchain {
            rustc: "rustc".into(),
            origin: Origin::Distribution,
            sysroot: "/usr".into(),
            version: String::new(),
            host: String::new(),
            core: CoreOrigin::Prebuilt,
            key: String::new(),
        };
        let command = build(&toolchain, Path::new("Cargo.toml"), Path::new("target"));
        assert_eq!(process::variables(&command)["FERROGRID_DEVICE_RUSTC"], "none");
    }
}
