//! `cargo ferrogrid test`: the tests of the packages that cargo would select.
//!
//! `side_by_side` runs the test programs, and `excerpt` repeats the failures at the end.

mod excerpt;
mod side_by_side;

use std::process::{ExitCode, Stdio};

use crate::Failure;
use crate::cargo::{self, Package};
use crate::selection::Selection;
use crate::verb::setup;

/// The arguments of `test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,
    /// All packages of the workspace [default: its default members, or the package in this folder].
    #[arg(long, conflicts_with = "package")]
    workspace: bool,
    /// All packages of the workspace but these.
    #[arg(long, value_name = "NAME", requires = "workspace")]
    exclude: Vec<String>,
    /// The arguments of `cargo test`, for instance `--test conformance -- saxpy`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Sets up, then tests the selected packages. With arguments, `cargo test` does the rest.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    // First, since cargo's own error for an unknown member is longer.
    let selected = options.selected()?;
    setup::ensure()?;
    let which = options.for_cargo();
    if options.arguments.is_empty() {
        return side_by_side::run(&which, &selected);
    }
    let arguments = options.arguments.iter().map(String::as_str);
    cargo::pass_through(["test"].into_iter().chain(which).chain(arguments))
}

impl Options {
    /// The packages that cargo selects with these options.
    fn selected(&self) -> Result<Vec<Package>, Failure> {
        if self.selection.name().is_some() {
            return self.selection.packages();
        }
        let (_, mut members) = cargo::workspace(Stdio::inherit)?;
        let is_excluded = |member: &Package| self.exclude.iter().any(|name| name == member.name());
        members.retain(|member| if self.workspace { !is_excluded(member) } else { member.is_default });
        Ok(members)
    }

    /// cargo's options that select them.
    fn for_cargo(&self) -> Vec<&str> {
        if let Some(name) = self.selection.name() {
            return vec!["--package", name];
        }
        let excluded = self.exclude.iter().flat_map(|name| ["--exclude", name]);
        self.workspace.then_some("--workspace").into_iter().chain(excluded).collect()
    }
}
