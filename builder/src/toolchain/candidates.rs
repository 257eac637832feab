//! The places where a rustc may be, in order of preference.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Origin;
use crate::options::variables;

/// A place that may hold a rustc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) origin: Origin,
    pub(super) rustc: PathBuf,
}

/// The start of the search: a copy of the environment, so that tests can make their own.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// [`named`](super::named).
    pub(super) explicit: Option<OsString>,
    /// `RUSTC`, as cargo sets it.
    pub(super) rustc: Option<OsString>,
    /// `CARGO`, as cargo sets it.
    pub(super) cargo: Option<OsString>,
    /// `PATH`.
    pub(super) path: Option<OsString>,
    /// `RUSTUP_TOOLCHAIN`, as the rustup proxies set it.
    pub(super) rustup_toolchain: Option<OsString>,
    /// `RUSTUP_HOME`, or its default place.
    pub(super) rustup_home: Option<PathBuf>,
    /// Where distributions put their rustc.
    pub(super) distribution: Vec<PathBuf>,
}

impl Search {
    pub(super) fn from_process() -> Self {
        let set = variables::value;
        Search {
            explicit: super::named(),
            rustc: set("RUSTC"),
            cargo: set("CARGO"),
            path: set("PATH"),
            rustup_toolchain: set("RUSTUP_TOOLCHAIN"),
            rustup_home: set("RUSTUP_HOME")
                .map(PathBuf::from)
                .or_else(|| dirs::home_dir().map(|home| home.join(".rustup"))),
            distribution: vec![PathBuf::from("/usr/bin").join(exe("rustc"))],
        }
    }

    /// The candidates in order, each once.
    pub(super) fn list(&self) -> impl Iterator<Item = Found> + '_ {
        if self.explicit.as_ref().is_some_and(|it| it == super::NO_DEVICE_CODE) {
            return Vec::new().into_iter();
        }
        if let Some(explicit) = &self.explicit {
            let found = Found { origin: Origin::Variable, rustc: PathBuf::from(explicit) };
            return vec![found].into_iter();
        }
        let mut list: Vec<Found> = Vec::new();
        let active = self.active().map(|rustc| Found { origin: Origin::Active, rustc });
        let distribution = self
            .distribution
            .iter()
            .map(|rustc| Found { origin: Origin::Distribution, rustc: rustc.clone() });
        for found in active.into_iter().chain(self.rustup()).chain(distribution) {
            let same = |other: &Found| real(&other.rustc) == real(&found.rustc);
            if !list.iter().any(same) {
                list.push(found);
            }
        }
        list.into_iter()
    }

    /// The rustc of the active toolchain, not a rustup proxy.
    fn active(&self) -> Option<PathBuf> {
        if let Some(rustc) = self.rustc.as_ref().map(PathBuf::from)
            && rustc.is_absolute()
            && !is_proxy(&rustc)
        {
            return Some(rustc);
        }
        if let Some(toolchain) = &self.rustup_toolchain {
            // Joining a toolchain that is an absolute path gives that path.
            let rustc = self.rustup_home.as_ref()?.join("toolchains").join(toolchain).join("bin");
            return Some(rustc.join(exe("rustc")));
        }
        if let Some(cargo) = self.cargo.as_ref().map(PathBuf::from)
            && !is_proxy(&cargo)
        {
            let sibling = cargo.with_file_name(exe("rustc"));
            if sibling.is_file() {
                return Some(sibling);
            }
        }
        let mut in_path = env::split_paths(self.path.as_ref()?).map(|folder| folder.join(exe("rustc")));
        in_path.find(|rustc| rustc.is_file()).filter(|rustc| !is_proxy(rustc))
    }

    /// The rustc of each installed rustup toolchain: nightlies first, then by name, newest first.
    fn rustup(&self) -> Vec<Found> {
        let Some(home) = &self.rustup_home else { return Vec::new() };
        let Ok(entries) = home.join("toolchains").read_dir() else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by(|a, b| order(b).cmp(&order(a)));
        let rustc = |name: &str| home.join("toolchains").join(name).join("bin").join(exe("rustc"));
        names
            .into_iter()
            .map(|name| Found { rustc: rustc(&name), origin: Origin::Rustup(name) })
            .filter(|found| found.rustc.is_file())
            .collect()
    }
}

/// The key by which toolchain names are sorted: larger is tried first.
fn order(name: &str) -> (u8, Vec<u32>, &str) {
    let channel = match name.split('-').next() {
        Some("nightly") => 3,
        Some("beta") => 2,
        Some("stable") => 1,
        _ => 0,
    };
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    (channel, numbers.collect(), name)
}

/// Whether the file is a rustup proxy, which would choose a toolchain, or install one.
fn is_proxy(path: &Path) -> bool {
    let resolved = real(path);
    if resolved.file_stem().is_some_and(|stem| stem == "rustup" || stem == "rustup-init") {
        return true;
    }
    let rustup = path.with_file_name(exe("rustup"));
    same_file(path, &rustup)
}

#[cfg(unix)]
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().map(|it| (it.dev(), it.ino())).ok();
    identity(a).is_some() && identity(a) == identity(b)
}

#[cfg(not(unix))]
fn same_file(a: &Path, b: &Path) -> bool {
    let length = |path: &Path| path.metadata().map(|it| it.len()).ok();
    length(a).is_some() && length(a) == length(b)
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn exe(name: &str) -> String {
    format!("{name}{}", env::consts::EXE_SUFFIX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nightlies_are_tried_first_then_the_newest() {
        let mut names =
            ["own", "stable-x86_64", "1.96.0", "nightly-2026-05-19", "1.100.0", "beta", "nightly-2026-11-02"];
        names.sort_by(|a, b| order(b).cmp(&order(a)));
        assert_eq!(
            names,
            ["nightly-2026-11-02", "nightly-2026-05-19", "beta", "stable-x86_64", "1.100.0", "1.96.0", "own"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn rustup_is_known_by_its_name_and_as_the_same_file_as_its_neighbour() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::write(file("rustc"), "a compiler").unwrap();
        assert!(!is_proxy(&file("rustc")), "no rustup is beside it");
        fs::write(file("rustup"), "rustup").unwrap();
        assert!(!is_proxy(&file("rustc")), "another file");
        fs::hard_link(file("rustup"), file("cargo")).unwrap();
        assert!(is_proxy(&file("cargo")), "the same file by another name");
        std::os::unix::fs::symlink(file("rustup"), file("rustdoc")).unwrap();
        assert!(is_proxy(&file("rustdoc")) && is_proxy(&file("rustup")));
        assert!(!same_file(&file("missing"), &file("missing")), "none is no file");
    }

    #[cfg(unix)]
    #[test]
    fn a_rustc_found_twice_is_one_candidate() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::write(file("rustc"), "a compiler").unwrap();
        fs::write(file("other"), "another").unwrap();
        std::os::unix::fs::symlink(file("rustc"), file("link")).unwrap();
        let search = Search {
            rustc: Some(file("rustc").into()),
            distribution: vec![file("link"), file("other")],
            ..Search::default()
        };
        let found: Vec<PathBuf> = search.list().map(|found| found.rustc).collect();
        assert_eq!(found, [file("rustc"), file("other")]);
    }
}
