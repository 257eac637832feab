//! `cargo ferrogrid test`: the tests of the workspace. It must not know what they test.

use std::process::ExitCode;

use crate::Failure;
use crate::cargo;
use crate::verb::setup;

/// What `test` is told.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What `cargo test` is told besides `--workspace`, for instance `--test conformance -- saxpy`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Sets up, then tests everything.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    setup::ensure()?;
    let fixed = ["test", "--workspace"].map(str::to_owned);
    cargo::pass_through(fixed.iter().chain(&options.arguments))
}
