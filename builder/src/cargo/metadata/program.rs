//! The package of a program that is given as text: a single source file that depends on Ferrogrid alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Dependency, Package, Source, Target, TargetKind};
use crate::options::{Options, variables};

/// The environment variable that names a checkout of Ferrogrid, whose `device` and `macros` programs then
/// use.
const SOURCES_VARIABLE: &str = "FERROGRID_SOURCES";

/// The source of Ferrogrid's crates for devices.
enum Ferrogrid {
    Checkout(PathBuf),
    Registry,
}

impl Ferrogrid {
    /// The checkout that the variable names, else the one that this crate was compiled in, if it still
    /// exists.
    fn find() -> Self {
        let named = variables::path(SOURCES_VARIABLE);
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned);
        let has_device = |root: &PathBuf| root.join("device/Cargo.toml").is_file();
        named.or_else(|| own().filter(has_device)).map_or(Ferrogrid::Registry, Ferrogrid::Checkout)
    }

    /// One of its crates, with its folder in a checkout.
    fn dependency(&self, package: &str, folder: &str, features: &[String]) -> Dependency {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (id, source) = match self {
            Ferrogrid::Checkout(root) => {
                let folder = root.join(folder);
                (format!("path+file://{}#{package}@{version}", folder.display()), Source::Path(folder))
            }
            Ferrogrid::Registry => {
                (format!("registry+{package}@{version}"), Source::Registry { version, index: None })
            }
        };
        let (package, features) = (package.to_owned(), features.to_vec());
        Dependency { package, id, source, default_features: true, features }
    }
}

impl Package {
    /// The package of the program in the file `source`, which is in `folder`; `features` are those of
    /// `ferrogrid-device`.
    pub(crate) fn of_program(folder: &Path, source: &Path, features: &[String], options: Options) -> Self {
        let ferrogrid = Ferrogrid::find();
        let device = ferrogrid.dependency("ferrogrid-device", "device", features);
        let macros = ferrogrid.dependency("ferrogrid-macros", "macros", &[]);
        let mut local = BTreeMap::new();
        let mut lock = folder.join("Cargo.lock");
        if let Ferrogrid::Checkout(root) = &ferrogrid {
            let folders = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<BTreeSet<_>>();
            local.insert(device.id.clone(), folders(&["device", "abi"]));
            local.insert(macros.id.clone(), folders(&["macros", "syntax"]));
            lock = root.join("Cargo.lock");
        }
        let made_of = [&device, &macros].map(|it| (it.id.clone(), BTreeSet::from([it.id.clone()])));
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let id = format!("program+{name}");
        Package {
            dependencies: BTreeMap::from([("ferrogrid".to_owned(), facade(&id))]),
            id,
            targets: vec![Target {
                kind: TargetKind::Program,
                name: name.clone(),
                source: source.to_owned(),
                edition: "2024".to_owned(),
            }],
            name,
            workspace_root: folder.to_owned(),
            lock,
            libraries: BTreeMap::new(),
            ferrogrid: Some([device, macros]),
            archs: Vec::new(),
            options,
            discovered: Vec::new(),
            patches: BTreeMap::new(),
            local,
            made_of: made_of.into(),
        }
    }
}

/// The dependency that programs call `ferrogrid`; on a device it is the facade.
fn facade(id: &str) -> Dependency {
    Dependency {
        package: "ferrogrid".to_owned(),
        id: format!("{id}-ferrogrid"),
        source: Source::Registry { version: env!("CARGO_PKG_VERSION").to_owned(), index: None },
        default_features: true,
        features: Vec::new(),
    }
}
