//! Whether messages from kernels can be decoded: the compiler's `core::fmt::Arguments` must have a known
//! layout. rustc guarantees none, so the sources of `core` are compared with known ones.

use std::fs;
use std::path::Path;

use crate::toolchain::{CoreOrigin, Toolchain};
use xxhash_rust::xxh3::xxh3_64;

/// Fingerprints of known sources: those of rustc 1.96 and 1.97.
const KNOWN: [u64; 1] = [0x5b13_6dce_1983_fa40];

/// Whether messages can be decoded from code that `toolchain` compiles: by its sources, or without them by its
/// version.
pub(crate) fn is_known(toolchain: &Toolchain) -> bool {
    match &toolchain.core {
        CoreOrigin::Sources(library) => has_known_sources(library),
        _ => ["rustc 1.96.", "rustc 1.97."].iter().any(|known| toolchain.version.starts_with(known)),
    }
}

/// Whether `core` in `library`, the folder of the sources, has a layout that is known.
fn has_known_sources(library: &Path) -> bool {
    let read = |file: &str| fs::read_to_string(library.join("core/src/fmt").join(file)).ok();
    let (Some(arguments), Some(argument)) = (read("mod.rs"), read("rt.rs")) else { return false };
    fingerprint(&arguments, &argument).is_some_and(|found| KNOWN.contains(&found))
}

/// A hash of the parts that decide the layout, without spacing.
fn fingerprint(arguments: &str, argument: &str) -> Option<u64> {
    let parts = [
        between(arguments, "// Internal representation:", "impl<'a> Arguments<'a> {")?,
        between(argument, "enum ArgumentType<'a> {", "macro_rules!")?,
    ];
    let text: String = parts.into_iter().flat_map(str::split_whitespace).collect();
    Some(xxh3_64(text.as_bytes()))
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let rest = &text[text.find(start)?..];
    Some(&rest[..rest.find(end)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::Origin;

    const ARGUMENTS: &str = "//\n// Internal representation:\n// two words\npub struct Arguments<'a> {}\nimpl<'a> Arguments<'a> {";
    const ARGUMENT: &str = "enum ArgumentType<'a> {\n Count(u16),\n}\nmacro_rules! x";

    #[test]
    fn spacing_does_not_count_and_words_do() {
        let base = fingerprint(ARGUMENTS, ARGUMENT).unwrap();
        assert_eq!(fingerprint(&ARGUMENTS.replace('\n', "\n\n"), ARGUMENT), Some(base));
        assert_ne!(fingerprint(&ARGUMENTS.replace("two", "three"), ARGUMENT), Some(base));
        assert_ne!(fingerprint(ARGUMENTS, &ARGUMENT.replace("u16", "u32")), Some(base));
    }

    #[test]
    fn sources_decide_if_they_exist_else_the_version() {
        let toolchain = |version: &str, core| Toolchain {
            rustc: "rustc".into(),
            origin: Origin::Distribution,
            sysroot: "/usr".into(),
            version: version.to_owned(),
            host: String::new(),
            core,
            key: String::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_known(&toolchain("rustc 1.96.0", CoreOrigin::Sources(folder.path().to_owned()))));
        for (version, known) in [
            ("rustc 1.96.0 (x)", true),
            ("rustc 1.97.0-nightly", true),
            ("rustc 1.98.0", false),
            ("rustc 1.9.6", false),
        ] {
            assert_eq!(is_known(&toolchain(version, CoreOrigin::Prebuilt)), known, "{version}");
        }
    }

    #[test]
    fn other_sources_are_unknown() {
        assert_eq!(fingerprint("pub struct Arguments<'a> {}", ARGUMENT), None);
        assert!(!has_known_sources(Path::new("no such folder")));
    }
}
