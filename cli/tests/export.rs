//! `cargo ferrogrid export` from outside: the package that it writes, and with Python what the package's functions check and
//! pass to the driver, for which `export/fake.py` stands in. A GPU is needed for the results of kernels only.

#[path = "export/formatted.rs"]
mod formatted;
mod package;
#[path = "../../builder/tests/build/user_cargo.rs"]
mod user_cargo;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use package::Package;

const KERNELS: &str = include_str!("export/kernels.rs");

/// The kernels of two examples, between which a user has to choose.
const EXAMPLE: &str = "fn main() {}\n\n#[ferrogrid::module]\nmod own {\n    use ferrogrid::device::prelude::*;\n\n    \
    #[kernel]\n    pub fn zero(t: Thread<1>, mut y: DisjointSlice<f32>) {\n        \
    if let Some(y) = y.get_mut(t.index()) {\n            *y = 0.0;\n        }\n    }\n}\n";

/// Stands in for ptxas.
const PTXAS: &str = "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\necho machine code > \"$out\"\n";

/// The package that the tests share.
struct Exported(Package);

impl Exported {
    fn new() -> Self {
        let files = [
            ("src/lib.rs", KERNELS),
            ("examples/one.rs", EXAMPLE),
            ("examples/two.rs", EXAMPLE),
            ("tools/ptxas", PTXAS),
        ];
        Exported(Package::new("exported", "my-app", "1.2.0", &files))
    }

    fn export(&self, arguments: &[&str]) -> Output {
        let mut command = user_cargo::command(env!("CARGO_BIN_EXE_cargo-ferrogrid"), &self.0.folder);
        // With the profile `dev`, whose dependencies other tests have built.
        command.args(["export", "--dev"]).args(arguments).env_remove("FERROGRID_ARCH");
        let tool = if arguments.contains(&"--cubin") { "tools/ptxas" } else { "nowhere" };
        command.env("FERROGRID_PTXAS", self.0.folder.join(tool));
        command.output().unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.export(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exports the library, and runs the tests of `export/NAME.py` on it.
    fn check(&self, name: &str) {
        let folder = self.0.folder.join("python");
        self.text(&["--out", folder.to_str().unwrap()]);
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export");
        let mut python = Command::new("python3");
        python.args(["-B", "-m", "unittest", name]).current_dir(&folder).env_remove("CUDA_LAUNCH_BLOCKING");
        let formatted = self.0.folder.join("formatted.json");
        fs::write(&formatted, formatted::cases()).unwrap();
        python.env("FORMATTED", formatted);
        python.env("PYTHONPATH", format!("{}:{}", folder.display(), tests.display()));
        let output = python.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("\nRan ") && !said.contains("\nRan 0 "), "{said}");
    }
}

#[test]
fn functions_pass_checked_arguments_to_the_driver() {
    Exported::new().check("launches");
}

#[test]
fn functions_refuse_what_the_kernel_cannot_take() {
    Exported::new().check("refusals");
}

#[test]
fn no_panic_of_a_kernel_is_lost() {
    Exported::new().check("panics");
}

#[test]
fn an_exported_package_has_its_code_and_the_documentation_of_kernels() {
    let package = Exported::new();
    let report = package.text(&["--cubin"]);
    let folder = user_cargo::target().join("ferrogrid/python/my_app");
    assert!(report.starts_with("exported 15 of 18 kernels for sm_75 to "), "{report}");
    assert!(report.contains("  my_app.kernels.saxpy(a, x, y, cover=..)\n"), "{report}");
    assert!(report.contains("  my_app.kernels.half(x, out)\n"), "{report}");
    let refused = "  my_app.kernels.located: not exported: `place: Point` is not a number\n";
    assert!(report.contains(refused), "{report}");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("my_app/my_app.sm_75.ptx").contains(".entry saxpy_"));
    assert_eq!(read("my_app/my_app.sm_75.cubin"), "machine code\n");
    let text = read("my_app/kernels.py");
    assert!(
        text.contains("    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>)\n"),
        "{text}"
    );
    assert!(text.contains("    \"\"\"y <- a*x + y: with a \\\\ and \\\"\\\"\\\".\n"), "{text}");
    assert!(read("pyproject.toml").contains("name = \"my_app\"\nversion = \"1.2.0\"\n"));
    assert!(folder.join("my_app/py.typed").is_file());
}

#[test]
fn kernels_of_an_example_have_its_name() {
    let package = Exported::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let report = package.text(&["--example", "two", "--out", out]);
    assert!(report.contains("  two.own.zero(y, cover=..)\n"), "{report}");
    // A second export replaces the first, under another name, too.
    package.text(&["--example", "two", "--out", out, "--name", "zeros"]);
    assert!(folder.path().join("zeros/own.py").is_file() && !folder.path().join("two").exists());
}

#[test]
fn wrong_requests_are_refused() {
    let package = Exported::new();
    let failure = |arguments: &[&str]| {
        let output = package.export(arguments);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "").unwrap();
    let message = failure(&["--out", folder.path().to_str().unwrap()]);
    assert!(message.contains("has files of something else; choose an empty folder with --out"), "{message}");
    fs::remove_file(package.0.folder.join("tools/ptxas")).unwrap();
    let message = failure(&["--cubin"]);
    assert!(message.contains("--cubin requires ptxas"), "{message}");
    fs::remove_file(package.0.folder.join("src/lib.rs")).unwrap();
    let message = failure(&[]);
    assert!(
        message.contains("several targets have kernels; choose one of: --example one, --example two"),
        "{message}"
    );
}
