//! A package in a separate folder, on which the build step runs as in its build script.

#![allow(dead_code, reason = "each test program uses its part")]

use std::fs;
use std::path::{Path, PathBuf};

use ferrogrid_build::{Build, Environment, Output};

pub struct Package {
    _dir: tempfile::TempDir,
    pub environment: Environment,
}

impl Package {
    /// A package `app` with these files, which depends on Ferrogrid's device crates; `manifest` adds to its Cargo.toml.
    pub fn new(manifest: &str, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        // The temporary folder's real path, as compilers print it.
        let root = dir.path().canonicalize().unwrap();
        let environment = Environment::new(&root, root.join("target/debug/build/app-0/out"));
        let package = Package { _dir: dir, environment };
        let text = format!(
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{manifest}\n[workspace]\n\
             [dependencies.ferrogrid-device]\npath = {:?}\n[dependencies.ferrogrid-macros]\npath = {:?}\n",
            repository.join("device"),
            repository.join("macros"),
        );
        package.write("Cargo.toml", &text);
        fs::copy(repository.join("Cargo.lock"), package.path("Cargo.lock")).unwrap();
        for (path, text) in files {
            package.write(path, text);
        }
        package
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.environment.manifest_dir.join(relative)
    }

    pub fn write(&self, relative: &str, text: &str) {
        fs::create_dir_all(self.path(relative).parent().unwrap()).unwrap();
        fs::write(self.path(relative), text).unwrap();
    }

    pub fn edit(&self, relative: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(relative)).unwrap();
        assert!(text.contains(from), "{from} is not in {relative}");
        self.write(relative, &text.replace(from, to));
    }

    pub fn built(&self) -> Output {
        Build::new().try_run(&self.environment).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn failure(&self) -> String {
        Build::new().try_run(&self.environment).map(|output| panic!("{output:?}")).unwrap_err().to_string()
    }

    /// The PTX of its only target, as built outside `cargo test`.
    pub fn ptx(&self) -> String {
        let output = self.built();
        let is_tested = |ptx: &&PathBuf| ptx.to_string_lossy().contains("-test.");
        let plain: Vec<&PathBuf> = output.ptx.iter().filter(|ptx| !is_tested(ptx)).collect();
        let [ptx] = plain.as_slice() else { panic!("{:?}", output.ptx) };
        fs::read_to_string(ptx).unwrap()
    }
}

/// A program whose only kernel writes `value` into each element.
pub fn program(value: &str) -> String {
    format!(
        "#[ferrogrid::module]\nmod kernels {{
    use ferrogrid::device::prelude::*;
    #[kernel]
    pub fn fill(t: Thread<1>, mut y: DisjointSlice<u32>) {{
        if let Some(y) = y.get_mut(t.index()) {{ *y = {value}; }}
    }}
}}\nfn main() {{}}\n"
    )
}
