//! `cargo ferrogrid run --all`: every example, one after the other, and a table of the outcomes. A line
//! `device NAME` in an example's output names its device. A last line `SKIPPED: WHY` means that it checked
//! nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::cargo::{self, Executable, Package};
use crate::example::Example;
use crate::verb::setup;

/// The outcome of an example.
struct Run {
    /// `PASS`, `SKIPPED`, or why it failed.
    result: String,
    time: Duration,
    /// Its device, if it named one.
    device: Option<String>,
}

const PASS: &str = "PASS";
const SKIPPED: &str = "SKIPPED";

/// Sets up, builds and runs all examples; fails if one fails.
pub(super) fn run(packages: &[Package], examples: &[Example]) -> Result<ExitCode, Failure> {
    setup::ensure()?;
    let mut executables = BTreeMap::new();
    for package in packages.iter().filter(|it| examples.iter().any(|example| example.package == it.name())) {
        let mut command = cargo::command();
        command.args(["build", "--release", "--examples", "--package", package.name()]);
        command.arg("--manifest-path").arg(&package.manifest);
        let of_package = examples.iter().filter(|example| example.package == package.name());
        command.args(of_package.flat_map(|example| package.needed_features("example", &example.name)));
        executables.insert(package.name(), cargo::build(&mut command)?);
    }
    let mut runs = Vec::new();
    for example in examples {
        println!("\n== {} {}", example.number, example.name);
        let of_package = executables.get(example.package.as_str()).map_or(&[][..], Vec::as_slice);
        runs.push((example.name.as_str(), run_one(example, of_package)?));
    }
    println!("\n{}", table(&runs));
    let count = |result: &str| runs.iter().filter(|(_, run)| run.result == result).count();
    let (passed, skipped) = (count(PASS), count(SKIPPED));
    let failed = runs.len() - passed - skipped;
    println!("{passed} passed, {skipped} skipped, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_one(example: &Example, executables: &[Executable]) -> Result<Run, Failure> {
    let built = executables.iter().find(|it| it.kind == "example" && it.name == example.name);
    let Some(executable) = built else {
        // cargo leaves out an example that requires a feature.
        return Ok(Run { result: "FAIL (not built)".to_owned(), time: Duration::ZERO, device: None });
    };
    watch(&executable.path)
}

/// Runs the program, shows its output, and finds its device there.
fn watch(program: &Path) -> Result<Run, Failure> {
    let start = Instant::now();
    let cannot = |error| format!("cannot run {}: {error}", program.display());
    let mut child = Command::new(program).stdout(Stdio::piped()).spawn().map_err(cannot)?;
    let output = child.stdout.take().ok_or("the output of an example is lost")?;
    let (device, last) = pass_on(BufReader::new(output)).map_err(cannot)?;
    let status = child.wait().map_err(cannot)?;
    Ok(Run { result: result(status, &last), time: start.elapsed(), device })
}

fn result(status: ExitStatus, last_line: &str) -> String {
    match status.success() {
        true if last_line.starts_with("SKIPPED: ") => SKIPPED.to_owned(),
        true => PASS.to_owned(),
        false => format!("FAIL ({status})"),
    }
}

/// Shows `output` as it arrives, and returns the first device that it names, and its last line.
fn pass_on(mut output: impl BufRead) -> std::io::Result<(Option<String>, String)> {
    let (mut line, mut device, mut last) = (Vec::new(), None, String::new());
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        last = String::from_utf8_lossy(&line).into_owned();
        device = device.or_else(|| device_in(&last));
        line.clear();
    }
    Ok((device, last))
}

fn device_in(line: &str) -> Option<String> {
    let name = line.strip_prefix("device")?;
    name.starts_with(char::is_whitespace).then(|| name.trim().to_owned())
}

fn table(runs: &[(&str, Run)]) -> String {
    let name_width = runs.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("example".len());
    let result_width = runs.iter().map(|(_, run)| run.result.len()).max().unwrap_or(0).max("result".len());
    let mut table = format!("{:<name_width$}  {:<result_width$}  seconds  device\n", "example", "result");
    for (name, Run { result, time, device }) in runs {
        let (seconds, device) = (time.as_secs_f64(), device.as_deref().unwrap_or("not told"));
        table += &format!("{name:<name_width$}  {result:<result_width$}  {seconds:7.2}  {device}\n");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_read_from_a_separate_line() {
        assert_eq!(device_in("device     NVIDIA H200\n").as_deref(), Some("NVIDIA H200"));
        assert_eq!(device_in("devices 3\n"), None);
        assert_eq!(device_in("the device is a CPU\n"), None);
    }

    #[cfg(unix)]
    #[test]
    fn an_example_that_checked_nothing_is_skipped() {
        use std::os::unix::process::ExitStatusExt;
        let (good, bad) = (ExitStatus::from_raw(0), ExitStatus::from_raw(0x300));
        assert_eq!(result(good, "PASS\n"), PASS);
        assert_eq!(result(good, "SKIPPED: no linker\n"), SKIPPED);
        assert!(result(bad, "SKIPPED: no linker\n").starts_with("FAIL"));
    }

    #[test]
    fn the_table_has_a_line_for_each_run() {
        let run = |result: &str, device: Option<&str>| Run {
            result: result.to_owned(),
            time: Duration::from_millis(1234),
            device: device.map(str::to_owned),
        };
        let runs =
            [("saxpy", run(PASS, Some("NVIDIA H200"))), ("a_long_name", run("FAIL (exit status: 1)", None))];
        let expected = "\
example      result                 seconds  device
saxpy        PASS                      1.23  NVIDIA H200
a_long_name  FAIL (exit status: 1)     1.23  not told
";
        assert_eq!(table(&runs), expected);
    }
}
