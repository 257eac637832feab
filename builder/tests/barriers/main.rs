//! The proof of barriers, on a corpus of kernels that must be refused and kernels that must be accepted. It
//! uses the device toolchain of this machine.

#[path = "../single/mod.rs"]
mod single;

use std::collections::BTreeSet;

use ferrogrid_build::Build;

/// A program of these files, each a separate module.
macro_rules! program {
    ($folder:ident: $($file:ident)*) => {
        concat!($("#[allow(warnings)]\nmod ", stringify!($file), " {\n",
            include_str!(concat!(stringify!($folder), "/", stringify!($file), ".rs")), "}\n",)* "fn main() {}\n")
    };
}

const REFUSED: &str = program!(refused: kinds sources control_flow hiding operations);
const ACCEPTED: &str =
    program!(accepted: kinds sources control_flow hiding operations block_ports numeric_ports);

/// The number of kernels of a program.
fn kernels(program: &str) -> usize {
    program.matches("#[kernel").count()
}

/// The expected place of a refusal, and the start of its message.
type Expected = (usize, &'static str);

/// The marks `//~` of a program.
fn expected(program: &str) -> BTreeSet<Expected> {
    let marks =
        program.lines().enumerate().filter_map(|(at, line)| Some((at + 1, line.split_once("//~ ")?.1)));
    marks
        .map(|(line, what)| {
            let message = match what {
                "block" => "some threads of a block may not reach this barrier",
                "cluster" => "some threads of a cluster may not reach this barrier",
                "grid" => "some threads of the grid may not reach this barrier",
                "region" => "threads of a block may pass different regions of shared memory to this barrier",
                "launch" => "the blocks of this launch need not be there at the same time",
                other => panic!("line {line}: {other}"),
            };
            (line, message)
        })
        .collect()
}

/// The errors of a build, each with the line that it points to.
fn found(errors: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for error in errors.split("error: ").skip(1) {
        let Some((_, place)) = error.split_once("--> src/main.rs:") else { continue };
        found.push((place.split(':').next().unwrap().parse().unwrap(), error));
    }
    found
}

#[test]
fn barriers_that_some_threads_may_miss_are_refused_at_their_line() {
    let Err(errors) = single::built(REFUSED, "", Build::new().arch(["sm_90"])) else {
        panic!("nothing is refused")
    };
    assert!(!errors.contains("error[E"), "{errors}");
    let (expected, found) = (expected(REFUSED), found(&errors));
    let is_met = |&(line, message): &Expected| {
        found.iter().any(|(at, error)| *at == line && error.starts_with(message))
    };
    let text = |line: usize| REFUSED.lines().nth(line - 1).unwrap_or_default();
    let missed: Vec<_> =
        expected.iter().filter(|expected| !is_met(expected)).map(|it| (it.1, text(it.0))).collect();
    let lines: BTreeSet<usize> = expected.iter().map(|(line, _)| *line).collect();
    let others: Vec<_> =
        found.iter().filter(|(line, _)| !lines.contains(line)).map(|it| (text(it.0), it.1)).collect();
    assert!(missed.is_empty() && others.is_empty(), "not refused: {missed:#?}\nrefused, too: {others:#?}");
    assert!(kernels(REFUSED) >= 150, "{}", kernels(REFUSED));
    for part in [
        "): `for _ in 0..rounds {`\n  = note: which depends on the index of the thread (src/main.rs:",
        "): `rounds(&t, x[t.index().get()]);`\n",
        "which depends on the index of the block",
        "depends on the result of an atomic operation",
        "`#[kernel(cooperative)]`",
    ] {
        assert!(errors.contains(part), "{part} is not in\n{errors}");
    }
    assert!(!errors.contains("device/src"), "a note names a line of the library\n{errors}");
}

/// A block multiplies with all of its threads, and waits for nothing else meanwhile.
fn check_products(arch: &str) {
    const PRODUCTS: &str = include_str!("products.rs");
    let Err(errors) = single::built(PRODUCTS, "", Build::new().arch([arch])) else {
        panic!("nothing is refused")
    };
    let (expected, found) = (expected(PRODUCTS), found(&errors));
    let lines = |places: &mut dyn Iterator<Item = usize>| places.collect::<BTreeSet<_>>();
    assert_eq!(
        lines(&mut found.iter().map(|(line, _)| *line)),
        lines(&mut expected.iter().map(|(line, _)| *line)),
        "{errors}"
    );
    let message = expected.first().unwrap().1;
    assert!(found.iter().all(|(_, error)| error.starts_with(message)), "{errors}");
}

#[test]
fn barriers_within_a_product_of_a_block_are_refused() {
    check_products("sm_90");
}

#[test]
#[ignore = "builds the device half of Ferrogrid for `sm_90a`; `.ci/run` runs it"]
fn barriers_within_a_product_by_warpgroups_are_refused() {
    check_products("sm_90a");
}

#[test]
fn barriers_that_all_threads_reach_are_accepted() {
    let ptx = single::built(ACCEPTED, "", Build::new().arch(["sm_90"]))
        .unwrap_or_else(|errors| panic!("{errors}"))
        .ptx;
    assert!(kernels(ACCEPTED) >= 300, "{}", kernels(ACCEPTED));
    assert!(!ptx.contains("ferrogrid.together") && !ptx.contains("ferrogrid.assumed"), "marks are left");
    assert!(
        !ptx.contains("call.uni __ferrogrid_panic_lanes"),
        "block-wide operations need no check of lanes"
    );
}
