//! `cargo ferrogrid completions`: the completion script for a shell.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::{Failure, output};

/// The arguments of `completions`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The shell.
    shell: Shell,
}

/// Prints the script for the shell.
pub(crate) fn run(options: &Options, mut command: clap::Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    // The name of the program, which cargo's own completion looks up for its subcommand.
    clap_complete::generate(options.shell, &mut command, "cargo-ferrogrid", &mut script);
    output::line(String::from_utf8(script)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
