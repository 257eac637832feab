//! The build step on whole packages, with the device toolchain of this machine. Without one these tests fail,
//! and `cargo ferrogrid setup` provides one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ferrogrid_build::{Build, CompiledModule, Environment, Error, Output};
use ferrogrid_syntax::compiled::CompiledTarget;

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
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = format!(
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{manifest}\n[workspace]\n\
             [dependencies.ferrogrid-device]\npath = {:?}\n[dependencies.ferrogrid-macros]\npath = {:?}\n",
            repository.join("device"),
            repository.join("macros"),
        );
        // The temporary folder's real path, as compilers print it.
        let root = dir.path().canonicalize().unwrap();
        let environment = Environment::new(&root, root.join("target/debug/build/app-0/out"));
        let package = Package { dir, environment };
        package.write("Cargo.toml", &text);
        let lock = repository.join("Cargo.lock");
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

    let target = CompiledTarget::from_text(&text(&kernels.manifest)).unwrap();
    let [image] = target.images.as_slice() else { panic!("{target:?}") };
    assert_eq!((image.codes[0].arch.as_str(), image.codes[0].version), ("sm_75", (6, 3)));
    assert_eq!(image.codes[0].ptx, output.ptx[0]);
    let [module] = target.modules.as_slice() else { panic!("{target:?}") };
    assert!(module.holds_images && module.holder.starts_with("crate::__ferrogrid_code_"), "{module:?}");
    assert_eq!((&module.entries[0].name, module.entries.len()), (entry, 1));
    assert_eq!(module.entries[0].params, [(4, 4), (8, 8), (4, 4), (8, 8), (4, 4)]);
    // No shared memory, the layout of `f32`; size, alignment and layout of the elements of both slices.
    let layout = &module.entries[0].layout;
    assert_eq!((layout[0], &layout[2..4], &layout[5..7]), (0, [4, 4].as_slice(), [4, 4].as_slice()));
    assert_eq!([layout[1], layout[4], layout[7]], [layout[1]; 3]);
    let folder = kernels.manifest.parent().unwrap();
    let variable = format!("cargo::rustc-env=FERROGRID_TARGETS={}", folder.display());
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
    assert!(error.contains("not the rest of this crate"), "{error}");
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
fn printing_by_std_gets_advice_that_works_on_both_sides() {
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

    // Back to a state that was compiled before.
    let made = modified(&assembly);
    package.edit("src/main.rs", "a - x", "a * x");
    assert_eq!(package.built().modules, first.modules);
    assert_eq!((text(ptx), modified(&assembly)), (content, made));
}

/// The code of module `name` in the target whose file in the folder of targets is `file`, and its layouts.
fn code_of(output: &Output, file: &str, name: &str) -> (String, Vec<u64>) {
    let of_module = module(output, name);
    let file = of_module.manifest.with_file_name(file);
    let target = CompiledTarget::from_text(&text(&file)).unwrap_or_else(|| panic!("{}", file.display()));
    let entry = &of_module.entries[0];
    let compiled = target.modules.iter().find(|it| it.entries.iter().any(|it| it.name == *entry)).unwrap();
    let layout = compiled.entries.iter().find(|it| it.name == *entry).unwrap().layout.clone();
    (text(&target.images[compiled.image].codes[0].ptx), layout)
}

#[test]
fn equal_modules_of_two_binaries_use_their_own_siblings() {
    let main = |operator: &str| {
        format!(
            "#[ferrogrid::module]\nmod math {{ pub fn combine(a: u32, b: u32) -> u32 {{ a {operator} b }} }}
            #[ferrogrid::module]\nmod kernels {{
                use ferrogrid::device::prelude::*;
                #[kernel]
                pub fn combine(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {{
                    let i = t.index();
                    if let Some(y) = y.get_mut(i) {{ *y = super::math::combine(*y, x[i.get()]); }}
                }}
            }}\nfn main() {{}}\n"
        )
    };
    let package = Package::new("", &[("src/bin/sum.rs", &main("+")), ("src/bin/product.rs", &main("*"))]);
    let output = package.built();
    let (sum, product) =
        (code_of(&output, "bin-sum.txt", "kernels").0, code_of(&output, "bin-product.txt", "kernels").0);
    assert!(sum.contains("add.s32") && !sum.contains("mul.lo"), "{sum}");
    assert!(product.contains("mul.lo.s32"), "{product}");
}

#[test]
fn a_library_and_its_tests_have_separate_code_if_it_differs() {
    let library = "#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;
    pub const N: usize = if cfg!(test) { 16 } else { 4096 };
    #[kernel]
    pub fn k(t: Thread<1>, mut y: DisjointSlice<[u32; N]>, mut s: Shared<[u32; N]>) {
        s.fill_with(&t, |i| i as u32);
        let s = t.publish(s);
        if let Some(y) = y.get_mut(t.index()) { y[N - 1] = s[N - 1]; }
    }
}
";
    let package = Package::new("", &[("src/lib.rs", library)]);
    let output = package.built();
    // The bytes of shared memory, and the size of an element of `y`.
    let numbers = |file: &str| {
        let layout = code_of(&output, file, "kernels").1;
        (layout[0], layout[1])
    };
    assert_eq!(numbers("lib-app.txt"), (16384, 16384));
    assert_eq!(numbers("lib-app.cfg-test.txt"), (64, 64));

    let same = Package::new("", &[("src/lib.rs", &library.replace("cfg!(test)", "false"))]);
    let output = same.built();
    assert_eq!(output.ptx.len(), 1, "code that does not depend on it is compiled once");
    assert!(!module(&output, "kernels").manifest.with_file_name("lib-app.cfg-test.txt").exists());
}

#[test]
fn a_binary_and_an_example_of_one_name_with_the_same_kernels_are_refused() {
    let files = [("src/main.rs", SAXPY), ("examples/app.rs", SAXPY)];
    let error = Package::new("", &files).failure();
    assert!(
        error.contains("bin `app` and example `app` both have the kernels of module `kernels`"),
        "{error}"
    );
    let other = SAXPY.replace("a * x", "a - x");
    Package::new("", &[("src/main.rs", SAXPY), ("examples/app.rs", &other)]).built();
}

#[test]
fn one_target_is_compiled_alone_unless_there_is_a_library() {
    let other = SAXPY.replace("a * x", "a - x");
    let mut files = vec![("examples/one.rs", SAXPY), ("examples/two.rs", &other)];
    let names = |output: &Output| -> Vec<String> {
        output.ptx.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    let mut package = Package::new("", &files);
    package.environment.only = Some("example-two".to_owned());
    assert_eq!(names(&package.built()), ["example-two.sm_75.ptx"]);
    package.environment.only = None;
    assert_eq!(names(&package.built()), ["example-one.sm_75.ptx", "example-two.sm_75.ptx"]);
    package.environment.only = Some("example-three".to_owned());
    let warning = "cargo::warning=its kernels are not built: FERROGRID_ONLY is `example-three`, and `app` has no such target";
    assert!(package.built().directives.iter().any(|it| it == warning));
    files.push(("src/lib.rs", ""));
    let mut package = Package::new("", &files);
    package.environment.only = Some("example-two".to_owned());
    assert_eq!(names(&package.built()).len(), 2);
}

#[test]
fn a_file_that_a_kernel_includes_is_part_of_its_code() {
    let package = Package::new("", &[("src/main.rs", SAXPY)]);
    let data = package.path("data.bin");
    fs::write(&data, [3]).unwrap();
    package.edit("src/main.rs", "a * x", &format!("a * f32::from(include_bytes!({data:?})[0]) * x"));
    let first = package.built();
    let directive = format!("cargo::rerun-if-changed={}", data.display());
    assert!(first.directives.contains(&directive), "{:?}", first.directives);
    let before = text(&first.ptx[0]);
    fs::write(&data, [5]).unwrap();
    assert_ne!(text(&package.built().ptx[0]), before);
    fs::write(&data, [3]).unwrap();
    assert_eq!(text(&package.built().ptx[0]), before);
}

#[test]
fn debug_assertions_hold_on_the_device_where_they_hold_on_the_host() {
    let kernel = SAXPY.replace("*y += a", "if cfg!(debug_assertions) { *y *= 77.0 } *y += a");
    let package = Package::new("", &[("src/main.rs", &kernel)]);
    let built = |build: Build| text(&build.try_run(&package.environment).unwrap().ptx[0]);
    let has = |ptx: &str| ptx.contains("0f429A0000");
    assert!(has(&built(Build::new().debug_assertions(true))));
    assert!(!has(&built(Build::new().debug_assertions(false))));
    assert_eq!(has(&built(Build::new())), cfg!(debug_assertions));
}

#[test]
fn an_unsafe_operation_needs_an_unsafe_block_also_beside_a_barrier() {
    let kernel = SAXPY.replace("let i = t.index();", "t.sync_threads(); let i = t.index(); BODY");
    let package = Package::new("", &[("src/main.rs", &kernel.replace("BODY", "*(8 as *mut u32) = 7;"))]);
    let error = package.failure();
    assert!(error.contains("dereference of raw pointer is unsafe"), "{error}");
    package.write("src/main.rs", &kernel.replace("BODY", ""));
    package.built();
}

/// Twenty modules of ten kernels, of which one has `edited` in its body.
fn many_kernels(edited: &str, extra: &str) -> String {
    let kernel = |module: usize, number: usize| {
        let edit = if (module, number) == (7, 3) { edited } else { "" };
        format!(
            "#[kernel] pub fn k{number}(t: Thread<1>, mut y: DisjointSlice<f32>) {{
                if let Some(y) = y.get_mut(t.index()) {{ *y = *y * {module}.0 + {number}.0 {edit}; }} }}\n"
        )
    };
    let module = |number: usize| {
        let kernels: String = (0..10).map(|kernel_number| kernel(number, kernel_number)).collect();
        format!(
            "#[ferrogrid::module]\nmod m{number} {{ use ferrogrid::device::prelude::*;\n{extra}{kernels}}}\n"
        )
    };
    (0..20).map(module).collect::<String>() + "fn main() {}\n"
}

#[test]
fn many_kernels_are_compiled_in_parts_and_an_edit_compiles_one() {
    let package = Package::new("", &[("src/main.rs", &many_kernels("", ""))]);
    let first = package.built();
    assert!(first.ptx.len() > 3 && first.modules.len() == 20, "{:?}", first.ptx);
    let times = |output: &Output| output.ptx.iter().map(|ptx| modified(ptx)).collect::<Vec<_>>();
    let before = times(&first);
    package.write("src/main.rs", &many_kernels("* 2.0", ""));
    let changed = times(&package.built()).iter().zip(&before).filter(|(new, old)| new != old).count();
    assert_eq!(changed, 1);
}

#[test]
fn kernels_that_could_share_a_variable_are_compiled_together() {
    let shared = "use core::sync::atomic::AtomicU32; pub static COUNT: AtomicU32 = AtomicU32::new(0);\n";
    let text = many_kernels("", "").replacen("mod m0 {", &format!("mod m0 {{ {shared}"), 1);
    assert_eq!(Package::new("", &[("src/main.rs", &text)]).built().ptx.len(), 1);
}

#[test]
fn an_error_in_one_targets_kernels_leaves_the_others_as_they_are() {
    let package = Package::new("", &[("src/lib.rs", SAXPY), ("examples/broken.rs", SAXPY)]);
    package.edit("examples/broken.rs", "a * x[i.get()]", "a * x[i]");
    assert!(package.failure().contains("the kernels of example `broken` do not compile"));
    let targets = package.environment.out_dir.join("ferrogrid/targets");
    let target = |file: &str| CompiledTarget::from_text(&text(&targets.join(file))).unwrap();
    let [broken] = target("bin-broken.txt").modules.try_into().unwrap();
    let [error] = broken.diagnostics.as_slice() else { panic!("{broken:?}") };
    assert_eq!((error.start, error.end), ((12, 25), (12, 26)), "{error:?}");
    assert!(error.message.contains("`x[i.get()]` reads"), "{error:?}");
    let library = target("lib-app.txt");
    assert!(library.modules[0].diagnostics.is_empty() && !library.images.is_empty(), "{library:?}");
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
            // That of `cargo test`, which has a module more.
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
    let target = CompiledTarget::from_text(&text(&module(&output, "kernels").manifest)).unwrap();
    let archs: Vec<&str> = target.images[0].codes.iter().map(|code| code.arch.as_str()).collect();
    assert_eq!(archs, ["sm_75", "sm_90"]);
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
fn a_package_without_the_dependency_is_advised_to_add_it() {
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
