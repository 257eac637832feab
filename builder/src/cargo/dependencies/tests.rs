//! The stamps of built externs, and what is read from cargo's messages.

use std::path::Path;

use super::artifacts::*;
use super::memory::*;
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
fn externs_are_rebuilt_if_a_file_of_theirs_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let [facade, beneath, stamp] = ["facade.rlib", "libm.rlib", "stamp"].map(|it| folder.path().join(it));
    fs::write(&facade, "facade").unwrap();
    fs::write(&beneath, "libm").unwrap();
    let crates = vec![("ferrogrid".to_owned(), facade.clone())];
    let libraries = Libraries { crates, beneath: vec![beneath.clone()], ..Libraries::default() };
    fs::write(&stamp, memory_of("inputs", &libraries, SystemTime::now())).unwrap();
    let known = |inputs| remembered(&stamp, inputs);
    assert_eq!(known("inputs").unwrap().libraries.crates, [("ferrogrid".to_owned(), facade)]);
    assert!(known("others").is_none());
    fs::remove_file(beneath).unwrap();
    assert!(known("inputs").is_none());
}

#[test]
fn externs_of_a_build_survive_changes_of_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let [facade, beneath] = ["facade.rlib", "libm.rlib"].map(|it| folder.path().join(it));
    let place = folder.path().join("place");
    let keep = |key: &str, content: &str| {
        for file in [&facade, &beneath] {
            cache::remove(file).unwrap();
            fs::write(file, content).unwrap();
        }
        let crates = vec![("ferrogrid".to_owned(), facade.clone())];
        let libraries = Libraries { crates, beneath: vec![beneath.clone()], ..Libraries::default() };
        Memory { libraries, key: key.to_owned() }
    };
    let kept = || ["facade.rlib", "libm.rlib"].map(|it| fs::read_to_string(place.join(it)).unwrap());
    let first = keep("1", "first");
    first.keep(&place).unwrap();
    let second = keep("2", "second");
    assert_eq!(kept(), ["first"; 2]);
    second.keep(&place).unwrap();
    assert_eq!(kept(), ["second"; 2]);
    // A removed file is restored.
    fs::remove_file(place.join("libm.rlib")).unwrap();
    second.keep(&place).unwrap();
    assert_eq!(kept(), ["second"; 2]);
}

#[test]
fn externs_are_not_rebuilt_while_they_are_locked() {
    let folder = tempfile::tempdir().unwrap();
    let (lock, made) = (folder.path().join("lock"), folder.path().join("made"));
    // Two builds of one crate from different sources: each replaces the other's result.
    let build = |sources: &str| {
        let find = || fs::read_to_string(&made).ok().filter(|made| made == sources);
        find_or_build(&lock, find, || cache::write(&made, sources))
    };
    let held = build("old").unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let held = build("new").unwrap();
            sender.send(()).unwrap();
            held
        });
        // It had time to write, unless the lock stopped it.
        assert!(receiver.recv_timeout(std::time::Duration::from_millis(200)).is_err());
        assert_eq!(fs::read_to_string(&made).unwrap(), held.0);
        // A third build from the same sources does not wait.
        assert_eq!(build("old").unwrap().0, "old");
        drop(held);
        receiver.recv().unwrap();
    });
    assert_eq!(fs::read_to_string(&made).unwrap(), "new");
}

#[test]
fn a_built_value_that_is_not_found_is_an_error_and_no_endless_loop() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = find_or_build(&folder.path().join("lock"), || None::<()>, || Ok(()));
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
    let git =
        Source::Git { url: "https://g/h".to_owned(), reference: Some(("branch".to_owned(), "b".to_owned())) };
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
    let found = built(&artifacts(messages), "", "half").unwrap();
    assert_eq!(found, Path::new("/t/nvptx64-nvidia-cuda/release/deps/libhalf-2.rlib"));
    let derive = built(&artifacts(messages), "", "derive").unwrap();
    assert_eq!(derive, Path::new("/t/release/deps/libderive-3.so"));
    assert!(built(&artifacts(messages), "", "libm").unwrap_err().to_string().contains("`libm`"));
}

/// Sources as rustc and a build script report them, below `folder`; returns cargo's messages.
fn reported(folder: &Path) -> String {
    for (path, text) in [
        (
            "t/nvptx64-nvidia-cuda/release/deps/helper-1.d",
            "x: lib.rs /h/a.rs /h/a\\ b/table.bin\n\nlib.rs:\n\n# env-dep:SHIFT=1\n# env-dep:OUT_DIR=x\n",
        ),
        ("t/release/build/helper-2/build_script_build-2.d", "x: /abs/build.rs\n"),
        (
            "t/release/build/helper-3/output",
            "cargo:rerun-if-changed=table.txt\ncargo::rerun-if-env-changed=TABLE\n",
        ),
    ] {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::write(folder.join(path), text).unwrap();
    }
    let file = |path: &str| folder.join(path).display().to_string();
    [
        serde_json::json!({ "reason": "compiler-artifact", "filenames": [file("t/nvptx64-nvidia-cuda/release/deps/libhelper-1.rlib")] }),
        serde_json::json!({ "reason": "compiler-artifact", "filenames": [file("t/release/build/helper-2/build-script-build")] }),
        serde_json::json!({ "reason": "build-script-executed", "out_dir": file("t/release/build/helper-3/out"),
                            "package_id": "path+file:///h/helper#0.1.0" }),
        serde_json::json!({ "reason": "build-script-executed", "out_dir": file("t/release/build/helper-3/out"),
                            "package_id": "registry+https://github.com/rust-lang/crates.io-index#libm@0.2.16" }),
    ]
    .map(|message| format!("{message}\n"))
    .concat()
}

#[test]
fn inputs_of_crates_are_read_from_dep_info_and_build_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = Inputs::of(&reported(folder.path()));
    let files: Vec<&str> = inputs.files.iter().map(|file| file.to_str().unwrap()).collect();
    assert_eq!(files, ["/abs/build.rs", "/h/a b/table.bin", "/h/a.rs", "/h/helper/table.txt"]);
    assert_eq!(inputs.variables.iter().collect::<Vec<_>>(), ["SHIFT", "TABLE"]);
}

#[test]
fn an_edit_of_any_source_is_seen_even_during_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let [source, stamp] = ["table.bin", "stamp"].map(|it| folder.path().join(it));
    fs::write(&source, "1").unwrap();
    let mut libraries = Libraries::default();
    libraries.inputs.files.insert(source.clone());
    let later = SystemTime::now() + std::time::Duration::from_secs(60);
    fs::write(&stamp, memory_of("inputs", &libraries, later)).unwrap();
    assert!(remembered(&stamp, "inputs").is_some());
    fs::write(&source, "12").unwrap();
    assert!(remembered(&stamp, "inputs").is_none());
    fs::write(&stamp, memory_of("inputs", &libraries, SystemTime::UNIX_EPOCH)).unwrap();
    assert!(remembered(&stamp, "inputs").is_none(), "it was written after the build began");
}

#[test]
fn a_damaged_library_is_removed_and_one_of_other_inputs_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let [library, stamp] = ["libm.rlib", "stamp"].map(|it| folder.path().join(it));
    fs::write(&library, "libm").unwrap();
    let libraries = Libraries { beneath: vec![library.clone()], ..Libraries::default() };
    fs::write(&stamp, memory_of("inputs", &libraries, SystemTime::now())).unwrap();
    remove_damaged(&stamp, "inputs").unwrap();
    assert!(library.exists(), "it is unchanged");
    fs::write(&library, "").unwrap();
    remove_damaged(&stamp, "others").unwrap();
    assert!(library.exists(), "another build made it later");
    remove_damaged(&stamp, "inputs").unwrap();
    assert!(!library.exists());
}
