//! Reading of metadata, from a text like cargo's.

use serde_json::json;

use super::*;

fn metadata() -> Value {
    let target = |kind: &str, name: &str, required: &[&str]| {
        json!({ "kind": [kind], "name": name, "src_path": format!("/w/app/{name}.rs"), "edition": "2024",
                "required-features": required })
    };
    let declared =
        |name: &str, rename: Option<&str>, kind: Option<&str>, features: &[&str], default: bool| {
            json!({ "name": name, "rename": rename, "kind": kind, "features": features,
                "uses_default_features": default })
        };
    json!({
        "packages": [
            {
                "id": "app", "name": "app", "version": "1.0.0", "source": null,
                "manifest_path": "/w/app/Cargo.toml",
                "metadata": { "ferrogrid": { "arch": ["sm_80", "sm_90"] } },
                "features": {
                    "gpu": ["cli", "fp16/rand", "fp16?/bytemuck", "libm/arch", "dep:libm"],
                    "cli": ["fp16/std"],
                },
                "targets": [
                    target("lib", "app", &[]), target("bin", "tool", &["cli"]), target("example", "show", &["gpu"]),
                    target("test", "all", &[]), target("custom-build", "build-script-build", &[]),
                    target("proc-macro", "derive", &[]),
                ],
                "dependencies": [
                    declared("ferrogrid", None, None, &[], true),
                    declared("half", Some("fp16"), None, &["num"], false),
                    declared("half", Some("fp16"), Some("dev"), &["more"], false),
                    declared("libm", None, None, &[], true),
                    declared("cc", None, Some("build"), &[], true),
                ],
            },
            { "id": "fg", "name": "ferrogrid", "version": "0.1.0", "source": null, "manifest_path": "/fg/Cargo.toml" },
            { "id": "dev", "name": "ferrogrid-device", "version": "0.1.0", "source": null, "manifest_path": "/fg/device/Cargo.toml" },
            { "id": "mac", "name": "ferrogrid-macros", "version": "0.1.0", "source": null, "manifest_path": "/fg/macros/Cargo.toml" },
            { "id": "half", "name": "half", "version": "2.4.1", "manifest_path": "/r/half/Cargo.toml",
              "source": "registry+https://github.com/rust-lang/crates.io-index" },
            { "id": "libm", "name": "libm", "version": "0.2.0", "manifest_path": "/g/libm/Cargo.toml",
              "source": "git+https://g/libm?branch=main#0123" },
            { "id": "cc", "name": "cc", "version": "1.0.0", "source": "registry+https://r.example/index", "manifest_path": "/r/cc/Cargo.toml" },
        ],
        "resolve": { "nodes": [
            { "id": "app", "deps": [
                { "name": "ferrogrid", "pkg": "fg" }, { "name": "fp16", "pkg": "half" },
                { "name": "libm", "pkg": "libm" }, { "name": "cc", "pkg": "cc" },
            ] },
            { "id": "fg", "deps": [{ "name": "ferrogrid_device", "pkg": "dev" }] },
            { "id": "dev", "deps": [{ "name": "ferrogrid_macros", "pkg": "mac" }], "features": ["half"] },
            { "id": "mac", "deps": [], "features": ["default"] },
        ] },
        "workspace_members": ["app"],
        "workspace_root": "/w",
        "target_directory": "/w/target",
    })
}

fn package(metadata: &Value) -> Package {
    let mut environment = Environment::new("/w/app", "/w/target/out");
    environment.features = vec!["gpu".to_owned()];
    Package::from_metadata(metadata, &environment).unwrap()
}

#[test]
fn targets_with_enabled_features_are_built() {
    let package = package(&metadata());
    let targets: Vec<_> =
        package.targets.iter().map(|it| format!("{} {}", it.kind.name(), it.name)).collect();
    assert_eq!(targets, ["lib app", "example show", "test all"]);
}

#[test]
fn of_a_dependency_only_the_library_is_taken() {
    let mut metadata = metadata();
    metadata["workspace_members"] = json!([]);
    let targets = package(&metadata).targets;
    assert_eq!(targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["app"]);
}

#[test]
fn of_a_package_that_cargo_has_fetched_only_the_library_is_taken() {
    let folder = query::cargo_home().unwrap().join("git/checkouts/app/0123456");
    let mut metadata = metadata();
    metadata["packages"][0]["manifest_path"] = json!(folder.join("Cargo.toml"));
    let mut environment = Environment::new(folder, "/elsewhere/out");
    environment.features = vec!["gpu".to_owned()];
    let targets = Package::from_metadata(&metadata, &environment).unwrap().targets;
    assert_eq!(targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["app"]);
}

#[test]
fn dependencies_are_described_as_another_package_can_repeat_them() {
    let package = package(&metadata());
    assert_eq!(package.dependencies.keys().collect::<Vec<_>>(), ["ferrogrid", "fp16", "libm"]);
    let half = &package.dependencies["fp16"];
    assert_eq!(half.package, "half");
    assert_eq!(half.source, Source::Registry { version: "2.4.1".to_owned(), index: None });
    assert_eq!(
        (half.default_features, half.features.as_slice()),
        (false, &["bytemuck", "more", "num", "rand"].map(str::to_owned)[..])
    );
    let libm = &package.dependencies["libm"];
    let reference = Some(("branch".to_owned(), "main".to_owned()));
    assert_eq!(libm.source, Source::Git { url: "https://g/libm".to_owned(), reference });
    assert!(libm.default_features);
    assert_eq!(libm.features, ["arch"]);
}

#[test]
fn the_crates_of_every_kernel_are_found_through_other_crates() {
    let package = package(&metadata());
    let [device, macros] = package.ferrogrid.as_ref().unwrap();
    assert_eq!(device.source, Source::Path("/fg/device".into()));
    assert_eq!(macros.source, Source::Path("/fg/macros".into()));
    assert_eq!((device.default_features, device.features.as_slice()), (false, &["half".to_owned()][..]));
    assert_eq!((macros.default_features, macros.features.len()), (true, 0));
    let folders: Vec<_> = package.local_folders(device).collect();
    assert_eq!(folders, [Path::new("/fg/device"), Path::new("/fg/macros")]);
}

#[test]
fn inputs_of_kernels_are_separate_from_the_rest_of_the_package() {
    let package = package(&metadata());
    let [device, _] = package.ferrogrid.as_ref().unwrap();
    assert_eq!(package.made_of(device).collect::<Vec<_>>(), ["dev", "mac"]);
    assert_eq!(package.made_of(&package.dependencies["ferrogrid"]).collect::<Vec<_>>(), ["dev", "fg", "mac"]);
}

#[test]
fn test_dependencies_of_a_dependency_are_ignored() {
    let mut metadata = metadata();
    let edges = metadata["resolve"]["nodes"][2]["deps"].as_array_mut().unwrap();
    edges.push(json!({ "name": "ferrogrid", "pkg": "fg", "dep_kinds": [{ "kind": "dev", "target": null }] }));
    edges.push(json!({ "name": "libm", "pkg": "libm", "dep_kinds": [{ "kind": "dev" }, { "kind": null }] }));
    let package = package(&metadata);
    let [device, _] = package.ferrogrid.as_ref().unwrap();
    assert_eq!(package.made_of(device).collect::<Vec<_>>(), ["dev", "libm", "mac"]);
    let folders: Vec<_> = package.local_folders(device).collect();
    assert_eq!(folders, [Path::new("/fg/device"), Path::new("/fg/macros")]);
}

#[test]
fn a_package_that_does_not_depend_on_ferrogrid_has_none() {
    let mut metadata = metadata();
    metadata["resolve"]["nodes"][0]["deps"] = json!([]);
    assert!(package(&metadata).ferrogrid.is_none());
}

#[test]
fn architectures_are_read_from_the_manifest() {
    assert_eq!(package(&metadata()).archs, ["sm_80", "sm_90"]);
}

#[test]
fn an_unlisted_package_is_an_error_that_names_it() {
    let environment = Environment::new("/elsewhere", "/w/target/out");
    let error = Package::from_metadata(&metadata(), &environment).unwrap_err().to_string();
    assert!(error.contains("/elsewhere/Cargo.toml"), "{error}");
}

#[test]
fn folders_that_cargo_does_not_look_into_are_not_watched() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Cargo.toml"), "[package]\nautotests = false\nautobins=true\n").unwrap();
    let names: Vec<_> =
        discovered(dir.path()).iter().map(|it| it.strip_prefix(dir.path()).unwrap().to_owned()).collect();
    assert_eq!(names, ["src/lib.rs", "src/main.rs", "src/bin", "examples", "benches"].map(PathBuf::from));
}

#[test]
fn patches_of_the_workspace_apply() {
    let mut metadata = metadata();
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let git = "git+https://g/half?branch=main";
    for (at, name, source) in
        [(2, "libm", registry), (2, "ferrogrid-macros", git), (1, "ferrogrid-device", registry)]
    {
        let declared = &mut metadata["packages"][at]["dependencies"];
        if declared.is_null() {
            *declared = json!([]);
        }
        declared.as_array_mut().unwrap().push(json!({ "name": name, "source": source }));
    }
    metadata["resolve"]["nodes"][2]["deps"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "libm", "pkg": "libm" }));
    metadata["packages"][5]["source"] = json!(null);
    let root = tempfile::tempdir().unwrap();
    metadata["workspace_root"] = json!(root.path());
    let manifest = |text: &str| std::fs::write(root.path().join("Cargo.toml"), text).unwrap();
    manifest("[workspace]\nmembers = [\"libm\"]\n");
    assert!(package(&metadata).patches.is_empty(), "those of configuration files cargo finds itself");
    manifest(
        "[patch.crates-io]\nlibm = { path = \"/g/libm\" }\nferrogrid-device = { path = \"/fg/device\" }\n\
         [patch.\"https://g/half\"]\nmacros = { package = \"ferrogrid-macros\", path = \"/fg/macros\" }\n",
    );
    let patches = package(&metadata).patches;
    let of = |source: &str| patches[source].iter().map(|it| it.source.clone()).collect::<Vec<_>>();
    assert_eq!(of("crates-io"), [Source::Path("/g/libm".into()), Source::Path("/fg/device".into())]);
    assert_eq!(of("https://g/half"), [Source::Path("/fg/macros".into())]);
    assert_eq!(patches.len(), 2);
}

#[test]
fn unpatched_dependencies_are_not_patches() {
    let mut metadata = metadata();
    let source = "git+https://g/libm?branch=main";
    metadata["packages"][2]["dependencies"] =
        json!([{ "name": "libm", "source": source }, { "name": "ferrogrid-macros" }]);
    metadata["resolve"]["nodes"][2]["deps"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "libm", "pkg": "libm" }));
    assert!(package(&metadata).patches.is_empty());
}
