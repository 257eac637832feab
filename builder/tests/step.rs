//! The build step on whole packages, with the device toolchain of this machine: without one these
//! tests fail, and `cargo ferrogrid setup` provides one. They must not need the host half: what
//! programs do with the result is tested elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ferrogrid_build::{Build, CompiledModule, Environment, Error, Output};

/// A package in a temporary folder, outside any workspace.
struct Package {
    dir: tempfile::TempDir,
    environment: Environment,
}

const SAXPY: &str = "\
use std::collections::HashMap; // not on the device

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }
}

fn main() {
    println!(\"{:?}\", HashMap::<u32, u32>::new());
}
";

impl Package {
    /// A package with these files; Cargo.toml gets what every package needs.
    fn new(manifest: &str, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let rooms = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = format!(
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{manifest}\n[workspace]\n\
             [dependencies.ferrogrid-device]\npath = {:?}\n[dependencies.ferrogrid-macros]\npath = {:?}\n",
            rooms.join("device"),
            rooms.join("macros"),
        );
        // The temporary folder's real path, as compilers print it.
        let root = dir.path().canonicalize().unwrap();
        let environment = Environment::new(&root, root.join("target/debug/build/app-0/out"));
        let package = Package { dir, environment };
        package.write("Cargo.toml", &text);
        let lock = rooms.join("Cargo.lock");
        if lock.is_file() {
            fs::copy(lock, package.path("Cargo.lock")).unwrap();
        }
        for (path, text) in files {
            package.write(path, text);
        }
        package
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.environment.manifest_dir.join(relative)
    }

    fn write(&self, relative: &str, text: &str) {
        fs::create_dir_all(self.path(relative).parent().unwrap()).unwrap();
        fs::write(self.path(relative), text).unwrap();
    }

    fn edit(&self, relative: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(relative)).unwrap();
        assert!(text.contains(from), "{from} is not in {relative}");
        self.write(relative, &text.replace(from, to));
    }

    fn build(&self) -> Result<Output, Error> {
        Build::new().try_run(&self.environment)
    }

    fn built(&self) -> Output {
        self.build().unwrap_or_else(|error| panic!("{error}"))
    }

    fn failure(&self) -> String {
        self.build().map(|output| panic!("{output:?}")).unwrap_err().to_string()
    }
}

fn module<'a>(output: &'a Output, name: &str) -> &'a CompiledModule {
    output.modules.iter().find(|module| module.name == name).unwrap()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn kernels_become_ptx_and_a_manifest() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    let output = package.built();
    assert_eq!(output.ptx.len(), 1);
    let ptx = text(&output.ptx[0]);
    let kernels = module(&output, "kernels");
    let [entry] = kernels.entries.as_slice() else { panic!("{:?}", kernels.entries) };
    assert!(entry.starts_with("saxpy_") && entry.len() == "saxpy_".len() + 16, "{entry}");
    assert!(ptx.contains(&format!(".visible .entry {entry}(")), "{ptx}");
    assert!(ptx.contains(".target sm_75"), "{ptx}");

    let manifest = text(&kernels.manifest);
    let image = format!("(\"sm_75\", 6, 3, include_str!({:?}), &[]),", output.ptx[0]);
    assert!(manifest.contains(&image), "{manifest}");
    let parameters = format!("({entry:?}, &[(4, 4), (8, 8), (4, 4), (8, 8), (4, 4)]),");
    assert!(manifest.contains(&parameters), "{manifest}");
    let fingerprint = kernels.manifest.file_stem().unwrap().to_str().unwrap();
    let variable = format!("cargo::rustc-env=FERROGRID_MODULE_{fingerprint}={}", kernels.manifest.display());
    assert!(output.directives.contains(&variable), "{:?}", output.directives);
}

#[test]
fn lines_of_the_ptx_point_into_the_users_file() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    let ptx = text(&package.built().ptx[0]);
    let file = ptx.lines().find(|line| line.contains("\"src/main.rs\"")).unwrap();
    let number = file.split_whitespace().nth(1).unwrap();
    // `*y += a * x[i.get()];` is in line 12, and begins in column 13.
    assert!(ptx.contains(&format!(".loc\t{number} 12 13")), "{ptx}");
    let here = package.dir.path().to_str().unwrap();
    assert!(!ptx.contains(here), "no path of this machine is in the PTX:\n{ptx}");
}

#[test]
fn a_device_error_is_shown_once_with_the_users_file_and_line() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    package.edit("src/main.rs", "a * x[i.get()]", "a * x[i]");
    let error = package.failure();
    assert_eq!(error.matches("--> src/main.rs:12:25").count(), 1, "{error}");
    assert!(error.contains("*y += a * x[i];"), "the line is shown:\n{error}");
    let (_, advice) = error
        .split_once("error: the kernels of bin `app` do not compile for the device (sm_75)\n")
        .unwrap_or_else(|| panic!("{error}"));
    assert!(advice.contains("`x[i.get()]` reads, `y.get_mut(i)` writes"), "{error}");
}

#[test]
fn a_name_that_is_not_on_the_device_is_explained() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    package.edit("src/main.rs", "*y += a", "*y += super::host_helper(a)");
    let error = package.failure();
    assert!(error.contains("host_helper"), "{error}");
    assert!(error.contains("the rest of this crate is not there on the device"), "{error}");
    assert!(error.contains("move into the module"), "{error}");
}

#[test]
fn memory_that_a_kernel_would_allocate_is_explained() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    package.edit("src/main.rs", "*y += a", "*y += Vec::<f32>::new().len() as f32 + a");
    let error = package.failure();
    assert!(error.contains("there is no std on the device, and nothing allocates"), "{error}");
}

#[test]
fn text_that_is_printed_by_std_is_explained_with_what_compiles_on_both_sides() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    package.edit("src/main.rs", "*y += a", "println!(\"{a}\"); *y += a");
    let error = package.failure();
    assert!(error.contains("cannot find macro `println`"), "{error}");
    assert!(error.contains("`use ferrogrid::device::println;` in the module"), "{error}");
    assert!(!error.contains("use ferrogrid::println"), "the host has no such path:\n{error}");
    package.edit(
        "src/main.rs",
        "use ferrogrid::device::prelude::*;",
        "use ferrogrid::device::{prelude::*, println};",
    );
    package.built();
}

#[test]
fn nothing_is_compiled_again_unless_a_kernel_changes() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    let first = package.built();
    let ptx = &first.ptx[0];
    let assembly = ptx.with_file_name("build/bin-app.sm_75/app.s");
    let (made, content) = (modified(&assembly), text(ptx));

    package.edit("src/main.rs", "println!(\"{:?}\"", "println!(\"edited {:?}\"");
    let again = package.built();
    assert_eq!((modified(&assembly), &again.modules), (made, &first.modules));

    package.edit("src/main.rs", "a * x", "a - x");
    let edited = package.built();
    assert_ne!(edited.modules, first.modules);
    assert_ne!(text(&edited.ptx[0]), content);

    package.edit("src/main.rs", "a - x", "a * x");
    assert_eq!(package.built().modules, first.modules);
    assert_eq!(text(ptx), content);
}

#[test]
fn modules_in_other_files_and_crates_without_std_can_be_used() {
    let files = [
        ("src/main.rs", "mod gpu;\nfn main() {}\n"),
        (
            "src/gpu.rs",
            "use std::fs;\npub mod shared;\n\n    #[ferrogrid::module]\n    pub mod kernels {
        use ferrogrid::device::prelude::*;
        use super::shared::math::twice;
        #[kernel]
        pub fn double(t: Thread<1>, mut y: DisjointSlice<f32>) {
            if let Some(y) = y.get_mut(t.index()) { *y = small::add_one(twice(*y)); }
        }
    }\n",
        ),
        (
            "src/gpu/shared.rs",
            "#[ferrogrid::module]\npub mod math { pub fn twice(x: f32) -> f32 { 2.0 * x } }\n",
        ),
        (
            "small-crate/Cargo.toml",
            "[package]\nname = \"small-crate\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[features]\none = []\n",
        ),
        (
            "small-crate/src/lib.rs",
            "#![no_std]\n#[cfg(feature = \"one\")]\npub fn add_one(x: f32) -> f32 { x + 1.0 }\n",
        ),
    ];
    let dependency =
        "[dependencies.small]\npackage = \"small-crate\"\npath = \"small-crate\"\nfeatures = [\"one\"]";
    let package = Package::new(dependency, &files);
    let output = package.built();
    assert_eq!(module(&output, "math").entries, Vec::<String>::new());
    assert_eq!(module(&output, "kernels").file, package.path("src/gpu.rs"));
    for watched in [
        "src/main.rs",
        "src/gpu.rs",
        "src/gpu/shared.rs",
        "small-crate/src/lib.rs",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        let directive = format!("cargo::rerun-if-changed={}", package.path(watched).display());
        assert!(output.directives.contains(&directive), "{directive} is not in {:#?}", output.directives);
    }

    // `1.0 + 1.0 * ...`: a change in the dependency reaches the PTX.
    let before = text(&output.ptx[0]);
    package.edit("small-crate/src/lib.rs", "x + 1.0", "x + 1.5");
    assert_ne!(text(&package.built().ptx[0]), before);
}

#[test]
fn a_crate_that_needs_std_is_refused_by_name() {
    let files = [
        ("src/main.rs", SAXPY),
        ("big/Cargo.toml", "[package]\nname = \"big\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("big/src/lib.rs", "pub fn f(x: f32) -> f32 { std::hint::black_box(x) }\n"),
    ];
    let package = Package::new("[dependencies.big]\npath = \"big\"", &files);
    package.built();
    package.edit("src/main.rs", "a * x", "big::f(a) * x");
    let error = package.failure();
    assert!(error.contains("can't find crate for `std`"), "{error}");
    assert!(error.contains("do not compile for the device (ferrogrid, big)"), "{error}");
}

#[test]
fn every_kind_of_target_can_hold_kernels_and_use_the_library() {
    let library = "#[ferrogrid::module]\npub mod math {
        pub fn thrice(x: f32) -> f32 { 3.0 * x }
        use ferrogrid::device::prelude::*;
        #[kernel]
        pub fn of_library(t: Thread<1>, mut y: DisjointSlice<f32>) {
            if let Some(y) = y.get_mut(t.index()) { *y = thrice(*y); }
        }
    }\n#[cfg(test)]\nmod tests {\n    KERNELS\n}\n";
    let kernels = |name: &str, call: &str| {
        format!(
            "#[ferrogrid::module]\nmod {name} {{
                use ferrogrid::device::prelude::*;
                #[kernel]
                pub fn k(t: Thread<1>, mut y: DisjointSlice<f32>) {{
                    if let Some(y) = y.get_mut(t.index()) {{ *y = {call}(*y); }}
                }}
            }}\n"
        )
    };
    let in_library_tests = kernels("in_library_tests", "super::super::math::thrice");
    let outside = |name: &str| format!("{}fn main() {{}}\n", kernels(name, "app::math::thrice"));
    let package = Package::new(
        "",
        &[
            ("src/lib.rs", &library.replace("KERNELS", &in_library_tests)),
            ("src/main.rs", &outside("in_binary")),
            ("examples/show-it.rs", &outside("in_example")),
            ("tests/all.rs", &outside("in_test")),
            ("benches/speed.rs", &outside("in_bench")),
        ],
    );
    let output = package.built();
    let mut made: Vec<String> =
        output.modules.iter().map(|module| format!("{} in {}", module.name, module.target)).collect();
    made.sort();
    assert_eq!(
        made,
        [
            "in_bench in bench `speed`",
            "in_binary in bin `app`",
            "in_example in example `show-it`",
            "in_library_tests in lib `app`",
            "in_test in test `all`",
            "math in lib `app`",
        ]
    );
    let names: Vec<_> = output.ptx.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    for name in ["lib-app", "lib-app-test", "bin-app", "example-show-it", "test-all", "bench-speed"] {
        assert!(names.contains(&format!("{name}.sm_75.ptx").as_str()), "{name} is not in {names:?}");
    }
    for ptx in output.ptx.iter().filter(|path| !path.to_str().unwrap().contains("lib-app")) {
        assert!(!text(ptx).contains("of_library_"), "entry points of the library are in {}", ptx.display());
    }
}

#[test]
fn several_architectures_are_compiled_and_agree() {
    let mut package = Package::new("", &[("src/main.rs", SAXPY)]);
    package.environment.arch = Some("sm_75,sm_90".to_owned());
    let output = package.built();
    let manifest = text(&module(&output, "kernels").manifest);
    assert!(manifest.find("(\"sm_75\", 6, 3,") < manifest.find("(\"sm_90\", "), "{manifest}");
    assert_eq!(output.ptx.len(), 2);
    assert!(text(&output.ptx[1]).contains(".target sm_90"));
    package.environment.arch = None;
    package.built();
    assert!(output.ptx[0].is_file() && !output.ptx[1].exists(), "what is no longer built is removed");

    package.environment.arch = Some("sm_75,volta".to_owned());
    assert!(package.failure().contains("`volta` is not a device architecture"));
}

#[test]
fn two_modules_with_the_same_content_are_refused() {
    let kernels = "#[ferrogrid::module] mod k { fn f() {} }";
    let text = format!("mod a {{ {kernels} }}\nmod b {{ {kernels} }}\nfn main() {{}}\n");
    let error = Package::new("", &[("src/main.rs", &text)]).failure();
    assert!(error.contains("main.rs:1 (mod k)") && error.contains("main.rs:2 (mod k)"), "{error}");
}

#[test]
fn a_package_without_kernels_builds_nothing() {
    let output = Package::new("", &[("src/main.rs", "mod x {}\nfn main() {}\n")]).built();
    assert!(output.ptx.is_empty() && output.modules.is_empty());
    assert!(output.directives.iter().any(|directive| directive.ends_with("src/main.rs")));
}

#[test]
fn a_package_that_does_not_depend_on_ferrogrid_is_told_to() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    package.write(
        "Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
    );
    assert!(package.failure().contains("package `app` has kernels but does not depend on `ferrogrid`"));
}

#[test]
fn builds_at_the_same_time_do_not_disturb_each_other() {
    let packages: Vec<Package> = (0..4).map(|_| Package::new("", &[("src/main.rs", SAXPY)])).collect();
    let texts: Vec<String> = std::thread::scope(|scope| {
        let builds: Vec<_> =
            packages.iter().map(|package| scope.spawn(|| text(&package.built().ptx[0]))).collect();
        builds.into_iter().map(|build| build.join().unwrap()).collect()
    });
    assert!(texts.iter().all(|text| *text == texts[0]));
}
