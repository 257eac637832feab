//! Where NVIDIA's programs and files may be on this machine: CUDA toolkits, and packages of conda and Python.
//! All of them are optional: `inspect` and mathematical functions use them.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::options::variables;

/// The variables that name a toolkit or a Python environment.
pub(crate) const VARIABLES: [&str; 4] = ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"];

/// The folders that may have the contents of a CUDA toolkit, the preferred first: toolkits, then packages of
/// the active Python environment.
pub(crate) fn roots(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from);
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(folder).collect();
    roots.extend(["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"].map(PathBuf::from));
    roots.extend(folder("CONDA_PREFIX"));
    for python in folder("VIRTUAL_ENV").iter().flat_map(|root| children(&root.join("lib"))) {
        roots.extend(packages(&python.join("site-packages")));
    }
    roots
}

/// The folders of NVIDIA's PyPI packages in a folder that they are installed into.
fn packages(folder: &Path) -> Vec<PathBuf> {
    children(&folder.join("nvidia"))
}

/// The folders in a folder, sorted.
fn children(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = cache::entries(folder).collect();
    found.sort();
    found
}

/// A program of the CUDA toolkit for device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CudaTool {
    /// The assembler, from PTX to machine code.
    Ptxas,
    /// The disassembler, from machine code to SASS with source lines.
    Nvdisasm,
}

impl CudaTool {
    /// All of them.
    pub const ALL: [CudaTool; 2] = [CudaTool::Ptxas, CudaTool::Nvdisasm];

    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            CudaTool::Ptxas => "ptxas",
            CudaTool::Nvdisasm => "nvdisasm",
        }
    }

    /// The PyPI package that has it.
    pub fn package(self) -> &'static str {
        match self {
            CudaTool::Ptxas => "nvidia-cuda-nvcc",
            CudaTool::Nvdisasm => "nvidia-cuda-nvdisasm",
        }
    }

    /// The environment variable that names its file.
    pub fn variable(self) -> &'static str {
        match self {
            CudaTool::Ptxas => "FERROGRID_PTXAS",
            CudaTool::Nvdisasm => "FERROGRID_NVDISASM",
        }
    }

    /// Where it is on this machine: what its variable names (and then nowhere else), else in `PATH`, in a
    /// CUDA toolkit (`CUDA_HOME`, `CUDA_PATH` or a usual folder), in conda's or Python's active environment,
    /// or where `pip install --target TARGET/cuda` puts it; TARGET is the package's target folder.
    pub fn find(self, target_folder: Option<&Path>) -> Option<PathBuf> {
        self.find_in(variables::value, target_folder)
    }

    fn find_in(
        self,
        variable: impl Fn(&str) -> Option<OsString>,
        target_folder: Option<&Path>,
    ) -> Option<PathBuf> {
        if let Some(named) = variable(self.variable()) {
            return Some(PathBuf::from(named)).filter(|file| file.is_file());
        }
        let mut folders: Vec<PathBuf> =
            std::env::split_paths(&variable("PATH").unwrap_or_default()).collect();
        let mut toolkits = roots(&variable);
        // `.ci/ptxas` of this repository installs it there, too.
        for name in ["cuda", "ptxas"] {
            toolkits.extend(target_folder.iter().flat_map(|target| packages(&target.join(name))));
        }
        folders.extend(toolkits.iter().map(|root| root.join("bin")));
        let file = format!("{}{EXE_SUFFIX}", self.name());
        folders.into_iter().map(|folder| folder.join(&file)).find(|file| file.is_file())
    }

    /// A command that installs it where [`find`](CudaTool::find) looks: below the package's target folder,
    /// or `target` in the current folder.
    pub fn advice(self, target_folder: Option<&Path>) -> String {
        let folder = target_folder.unwrap_or(Path::new("target")).join("cuda");
        let here = std::env::current_dir().unwrap_or_default();
        let folder = folder.strip_prefix(here).unwrap_or(&folder);
        format!("pip install --target {} {}", folder.display(), self.package())
    }
}

/// The version line of a tool's `--version`; `None` if the program does not run.
pub fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("release")).or(text.lines().next())?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(folder: &Path, place: &str) -> PathBuf {
        let file = folder.join(place).join(format!("ptxas{EXE_SUFFIX}"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        file
    }

    #[test]
    fn a_tool_is_found_in_path_toolkits_python_and_the_target_folder_in_that_order() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        let find = || {
            let variable = |name: &str| match name {
                "PATH" => Some(dir.path().join("bin").into_os_string()),
                "CUDA_HOME" => Some(dir.path().join("toolkit").into()),
                "VIRTUAL_ENV" => Some(dir.path().join("venv").into()),
                _ => None,
            };
            CudaTool::Ptxas.find_in(variable, Some(&target))
        };
        // From the last place to the first, each hides those after it.
        for place in [
            "target/ptxas/nvidia/cu13/bin",
            "target/cuda/nvidia/cu13/bin",
            "venv/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin",
            "toolkit/bin",
            "bin",
        ] {
            let file = program(dir.path(), place);
            assert_eq!(find(), Some(file), "{place}");
        }
    }

    #[test]
    fn a_named_tool_is_that_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = program(dir.path(), "bin");
        let find = |named: &Path| {
            let variable = |name: &str| match name {
                "FERROGRID_PTXAS" => Some(named.as_os_str().to_owned()),
                "PATH" => Some(dir.path().join("bin").into_os_string()),
                _ => None,
            };
            CudaTool::Ptxas.find_in(variable, None)
        };
        assert_eq!(find(&file), Some(file.clone()));
        assert_eq!(find(&dir.path().join("elsewhere")), None);
    }
}
