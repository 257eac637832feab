//! Device code shared between crates: kernels call functions of another package's annotated modules, and use
//! its types.

use std::path::Path;

use crate::package::Package;

/// The Cargo.toml of a library with device code.
fn manifest(name: &str, rest: &str) -> String {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    format!(
        "[package]\nname = \"{name}\"\nversion = \"1.2.3\"\nedition = \"2024\"\n[dependencies]\n\
         ferrogrid-device = {{ path = {:?} }}\nferrogrid-macros = {{ path = {:?} }}\n{rest}\n",
        repository.join("device"),
        repository.join("macros"),
    )
}

/// `fill` writes `value` into each element.
fn kernel(uses: &str, value: &str) -> String {
    format!(
        "#[ferrogrid::module]\npub mod kernels {{
    use ferrogrid::device::prelude::*;
    {uses}
    #[kernel]
    pub fn fill(t: Thread<1>, mut y: DisjointSlice<u32>) {{
        if let Some(y) = y.get_mut(t.index()) {{ *y = {value}; }}
    }}
}}\n"
    )
}

/// A module `maths` in which `square` gives `body` of `x`.
fn maths(uses: &str, body: &str) -> String {
    format!("#[ferrogrid::module]\npub mod maths {{ {uses} pub fn square(x: u32) -> u32 {{ {body} }} }}\n")
}

fn stores(ptx: &str, value: u32) -> bool {
    ptx.contains("st.global.b32 \t[%rd") && ptx.contains(&format!(", {value};"))
}

#[test]
fn kernels_call_functions_of_another_package_and_use_its_types() {
    let library = "pub struct Host(std::fs::File);\npub mod deep;\n".to_owned() + &kernel("", "7");
    let deep = maths("use super::super::deep::types::Scale;", "Scale(x).apply(x) + other::table()[1]")
        + "#[ferrogrid::module]\npub mod types {
            use ferrogrid::device::prelude::*;
            #[derive(Clone, Copy, DeviceCopy)] #[repr(C)] pub struct Scale(pub u32);
            impl Scale { pub fn apply(self, x: u32) -> u32 { self.0 * x } }
        }\n";
    let package = Package::new(
        "[dependencies]\nshapes = { package = \"a\", path = \"a\" }",
        &[
            ("a/Cargo.toml", &manifest("a", "other = { path = \"../c\", package = \"c\" }")),
            ("a/src/lib.rs", &library),
            ("a/src/deep.rs", &deep),
            ("c/Cargo.toml", "[package]\nname = \"c\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
            ("c/src/lib.rs", "#![no_std]\npub fn table() -> [u32; 2] { [1, 1000] }\n"),
            (
                "src/main.rs",
                &(kernel(
                    "use shapes::deep::{maths, types::Scale};",
                    "maths::square(20) + Scale(3).apply(5)",
                ) + "fn main() {}\n"),
            ),
        ],
    );
    let ptx = package.ptx();
    assert!(stores(&ptx, 1415), "{ptx}");
    assert_eq!(ptx.matches(".entry").count(), 1, "the library's kernels are its own");
    for file in ["a/Cargo.toml", "a/src/lib.rs", "a/src/deep.rs", "c/src/lib.rs"] {
        let directive = format!("cargo::rerun-if-changed={}", package.path(file).display());
        assert!(package.built().directives.contains(&directive), "{directive}");
    }
    package.edit("a/src/deep.rs", "self.0 * x", "self.0 + x");
    assert!(stores(&package.ptx(), 1048));
}

#[test]
fn libraries_are_compiled_with_their_own_features_settings_and_variables() {
    let square = maths(
        "",
        "let version = if let Some(v) = option_env!(\"CARGO_PKG_VERSION\") { v.as_bytes()[0] - b'0' } else { 0 };
         let key = env!(\"KEY\").len() as u32;
         x + key + u32::from(version) + 100 * cfg!(feature = \"wide\") as u32 + 1000 * cfg!(fast) as u32
           + 10000 * cfg!(feature = \"other\") as u32",
    );
    let package = Package::new(
        "[features]\nother = []\n[dependencies]\na = { path = \"a\", features = [\"wide\"] }",
        &[
            (
                "a/Cargo.toml",
                &manifest(
                    "a",
                    "[features]\nwide = []\nother = []\n[package.metadata.ferrogrid]\ncfg = [\"fast\"]\n\
                     env = { KEY = \"12345678\" }",
                ),
            ),
            ("a/src/lib.rs", &square),
            ("src/main.rs", &(kernel("", "a::maths::square(0)") + "fn main() {}\n")),
        ],
    );
    let ptx = package.ptx();
    assert!(stores(&ptx, 1109), "{ptx}");
}

#[test]
fn files_that_a_library_includes_are_watched() {
    let data = "const DATA: &[u8] = include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/data.bin\"));";
    let package = Package::new(
        "[dependencies]\na = { path = \"a\" }",
        &[
            ("a/Cargo.toml", &manifest("a", "")),
            ("a/data.bin", "\u{4}"),
            ("a/src/lib.rs", &maths(data, "x * 100 + u32::from(DATA[0])")),
            ("src/main.rs", &(kernel("", "a::maths::square(3)") + "fn main() {}\n")),
        ],
    );
    assert!(stores(&package.ptx(), 304));
    let watched = format!("cargo::rerun-if-changed={}", package.path("a/data.bin").display());
    assert!(package.built().directives.contains(&watched));
    package.write("a/data.bin", "\u{5}");
    assert!(stores(&package.ptx(), 305));
}

#[test]
fn a_shared_dependency_is_one_crate() {
    let point = "#[ferrogrid::module]\npub mod types { pub struct Point(pub u32); pub fn new() -> Point { Point(40) } }\n";
    let first = "#[ferrogrid::module]\npub mod maths { pub fn x(p: base::types::Point) -> u32 { p.0 } }\n";
    let both = "base = { path = \"../base\" }";
    let package = Package::new(
        "[dependencies]\nfirst = { path = \"first\" }\nbase = { path = \"base\" }",
        &[
            ("base/Cargo.toml", &manifest("base", "")),
            ("base/src/lib.rs", point),
            ("first/Cargo.toml", &manifest("first", both)),
            ("first/src/lib.rs", first),
            (
                "src/lib.rs",
                "#[ferrogrid::module]\npub mod maths { pub fn two(p: base::types::Point) -> u32 { first::maths::x(p) + 2 } }\n",
            ),
            ("src/main.rs", &(kernel("", "app::maths::two(base::types::new())") + "fn main() {}\n")),
        ],
    );
    let ptx = package.built().ptx;
    let program = ptx.iter().find(|file| file.ends_with("bin-app.sm_75.ptx")).unwrap();
    let text = std::fs::read_to_string(program).unwrap();
    assert!(stores(&text, 42), "{text}");
}

#[test]
fn an_error_in_a_library_names_its_file() {
    let package = Package::new(
        "[dependencies]\na = { path = \"a\" }",
        &[
            ("a/Cargo.toml", &manifest("a", "")),
            ("a/src/lib.rs", &maths("", "std::fs::read(\"x\").unwrap().len() as u32 * x")),
            ("src/main.rs", &(kernel("", "a::maths::square(3)") + "fn main() {}\n")),
        ],
    );
    let error = package.failure();
    assert!(error.contains("a/src/lib.rs:2:") && error.contains("lib `a`"), "{error}");

    // Invalid settings of an unused library are no error.
    package.write("a/Cargo.toml", &manifest("a", "[package.metadata.ferrogrid]\nno-such-setting = 1"));
    let error = package.failure();
    assert!(error.contains("no-such-setting") && error.contains("a/Cargo.toml"), "{error}");
    package.edit("src/main.rs", "a::maths::square(3)", "9");
    assert!(stores(&package.ptx(), 9));
}
