//! The folder of an exported package: the files with code, the modules of kernels, the runtime, and what pip needs.

use std::fs;
use std::path::{Path, PathBuf};

use super::names::OF_PACKAGE;
use super::text::MADE;
use crate::Failure;

/// The folder of the runtime in a package.
const RUNTIME_FOLDER: &str = "_ferrogrid";

/// The runtime: Python files that every package has a copy of.
const RUNTIME: [(&str, &str); 8] = [
    ("__init__.py", include_str!("python/package.py")),
    ("arrays.py", include_str!("python/arrays.py")),
    ("driver.py", include_str!("python/driver.py")),
    ("launch.py", include_str!("python/launch.py")),
    ("message.py", include_str!("python/message.py")),
    ("module.py", include_str!("python/module.py")),
    ("panic.py", include_str!("python/panic.py")),
    ("source.py", include_str!("python/source.py")),
];

/// A file of a package.
pub(super) enum Content {
    Text(String),
    /// A copy of another file.
    Copy(PathBuf),
}

/// What is written about a package.
pub(super) struct Package<'a> {
    /// Its name in Python.
    pub(super) name: &'a str,
    /// The names of the package in Rust, and its version.
    pub(super) rust_name: &'a str,
    pub(super) version: &'a str,
    /// The names of its modules.
    pub(super) modules: &'a [String],
    /// Its own files, by name.
    pub(super) files: Vec<(String, Content)>,
}

impl Package<'_> {
    /// Writes it into `folder`, in place of an earlier export.
    ///
    /// # Errors
    /// If the folder has other files, or cannot be written.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        self.clear(folder)?;
        let inner = folder.join(self.name);
        let runtime = inner.join(RUNTIME_FOLDER);
        create(&runtime)?;
        for (name, text) in RUNTIME {
            write(&runtime.join(name), text)?;
        }
        for (name, content) in &self.files {
            let file = inner.join(name);
            match content {
                Content::Text(text) => write(&file, text)?,
                Content::Copy(from) => {
                    fs::copy(from, &file).map_err(|error| failure("copy", from, &error))?;
                }
            }
        }
        write(&inner.join("py.typed"), "")?;
        write(&inner.join("__init__.py"), &self.init())?;
        write(&folder.join("pyproject.toml"), &self.project())
    }

    /// Removes an earlier export.
    fn clear(&self, folder: &Path) -> Result<(), Failure> {
        let entries = fs::read_dir(folder).map(Iterator::count).unwrap_or(0);
        if entries == 0 {
            return Ok(());
        }
        let project = fs::read_to_string(folder.join("pyproject.toml")).unwrap_or_default();
        if !project.contains(MADE) {
            let folder = folder.display();
            return Err(
                format!("{folder} has files of something else; choose an empty folder with --out").into()
            );
        }
        let earlier = project.lines().find_map(|line| line.strip_prefix("# package: ")).unwrap_or(self.name);
        let earlier = folder.join(earlier);
        if earlier.is_dir() {
            fs::remove_dir_all(&earlier).map_err(|error| failure("remove", &earlier, &error))?;
        }
        Ok(())
    }

    fn init(&self) -> String {
        let Package { rust_name, version, modules, .. } = self;
        let modules = modules.join(", ");
        let names: Vec<String> = OF_PACKAGE.map(str::to_owned).to_vec();
        let all = names.iter().chain(self.modules).map(|it| format!("    \"{it}\",\n")).collect::<String>();
        format!(
            "\"\"\"CUDA kernels of the Rust package `{rust_name}`, to launch on arrays of CuPy, PyTorch, cuda.core and others.\n\n\
             A kernel may panic while it runs. `synchronize` waits for it and raises `KernelPanic`: call it before results are\n\
             used.\n\n{MADE}\n\"\"\"\n\n\
             from __future__ import annotations\n\n\
             from . import {modules}\n\
             from .{RUNTIME_FOLDER} import CudaError, KernelPanic, synchronize\n\n\
             __version__ = \"{version}\"\n\
             __all__ = [\n{all}]\n\n\n\
             def load(device: int = 0) -> None:\n    \
             \"\"\"Loads all kernels for a device, ahead of their first launch: before a stream is captured, for instance.\"\"\"\n    \
             for module in ({modules},):\n        \
             module._module.load(device)\n"
        )
    }

    fn project(&self) -> String {
        let Package { name, rust_name, .. } = self;
        let version = python_version(self.version);
        format!(
            "# {MADE}\n# package: {name}\n\
             [build-system]\nrequires = [\"setuptools>=61\"]\nbuild-backend = \"setuptools.build_meta\"\n\n\
             [project]\nname = \"{name}\"\nversion = \"{version}\"\n\
             description = \"CUDA kernels of the Rust package `{rust_name}`\"\nrequires-python = \">=3.9\"\n\n\
             [tool.setuptools]\npackages = [\"{name}\", \"{name}.{RUNTIME_FOLDER}\"]\n\n\
             [tool.setuptools.package-data]\n{name} = [\"py.typed\", \"*.ptx\", \"*.cubin\"]\n"
        )
    }
}

/// A version as pip takes it: of a pre-release that Python does not know only the numbers.
fn python_version(version: &str) -> &str {
    let (numbers, rest) = version.split_once('-').unwrap_or((version, ""));
    let is_known = ["alpha", "beta", "rc"].iter().any(|kind| rest.starts_with(kind));
    if is_known { version } else { numbers.split('+').next().unwrap_or(numbers) }
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| failure("create", folder, &error))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| failure("write", file, &error))
}

fn failure(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    format!("cannot {what} {}: {error}", path.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package<'a>(name: &'a str, modules: &'a [String]) -> Package<'a> {
        let files = vec![("kernels.py".to_owned(), Content::Text("x = 1\n".to_owned()))];
        Package { name, rust_name: "app", version: "0.1.0", modules, files }
    }

    #[test]
    fn an_export_replaces_an_earlier_one_and_nothing_else() {
        let modules = ["kernels".to_owned()];
        let folder = tempfile::tempdir().unwrap();
        package("old", &modules).write(folder.path()).unwrap();
        package("new", &modules).write(folder.path()).unwrap();
        assert!(folder.path().join("new/kernels.py").is_file() && !folder.path().join("old").exists());
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("thesis.txt"), "").unwrap();
        let message = package("new", &modules).write(other.path()).unwrap_err().to_string();
        assert!(message.contains("has files of something else"), "{message}");
    }

    #[test]
    fn versions_are_those_that_pip_takes() {
        let expected = [
            ("1.2.3", "1.2.3"),
            ("1.0.0-alpha.1", "1.0.0-alpha.1"),
            ("1.0.0-nightly", "1.0.0"),
            ("1.0.0+x", "1.0.0"),
        ];
        for (cargo, python) in expected {
            assert_eq!(python_version(cargo), python);
        }
    }
}
