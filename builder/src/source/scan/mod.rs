//! Finds the device code of a package: walks the module trees of all targets, and lays out device crates for
//! those that have annotated modules. `scan/libraries.rs` adds the libraries that these use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ferrogrid_syntax::compiled::{TargetClass, UsedLibrary};

use crate::cargo::metadata::{Package, Target, TargetKind};
use crate::cargo::{Environment, ONLY};
use crate::error::Error;
use crate::options::{Arch, ArchChoice, Options};
use crate::source::cfg::Cfgs;
use crate::source::device_crate::{self, CrateOptions, DeviceCrate, Portion};
use crate::source::module_tree::{self, FoundModule, ModuleTree, Sources};
use libraries::Libraries;

mod libraries;

pub(crate) use libraries::Library;

/// The device code of a cargo target, in one of its variants.
pub(crate) struct Unit {
    pub(crate) kind: TargetKind,
    /// rustc's name for the crate.
    pub(crate) crate_name: String,
    /// Whether it is the variant for `cargo test` of a target that also has a plain one.
    pub(crate) is_tested: bool,
    /// Its modules, in parts that are compiled on their own.
    pub(crate) device_crates: Vec<DeviceCrate>,
    /// The numbers of the libraries that it uses, by their names in it.
    pub(crate) uses: BTreeMap<String, usize>,
}

#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) units: Vec<Unit>,
    /// The libraries that units use.
    pub(crate) libraries: Vec<Library>,
    /// The choices of the package's own library, if that has device code.
    pub(crate) choices: String,
    pub(crate) visited: BTreeSet<PathBuf>,
    pub(crate) warnings: Vec<String>,
}

impl Scan {
    /// The architectures of all parts.
    pub(crate) fn archs(&self) -> BTreeSet<Arch> {
        let device_crates = self.units.iter().flat_map(|unit| &unit.device_crates);
        device_crates.flat_map(|it| it.archs.iter().cloned()).collect()
    }

    /// The libraries of other packages that a module of `unit` uses.
    pub(crate) fn used_by(&self, module: &FoundModule, unit: &Unit, package: &Package) -> Vec<UsedLibrary> {
        let named = unit.uses.iter().filter(|(name, _)| module.names.contains(*name));
        let named = named.map(|(name, &number)| (name, &self.libraries[number]));
        let of_others = named.filter(|(_, library)| library.package != package.id);
        of_others.flat_map(|(name, library)| library.used_as(name)).collect()
    }

    /// The names that may be crates in the device crates of each package, by its id.
    pub(crate) fn names(&self, package: &Package) -> BTreeMap<String, BTreeSet<String>> {
        let own: BTreeSet<String> = self.units.iter().flat_map(Unit::names).collect();
        let mut names = BTreeMap::from([(package.id.clone(), own)]);
        for library in &self.libraries {
            names.entry(library.package.clone()).or_default().append(&mut library.device_crate.names());
        }
        names
    }
}

impl Unit {
    /// The names in its modules that may be crates.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.device_crates.iter().flat_map(DeviceCrate::names).collect();
        if self.kind == TargetKind::Lib {
            names.remove(&self.crate_name);
        }
        names
    }

    /// The class of its target, as the macros see it while they run.
    pub(crate) fn class(&self) -> TargetClass {
        match self.kind {
            TargetKind::Lib => TargetClass::Library,
            TargetKind::Bin | TargetKind::Example | TargetKind::Program => TargetClass::Program,
            TargetKind::Test | TargetKind::Bench => TargetClass::Test,
        }
    }
}

/// The entry points of a part. An edit compiles all of its part again, so small parts are faster then; but
/// each part reads the libraries anew.
const ENTRIES_AT_ONCE: usize = 48;

/// Walks the trees of all targets and lays out their device crates.
pub(crate) fn scan(
    environment: &Environment,
    package: &Package,
    chosen: &Options,
    archs: &ArchChoice,
    device: &Cfgs,
) -> Result<Scan, Error> {
    let general = CrateOptions { cfgs: environment.cfgs.clone(), ..CrateOptions::default() };
    let mut options = CrateOptions { variables: environment.crate_variables.clone(), ..general.clone() };
    options.cfgs.extend(environment.features.iter().map(|feature| format!("feature=\"{feature}\"")));
    let options = options.with(chosen);
    let general = CrateOptions { debug_assertions: options.debug_assertions, ..general };
    let folder = environment.out_dir.join("ferrogrid");
    let (sources, scan, (own, library)) = (Sources::default(), Scan::default(), Default::default());
    let of_package = options.evaluate_on(device);
    let mut scanner =
        Scanner { package, archs, options, device: of_package, folder, sources, scan, own, library };
    // The library first: the others may use it.
    let (libraries, others): (Vec<_>, Vec<_>) =
        package.targets.iter().partition(|target| target.kind == TargetKind::Lib);
    let only = environment.only_target(package);
    if let Some(only) = only.filter(|only| others.iter().all(|target| target.slug() != *only)) {
        let warning = format!("{ONLY} is `{only}`, and `{}` has no such target", package.name);
        scanner.scan.warnings.push(warning);
    }
    let others = others.into_iter().filter(|target| only.is_none_or(|only| target.slug() == only));
    for target in libraries.into_iter().chain(others) {
        scanner.target(target)?;
    }
    let Scanner { folder, mut scan, own, .. } = scanner;
    scan.choices = own.as_ref().map_or(String::new(), |own| own.choices.clone());
    // In the package `ferrogrid` itself that name is the facade, there as everywhere.
    let own = own.filter(|it| it.crate_name != "ferrogrid");
    let mut libraries = Libraries::new(package, device, general, &folder, own);
    for unit in &mut scan.units {
        unit.uses = libraries.named(&package.id, &unit.names())?;
    }
    scan.libraries = libraries.found;
    scan.visited.extend(libraries.visited);
    Ok(scan)
}

/// Groups `modules`, given as numbers with their entry points, into portions of similar size.
fn divided(modules: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut portions = vec![Vec::new()];
    let mut count = 0;
    let all: usize = modules.iter().map(|(_, entries)| entries).sum();
    let each = all.div_ceil(all.div_ceil(ENTRIES_AT_ONCE).max(1));
    for &(at, entries) in modules {
        if count > 0 && count + entries > each {
            portions.push(Vec::new());
            count = 0;
        }
        count += entries;
        portions.last_mut().expect("there is a first portion").push(at);
    }
    portions
}

struct Scanner<'a> {
    package: &'a Package,
    archs: &'a ArchChoice,
    /// The options of all device crates of the package.
    options: CrateOptions,
    /// The `cfg`s in them.
    device: Cfgs,
    folder: PathBuf,
    sources: Sources,
    scan: Scan,
    /// The package's library as a whole, for its other targets.
    own: Option<DeviceCrate>,
    library: Option<OwnLibrary>,
}

/// The part of the package's library that its users need.
struct OwnLibrary {
    crate_name: String,
    depends_on_test: bool,
    has_statics: bool,
}

impl Scanner<'_> {
    fn target(&mut self, target: &Target) -> Result<(), Error> {
        let tested = self.walk(target, true)?;
        // cargo compiles these with `cfg(test)` only.
        if matches!(target.kind, TargetKind::Test | TargetKind::Bench) {
            return self.unit(target, &tested, false, true);
        }
        let plain = self.walk(target, false)?;
        if target.kind == TargetKind::Lib && !plain.modules.is_empty() {
            self.library = Some(OwnLibrary {
                crate_name: target.name.replace('-', "_"),
                depends_on_test: plain.modules.iter().any(|module| module.depends_on_test),
                has_statics: plain.modules.iter().any(|module| module.has_statics),
            });
            let slug = format!("{}-library", target.slug());
            self.own = self.lay_out(target, slug, &plain, Portion::Whole, false)?;
        }
        self.unit(target, &plain, false, false)?;
        if self.may_differ(&plain, &tested) {
            self.unit(target, &tested, true, true)?;
        }
        Ok(())
    }

    fn walk(&mut self, target: &Target, test: bool) -> Result<ModuleTree, Error> {
        let cfgs = if test { self.device.with(["test"]) } else { self.device.clone() };
        let mut tree = module_tree::walk(&target.source, &cfgs, &mut self.sources)?;
        self.scan.visited.append(&mut tree.visited);
        for warning in tree.unreadable.drain(..) {
            if !self.scan.warnings.contains(&warning) {
                self.scan.warnings.push(warning);
            }
        }
        Ok(tree)
    }

    /// Whether a target's device code may differ under `cfg(test)`. The expansion of other crates' macros is not
    /// visible here.
    fn may_differ(&self, plain: &ModuleTree, tested: &ModuleTree) -> bool {
        let parts = |tree: &ModuleTree| -> Vec<_> {
            tree.files.iter().map(|file| (file.path.clone(), file.parts.clone())).collect()
        };
        parts(plain) != parts(tested)
            || plain.features != tested.features
            || tested.modules.iter().any(|module| module.depends_on_test)
            || self.names_crates(tested)
            || self.used_library(tested).is_some_and(|library| library.depends_on_test)
    }

    /// Whether modules use a crate besides Ferrogrid and the package's own library.
    fn names_crates(&self, tree: &ModuleTree) -> bool {
        tree.modules.iter().flat_map(|module| &module.names).any(|name| self.package.names_crate(name))
    }

    fn used_library(&self, tree: &ModuleTree) -> Option<&OwnLibrary> {
        let library = self.library.as_ref()?;
        tree.modules.iter().any(|module| module.names.contains(&library.crate_name)).then_some(library)
    }

    fn unit(
        &mut self,
        target: &Target,
        tree: &ModuleTree,
        is_tested: bool,
        cfg_test: bool,
    ) -> Result<(), Error> {
        if tree.modules.is_empty() {
            return Ok(());
        }
        let suffix = if is_tested { "-test" } else { "" };
        let slug = format!("{}{suffix}", target.slug());
        let mut device_crates = Vec::new();
        for (number, modules) in self.portions(tree).iter().enumerate() {
            let slug = if number == 0 { slug.clone() } else { format!("{slug}-{}", number + 1) };
            let laid_out = self.lay_out(target, slug, tree, Portion::Kernels(modules), cfg_test)?;
            device_crates
                .extend(laid_out.map(|it| DeviceCrate { archs: self.archs_of(tree, modules), ..it }));
        }
        let crate_name = target.name.replace('-', "_");
        let uses = BTreeMap::new();
        self.scan.units.push(Unit { kind: target.kind, crate_name, is_tested, device_crates, uses });
        Ok(())
    }

    /// The architectures of `modules`, each once. Only kernels are compiled for an architecture's sake.
    fn archs_of(&self, tree: &ModuleTree, modules: &[usize]) -> Vec<Arch> {
        let modules = || modules.iter().map(|&at| &tree.modules[at]);
        let has_kernels = modules().any(|module| !module.kernels.is_empty());
        let mut archs = Vec::new();
        for module in modules().filter(|module| !has_kernels || !module.kernels.is_empty()) {
            for arch in self.archs.of_module(&module.archs) {
                if !archs.contains(&arch) {
                    archs.push(arch);
                }
            }
        }
        archs
    }

    /// The modules that are compiled together, by number. Modules that may share a static are, because each
    /// part would have its own copy. Crates may have statics that no text here shows. Others are if they name
    /// the same architectures, so parts do not depend on those of the build.
    fn portions(&self, tree: &ModuleTree) -> Vec<Vec<usize>> {
        let entries = |at: usize| tree.modules[at].kernels.len();
        let shares = tree.modules.iter().any(|module| module.has_statics)
            || self.names_crates(tree)
            || self.used_library(tree).is_some_and(|library| library.has_statics);
        if shares {
            return vec![(0..tree.modules.len()).collect()];
        }
        // Code that needs linking must not keep other kernels from being loaded, so it is a part of its own.
        let (linked, others): (Vec<usize>, Vec<usize>) =
            (0..tree.modules.len()).partition(|&at| !tree.modules[at].externs.is_empty());
        let (functions, others): (Vec<usize>, Vec<usize>) =
            others.into_iter().partition(|&at| tree.modules[at].kernels.is_empty());
        let mut groups: BTreeMap<&[Arch], Vec<(usize, usize)>> = BTreeMap::new();
        for at in others {
            groups.entry(&tree.modules[at].archs).or_default().push((at, entries(at)));
        }
        let mut parts: Vec<Vec<usize>> = groups.values().flat_map(|modules| divided(modules)).collect();
        match parts.first_mut() {
            Some(first) => first.extend(functions),
            None if functions.is_empty() => {}
            None => parts.push(functions),
        }
        parts.extend(linked.into_iter().map(|at| vec![at]));
        parts
    }

    fn lay_out(
        &self,
        target: &Target,
        slug: String,
        tree: &ModuleTree,
        portion: Portion<'_>,
        cfg_test: bool,
    ) -> Result<Option<DeviceCrate>, Error> {
        let mut options = self.options.clone();
        options.cfgs.extend(cfg_test.then(|| "test".to_owned()));
        let root = &self.package.workspace_root;
        device_crate::lay_out(target, slug, tree, portion, &options, root, &self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_entry_points_as_are_compiled_at_once_are_one_part() {
        let sizes = |count: usize, each: usize| {
            let modules: Vec<_> = (0..count).map(|at| (at, each)).collect();
            divided(&modules).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0, 1), [0]);
        assert_eq!(sizes(1, 1), [1]);
        assert_eq!(sizes(ENTRIES_AT_ONCE - 1, 1), [ENTRIES_AT_ONCE - 1]);
        assert_eq!(sizes(ENTRIES_AT_ONCE, 1), [ENTRIES_AT_ONCE]);
        // One more: two parts, alike.
        assert_eq!(sizes(ENTRIES_AT_ONCE + 1, 1), [25, 24]);
        assert_eq!(sizes(2 * ENTRIES_AT_ONCE, 1), [48, 48]);
        assert_eq!(sizes(2 * ENTRIES_AT_ONCE + 1, 1), [33, 33, 31]);
        // A module is never divided.
        assert_eq!(sizes(2, ENTRIES_AT_ONCE + 1), [1, 1]);
        assert_eq!(sizes(3, 20), [1, 1, 1]);
        assert_eq!(sizes(6, 10), [3, 3]);
    }
}
