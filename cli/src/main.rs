//! `cargo ferrogrid <verb>`: parses the command line and calls the verb. The verbs call the builder and the
//! host crate, start cargo, and print.
//!
//! `verb` has a file for each verb. `cargo` calls cargo, on the packages of `selection`; `target` has the options for the
//! kernels of a package; `example` describes examples, `finding` what `doctor` finds. `output` and `progress` write to the terminal.

mod cargo;
mod example;
mod finding;
mod output;
mod progress;
mod selection;
mod target;
mod verb;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Build, run and test GPU kernels written in Rust.
#[derive(Parser)]
#[command(name = "cargo ferrogrid", bin_name = "cargo ferrogrid", version)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a package with a kernel that builds, runs and passes its tests as it is.
    New(verb::new::Options),
    /// Install what kernels are compiled with: a device toolchain, `core` and Ferrogrid's crates for it. Not interactive.
    Setup,
    /// Show what is installed and what is missing (toolchains, driver, GPUs, ptxas, libdevice), with advice.
    Doctor(verb::doctor::Options),
    /// Run an example of this package, optimised; or list or run all of them. Runs the set-up first.
    Run(verb::run::Options),
    /// Run the tests of this workspace. Runs the set-up first.
    Test(verb::test::Options),
    /// Show the compiled code of kernels: PTX or SASS beside the source, registers, spills, shared memory,
    /// stack and occupancy. Needs no GPU.
    Inspect(verb::inspect::Options),
    /// Make a Python package of kernels: a typed function for each, which launches it on arrays of CuPy, PyTorch or
    /// cuda.core. Needs no GPU.
    Export(verb::export::Options),
    /// Run the benches of this package on every device: tables, JSON and plots. Runs the set-up first.
    Bench(verb::bench::Options),
    /// Pack tests, examples and benches to run on a GPU machine without Rust.
    Bundle(verb::bundle::Options),
    /// Start a program several times, as ranks of this machine that communicate by `ferrogrid::nccl`.
    Launch(verb::launch::Options),
    /// Empty the cache of crates for the device, which all builds of a user share.
    Clean(verb::clean::Options),
    /// Print the completion script for a shell.
    Completions(verb::completions::Options),
}

/// The error of a verb: a text for the user.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let outcome = match CommandLine::parse_from(arguments()).verb {
        Verb::New(options) => verb::new::run(&options),
        Verb::Setup => verb::setup::run(),
        Verb::Doctor(options) => verb::doctor::run(&options),
        Verb::Run(options) => verb::run::run(&options),
        Verb::Test(options) => verb::test::run(&options),
        Verb::Inspect(options) => verb::inspect::run(&options),
        Verb::Export(options) => verb::export::run(&options),
        Verb::Bench(options) => verb::bench::run(&options),
        Verb::Bundle(options) => verb::bundle::run(&options),
        Verb::Launch(options) => verb::launch::run(&options),
        Verb::Clean(options) => verb::clean::run(&options),
        Verb::Completions(options) => verb::completions::run(&options, CommandLine::command()),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments, without the `ferrogrid` that cargo adds when it runs this as its subcommand.
fn arguments() -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == "ferrogrid") {
        arguments.remove(1);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::CommandLine::command().debug_assert();
    }
}
