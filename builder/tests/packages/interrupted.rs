//! Builds that are killed, or fail for reasons of the machine: what they leave must not be taken for a result.

use std::fs;
use std::path::{Path, PathBuf};

use ferrogrid_build::Build;
use ferrogrid_syntax::compiled::CompiledTarget;

use crate::package::{Package, program};

fn targets(package: &Package) -> PathBuf {
    package.environment.out_dir.join("ferrogrid/targets")
}

/// The PTX files that the target's file names.
fn named(package: &Package) -> Vec<PathBuf> {
    let text = fs::read_to_string(targets(package).join("bin-app.txt")).unwrap();
    let target = CompiledTarget::from_text(&text).unwrap();
    target.images.into_iter().flat_map(|image| image.codes).map(|code| code.ptx).collect()
}

/// A killed cargo leaves its build script running, while the next cargo starts another in the same folder.
#[test]
fn a_build_waits_for_the_one_that_still_runs_in_its_folder() {
    let package = Package::new("", &[("src/main.rs", &program("0"))]);
    for number in 1..=3 {
        package.write("src/main.rs", &program(&number.to_string()));
        let build = |archs: &[&str]| {
            Build::new().arch(archs.iter().copied()).try_run(&package.environment).unwrap();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| build(&["sm_90"]));
            scope.spawn(|| build(&["sm_75", "sm_90"]));
            scope.spawn(|| build(&["sm_75"]));
        });
        let missing: Vec<PathBuf> = named(&package).into_iter().filter(|file| !file.is_file()).collect();
        assert!(missing.is_empty(), "{number}: {missing:?}");
    }
}

#[test]
fn a_failure_of_the_machine_is_not_recorded_as_one_of_the_kernels() {
    let package = Package::new("", &[("src/main.rs", &program("1"))]);
    let blocked = package.environment.out_dir.join("ferrogrid/bin-app.sm_75.ptx");
    fs::create_dir_all(blocked.join("folder")).unwrap();
    assert!(package.failure().contains("cannot write"), "{}", package.failure());
    assert!(!targets(&package).exists());
    fs::remove_dir_all(&blocked).unwrap();
    package.built();
    assert_eq!(named(&package), [blocked]);
}

#[test]
fn parts_of_files_that_a_killed_build_has_left_are_removed() {
    let package = Package::new("", &[("src/main.rs", &program("1"))]);
    let partial = Path::new("ferrogrid/bin-app.sm_75.ptx.partial-1-ThreadId(1)");
    let partial = package.environment.out_dir.join(partial);
    fs::create_dir_all(partial.parent().unwrap()).unwrap();
    fs::write(&partial, "half").unwrap();
    package.built();
    assert!(!partial.exists());
}
