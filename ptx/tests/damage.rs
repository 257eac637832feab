//! Damaged texts: parsing returns an error or a model, never panics; a printed model parses again.
//!
//! 20,000 inputs; with `FERROGRID_FUZZ=ci` a million, or as many as fit into 20 seconds; with `FERROGRID_FUZZ=full` a million.

use std::time::{Duration, Instant};

use fastrand::Rng;
use ferrogrid_ptx::{Calls, ControlFlow, Module, Registers};

const SEEDS: [&str; 3] =
    [include_str!("texts/by_hand.ptx"), include_str!("texts/nvcc.ptx"), include_str!("texts/llvm.ptx")];

/// Fragments that often confuse parsers.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "|",
    "!",
    "-",
    "+",
    "::",
    ":",
    "\"",
    "/*",
    "*/",
    "//",
    "%r<99999999999999999999>",
    "18446744073709551615",
    ".loc 1 2",
    ".branchtargets",
    "call",
    "é",
];

fn damaged(number: u64) -> String {
    let mut random = Rng::with_seed(number);
    let seed = SEEDS[random.usize(..SEEDS.len())];
    // A window of the text: small inputs are fast, and begin and end in the middle.
    let place = |random: &mut Rng| {
        (0..=random.usize(..=seed.len())).rev().find(|&at| seed.is_char_boundary(at)).unwrap_or(0)
    };
    let (a, b) = (place(&mut random), place(&mut random));
    let mut text = if random.bool() { seed[a.min(b)..a.max(b)].to_owned() } else { SEEDS[0].to_owned() };
    for _ in 0..random.usize(1..6) {
        let at = (0..=random.usize(..=text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        match random.u8(..3) {
            0 => text.insert_str(at, PIECES[random.usize(..PIECES.len())]),
            1 => drop(text.pop()),
            _ => {
                let end = text[at..]
                    .char_indices()
                    .nth(random.usize(1..12))
                    .map_or(text.len(), |(length, _)| at + length);
                text.replace_range(at..end, "");
            }
        }
    }
    text
}

fn ask(text: &str) {
    let Ok(module) = Module::parse(text) else { return };
    let printed = module.to_string();
    let again = Module::parse(&printed).unwrap_or_else(|error| panic!("{error}:\n{printed}\nwas\n{text}"));
    assert_eq!(again.items.len(), module.items.len(), "{text}");
    let calls = Calls::of(&module);
    assert!(calls.reachable(0..module.items.len(), |_| false).len() == module.items.len());
    for body in module.functions().filter_map(|function| function.body.as_ref()) {
        let _ = Registers::of(body);
        let flow = ControlFlow::of(body, |call| call.callee() == Some("helper"));
        assert_eq!(flow.dominators().len(), flow.post_dominators().len());
    }
}

#[test]
fn no_damage_makes_the_reader_panic() {
    let mode = std::env::var("FERROGRID_FUZZ").unwrap_or_default();
    let count = if mode.is_empty() { 20_000 } else { 1_000_000 };
    let start = Instant::now();
    for number in 0..count {
        if mode != "full" && start.elapsed() > Duration::from_secs(20) {
            println!("{number} inputs in 20 s");
            break;
        }
        let text = damaged(number);
        if std::panic::catch_unwind(|| ask(&text)).is_err() {
            panic!("input {number}: {text}");
        }
    }
}
