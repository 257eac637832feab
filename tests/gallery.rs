//! The examples: each has its number in the learning order, is in the folder of its chapter, stays short, and
//! passes on the CPU device. `cargo test --workspace` builds them before.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let examples = sources();
    let (numbers, folders) = (examples.clone(), examples.clone());
    let mut trials = vec![
        Trial::test("numbers_are_unique", move || unique_numbers(&numbers)),
        Trial::test("each_chapter_has_a_folder", move || a_folder_for_each_chapter(&folders)),
    ];
    for Example { name, text, .. } in examples {
        let source = (name.clone(), text);
        trials.push(Trial::test(format!("{name}::reads_well"), move || reads_well(&source.0, &source.1)));
        let left_out = is_left_out(&name);
        trials
            .push(Trial::test(format!("{name}::passes"), move || passes(&name)).with_ignored_flag(left_out));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The source of an example.
#[derive(Clone)]
struct Example {
    folder: PathBuf,
    name: String,
    text: String,
}

/// The examples by name.
fn sources() -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    // `candle` is a package: beside its manifest it has only a build.rs.
    let files = entries(&folder).filter(|path| path.is_dir()).flat_map(|chapter| entries(&chapter));
    let files =
        files.filter(|path| path.extension().is_some_and(|it| it == "rs") && !path.ends_with("build.rs"));
    let example = |path: PathBuf| Example {
        folder: path.parent().expect("a folder").to_owned(),
        name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
        text: std::fs::read_to_string(path).expect("a text"),
    };
    let mut sources: Vec<_> = files.map(example).collect();
    sources.sort_by_cached_key(|example| example.name.clone());
    assert!(!sources.is_empty());
    sources
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
}

/// The number that the first line begins with.
fn number(text: &str) -> Option<&str> {
    let number = text.strip_prefix("//! ")?.split(' ').next()?;
    let (chapter, place) = number.split_once('.')?;
    (chapter.parse::<u32>().is_ok() && place.parse::<u32>().is_ok()).then_some(number)
}

fn unique_numbers(examples: &[Example]) -> Result<(), Failed> {
    let mut names = HashMap::new();
    for Example { name, text, .. } in examples {
        let number = number(text).ok_or_else(|| format!("{name} has no number"))?;
        if let Some(other) = names.insert(number, name) {
            return Err(format!("{name} and {other} both have the number {number}").into());
        }
    }
    Ok(())
}

fn a_folder_for_each_chapter(examples: &[Example]) -> Result<(), Failed> {
    let chapter = |example: &Example| number(&example.text)?.split('.').next().map(str::to_owned);
    for (at, one) in examples.iter().enumerate() {
        for other in &examples[at + 1..] {
            if (chapter(one) == chapter(other)) != (one.folder == other.folder) {
                let names = format!("{} and {}", one.name, other.name);
                return Err(format!("{names}: a folder has the examples of one chapter").into());
            }
        }
    }
    Ok(())
}

fn reads_well(name: &str, text: &str) -> Result<(), Failed> {
    let number = number(text).ok_or("the first line does not begin with a number such as 2.3")?;
    // Chapters of the book show what is between anchors.
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("// ANCHOR")).count();
    if lines > 150 {
        return Err(format!("{lines} lines; an example has 150 at most").into());
    }
    let header: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let title = format!("//! {number} {name}: ");
    let command = format!("`cargo ferrogrid run {name}");
    for part in [title.as_str(), "Shows: ", "Look at: ", command.as_str()] {
        if !header.contains(part) {
            return Err(format!("the header lacks {part:?}").into());
        }
    }
    Ok(())
}

/// Examples that check nothing on the CPU device, and say so.
const ONLY_ON_A_GPU: [&str; 5] = ["cublas", "cufft", "driver_calls", "linking", "source_module"];

/// Examples that need a feature of their package, and may not be built.
const WITH_A_FEATURE: [&str; 1] = ["source_module"];

/// The program that cargo has built beside this test.
fn program(name: &str) -> Result<PathBuf, Failed> {
    let this = std::env::current_exe()?;
    let profile = this.ancestors().nth(2).ok_or("this test is not in a target folder")?;
    Ok(profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION))
}

fn is_left_out(name: &str) -> bool {
    WITH_A_FEATURE.contains(&name) && program(name).is_ok_and(|program| !program.exists())
}

fn passes(name: &str) -> Result<(), Failed> {
    let program = program(name)?;
    if !program.exists() {
        return Err(format!(
            "{} is not built: cargo build -p ferrogrid-examples --examples",
            program.display()
        )
        .into());
    }
    let mut command = Command::new(program);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("FERROGRID_DEVICE", "cpu");
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    let is_skipped = ONLY_ON_A_GPU.contains(&name) && last.starts_with("SKIPPED: ");
    if output.status.success() && (last == "PASS" || is_skipped) {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}\n{text}{error}", output.status).into())
}
