//! `cargo ferrogrid new`: a package that builds, runs and passes its tests as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{Failure, cargo};

/// The arguments of `new`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder to make; its last part is the package's name.
    path: PathBuf,
    /// Make a Python extension module by PyO3 and maturin, whose functions launch kernels on tensors of PyTorch, CuPy and NumPy.
    #[arg(long)]
    python: bool,
}

/// What a package is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Program,
    Python,
}

/// Writes the package; an existing folder is an error.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let kind = if options.python { Kind::Python } else { Kind::Program };
    create(&options.path, kind, Path::new(SOURCES))?;
    if !is_installed() {
        configure(&options.path, Path::new(SOURCES))?;
    }
    let path = options.path.display();
    let next = match kind {
        Kind::Program => "cargo run && cargo test && cargo ferrogrid inspect saxpy",
        Kind::Python => "pip install . && python test.py && cargo ferrogrid inspect saxpy",
    };
    println!("made the package {path}; now: cd {path} && {next}");
    Ok(ExitCode::SUCCESS)
}

/// The folder of the sources that this command was built from.
pub(crate) const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

/// Makes the package in `folder`; it depends on the Ferrogrid with `cli` as the sources of its command.
pub(crate) fn create(folder: &Path, kind: Kind, cli: &Path) -> Result<(), Failure> {
    let name = package_name(folder)?;
    fs::create_dir_all(folder.parent().unwrap_or(Path::new("")))?;
    fs::create_dir(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    fs::create_dir(folder.join("src"))?;
    for (file, text) in kind.files() {
        let text = text.replace("PACKAGE", &name).replace("NAME", &crate_name(&name));
        fs::write(folder.join(file), text)?;
    }
    let manifest = manifest(&name, kind, cli);
    fs::write(folder.join("Cargo.toml"), &manifest)?;
    if !is_member(folder) {
        let workspace = if is_below_a_package(folder) { WORKSPACE } else { "" };
        fs::write(folder.join("Cargo.toml"), format!("{manifest}{PROFILE}{workspace}"))?;
    }
    Ok(fs::write(folder.join(".gitignore"), "/target\n")?)
}

impl Kind {
    /// The files besides Cargo.toml, with NAME for the name of the crate and PACKAGE for that of the package.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Program => &[("build.rs", BUILD), ("src/main.rs", MAIN)],
            Kind::Python => &[
                ("build.rs", BUILD),
                ("src/lib.rs", include_str!("python/lib.rs")),
                ("src/tensor.rs", include_str!("python/tensor.rs")),
                ("test.py", include_str!("python/test.py")),
                ("pyproject.toml", include_str!("python/pyproject.toml")),
            ],
        }
    }

    /// What stands in Cargo.toml before the other dependencies.
    fn dependencies(self, name: &str) -> String {
        match self {
            Kind::Program => "[dependencies]\n".to_owned(),
            Kind::Python => format!(
                "[lib]\nname = {:?}\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n# One build for Python 3.9 and newer.\n\
                 pyo3 = {{ version = \"0.30\", features = [\"abi3-py39\"] }}\n",
                crate_name(name)
            ),
        }
    }
}

/// The name of the package's crate.
fn crate_name(package: &str) -> String {
    package.replace('-', "_")
}

/// Whether cargo finds this command in `PATH`.
fn is_installed() -> bool {
    let name = format!("cargo-ferrogrid{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(&name).is_file())
}

/// Makes `cargo ferrogrid` work in the package in `folder`, by an alias that builds the command from its sources.
fn configure(folder: &Path, cli: &Path) -> Result<(), Failure> {
    let Some(root) = sources(cli) else { return Ok(()) };
    fs::create_dir(folder.join(".cargo"))?;
    Ok(fs::write(folder.join(".cargo/config.toml"), alias(root))?)
}

/// The folder of Ferrogrid's sources, if the sources of the command still exist in `cli`.
fn sources(cli: &Path) -> Option<&Path> {
    cli.parent().filter(|root| root.join("builder/Cargo.toml").is_file())
}

/// A string, which replaces that of a folder above, as in the sources themselves; cargo splits it at spaces, though. An array is joined to that
/// of a folder above, and an error where that is a string.
fn alias(root: &Path) -> String {
    let manifest = root.join("Cargo.toml").display().to_string();
    let [before, after] = [
        &["run", "--release", "--manifest-path"][..],
        &["--package", "cargo-ferrogrid", "--bin", "cargo-ferrogrid", "--"],
    ];
    let words = [before, &[&manifest], after].concat();
    let command = match manifest.contains(char::is_whitespace) {
        true => format!("{words:?}"),
        false => format!("{:?}", words.join(" ")),
    };
    format!(
        "# `cargo ferrogrid`, by the sources that this package depends on.\n[alias]\nferrogrid = {command}\n"
    )
}

/// The last part of the path, if cargo accepts it as the name of a package.
fn package_name(folder: &Path) -> Result<String, Failure> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on_well = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    // The package would shadow its dependency.
    let is_free = !["ferrogrid", "ferrogrid-build", "test", "core", "std"].contains(&name);
    if starts_well && goes_on_well && is_free {
        return match refusal_of_cargo(name) {
            None => Ok(name.to_owned()),
            Some(reason) => Err(format!("{name:?} is not a name for a package: {reason}").into()),
        };
    }
    Err(format!(
        "{name:?} is not a name for a package: a name has letters, digits, `-` and `_`, begins with a letter, and \
         is not that of a crate that the package requires"
    )
    .into())
}

/// The reason why cargo rejects a package of this name: it knows keywords, names of its own folders, and
/// names that the system does not support. cargo creates one in a temporary folder, so nothing has to be
/// undone.
fn refusal_of_cargo(name: &str) -> Option<String> {
    let folder = std::env::temp_dir().join(format!("ferrogrid-new-{}-{name}", std::process::id()));
    let mut command = cargo::command();
    command.args(["new", "--quiet", "--vcs", "none", "--name", name]).arg(&folder);
    let output = command.output().ok()?;
    // cargo created all of its content.
    let _ = fs::remove_dir_all(&folder);
    if output.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().find_map(|line| line.strip_prefix("error: "))?;
    // Other errors, such as a full disk, are reported when the package itself is made.
    reason.contains("name").then(|| reason.to_owned())
}

/// Whether cargo takes the package in `folder` for a member of a workspace above: globs and exclusions decide.
fn is_member(folder: &Path) -> bool {
    let mut command = cargo::command();
    command.args(["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"]);
    let Ok(output) = command.arg(folder.join("Cargo.toml")).output() else { return false };
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let root = metadata["workspace_root"].as_str().map(Path::new);
    output.status.success() && root.is_some_and(|root| root.canonicalize().ok() != folder.canonicalize().ok())
}

/// Whether a folder above has a package or a workspace, in which cargo would look for this package.
fn is_below_a_package(folder: &Path) -> bool {
    let Ok(folder) = std::path::absolute(folder) else { return false };
    folder.ancestors().skip(1).any(|above| above.join("Cargo.toml").is_file())
}

/// The Cargo.toml: it depends on the sources that this command was built from if they still exist, else on the published
/// version.
fn manifest(name: &str, kind: Kind, cli: &Path) -> String {
    let dependency = |folder: &str| match sources(cli) {
        Some(root) => {
            format!("{{ path = {:?} }}", root.join(folder).display().to_string().trim_end_matches('/'))
        }
        None => format!("{:?}", env!("CARGO_PKG_VERSION")),
    };
    format!(
        "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{}ferrogrid = {}\n\n\
         [build-dependencies]\nferrogrid-build = {}\n",
        kind.dependencies(name),
        dependency(""),
        dependency("builder")
    )
}

const PROFILE: &str = r#"
# A backtrace names functions of dependencies without their lines; with them the first build takes a sixth longer.
[profile.dev.package."*"]
debug = false
"#;

const WORKSPACE: &str = "\n# On its own, though there is a package in a folder above.\n[workspace]\n";

const BUILD: &str = "fn main() {\n    ferrogrid_build::compile()\n}\n";

const MAIN: &str = r#"use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y, one element per thread.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }
}

/// a*x + y, on whatever device there is.
fn saxpy(device: &Device, a: f32, x: &[f32], y: &[f32]) -> ferrogrid::Result<Vec<f32>> {
    let stream = device.new_stream()?;
    let x = stream.upload(x)?;
    let mut y = stream.upload(y)?;
    kernels::saxpy(&stream, Grid::cover(y.len()), a, &x, &mut y)?;
    stream.download(&y)
}

fn main() -> ferrogrid::Result<()> {
    let device = Device::best()?; // the first CUDA GPU, else the CPU
    let result = saxpy(&device, 3.0, &[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0])?;
    println!("on {device}: {result:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saxpy_is_right_on_every_device() -> ferrogrid::Result<()> {
        for device in Device::all() {
            assert_eq!(saxpy(&device, 2.0, &[1.0; 1000], &[0.5; 1000])?, [2.5; 1000]);
        }
        Ok(())
    }
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_package_has_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("deep/down/my-kernels");
        create(&package, Kind::Program, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("name = \"my-kernels\"") && manifest.contains("/builder\""), "{manifest}");
        assert!(package.join("build.rs").is_file() && package.join("src/main.rs").is_file());
    }

    #[test]
    fn a_python_package_has_the_names_that_python_takes() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("my-kernels");
        create(&package, Kind::Python, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let read = |file: &str| fs::read_to_string(package.join(file)).unwrap();
        assert!(read("src/lib.rs").contains("fn my_kernels(module: &Bound"));
        assert!(read("test.py").contains("import my_kernels\n"));
        assert!(read("pyproject.toml").contains("name = \"my-kernels\"\n"));
        assert!(read("Cargo.toml").contains("[lib]\nname = \"my_kernels\"\n"));
    }

    /// What cargo runs as `cargo ferrogrid` in `folder`.
    fn command_in(folder: &Path) -> String {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        let listed = cargo.args(["--list"]).current_dir(folder).output().unwrap();
        let errors = String::from_utf8_lossy(&listed.stderr);
        let listed = String::from_utf8_lossy(&listed.stdout);
        let mut lines = listed.lines().map(str::trim);
        lines.find(|line| line.starts_with("ferrogrid ")).expect(&errors).to_owned()
    }

    #[test]
    fn the_command_of_the_sources_works_inside_of_the_package() {
        let folder = tempfile::tempdir().unwrap();
        configure(folder.path(), Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml");
        let command = command_in(folder.path());
        assert!(command.contains(&manifest.display().to_string()) && command.ends_with("--"), "{command}");
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        configure(&below, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert_eq!(command_in(&below), command, "it replaces that of the folder above");
    }

    #[test]
    fn it_works_in_a_folder_of_the_sources_too() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".cargo").join("config.toml");
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".cargo")).unwrap();
        fs::copy(sources, folder.path().join(".cargo/config.toml")).unwrap();
        let package = folder.path().join("package");
        fs::create_dir(&package).unwrap();
        configure(&package, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(command_in(&package).contains("--manifest-path"), "{}", command_in(&package));
    }

    #[test]
    fn a_path_with_spaces_is_one_argument() {
        let text = alias(Path::new("/a folder/ferrogrid"));
        assert!(
            text.contains("\"--manifest-path\", \"/a folder/ferrogrid/Cargo.toml\", \"--package\""),
            "{text}"
        );
    }

    #[test]
    fn without_the_sources_there_is_no_alias() {
        let folder = tempfile::tempdir().unwrap();
        configure(folder.path(), Path::new("/nowhere/cli")).unwrap();
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    #[test]
    fn a_package_below_another_stands_on_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = |package: &str| {
            create(&folder.path().join(package), Kind::Program, Path::new(env!("CARGO_MANIFEST_DIR")))
                .unwrap();
            fs::read_to_string(folder.path().join(package).join("Cargo.toml")).unwrap()
        };
        assert!(!manifest("alone").contains("[workspace]"));
        assert!(manifest("alone/deeper/below").ends_with("[workspace]\n"));
    }

    #[test]
    fn a_member_of_a_workspace_leaves_profiles_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n";
        fs::write(folder.path().join("Cargo.toml"), root).unwrap();
        let manifest = |package: &str| {
            create(&folder.path().join(package), Kind::Program, Path::new(env!("CARGO_MANIFEST_DIR")))
                .unwrap();
            fs::read_to_string(folder.path().join(package).join("Cargo.toml")).unwrap()
        };
        let member = manifest("crates/member");
        assert!(!member.contains("[workspace]") && !member.contains("[profile"), "{member}");
        let beside = manifest("beside");
        assert!(beside.ends_with("[workspace]\n") && beside.contains("[profile"), "{beside}");
    }

    #[test]
    fn without_the_sources_the_published_version_is_named() {
        let text = manifest("x", Kind::Program, Path::new("/nowhere/cli"));
        assert!(text.contains(&format!("ferrogrid = {:?}", env!("CARGO_PKG_VERSION"))), "{text}");
    }

    #[test]
    fn an_existing_folder_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mine")).unwrap();
        let message =
            create(&folder.path().join("mine"), Kind::Program, Path::new("/x")).unwrap_err().to_string();
        assert!(message.contains("cannot make"), "{message}");
    }

    #[test]
    fn names_that_cargo_would_refuse_are_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["3d", "a b", "ferrogrid", "ö", "fn", "struct", "test", "deps", "self"] {
            assert!(create(&folder.path().join(name), Kind::Program, Path::new("/x")).is_err(), "{name}");
        }
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
