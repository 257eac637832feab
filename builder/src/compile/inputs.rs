//! The files and variables that a compiler has read, as rustc's dep-info lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::cache;
use crate::output::directives::rerun_if_changed;

/// Files and variables that something was compiled from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inputs {
    /// Files that can change.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Names of environment variables.
    pub(crate) variables: BTreeSet<String>,
}

impl Inputs {
    /// Reads rustc's dep-info: `target: file file` and `# env-dep:NAME=value`.
    pub(crate) fn from_dep_info(text: &str) -> Self {
        let mut inputs = Inputs::default();
        for line in text.lines() {
            if let Some(variable) = line.strip_prefix("# env-dep:") {
                let name = variable.split('=').next().unwrap_or(variable);
                inputs.variables.insert(name.to_owned());
            } else if let Some((_, files)) = line.split_once(": ") {
                inputs.files.extend(split_escaped(files).map(PathBuf::from));
            }
        }
        inputs
    }

    /// The same as dep-info of a target without a name.
    pub(crate) fn to_dep_info(&self) -> String {
        let variables = self.variables.iter().map(|name| format!("# env-dep:{name}\n"));
        let files = self.files.iter().map(|file| file.to_string_lossy().replace(' ', "\\ "));
        variables.chain(files.map(|file| format!(": {file}\n"))).collect()
    }

    /// Adds all of `others`.
    pub(crate) fn extend(&mut self, others: &Inputs) {
        self.files.extend(others.files.iter().cloned());
        self.variables.extend(others.variables.iter().cloned());
    }

    /// A hash of the content of the files, and of the values that `variables` have for these names.
    pub(crate) fn key(&self, variables: &BTreeMap<String, String>) -> String {
        let mut content = Vec::new();
        for name in &self.variables {
            content.extend(format!("{name} {:?}\n", variables.get(name)).into_bytes());
        }
        for file in &self.files {
            let key = fs::read(file).map_or_else(|_| "missing".to_owned(), |it| cache::key(&it));
            content.extend(file.to_string_lossy().as_bytes());
            content.extend(key.into_bytes());
        }
        cache::key(&content)
    }

    /// The directives that make cargo rerun the build step when one of them changes.
    pub(crate) fn directives(&self) -> impl Iterator<Item = String> {
        let files = self.files.iter().map(|file| rerun_if_changed(file));
        files.chain(self.variables.iter().map(|name| format!("cargo::rerun-if-env-changed={name}")))
    }
}

/// The words of a line, in which `\ ` is a space that belongs to a word.
fn split_escaped(line: &str) -> impl Iterator<Item = String> {
    const SPACE: &str = "\u{0}";
    let words = line.replace("\\ ", SPACE);
    let words: Vec<String> = words.split_whitespace().map(|word| word.replace(SPACE, " ")).collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dep_info_names_included_files_and_variables() {
        let text = "/o/app.s: /o/main.rs /p/data\\ 1.bin\n\n/o/main.rs:\n/p/data\\ 1.bin:\n\n\
                    # env-dep:CARGO_PKG_NAME=app\n# env-dep:UNSET\n# env-dep:TWO=a: b\\nc\n";
        let inputs = Inputs::from_dep_info(text);
        assert_eq!(inputs.files, ["/o/main.rs", "/p/data 1.bin"].map(PathBuf::from).into());
        assert_eq!(inputs.variables, ["CARGO_PKG_NAME", "UNSET", "TWO"].map(str::to_owned).into());
        assert_eq!(Inputs::from_dep_info(&inputs.to_dep_info()), inputs);
    }
}
