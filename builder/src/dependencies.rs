//! The crates that device code links against: a facade called `ferrogrid`, and the no_std
//! dependencies that annotated modules name. An inner cargo builds them in the cache, where
//! packages share them. It must not know the kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use crate::arch::Arch;
use crate::cache::{self, Lock};
use crate::core_cache::CoreEntry;
use crate::error::Error;
use crate::libdevice;
use crate::metadata::{Dependency, Package, Source};
use crate::panic_strategy::PanicStrategy;
use crate::toolchain::{DEVICE_TARGET, Toolchain};
use crate::{inner, inner_cargo};

/// What a device crate is compiled against.
#[derive(Debug)]
pub(crate) struct Externs {
    /// Extern name and rlib.
    pub(crate) crates: Vec<(String, PathBuf)>,
    /// The folder where they are, with what they depend on.
    pub(crate) folder: PathBuf,
    /// Changes when any of the rlibs does.
    pub(crate) key: String,
}

/// What the externs of one package are made of.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) package: &'a Package,
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) panic: PanicStrategy,
    /// Where mathematics comes from, if not from `libm`.
    pub(crate) libdevice: Option<&'a Path>,
    /// The dependencies that kernels name, by extern name.
    pub(crate) named: BTreeMap<String, &'a Dependency>,
}

impl<'a> Plan<'a> {
    /// The dependencies among `names`; the facade is not one of them.
    pub(crate) fn new<'n>(
        package: &'a Package,
        toolchain: &'a Toolchain,
        panic: PanicStrategy,
        libdevice: Option<&'a Path>,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Self {
        let mut named = BTreeMap::new();
        for name in names {
            if let Some((name, dependency)) = package.dependencies.get_key_value(name)
                && !dependency.is_ferrogrid()
            {
                named.insert(name.clone(), dependency);
            }
        }
        Plan { package, toolchain, panic, libdevice, named }
    }

    /// The folders whose content the externs depend on.
    pub(crate) fn local_folders(&self) -> impl Iterator<Item = &PathBuf> {
        let ferrogrid = self.package.ferrogrid.iter().flatten();
        ferrogrid.chain(self.named.values().copied()).flat_map(|it| self.package.local_folders(it))
    }

    /// Builds the externs for `arch`, unless nothing has changed since they were last built, and puts them into `place`.
    /// There they stay as they are, whatever other builds make of the cache.
    pub(crate) fn build(
        &self,
        arch: &Arch,
        core: &CoreEntry,
        cache_root: &Path,
        place: &Path,
    ) -> Result<Externs, Error> {
        let manifest = self.manifest()?;
        let versions = self.versions();
        let shared = cache_root.join("crates").join(&self.toolchain.key).join(arch.as_str());
        let folder = shared.join("packages").join(cache::key(format!("{manifest}{versions}").as_bytes()));
        let inputs = self.inputs_key(&manifest, &versions, core);
        let stamp = folder.join("stamp");
        let as_last_time = || remembered(&stamp, &inputs);
        let (memory, _reading) = found_or_made(&shared.join("lock"), as_last_time, || {
            cache::write(&folder.join("Cargo.toml"), &manifest)?;
            cache::write(&folder.join("lib.rs"), FACADE)?;
            self.keep_versions(&folder)?;
            let libraries = self.run_cargo(arch, core, &folder, &shared.join("target"))?;
            cache::write(&stamp, &memory_of(&inputs, &libraries))
        })?;
        memory.keep(place)?;
        let crates = memory.crates.into_iter().map(|(name, file)| (name, kept(&file, place))).collect();
        Ok(Externs { crates, folder: place.to_owned(), key: memory.key })
    }

    fn manifest(&self) -> Result<String, Error> {
        let Some(ferrogrid) = &self.package.ferrogrid else {
            return Err(Error::NoFerrogrid { package: self.package.name.clone() });
        };
        let mut text = String::from(FACADE_PACKAGE);
        for dependency in ferrogrid {
            let mut dependency = dependency.clone();
            if self.panic == PanicStrategy::Trap && dependency.package == "ferrogrid-device" {
                dependency.features.push("panic-trap".to_owned());
            }
            if self.libdevice.is_some() && dependency.package == "ferrogrid-device" {
                dependency.features.push("libdevice".to_owned());
            }
            text.push_str(&dependency_line(&dependency.package, &dependency));
        }
        for (name, dependency) in &self.named {
            if !ferrogrid.iter().any(|it| it.id == dependency.id) {
                text.push_str(&dependency_line(name, dependency));
            }
        }
        Ok(text)
    }

    /// Changes when the inner cargo could build something else.
    /// What was resolved for the crates that are built, one package a line. The rest of Cargo.lock does not matter
    /// here: packages that agree in this share one build, whichever cargo made it.
    fn versions(&self) -> String {
        let ferrogrid = self.package.ferrogrid.iter().flatten();
        let all = ferrogrid.chain(self.named.values().copied()).flat_map(|it| self.package.made_of(it));
        let all: BTreeSet<&str> = all.map(String::as_str).collect();
        all.iter().map(|id| format!("{id}\n")).collect()
    }

    /// Lets the inner cargo start from what is resolved here; it drops what it does not need.
    fn keep_versions(&self, folder: &Path) -> Result<(), Error> {
        let lock_file = folder.join("Cargo.lock");
        let Ok(lock_text) = fs::read_to_string(self.package.workspace_root.join("Cargo.lock")) else {
            return Ok(());
        };
        if lock_file.is_file() { Ok(()) } else { cache::write(&lock_file, &lock_text) }
    }

    fn inputs_key(&self, manifest: &str, versions: &str, core: &CoreEntry) -> String {
        let mut content = format!("{manifest}\n{versions}\n{}\n", core.sysroot.display());
        if let Some(file) = self.libdevice {
            content.push_str(&format!("{} {}\n", file.display(), file_key(file)));
        }
        for folder in self.local_folders() {
            source_stamps(folder, &mut content);
        }
        cache::key(content.as_bytes())
    }

    fn run_cargo(
        &self,
        arch: &Arch,
        core: &CoreEntry,
        folder: &Path,
        target_dir: &Path,
    ) -> Result<Libraries, Error> {
        let cargo = |extra: &[&str]| {
            let mut command = inner_cargo::build(self.toolchain, &folder.join("Cargo.toml"), target_dir);
            let flags = [
                "--sysroot".to_owned(),
                core.sysroot.display().to_string(),
                "-Cdebuginfo=line-directives-only".to_owned(),
            ];
            inner_cargo::device_flags(&mut command, arch, &flags);
            command.args(["--quiet", "--message-format=json-render-diagnostics"]).args(extra);
            // The user's cargo configuration (vendored or private sources) is found from here.
            command.current_dir(&self.package.workspace_root);
            inner::run(&mut command)
        };
        let mut output = cargo(&["--offline"])?;
        if !output.status.success() && wants_network(&output.stderr) {
            output = cargo(&[])?;
        }
        if !output.status.success() {
            let mut crates = vec!["ferrogrid"];
            crates.extend(self.named.keys().map(String::as_str));
            return Err(Error::Dependencies {
                crates: crates.join(", "),
                diagnostics: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
            });
        }
        let artifacts = artifacts(&String::from_utf8_lossy(&output.stdout));
        let mut crates = Vec::new();
        let facade = built(&artifacts, FACADE_NAME)?;
        let own = folder.join("libferrogrid.rlib");
        // A new file, since builds hold links to the old one.
        cache::remove(&own)?;
        fs::copy(&facade, &own).map_err(Error::io("copy", &facade))?;
        if let Some(file) = self.libdevice {
            libdevice::add_to(&own, file)?;
        }
        crates.push(("ferrogrid".to_owned(), own));
        for (name, dependency) in &self.named {
            crates.push((name.clone(), built(&artifacts, &dependency.package)?));
        }
        // The facade as cargo names it is that of the package built last; it is kept above.
        let others = artifacts.iter().filter(|artifact| artifact.package != FACADE_NAME);
        Ok(Libraries { crates, beneath: others.filter_map(library).collect() })
    }
}

/// What the inner cargo has built.
struct Libraries {
    /// Extern name and library of what device crates are linked against.
    crates: Vec<(String, PathBuf)>,
    /// All that rustc may read for that: a build that was ended half-way may have left out any of them.
    beneath: Vec<PathBuf>,
}

const FACADE_NAME: &str = "ferrogrid-device-facade";

const FACADE_PACKAGE: &str = "\
[package]
name = \"ferrogrid-device-facade\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
name = \"ferrogrid\"
path = \"lib.rs\"

[workspace]

[profile.release]
debug = \"line-directives-only\"
codegen-units = 1

[dependencies]
";

/// What `ferrogrid` is on the device: the part of the host's facade that kernels can use, under the same paths, and under
/// no others: rustc proposes what it finds here to import, and the host's half must compile, too.
const FACADE: &str = "\
#![no_std]
pub use ferrogrid_device as device;
pub use ferrogrid_device::DeviceCopy;
pub use ferrogrid_macros::{constant, kernel, module};
";

fn dependency_line(name: &str, dependency: &Dependency) -> String {
    let mut fields = vec![format!("package = {:?}", dependency.package)];
    match &dependency.source {
        Source::Path(folder) => fields.push(format!("path = {:?}", folder.to_string_lossy())),
        Source::Registry { version, index } => {
            fields.push(format!("version = \"={version}\""));
            fields.extend(index.as_ref().map(|index| format!("registry-index = {index:?}")));
        }
        Source::Git { url, reference } => {
            fields.push(format!("git = {url:?}"));
            fields.extend(reference.as_ref().map(|(kind, value)| format!("{kind} = {value:?}")));
        }
    }
    if !dependency.default_features {
        fields.push("default-features = false".to_owned());
    }
    if !dependency.features.is_empty() {
        fields.push(format!("features = {:?}", dependency.features));
    }
    format!("{name} = {{ {} }}\n", fields.join(", "))
}

/// Whether cargo failed only because it was told to stay off the network.
fn wants_network(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("offline")
}

/// A crate that cargo reports.
struct Artifact {
    package: String,
    is_macro: bool,
    files: Vec<PathBuf>,
}

/// The libraries and proc macros among cargo's messages.
fn artifacts(messages: &str) -> Vec<Artifact> {
    let mut artifacts = Vec::new();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        if message["reason"] != "compiler-artifact" {
            continue;
        }
        let kinds = message["target"]["kind"].as_array();
        let is = |wanted: &str| kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted));
        if !(is("lib") || is("rlib") || is("proc-macro")) {
            continue;
        }
        let files = message["filenames"].as_array().into_iter().flatten();
        artifacts.push(Artifact {
            package: package_name(message["package_id"].as_str().unwrap_or_default()),
            is_macro: is("proc-macro"),
            files: files.filter_map(Value::as_str).map(PathBuf::from).collect(),
        });
    }
    artifacts
}

/// The name in a package id: `path+file:///x/half#2.0.0` and `registry+https://i#half@2.0.0`.
fn package_name(id: &str) -> String {
    let (url, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    if let Some((name, _)) = fragment.split_once('@') {
        return name.to_owned();
    }
    url.split('?').next().unwrap_or(url).rsplit('/').next().unwrap_or_default().to_owned()
}

/// What rustc links for a package: its rlib for the device (it may be built for the host too), or
/// the library of a proc macro.
fn built(artifacts: &[Artifact], package: &str) -> Result<PathBuf, Error> {
    let found = artifacts.iter().rev().filter(|artifact| artifact.package == package).find_map(library);
    found.ok_or_else(|| Error::Metadata(format!("cargo reported no library of `{package}` for the device")))
}

/// The file of an artifact that rustc links; `None` if it was built for the host.
fn library(artifact: &Artifact) -> Option<PathBuf> {
    let is_device_rlib = |file: &&PathBuf| {
        file.extension().is_some_and(|it| it == "rlib")
            && file.components().any(|part| part.as_os_str() == DEVICE_TARGET)
    };
    let is_library =
        |file: &&PathBuf| file.extension().is_some_and(|it| it == std::env::consts::DLL_EXTENSION);
    let mut files = artifact.files.iter();
    if artifact.is_macro { files.find(is_library).cloned() } else { files.find(is_device_rlib).cloned() }
}

/// What `remembered` reads: the inputs, and a line for each library, without a name for those beneath the crates.
fn memory_of(inputs: &str, libraries: &Libraries) -> String {
    let named = libraries.crates.iter().map(|(name, file)| (name.as_str(), file));
    let lines = named.chain(libraries.beneath.iter().map(|file| ("", file)));
    let line = |(name, file): (&str, &PathBuf)| format!("{name}\t{}\t{}\n", file_key(file), file.display());
    format!("{inputs}\n") + &lines.map(line).collect::<String>()
}

/// What `find` finds, made first if there is nothing, and a lock that keeps all others from making it anew. Making
/// it excludes those who hold it, so nobody holds it for longer than it takes to link the files.
fn found_or_made<T>(
    lock: &Path,
    find: impl Fn() -> Option<T>,
    mut make: impl FnMut() -> Result<(), Error>,
) -> Result<(T, Lock), Error> {
    loop {
        let reading = Lock::shared(lock)?;
        if let Some(found) = find() {
            return Ok((found, reading));
        }
        drop(reading);
        let _writing = Lock::exclusive(lock, || {})?;
        // Another build may have made it meanwhile; and may make it differently before it is held, above.
        if find().is_none() {
            make()?;
            find()
                .ok_or_else(|| Error::Metadata("cargo built no usable crates for the device".to_owned()))?;
        }
    }
}

/// What a stamp says.
struct Memory {
    crates: Vec<(String, PathBuf)>,
    beneath: Vec<PathBuf>,
    key: String,
}

impl Memory {
    /// Puts all of the files into `place`, unless they are there: by links, which cost nothing and last when cargo replaces
    /// the files, or as copies where there are no links.
    fn keep(&self, place: &Path) -> Result<(), Error> {
        let named = self.crates.iter().map(|(_, file)| file);
        let files: Vec<&PathBuf> = named.chain(&self.beneath).collect();
        let stamp = place.join("stamp");
        let is_whole = fs::read_to_string(&stamp).is_ok_and(|key| key == self.key);
        if is_whole && files.iter().all(|file| kept(file, place).is_file()) {
            return Ok(());
        }
        cache::remove(place)?;
        cache::create_dir(place)?;
        for file in files {
            let to = kept(file, place);
            // A crate may be both named and beneath another.
            if !to.is_file() && fs::hard_link(file, &to).is_err() {
                fs::copy(file, &to).map_err(Error::io("copy", file))?;
            }
        }
        cache::write(&stamp, &self.key)
    }
}

/// Where `Memory::keep` puts a file.
fn kept(file: &Path, place: &Path) -> PathBuf {
    place.join(file.file_name().unwrap_or_default())
}

/// The externs as last built, if they were built from the same inputs and all files are still the same.
fn remembered(stamp: &Path, inputs: &str) -> Option<Memory> {
    let text = fs::read_to_string(stamp).ok()?;
    let mut lines = text.lines();
    if lines.next()? != inputs {
        return None;
    }
    let (mut crates, mut beneath) = (Vec::new(), Vec::new());
    for line in lines {
        let mut fields = line.splitn(3, '\t');
        let (name, key, file) = (fields.next()?, fields.next()?, PathBuf::from(fields.next()?));
        if file_key(&file) != key {
            return None;
        }
        if name.is_empty() { beneath.push(file) } else { crates.push((name.to_owned(), file)) }
    }
    Some(Memory { crates, beneath, key: cache::key(text.as_bytes()) })
}

/// Changes when the file is replaced or gone.
fn file_key(path: &Path) -> String {
    let Ok(metadata) = path.metadata() else { return "gone".to_owned() };
    let modified = metadata.modified().ok().and_then(|it| it.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!("{}-{}", metadata.len(), modified.map_or(0, |it| it.as_nanos()))
}

/// Adds a line for each file of a package that cargo would compile.
fn source_stamps(folder: &Path, out: &mut String) {
    for name in ["Cargo.toml", "build.rs"] {
        out.push_str(&format!("{} {}\n", folder.join(name).display(), file_key(&folder.join(name))));
    }
    let mut open = vec![folder.join("src")];
    while let Some(folder) = open.pop() {
        let mut entries: Vec<PathBuf> =
            folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                open.push(entry);
            } else {
                out.push_str(&format!("{} {}\n", entry.display(), file_key(&entry)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(source: Source) -> Dependency {
        Dependency {
            package: "half".to_owned(),
            id: String::new(),
            source,
            default_features: true,
            features: Vec::new(),
        }
    }

    #[test]
    fn externs_are_built_again_if_a_file_beneath_them_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let [facade, beneath, stamp] = ["facade.rlib", "libm.rlib", "stamp"].map(|it| folder.path().join(it));
        fs::write(&facade, "facade").unwrap();
        fs::write(&beneath, "libm").unwrap();
        let crates = vec![("ferrogrid".to_owned(), facade.clone())];
        fs::write(&stamp, memory_of("inputs", &Libraries { crates, beneath: vec![beneath.clone()] }))
            .unwrap();
        let known = |inputs| remembered(&stamp, inputs);
        assert_eq!(known("inputs").unwrap().crates, [("ferrogrid".to_owned(), facade)]);
        assert!(known("others").is_none());
        fs::remove_file(beneath).unwrap();
        assert!(known("inputs").is_none());
    }

    #[test]
    fn what_a_build_keeps_stays_as_it_was_when_the_cache_changes() {
        let folder = tempfile::tempdir().unwrap();
        let [facade, beneath] = ["facade.rlib", "libm.rlib"].map(|it| folder.path().join(it));
        let place = folder.path().join("place");
        let keep = |key: &str, content: &str| {
            for file in [&facade, &beneath] {
                cache::remove(file).unwrap();
                fs::write(file, content).unwrap();
            }
            let crates = vec![("ferrogrid".to_owned(), facade.clone())];
            Memory { crates, beneath: vec![beneath.clone()], key: key.to_owned() }
        };
        let kept = || ["facade.rlib", "libm.rlib"].map(|it| fs::read_to_string(place.join(it)).unwrap());
        let first = keep("1", "first");
        first.keep(&place).unwrap();
        let second = keep("2", "second");
        assert_eq!(kept(), ["first"; 2]);
        second.keep(&place).unwrap();
        assert_eq!(kept(), ["second"; 2]);
        // A file that somebody has removed is put there again.
        fs::remove_file(place.join("libm.rlib")).unwrap();
        second.keep(&place).unwrap();
        assert_eq!(kept(), ["second"; 2]);
    }

    #[test]
    fn who_holds_the_externs_sees_nobody_make_them_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (lock, made) = (folder.path().join("lock"), folder.path().join("made"));
        // Two builds of one crate whose sources differ: each makes what the other's does not fit.
        let build = |sources: &str| {
            let find = || fs::read_to_string(&made).ok().filter(|made| made == sources);
            found_or_made(&lock, find, || cache::write(&made, sources))
        };
        let held = build("old").unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let held = build("new").unwrap();
                sender.send(()).unwrap();
                held
            });
            // It has had the time to write, if nothing kept it from that.
            assert!(receiver.recv_timeout(std::time::Duration::from_millis(200)).is_err());
            assert_eq!(fs::read_to_string(&made).unwrap(), held.0);
            // A third that wants the same does not wait.
            assert_eq!(build("old").unwrap().0, "old");
            drop(held);
            receiver.recv().unwrap();
        });
        assert_eq!(fs::read_to_string(&made).unwrap(), "new");
    }

    #[test]
    fn what_was_made_and_is_not_found_is_an_error_and_no_endless_loop() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = found_or_made(&folder.path().join("lock"), || None::<()>, || Ok(()));
        assert!(nothing.unwrap_err().to_string().contains("no usable crates"));
    }

    #[test]
    fn a_dependency_is_repeated_as_it_was_resolved() {
        let registry = Source::Registry { version: "2.4.1".to_owned(), index: None };
        assert_eq!(
            dependency_line("h", &dependency(registry)),
            "h = { package = \"half\", version = \"=2.4.1\" }\n"
        );
        let path = Dependency {
            default_features: false,
            features: vec!["num".to_owned(), "x".to_owned()],
            ..dependency(Source::Path("/a b".into()))
        };
        assert_eq!(
            dependency_line("half", &path),
            "half = { package = \"half\", path = \"/a b\", default-features = false, features = [\"num\", \"x\"] }\n"
        );
        let git = Source::Git {
            url: "https://g/h".to_owned(),
            reference: Some(("branch".to_owned(), "b".to_owned())),
        };
        assert_eq!(
            dependency_line("half", &dependency(git)),
            "half = { package = \"half\", git = \"https://g/h\", branch = \"b\" }\n"
        );
        let other = Source::Registry { version: "1.0.0".to_owned(), index: Some("https://r".to_owned()) };
        assert!(dependency_line("half", &dependency(other)).contains("registry-index = \"https://r\""));
    }

    #[test]
    fn package_names_are_read_from_ids() {
        assert_eq!(package_name("registry+https://i#half@2.0.0"), "half");
        assert_eq!(package_name("path+file:///x/half#2.0.0"), "half");
        assert_eq!(package_name("git+https://g/half?branch=b#2.0.0"), "half");
    }

    #[test]
    fn the_device_library_is_chosen_among_artifacts() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"registry+https://i#half@2.0.0","target":{"kind":["lib"]},"filenames":["/t/release/deps/libhalf-1.rlib","/t/release/deps/libhalf-1.rmeta"]}
{"reason":"compiler-artifact","package_id":"registry+https://i#half@2.0.0","target":{"kind":["lib"]},"filenames":["/t/nvptx64-nvidia-cuda/release/deps/libhalf-2.rlib"]}
{"reason":"compiler-artifact","package_id":"path+file:///x/derive#1.0.0","target":{"kind":["proc-macro"]},"filenames":["/t/release/deps/libderive-3.so"]}
{"reason":"build-finished","success":true}"#;
        let found = built(&artifacts(messages), "half").unwrap();
        assert_eq!(found, Path::new("/t/nvptx64-nvidia-cuda/release/deps/libhalf-2.rlib"));
        let derive = built(&artifacts(messages), "derive").unwrap();
        assert_eq!(derive, Path::new("/t/release/deps/libderive-3.so"));
        assert!(built(&artifacts(messages), "libm").unwrap_err().to_string().contains("`libm`"));
    }

    #[test]
    fn an_edit_of_a_source_file_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("src/a")).unwrap();
        fs::write(dir.path().join("src/a/b.rs"), "1").unwrap();
        let stamps = || {
            let mut out = String::new();
            source_stamps(dir.path(), &mut out);
            out
        };
        let before = stamps();
        assert_eq!(before, stamps());
        fs::write(dir.path().join("src/a/b.rs"), "12").unwrap();
        assert_ne!(before, stamps());
    }
}
