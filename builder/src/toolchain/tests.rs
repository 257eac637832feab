//! Discovery, with compilers that are shell scripts.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A directory with an empty cache and fake toolchains.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Machine { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// A rustc that answers; `sources` says whether `library/core` is there.
    fn rustc(&self, toolchain: &str, release: &str, sources: bool) -> PathBuf {
        let home = self.path(toolchain);
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = -vV ]; then printf 'rustc {release} (fake)\\nhost: fake-host\\nrelease: {release}\\n'; else echo {}; fi\n",
            home.display()
        );
        if sources {
            let library = home.join("lib/rustlib/src/rust/library");
            fs::create_dir_all(library.join("core/src")).unwrap();
            fs::write(library.join("core/src/lib.rs"), "").unwrap();
            fs::write(library.join("Cargo.lock"), "").unwrap();
        }
        self.program(&format!("{toolchain}/bin/rustc"), &script)
    }

    fn program(&self, relative: &str, script: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn find(&self, search: &Search) -> Result<Toolchain, Error> {
        find_in(search, &self.path("cache"), &[Arch::baseline()])
    }
}

fn some(path: &Path) -> Option<OsString> {
    Some(path.as_os_str().to_owned())
}

#[test]
fn the_variable_is_tried_first_and_alone() {
    let machine = Machine::new();
    let named = machine.rustc("named", "1.96.0", true);
    let active = machine.rustc("active", "1.97.0-nightly", true);
    let search = Search { explicit: some(&named), rustc: some(&active), ..Search::default() };
    let toolchain = machine.find(&search).unwrap();
    assert_eq!((toolchain.rustc, toolchain.origin), (named, Origin::Variable));

    let absent = machine.path("absent");
    let search = Search { explicit: some(&absent), rustc: some(&active), ..Search::default() };
    let error = machine.find(&search).unwrap_err().to_string();
    assert!(error.contains("absent (FERROGRID_DEVICE_RUSTC): there is no such file"), "{error}");
}

#[test]
fn the_active_toolchain_is_preferred() {
    let machine = Machine::new();
    let active = machine.rustc("active", "1.96.0", true);
    machine.rustc("rustup/toolchains/nightly", "1.97.0-nightly", true);
    let search =
        Search { rustc: some(&active), rustup_home: Some(machine.path("rustup")), ..Search::default() };
    assert_eq!(machine.find(&search).unwrap().origin, Origin::Active);
}

#[test]
fn a_toolchain_without_sources_is_passed_over_for_one_that_has_them() {
    let machine = Machine::new();
    let active = machine.rustc("rustup/toolchains/nightly-x", "1.97.0-nightly", false);
    machine.rustc("rustup/toolchains/stable-x", "1.95.0", true);
    let distribution = machine.rustc("usr", "1.96.0", true);
    let search = Search {
        rustc: some(&active),
        rustup_home: Some(machine.path("rustup")),
        distribution: vec![distribution.clone()],
        ..Search::default()
    };
    let toolchain = machine.find(&search).unwrap();
    assert_eq!((toolchain.rustc, toolchain.origin), (distribution, Origin::Distribution));
    assert_eq!(toolchain.version, "rustc 1.96.0 (fake)");
}

#[test]
fn without_a_toolchain_the_error_has_every_reason_and_advice() {
    let machine = Machine::new();
    let active = machine.rustc("rustup/toolchains/nightly-x", "1.97.0-nightly", false);
    machine.rustc("rustup/toolchains/stable-x", "1.90.0", true);
    machine.program("rustup/toolchains/broken/bin/rustc", "#!/bin/sh\necho no such library >&2\nexit 1\n");
    let search = Search {
        rustc: some(&active),
        rustup_home: Some(machine.path("rustup")),
        distribution: vec![machine.path("usr/bin/rustc")],
        ..Search::default()
    };
    let error = machine.find(&search).unwrap_err().to_string();
    for part in [
        "nightly-x/bin/rustc (the active toolchain): it has no sources of `core`",
        "(rustup toolchain stable-x): version 1.90 is too old: 1.96 or newer is required",
        "(rustup toolchain broken): it does not run: no such library",
        "usr/bin/rustc (the distribution): there is no such file",
        "cargo ferrogrid setup",
        "rustup component add rust-src --toolchain nightly",
        "apt-get install --no-install-recommends rustc-web rust-web-src",
    ] {
        assert!(error.contains(part), "{part}\nis not in\n{error}");
    }
    assert_eq!(error.matches("nightly-x").count(), 2, "each rustc is tried once:\n{error}");
}

#[test]
fn a_core_that_is_in_the_sysroot_or_the_cache_will_do() {
    let machine = Machine::new();
    let active = machine.rustc("active", "1.96.0", false);
    let search = Search { rustc: some(&active), ..Search::default() };
    assert!(machine.find(&search).is_err());

    let key = probe::probe(&active, &machine.path("cache")).unwrap().key();
    let cached = core_cache::location(&machine.path("cache"), &key, "sm_75");
    fs::create_dir_all(&cached).unwrap();
    assert!(
        machine.find(&search).is_err(),
        "an empty entry is a damaged one, and nothing could build it again"
    );
    let write =
        |folder: &Path, _: &mut dyn FnMut(&str)| cache::write(&folder.join("cfg"), "panic=\"abort\"\n");
    core_cache::fill(&cached, &mut |_| (), write).unwrap();
    assert_eq!(machine.find(&search).unwrap().core, CoreOrigin::Cached);

    let libraries = machine.path("active/lib/rustlib/nvptx64-nvidia-cuda/lib");
    fs::create_dir_all(&libraries).unwrap();
    fs::write(libraries.join("libcore-0123.rlib"), "").unwrap();
    assert_eq!(machine.find(&search).unwrap().core, CoreOrigin::Prebuilt);
}

#[test]
fn a_rustup_proxy_is_never_run() {
    let machine = Machine::new();
    machine.program("cargo-home/bin/rustup", "#!/bin/sh\ntouch ran\nexit 1\n");
    let proxy = machine.path("cargo-home/bin/rustc");
    std::os::unix::fs::symlink("rustup", &proxy).unwrap();
    let real = machine.rustc("rustup/toolchains/nightly-x", "1.97.0-nightly", true);
    let search = Search {
        rustc: some(&proxy),
        rustup_toolchain: Some("nightly-x".into()),
        rustup_home: Some(machine.path("rustup")),
        path: some(proxy.parent().unwrap()),
        ..Search::default()
    };
    assert_eq!(machine.find(&search).unwrap().rustc, real);
    let search = Search { rustup_toolchain: None, ..search };
    assert_eq!(machine.find(&search).unwrap().origin, Origin::Rustup("nightly-x".to_owned()));
}

#[test]
fn a_compiler_is_asked_again_only_when_it_changes() {
    let machine = Machine::new();
    let rustc = machine.rustc("active", "1.96.0", true);
    let search = Search { rustc: some(&rustc), ..Search::default() };
    let first = machine.find(&search).unwrap();
    machine.rustc("active", "1.96.10", true);
    let second = machine.find(&search).unwrap();
    assert_ne!(first.key, second.key);
    assert_eq!(second.version, "rustc 1.96.10 (fake)");
}
