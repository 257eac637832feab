//! Runs the whole programs of the book, each as its own process, as a reader would.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Each program of `src/bin`, where cargo built it, and the last line that it prints.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("first_kernel", env!("CARGO_BIN_EXE_first_kernel"), ": [12.0, 24.0, 36.0]"),
    ("block_sums", env!("CARGO_BIN_EXE_block_sums"), "the sum is 500500"),
    ("readme", env!("CARGO_BIN_EXE_readme"), ""),
];

#[test]
fn each_program_prints_the_output_in_the_book() {
    for (name, path, expected) in PROGRAMS {
        let output = Command::new(path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.trim_end().ends_with(expected), "{name} printed {text:?}");
    }
}

#[test]
fn no_program_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let names: BTreeSet<String> =
        names.map(|path| path.file_stem().unwrap().to_string_lossy().into()).collect();
    assert_eq!(names, PROGRAMS.iter().map(|(name, ..)| (*name).to_owned()).collect());
}
