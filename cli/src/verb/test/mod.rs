//! `cargo ferrogrid test`: the tests of the workspace, or of one of its packages.
//!
//! `side_by_side` runs the test programs, and `excerpt` repeats the failures at the end.

mod excerpt;
mod side_by_side;

use std::process::ExitCode;

use crate::Failure;
use crate::cargo;
use crate::selection::Selection;
use crate::verb::setup;

/// The arguments of `test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,
    /// The arguments of `cargo test`, for instance `--test conformance -- saxpy`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Sets up, then tests the workspace, or the named package. With arguments, `cargo test` does the rest.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    if options.selection.name().is_some() {
        // cargo's own error for an unknown member is longer.
        options.selection.packages()?;
    }
    setup::ensure()?;
    let which = match options.selection.name() {
        Some(name) => vec!["--package", name],
        None => vec!["--workspace"],
    };
    if options.arguments.is_empty() {
        return side_by_side::run(&which);
    }
    let arguments = options.arguments.iter().map(String::as_str);
    cargo::pass_through(["test"].into_iter().chain(which).chain(arguments))
}
