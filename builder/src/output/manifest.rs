//! Writes the file that the macros read for each target: its images, its modules, and the device compiler's
//! errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ferrogrid_syntax::compiled::{
    ArchCode, CompiledEntry, CompiledImage, CompiledModule, CompiledTarget, Diagnostic, NO_DEVICE_CODE,
    UsedLibrary, file_name,
};

use crate::cache;
use crate::cargo::metadata::{Package, TargetKind};
use crate::compile::Image;
use crate::error::Error;
use crate::source::module_tree::{FoundModule, ModulePlace, holders};
use crate::source::scan::{Scan, Unit};

/// The outcome for each part of a target: its images by architecture, or the reason why there are none.
pub(crate) type Outcomes = Vec<Result<Vec<Image>, Error>>;

/// Writes a file for each target of `package` into `folder`, and removes those of earlier builds. Returns
/// the file of each unit.
///
/// # Errors
/// If a file cannot be written, or two targets cannot be told apart while they are compiled.
pub(crate) fn write(
    scan: &Scan,
    outcomes: &[Outcomes],
    package: &Package,
    debug_assertions: bool,
    folder: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let mut targets: BTreeMap<String, (CompiledTarget, &Unit)> = BTreeMap::new();
    let mut files = Vec::new();
    for (unit, outcomes) in scan.units.iter().zip(outcomes) {
        let name = file_name(unit.class(), &unit.crate_name, unit.is_tested);
        let used = |module: &FoundModule| scan.used_by(module, unit, package);
        let choices = if unit.kind == TargetKind::Lib { scan.choices.clone() } else { String::new() };
        let target = CompiledTarget { debug_assertions, choices, ..compiled(unit, outcomes, used)? };
        let target = match targets.remove(&name) {
            Some((other, first)) => (joined(other, target, first, unit)?, first),
            None => (target, unit),
        };
        targets.insert(name.clone(), target);
        files.push(folder.join(name));
    }
    for (name, (target, _)) in &targets {
        cache::write(&folder.join(name), &target.to_text())?;
    }
    cache::retain(folder, |file| targets.keys().any(|name| file.ends_with(name)))?;
    Ok(files)
}

/// Writes to `folder` why nothing was compiled.
pub(crate) fn write_reason(reason: &str, folder: &Path) -> Result<(), Error> {
    cache::write(&folder.join(NO_DEVICE_CODE), reason)?;
    cache::retain(folder, |file| file.ends_with(NO_DEVICE_CODE))
}

fn compiled(
    unit: &Unit,
    outcomes: &Outcomes,
    used: impl Fn(&FoundModule) -> Vec<UsedLibrary>,
) -> Result<CompiledTarget, Error> {
    let mut target = CompiledTarget::default();
    let mut modules: Vec<(&FoundModule, CompiledModule)> = Vec::new();
    for (device_crate, outcome) in unit.device_crates.iter().zip(outcomes) {
        match outcome {
            Ok(images) => {
                let image = target.images.len();
                target.images.push(of_archs(images)?);
                modules.extend(device_crate.modules.iter().map(|it| (it, module(it, image, images))));
            }
            Err(error) => {
                let first = modules.len();
                modules.extend(device_crate.modules.iter().map(|it| (it, module(it, 0, &[]))));
                refuse(&mut modules, first, error);
            }
        }
    }
    let places: Vec<&ModulePlace> = modules.iter().map(|(found, _)| &found.place).collect();
    let holders = holders(&places);
    let names: Vec<String> = holders
        .iter()
        .map(|&holder| {
            let (found, _) = &modules[holder];
            format!("{}::__ferrogrid_code_{}", found.place.parent(), found.fingerprint.short())
        })
        .collect();
    for (at, (found, mut module)) in modules.into_iter().enumerate() {
        module.libraries = used(found);
        module.holds_images = holders[at] == at;
        module.holder = names[at].clone();
        target.modules.push(module);
    }
    Ok(target)
}

fn of_archs(images: &[Image]) -> Result<CompiledImage, Error> {
    let mut all: Vec<u8> = images.iter().flat_map(|image| image.text.bytes()).collect();
    let links = images.first().map_or_else(Vec::new, |image| image.links.clone());
    for file in &links {
        all.extend(std::fs::read(file).map_err(Error::io("read", file))?);
    }
    let code = |image: &Image| ArchCode {
        arch: image.ptx.target.clone(),
        version: image.ptx.version,
        ptx: image.file.clone(),
        cubin: image.cubin.clone(),
    };
    let id = xxhash_rust::xxh3::xxh3_128(&all);
    Ok(CompiledImage { id, codes: images.iter().map(code).collect(), links })
}

fn module(found: &FoundModule, image: usize, images: &[Image]) -> CompiledModule {
    let entry = |name: &String| {
        let image = images.first()?;
        let params = &image.ptx.entry(name)?.params;
        Some(CompiledEntry {
            name: name.clone(),
            params: params.iter().map(|param| (param.size as u64, param.align as u64)).collect(),
            layout: image.layouts.get(name).cloned().unwrap_or_default(),
        })
    };
    let entries = found.kernels.iter().filter_map(|kernel| entry(&kernel.entry)).collect();
    CompiledModule { fingerprint: found.fingerprint, image, entries, ..CompiledModule::default() }
}

/// Adds an error to the modules from number `first` on, which belong to a part that was not compiled. Each
/// diagnostic goes to the module that contains it, else to the first, once.
fn refuse(modules: &mut [(&FoundModule, CompiledModule)], first: usize, error: &Error) {
    let places = match error {
        Error::Device { places, .. } => places.as_slice(),
        _ => &[],
    };
    let found: Vec<&FoundModule> = modules.iter().map(|(found, _)| *found).collect();
    let mut add = |at: usize, diagnostic: Diagnostic| {
        let diagnostics = &mut modules[at].1.diagnostics;
        if !diagnostics.contains(&diagnostic) {
            diagnostics.push(diagnostic);
        }
    };
    for (file, diagnostic) in places {
        let line = diagnostic.start.0;
        match found.iter().position(|it| it.file == *file && (it.line..=it.last_line).contains(&line)) {
            Some(at) => add(at, diagnostic.clone()),
            None => add(first, outside_of_modules(found[first], file, diagnostic)),
        }
    }
    if places.is_empty() {
        let start = (found[first].line, 1);
        add(first, Diagnostic { start, end: start, message: error.to_string() });
    }
}

/// An error outside of all modules, as a diagnostic of `module`.
fn outside_of_modules(module: &FoundModule, file: &Path, diagnostic: &Diagnostic) -> Diagnostic {
    let ((line, column), start) = (diagnostic.start, (module.line, 1));
    let message = format!("{}\n  at {}:{line}:{column}", diagnostic.message, file.display());
    Diagnostic { start, end: start, message }
}

/// Joins two targets for which cargo sets the same variables, such as a binary and an example of one name.
/// Their modules tell them apart.
fn joined(
    mut one: CompiledTarget,
    other: CompiledTarget,
    first: &Unit,
    second: &Unit,
) -> Result<CompiledTarget, Error> {
    let shared = other.modules.iter().find(|module| one.module(module.fingerprint).is_some());
    if let Some(shared) = shared {
        let name = |unit: &Unit| unit.device_crates.first().map(|it| it.target.clone()).unwrap_or_default();
        let modules = second.device_crates.iter().flat_map(|it| &it.modules);
        let module = modules.into_iter().find(|it| it.fingerprint == shared.fingerprint);
        return Err(Error::AmbiguousTarget {
            first: name(first),
            second: name(second),
            module: module.map(|it| it.name.clone()).unwrap_or_default(),
        });
    }
    let images = one.images.len();
    one.images.extend(other.images);
    one.modules.extend(other.modules.into_iter().map(|it| CompiledModule { image: it.image + images, ..it }));
    Ok(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_earlier_builds_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let entries = folder.path().read_dir().unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        for name in ["lib-a", "bin-b", "bin-c"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        write_reason("no toolchain", folder.path()).unwrap();
        assert_eq!(names(), [NO_DEVICE_CODE]);
    }
}
