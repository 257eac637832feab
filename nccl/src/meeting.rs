//! How processes agree on a [`UniqueId`] by a file that all can read. Rank 0 makes it, and removes it when all have joined.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ferrogrid_host::{NcclError, Result};

use crate::options::{deadline, milliseconds};
use crate::unique_id::{BYTES, UniqueId};

/// How often a rank looks for the file.
const PERIOD: Duration = Duration::from_millis(10);

/// What all processes have agreed on.
pub(crate) struct Meeting {
    id: UniqueId,
    /// The file to be removed.
    file: Option<PathBuf>,
}

impl Meeting {
    /// An id that needs no file.
    pub(crate) fn alone(id: UniqueId) -> Self {
        Meeting { id, file: None }
    }

    /// The id that rank 0 makes and writes to `path`.
    pub(crate) fn by_file(
        path: &Path,
        rank: usize,
        make: impl FnOnce() -> Result<UniqueId>,
        timeout: Duration,
    ) -> Result<Self> {
        if rank > 0 {
            return Ok(Meeting { id: read(path, rank, timeout)?, file: None });
        }
        let id = make()?;
        publish(path, id)?;
        Ok(Meeting { id, file: Some(path.to_owned()) })
    }

    pub(crate) fn id(&self) -> &UniqueId {
        &self.id
    }

    /// All have joined, or have failed to.
    pub(crate) fn end(self) {
        if let Some(file) = self.file {
            // One that stays is an error of the next run, which names it.
            let _removed = fs::remove_file(file);
        }
    }
}

/// Makes the file, with all of its bytes at once.
fn publish(path: &Path, id: UniqueId) -> Result<(), NcclError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = PathBuf::from(draft);
    fs::write(&draft, id.to_bytes()).map_err(|error| failed(&draft, &error))?;
    // Not renamed: that would replace a file of an earlier run, which others may have read.
    let linked = fs::hard_link(&draft, path);
    let _removed = fs::remove_file(&draft);
    linked.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => refused(
            path,
            "it is there already, of an earlier run: remove it, or name another one for each run",
        ),
        _ => failed(path, &error),
    })
}

/// Waits for the file.
fn read(path: &Path, rank: usize, timeout: Duration) -> Result<UniqueId, NcclError> {
    let end = deadline(Instant::now(), timeout);
    loop {
        match fs::read(path) {
            Ok(bytes) => {
                let bytes: Result<[u8; BYTES], _> = bytes.try_into();
                return bytes
                    .map(UniqueId::from_bytes)
                    .map_err(|_| refused(path, "it has no id of a communicator"));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(path, &error)),
            Err(_) if Instant::now() >= end => {
                let (milliseconds, missing) = (milliseconds(timeout), Box::new([0]));
                return Err(NcclError::TimedOut {
                    operation: "FERROGRID_NCCL_FILE",
                    rank,
                    milliseconds,
                    missing,
                });
            }
            Err(_) => thread::sleep(PERIOD),
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> NcclError {
    refused(path, &error.to_string())
}

fn refused(path: &Path, reason: &str) -> NcclError {
    NcclError::File { path: path.display().to_string().into(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use ferrogrid_host::{Device, Error};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn id() -> UniqueId {
        UniqueId::new(&Device::cpu()).unwrap()
    }

    #[test]
    fn all_ranks_read_the_id_that_rank_0_makes() {
        let folder = tempfile::tempdir().unwrap();
        let (file, made) = (folder.path().join("id"), id());
        let readers = [1, 2].map(|rank| {
            let file = file.clone();
            thread::spawn(move || *Meeting::by_file(&file, rank, || unreachable!(), LONG).unwrap().id())
        });
        let first = Meeting::by_file(&file, 0, || Ok(made), LONG).unwrap();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), made);
        }
        first.end();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_file_of_an_earlier_run_or_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        fs::write(&file, "text").unwrap();
        let reason = |rank| match Meeting::by_file(&file, rank, || Ok(id()), LONG).err() {
            Some(Error::Nccl(NcclError::File { reason, .. })) => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason(0).starts_with("it is there already"), "{}", reason(0));
        assert_eq!(*reason(1), *"it has no id of a communicator");
        assert_eq!(fs::read(&file).unwrap(), b"text");
    }

    #[test]
    fn a_file_that_never_comes_is_an_error_in_time() {
        let file = tempfile::tempdir().unwrap().path().join("id");
        let error = Meeting::by_file(&file, 3, || unreachable!(), Duration::from_millis(30)).err();
        let expected = NcclError::TimedOut {
            operation: "FERROGRID_NCCL_FILE",
            rank: 3,
            milliseconds: 30,
            missing: Box::new([0]),
        };
        assert_eq!(error, Some(expected.into()));
    }
}
