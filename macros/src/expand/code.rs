//! The device code of a module: the build step's output for the target that rustc compiles.

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
        /// The options that a library's device code depends on.
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
        // An editor may run macros without naming the target.
        let name = std::env::var("CARGO_CRATE_NAME").ok();
        Variants::in_folder(Path::new(&folder), class(), name.as_deref(), fingerprint)
    }

    /// The variants that the build step left in a folder, for the target of this name. Without a name, those
    /// of any target that contains the module.
    fn in_folder(folder: &Path, class: TargetClass, name: Option<&str>, fingerprint: Fingerprint) -> Self {
        if let Ok(reason) = std::fs::read_to_string(folder.join(NO_DEVICE_CODE)) {
            return Variants { plain: Code::Unbuilt(reason), tested: None };
        }
        // An editor may run macros without naming the target; then the module's content suffices.
        let Some(name) = name else {
            return Variants { plain: anywhere(folder, fingerprint), tested: None };
        };
        let read = |test| read(&folder.join(file_name(class, name, test)));
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A target with a module.
    fn target(fingerprint: u128, choices: &str) -> CompiledTarget {
        let module = CompiledModule {
            fingerprint: Fingerprint(fingerprint),
            holds_images: fingerprint == 1,
            holder: "crate".into(),
            ..CompiledModule::default()
        };
        let images = vec![CompiledImage { id: 5, ..CompiledImage::default() }];
        CompiledTarget { choices: choices.into(), images, modules: vec![module], ..CompiledTarget::default() }
    }

    fn compiled(target: &CompiledTarget) -> Code {
        of_target(target.clone(), target.modules[0].fingerprint)
    }

    /// A folder with the files of a build step.
    fn in_folder(name: &str, files: &[(TargetClass, &str, bool, &CompiledTarget)], test: impl FnOnce(&Path)) {
        let folder = std::env::temp_dir().join(format!("ferrogrid-code-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (class, name, test, target) in files {
            fs::write(folder.join(file_name(*class, name, *test)), target.to_text()).unwrap();
        }
        test(&folder);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_module_has_the_code_of_its_target_and_of_its_test() {
        let (plain, tested) = (target(1, "plain"), target(1, "tested"));
        let files = [
            (TargetClass::Library, "a", false, &plain),
            (TargetClass::Library, "a", true, &tested),
            (TargetClass::Library, "same", false, &plain),
            (TargetClass::Library, "same", true, &plain),
        ];
        in_folder("variants", &files, |folder| {
            let of = |class, name, fingerprint| {
                let Variants { plain, tested } =
                    Variants::in_folder(folder, class, Some(name), Fingerprint(fingerprint));
                (plain, tested)
            };
            assert_eq!(of(TargetClass::Library, "a", 1), (compiled(&plain), Some(compiled(&tested))));
            assert_eq!(of(TargetClass::Library, "same", 1), (compiled(&plain), None));
            assert_eq!(of(TargetClass::Library, "a", 2), (Code::Unknown, None));
            assert_eq!(of(TargetClass::Program, "a", 1), (Code::Unknown, None));
        });
    }

    #[test]
    fn an_editor_gets_the_code_of_any_target_with_the_module() {
        let (one, other) = (target(1, ""), target(2, ""));
        let files = [(TargetClass::Library, "a", false, &one), (TargetClass::Test, "b", false, &other)];
        in_folder("editor", &files, |folder| {
            let of =
                |number| Variants::in_folder(folder, TargetClass::Library, None, Fingerprint(number)).plain;
            assert_eq!([of(1), of(2)], [compiled(&one), compiled(&other)]);
            assert_eq!(of(3), Code::Unknown);
        });
    }

    #[test]
    fn failed_builds_record_the_reason() {
        in_folder("unbuilt", &[], |folder| {
            fs::write(folder.join(NO_DEVICE_CODE), "no compiler").unwrap();
            let found = Variants::in_folder(folder, TargetClass::Library, Some("a"), Fingerprint(1));
            assert_eq!((found.plain, found.tested), (Code::Unbuilt("no compiler".into()), None));
        });
    }

    /// Images are embedded beside one module; if any module has errors, no module of the target is compiled.
    #[test]
    fn images_go_to_the_module_that_holds_them_and_errors_to_all() {
        let Code::Compiled { images, .. } = compiled(&target(1, "")) else { panic!("it was compiled") };
        assert_eq!(images.len(), 1);
        let Code::Compiled { images, .. } = compiled(&target(2, "")) else { panic!("it was compiled") };
        assert!(images.is_empty());
        let mut refused = target(1, "");
        refused.modules.push(CompiledModule {
            fingerprint: Fingerprint(2),
            diagnostics: vec![Diagnostic::default()],
            ..CompiledModule::default()
        });
        assert_eq!(of_target(refused.clone(), Fingerprint(1)), Code::Refused(Vec::new()));
        assert_eq!(of_target(refused, Fingerprint(2)), Code::Refused(vec![Diagnostic::default()]));
    }
}
