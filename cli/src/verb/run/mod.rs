//! `cargo ferrogrid run`: runs an example or a program of the package, optimised; or lists or runs all
//! examples.

mod all;

use std::process::ExitCode;

use ferrogrid_build::inspect::Record;

use crate::Failure;
use crate::cargo::{self, Package};
use crate::example::Example;
use crate::selection::Selection;
use crate::verb::setup;

/// The arguments of `run`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The name of the example, or of a program of the package [default: the only program].
    #[arg(conflicts_with_all = ["list", "all"])]
    name: Option<String>,
    /// List the examples in learning order, without running one.
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// Run all examples in learning order, without arguments, and sum up.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    selection: Selection,
    /// The arguments of the example.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Lists the examples; or sets up, builds and runs.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let packages = options.selection.family()?;
    if options.all || options.list {
        let examples = Example::all(&packages)?;
        if examples.is_empty() {
            return Err(no_examples(&packages).into());
        }
        if options.all {
            return all::run(&packages, &examples);
        }
        list(&examples);
        return Ok(ExitCode::SUCCESS);
    }
    let program = program(options.name.as_deref(), &packages)?;
    setup::ensure()?;
    let mut command = cargo::command();
    command.args(["run", "--release", "--manifest-path"]).arg(&program.package.manifest);
    let kind = program.kind.trim_start_matches('-');
    if kind == "example" && compiles_alone(program.package) {
        command.env(ferrogrid_build::ONLY, format!("{kind}-{}", program.name));
    }
    command
        .args(["--package", program.package.name(), program.kind, &program.name])
        .args(program.package.needed_features(kind, &program.name))
        .arg("--")
        .args(&options.arguments);
    cargo::run(&mut command)
}

/// Whether only the kernels of the example are compiled: in a package with many, of which none has been built with the others.
/// A later build of all compiles the rest.
fn compiles_alone(package: &Package) -> bool {
    let builds = package.target_folder().map(|folder| folder.join("release/build"));
    let builds = builds.and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let prefix = format!("{}-", package.name());
    let own = builds.filter(|build| build.file_name().to_string_lossy().starts_with(&prefix));
    let mut records = own.filter_map(|build| Record::load(&build.path().join("out")).ok());
    package.library().is_none()
        && package.sources("example").len() > 1
        && !records.any(|record| record.is_whole())
}

/// An example or a program.
struct Program<'a> {
    package: &'a Package,
    /// cargo's option that names it.
    kind: &'static str,
    name: String,
}

/// The targets of `packages` of a kind, which cargo chooses by `option`.
fn programs<'a>(packages: &'a [Package], kind: &str, option: &'static str) -> Vec<Program<'a>> {
    let of_package = |package: &'a Package| {
        let names = package.sources(kind).into_iter().map(|(name, _)| name);
        names.map(move |name| Program { package, kind: option, name })
    };
    packages.iter().flat_map(of_package).collect()
}

/// The selected example or program.
fn program<'a>(wanted: Option<&str>, packages: &'a [Package]) -> Result<Program<'a>, Failure> {
    let (examples, bins) = (programs(packages, "example", "--example"), programs(packages, "bin", "--bin"));
    let names =
        |programs: &[Program<'_>]| programs.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
    let there_are = match (names(&examples), names(&bins)) {
        (examples, bins) if examples.is_empty() && bins.is_empty() => "there are none".to_owned(),
        (examples, bins) if bins.is_empty() => format!("there are the examples {examples}"),
        (examples, bins) if examples.is_empty() => format!("there are the programs {bins}"),
        (examples, bins) => format!("there are the examples {examples} and the programs {bins}"),
    };
    let (mut found, what) = match wanted {
        Some(wanted) => {
            let is_it = |it: &Program<'_>| it.name == wanted;
            let found: Vec<_> = if examples.iter().any(is_it) { examples } else { bins };
            (found.into_iter().filter(is_it).collect::<Vec<_>>(), format!("example or program `{wanted}`"))
        }
        None => (bins, "program that is the only one, so a name is needed".to_owned()),
    };
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(format!("there is no {what}; {there_are}").into()),
        _ if wanted.is_none() => Err(format!("there is no {what}; {there_are}").into()),
        _ => {
            let packages: Vec<&str> = found.iter().map(|it| it.package.name()).collect();
            let packages = packages.join(", ");
            Err(format!("several packages have an {what}; choose one with --package: {packages}").into())
        }
    }
}

fn no_examples(packages: &[Package]) -> String {
    let names: Vec<&str> = packages.iter().map(Package::name).collect();
    format!("no examples in {}; `cargo ferrogrid run` without a name runs its program", names.join(", "))
}

fn list(examples: &[Example]) {
    let width = |text: fn(&Example) -> &str| examples.iter().map(|it| text(it).len()).max().unwrap_or(0);
    let (number_width, name_width) = (width(|it| &it.number), width(|it| &it.name));
    for Example { number, name, summary, .. } in examples {
        let line = format!("{number:<number_width$}  {name:<name_width$}  {summary}");
        println!("{}", line.trim());
    }
}
