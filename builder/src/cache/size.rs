//! The size of the cache, and its limit: the oldest entries are removed first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cache::{self, Lock};
use crate::error::Error;

/// The variable that sets the limit, in MiB.
pub const LIMIT_VARIABLE: &str = "FERROGRID_CACHE_LIMIT";

/// The limit in MiB unless [`LIMIT_VARIABLE`] says otherwise.
pub const DEFAULT_LIMIT: u64 = 4096;

/// Ferrogrid's folders in the cache; anything else there is left alone.
const FOLDERS: [&str; 4] = ["core", "crates", "probes", "programs"];

/// The prefix of the folders of set-ups, which they remove unless interrupted.
const SETUPS: &str = "setup-";

/// The part of the cache for one compiler, and of `core` for one architecture, or for one program compiled at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its folder.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The time of its last build.
    pub built: SystemTime,
}

/// The limit in bytes.
///
/// # Errors
/// [`Error::Variable`] if [`LIMIT_VARIABLE`] is no number.
pub fn limit() -> Result<u64, Error> {
    parse_limit(&std::env::var(LIMIT_VARIABLE).unwrap_or_default())
}

fn parse_limit(text: &str) -> Result<u64, Error> {
    let mebibytes = match text.trim() {
        "" => Some(DEFAULT_LIMIT),
        number => number.parse().ok(),
    };
    let bytes = mebibytes.and_then(|it| it.checked_mul(1 << 20));
    bytes.ok_or_else(|| Error::Variable {
        name: LIMIT_VARIABLE,
        value: text.to_owned(),
        expected: "a number of MiB, such as 4096",
    })
}

/// What the cache at `root` holds for each compiler and architecture of `core`, and for programs compiled at run time,
/// the oldest first.
pub fn entries(root: &Path) -> Vec<Entry> {
    let compilers = ["core", "crates"].into_iter().flat_map(|folder| folders(&root.join(folder)));
    let programs = folders(&root.join("programs"));
    let parts = compilers.flat_map(|compiler| folders(&compiler)).chain(programs);
    let mut entries: Vec<Entry> = parts.map(entry).collect();
    entries.sort_by_key(|entry| entry.built);
    entries
}

/// The folders in `folder`; none if it cannot be read or is a link, which may point anywhere.
fn folders(folder: &Path) -> Vec<PathBuf> {
    if folder.is_symlink() {
        return Vec::new();
    }
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).map(|entry| entry.path()).collect()
}

fn entry(path: PathBuf) -> Entry {
    let mut entry = Entry { path, bytes: 0, built: SystemTime::UNIX_EPOCH };
    let mut open = vec![entry.path.clone()];
    while let Some(folder) = open.pop() {
        for item in folder.read_dir().into_iter().flatten().flatten() {
            let Ok(metadata) = item.metadata() else { continue };
            if metadata.is_dir() {
                open.push(item.path());
                continue;
            }
            entry.bytes += metadata.len();
            entry.built = entry.built.max(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        }
    }
    entry
}

/// Removes the oldest entries until the cache at `root` is at most `limit` bytes, and returns them. Those of
/// the compiler `spared` go last, since the next build needs them, and its `core` stays.
///
/// # Errors
/// If a folder cannot be removed.
pub fn trim(root: &Path, limit: u64, spared: Option<&str>) -> Result<Vec<Entry>, Error> {
    let mut entries = entries(root);
    let is_spared = |entry: &Entry| {
        let compiler = entry.path.parent().and_then(Path::file_name);
        spared.is_some_and(|spared| compiler == Some(spared.as_ref()))
    };
    let mut size: u64 = entries.iter().map(|entry| entry.bytes).sum();
    entries.retain(|entry| !(is_spared(entry) && entry.path.starts_with(root.join("core"))));
    // Stable: in each half the oldest stay first.
    entries.sort_by_key(is_spared);
    let mut removed = Vec::new();
    for entry in entries {
        if size <= limit {
            break;
        }
        remove(&entry.path)?;
        size -= entry.bytes;
        removed.push(entry);
    }
    Ok(removed)
}

/// Waits for builds that write to the entry; those that only read hold links of their own.
fn remove(entry: &Path) -> Result<(), Error> {
    let lock = entry.join("lock");
    let _lock = if lock.is_file() { Some(Lock::exclusive(&lock, || ())?) } else { None };
    cache::remove(entry)
}

/// Removes everything that Ferrogrid keeps at `root`, and returns its size in bytes.
///
/// # Errors
/// If a folder cannot be removed.
pub fn clear(root: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for folder in folders(root) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if FOLDERS.contains(&&*name) || name.starts_with(SETUPS) {
            bytes += entry(folder.clone()).bytes;
            for inner in folders(&folder).iter().flat_map(|compiler| folders(compiler)) {
                remove(&inner)?;
            }
            cache::remove(&folder)?;
        }
    }
    // Fails if there are other files.
    let _ = fs::remove_dir(root);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    /// A cache with entries of 100 bytes each, each built an hour after the one before.
    fn filled(entries: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (hour, entry) in entries.iter().enumerate() {
            let folder = root.path().join(entry).join("deep");
            fs::create_dir_all(&folder).unwrap();
            let file = folder.join("file");
            fs::write(&file, [0; 100]).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(3600 * (hour as u64 + 1));
            File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        }
        root
    }

    fn left(root: &Path) -> Vec<String> {
        let name = |entry: &Entry| entry.path.strip_prefix(root).unwrap().display().to_string();
        entries(root).iter().map(name).collect()
    }

    const ALL: [&str; 4] = ["core/a/sm_75", "crates/a/sm_75", "core/b/sm_90", "crates/b/sm_90"];

    #[test]
    fn the_oldest_entries_go_first_until_the_rest_fits() {
        let root = filled(&ALL);
        assert!(trim(root.path(), 400, None).unwrap().is_empty());
        assert_eq!(trim(root.path(), 250, None).unwrap().len(), 2);
        assert_eq!(left(root.path()), ALL[2..]);
    }

    #[test]
    fn entries_that_the_next_build_needs_are_removed_last() {
        let root = filled(&ALL);
        trim(root.path(), 200, Some("a")).unwrap();
        assert_eq!(left(root.path()), ALL[..2]);
        trim(root.path(), 0, Some("a")).unwrap();
        assert_eq!(left(root.path()), ALL[..1], "the next build needs it");
        trim(root.path(), 0, None).unwrap();
        assert!(left(root.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn targets_of_links_stay() {
        let (other, root) = (filled(&ALL), tempfile::tempdir().unwrap());
        for folder in ["core", "crates"] {
            std::os::unix::fs::symlink(other.path().join(folder), root.path().join(folder)).unwrap();
        }
        assert!(trim(root.path(), 0, None).unwrap().is_empty());
        assert_eq!(clear(root.path()).unwrap(), 0);
        assert_eq!(left(other.path()), ALL);
    }

    #[test]
    fn clearing_keeps_files_of_others() {
        let root = filled(&[ALL[0], ALL[1], "setup-17/first-kernel", "photos/2026"]);
        fs::write(root.path().join("letter.txt"), "mine").unwrap();
        assert_eq!(clear(root.path()).unwrap(), 300);
        let mut names: Vec<_> = root.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["letter.txt", "photos"]);
    }

    #[test]
    fn an_empty_or_absent_cache_is_no_error() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(clear(&root.path().join("absent")).unwrap(), 0);
        assert!(trim(&root.path().join("absent"), 0, None).unwrap().is_empty());
    }

    #[test]
    fn the_limit_is_a_number_of_mebibytes() {
        assert_eq!(parse_limit("").unwrap(), 4096 << 20);
        assert_eq!(parse_limit(" 12 ").unwrap(), 12 << 20);
        for wrong in ["much", "-1", "4G", "99999999999999999"] {
            let text = parse_limit(wrong).unwrap_err().to_string();
            assert!(text.contains(wrong) && text.contains("FERROGRID_CACHE_LIMIT"), "{text}");
        }
    }
}
