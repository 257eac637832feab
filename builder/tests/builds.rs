//! Kinds of builds: by `cargo install`, as a dependency of another workspace, with folders that appear later,
//! without a usable cache. cargo itself runs them; the kernels are device-only, so that the host half of
//! Ferrogrid need not be built.

#[path = "build/user_cargo.rs"]
mod user_cargo;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A folder for packages; one at a time, since they share a target folder.
struct Folder {
    dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A module with a kernel that fills with `value`.
fn module(value: impl Display) -> String {
    format!(
        "#[cfg(target_os = \"cuda\")]\n#[ferrogrid::module]\npub mod kernels {{
    use ferrogrid::device::prelude::*;
    #[kernel]
    pub fn fill(t: Thread<1>, mut y: DisjointSlice<u32>) {{
        if let Some(y) = y.get_mut(t.index()) {{ *y = {value}; }}
    }}
}}\n"
    )
}

/// A program `name` that prints the PTX of its kernel, which fills with `value`.
fn program(name: &str, value: impl Display) -> String {
    let ptx = format!("concat!(env!(\"OUT_DIR\"), \"/ferrogrid/bin-{name}.sm_75.ptx\")");
    format!("{}fn main() {{ print!(\"{{}}\", include_str!({ptx})) }}\n", module(value))
}

impl Folder {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Folder { dir: tempfile::tempdir().unwrap(), _alone: alone }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(relative)
    }

    fn write(&self, relative: &str, text: &str) {
        fs::create_dir_all(self.path(relative).parent().unwrap()).unwrap();
        fs::write(self.path(relative), text).unwrap();
    }

    /// A package with a build step, whose Ferrogrid is at `source`, a line of Cargo.toml with `{}` for the crate.
    fn package(&self, name: &str, rest: &str, source: &str) {
        let of = |room: &str| source.replace("{}", room);
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n\
             ferrogrid-device = {{ {} }}\nferrogrid-macros = {{ {} }}\n{rest}\n[build-dependencies]\n\
             ferrogrid-build = {{ {} }}\n",
            of("device"),
            of("macros"),
            of("builder")
        );
        self.write(&format!("{name}/Cargo.toml"), &manifest);
        self.write(&format!("{name}/build.rs"), "fn main() { ferrogrid_build::compile() }\n");
    }

    /// The same with the sources of this workspace.
    fn local_package(&self, name: &str, rest: &str) {
        self.package(name, rest, &format!("path = \"{}/{{}}\"", checkout().display()));
    }

    /// The versions of the workspace, so that cargo resolves nothing.
    fn lock(&self, package: &str) {
        fs::copy(checkout().join("Cargo.lock"), self.path(package).join("Cargo.lock")).unwrap();
    }

    /// The crates that a build step and kernels need, in a repository; the source that packages give for them.
    fn repository(&self) -> String {
        for room in ["abi", "device", "macros", "syntax", "ptx", "builder"] {
            copy(&checkout().join(room), &self.path("sources").join(room));
        }
        let manifest = fs::read_to_string(checkout().join("Cargo.toml")).unwrap();
        let (workspace, _) = manifest.split_once("\n[package]").unwrap();
        let members = workspace.lines().find(|line| line.starts_with("members")).unwrap();
        let workspace =
            workspace.replace(members, "members = [\"device\", \"macros\", \"syntax\", \"builder\"]");
        // The tests of `device` need the crates that are left out here.
        let device = self.path("sources/device/Cargo.toml");
        let text = fs::read_to_string(&device).unwrap();
        fs::write(&device, text.split("[dev-dependencies]").next().unwrap()).unwrap();
        self.write("sources/Cargo.toml", &workspace);
        commit(&self.path("sources"));
        format!("git = \"file://{}\"", self.path("sources").display())
    }

    /// A folder in which cargo keeps what it fetches, without leaving this test's in its own.
    fn home(&self) -> PathBuf {
        let home = self.path("home");
        fs::create_dir(&home).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(home_of("CARGO_HOME", ".cargo").join("registry"), home.join("registry"))
            .unwrap();
        home
    }

    fn cargo(&self, package: &str, arguments: &[&str]) -> Command {
        let mut command = user_cargo::command(env!("CARGO"), &self.path(package));
        command.args(arguments);
        command
    }
}

/// The home folder of cargo or rustup.
fn home_of(variable: &str, folder: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named.unwrap_or_else(|| std::env::home_dir().unwrap().join(folder))
}

/// Runs it to its end; returns what it prints to standard error.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

/// What the last build step of `package` has left.
fn output_of(package: &str) -> PathBuf {
    let builds = user_cargo::target().join("debug/build").read_dir().unwrap().flatten();
    let is_own = |name: &str| name.strip_prefix(package).is_some_and(|rest| rest.starts_with('-'));
    let own = builds.filter(|build| is_own(&build.file_name().to_string_lossy()));
    let outputs = own.map(|build| build.path().join("out/ferrogrid")).filter(|folder| folder.is_dir());
    let time = |folder: &PathBuf| folder.join("metadata.json").metadata().unwrap().modified().unwrap();
    outputs.max_by_key(time).unwrap()
}

/// The PTX files of the last build of `package`, by name.
fn ptx_of(package: &str) -> Vec<(String, String)> {
    let files = output_of(package).read_dir().unwrap().flatten().map(|file| file.path());
    let mut found: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|it| it == "ptx"))
        .map(|file| {
            (file.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&file).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// The PTX that a `program` prints.
fn ptx_shown_by(program: &Path) -> String {
    let output = Command::new(program).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn names(ptx: &[(String, String)]) -> Vec<&str> {
    ptx.iter().map(|(name, _)| name.as_str()).collect()
}

/// A repository with everything that is in `folder`.
fn commit(folder: &Path) {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments);
        succeed(&mut git);
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all", "--force"]);
    git(&["commit", "--quiet", "--message", "x"]);
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().flatten() {
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

#[test]
#[ignore = "builds all crates of a build step, twice; `.ci/run` runs it"]
fn a_program_that_is_installed_from_git_has_its_kernels() {
    let folder = Folder::new();
    let git = folder.repository();
    folder.package("installed", "[workspace]\n", &git);
    folder.write("installed/src/main.rs", &program("installed", 4711));
    folder.lock("installed");
    let home = folder.home();
    succeed(
        folder
            .cargo("installed", &["metadata", "--format-version=1", "--filter-platform=host-tuple"])
            .env("CARGO_HOME", &home),
    );
    commit(&folder.path("installed"));

    let url = format!("file://{}", folder.path("installed").display());
    let install = ["install", "--git", &url, "--debug", "--locked", "--force", "--root"];
    // Once with cargo's temporary folder, once with a target folder.
    for (own_target, bin) in [(true, "first"), (false, "second")] {
        let root = folder.path(bin);
        let mut command = folder.cargo("home", &install);
        command.arg(&root).env("CARGO_HOME", &home);
        if own_target {
            command.env_remove("CARGO_TARGET_DIR");
        }
        succeed(&mut command);
        assert!(ptx_shown_by(&root.join("bin/installed")).contains(", 4711;"), "{bin}");
    }
}

#[test]
#[ignore = "builds all crates of a build step, twice; `.ci/run` runs it"]
fn vendored_sources_are_all_that_a_workspace_needs_and_a_program_that_is_installed_from_them() {
    let folder = Folder::new();
    let git = folder.repository();
    let rest = "either = { version = \"1\", default-features = false }\nhelper = { path = \"helper\" }\n[workspace]\n";
    folder.package("vendoring", rest, &git);
    folder.write(
        "vendoring/helper/Cargo.toml",
        "[package]\nname = \"helper\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    folder.write("vendoring/helper/src/lib.rs", "#![no_std]\npub const VALUE: u32 = 4000;\n");
    let value = "helper::VALUE + either::Either::<u32, u32>::Left(15).into_inner()";
    folder.write("vendoring/src/main.rs", &program("vendoring", value));
    folder.lock("vendoring");
    let sources = folder.path("vendored");
    let mut vendor = folder.cargo("vendoring", &["vendor"]);
    let vendored = vendor.arg(&sources).env("CARGO_HOME", folder.home()).output().unwrap();
    assert!(vendored.status.success(), "{}", String::from_utf8_lossy(&vendored.stderr));
    folder.write("vendoring/.cargo/config.toml", &String::from_utf8(vendored.stdout).unwrap());
    fs::remove_dir_all(folder.path("sources")).unwrap();

    // A target folder of its own: for a registry package cargo compares versions only, and would use an older
    // ferrogrid-build.
    let target = folder.path("target");
    let cargo = |package: &str, home: &str, arguments: &[&str]| {
        let mut command = folder.cargo(package, arguments);
        command.env("CARGO_HOME", folder.path(home)).env("CARGO_TARGET_DIR", &target);
        succeed(command.arg("--offline"));
    };
    cargo("vendoring", "empty", &["build", "--locked"]);
    assert!(ptx_shown_by(&target.join("debug/vendoring")).contains(", 4015;"));

    // The same folder in place of crates.io, with two more packages, of which one has device code for the other; an
    // installation reads no configuration but that of cargo's home.
    folder.package("lenses", "", "version = \"0.1\"");
    let lenses = "pub mod maths { pub fn power(x: u32) -> u32 { x + 12 } }\n";
    folder
        .write("lenses/src/lib.rs", &format!("#[cfg(target_os = \"cuda\")]\n#[ferrogrid::module]\n{lenses}"));
    folder.package("released", "lenses = \"0.1\"", "version = \"0.1\"");
    folder.write("released/src/main.rs", &program("released", "lenses::maths::power(4700)"));
    for package in ["lenses", "released"] {
        folder.write(&format!("{package}/.cargo-checksum.json"), "{\"files\":{}}");
        copy(&folder.path(package), &sources.join(package));
    }
    folder.write(
        "other/config.toml",
        &format!("[source.crates-io]\nreplace-with = \"copy\"\n[source.copy]\ndirectory = {sources:?}\n"),
    );
    let root = folder.path("root");
    cargo("other", "other", &["install", "released", "--debug", "--root", root.to_str().unwrap()]);
    assert!(ptx_shown_by(&root.join("bin/released")).contains(", 4712;"));
}

#[test]
fn a_package_that_another_workspace_builds_is_left_as_it_is() {
    let folder = Folder::new();
    folder.local_package("borrowed", "[workspace]\n");
    folder.write("borrowed/src/lib.rs", &module(815));
    folder.write("borrowed/examples/show.rs", &format!("{}fn main() {{}}\n", module(816)));
    folder.write(
        "user/Cargo.toml",
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\nborrowed = { path = \"../borrowed\" }\n",
    );
    folder.write("user/src/main.rs", "fn main() {}\n");
    folder.lock("user");
    succeed(&mut folder.cargo("user", &["build", "--offline"]));
    let ptx = ptx_of("borrowed");
    assert_eq!(names(&ptx), ["lib-borrowed.sm_75.ptx"]);
    assert!(ptx[0].1.contains(", 815;"));
    let left: Vec<_> =
        folder.path("borrowed").read_dir().unwrap().flatten().map(|it| it.file_name()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn the_first_file_of_a_new_folder_is_seen() {
    let folder = Folder::new();
    folder.local_package("growing", "[workspace]\n");
    folder.write("growing/src/lib.rs", &module(1));
    folder.lock("growing");
    let build =
        || succeed(&mut folder.cargo("growing", &["build", "--offline", "--verbose", "--all-targets"]));
    build();
    let fresh = |text: String| assert!(!text.contains("Dirty"), "nothing has changed:\n{text}");
    fresh(build());
    let mut expected = vec!["lib-growing.sm_75.ptx".to_owned()];
    for (number, (file, name)) in [
        ("examples/show.rs", "example-show"),
        ("tests/all.rs", "test-all"),
        ("benches/speed.rs", "bench-speed"),
        ("src/bin/tool.rs", "bin-tool"),
        ("src/main.rs", "bin-growing"),
    ]
    .into_iter()
    .enumerate()
    {
        // Cargo detects edits by their time.
        std::thread::sleep(std::time::Duration::from_millis(20));
        folder.write(&format!("growing/{file}"), &format!("{}fn main() {{}}\n", module(10 + number as u32)));
        build();
        expected.push(format!("{name}.sm_75.ptx"));
        expected.sort();
        assert_eq!(names(&ptx_of("growing")), expected, "{file}");
    }
    fresh(build());
}

#[test]
fn ferrogrid_may_have_another_name_and_types_a_crate_without_std() {
    let folder = Folder::new();
    folder.write(
        "types/Cargo.toml",
        &format!(
            "[package]\nname = \"types\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n\
             ferrogrid-device = {{ path = {:?} }}\n",
            checkout().join("device")
        ),
    );
    folder.write(
        "types/src/lib.rs",
        "#![no_std]\n#[derive(Clone, Copy, ferrogrid_device::DeviceCopy)]\n#[repr(C)]\n\
         pub struct Point { pub x: f32, pub y: f32 }\n",
    );
    folder.write(
        "renamed/Cargo.toml",
        &format!(
            "[package]\nname = \"renamed\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
             fg = {{ package = \"ferrogrid\", path = {:?} }}\ntypes = {{ path = \"../types\" }}\n\
             [build-dependencies]\nferrogrid-build = {{ path = {:?} }}\n",
            checkout(),
            checkout().join("builder")
        ),
    );
    folder.write("renamed/build.rs", "fn main() { ferrogrid_build::compile() }\n");
    let kernels = "{
        use fg::device::prelude::*;
        use types::Point;
        #[derive(Clone, Copy, DeviceCopy)]
        #[repr(C)]
        pub struct Scale(pub f32);
        #[kernel]
        pub fn scale(t: Thread<1>, by: Scale, points: &[Point], mut y: DisjointSlice<f32>, mut s: Shared<[f32; 32]>) {
            let i = t.index();
            s.fill_with(&t, |_| by.0);
            let by = t.publish(s)[0];
            if let Some(y) = y.get_mut(i) { *y = by * (points[i.get()].x + points[i.get()].y); }
        }
    }";
    let program = format!(
        "#[fg::module] mod kernels {kernels}\n#[fg::module(host_only, crate = fg)] mod native {kernels}
use fg::{{Device, Grid}};
fn main() {{
    let stream = Device::cpu().new_stream().unwrap();
    let points = stream.upload(&[types::Point {{ x: 1.0, y: 2.0 }}; 2]).unwrap();
    let mut y = stream.zeros(2).unwrap();
    kernels::scale(&stream, Grid::new(1, 32), kernels::Scale(2.0), &points, &mut y).unwrap();
    native::scale(&stream, Grid::new(1, 32), native::Scale(2.0), &points, &mut y).unwrap();
    println!(\"{{:?}}\", stream.download(&y).unwrap());
}}
"
    );
    folder.write("renamed/src/main.rs", &program);
    folder.lock("renamed");
    let output = folder.cargo("renamed", &["run", "--offline"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[6.0, 6.0]\n", "{text}");
    // Its kernels use another crate, whose macros may expand differently under `cfg(test)`.
    assert_eq!(names(&ptx_of("renamed")), ["bin-renamed-test.sm_75.ptx", "bin-renamed.sm_75.ptx"]);
}

/// The cache that tests of the build step fill.
fn filled_cache() -> PathBuf {
    let named = std::env::var_os("FERROGRID_CACHE").map(PathBuf::from);
    named.unwrap_or_else(|| dirs::cache_dir().unwrap().join("ferrogrid"))
}

/// Copies `core` for the architecture of the builds here from the user's cache, because building it takes half a minute.
fn copy_core(cache: &Path) {
    for compiler in filled_cache().join("core").read_dir().into_iter().flatten().flatten() {
        let entry = compiler.path().join("sm_75");
        if entry.is_dir() {
            copy(&entry, &cache.join("core").join(compiler.file_name()).join("sm_75"));
        }
    }
}

#[test]
#[ignore = "builds the device half of Ferrogrid anew; `.ci/run` runs it"]
fn without_a_usable_cache_a_package_builds_for_itself() {
    let folder = Folder::new();
    folder.local_package("homeless", "[workspace]\n");
    folder.lock("homeless");
    folder.write("homeless/src/lib.rs", &module(4));
    succeed(&mut folder.cargo("homeless", &["build", "--offline"]));
    let own = output_of("homeless").join("cache");
    copy_core(&own);
    folder.write("file", "no folder");
    let places = [("FERROGRID_CACHE", "file/cache", "file/cache"), ("HOME", "file", "file/.cache/ferrogrid")];
    for (number, (variable, value, cache)) in places.into_iter().enumerate() {
        // Cargo detects edits by their time.
        std::thread::sleep(std::time::Duration::from_millis(20));
        folder.write("homeless/src/lib.rs", &module(5 + number));
        let mut command = folder.cargo("homeless", &["build", "--offline"]);
        command.env("CARGO_HOME", home_of("CARGO_HOME", ".cargo"));
        command.env("RUSTUP_HOME", home_of("RUSTUP_HOME", ".rustup"));
        command.env_remove("FERROGRID_CACHE").env_remove("XDG_CACHE_HOME");
        let text = succeed(command.env(variable, folder.path(value)));
        assert!(
            text.contains(&format!("{cache} cannot be used")) && text.contains("FERROGRID_CACHE"),
            "{text}"
        );
        let ptx = ptx_of("homeless");
        assert_eq!(names(&ptx), ["lib-homeless.sm_75.ptx"]);
        assert!(ptx[0].1.contains(&format!(", {};", 5 + number)), "{}", ptx[0].1);
        assert!(own.join("crates").is_dir());
    }
}

#[test]
#[ignore = "builds the device half of Ferrogrid anew; `.ci/run` runs it"]
fn damaged_crates_in_the_cache_are_built_again() {
    damage_is_repaired("careful", "crates", "libferrogrid_device-");
}

#[test]
#[ignore = "builds `core`; `.ci/run` runs it"]
fn a_damaged_core_in_the_cache_is_built_again() {
    damage_is_repaired("thorough", "core", "libcore-");
}

/// Builds the package `name`, damages the `libraries` below a folder of its cache, and builds it again.
fn damage_is_repaired(name: &str, below: &str, libraries: &str) {
    let folder = Folder::new();
    folder.local_package(name, "[workspace]\n");
    folder.write(&format!("{name}/src/lib.rs"), &module(20));
    folder.lock(name);
    let cache = folder.path("cache");
    let build = || succeed(folder.cargo(name, &["build", "--offline"]).env("FERROGRID_CACHE", &cache));
    copy_core(&cache);
    build();
    let mut damaged = Vec::new();
    overwrite(&cache.join(below), libraries, &mut damaged);
    assert!(!damaged.is_empty());
    std::thread::sleep(std::time::Duration::from_millis(20));
    folder.write(&format!("{name}/src/lib.rs"), &module(21));
    build();
    assert!(ptx_of(name)[0].1.contains(", 21;"));
    assert!(damaged.iter().all(|file| !file.exists() || file.metadata().unwrap().len() > 100), "{damaged:?}");
}

/// Overwrites with garbage each library whose name begins so.
fn overwrite(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            overwrite(&path, name, found);
        } else if entry.file_name().to_string_lossy().starts_with(name)
            && path.extension().is_some_and(|it| it == "rlib")
        {
            fs::write(&path, "damaged").unwrap();
            found.push(path);
        }
    }
}
