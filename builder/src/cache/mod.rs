//! The user's cache directory, atomic writes of files, and locks between processes.
//! `cache/size.rs` keeps the cache below a limit.

pub mod size;

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_128;

use crate::cargo::Environment;
use crate::error::Error;
use crate::options::variables;

/// The directory of all that projects share: `FERROGRID_CACHE` if set, else `ferrogrid` in the user's cache
/// directory (`XDG_CACHE_HOME` or `~/.cache` on Linux), else in the system's temporary directory. It may be
/// deleted at any time; builds fill it again.
pub fn root() -> PathBuf {
    let default = || dirs::cache_dir().unwrap_or_else(std::env::temp_dir).join("ferrogrid");
    variables::path("FERROGRID_CACHE").unwrap_or_else(default)
}

/// The folder for results that builds share: the user's cache, or the build's `OUT_DIR` if the cache is not
/// writable (a read-only home, a container without one, files of another user).
#[derive(Debug)]
pub(crate) struct Caches {
    shared: PathBuf,
    own: PathBuf,
    /// Why the shared one was not used.
    refusal: Mutex<Option<Error>>,
}

impl Caches {
    pub(crate) fn of_build(environment: &Environment) -> Self {
        Caches::new(root(), environment.out_dir.join("ferrogrid/cache"))
    }

    fn new(shared: PathBuf, own: PathBuf) -> Self {
        Caches { shared, own, refusal: Mutex::default() }
    }

    /// The result of `make` in the shared folder, or in the build's own if the shared one cannot be used.
    pub(crate) fn keep<T>(&self, mut make: impl FnMut(&Path) -> Result<T, Error>) -> Result<T, Error> {
        let refusal = match make(&self.shared) {
            Err(error @ Error::Io { .. }) if error.is_below(&self.shared) => error,
            other => return other,
        };
        let made = make(&self.own)?;
        self.refusal.lock().unwrap_or_else(|it| it.into_inner()).get_or_insert(refusal);
        Ok(made)
    }

    /// The warning if the shared cache could not be used.
    pub(crate) fn warning(&self) -> Option<String> {
        let refusal = self.refusal.lock().unwrap_or_else(|it| it.into_inner());
        let reason = refusal.as_ref()?.to_string();
        Some(format!(
            "cargo::warning=Ferrogrid's cache in {} cannot be used, so this package builds `core` and device crates for \
             itself, about 30 s once: {reason}; set FERROGRID_CACHE to another folder",
            self.shared.display()
        ))
    }
}

/// A short name for a content: 16 hexadecimal digits.
pub(crate) fn key(content: &[u8]) -> String {
    format!("{:032x}", xxh3_128(content))[..16].to_owned()
}

/// Identifies this program, and so the code of this crate in it: another version may compile the same sources
/// differently.
pub(crate) fn program_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let program = std::env::current_exe().and_then(fs::read);
        program.map_or_else(|_| env!("CARGO_PKG_VERSION").to_owned(), |program| key(&program))
    })
}

/// Changes when the file is replaced or removed.
pub(crate) fn file_key(path: &Path) -> String {
    let Ok(metadata) = path.metadata() else { return "gone".to_owned() };
    let modified = metadata.modified().ok().and_then(|it| it.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!("{}-{}", metadata.len(), modified.map_or(0, |it| it.as_nanos()))
}

/// Creates a directory and its parents.
pub(crate) fn create_dir(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("create the directory", path))
}

/// Creates a directory, unless it is there, and makes sure that files can be written into it.
pub(crate) fn check_writable(path: &Path) -> Result<(), Error> {
    create_dir(path)?;
    let file = partial_name(&path.join("written"));
    fs::write(&file, "").map_err(Error::io("write", &file))?;
    remove(&file)
}

/// Removes a file, or a directory with its contents, if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// The files and folders in `folder`; none if it cannot be read.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Removes the contents of `folder` for which `is_kept` is false.
pub(crate) fn retain(folder: &Path, is_kept: impl Fn(&Path) -> bool) -> Result<(), Error> {
    entries(folder).filter(|it| !is_kept(it)).try_for_each(|it| remove(&it))
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path))
}

/// Writes a file so that a reader sees the old or the new content, never a part. A file that has
/// this content already is left alone, with its time stamp.
pub(crate) fn write(path: &Path, content: &str) -> Result<(), Error> {
    write_bytes(path, content.as_bytes())
}

/// [`write`] for any content.
pub(crate) fn write_bytes(path: &Path, content: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    let partial = partial_name(path);
    fs::write(&partial, content).map_err(Error::io("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io("write", path))
}

/// A name next to `path` that no other process uses.
fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}-{:?}", std::process::id(), std::thread::current().id()));
    path.with_file_name(name)
}

/// Holds a lock between processes until dropped (or until the process ends, in whatever way).
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until no other process holds the lock at `path`; calls `waiting` once if it has to.
    pub(crate) fn exclusive(path: &Path, waiting: impl FnOnce()) -> Result<Self, Error> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => return Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => waiting(),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
        file.lock().map_err(Error::io("lock", path))?;
        Ok(Lock { _file: file })
    }

    /// Waits until no other process holds the lock exclusively.
    pub(crate) fn shared(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        file.lock_shared().map_err(Error::io("lock", path))?;
        Ok(Lock { _file: file })
    }
}

fn open(path: &Path) -> Result<File, Error> {
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    File::options()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(path)
        // A cache that was filled may be read-only now; a lock needs no writing.
        .or_else(|error| File::open(path).map_err(|_| error))
        .map_err(Error::io("open the lock file", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_cannot_be_written_can_be_locked() {
        // No user, not even root, may write to a running program.
        let program = std::env::current_exe().unwrap();
        assert!(File::options().write(true).open(&program).is_err());
        drop(Lock::shared(&program).unwrap());
        Lock::exclusive(&program, || panic!("the lock is free")).unwrap();
    }

    #[test]
    fn writing_the_same_content_leaves_the_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.txt");
        write(&path, "one").unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        write(&path, "one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), old);
        write(&path, "two").unwrap();
        assert_eq!(read(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no partial file is left");
    }

    #[test]
    fn a_build_keeps_things_for_itself_where_the_shared_cache_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let (shared, own) = (dir.path().join("file/cache"), dir.path().join("out"));
        let caches = Caches::new(shared.clone(), own.clone());
        let keep = || {
            caches.keep(|root| {
                write(&root.join("core"), "core")?;
                Ok(root.to_owned())
            })
        };
        assert_eq!(keep().unwrap(), shared);
        assert_eq!(caches.warning(), None);
        fs::remove_dir_all(dir.path().join("file")).unwrap();
        fs::write(dir.path().join("file"), "no folder").unwrap();
        assert_eq!(keep().unwrap(), own);
        let warning = caches.warning().unwrap();
        assert!(warning.starts_with("cargo::warning=") && warning.contains("file/cache"), "{warning}");
        assert!(!warning.contains('\n'), "{warning}");
    }

    #[test]
    fn other_failures_are_not_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let caches = Caches::new(dir.path().join("shared"), dir.path().join("own"));
        let mut tried = 0;
        let failed = caches.keep(|_| {
            tried += 1;
            read(&dir.path().join("elsewhere")).map(drop)
        });
        assert!(failed.is_err() && tried == 1 && caches.warning().is_none(), "{tried}");
    }

    #[test]
    fn unused_libraries_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        retain(folder.path(), |file| file.ends_with("b")).unwrap();
        assert_eq!(entries(folder.path()).collect::<Vec<_>>(), [folder.path().join("b")]);
        retain(&folder.path().join("none"), |_| false).unwrap();
    }

    #[test]
    fn keys_differ_with_content() {
        assert_eq!(key(b"a").len(), 16);
        assert_ne!(key(b"a"), key(b"b"));
    }

    #[test]
    fn errors_name_the_path() {
        let error = read(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
    }
}
