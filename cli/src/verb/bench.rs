//! `cargo ferrogrid bench`: builds the benches of the package, runs those that have the harness of
//! `ferrogrid-bench` on every device, and collects their results.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

use crate::Failure;
use crate::cargo::{self, Executable, Package};
use crate::output;
use crate::selection::Selection;
use crate::verb::setup;

/// The arguments of `bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The bench [default: all of the package].
    bench: Option<String>,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "PART")]
    case: Option<String>,
    /// The device: `cpu`, `cuda` or `cuda:N` [default: all].
    #[arg(long)]
    device: Option<String>,
    /// Measure the default block size only.
    #[arg(long)]
    no_sweep: bool,
    /// Run each case once, without measuring, to check that it works.
    #[arg(long)]
    quick: bool,
    /// The folder for results and plots [default: `ferrogrid/bench` in the target folder].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print the results as JSON instead of tables.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: Selection,
}

/// The mark of programs with the harness (`MARK` in `ferrogrid-bench`).
const MARK: &[u8] = b"ferrogrid-bench harness, interface 1";

/// Sets up, builds and runs the benches, and collects their results; fails if a bench fails.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let package = options.selection.one("benches", |it| !it.sources("bench").is_empty())?;
    setup::ensure()?;
    let benches = build(&package, options)?;
    let target = package.target_folder().unwrap_or(Path::new("target"));
    let out = options.out.clone().unwrap_or_else(|| target.join("ferrogrid/bench"));
    std::fs::create_dir_all(&out).map_err(|error| format!("cannot make {}: {error}", out.display()))?;
    let (mut reports, mut failed) = (Vec::new(), Vec::new());
    for bench in &benches {
        let (report, passed) = run_one(bench, &out, options)?;
        reports.extend(report);
        if !passed {
            failed.push(bench.name.as_str());
        }
    }
    let report = json!({ "schema": 1, "package": package.name(), "benches": reports });
    let results = out.join("results.json");
    std::fs::write(&results, format!("{report:#}\n"))
        .map_err(|error| format!("cannot write {}: {error}", results.display()))?;
    if options.json {
        output::line(format_args!("{report:#}"))?;
    } else {
        output::line(format_args!("results {}", results.display()))?;
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(format!("failed: {}", failed.join(", ")).into())
}

/// The selected benches that have the harness.
fn build(package: &Package, options: &Options) -> Result<Vec<Executable>, Failure> {
    let known: Vec<String> = package.sources("bench").into_iter().map(|(name, _)| name).collect();
    let mut command = cargo::command();
    command.args(["bench", "--no-run", "--package", package.name()]);
    command.arg("--manifest-path").arg(&package.manifest);
    match &options.bench {
        Some(name) if !known.contains(name) => {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("there is no bench `{name}`; there are: {known}").into());
        }
        Some(name) => drop(command.args(["--bench", name])),
        None => drop(command.arg("--benches")),
    }
    let mut executables = cargo::build(&mut command)?;
    executables.retain(|it| it.kind == "bench");
    let mut benches = Vec::new();
    for executable in executables {
        if has_harness(&executable.path)? {
            benches.push(executable);
        }
    }
    if benches.is_empty() {
        return Err(
            "no bench here calls ferrogrid_bench::main; the documentation of ferrogrid-bench shows how"
                .into(),
        );
    }
    Ok(benches)
}

fn has_harness(program: &Path) -> Result<bool, Failure> {
    let bytes =
        std::fs::read(program).map_err(|error| format!("cannot read {}: {error}", program.display()))?;
    Ok(bytes.windows(MARK.len()).any(|part| part == MARK))
}

/// Runs a bench: its report, if it wrote one, and whether it passed.
fn run_one(bench: &Executable, out: &Path, options: &Options) -> Result<(Option<Value>, bool), Failure> {
    let json = out.join(format!("{}.json", bench.name));
    // The report of an earlier run must not count for this one.
    if json.exists() {
        std::fs::remove_file(&json).map_err(|error| format!("cannot remove {}: {error}", json.display()))?;
    }
    let mut command = Command::new(&bench.path);
    command.arg("--json").arg(&json).arg("--plots").arg(out.join(&bench.name));
    command.args((!options.quick).then_some("--bench"));
    command.args(options.no_sweep.then_some("--no-sweep"));
    command.args(options.json.then_some("--quiet"));
    command.args(options.device.iter().flat_map(|device| ["--device", device]));
    command.args(&options.case);
    let status = command.status().map_err(|error| format!("cannot run {}: {error}", bench.path.display()))?;
    let report = match std::fs::read_to_string(&json) {
        Ok(text) => Some(serde_json::from_str(&text)?),
        Err(_) => None,
    };
    Ok((report, status.success()))
}
