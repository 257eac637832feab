//! What cargo tells a build script by environment variables.

use std::env;
use std::panic::Location;
use std::path::{Path, PathBuf};

use crate::cargo::metadata::Package;
use crate::error::Error;
use crate::options::variables;

/// The variable that names the only target to compile, such as `example-saxpy`, in packages without a library. Where it changes, cargo
/// builds all that includes device code again, and so a library, which other targets need with all of its kernels.
pub const ONLY: &str = "FERROGRID_ONLY";

/// The package that is being built, as cargo describes it to its build script.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The folder of the package's Cargo.toml (`CARGO_MANIFEST_DIR`).
    pub manifest_dir: PathBuf,
    /// Where the build script may write (`OUT_DIR`).
    pub out_dir: PathBuf,
    /// The package's active features, as written in Cargo.toml (`CARGO_CFG_FEATURE`).
    pub features: Vec<String>,
    /// The `--cfg` options in the user's own rustc flags, as `name` or `name="value"`.
    pub cfgs: Vec<String>,
    /// libdevice, if `FERROGRID_LIBDEVICE` names it.
    pub libdevice: Option<PathBuf>,
    /// The architectures asked for by `FERROGRID_ARCH`, unparsed.
    pub arch: Option<String>,
    /// The only target to compile, by [`ONLY`].
    pub only: Option<String>,
    /// Whether `FERROGRID_CUBIN` asks for machine code, unparsed.
    pub cubin: Option<String>,
    /// ptxas, if `FERROGRID_PTXAS` names it.
    pub ptxas: Option<PathBuf>,
    /// The `cfg`s of the host half, as `rustc --print cfg` writes them (`CARGO_CFG_*`); empty if unknown.
    pub(crate) host_cfgs: String,
    /// The variables that cargo sets for the package's crates, for `env!` in kernels.
    pub(crate) crate_variables: Vec<(String, String)>,
    /// The file that called the build step, as rustc was told it; `None` if paths are remapped.
    pub(crate) caller: Option<PathBuf>,
}

impl Environment {
    /// Reads the variables that cargo sets for build scripts.
    ///
    /// # Errors
    /// [`Error::NotABuildScript`] if one is missing.
    #[track_caller]
    pub fn from_process() -> Result<Self, Error> {
        let path = |name| env::var_os(name).map(PathBuf::from).ok_or(Error::NotABuildScript(name));
        let features = env::var("CARGO_CFG_FEATURE").unwrap_or_default();
        // Not in the closure below, where the caller would be another.
        let caller = Location::caller();
        let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
        Ok(Environment {
            manifest_dir: path("CARGO_MANIFEST_DIR")?,
            out_dir: path("OUT_DIR")?,
            features: features.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
            cfgs: cfg_options(&flags),
            libdevice: variables::path("FERROGRID_LIBDEVICE"),
            arch: variables::text("FERROGRID_ARCH"),
            cubin: variables::text("FERROGRID_CUBIN"),
            only: variables::text(ONLY),
            ptxas: variables::path("FERROGRID_PTXAS"),
            host_cfgs: host_cfgs(env::vars()),
            crate_variables: env::vars().filter(|(name, _)| is_of_crates(name)).collect(),
            caller: (!flags.contains("remap-")).then(|| caller.file().into()),
        })
    }

    /// The only target of `package` to compile, if that is asked for and the package has no library.
    pub(crate) fn only_target(&self, package: &Package) -> Option<&str> {
        self.only.as_deref().filter(|_| !package.has_library())
    }

    /// A package at `manifest_dir` without features, whose results go to `out_dir`.
    pub fn new(manifest_dir: impl AsRef<Path>, out_dir: impl AsRef<Path>) -> Self {
        Environment {
            manifest_dir: manifest_dir.as_ref().to_owned(),
            out_dir: out_dir.as_ref().to_owned(),
            ..Environment::default()
        }
    }
}

/// The options in `CARGO_CFG_*`: `CARGO_CFG_TARGET_FEATURE=sse,sse2`, and `CARGO_CFG_UNIX` without a value.
fn host_cfgs(variables: impl Iterator<Item = (String, String)>) -> String {
    let mut cfgs = String::new();
    for (name, values) in variables {
        let Some(name) = name.strip_prefix("CARGO_CFG_").map(str::to_lowercase) else { continue };
        if values.is_empty() {
            cfgs.push_str(&format!("{name}\n"));
        }
        for value in values.split(',').filter(|value| !value.is_empty()) {
            cfgs.push_str(&format!("{name}=\"{value}\"\n"));
        }
    }
    cfgs
}

/// Whether cargo sets the variable for the crates of a package as it does for its build script.
fn is_of_crates(name: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|group| name.starts_with(group)) || name == "OUT_DIR"
}

/// The values of `--cfg` among rustc flags that are separated as cargo separates them.
fn cfg_options(flags: &str) -> Vec<String> {
    let mut options = Vec::new();
    let mut flags = flags.split('\u{1f}');
    while let Some(flag) = flags.next() {
        if flag == "--cfg" {
            options.extend(flags.next().map(str::to_owned));
        } else if let Some(option) = flag.strip_prefix("--cfg=") {
            options.push(option.to_owned());
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_host_are_read_from_cargos_variables() {
        let variables = [
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_UNIX", ""),
            ("CARGO_CFG_TARGET_HAS_ATOMIC", "8,ptr"),
            ("HOME", "/h"),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            host_cfgs(variables),
            "target_os=\"linux\"\nunix\ntarget_has_atomic=\"8\"\ntarget_has_atomic=\"ptr\"\n"
        );
    }

    #[test]
    fn cfgs_are_taken_out_of_the_flags_around_them() {
        let flags = "-Copt-level=2\u{1f}--cfg\u{1f}fast\u{1f}--cfg=mode=\"x y\"\u{1f}-g";
        assert_eq!(cfg_options(flags), ["fast", "mode=\"x y\""]);
        assert!(cfg_options("").is_empty());
    }
}
