//! Programs that are given as text, compiled for GPUs: what is known of their kernels, what is said of mistakes, and what is kept.

use std::fs;
use std::path::PathBuf;

use ferrogrid_build::cuda_toolkit::CudaTool;
use ferrogrid_build::inspect::Assembler;
use ferrogrid_build::{
    Arch, Build, CompiledProgram, Error, Facts, Math, Program, ProgramKernel, Travels, cache,
};

const SCALE: &str = "\
//! Scales.
/// x <- a x
#[kernel(T = [f32, f64], max_threads = 512)]
pub fn scale<T: DeviceCopy + core::ops::MulAssign>(t: Thread<1>, a: T, mut x: DisjointSlice<T>) {
    if let Some(x) = x.get_mut(t.index()) {
        *x *= a;
    }
}
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Pair { left: f32, right: u32 }
use core::sync::atomic::Ordering;
#[kernel(wide, same_shape(x, p))]
pub fn pairs(t: Thread<1>, x: &[f32], p: &[Pair], n: &[DeviceAtomic<u32>], s: SharedSlice<u32>, y: Shared<[f32; 8]>, mut z: DisjointRows<f32>, pair: (u32, f32)) {
    let _ = (&s, &y, &mut z, pair);
    n[0].fetch_add(p[t.index().get()].right + x.len() as u32, Ordering::Relaxed);
}
";

fn compile(text: &str) -> Result<CompiledProgram, Error> {
    let build = Build::new().debug_assertions(false).math(Math::Libm);
    build.compile_program(&Program::new("scale.rs", text), &Arch::baseline())
}

#[test]
fn a_program_is_compiled_and_its_kernels_described() {
    let compiled = compile(SCALE).unwrap();
    assert!(compiled.ptx.contains(".target sm_75"), "{}", compiled.ptx);
    let names: Vec<&str> = compiled.kernels.iter().map(|kernel| &*kernel.name).collect();
    assert_eq!(names, ["program::scale::<f32>", "program::scale::<f64>", "program::pairs"]);
    let [single, double, pairs] = compiled.kernels.as_slice() else { panic!() };
    assert_eq!((single.line, single.rank, single.max_threads, single.wide), (4, 1, Some(512), false));
    assert_eq!((single.sizes.as_slice(), double.sizes[0]), ([(4, 4), (8, 8), (4, 4)].as_slice(), (8, 8)));
    assert!(compiled.ptx.contains(&format!(".entry {}(", double.entry)));

    let travels: Vec<Travels> = pairs.parameters.iter().map(|parameter| parameter.travels).collect();
    let number = |of: &ProgramKernel| match of.parameters[2].travels {
        Travels::Output { facts, rank: 1, rows: false } => facts,
        other => panic!("{other:?}"),
    };
    let f32_facts = number(single);
    assert_eq!((f32_facts.size, number(double).size), (Some((4, 4)), Some((8, 8))));
    assert_ne!(f32_facts.layout, number(double).layout);
    let Travels::Value { facts } = single.parameters[1].travels else { panic!() };
    assert_eq!(facts, Facts { size: None, layout: f32_facts.layout });
    let Travels::Input { facts: pair, rank: 1 } = travels[2] else { panic!("{travels:?}") };
    assert_eq!(pair.size, Some((8, 4)));
    let Travels::Input { facts: atomic, rank: 1 } = travels[3] else { panic!("{travels:?}") };
    assert_eq!(atomic.size, Some((4, 4)));
    assert_ne!(atomic.layout, f32_facts.layout, "a buffer of numbers is no atomic view");
    assert_eq!((travels[0], travels[5]), (Travels::Nowhere, Travels::Nowhere));
    assert_eq!(travels[1], Travels::Input { facts: f32_facts, rank: 1 });
    assert_eq!(travels[4], Travels::SharedSlice { size: 4 });
    assert_eq!(travels[6], Travels::Output { facts: f32_facts, rank: 2, rows: true });
    assert_eq!((travels[7], pairs.shared_bytes, pairs.wide), (Travels::Otherwise, 32, true));
    assert_eq!((pairs.parameters[2].ty.as_str(), &pairs.same_shape), ("& [Pair]", &vec![(1, vec![2])]));
}

#[test]
fn a_program_that_was_compiled_before_is_not_compiled_again() {
    let text = format!("{SCALE}// Kept.");
    for folder in folders_with("// Kept.") {
        fs::remove_dir_all(folder).unwrap();
    }
    let first = compile(&text).unwrap();
    let [folder] = folders_with("// Kept.").try_into().unwrap();
    let work = folder.join("out/ferrogrid/build");
    fs::remove_dir_all(&work).unwrap();
    assert_eq!(compile(&text).unwrap(), first);
    assert!(!work.is_dir(), "rustc ran again");
}

/// The folders of the cache with programs that have this text.
fn folders_with(text: &str) -> Vec<PathBuf> {
    let Ok(programs) = fs::read_dir(cache::root().join("programs")) else { return Vec::new() };
    let has_text = |folder: &PathBuf| {
        fs::read_to_string(folder.join("scale.rs")).is_ok_and(|program| program.contains(text))
    };
    programs.map(|entry| entry.unwrap().path()).filter(has_text).collect()
}

#[test]
fn errors_of_the_device_compiler_name_lines_of_the_text() {
    let error = compile(&SCALE.replace("*= a", "*= \"a\"")).unwrap_err();
    let Error::Device { diagnostics, places, .. } = &error else { panic!("{error}") };
    assert!(diagnostics.contains("scale.rs:6:"), "{diagnostics}");
    assert_eq!(places[0].1.start.0, 6);
    let none = compile("pub fn f() {}").unwrap_err().to_string();
    assert_eq!(none, "scale.rs has no kernel");
}

#[test]
fn debug_information_has_variables_in_a_form_that_ptxas_takes() {
    let build = Build::new().debug_assertions(false).math(Math::Libm);
    let compiled = |on: bool| {
        let text = SCALE
            .replace("*x *= a;", "assert!(*x > a, \"{x:?}\"); *x *= a;")
            .replace("core::ops::MulAssign>", "core::ops::MulAssign + PartialOrd + core::fmt::Debug>");
        let program = Program::new("scale.rs", text);
        build.clone().debug_info(on).line_info(false).compile_program(&program, &Arch::baseline()).unwrap()
    };
    let (without, with) = (compiled(false).ptx, compiled(true).ptx);
    assert!(!without.contains(".debug_info") && with.contains(".section\t.debug_info"));
    assert!(!with.contains(".debug_aranges") && with.contains(".loc\t"), "lines belong to it");
    assert!(with.contains(".version 7.0"), "the first that has labels in sections");
    let named = std::env::var_os("FERROGRID_PTXAS").map(PathBuf::from);
    let Some(ptxas) = named.or_else(|| CudaTool::Ptxas.find(None)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("debug.ptx");
    fs::write(&file, &with).unwrap();
    let assembler = Assembler::new(ptxas, folder.path().to_owned());
    let cubin = assembler.assemble(&file, &Arch::baseline(), None).unwrap().cubin;
    let cubin = fs::read(cubin).unwrap();
    let name = b".debug_info";
    assert!(cubin.windows(name.len()).any(|bytes| bytes == name));
}

#[test]
fn a_program_that_must_be_safe_reads_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("body.in");
    fs::write(&file, "unsafe { core::hint::unreachable_unchecked() }").unwrap();
    let text = format!("#[kernel] pub fn k(_t: Thread<1>) {{ include!({file:?}) }}");
    let error = compile(&text).unwrap_err();
    assert!(matches!(&error, Error::UnsafeProgram { finding, .. } if finding.contains("body.in")), "{error}");
    let program = Program { allows_unsafe: true, ..Program::new("scale.rs", text) };
    Build::new().compile_program(&program, &Arch::baseline()).unwrap();
}
