//! Which workspace a build script runs for, by the path of the file that called the build step. cargo passes
//! rustc the sources of packages below the root of the workspace by their path from there, and all others by
//! their full path.

use std::path::{Path, PathBuf};

use crate::cargo::Environment;

/// The root of the workspace that is being built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BuildRoot {
    /// In this folder, the package's own or one above.
    At(PathBuf),
    /// Neither in the package's folder nor in one above.
    Elsewhere,
    /// The caller is not a source file of the package, or its path was remapped.
    Unknown,
}

impl BuildRoot {
    pub(crate) fn of(environment: &Environment) -> Self {
        let Some(caller) = environment.caller.as_deref() else { return BuildRoot::Unknown };
        let own = &environment.manifest_dir;
        if caller.is_absolute() {
            return if is_source(own, caller) { BuildRoot::Elsewhere } else { BuildRoot::Unknown };
        }
        let is_root = |root: &&Path| is_package(root) && is_source(own, &root.join(caller));
        own.ancestors().find(is_root).map_or(BuildRoot::Unknown, |root| BuildRoot::At(root.to_owned()))
    }

    /// Whether the package's own workspace, with this root, can be the one that is being built.
    pub(crate) fn can_be(&self, workspace_root: &Path, environment: &Environment) -> bool {
        match self {
            BuildRoot::At(root) => is_same(root, workspace_root),
            // cargo also gives the full path of a member outside of the root.
            BuildRoot::Elsewhere => !environment.manifest_dir.starts_with(workspace_root),
            BuildRoot::Unknown => true,
        }
    }
}

/// Whether `file` belongs to the package in `own`, and to no package in between.
fn is_source(own: &Path, file: &Path) -> bool {
    file.is_file() && file.ancestors().skip(1).find(|folder| is_package(folder)) == Some(own)
}

fn is_package(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file()
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the workspace `outer`, in which there are a member, a package of another workspace, and
    /// a helper crate of that.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for package in ["outer", "outer/member", "outer/vendor/inner", "outer/vendor/inner/helper"] {
            let package = folder.path().join(package);
            std::fs::create_dir_all(package.join("src")).unwrap();
            for file in ["Cargo.toml", "build.rs", "src/lib.rs"] {
                std::fs::write(package.join(file), "").unwrap();
            }
        }
        folder
    }

    fn environment(package: PathBuf, caller: impl Into<PathBuf>) -> Environment {
        let mut environment = Environment::new(package, "/elsewhere/out");
        environment.caller = Some(caller.into());
        environment
    }

    #[test]
    fn a_relative_caller_path_reveals_the_workspace_root() {
        let folder = folder();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("outer/vendor/inner"));
        let root = |package: &Path, caller: &str| BuildRoot::of(&environment(package.to_owned(), caller));
        assert_eq!(root(&outer, "build.rs"), BuildRoot::At(outer.clone()));
        assert_eq!(root(&outer.join("member"), "member/build.rs"), BuildRoot::At(outer.clone()));
        assert_eq!(root(&inner, "build.rs"), BuildRoot::At(inner.clone()));
        assert_eq!(root(&inner, "vendor/inner/build.rs"), BuildRoot::At(outer.clone()));
    }

    #[test]
    fn a_full_path_is_that_of_a_package_outside_of_the_workspace() {
        let folder = folder();
        let inner = folder.path().join("outer/vendor/inner");
        let environment = environment(inner.clone(), inner.join("build.rs"));
        let root = BuildRoot::of(&environment);
        assert_eq!(root, BuildRoot::Elsewhere);
        assert!(!root.can_be(&inner, &environment), "its own workspace has its root there");
        assert!(
            root.can_be(&folder.path().join("beside"), &environment),
            "a member need not be below the root"
        );
    }

    #[test]
    fn a_call_from_another_crate_or_with_another_path_reveals_no_root() {
        let folder = folder();
        let inner = folder.path().join("outer/vendor/inner");
        let helper = inner.join("helper/src/lib.rs");
        for caller in [
            helper.as_path(),
            Path::new("helper/src/lib.rs"),
            Path::new("/gone/build.rs"),
            Path::new("x/build.rs"),
        ] {
            let environment = environment(inner.clone(), caller);
            let root = BuildRoot::of(&environment);
            assert_eq!(root, BuildRoot::Unknown, "{}", caller.display());
            assert!(root.can_be(&inner, &environment));
        }
        assert_eq!(BuildRoot::of(&Environment::new(&inner, "/elsewhere/out")), BuildRoot::Unknown);
    }
}
