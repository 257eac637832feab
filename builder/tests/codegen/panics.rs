//! Panics in device code, by the options of the build step. It uses the device toolchain of this machine.

use std::path::Path;

use ferrogrid_build::{Build, PanicStrategy};

use crate::single::{self, entry};

const KERNELS: &str = "\
#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::println;

    #[kernel]
    pub fn reads(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()] + 1;
        }
    }

    #[kernel]
    pub fn asserts(t: Thread<1>, x: &[f32]) {
        let value = x[0];
        assert!(value < 1.0, \"thread {}: {value:?}\", t.index().get());
        assert_eq!(x[1], value, \"in {}\", x.len());
    }

    #[kernel]
    pub fn prints(t: Thread<1>, x: &[f32]) {
        println!(\"{} {:8.3}\", t.index().get(), x[0]);
    }
}

fn main() {}
";

/// The PTX of those kernels, in a package with this in its Cargo.toml.
fn ptx(settings: &str, build: Build) -> Result<String, String> {
    single::built(KERNELS, settings, build).map(|built| built.ptx)
}

#[test]
fn by_default_panics_send_a_message_and_nothing_is_formatted_on_the_device() {
    let ptx = ptx("", Build::new()).unwrap();
    assert!(entry(&ptx, "reads").contains("call.uni __ferrogrid_panic_bounds_check, "), "{ptx}");
    assert!(entry(&ptx, "asserts").contains("call.uni __ferrogrid_panic_fmt, "), "{ptx}");
    for kernel in ["reads", "asserts"] {
        let (parameters, _) = entry(&ptx, kernel).split_once(')').unwrap();
        assert!(parameters.contains("\t.param .u64 __ferrogrid_record\n"), "{parameters}");
    }
    for variable in ["output = 0;", "formatters = 1;"] {
        assert!(ptx.contains(&format!(".visible .global .align 8 .u64 __ferrogrid_{variable}")), "{ptx}");
    }
    // No call through a pointer, nor any of the functions that stand behind one.
    assert!(!ptx.contains("prototype_") && !ptx.contains("4core3fmt"), "{ptx}");
    assert!(!ptx.contains("__ferrogrid_panic_signatures(") && !ptx.contains(".extern .global"), "{ptx}");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_str().unwrap();
    let bytes: Vec<String> = here.bytes().map(|byte| byte.to_string()).collect();
    assert!(!ptx.contains(&bytes.join(", ")), "no path of this machine is in a constant");
}

#[test]
fn a_trap_knows_nothing_of_messages() {
    for (settings, build) in [
        ("", Build::new().panic(PanicStrategy::Trap)),
        ("[package.metadata.ferrogrid]\npanic = \"trap\"", Build::new()),
    ] {
        let ptx = ptx(settings, build).unwrap();
        assert!(!ptx.contains("__ferrogrid_panic") && !ptx.contains("__ferrogrid_record"), "{ptx}");
        assert!(ptx.contains("trap;"), "{ptx}");
        assert!(ptx.contains("__ferrogrid_output = 0;"), "printing works all the same");
    }
}

#[test]
fn overflow_panics_where_that_is_asked_for() {
    let checks = |settings: &str, build: Build| {
        let ptx = ptx(settings, build).unwrap();
        entry(&ptx, "reads").contains("panic_const_add_overflow")
    };
    assert!(!checks("", Build::new()));
    assert!(checks("", Build::new().overflow_checks(true)));
    let settings = "[package.metadata.ferrogrid]\noverflow-checks = true";
    assert!(checks(settings, Build::new()));
    assert!(!checks(settings, Build::new().overflow_checks(false)), "the build script wins");
}

#[test]
fn settings_that_mean_nothing_are_named() {
    let error = ptx("[package.metadata.ferrogrid]\npanic = \"abort\"", Build::new()).unwrap_err();
    assert!(error.contains("ferrogrid.panic` in Cargo.toml is \"abort\""), "{error}");
    let error = ptx("[package.metadata.ferrogrid]\noverflow-checks = 1", Build::new()).unwrap_err();
    assert!(error.contains("overflow-checks` in Cargo.toml is 1; expected true or false"), "{error}");
}
