//! Modules that choose their architectures: their code, by module and architecture, in all kinds of builds.

use std::collections::BTreeMap;
use std::fs;

use ferrogrid_build::inspect::Record;
use ferrogrid_build::{Arch, Output};
use ferrogrid_syntax::compiled::CompiledTarget;

use crate::package::Package;

const TWO: &str = "[package.metadata.ferrogrid]\narch = [\"sm_75\", \"sm_90\"]\n";

/// A module with the kernel `name`, which stores `value`.
fn module(options: &str, name: &str, items: &str, value: &str) -> String {
    format!(
        "#[ferrogrid::module{options}]\npub mod {name} {{
    use ferrogrid::device::prelude::*;
    {items}
    #[kernel]
    pub fn {name}_fill(t: Thread<1>, mut y: DisjointSlice<u32>) {{
        if let Some(y) = y.get_mut(t.index()) {{ *y = {value}; }}
    }}
}}\n"
    )
}

fn package(manifest: &str, modules: &[String]) -> Package {
    Package::new(manifest, &[("src/main.rs", &(modules.concat() + "fn main() {}\n"))])
}

/// The architectures of each module, whose code must have its kernel and no other module's.
fn archs(output: &Output) -> BTreeMap<String, String> {
    let of_module = |module: &ferrogrid_build::CompiledModule| {
        let target = CompiledTarget::from_text(&fs::read_to_string(&module.manifest).unwrap()).unwrap();
        let is_it = |it: &&ferrogrid_syntax::compiled::CompiledModule| {
            it.entries.iter().any(|entry| module.entries.contains(&entry.name))
        };
        let compiled = target.modules.iter().find(is_it).unwrap();
        let codes = &target.images[compiled.image].codes;
        for code in codes {
            let ptx = fs::read_to_string(&code.ptx).unwrap();
            assert!(ptx.contains(&format!(".target {}\n", code.arch)), "{ptx}");
            assert!(ptx.contains(&format!(".entry {}", module.entries[0])), "{ptx}");
            let of_image = target.modules.iter().filter(|it| it.image == compiled.image);
            let expected: usize = of_image.map(|it| it.entries.len()).sum();
            assert_eq!(ptx.matches(".entry ").count(), expected, "kernels of other images: {ptx}");
        }
        let archs: Vec<&str> = codes.iter().map(|code| code.arch.as_str()).collect();
        (module.name.clone(), archs.join(","))
    };
    output.modules.iter().filter(|module| !module.entries.is_empty()).map(of_module).collect()
}

fn expected(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(name, archs)| ((*name).to_owned(), (*archs).to_owned())).collect()
}

#[test]
fn a_module_has_code_for_its_architectures_and_others_for_those_of_the_build() {
    let mut package = package(
        TWO,
        &[
            module("", "general", "", "turing::value() + 1"),
            module("(arch = [\"sm_75\"])", "turing", "pub fn value() -> u32 { 40 }", "super::maths::two()"),
            module("(arch = [\"sm_90\"])", "hopper", "", "super::maths::two() + 1"),
            "#[ferrogrid::module] pub mod maths { pub fn two() -> u32 { 2 } }\n".to_owned(),
        ],
    );
    package.edit("src/main.rs", "turing::value()", "super::turing::value()");
    let build = |package: &Package| archs(&package.built());
    let of_package = expected(&[("general", "sm_75,sm_90"), ("turing", "sm_75"), ("hopper", "sm_90")]);
    assert_eq!(build(&package), of_package);
    assert_eq!(package.built().ptx.len(), 4);

    for (variable, general, turing, hopper) in [
        ("sm_75,sm_90", "sm_75,sm_90", "sm_75", "sm_90"),
        ("sm_90", "sm_90", "sm_90", "sm_90"),
        ("sm_75", "sm_75", "sm_75", "sm_90"),
    ] {
        package.environment.arch = Some(variable.to_owned());
        let expected = expected(&[("general", general), ("turing", turing), ("hopper", hopper)]);
        assert_eq!(build(&package), expected, "{variable}");
    }
    package.environment.arch = None;
    assert_eq!(build(&package), of_package, "parts and their names are the same again");
}

#[test]
fn a_kernel_that_other_modules_mention_is_an_entry_point_of_its_own_code_alone() {
    let ordered = "#[kernel]
    pub fn total(t: Thread<1>, mut y: DisjointSlice<u32>, order: BlockOrder<u32>) {
        let before = order.exclusive(&t, 1, |a, b| a + b).unwrap_or(0);
        if let Some(y) = y.get_mut(t.index()) { *y = before; }
    }";
    let caller = "#[kernel]
    pub fn calls(t: Thread<1>, y: DisjointSlice<u32>) { super::turing::turing_fill(t, y) }";
    let package = package(
        "",
        &[
            module("(arch = [\"sm_75\"])", "turing", ordered, "1"),
            module("(arch = [\"sm_90\"])", "hopper", caller, "super::total::value()"),
            "#[ferrogrid::module] pub mod total { pub fn value() -> u32 { 40 } }\n".to_owned(),
        ],
    );
    assert_eq!(archs(&package.built()), expected(&[("turing", "sm_75"), ("hopper", "sm_90")]));
}

#[test]
fn a_tool_compiles_a_kernel_for_any_architecture() {
    let package =
        package(TWO, &[module("(arch = [\"sm_75\"])", "turing", "", "1"), module("", "general", "", "2")]);
    package.built();
    let record = Record::load(&package.environment.out_dir).unwrap();
    for (name, archs) in [("turing_fill", ["sm_75"].as_slice()), ("general_fill", &["sm_75", "sm_90"])] {
        let kernel = record.select(Some(name), None).unwrap()[0];
        assert_eq!(kernel.images.iter().map(|image| image.arch.as_str()).collect::<Vec<_>>(), archs);
        let arch: Arch = "sm_90".parse().unwrap();
        let other = record.compile_for(kernel, &arch, &package.path("tool")).unwrap();
        assert_eq!(other.entry, kernel.entry);
        assert!(fs::read_to_string(&other.images[0].file).unwrap().contains(".target sm_90"));
    }
}

#[test]
fn modules_that_share_a_variable_are_compiled_together_for_the_architectures_of_all() {
    let count = "use core::sync::atomic::AtomicU32; pub static COUNT: AtomicU32 = AtomicU32::new(0);";
    let package =
        package("", &[module("(arch = [\"sm_90\"])", "first", count, "1"), module("", "second", "", "2")]);
    assert_eq!(archs(&package.built()), expected(&[("first", "sm_90,sm_75"), ("second", "sm_90,sm_75")]));
}
