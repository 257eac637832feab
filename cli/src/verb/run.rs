//! `cargo ferrogrid run`: an example of the package at hand, optimised. It must not know what the
//! example does.

use std::process::ExitCode;

use crate::Failure;
use crate::cargo::{self, Package};
use crate::verb::setup;

/// What `run` is told.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The example's name.
    #[arg(required_unless_present = "list")]
    example: Option<String>,
    /// Name the examples there are, and run none.
    #[arg(long)]
    list: bool,
    /// What the example itself is told.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Sets up, builds, runs.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let examples = Package::current()?.targets("example");
    let Some(wanted) = options.example.as_ref().filter(|_| !options.list) else {
        for example in examples {
            println!("{example}");
        }
        return Ok(ExitCode::SUCCESS);
    };
    if !examples.contains(wanted) {
        return Err(format!("there is no example `{wanted}`; there are: {}", examples.join(", ")).into());
    }
    setup::ensure()?;
    let fixed = ["run", "--release", "--example", wanted, "--"].map(str::to_owned);
    cargo::pass_through(fixed.iter().chain(&options.arguments))
}
