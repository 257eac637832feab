//! The packages that a verb applies to: the one named by `--package`, else the one of the current folder,
//! else, in the folder of a virtual workspace, all of its members.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::Failure;
use crate::cargo::{self, Package};

/// The folders in which a package has targets, or packages with targets.
const TARGET_FOLDERS: [&str; 3] = ["examples", "tests", "benches"];

/// The option that names a package.
#[derive(clap::Args)]
pub(crate) struct Selection {
    /// The package of the workspace [default: the one in this folder].
    #[arg(short, long, value_name = "NAME")]
    package: Option<String>,
}

impl Selection {
    /// The selected packages.
    ///
    /// # Errors
    /// Outside of a package or workspace, and for the name of no member.
    pub(crate) fn packages(&self) -> Result<Vec<Package>, Failure> {
        self.of(&Members::current()?)
    }

    /// The same, with the members in the folders `examples`, `tests` and `benches` of these packages. A
    /// package may have such targets in packages of their own, so that its users need not compile their
    /// kernels.
    ///
    /// # Errors
    /// As for [`packages`](Selection::packages).
    pub(crate) fn family(&self) -> Result<Vec<Package>, Failure> {
        let members = Members::current()?;
        Ok(members.family(&self.of(&members)?))
    }

    /// The package for a verb that works on one: the selected package if `has` holds for it; else the only
    /// one of its family, or of a virtual workspace, for which it holds. `what` names the requirement in
    /// errors.
    ///
    /// # Errors
    /// As for [`packages`](Selection::packages), and if none or several members have it.
    pub(crate) fn one(&self, what: &str, has: impl Fn(&Package) -> bool) -> Result<Package, Failure> {
        let members = Members::current()?;
        let selected = self.of(&members)?;
        if let [package] = selected.as_slice()
            && has(package)
        {
            return Ok(package.clone());
        }
        let mut having = members.family(&selected);
        having.retain(has);
        match having.len() {
            1 => Ok(having.remove(0)),
            0 => {
                Err(format!("{what} are in none of the packages {}", names(&members.family(&selected)))
                    .into())
            }
            _ => {
                Err(format!("{what} are in several packages; choose one with --package: {}", names(&having))
                    .into())
            }
        }
    }

    fn of(&self, members: &Members) -> Result<Vec<Package>, Failure> {
        let Some(name) = &self.package else { return Ok(members.current_or_all()) };
        match members.all.iter().find(|member| member.name() == name) {
            Some(member) => Ok(vec![member.clone()]),
            None => {
                Err(format!("this workspace has no package `{name}`; there are: {}", members.names()).into())
            }
        }
    }

    /// The name that was given.
    pub(crate) fn name(&self) -> Option<&str> {
        self.package.as_deref()
    }
}

/// The members of the current workspace; a package without a workspace is the only member.
pub(crate) struct Members {
    /// The `Cargo.toml` of the current package or virtual workspace.
    manifest: PathBuf,
    all: Vec<Package>,
}

impl Members {
    fn current() -> Result<Self, Failure> {
        let (manifest, all) = cargo::workspace(Stdio::inherit)?;
        if all.is_empty() {
            return Err(format!("the workspace of {} has no packages", manifest.display()).into());
        }
        Ok(Members { manifest, all })
    }

    /// The members, or `None` outside of a package.
    pub(crate) fn find() -> Option<Self> {
        let (manifest, all) = cargo::workspace(Stdio::null).ok()?;
        Some(Members { manifest, all })
    }

    /// The package of the current folder; else all.
    pub(crate) fn current_or_all(&self) -> Vec<Package> {
        let here = |member: &&Package| is_same(&member.manifest, &self.manifest);
        self.all.iter().find(here).map_or_else(|| self.all.clone(), |package| vec![package.clone()])
    }

    /// `packages`, and the members in their folders of targets.
    pub(crate) fn family(&self, packages: &[Package]) -> Vec<Package> {
        let belongs = |it: &&Package| {
            packages.iter().any(|package| {
                let folders = TARGET_FOLDERS.map(|folder| package.folder().join(folder));
                package.manifest == it.manifest
                    || folders.iter().any(|folder| it.folder().starts_with(folder))
            })
        };
        self.all.iter().filter(belongs).cloned().collect()
    }

    fn names(&self) -> String {
        names(&self.all)
    }
}

fn names(packages: &[Package]) -> String {
    packages.iter().map(Package::name).collect::<Vec<_>>().join(", ")
}

fn is_same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
