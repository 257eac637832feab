//! `cargo ferrogrid run`: an example of the package at hand, optimised; or the list of them; or all of
//! them, and how each went. It must not know what an example does.

mod all;

use std::process::ExitCode;

use crate::Failure;
use crate::cargo::{self, Package};
use crate::example::Example;
use crate::verb::setup;

/// What `run` is told.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The example's name.
    #[arg(required_unless_present_any = ["list", "all"], conflicts_with_all = ["list", "all"])]
    example: Option<String>,
    /// Show the examples there are, in learning order, and run none.
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// Run all examples in learning order, each with nothing told, and sum up.
    #[arg(long)]
    all: bool,
    /// What the example itself is told.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Lists, or sets up, builds, runs.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let package = Package::current()?;
    let examples = Example::all(&package)?;
    if options.all {
        return all::run(&package, &examples);
    }
    let Some(wanted) = &options.example else {
        list(&examples);
        return Ok(ExitCode::SUCCESS);
    };
    if !examples.iter().any(|example| example.name == *wanted) {
        let names: Vec<&str> = examples.iter().map(|example| example.name.as_str()).collect();
        return Err(format!("there is no example `{wanted}`; there are: {}", names.join(", ")).into());
    }
    setup::ensure()?;
    let fixed = ["run", "--release", "--example", wanted, "--"].map(str::to_owned);
    cargo::pass_through(fixed.iter().chain(&options.arguments))
}

fn list(examples: &[Example]) {
    let width = |text: fn(&Example) -> &str| examples.iter().map(|it| text(it).len()).max().unwrap_or(0);
    let (number_width, name_width) = (width(|it| &it.number), width(|it| &it.name));
    for Example { number, name, summary } in examples {
        let line = format!("{number:<number_width$}  {name:<name_width$}  {summary}");
        println!("{}", line.trim());
    }
}
