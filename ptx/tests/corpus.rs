//! Whole files: the printed model equals the text, and parsing is fast.

use std::time::{Duration, Instant};

use ferrogrid_ptx::{ControlFlow, Module, Registers};

/// The words and signs of a text, without spacing and comments.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_$%.".contains(c);
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '"' => rest[1..].find('"').map_or(rest.len(), |at| at + 2),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() && !token.starts_with("//") && !token.starts_with("/*") {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

/// Reads a file, and compares what is printed of it.
fn check(name: &str, text: &str) {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let printed = module.to_string();
    let (expected, found) = (tokens(text), tokens(&printed));
    let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
    if let Some(at) = differs {
        let around = at.saturating_sub(8)..at + 8;
        panic!("{name}: {:?}\nbecame {:?}", &expected[around.clone()], &found[around]);
    }
    assert_eq!(expected.len(), found.len(), "{name}");
}

/// PTX of several compilers: LLVM with and without line tables, nvcc, and PTX written by hand.
const TEXTS: [(&str, &str); 3] = [
    ("LLVM", include_str!("texts/llvm.ptx")),
    ("nvcc", include_str!("texts/nvcc.ptx")),
    ("by hand", include_str!("texts/by_hand.ptx")),
];

#[test]
fn printed_text_parses_to_the_same() {
    for (name, text) in TEXTS {
        check(name, text);
    }
}

/// The files that the list `FERROGRID_TEST_PTX_FILES` names, one on each line: CI lists the PTX of all its builds.
#[test]
fn the_files_of_a_list_are_printed_as_they_were_read() {
    let Some(list) = std::env::var_os("FERROGRID_TEST_PTX_FILES") else {
        println!("SKIPPED: FERROGRID_TEST_PTX_FILES does not name a list of files");
        return;
    };
    let list = std::fs::read_to_string(list).unwrap();
    let (mut bytes, mut reading, mut asking) = (0, Duration::ZERO, Duration::ZERO);
    for path in list.lines() {
        let text = std::fs::read_to_string(path).unwrap();
        check(path, &text);
        bytes += text.len();
        let start = Instant::now();
        let module = Module::parse(&text).unwrap();
        reading += start.elapsed();
        let start = Instant::now();
        for body in module.functions().filter_map(|function| function.body.as_ref()) {
            let registers = Registers::of(body);
            let is_declared = |name: &&str| name.starts_with('%') && !name.contains('.');
            for (at, instruction, _) in body.located() {
                let names = instruction.definitions();
                let named = |register| names.contains(&registers.name(register));
                assert!(registers.defined_by(at).iter().copied().all(named), "{path}: {instruction}");
                let count = names.iter().copied().filter(is_declared).count();
                assert!(registers.defined_by(at).len() >= count, "{path}: {instruction}");
            }
            let flow = ControlFlow::of(body, |_| false);
            let ends = flow.blocks.iter().filter(|block| block.successors.is_empty()).count();
            assert!(ends > 0 || flow.post_dominators().iter().all(Option::is_none), "{path}");
        }
        asking += start.elapsed();
    }
    println!("{bytes} bytes: read in {reading:?}; registers and control flow in {asking:?}");
    assert!(bytes > 0, "the list is empty");
}
