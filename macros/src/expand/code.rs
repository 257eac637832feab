//! The device code of a module: what the build step left for the target that rustc compiles.

use std::path::Path;

use ferrogrid_syntax::Fingerprint;
use ferrogrid_syntax::compiled::{
    CompiledImage, CompiledModule, CompiledTarget, Diagnostic, NO_DEVICE_CODE, TARGETS_VARIABLE, TargetClass,
    file_name,
};

/// The device code of a module.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// None: the module is `host_only`.
    HostOnly,
    /// The build step has compiled nothing; the reason.
    Unbuilt(String),
    /// The build step has not seen the module.
    Unknown,
    /// The device compiler refused kernels of the target; its errors in this module.
    Refused(Vec<Diagnostic>),
    /// Compiled, in an image.
    Compiled {
        module: CompiledModule,
        /// All images of the target, if they are embedded beside this module.
        images: Vec<CompiledImage>,
        /// Whether `debug_assertions` holds in it.
        debug_assertions: bool,
        /// The choices that a library's device code depends on.
        choices: String,
    },
}

/// The device code of a module in the variants of its target: the plain one, and that of `cargo test` if it
/// differs.
pub(super) struct Variants {
    pub(super) plain: Code,
    pub(super) tested: Option<Code>,
}

impl Variants {
    /// The variants of the module with this fingerprint, in the target that rustc compiles.
    pub(super) fn of(fingerprint: Fingerprint) -> Self {
        let Some(folder) = std::env::var_os(TARGETS_VARIABLE) else {
            return Variants { plain: Code::Unknown, tested: None };
        };
        let folder = Path::new(&folder);
        if let Ok(reason) = std::fs::read_to_string(folder.join(NO_DEVICE_CODE)) {
            return Variants { plain: Code::Unbuilt(reason), tested: None };
        }
        // An editor may run macros without naming the target; the module's content is enough then.
        let Ok(name) = std::env::var("CARGO_CRATE_NAME") else {
            return Variants { plain: anywhere(folder, fingerprint), tested: None };
        };
        let read = |test| read(&folder.join(file_name(class(), &name, test)));
        let plain = read(false).map_or(Code::Unknown, |target| of_target(target, fingerprint));
        let tested = read(true).map(|target| of_target(target, fingerprint));
        Variants { tested: tested.filter(|tested| *tested != plain), plain }
    }
}

/// The class of the target, by cargo's variables.
fn class() -> TargetClass {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if is_set("CARGO_BIN_NAME") {
        TargetClass::Program
    } else if is_set("CARGO_TARGET_TMPDIR") {
        TargetClass::Test
    } else {
        TargetClass::Library
    }
}

fn read(file: &Path) -> Option<CompiledTarget> {
    CompiledTarget::from_text(&std::fs::read_to_string(file).ok()?)
}

fn of_target(target: CompiledTarget, fingerprint: Fingerprint) -> Code {
    let Some(module) = target.module(fingerprint).cloned() else { return Code::Unknown };
    if target.modules.iter().any(|module| !module.diagnostics.is_empty()) {
        return Code::Refused(module.diagnostics);
    }
    let images = if module.holds_images { target.images } else { Vec::new() };
    Code::Compiled { module, images, debug_assertions: target.debug_assertions, choices: target.choices }
}

fn anywhere(folder: &Path, fingerprint: Fingerprint) -> Code {
    let files = folder.read_dir().into_iter().flatten().flatten();
    let mut codes = files.filter_map(|entry| Some(of_target(read(&entry.path())?, fingerprint)));
    codes.find(|code| *code != Code::Unknown).unwrap_or(Code::Unknown)
}
