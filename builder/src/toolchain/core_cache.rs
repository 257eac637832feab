//! `core` for the device, built once per compiler and shared by all projects of a user.
//!
//! Each entry is a directory `core/<compiler>/<arch>` in the cache: a sysroot (for rustc's `--sysroot`) and
//! the `cfg`s of the device. An entry appears under its name only when it is complete, and one process at a
//! time builds it. It lists its files, so a damaged entry is noticed and built again.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{self, Lock};
use crate::cargo::inner_cargo;
use crate::error::Error;
use crate::options::Arch;
use crate::toolchain::{CoreOrigin, DEVICE_TARGET, Toolchain, process};

/// A complete entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreEntry {
    /// The `--sysroot` of rustc for the device.
    pub sysroot: PathBuf,
    /// The output of `rustc --print cfg` for the device: one `cfg` per line.
    pub cfgs: String,
}

/// The place of the entry for a compiler (by [`Toolchain::key`]) and an architecture, built or not.
pub fn location(cache_root: &Path, key: &str, arch: &str) -> PathBuf {
    cache_root.join("core").join(key).join(arch)
}

/// The entry for `toolchain` and `arch`, built first if it is missing (about half a minute). `progress` gets
/// one line before each long step.
///
/// # Errors
/// If the compiler refuses, or the cache cannot be written.
pub fn ensure(
    cache_root: &Path,
    toolchain: &Toolchain,
    arch: &Arch,
    progress: &mut dyn FnMut(&str),
) -> Result<CoreEntry, Error> {
    let place = location(cache_root, &toolchain.key, arch.as_str());
    fill(&place, progress, |staging, progress| build(cache_root, toolchain, arch, staging, progress))?;
    let cfgs = cache::read(&place.join("cfg"))?;
    let sysroot = match toolchain.core {
        CoreOrigin::Prebuilt => toolchain.sysroot.clone(),
        CoreOrigin::Sources(_) | CoreOrigin::Cached => place.join("sysroot"),
    };
    Ok(CoreEntry { sysroot, cfgs })
}

/// Makes `place` a complete directory with the output of `build`, which gets a directory to fill.
pub(super) fn fill(
    place: &Path,
    progress: &mut dyn FnMut(&str),
    build: impl FnOnce(&Path, &mut dyn FnMut(&str)) -> Result<(), Error>,
) -> Result<(), Error> {
    if is_whole(place) {
        return Ok(());
    }
    let lock = place.with_extension("lock");
    let _lock = Lock::exclusive(&lock, || progress("waiting for another build of core to finish"))?;
    if is_whole(place) {
        return Ok(());
    }
    if place.exists() {
        progress(&format!("{} is damaged: building it again", place.display()));
        cache::remove(place)?;
    }
    remove_unfinished(place)?;
    // A name of our own: an interrupted build may still be writing to its directory.
    let staging = place.with_extension(format!("{UNFINISHED}{}", std::process::id()));
    cache::create_dir(&staging)?;
    build(&staging, progress)?;
    cache::write(&staging.join(LIST), &list(&staging)?)?;
    fs::rename(&staging, place).map_err(Error::io("create", place))
}

/// The file of an entry that lists the others.
const LIST: &str = "files";

/// Whether the entry at `place` has all of its files, unchanged.
pub(crate) fn is_whole(place: &Path) -> bool {
    let text = fs::read_to_string(place.join(LIST)).unwrap_or_default();
    !text.is_empty() && text.lines().all(|line| is_unchanged(place, line).unwrap_or(false))
}

/// A line for each file below `place`: length, time, hash of the content, and name.
fn list(place: &Path) -> Result<String, Error> {
    let mut lines = Vec::new();
    let mut open = vec![place.to_owned()];
    while let Some(folder) = open.pop() {
        for file in folder.read_dir().map_err(Error::io("read", &folder))?.flatten().map(|it| it.path()) {
            if file.is_dir() {
                open.push(file);
                continue;
            }
            let content = fs::read(&file).map_err(Error::io("read", &file))?;
            let name = file.strip_prefix(place).unwrap_or(&file).display();
            lines.push(format!("{} {} {name}\n", cache::file_key(&file), cache::key(&content)));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// Whether a file is as a line of the list says. In a copied cache its time may differ, but not its content.
fn is_unchanged(place: &Path, line: &str) -> Option<bool> {
    let mut fields = line.splitn(3, ' ');
    let (state, hash, name) = (fields.next()?, fields.next()?, fields.next()?);
    let file = place.join(name);
    Some(cache::file_key(&file) == state || fs::read(&file).is_ok_and(|content| cache::key(&content) == hash))
}

/// The prefix of the extension of an unfinished entry.
const UNFINISHED: &str = "partial-";

/// Removes leftovers of interrupted builds of `place`.
fn remove_unfinished(place: &Path) -> Result<(), Error> {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return Ok(()) };
    let prefix = format!("{}.{UNFINISHED}", name.to_string_lossy());
    for entry in folder.read_dir().map_err(Error::io("read", folder))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            // A compiler that outlived its build may still write there; then the next build tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

fn build(
    cache_root: &Path,
    toolchain: &Toolchain,
    arch: &Arch,
    staging: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let cfgs = print_cfgs(toolchain, arch)?;
    cache::write(&staging.join("cfg"), &cfgs)?;
    cache::write(&staging.join("rustc"), &format!("{}\n", toolchain.version))?;
    let CoreOrigin::Sources(library) = &toolchain.core else { return Ok(()) };
    let libraries = staging.join("sysroot/lib/rustlib").join(DEVICE_TARGET).join("lib");
    let baseline = Arch::baseline();
    if *arch != baseline {
        // Like rustup's `core`, that of the baseline serves all: what is inlined is compiled with the kernels.
        let sysroot = ensure(cache_root, toolchain, &baseline, progress)?.sysroot;
        return collect_rlibs(&sysroot.join("lib/rustlib").join(DEVICE_TARGET).join("lib"), &libraries);
    }
    progress(&format!(
        "building core for {DEVICE_TARGET} with {}: once per compiler, about 30 s",
        toolchain.version
    ));
    let work = staging.join("work");
    build_rlibs(toolchain, library, arch, &work)?;
    let built = work.join("target").join(DEVICE_TARGET).join("release/deps");
    collect_rlibs(&built, &libraries)?;
    fs::remove_dir_all(&work).map_err(Error::io("remove", &work))
}

/// Lets cargo build `core` from its sources: without the network if the dependencies are vendored, or cargo
/// has them already.
fn build_rlibs(toolchain: &Toolchain, library: &Path, arch: &Arch, work: &Path) -> Result<(), Error> {
    cache::write(&work.join("Cargo.toml"), CORE_PACKAGE)?;
    cache::write(&work.join("lib.rs"), "#![no_std]\n")?;
    let cargo = |extra: &[String]| {
        let mut command = inner_cargo::build(toolchain, &work.join("Cargo.toml"), &work.join("target"));
        command.arg("-Zbuild-std=core").args(extra).current_dir(work);
        inner_cargo::device_flags(&mut command, arch, &[]);
        process::run_checked(&format!("building core for {arch}"), &mut command)
    };
    let offline = "--offline".to_owned();
    let vendor = library.join("vendor");
    if vendor.is_dir() {
        let vendored = [
            offline.clone(),
            "--config=source.crates-io.replace-with=\"vendored\"".to_owned(),
            format!("--config=source.vendored.directory={:?}", vendor.to_string_lossy()),
        ];
        if cargo(&vendored).is_ok() {
            return Ok(());
        }
    }
    if cargo(&[offline]).is_ok() {
        return Ok(());
    }
    cargo(&[]).map(drop)
}

const CORE_PACKAGE: &str = "\
[package]
name = \"ferrogrid-core\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
path = \"lib.rs\"

[workspace]
";

/// Copies the rlibs that device code links against.
fn collect_rlibs(from: &Path, to: &Path) -> Result<(), Error> {
    cache::create_dir(to)?;
    let mut found = 0;
    for entry in from.read_dir().map_err(Error::io("read", from))?.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let wanted = ["libcore-", "libcompiler_builtins-"].iter().any(|prefix| name.starts_with(prefix));
        if wanted && path.extension() == Some(OsStr::new("rlib")) {
            fs::copy(&path, to.join(&name)).map_err(Error::io("copy", &path))?;
            found += 1;
        }
    }
    if found == 2 {
        return Ok(());
    }
    Err(Error::Program {
        what: "building core".to_owned(),
        command: "cargo build -Zbuild-std=core".to_owned(),
        output: format!(
            "expected the rlibs of core and compiler_builtins, found {found} in {}",
            from.display()
        ),
    })
}

fn print_cfgs(toolchain: &Toolchain, arch: &Arch) -> Result<String, Error> {
    let mut command = process::command(&toolchain.rustc);
    command.env("RUSTC_BOOTSTRAP", "1").args(["--print", "cfg", "--target", DEVICE_TARGET]);
    command.args(["-C", "opt-level=3", "-C"]).arg(format!("target-cpu={arch}"));
    process::run_checked("asking for the cfgs of the device", &mut command)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn silent() -> impl FnMut(&str) {
        |_: &str| {}
    }

    #[test]
    fn an_interrupted_build_leaves_nothing_that_looks_finished() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("core/key/sm_75");
        let failed = fill(&place, &mut silent(), |staging, _| {
            fs::write(staging.join("half"), "").unwrap();
            Err(Error::Metadata("interrupted".to_owned()))
        });
        assert!(failed.is_err());
        assert!(!place.exists());
        // As another process would have left it, killed in the middle.
        fs::create_dir_all(place.with_extension("partial-0").join("half")).unwrap();

        fill(&place, &mut silent(), |staging, _| {
            assert!(!staging.join("half").exists(), "leftovers are removed first");
            fs::write(staging.join("whole"), "x").map_err(Error::io("write", staging))
        })
        .unwrap();
        assert!(place.join("whole").exists());
        let left: Vec<_> =
            place.parent().unwrap().read_dir().unwrap().flatten().map(|it| it.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("partial")), "{left:?}");
    }

    #[test]
    fn builds_at_the_same_time_build_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("core/key/sm_75");
        let builds = AtomicUsize::new(0);
        let waits = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut progress = |_: &str| {
                        waits.fetch_add(1, Ordering::SeqCst);
                    };
                    fill(&place, &mut progress, |staging, _| {
                        builds.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(200));
                        fs::write(staging.join("whole"), "x").map_err(Error::io("write", staging))
                    })
                    .unwrap();
                    assert!(place.join("whole").exists());
                });
            }
        });
        assert_eq!(builds.load(Ordering::SeqCst), 1);
        assert!(waits.load(Ordering::SeqCst) <= 3);
    }

    /// An entry with this content.
    fn filled(place: &Path, content: &str) {
        fill(place, &mut silent(), |staging, _| {
            cache::write(&staging.join("cfg"), "panic=\"abort\"\n")?;
            cache::write(&staging.join("sysroot/lib/libcore-1.rlib"), content)
        })
        .unwrap();
    }

    #[test]
    fn a_finished_entry_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("sm_75");
        filled(&place, "core");
        fill(&place, &mut silent(), |_, _| panic!("built again")).unwrap();
        // As in a cache that was copied without times.
        let file = fs::File::options().write(true).open(place.join("sysroot/lib/libcore-1.rlib")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        fill(&place, &mut silent(), |_, _| panic!("built again")).unwrap();
    }

    #[test]
    fn a_damaged_entry_is_built_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("sm_75");
        let rlib = place.join("sysroot/lib/libcore-1.rlib");
        let damages: [&dyn Fn(); 5] = [
            &|| fs::remove_file(&rlib).unwrap(),
            &|| fs::write(&rlib, "").unwrap(),
            &|| fs::write(&rlib, "c0re").unwrap(),
            &|| fs::remove_dir_all(place.join("sysroot")).unwrap(),
            &|| {
                fs::remove_dir_all(&place).unwrap();
                fs::write(&place, "a file").unwrap();
            },
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            filled(&place, "core");
            damage();
            assert!(!is_whole(&place), "{number}");
            filled(&place, "core");
            assert_eq!(fs::read_to_string(&rlib).unwrap(), "core", "{number}");
        }
    }

    #[test]
    fn a_build_without_both_rlibs_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(&from).unwrap();
        fs::write(from.join("libcore-1.rlib"), "").unwrap();
        fs::write(from.join("libcore-1.rmeta"), "").unwrap();
        assert!(collect_rlibs(&from, &to).unwrap_err().to_string().contains("found 1"));
        fs::write(from.join("libcompiler_builtins-1.rlib"), "").unwrap();
        collect_rlibs(&from, &to).unwrap();
        assert_eq!(fs::read_dir(&to).unwrap().count(), 2);
    }
}
