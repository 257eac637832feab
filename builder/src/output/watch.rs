//! Lets cargo notice files and folders that do not exist yet. cargo runs a build script at every build if the
//! script names a missing file. But it follows links in a folder, and ignores those that lead nowhere.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cache;
use crate::error::Error;

/// Makes `folder` change, as cargo sees it, when one of the `missing` files or folders appears. `false`
/// where links are not supported.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn watch_missing(missing: &[PathBuf], folder: &Path) -> Result<bool, Error> {
    if !cfg!(unix) {
        return Ok(false);
    }
    cache::remove(folder)?;
    cache::create_dir(folder)?;
    for (number, target) in missing.iter().enumerate() {
        let link = folder.join(number.to_string());
        link_to(target, &link).map_err(Error::io("create", &link))?;
    }
    // The folder would be newer than the build script's own run, and so out of date at once.
    let opened = File::open(folder).and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH));
    opened.map_err(Error::io("set the time of", folder))?;
    Ok(true)
}

#[cfg(unix)]
fn link_to(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn link_to(target: &Path, link: &Path) -> std::io::Result<()> {
    std::fs::hard_link(target, link)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_link_points_to_later_files_and_the_folder_keeps_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, missing) = (dir.path().join("watch"), dir.path().join("examples"));
        for _ in 0..2 {
            assert!(watch_missing(std::slice::from_ref(&missing), &folder).unwrap());
            assert_eq!(fs::metadata(&folder).unwrap().modified().unwrap(), SystemTime::UNIX_EPOCH);
        }
        assert!(!folder.join("0").exists());
        fs::create_dir(&missing).unwrap();
        assert!(folder.join("0").is_dir());
        watch_missing(&[], &folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "files that now exist are no longer linked");
    }
}
