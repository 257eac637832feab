//! Runs the commands of the book and the README, checks their settings, and compares the output shown. It
//! takes minutes, so it is `#[ignore]`d and `.ci/run` requests it. A block's language and first line
//! determine how it is run; `chapters.rs` rejects blocks that no test runs.

mod markdown;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ferrogrid::Device;
use markdown::{Block, chapter, docs, pages};

/// A block, and the file that it is in.
struct Place {
    file: String,
    block: Block,
}

/// How a block is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Begins in an empty folder.
    FirstSteps,
    /// Commands in a checkout of the repository.
    Commands,
    /// Settings of a package next to a clone of the repository.
    Settings,
    /// A debugger session, with input and output.
    Debugger,
    /// A command with its output.
    Capture,
    /// Compiled by rustdoc or in a listing; or not code.
    Elsewhere,
}

fn kind(block: &Block) -> Kind {
    match block.words() {
        ("sh", _) if block.text.contains("git clone") => Kind::FirstSteps,
        ("sh", _) => Kind::Commands,
        ("toml", _) => Kind::Settings,
        ("text", words) if words.is_empty() && block.text.contains("\n(gdb) ") => Kind::Debugger,
        ("text", words) if words.is_empty() => Kind::Capture,
        ("rust", _) | ("text", _) => Kind::Elsewhere,
        other => panic!("unknown kind of block {other:?}"),
    }
}

fn root() -> PathBuf {
    docs().parent().unwrap().to_owned()
}

fn blocks(wanted: Kind) -> Vec<Place> {
    let mut found = Vec::new();
    for path in pages() {
        let file = path.strip_prefix(root()).unwrap().display().to_string();
        let blocks = chapter(&path).blocks.into_iter().filter(|block| kind(block) == wanted);
        found.extend(blocks.map(|block| Place { file: file.clone(), block }));
    }
    assert!(!found.is_empty(), "no {wanted:?} is left");
    found
}

/// A folder with a program `cargo` that shadows the real one: its text, with `@NAME@` replaced.
fn stand_in(folder: &Path, text: &str, names: &[(&str, &Path)]) -> PathBuf {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let place = |text: String, (name, path): &(&str, &Path)| text.replace(name, path.to_str().unwrap());
    fs::write(bin.join("cargo"), names.iter().fold(text.to_owned(), place)).unwrap();
    fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

/// A shell that runs `script` in `folder` and ends where a command fails.
fn shell(script: &str, folder: &Path, bin: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(folder).stdin(Stdio::null());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([bin.to_owned()].into_iter().chain(std::env::split_paths(&path)));
    command.env("PATH", path.unwrap());
    command
}

/// Its output; standard error is inherited.
fn printed(command: &mut Command, place: &str) -> String {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("== {place}\n{text}");
    assert!(output.status.success(), "{place}: {}", output.status);
    text
}

/// Leaves a package the versions of the workspace, so that cargo resolves nothing.
const FIRST_CARGO: &str = r#"#!/bin/sh
[ -f Cargo.toml ] && ! [ -f Cargo.lock ] && cp "@LOCK@" Cargo.lock
exec "@CARGO@" "$@"
"#;

/// Builds the programs that CI has already built, unoptimised.
const LATER_CARGO: &str = r#"#!/bin/sh
verb=$1
shift
case $verb in
ferrogrid)
    "@CARGO@" build --quiet --package cargo-ferrogrid || exit
    CARGO=$0 exec "@TARGET@/debug/cargo-ferrogrid" "$@" ;;
bench) exec "@CARGO@" bench --profile dev "$@" ;;
run) [ "$1" = --release ] && shift ;;
esac
exec "@CARGO@" "$verb" "$@"
"#;

/// The first steps of a reader, from an empty folder, with a new shell; and then each block of settings in a
/// package next to theirs.
#[test]
#[ignore = "builds a clone and a package, in minutes"]
fn the_first_steps_lead_to_a_package_that_takes_all_settings() {
    let folder = tempfile::tempdir().unwrap();
    let lock = root().join("Cargo.lock");
    let paths = std::env::var_os("PATH").unwrap();
    let cargo = std::env::split_paths(&paths).map(|path| path.join("cargo")).find(|path| path.is_file());
    let names = [("@LOCK@", &*lock), ("@CARGO@", &*cargo.unwrap())];
    let bin = stand_in(folder.path(), FIRST_CARGO, &names);
    let steps = blocks(Kind::FirstSteps);
    let [steps] = steps.as_slice() else { panic!("there are {} blocks of first steps", steps.len()) };
    let hour = folder.path().join("hour");
    fs::create_dir(&hour).unwrap();
    let script = steps.block.text.as_str();
    let url = script.split_whitespace().find(|word| word.starts_with("https://")).unwrap();
    let mut command = shell(script, &hour, &bin);
    forget_cargo(&mut command);
    let here = format!("url.{}.insteadOf", root().display());
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", here).env("GIT_CONFIG_VALUE_0", url);
    let text = printed(command.env("FERROGRID_DEVICE", "cpu"), &steps.file);
    for fact in ["[13.0, 26.0, 39.0]", "test result: ok. 1 passed", "kernels::saxpy, bin `mine`, for sm_75"] {
        assert!(text.contains(fact), "{fact} is not in what it printed");
    }
    for (number, place) in blocks(Kind::Settings).iter().enumerate() {
        let package = hour.join(format!("settings-{number}"));
        settle(&package, &hour.join("mine"), place);
        // Dependencies of other platforms were never fetched.
        let script =
            "cargo metadata --offline --filter-platform host-tuple --format-version 1 >metadata.json";
        let mut command = shell(script, &package, &bin);
        forget_cargo(&mut command);
        printed(&mut command, &place.file);
    }
}

/// A package like `mine` with the settings of a block. A bench that they name is the program that the chapter shows next.
fn settle(package: &Path, mine: &Path, place: &Place) {
    fs::create_dir_all(package.join("src")).unwrap();
    for file in ["build.rs", "src/main.rs", "Cargo.lock"] {
        fs::copy(mine.join(file), package.join(file)).unwrap();
    }
    let mut manifest: toml::Table = fs::read_to_string(mine.join("Cargo.toml")).unwrap().parse().unwrap();
    let settings: toml::Table =
        place.block.text.parse().unwrap_or_else(|error| panic!("{}: {error}", place.file));
    for bench in settings.get("bench").and_then(toml::Value::as_array).into_iter().flatten() {
        let blocks = chapter(&root().join(&place.file)).blocks;
        let after = blocks.iter().skip_while(|block| block.text != place.block.text);
        let program = after.skip(1).find(|block| block.words().0 == "rust").unwrap();
        fs::create_dir_all(package.join("benches")).unwrap();
        let name = format!("benches/{}.rs", bench["name"].as_str().unwrap());
        fs::write(package.join(name), program.text.replace("(host_only)", "")).unwrap();
    }
    for (key, value) in settings {
        match (manifest.get_mut(&key), value) {
            (Some(toml::Value::Table(there)), toml::Value::Table(new)) => there.extend(new),
            (_, value) => drop(manifest.insert(key, value)),
        }
    }
    fs::write(package.join("Cargo.toml"), manifest.to_string()).unwrap();
}

/// Removes the variables that cargo sets for tests: a reader has none of them.
fn forget_cargo(command: &mut Command) {
    let kept = ["CARGO_HOME"];
    let is_cargos = |name: &str| name.starts_with("CARGO") || name.starts_with("RUSTUP_TOOLCHAIN");
    for (name, _) in std::env::vars() {
        if is_cargos(&name) && !kept.contains(&name.as_str()) {
            command.env_remove(name);
        }
    }
    for name in ["RUSTFLAGS", "FERROGRID_ARCH", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
}

/// The stand-in for blocks that begin in a checkout.
fn later_bin(folder: &Path) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    stand_in(folder, LATER_CARGO, &[("@CARGO@", Path::new(env!("CARGO"))), ("@TARGET@", target)])
}

/// `text` without commands that `.ci/run` runs as separate steps.
fn without_steps_of_ci(text: &str) -> String {
    let steps = fs::read_to_string(root().join(".ci/run")).unwrap();
    let steps: BTreeSet<&str> = steps.lines().collect();
    let command = |line: &str| line.split('#').next().unwrap().trim().to_owned();
    let lines = text.lines().filter(|line| {
        let is_step = steps.contains(command(line).as_str());
        if is_step {
            println!("`{}` is a step of .ci/run", command(line));
        }
        !is_step
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
#[ignore = "builds examples and benches"]
fn commands_in_the_repository_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let bin = later_bin(folder.path());
    for Place { file, block } in blocks(Kind::Commands) {
        let mut script = without_steps_of_ci(&block.text);
        if block.words().1.contains(&"gpu") && Device::cuda(0).is_err() {
            // The same on the available device.
            script = script.replace("--device cuda", "--device cpu");
        }
        let mut command = shell(&script, &root(), &bin);
        // Their measurements take hours.
        printed(command.env("FERROGRID_MATH_ERRORS_LIMIT", "2000"), &file);
    }
}

/// The output shown agrees with the current output in everything that does not depend on machine or compiler.
#[test]
#[ignore = "builds benches, and wants ptxas and nvdisasm"]
fn captures_are_of_commands_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let bin = later_bin(folder.path());
    for Place { file, block } in blocks(Kind::Capture) {
        let (command, shown) = block.text.split_once('\n').unwrap();
        let command = command.strip_prefix("$ ").unwrap();
        assert!(!shown.contains("\n$ "), "{file}: a capture is of one command");
        // A full bench takes minutes.
        let command = command.replace("cargo ferrogrid bench", "cargo ferrogrid bench --quick");
        let now = printed(&mut shell(&command, &root(), &bin), &file);
        let (shown, now) = (facts(shown), facts(&now));
        let missing: Vec<&String> = shown.difference(&now).collect();
        assert!(missing.is_empty(), "{file}: `{command}` no longer prints: {missing:#?}");
        assert!(!shown.is_empty(), "{file}: no line of `{command}` was compared");
    }
}

/// The parts of the lines that are the same on every machine.
fn facts(text: &str) -> BTreeSet<String> {
    text.lines().flat_map(facts_of_line).collect()
}

fn facts_of_line(line: &str) -> Vec<String> {
    // A bench that only tries its cases names them in one line.
    if let Some((_, cases)) = line.split_once(" tried once (measure with --bench): ") {
        return cases.split(", ").map(|case| format!("case {case}")).collect();
    }
    let Some(first) = line.split_whitespace().next() else { return Vec::new() };
    let is_source = first.parse::<u32>().is_ok() && line.contains(" | ");
    let fact = match first {
        _ if is_source || line.starts_with("kernels::") => line,
        // The components that doctor reports; other compilers may or may not exist.
        "ok" | "note" | "wrong" if !line.contains("other compiler") => {
            line.get(7..24).unwrap_or_default().trim()
        }
        // The rows of tables: an architecture, a bench's case.
        _ if line.contains(" usual ") => return vec![format!("case {first}")],
        _ if line.starts_with("sm_") => first,
        "registers" => "registers",
        _ => return Vec::new(),
    };
    vec![fact.to_owned()]
}

/// The debugger stops at the chapter's line, in the chapter's thread.
#[test]
#[ignore = "wants gdb, and a build with its names"]
fn a_debugger_shows_what_the_chapter_says() {
    if Command::new("gdb").arg("--version").output().is_err() {
        println!("== there is no gdb on this machine: its session is not replayed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bin = later_bin(folder.path());
    for Place { file, block } in blocks(Kind::Debugger) {
        let (typed, shown): (Vec<&str>, Vec<&str>) =
            block.text.lines().partition(|line| line.starts_with("$ ") || line.starts_with("(gdb) "));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let shell_lines = typed.iter().filter_map(|line| line.strip_prefix("$ "));
        let script: String = shell_lines.map(|line| format!("{line}\n")).collect();
        let typed = typed.iter().filter_map(|line| line.strip_prefix("(gdb) "));
        let typed: String = typed.map(|line| format!(" -ex '{line}'")).collect();
        let script = script
            .replace("gdb ", &format!("gdb -batch -iex 'set debuginfod enabled off'{typed} "))
            .replace("target/", &format!("{}/", target.display()));
        let now = printed(&mut shell(&script, &root(), &bin), &file);
        let words = shown.iter().flat_map(|line| line.split_whitespace());
        let is_fact =
            |word: &&str| ["examples/", "__ferrogrid_", "[33]"].iter().any(|part| word.contains(part));
        let facts: Vec<&str> = words.filter(is_fact).collect();
        assert!(facts.len() > 4, "{file}: {facts:?}");
        let missing: Vec<&&str> = facts.iter().filter(|fact| !now.contains(**fact)).collect();
        assert!(missing.is_empty(), "{file}: the debugger no longer shows: {missing:?}");
    }
}
