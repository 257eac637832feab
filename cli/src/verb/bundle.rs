//! `cargo ferrogrid bundle`: tests, examples and benches in one folder, with a script that runs them, for a
//! GPU machine without Rust.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::Failure;
use crate::cargo::{self, Executable, Package};
use crate::example::Example;
use crate::selection::Selection;
use crate::verb::setup;

/// The arguments of `bundle`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder to write; an earlier bundle there is replaced.
    #[arg(long, default_value = "bundle")]
    out: PathBuf,
    /// A target to leave out; also `skip` in `[package.metadata.ferrogrid.bundle]`.
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    #[command(flatten)]
    selection: Selection,
}

/// The folder of each kind of target.
const FOLDERS: [(&str, &str); 4] =
    [("test", "tests"), ("lib", "tests"), ("example", "examples"), ("bench", "benches")];

/// Marks a folder as a bundle, which may be replaced.
const MARK: &str = "ferrogrid-bundle.txt";

/// Builds and copies the executables, and writes the script.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let packages = options.selection.family()?;
    setup::ensure()?;
    let mut skip = options.skip.clone();
    skip.extend(packages.iter().flat_map(|package| package.setting("bundle.skip")));
    let mut executables = Vec::new();
    for package in &packages {
        executables.extend(build(package)?);
    }
    executables.retain(|executable| !skip.contains(&executable.name) && folder(executable).is_some());
    if executables.is_empty() {
        return Err("this package has no tests, examples or benches to bundle".into());
    }
    clear(&options.out)?;
    let size = copy(&executables, &options.out)?;
    fs::write(options.out.join("run.sh"), script(&programs(&executables, &Example::all(&packages)?)))?;
    println!(
        "{} executables, {:.1} MiB, in {}; run them with: sh run.sh",
        executables.len(),
        size as f64 / f64::from(1 << 20),
        options.out.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn folder(executable: &Executable) -> Option<&'static str> {
    FOLDERS.iter().find(|(kind, _)| *kind == executable.kind).map(|(_, folder)| *folder)
}

/// Release builds without symbols: tests (a library's unit tests among them) and benches, then
/// examples.
fn build(package: &Package) -> Result<Vec<Executable>, Failure> {
    let release = |arguments: &[&str]| {
        let mut command = cargo::command();
        command.args(arguments).args(["--release", "--package", package.name()]);
        command.arg("--manifest-path").arg(&package.manifest);
        cargo::build(command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols"))
    };
    let mut executables = release(&["test", "--no-run", "--tests", "--benches"])?;
    // An example that is also a test is bundled as the program.
    executables.retain(|executable| executable.kind != "example");
    executables.extend(release(&["build", "--examples"])?);
    Ok(executables)
}

/// Removes an earlier bundle; anything else at that path is an error.
fn clear(out: &Path) -> Result<(), Failure> {
    if !out.exists() {
        return Ok(());
    }
    let empty = fs::read_dir(out)?.next().is_none();
    if !empty && !out.join(MARK).exists() {
        return Err(format!("{} is not a bundle: name another folder with --out", out.display()).into());
    }
    Ok(fs::remove_dir_all(out)?)
}

fn copy(executables: &[Executable], out: &Path) -> Result<u64, Failure> {
    fs::create_dir_all(out)?;
    let mut mark = String::from("Made by `cargo ferrogrid bundle`; the next one replaces this folder.\n");
    let mut size = 0;
    for executable in executables {
        let Some(folder) = folder(executable) else { continue };
        fs::create_dir_all(out.join(folder))?;
        size += fs::copy(&executable.path, out.join(folder).join(&executable.name))?;
        writeln!(mark, "{folder}/{}", executable.name)?;
    }
    fs::write(out.join(MARK), mark)?;
    Ok(size)
}

/// The programs that the script runs: the tests, then the examples in learning order.
fn programs(executables: &[Executable], examples: &[Example]) -> Vec<String> {
    let place = |executable: &Executable| examples.iter().position(|example| example.name == executable.name);
    let mut run: Vec<&Executable> =
        executables.iter().filter(|executable| executable.kind != "bench").collect();
    run.sort_by_key(|executable| (executable.kind == "example").then(|| place(executable)));
    let path = |executable: &&Executable| Some(format!("{}/{}", folder(executable)?, executable.name));
    run.iter().filter_map(path).collect()
}

fn script(programs: &[String]) -> String {
    SCRIPT.replace("PROGRAMS", &programs.join(" "))
}

/// The table has the format of `cargo ferrogrid run --all`.
const SCRIPT: &str = r#"#!/bin/sh
# Runs every test and example of this bundle, shows what each prints, and sums up.
# WRAP="compute-sanitizer --tool memcheck --error-exitcode 9" sh run.sh  runs each under that command.
cd "$(dirname "$0")" || exit 2
passed=0
skipped=0
failed=0
shown=$(mktemp) || exit 2
table=$(mktemp) || exit 2
trap 'rm -f "$shown" "$table"' EXIT
for program in PROGRAMS; do
    chmod +x "$program"
    echo "== $program"
    start=$(date +%s.%N)
    $WRAP "./$program" >"$shown" 2>&1
    code=$?
    end=$(date +%s.%N)
    cat "$shown"
    if [ "$code" -eq 0 ] && tail -n 1 "$shown" | grep -q '^SKIPPED: '; then
        skipped=$((skipped + 1))
        result=SKIPPED
    elif [ "$code" -eq 0 ]; then
        passed=$((passed + 1))
        result=PASS
    else
        failed=$((failed + 1))
        result="FAIL ($code)"
    fi
    device=$(sed -n 's/^device[[:space:]][[:space:]]*//p' "$shown" | head -n 1)
    echo "$start $end" | awk -v name="${program#*/}" -v result="$result" -v device="${device:-not told}" \
        '{ printf "%-22s  %-10s  %7.2f  %s\n", name, result, $2 - $1, device }' >>"$table"
done
echo
awk 'BEGIN { printf "%-22s  %-10s  %7s  %s\n", "program", "result", "seconds", "device" }'
cat "$table"
echo
echo "$passed passed, $skipped skipped, $failed failed"
[ "$failed" -eq 0 ]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_a_bundle_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        let message = clear(folder.path()).unwrap_err().to_string();
        assert!(message.contains("is not a bundle"), "{message}");
        assert!(folder.path().join("thesis.txt").exists());
    }

    #[test]
    fn an_earlier_bundle_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "x").unwrap();
        let out = folder.path().join("bundle");
        for name in ["old", "new"] {
            clear(&out).unwrap();
            let executable =
                Executable { kind: "test".to_owned(), name: name.to_owned(), path: program.clone() };
            copy(&[executable], &out).unwrap();
        }
        assert!(out.join("tests/new").exists() && !out.join("tests/old").exists());
    }

    /// A bundle of two programs: the second one fails.
    #[test]
    fn the_script_sums_up_in_learning_order() {
        let folder = tempfile::tempdir().unwrap();
        let executable = |kind: &str, name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            Executable { kind: kind.to_owned(), name: name.to_owned(), path }
        };
        let example = |name: &str| Example {
            number: "1".to_owned(),
            summary: String::new(),
            package: String::new(),
            name: name.to_owned(),
        };
        let executables = [
            executable("example", "later", "exit 3"),
            executable("example", "first", "echo 'device  NVIDIA H200'"),
            executable("example", "unable", "echo 'SKIPPED: no linker'"),
            executable("test", "suite", "echo quiet"),
            executable("bench", "race", "exit 1"),
        ];
        let programs = programs(&executables, &["first", "unable", "later"].map(example));
        assert_eq!(programs, ["tests/suite", "examples/first", "examples/unable", "examples/later"]);

        let out = folder.path().join("bundle");
        copy(&executables, &out).unwrap();
        fs::write(out.join("run.sh"), script(&programs)).unwrap();
        let done = std::process::Command::new("sh").arg(out.join("run.sh")).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let has = |start: &[&str], end: &[&str]| {
            lines.iter().any(|line| line.starts_with(start) && line.ends_with(end))
        };
        assert!(has(&["suite", "PASS"], &["not", "told"]), "{text}");
        assert!(has(&["first", "PASS"], &["NVIDIA", "H200"]), "{text}");
        assert!(has(&["unable", "SKIPPED"], &["not", "told"]), "{text}");
        assert!(has(&["later", "FAIL", "(3)"], &["not", "told"]), "{text}");
        assert!(has(&["2", "passed,", "1", "skipped,"], &["1", "failed"]), "{text}");
        assert!(!done.status.success());
    }
}
