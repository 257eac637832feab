//! PTX of earlier builds, by the content of its inputs. A state of the source that was built once is not
//! built again, nor is one whose differences kernels do not see.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cache;
use crate::compile::inputs::Inputs;
use crate::error::Error;

/// The maximum total size in bytes.
const LIMIT: u64 = 64 << 20;

/// The folder with the PTX that is kept.
pub(crate) struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// The kept PTX of a package whose output is in `folder`.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Kept { folder: folder.join("kept") }
    }

    /// The PTX and the inputs that `make` returns, or those of an earlier build. `key` stands for the known
    /// input, `variables` are those of the compiler's process.
    ///
    /// # Errors
    /// Those of `make`, or if the folder cannot be written.
    pub(crate) fn find_or_compile(
        &self,
        key: &str,
        variables: &BTreeMap<String, String>,
        make: impl FnOnce() -> Result<(String, Inputs), Error>,
    ) -> Result<(String, Inputs), Error> {
        let inputs_file = self.folder.join(format!("{key}.d"));
        if let Ok(text) = cache::read(&inputs_file) {
            let inputs = Inputs::from_dep_info(&text);
            let file = self.file(key, &inputs, variables);
            if let Ok(text) = cache::read(&file) {
                touch(&file);
                return Ok((text, inputs));
            }
        }
        let (text, inputs) = make()?;
        cache::write(&inputs_file, &inputs.to_dep_info())?;
        cache::write(&self.file(key, &inputs, variables), &text)?;
        self.forget_oldest();
        Ok((text, inputs))
    }

    fn file(&self, key: &str, inputs: &Inputs, variables: &BTreeMap<String, String>) -> PathBuf {
        self.folder.join(format!("{key}-{}.txt", inputs.key(variables)))
    }

    /// Removes the least recently used files until the rest is within the limit.
    fn forget_oldest(&self) {
        let state = |file: PathBuf| {
            let metadata = file.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), file))
        };
        let mut files: Vec<_> = cache::entries(&self.folder).filter_map(state).collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
        // The newest stays, whatever its size.
        files.pop();
        for (_, length, file) in files {
            if total <= LIMIT {
                return;
            }
            // Another build may have removed it.
            let _ = fs::remove_file(file);
            total -= length;
        }
    }
}

/// Records the use of a file.
fn touch(file: &Path) {
    if let Ok(file) = fs::File::options().append(true).open(file) {
        // Without it the file is only forgotten earlier.
        let _ = file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn results_are_reused_until_an_input_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, data) = (Kept::in_folder(dir.path()), dir.path().join("data"));
        let (made, mode) = (Cell::new(0), Cell::new("fast"));
        let ask = |key: &str| {
            let inputs = Inputs { files: [data.clone()].into(), variables: ["MODE".to_owned()].into() };
            let make = || {
                made.set(made.get() + 1);
                Ok((format!("{key} {}", fs::read_to_string(&data).unwrap()), inputs))
            };
            let variables = BTreeMap::from([("MODE".to_owned(), mode.get().to_owned())]);
            kept.find_or_compile(key, &variables, make).unwrap().0
        };
        fs::write(&data, "one").unwrap();
        assert_eq!((ask("a"), ask("b"), ask("a")), ("a one".into(), "b one".into(), "a one".into()));
        assert_eq!(made.get(), 2);
        fs::write(&data, "two").unwrap();
        assert_eq!((ask("a"), made.get()), ("a two".into(), 3));
        fs::write(&data, "one").unwrap();
        assert_eq!((ask("a"), made.get()), ("a one".into(), 3), "the earlier state is still cached");
        mode.set("exact");
        assert_eq!((ask("a"), made.get()), ("a one".into(), 4));
    }

    #[test]
    fn a_failure_keeps_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, variables) = (Kept::in_folder(dir.path()), BTreeMap::new());
        let failed = kept.find_or_compile("a", &variables, || Err(Error::Metadata("x".to_owned())));
        assert!(failed.is_err());
        assert_eq!(
            kept.find_or_compile("a", &variables, || Ok(("new".to_owned(), Inputs::default()))).unwrap().0,
            "new"
        );
    }
}
