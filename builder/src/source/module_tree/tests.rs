//! Walks over module trees written to a temporary folder.

use std::fs;

use ferrogrid_syntax::{Arithmetic, LaunchBounds};

use super::*;

/// A temporary folder with source files.
struct Crate {
    dir: tempfile::TempDir,
}

impl Crate {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Crate { dir }
    }

    fn walk(&self, root: &str) -> ModuleTree {
        let cfgs = Cfgs::from_rustc("target_arch=\"nvptx64\"\nfeature=\"gpu\"");
        walk(&self.dir.path().join(root), &cfgs, &mut Sources::default()).unwrap()
    }

    /// `file: module` for each module found from `root`.
    fn modules(&self, root: &str) -> Vec<String> {
        let found = self.walk(root).modules;
        let relative = |path: &Path| path.strip_prefix(self.dir.path()).unwrap().display().to_string();
        found.iter().map(|module| format!("{}: {}", relative(&module.file), module.name)).collect()
    }
}

fn kernels(name: &str) -> String {
    format!("#[ferrogrid::module] mod {name} {{ #[kernel] fn k(t: Thread<1>, x: u32) {{}} }}\n")
}

#[test]
fn files_of_modules_are_found_by_the_rules_of_the_language() {
    let (a, b, c, d, e, f) =
        (kernels("a"), kernels("b"), kernels("c"), kernels("d"), kernels("e"), kernels("f"));
    let files = Crate::new(&[
        (
            "src/lib.rs",
            "mod one; pub(crate) mod two; mod r#fn; mod inline { mod three; mod deep { mod four; } }",
        ),
        ("src/one.rs", &format!("mod below; {a}")),
        ("src/one/below.rs", &b),
        ("src/two/mod.rs", "mod beside;"),
        ("src/two/beside.rs", &c),
        ("src/fn.rs", &d),
        ("src/inline/three.rs", &e),
        ("src/inline/deep/four.rs", &f),
    ]);
    assert_eq!(
        files.modules("src/lib.rs"),
        [
            "src/one/below.rs: b",
            "src/one.rs: a",
            "src/two/beside.rs: c",
            "src/fn.rs: d",
            "src/inline/three.rs: e",
            "src/inline/deep/four.rs: f",
        ]
    );
}

#[test]
fn a_root_file_of_any_name_has_its_modules_beside_it() {
    let files = Crate::new(&[("examples/show.rs", "mod parts;"), ("examples/parts.rs", &kernels("k"))]);
    assert_eq!(files.modules("examples/show.rs"), ["examples/parts.rs: k"]);
}

#[test]
fn path_attributes_select_other_files() {
    let files = Crate::new(&[
        (
            "src/lib.rs",
            "#[path = \"../shared/a.rs\"] mod a; mod b;
             #[cfg_attr(target_arch = \"nvptx64\", path = \"c_device.rs\")] mod c;
             mod inline { #[path = \"d.rs\"] mod x; }
             #[path = \"elsewhere\"] mod folder { mod e; }",
        ),
        ("shared/a.rs", &format!("mod next; {}", kernels("a"))),
        ("shared/next.rs", &kernels("next")),
        ("src/b.rs", "#[path = \"of_b.rs\"] mod x; mod inline { #[path = \"y.rs\"] mod z; }"),
        ("src/of_b.rs", &kernels("of_b")),
        ("src/b/inline/y.rs", &kernels("y")),
        ("src/c_device.rs", &kernels("c")),
        ("src/c.rs", &kernels("not_here")),
        ("src/inline/d.rs", &kernels("d")),
        ("src/elsewhere/e.rs", &kernels("e")),
    ]);
    assert_eq!(
        files.modules("src/lib.rs"),
        [
            "shared/next.rs: next",
            "shared/a.rs: a",
            "src/of_b.rs: of_b",
            "src/b/inline/y.rs: y",
            "src/c_device.rs: c",
            "src/inline/d.rs: d",
            "src/elsewhere/e.rs: e",
        ]
    );
}

#[test]
fn host_only_modules_are_not_entered() {
    let files = Crate::new(&[
        (
            "src/lib.rs",
            &format!(
                "#[cfg(unix)] mod host; #[cfg(feature = \"gpu\")] mod gpu; #[cfg(test)] {} #[cfg(any(test, not(unix)))] {}",
                kernels("in_test"),
                kernels("on_device"),
            ),
        ),
        ("src/host.rs", &kernels("host")),
        ("src/gpu.rs", &kernels("gpu")),
    ]);
    assert_eq!(files.modules("src/lib.rs"), ["src/gpu.rs: gpu", "src/lib.rs: on_device"]);
}

#[test]
fn host_only_modules_and_other_attributes_are_not_taken() {
    let text = "#[ferrogrid::module(host_only)] mod a { #[kernel] fn k(t: Thread<1>) {} }
        #[modules] mod b {} #[module] mod c { fn helper() {} } mod d { #[fg::module] pub mod e {} }";
    let files = Crate::new(&[("src/lib.rs", text)]);
    assert_eq!(files.modules("src/lib.rs"), ["src/lib.rs: c", "src/lib.rs: e"]);
}

#[test]
fn instances_are_expected_only_where_their_cfgs_hold() {
    let text = "#[ferrogrid::module] mod m {
        #[kernel(T = [f32, #[cfg(feature = \"gpu\")] u8, #[cfg(feature = \"other\")] u16])]
        fn k<T: DeviceCopy>(t: Thread<1>, x: &[T]) {}
    }";
    let tree = Crate::new(&[("src/lib.rs", text)]).walk("src/lib.rs");
    let arguments: Vec<_> = tree.modules[0].kernels.iter().map(|kernel| kernel.arguments.concat()).collect();
    assert_eq!(arguments, ["f32", "u8"]);
}

#[test]
fn kernels_are_expected_only_where_their_cfgs_hold() {
    let text = "#[ferrogrid::module] mod m {
        #[kernel] fn always(t: Thread<1>, a: f32, x: &[f32], y: DisjointSlice<f32, 2>) {}
        #[cfg(feature = \"gpu\")] #[kernel] fn gpu(t: Thread<2>) {}
        #[cfg(feature = \"other\")] #[kernel] fn other(t: Thread<1>) {}
    }";
    let tree = Crate::new(&[("src/lib.rs", text)]).walk("src/lib.rs");
    let module = &tree.modules[0];
    let entry = |name: &str| format!("{name}_{}", module.fingerprint.short());
    assert_eq!(
        module.kernels,
        [
            FoundKernel {
                name: "always".to_owned(),
                arguments: Vec::new(),
                lines: (2, 2),
                entry: entry("always"),
                parameters: (5, 6),
                rank: 1,
                bounds: LaunchBounds::default(),
                arithmetic: Arithmetic::default()
            },
            FoundKernel {
                name: "gpu".to_owned(),
                arguments: Vec::new(),
                lines: (3, 3),
                entry: entry("gpu"),
                parameters: (0, 0),
                rank: 2,
                bounds: LaunchBounds::default(),
                arithmetic: Arithmetic::default()
            },
        ]
    );
    assert_eq!(module.line, 1);
}

#[test]
fn errors_that_the_host_compiler_reports_are_left_to_it() {
    let text = "mod missing; mod broken; #[ferrogrid::module] mod bad { #[kernel] fn k() {} }";
    let files = Crate::new(&[("src/lib.rs", text), ("src/broken.rs", "mod x {\n  fn 1() {}\n}")]);
    let tree = files.walk("src/lib.rs");
    assert!(tree.modules.is_empty());
    assert!(tree.root.is_none());
    assert_eq!(tree.unreadable.len(), 1);
    assert!(tree.unreadable[0].contains("broken.rs:2:6"), "{}", tree.unreadable[0]);
    assert!(tree.visited.contains(&files.dir.path().join("src/missing.rs")));
}

#[test]
fn a_module_that_contains_itself_ends() {
    let files = Crate::new(&[("src/lib.rs", &format!("#[path = \"lib.rs\"] mod again; {}", kernels("k")))]);
    assert_eq!(files.modules("src/lib.rs"), ["src/lib.rs: k"]);
}

#[test]
fn features_of_the_crate_are_kept() {
    let text = format!("#![feature(f16, f128)]\n#![cfg_attr(test, feature(no))]\n{}", kernels("k"));
    let tree = Crate::new(&[("src/main.rs", &text)]).walk("src/main.rs");
    assert_eq!(tree.features.iter().collect::<Vec<_>>(), ["f128", "f16"]);
}

#[test]
fn only_annotated_modules_and_the_way_to_them_are_kept() {
    let text = "\u{feff}#!/usr/bin/env run\nuse std::fs; // ä\nmod a {\n    use super::*;\n    #[allow(x)]\n    #[module]\n    /// Doc.\n    pub mod k { fn f() {} }\n}\nfn main() {}\n";
    let tree = Crate::new(&[("src/main.rs", text)]).walk("src/main.rs");
    let file = &tree.files[tree.root.unwrap()];
    let kept: Vec<&str> = file.parts.iter().map(|part| &file.source.text[part.range.clone()]).collect();
    assert_eq!(kept, ["mod a {", "#[module]", "pub mod k { fn f() {} }", "}"]);
    assert_eq!(file.parts[1].content, Content::Attribute(0));
    assert_eq!(tree.modules[0].line, 8);
}
