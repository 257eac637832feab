//! A user's package outside the workspace, in a folder that stays from run to run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The package; one test of a program at a time has it.
pub struct Package {
    pub folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Package {
    /// The package of that name and version, in the folder `place`, with these files beside its manifest and its build script.
    pub fn new(place: &str, name: &str, version: &str, files: &[(&str, &str)]) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            // Cargo detects edits by their time, so unchanged files keep theirs, also from the last run.
            if fs::read_to_string(&path).is_ok_and(|old| old == text) {
                return;
            }
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2024\"\n[workspace]\n\
             [dependencies]\nferrogrid = {{ path = {root:?} }}\n\
             [build-dependencies]\nferrogrid-build = {{ path = {:?} }}\n",
            root.join("builder")
        );
        write("Cargo.toml", &manifest);
        write("build.rs", "fn main() { ferrogrid_build::compile() }");
        files.iter().for_each(|(path, text)| write(path, text));
        let time = |file: &Path| file.metadata().and_then(|it| it.modified()).ok();
        if time(&folder.join("Cargo.lock")) < time(&root.join("Cargo.lock")) {
            // The versions of the workspace, so that cargo resolves nothing.
            fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        }
        Package { folder, _alone: alone }
    }
}
