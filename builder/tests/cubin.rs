//! Machine code beside the PTX: its PTX, the runs of ptxas, and builds where ptxas is missing or fails. A
//! program that counts its runs stands in for ptxas; the real one is used if this machine has it.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ferrogrid_build::cuda_toolkit::CudaTool;
use ferrogrid_build::{Build, Environment, Output};
use ferrogrid_syntax::compiled::CompiledTarget;

const SAXPY: &str = "\
#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }
}

fn main() {}
";

struct Package {
    dir: tempfile::TempDir,
    environment: Environment,
}

impl Package {
    /// A package with one kernel, and `metadata` in its table of settings.
    fn new(metadata: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let manifest = format!(
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
             [package.metadata.ferrogrid]\n{metadata}\n\
             [dependencies.ferrogrid-device]\npath = {:?}\n[dependencies.ferrogrid-macros]\npath = {:?}\n",
            repository.join("device"),
            repository.join("macros"),
        );
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("Cargo.toml"), manifest).unwrap();
        fs::write(root.join("src/main.rs"), SAXPY).unwrap();
        let lock = repository.join("Cargo.lock");
        if lock.is_file() {
            fs::copy(lock, root.join("Cargo.lock")).unwrap();
        }
        let environment = Environment::new(&root, root.join("target/debug/build/app-0/out"));
        Package { dir, environment }
    }

    /// A stand-in for ptxas that records each run and ends with `code`: with 0 its output is a copy of the PTX.
    fn with_ptxas(mut self, code: u8) -> Self {
        let file = self.dir.path().join("ptxas");
        let runs = self.runs_file();
        let script = format!(
            "#!/bin/sh\necho run >> {runs:?}\nfor word; do\n case $word in *.ptx) input=$word;; esac\n last=$word\ndone\n\
             if [ {code} != 0 ]; then echo 'ptxas fatal : Unsupported .version'; exit {code}; fi\ncp $input $last\n"
        );
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        self.environment.ptxas = Some(file);
        self
    }

    fn runs_file(&self) -> PathBuf {
        self.dir.path().join("runs")
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.runs_file()).map_or(0, |text| text.lines().count())
    }

    fn built(&self) -> Output {
        Build::new().try_run(&self.environment).unwrap_or_else(|error| panic!("{error}"))
    }

    fn edit(&self, from: &str, to: &str) {
        let file = self.environment.manifest_dir.join("src/main.rs");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from));
        fs::write(&file, text.replace(from, to)).unwrap();
    }
}

fn warnings(output: &Output) -> Vec<&str> {
    output.directives.iter().filter_map(|line| line.strip_prefix("cargo::warning=")).collect()
}

/// PTX and machine code that the program embeds, for each architecture.
fn embedded(output: &Output) -> Vec<(PathBuf, Option<PathBuf>)> {
    let target =
        CompiledTarget::from_text(&fs::read_to_string(&output.modules[0].manifest).unwrap()).unwrap();
    target.images[0].codes.iter().map(|code| (code.ptx.clone(), code.cubin.clone())).collect()
}

#[test]
fn ptxas_runs_once_per_architecture_and_again_only_after_changes() {
    let package = Package::new("arch = [\"sm_75\", \"sm_90\"]\ncubin = true").with_ptxas(0);
    let first = package.built();
    assert_eq!((first.cubins.len(), package.runs()), (2, 2));
    assert!(warnings(&first).is_empty(), "{:?}", first.directives);
    for (cubin, ptx) in first.cubins.iter().zip(&first.ptx) {
        assert_eq!(fs::read(cubin).unwrap(), fs::read(ptx).unwrap(), "each is made of its own PTX");
        assert!(embedded(&first).contains(&(ptx.clone(), Some(cubin.clone()))));
    }
    let second = package.built();
    assert_eq!((&second.cubins, package.runs()), (&first.cubins, 2), "existing results are reused");
    package.edit("a * x", "2.0 * a * x");
    let third = package.built();
    assert_eq!(package.runs(), 4);
    assert!(third.cubins.iter().all(|cubin| cubin.is_file()));
    assert!(first.cubins.iter().all(|cubin| !cubin.exists()), "unused results are removed");
}

#[test]
fn by_default_there_is_ptx_only() {
    let package = Package::new("").with_ptxas(0);
    let output = package.built();
    assert_eq!((output.cubins.len(), package.runs()), (0, 0));
    assert_eq!(embedded(&output), [(output.ptx[0].clone(), None)]);
}

#[test]
fn the_variable_wins_over_the_package() {
    let mut package = Package::new("cubin = true").with_ptxas(0);
    package.environment.cubin = Some("0".into());
    assert_eq!(package.built().cubins.len(), 0);
    package.environment.cubin = Some("1".into());
    assert_eq!(package.built().cubins.len(), 1);
    package.environment.cubin = Some("yes".into());
    let error = Build::new().try_run(&package.environment).unwrap_err().to_string();
    assert_eq!(error, "the environment variable `FERROGRID_CUBIN` is `yes`; expected 0 or 1");
}

#[test]
fn without_ptxas_a_warning_has_advice_and_the_ptx_is_used() {
    let mut package = Package::new("cubin = true");
    package.environment.ptxas = Some(package.dir.path().join("nowhere"));
    let output = package.built();
    assert_eq!((output.ptx.len(), output.cubins.len()), (1, 0));
    let [warning] = warnings(&output)[..] else { panic!("{:?}", output.directives) };
    for part in ["ptxas is not installed", "FERROGRID_PTXAS", "pip install", "nvidia-cuda-nvcc"] {
        assert!(warning.contains(part), "{part:?} is missing in {warning}");
    }
}

#[test]
fn errors_of_ptxas_are_one_line_and_the_ptx_is_used() {
    let package = Package::new("cubin = true").with_ptxas(255);
    let output = package.built();
    assert_eq!(output.cubins.len(), 0);
    let [warning] = warnings(&output)[..] else { panic!("{:?}", output.directives) };
    assert!(warning.starts_with("no cubin for sm_75"), "{warning}");
    assert!(warning.contains("ptxas fatal : Unsupported .version") && !warning.contains('\n'), "{warning}");
    assert_eq!(embedded(&output), [(output.ptx[0].clone(), None)]);
}

/// Skipped if this machine has no ptxas.
#[test]
fn the_real_ptxas_makes_machine_code_with_the_entry_point() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Some(ptxas) = CudaTool::Ptxas.find(Some(&target)) else { return };
    let mut package = Package::new("arch = [\"sm_90\"]\ncubin = true");
    package.environment.ptxas = Some(ptxas);
    let output = package.built();
    assert!(warnings(&output).is_empty(), "{:?}", output.directives);
    let code = fs::read(&output.cubins[0]).unwrap();
    assert_eq!((&code[..4], &code[18..20]), (&b"\x7fELF"[..], &190_u16.to_le_bytes()[..]), "a cubin");
    let section = format!(".text.{}", output.modules[0].entries[0]);
    assert!(code.windows(section.len()).any(|bytes| bytes == section.as_bytes()), "{section}");
}
