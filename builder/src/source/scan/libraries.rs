//! The libraries that device crates use: the package's own, and dependencies with device code. Each is laid
//! out as a whole, once for all users.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ferrogrid_syntax::compiled::UsedLibrary;

use crate::cargo::metadata::{LibraryPackage, Package, is_in_cargo_home};
use crate::error::Error;
use crate::source::cfg::Cfgs;
use crate::source::device_crate::{self, CrateOptions, DeviceCrate, Portion};
use crate::source::module_tree::{self, Sources};

/// A library that other device crates are linked with.
pub(crate) struct Library {
    /// The id of its package.
    pub(crate) package: String,
    pub(crate) device_crate: DeviceCrate,
    /// The numbers of the libraries that it uses, by their names in it. All come before it.
    pub(crate) uses: BTreeMap<String, usize>,
}

impl Library {
    /// The modules that a crate which calls it `name` can name, and so compare with the host half.
    pub(crate) fn used_as(&self, name: &str) -> impl Iterator<Item = UsedLibrary> {
        let modules = self.device_crate.modules.iter().filter_map(move |module| module.place.path_from(name));
        modules.map(|module| UsedLibrary { module, choices: self.device_crate.choices.clone() })
    }
}

/// Lays out libraries when they are first named.
pub(super) struct Libraries<'a> {
    package: &'a Package,
    /// The `cfg`s of the device in all packages.
    device: &'a Cfgs,
    /// The options of a library, unless its Cargo.toml says otherwise.
    general: CrateOptions,
    folder: &'a Path,
    /// The package's own library until it is used, and its name.
    own: Option<DeviceCrate>,
    own_name: Option<String>,
    pub(super) found: Vec<Library>,
    pub(super) visited: BTreeSet<PathBuf>,
}

impl<'a> Libraries<'a> {
    pub(super) fn new(
        package: &'a Package,
        device: &'a Cfgs,
        general: CrateOptions,
        folder: &'a Path,
        own: Option<DeviceCrate>,
    ) -> Self {
        let own_name = own.as_ref().map(|own| own.crate_name.clone());
        let (found, visited) = Default::default();
        Libraries { package, device, general, folder, own, own_name, found, visited }
    }

    /// The numbers of the libraries among `names` for a crate of the package `user`, by name.
    pub(super) fn named(
        &mut self,
        user: &str,
        names: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, usize>, Error> {
        let mut numbers = BTreeMap::new();
        for name in names {
            let Some(id) = self.id(user, name) else { continue };
            if let Some(number) = self.number(id)? {
                numbers.insert(name.clone(), number);
            }
        }
        Ok(numbers)
    }

    /// The id of the package whose library the package `user` calls `name`.
    fn id(&self, user: &str, name: &str) -> Option<String> {
        let dependencies = match self.package.libraries.get(user) {
            Some(library) => &library.dependencies,
            None => &self.package.dependencies,
        };
        let is_own = || user == self.package.id && self.own_name.as_deref() == Some(name);
        dependencies
            .get(name)
            .map(|dependency| dependency.id.clone())
            .or_else(|| is_own().then(|| user.to_owned()))
    }

    /// The number of a package's library; `None` if it has no device code.
    fn number(&mut self, id: String) -> Result<Option<usize>, Error> {
        if let Some(known) = self.found.iter().position(|it| it.package == id) {
            return Ok(Some(known));
        }
        let package = self.package;
        let laid_out = match package.libraries.get(&id) {
            Some(library) => self.lay_out(library)?,
            None => self.own.take_if(|_| id == package.id),
        };
        let Some(device_crate) = laid_out else { return Ok(None) };
        let uses = self.named(&id, &device_crate.names())?;
        self.found.push(Library { package: id, device_crate, uses });
        Ok(Some(self.found.len() - 1))
    }

    fn lay_out(&mut self, library: &LibraryPackage) -> Result<Option<DeviceCrate>, Error> {
        let mut options = self.general.clone().with(&library.options()?);
        options.cfgs.extend(library.features.iter().map(|feature| format!("feature=\"{feature}\"")));
        options.variables.extend(library.variables.iter().cloned());
        let cfgs = options.evaluate_on(self.device);
        let mut tree = module_tree::walk(&library.target.source, &cfgs, &mut Sources::default())?;
        let files = std::mem::take(&mut tree.visited).into_iter().chain([library.manifest()]);
        self.visited.extend(files.filter(|file| !is_in_cargo_home(file)));
        let slug = format!("library-{}-{}", library.target.name, library.version);
        let root = &self.package.workspace_root;
        device_crate::lay_out(&library.target, slug, &tree, Portion::Whole, &options, root, self.folder)
    }
}
