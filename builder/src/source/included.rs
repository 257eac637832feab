//! Files that kernels include by a relative path: copied beside the mirrored source, as they lie beside the
//! real one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::error::Error;
use crate::source::module_tree::{ModuleTree, normal};

/// Copies the included files of `tree` into `mirror`, where its source files are at `places`. Returns a text
/// that changes with their content.
///
/// # Errors
/// If one cannot be read or written, or would lie outside of the mirror.
pub(crate) fn mirror(tree: &ModuleTree, places: &[PathBuf], mirror: &Path) -> Result<String, Error> {
    let mut keys = String::new();
    for included in &tree.included {
        let Some(at) = tree.files.iter().position(|file| file.path == included.from) else { continue };
        let original = included.from.with_file_name(&included.path);
        let content = fs::read(&original).map_err(Error::io("read", &original))?;
        let place = normal(&places[at].with_file_name(&included.path));
        if !place.starts_with(mirror) {
            return Err(Error::IncludedOutside { from: included.from.clone(), path: included.path.clone() });
        }
        cache::write_bytes(&place, &content)?;
        keys.push_str(&format!("{} {}\n", place.display(), cache::key(&content)));
    }
    Ok(keys)
}
