//! Discovery and set-up on this machine, which has a device toolchain: without one these tests fail,
//! and `cargo ferrogrid setup` provides one. They install nothing.

use ferrogrid_build::{Arch, core_cache, setup, toolchain};

#[test]
fn the_discovered_toolchain_compiles_for_the_device() {
    let archs = [Arch::baseline()];
    let discovery = toolchain::discover(&archs);
    let best = discovery.best().unwrap_or_else(|| panic!("{discovery}")).clone();
    assert_eq!(toolchain::find(&archs).unwrap(), best);
    for candidate in &discovery.candidates {
        let line = candidate.to_string();
        assert!(line.contains(&candidate.rustc.display().to_string()), "{line}");
    }
}

#[test]
fn with_a_toolchain_set_up_only_fills_the_cache() {
    let archs = [Arch::baseline()];
    let best = toolchain::find(&archs).unwrap_or_else(|error| panic!("{error}"));
    let mut lines = Vec::new();
    let used = setup::setup(&archs, &mut |line| lines.push(format!("{line:?}"))).unwrap();
    assert_eq!(used, best);
    assert!(lines[0].starts_with("Note(\"device toolchain: rustc "), "{lines:?}");
    let is_command = |line: &String| line.contains("apt-get") || line.contains("rustup component");
    assert!(!lines[1..].iter().any(is_command), "{lines:?}");
    let entry = core_cache::ensure(&ferrogrid_build::cache::root(), &used, &archs[0], &mut |line| {
        panic!("a second time: {line}")
    });
    let entry = entry.unwrap();
    assert!(entry.cfgs.contains("target_arch=\"nvptx64\""), "{}", entry.cfgs);
    let libraries = entry.sysroot.join("lib/rustlib").join(toolchain::DEVICE_TARGET).join("lib");
    assert!(libraries.read_dir().unwrap().count() >= 2);
}
