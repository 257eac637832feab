//! Whole files: what the model says of them is all that they say, and reading is fast.

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

/// What compilers write, each of its own: LLVM with and without line tables, nvcc, and what people write by hand.
const TEXTS: [(&str, &str); 3] = [
    ("LLVM", include_str!("texts/llvm.ptx")),
    ("nvcc", include_str!("texts/nvcc.ptx")),
    ("by hand", include_str!("texts/by_hand.ptx")),
];

#[test]
fn what_is_printed_is_what_was_read() {
    for (name, text) in TEXTS {
        check(name, text);
    }
}

#[test]
fn files_of_a_folder_are_printed_as_they_were_read_and_fast() {
    let Some(folder) = std::env::var_os("FERROGRID_TEST_PTX_FILES") else {
        println!("SKIPPED: FERROGRID_TEST_PTX_FILES names no folder");
        return;
    };
    let (mut bytes, mut parsing, mut asking) = (0, Duration::ZERO, Duration::ZERO);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        check(&path.display().to_string(), &text);
        bytes += text.len();
        let start = Instant::now();
        let module = Module::parse(&text).unwrap();
        parsing += start.elapsed();
        let start = Instant::now();
        for body in module.functions().filter_map(|function| function.body.as_ref()) {
            let registers = Registers::of(body);
            assert!(registers.is_empty() || registers.len() > 0);
            let flow = ControlFlow::of(body, |_| false);
            assert_eq!(flow.dominators().len(), flow.post_dominators().len());
        }
        asking += start.elapsed();
    }
    println!("{bytes} bytes: read in {parsing:?}, control flow and registers in {asking:?}");
}
