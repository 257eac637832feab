//! Calls to cargo: the packages of a workspace, their targets, and builds that report their executables.
//! `selection.rs` selects the packages of a verb.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use serde_json::Value;

use crate::Failure;

/// The cargo that runs us, or the one in `PATH`.
pub(crate) fn command() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs cargo with `arguments`; its output is inherited.
pub(crate) fn pass_through<S: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = S>,
) -> Result<ExitCode, Failure> {
    run(command().args(arguments))
}

/// Runs a command; its output is inherited.
pub(crate) fn run(command: &mut Command) -> Result<ExitCode, Failure> {
    let status = command.status().map_err(|error| start_failure(command, &error))?;
    Ok(exit_code(status))
}

pub(crate) fn start_failure(command: &Command, error: &std::io::Error) -> Failure {
    format!("cannot start {}: {error}", command.get_program().display()).into()
}

pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(0) => ExitCode::SUCCESS,
        Some(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        None => ExitCode::FAILURE,
    }
}

/// A package of the current workspace.
#[derive(Clone)]
pub(crate) struct Package {
    /// Its `Cargo.toml`.
    pub(crate) manifest: PathBuf,
    metadata: Value,
    target_folder: Option<PathBuf>,
    /// Whether cargo selects it here if no package is named.
    pub(crate) is_default: bool,
}

impl Package {
    /// The folder of its `Cargo.toml`.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new(""))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.metadata["name"].as_str().unwrap_or_default()
    }

    /// Its version.
    pub(crate) fn version(&self) -> &str {
        self.metadata["version"].as_str().unwrap_or_default()
    }

    /// cargo's target folder.
    pub(crate) fn target_folder(&self) -> Option<&Path> {
        self.target_folder.as_deref()
    }

    /// Whether it declares a dependency on the package `name`, of `kind` (`build`, `dev`, `None` for an ordinary
    /// one).
    pub(crate) fn depends_on(&self, name: &str, kind: Option<&str>) -> bool {
        let declared = self.metadata["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        self.name() == name || declared.iter().any(|it| it["name"] == name && it["kind"].as_str() == kind)
    }

    /// The name of its library, if it has one.
    pub(crate) fn library(&self) -> Option<String> {
        let targets = self.metadata["targets"].as_array().map_or(&[][..], Vec::as_slice);
        let is_library = |target: &&Value| {
            let kinds = ["lib", "rlib", "dylib", "cdylib", "staticlib"];
            target_kind(target).is_some_and(|kind| kinds.contains(&kind))
        };
        targets.iter().find(is_library).and_then(|target| target["name"].as_str().map(str::to_owned))
    }

    /// Whether it has a build.rs.
    pub(crate) fn has_build_script(&self) -> bool {
        !self.sources("custom-build").is_empty()
    }

    /// Whether cargo looks for tests in its documentation.
    pub(crate) fn has_doctests(&self) -> bool {
        self.metadata["targets"].as_array().into_iter().flatten().any(|target| target["doctest"] == true)
    }

    /// Variables that cargo sets for the tests of the package.
    pub(crate) fn variables(&self) -> [(&'static str, &OsStr); 4] {
        let text = |key| OsStr::new(self.metadata[key].as_str().unwrap_or_default());
        [
            ("CARGO_MANIFEST_DIR", self.folder().as_os_str()),
            ("CARGO_MANIFEST_PATH", self.manifest.as_os_str()),
            ("CARGO_PKG_NAME", text("name")),
            ("CARGO_PKG_VERSION", text("version")),
        ]
    }

    /// Its targets of `kind` (`example`, `test`, `bench`, `bin`), with their root source files. Examples
    /// that are libraries (`crate-type = ["cdylib"]`) are left out, since they cannot be run.
    pub(crate) fn sources(&self, kind: &str) -> Vec<(String, PathBuf)> {
        let targets = self.metadata["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_program = |target: &Value| kind != "example" || target["crate_types"][0] == "bin";
        let of_kind = targets.iter().filter(|target| target_kind(target) == Some(kind) && is_program(target));
        let text = |target: &Value, key| target[key].as_str().map(str::to_owned);
        of_kind.filter_map(|it| Some((text(it, "name")?, text(it, "src_path")?.into()))).collect()
    }

    /// cargo's options for the features that a target of that kind (`example`, `bin`) and name requires.
    pub(crate) fn needed_features(&self, kind: &str, name: &str) -> Vec<String> {
        let targets = self.metadata["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_it = |target: &&Value| target_kind(target) == Some(kind) && target["name"] == name;
        let features = targets.iter().find(is_it).and_then(|it| it["required-features"].as_array());
        let features = features.into_iter().flatten().filter_map(Value::as_str);
        features.flat_map(|feature| ["--features".to_owned(), feature.to_owned()]).collect()
    }

    /// Kind and name of a target of a package that has neither a library nor programs: there `cargo check`
    /// builds nothing, not even the build script, unless a target is named.
    fn only_target(&self) -> Option<(&'static str, String)> {
        if self.library().is_some() || !self.sources("bin").is_empty() {
            return None;
        }
        ["example", "test", "bench"]
            .into_iter()
            .find_map(|kind| Some((kind, self.sources(kind).into_iter().next()?.0)))
    }

    /// The table `package.metadata.ferrogrid` of its `Cargo.toml`.
    pub(crate) fn settings(&self) -> Option<&serde_json::Map<String, Value>> {
        self.metadata["metadata"]["ferrogrid"].as_object()
    }

    /// The strings of the list at `package.metadata.ferrogrid.<path>` of its `Cargo.toml`.
    pub(crate) fn setting(&self, path: &str) -> Vec<String> {
        let list = path.split('.').fold(&self.metadata["metadata"]["ferrogrid"], |value, key| &value[key]);
        list.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }
}

fn target_kind(target: &Value) -> Option<&str> {
    target["kind"].get(0).and_then(Value::as_str)
}

/// The `Cargo.toml` of the current package or virtual workspace, and the packages of its workspace. cargo's
/// errors go to `errors`.
pub(crate) fn workspace(errors: impl Fn() -> Stdio) -> Result<(PathBuf, Vec<Package>), Failure> {
    let ask = |command: &mut Command| -> Result<String, Failure> {
        let output = command.stderr(errors()).output().map_err(|error| start_failure(command, &error))?;
        if !output.status.success() {
            return Err("cargo found no package here".into());
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    let located = ask(command().args(["locate-project", "--message-format=plain"]))?;
    let manifest = PathBuf::from(located.trim());
    let mut query = command();
    query.args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]).arg(&manifest);
    let all: Value = serde_json::from_str(&ask(&mut query)?)?;
    Ok((manifest, members(&all)))
}

/// The packages of a workspace, by name.
fn members(all: &Value) -> Vec<Package> {
    let defaults = all["workspace_default_members"].as_array().map_or(&[][..], Vec::as_slice);
    let package = |metadata: &Value| {
        Some(Package {
            manifest: metadata["manifest_path"].as_str()?.into(),
            metadata: metadata.clone(),
            target_folder: all["target_directory"].as_str().map(PathBuf::from),
            is_default: defaults.contains(&metadata["id"]),
        })
    };
    let packages = all["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut members: Vec<Package> = packages.iter().filter_map(package).collect();
    members.sort_by(|a, b| a.name().cmp(b.name()));
    members
}

/// An executable of a build.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Executable {
    /// `test`, `example`, `bench`, `bin` or `lib` (a library's unit tests).
    pub(crate) kind: String,
    /// The target's name.
    pub(crate) name: String,
    /// Its path.
    pub(crate) path: PathBuf,
}

/// Runs a build and returns its executables, also those that were up to date.
pub(crate) fn build(command: &mut Command) -> Result<Vec<Executable>, Failure> {
    Ok(executables(&messages(command)?))
}

/// Runs a build and returns cargo's messages, one a line.
fn messages(command: &mut Command) -> Result<String, Failure> {
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().map_err(|error| start_failure(command, &error))?;
    if !output.status.success() {
        return Err("the build failed".into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A program that runs tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// The `Cargo.toml` of its package.
    pub(crate) manifest: PathBuf,
    /// Its root source file.
    pub(crate) source: PathBuf,
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// Runs a build of tests and returns their programs, in the order in which cargo runs them.
pub(crate) fn build_tests(command: &mut Command) -> Result<Vec<TestProgram>, Failure> {
    let mut programs = test_programs(&messages(command)?);
    programs.sort_by(|a, b| (&a.manifest, &a.source).cmp(&(&b.manifest, &b.source)));
    Ok(programs)
}

fn test_programs(messages: &str) -> Vec<TestProgram> {
    let program = |line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = |text: &Value| text.as_str().map(PathBuf::from);
        let program = TestProgram {
            manifest: path(&message["manifest_path"])?,
            source: path(&message["target"]["src_path"])?,
            path: path(&message["executable"])?,
        };
        (message["profile"]["test"] == true).then_some(program)
    };
    messages.lines().filter_map(program).collect()
}

/// Checks the package, which runs its build script, and returns the script's `OUT_DIR`. `features` are the
/// options that choose the package's features.
pub(crate) fn out_dir(package: &Package, features: &[String]) -> Result<PathBuf, Failure> {
    let mut command = command();
    command.args(["check", "--quiet", "--package", package.name()]);
    command.arg("--manifest-path").arg(&package.manifest).args(features);
    if let Some((kind, name)) = package.only_target() {
        command.args([format!("--{kind}"), name]);
    }
    let messages = messages(&mut command)?;
    let id = package.metadata["id"].as_str().unwrap_or_default();
    let mut messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ran = messages.find(|it| it["reason"] == "build-script-executed" && it["package_id"] == id);
    let folder = ran.and_then(|message| message["out_dir"].as_str().map(PathBuf::from));
    Ok(folder.ok_or_else(|| {
        format!(
            "package `{}` has no build script, so no kernels; it needs a build.rs with\n\n    fn main() {{ ferrogrid_build::compile() }}",
            package.name()
        )
    })?)
}

fn executables(messages: &str) -> Vec<Executable> {
    messages.lines().filter_map(|line| executable(&serde_json::from_str(line).ok()?)).collect()
}

fn executable(message: &Value) -> Option<Executable> {
    let target = &message["target"];
    Some(Executable {
        kind: target_kind(target)?.to_owned(),
        name: target["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_read_from_the_messages_that_have_one() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"a"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"kind":["example"],"name":"saxpy"},"executable":"/t/saxpy"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\nnot json"
        );
        let expected =
            Executable { kind: "example".to_owned(), name: "saxpy".to_owned(), path: "/t/saxpy".into() };
        assert_eq!(executables(messages), [expected]);
    }

    #[test]
    fn test_programs_are_the_executables_that_have_the_harness_or_stand_for_it() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"kind":["bin"],"src_path":"/a/main.rs"},"profile":{"test":false},"executable":"/t/a"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"kind":["bin"],"src_path":"/a/main.rs"},"profile":{"test":true},"executable":"/t/a-1"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let expected = TestProgram {
            manifest: "/a/Cargo.toml".into(),
            source: "/a/main.rs".into(),
            path: "/t/a-1".into(),
        };
        assert_eq!(test_programs(messages), [expected]);
    }

    #[test]
    fn cargo_gets_the_required_features_of_a_target() {
        let metadata = serde_json::json!({ "targets": [
            { "kind": ["example"], "name": "plain" },
            { "kind": ["example"], "name": "jit", "required-features": ["jit", "nvml"] },
            { "kind": ["bin"], "name": "plain", "required-features": ["other"] },
        ] });
        let package =
            Package { manifest: "Cargo.toml".into(), metadata, target_folder: None, is_default: true };
        assert!(package.needed_features("example", "plain").is_empty());
        assert_eq!(package.needed_features("example", "jit"), ["--features", "jit", "--features", "nvml"]);
    }
}
