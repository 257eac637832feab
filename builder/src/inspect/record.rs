//! Reads the record of a build step (`crate::output::record`), and compiles its kernels for other
//! architectures.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CompiledKernel, Sources};
use crate::cache;
use crate::cargo::Environment;
use crate::cargo::metadata::{list, strings};
use crate::error::Error;
use crate::options::settings::{nearest, sort_by_similarity};
use crate::options::{Arch, Options};
use crate::output::record;
use crate::step::Build;

/// The record of a build step.
#[derive(Debug)]
pub struct Record {
    content: Value,
    kernels: Vec<CompiledKernel>,
}

impl Record {
    /// Reads the record of the build script whose `OUT_DIR` this is.
    ///
    /// # Errors
    /// [`Error::NoRecord`] if there is none, or one of another version.
    pub fn load(out_dir: &Path) -> Result<Self, Error> {
        let missing = || Error::NoRecord { folder: out_dir.to_owned() };
        let text = cache::read(&record::file(out_dir)).map_err(|_| missing())?;
        let content: Value = serde_json::from_str(&text).map_err(|_| missing())?;
        if content["schema"].as_u64() != Some(record::SCHEMA) {
            return Err(missing());
        }
        let of_unit = |unit| list(unit, "kernels").iter().filter_map(|it| CompiledKernel::read(it, unit));
        let kernels = list(&content, "units").iter().flat_map(of_unit).collect();
        Ok(Record { content, kernels })
    }

    /// The name of the package.
    pub fn package(&self) -> &str {
        self.content["package"].as_str().unwrap_or_default()
    }

    /// Whether all targets of the package were compiled, not the one that [`ONLY`](crate::ONLY) names.
    pub fn is_whole(&self) -> bool {
        self.content["only"].is_null()
    }

    /// All kernels of the package, in the order of its targets.
    pub fn kernels(&self) -> &[CompiledKernel] {
        &self.kernels
    }

    /// The kernels called `name` (see [`CompiledKernel::is_called`]; `None` for all) in the cargo target
    /// `target` (kind and name, ("example", "saxpy"); `None` for all).
    ///
    /// # Errors
    /// [`Error::NoKernel`] if there are none; it lists the kernels that exist.
    pub fn select(
        &self,
        name: Option<&str>,
        target: Option<(&str, &str)>,
    ) -> Result<Vec<&CompiledKernel>, Error> {
        let target = target.map(|(kind, name)| format!("{kind} `{name}`"));
        let in_target: Vec<&CompiledKernel> = self
            .kernels
            .iter()
            .filter(|it| target.as_ref().is_none_or(|target| it.target == *target))
            .collect();
        let chosen: Vec<&CompiledKernel> =
            in_target.iter().copied().filter(|it| name.is_none_or(|name| it.is_called(name))).collect();
        if !chosen.is_empty() {
            return Ok(chosen);
        }
        let mut known: Vec<&str> = in_target.iter().map(|kernel| kernel.name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(name) = name {
            sort_by_similarity(name, &mut known);
        }
        Err(Error::NoKernel {
            near: name.and_then(|name| nearest(name, &known)).map(str::to_owned),
            wanted: name.map(str::to_owned),
            place: target.unwrap_or_else(|| format!("package `{}`", self.package())),
            known: known.into_iter().map(str::to_owned).collect(),
        })
    }

    /// The source files of the program.
    pub fn sources(&self) -> Sources {
        let folders = list(&self.content, "local_folders").iter();
        Sources::new(
            path(&self.content["workspace_root"]).unwrap_or_default(),
            folders.filter_map(|pair| Some((path(&pair[0])?, pair[1].as_str()?.to_owned()))).collect(),
            path(&self.content["device_crate"]),
        )
    }

    /// The kernel compiled for another architecture, with the options of the build. Results are kept in
    /// `folder`.
    ///
    /// # Errors
    /// As [`Build::try_run`].
    pub fn compile_for(
        &self,
        kernel: &CompiledKernel,
        arch: &Arch,
        folder: &Path,
    ) -> Result<CompiledKernel, Error> {
        let out_dir = folder.join(format!("{}.{arch}", kernel.slug));
        let crate_variables = self.content["crate_variables"].clone();
        let environment = Environment {
            features: strings(&self.content["features"]),
            cfgs: strings(&self.content["cfgs"]),
            libdevice: path(&self.content["libdevice"]),
            host_cfgs: self.content["host_cfgs"].as_str().unwrap_or_default().to_owned(),
            crate_variables: serde_json::from_value(crate_variables).unwrap_or_default(),
            ..Environment::new(path(&self.content["manifest_dir"]).unwrap_or_default(), &out_dir)
        };
        let options = Options::from_metadata(&self.content["options"])?;
        Build::only(&kernel.slug, options).for_tool(arch).try_run(&environment)?;
        let made = Record::load(&out_dir)?;
        let same = made.kernels.into_iter().find(|it| it.entry == kernel.entry);
        // The kernel was edited after the build.
        same.ok_or(Error::NoRecord { folder: out_dir })
    }
}

fn path(value: &Value) -> Option<PathBuf> {
    value.as_str().map(PathBuf::from)
}
