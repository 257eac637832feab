//! Which file holds `mod x;`: the rules of the language for root files, `mod.rs`, other files, inline modules
//! and `#[path]`.

use std::path::{Path, PathBuf};

use syn::Ident;

/// A place in the module tree, which determines the paths of its child modules.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The folder of the file.
    folder: PathBuf,
    /// Where the files of child modules are.
    children: PathBuf,
    /// Whether this is inside an inline module of the file.
    inline: bool,
}

impl Place {
    /// The root file of a crate: children are beside it, whatever its name.
    pub(super) fn of_root(file: &Path) -> Self {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        Place { children: folder.clone(), folder, inline: false }
    }

    /// Inside the inline module `name`.
    pub(super) fn inline(&self, name: &Ident, redirect: Option<&str>) -> Self {
        let children = match redirect {
            Some(path) => self.redirect_base().join(path),
            None => self.children.join(plain(name)),
        };
        Place { folder: self.folder.clone(), children, inline: true }
    }

    /// The file of `mod name;`, and the place inside it; `None` if there is no such file.
    pub(super) fn file(&self, name: &Ident, redirect: Option<&str>) -> Option<(PathBuf, Self)> {
        if let Some(path) = redirect {
            let file = normal(&self.redirect_base().join(path));
            // A file reached through `#[path]` owns its folder, as `mod.rs` does.
            return file.is_file().then(|| (file.clone(), Place::of_root(&file)));
        }
        let name = plain(name);
        let children = self.children.join(&name);
        let beside = self.children.join(format!("{name}.rs"));
        let file = if beside.is_file() { beside } else { children.join("mod.rs") };
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        file.is_file().then_some((file, Place { folder, children, inline: false }))
    }

    /// The first path at which the file of `mod name;` is looked for.
    pub(super) fn expected(&self, name: &Ident, redirect: Option<&str>) -> PathBuf {
        match redirect {
            Some(path) => normal(&self.redirect_base().join(path)),
            None => self.children.join(format!("{}.rs", plain(name))),
        }
    }

    /// The folder that a `#[path]` is relative to.
    fn redirect_base(&self) -> &Path {
        if self.inline { &self.children } else { &self.folder }
    }
}

/// The name without `r#`.
fn plain(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

/// The path without `.` and `a/..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
