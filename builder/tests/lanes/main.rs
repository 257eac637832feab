//! Warp operations: if all lanes provably reach them together no check is left, otherwise there is one with
//! the user's line. It uses the device toolchain of this machine.

#[path = "../single/mod.rs"]
mod single;

use ferrogrid_build::{Build, PanicStrategy};

const PROGRAM: &str = include_str!("program.rs");

/// Name and code of each entry point with this prefix.
fn entries<'a>(ptx: &'a str, prefix: &str) -> Vec<(&'a str, &'a str)> {
    let start = format!(".visible .entry {prefix}_");
    let named = ptx.split(&start).skip(1).map(|rest| {
        let (name, _) = rest.split_once('(').unwrap();
        (name, &rest[..rest.find("\n}").unwrap()])
    });
    named.collect()
}

fn built(arch: &str, panic: PanicStrategy) -> String {
    let build = Build::new().arch([arch]).panic(panic);
    single::built(PROGRAM, "", build).unwrap_or_else(|errors| panic!("{errors}")).ptx
}

#[test]
fn proven_operations_have_no_check_and_others_have() {
    for arch in ["sm_75", "sm_90"] {
        let ptx = built(arch, PanicStrategy::Message);
        let (proven, checked) = (entries(&ptx, "proven"), entries(&ptx, "checked"));
        let count = |prefix: &str| PROGRAM.matches(&format!("pub fn {prefix}_")).count();
        assert_eq!((proven.len(), checked.len()), (count("proven"), count("checked")));
        assert!(proven.len() >= 15 && checked.len() >= 15, "{} and {}", proven.len(), checked.len());
        for (name, code) in proven {
            assert!(
                !code.contains("activemask") && !code.contains("__ferrogrid_panic_lanes"),
                "{name}\n{code}"
            );
        }
        for (name, code) in checked {
            assert!(code.contains("call.uni __ferrogrid_panic_lanes"), "{name}\n{code}");
            let compares = name.contains("mask");
            assert_eq!(code.contains("match.any.sync.b32 \t%ferrogrid_lane0"), compares, "{name}\n{code}");
        }
        assert!(!ptx.contains("ferrogrid.together"), "marks are left");
    }
}

/// The lines that end in `//~` are named, and no others.
#[test]
fn a_check_names_the_line_of_the_user() {
    let ptx = built("sm_90", PanicStrategy::Message);
    let mut found: Vec<usize> = ptx
        .split("[param4], ")
        .skip(1)
        .filter(|rest| rest.contains("__ferrogrid_panic_lanes"))
        .filter_map(|rest| rest.split(';').next()?.parse().ok())
        .collect();
    found.sort_unstable();
    found.dedup();
    let marked = PROGRAM.lines().enumerate().filter(|(_, line)| line.ends_with("//~"));
    assert_eq!(found, marked.map(|(at, _)| at + 1).collect::<Vec<_>>());
    let file = "src/main.rs".bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    assert!(ptx.contains(&format!("__ferrogrid_lanes_file_0[12] = {{{file}, 0}};")), "{ptx}");
}

#[test]
fn without_reports_a_check_traps() {
    let ptx = built("sm_75", PanicStrategy::Trap);
    assert!(ptx.contains("activemask") && !ptx.contains("__ferrogrid_panic_lanes"));
}
