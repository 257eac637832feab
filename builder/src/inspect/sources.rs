//! The source files that line tables name, which of them are the user's, and their lines.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the PTX names it: below the workspace's root, `/rustc/library/..`, or `crate-version/..`.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// The source files of a program, each read once.
#[derive(Debug)]
pub struct Sources {
    workspace_root: PathBuf,
    /// Folders of packages outside the workspace, and their names in PTX.
    folders: Vec<(PathBuf, String)>,
    /// The folder of `ferrogrid-device`, if it is a local one.
    device_crate: Option<PathBuf>,
    read: RefCell<BTreeMap<String, Option<Rc<[String]>>>>,
}

impl Sources {
    pub(super) fn new(
        workspace_root: PathBuf,
        folders: Vec<(PathBuf, String)>,
        device_crate: Option<PathBuf>,
    ) -> Self {
        Sources { workspace_root, folders, device_crate, read: RefCell::default() }
    }

    /// Whether a file belongs to the user: it exists on this machine, and is not part of Rust, of Ferrogrid
    /// or of a registry.
    pub fn is_own(&self, file: &str) -> bool {
        self.own_path(file).is_some()
    }

    /// The text of a line of the user's; `None` if it is not the user's, or no longer exists.
    pub fn line(&self, place: &Place) -> Option<String> {
        let lines = self.lines(&place.file)?;
        let at = usize::try_from(place.line).ok()?.checked_sub(1)?;
        lines.get(at).cloned()
    }

    /// The name of a file in the PTX.
    pub(super) fn name_of(&self, file: &Path) -> String {
        file.strip_prefix(&self.workspace_root).unwrap_or(file).display().to_string()
    }

    fn lines(&self, file: &str) -> Option<Rc<[String]>> {
        let read = || {
            let text = std::fs::read_to_string(self.own_path(file)?).ok()?;
            Some(text.lines().map(str::to_owned).collect())
        };
        self.read.borrow_mut().entry(file.to_owned()).or_insert_with(read).clone()
    }

    fn own_path(&self, file: &str) -> Option<PathBuf> {
        let below = self.workspace_root.join(file);
        let of_folder =
            self.folders.iter().filter_map(|(folder, name)| Some(folder.join(file.strip_prefix(name)?)));
        let found = [below].into_iter().chain(of_folder).find(|path| path.is_file())?;
        let is_ferrogrids = self.device_crate.as_ref().is_some_and(|folder| found.starts_with(folder));
        (!is_ferrogrids).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn own_files_are_those_of_the_workspace_and_of_local_packages() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["w/src/main.rs", "w/device/src/lib.rs", "shapes/src/lib.rs"] {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), "one\n  two\n").unwrap();
        }
        let folders = vec![(dir.path().join("shapes"), "shapes/".to_owned())];
        let sources = Sources::new(dir.path().join("w"), folders, Some(dir.path().join("w/device")));
        let line = |file: &str, line| sources.line(&Place { file: file.to_owned(), line });
        assert_eq!(line("src/main.rs", 2).as_deref(), Some("  two"));
        assert_eq!(line("shapes/src/lib.rs", 1).as_deref(), Some("one"));
        assert_eq!(line("src/main.rs", 3), None);
        assert_eq!(line("src/main.rs", 0), None);
        for file in ["device/src/lib.rs", "/rustc/library/core/src/cmp.rs", "libm-0.2.16/src/lib.rs"] {
            assert!(!sources.is_own(file), "{file}");
        }
        assert_eq!(sources.name_of(&dir.path().join("w/src/main.rs")), "src/main.rs");
    }
}
