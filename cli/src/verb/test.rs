//! `cargo ferrogrid test`: the tests of the workspace, or of one of its packages.

use std::process::ExitCode;

use crate::Failure;
use crate::cargo;
use crate::selection::Selection;
use crate::verb::setup;

/// What `test` is told.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,
    /// What `cargo test` is told besides the packages, for instance `--test conformance -- saxpy`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Sets up, then tests everything, or the package that is named.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    if options.selection.name().is_some() {
        // Cargo's own words for a name that is no member's are longer.
        options.selection.packages()?;
    }
    setup::ensure()?;
    let which = match options.selection.name() {
        Some(name) => vec!["--package", name],
        None => vec!["--workspace"],
    };
    let arguments = options.arguments.iter().map(String::as_str);
    cargo::pass_through(["test"].into_iter().chain(which).chain(arguments))
}
