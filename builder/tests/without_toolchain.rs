//! The build step where no compiler supports the device, or none is wanted. It is the only test of its process, because the
//! environment disables toolchains.

use std::fs;
use std::path::Path;

use ferrogrid_build::{Build, Environment, Error, Output};

fn build(main: &str) -> Result<Output, Error> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let device = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("device");
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\nferrogrid-device = {{ path = {device:?} }}\n"
    );
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("Cargo.toml"), manifest).unwrap();
    fs::copy(device.with_file_name("Cargo.lock"), root.join("Cargo.lock")).unwrap();
    fs::write(root.join("src/main.rs"), main).unwrap();
    Build::new().try_run(&Environment::new(&root, root.join("target/debug/build/app-0/out")))
}

#[test]
fn without_a_compiler_device_code_is_an_error_or_left_out() {
    // SAFETY: the only test of this process, and no other thread reads the environment yet.
    unsafe { std::env::set_var("FERROGRID_DEVICE_RUSTC", "/nowhere/rustc") };

    let plain = build("#[ferrogrid::module(host_only)]\nmod kernels {}\nfn main() {}\n").unwrap();
    assert!(plain.modules.is_empty() && plain.ptx.is_empty());
    let watches_source = |directive: &String| directive.ends_with("src/main.rs");
    assert!(plain.directives.iter().any(watches_source), "{:?}", plain.directives);

    let error = build("#[ferrogrid::module]\nmod kernels {}\nfn main() {}\n").unwrap_err().to_string();
    assert!(error.contains("/nowhere/rustc") && error.contains("cargo ferrogrid setup"), "{error}");

    // docs.rs has neither a device toolchain nor time for one. This machine may have one: it is not used.
    // SAFETY: as above.
    unsafe {
        std::env::remove_var("FERROGRID_DEVICE_RUSTC");
        std::env::set_var("DOCS_RS", "1");
    }
    let output = build("#[ferrogrid::module]\nmod kernels {}\nfn main() {}\n").unwrap();
    assert!(output.modules.is_empty() && output.ptx.is_empty());
    let is_warning = |directive: &&String| directive.starts_with("cargo::warning=");
    assert_eq!(output.directives.iter().find(is_warning), None);
}
