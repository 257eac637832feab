//! Options of builds and kernels, by facts of the PTX of the same source: arithmetic, registers, source
//! lines, `cfg`s.

use ferrogrid_build::Build;

use crate::single::{built, entry};

const KERNELS: &str = "\
#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn formula(x: f32, y: f32) -> f32 {
        x / y + x.sqrt() * y + 1.0 / x
    }

    #[kernel]
    pub fn plain(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let x = x[i.get()];
        *y = formula(x, if cfg!(doubled) { 2.0 * *y } else { *y });
    }

    #[kernel(fast_math, approx_sqrt = false, max_registers = 40)]
    pub fn own(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = formula(x[i.get()], *y);
        }
    }

    #[kernel(max_threads = 256, min_blocks = 2)]
    pub fn resident(t: Thread<1>, mut y: DisjointSlice<f64>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = *y * *y + 1.0;
        }
    }
}

fn main() {}
";

fn ptx(settings: &str, build: Build) -> String {
    built(KERNELS, settings, build).unwrap_or_else(|error| panic!("{error}")).ptx
}

/// Whether the code has all the instructions of the one list and none of the other.
#[track_caller]
fn assert_code(code: &str, has: &[&str], lacks: &[&str]) {
    let instructions: Vec<&str> = code.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for instruction in has {
        assert!(instructions.contains(instruction), "no {instruction} in\n{code}");
    }
    for instruction in lacks {
        assert!(!instructions.contains(instruction), "{instruction} in\n{code}");
    }
}

#[test]
fn arithmetic_is_exact_by_default() {
    let ptx = ptx("", Build::new());
    let exact = ["div.rn.f32", "sqrt.rn.f32", "rcp.rn.f32", "mul.rn.f32"];
    assert_code(entry(&ptx, "plain"), &exact, &["fma.rn.f32", "mul.f32", "add.f32"]);
    assert_code(entry(&ptx, "resident"), &["mul.rn.f64", "add.rn.f64"], &["fma.rn.f64"]);
    assert!(!entry(&ptx, "plain").contains(".ftz") && !entry(&ptx, "plain").contains(".maxnreg"));
}

#[test]
fn a_kernel_chooses_for_itself_alone() {
    let ptx = ptx("", Build::new());
    let own = entry(&ptx, "own");
    assert_code(own, &["div.approx.ftz.f32", "sqrt.rn.ftz.f32", "rcp.approx.ftz.f32", "mul.ftz.f32"], &[]);
    assert!(own.contains("\n.maxnreg 40\n"), "{own}");
}

#[test]
fn each_option_changes_its_instructions_and_no_others() {
    let all = ["div.rn.f32", "sqrt.rn.f32", "rcp.rn.f32", "mul.rn.f32"];
    let cases: [(Build, &str, &[&str], usize); 4] = [
        (Build::new().approx_div(true), "approx-div", &["div.full.f32", "rcp.approx.f32"], 2),
        (Build::new().approx_sqrt(true), "approx-sqrt", &["sqrt.approx.f32"], 1),
        (Build::new().contract(true), "contract", &["mul.f32"], 1),
        (Build::new().ftz(true), "ftz", &["div.rn.ftz.f32", "sqrt.rn.ftz.f32", "rcp.rn.ftz.f32"], 4),
    ];
    for (build, key, has, changed) in cases {
        let by_script = ptx("", build);
        let settings = format!("[package.metadata.ferrogrid]\n{key} = true");
        assert_eq!(by_script, ptx(&settings, Build::new()), "Cargo.toml says the same");
        let code = entry(&by_script, "plain");
        assert_code(code, has, &[]);
        let left = all.iter().filter(|name| code.contains(&format!("\t{name} "))).count();
        assert_eq!(left, all.len() - changed, "{key}: {code}");
    }
}

#[test]
fn the_build_script_wins_over_cargo_toml_and_single_options_over_fast_math() {
    let settings = "[package.metadata.ferrogrid]\nfast-math = true\nftz = false";
    let code = ptx(settings, Build::new().approx_sqrt(false));
    assert_code(entry(&code, "plain"), &["div.full.f32", "sqrt.rn.f32", "mul.f32"], &["div.rn.f32"]);
    assert!(!entry(&code, "plain").contains(".ftz"));
    let exact = ptx(settings, Build::new().fast_math(false));
    assert_code(entry(&exact, "plain"), &["div.rn.f32", "sqrt.rn.f32", "mul.rn.f32"], &["mul.f32"]);
}

#[test]
fn registers_are_bounded_where_a_kernel_does_not_bound_them() {
    let ptx = ptx("[package.metadata.ferrogrid]\nmax-registers = 64", Build::new());
    assert!(entry(&ptx, "plain").contains("\n.maxnreg 64\n"), "{ptx}");
    assert!(entry(&ptx, "own").contains("\n.maxnreg 40\n"), "{ptx}");
    assert!(!entry(&ptx, "resident").contains(".maxnreg"), "{ptx}");
    let error = built(KERNELS, "", Build::new().max_registers(16)).map(|_| ()).unwrap_err();
    assert!(error.contains("max-registers") && error.contains("is 16; expected a number from 24"), "{error}");
}

#[test]
fn source_lines_can_be_left_out() {
    let with = ptx("", Build::new());
    assert!(with.contains("\t.loc\t") && with.contains("\"src/main.rs\""));
    let without = ptx("[package.metadata.ferrogrid]\nline-info = false", Build::new());
    assert!(!without.contains(".loc") && !without.contains(".file"), "{without}");
    let code = |text: &str| entry(text, "plain").lines().filter(|line| !line.contains(".loc")).count();
    assert_eq!(code(&with), code(&without), "the code is the same");
}

#[test]
fn a_cfg_holds_on_the_device_and_in_the_package() {
    let with = built(KERNELS, "[package.metadata.ferrogrid]\ncfg = \"doubled\"", Build::new()).unwrap();
    let script = built(KERNELS, "", Build::new().cfg("doubled")).unwrap();
    assert_eq!(with.ptx, script.ptx);
    assert_ne!(with.ptx, ptx("", Build::new()));
    let valued = built(KERNELS, "", Build::new().cfg("mode=\"fast\"")).unwrap();
    for (made, directives) in [
        (&with, ["cargo::rustc-cfg=doubled", "cargo::rustc-check-cfg=cfg(doubled)"]),
        (&valued, ["cargo::rustc-cfg=mode=\"fast\"", "cargo::rustc-check-cfg=cfg(mode, values(\"fast\"))"]),
    ] {
        for directive in directives {
            assert!(made.directives.iter().any(|it| it == directive), "{directive}: {:?}", made.directives);
        }
    }
}
