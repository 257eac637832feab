//! Compiles a device crate with rustc: to PTX, or to an rlib that other device crates link. Unchanged input
//! is not compiled again.
//!
//! | file | holds |
//! |---|---|
//! | `jobs.rs` | all device crates of a build, as many at once as there are processors |
//! | `rustc.rs` | the command line of rustc |
//! | `pipeline.rs` | from rustc's PTX to the PTX that is embedded: passes, proofs, checks |
//! | `cubin.rs` | machine code beside the PTX, by ptxas |
//! | `kept.rs` | PTX of earlier builds, by the content of its inputs |
//! | `inputs.rs` | the files and variables that a compiler has read |
//! | `diagnostics.rs`, `hints.rs` | rustc's errors, and advice for them |

pub(crate) mod cubin;
mod diagnostics;
mod hints;
pub(crate) mod inputs;
mod jobs;
mod kept;
mod pipeline;
mod rustc;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::cargo::dependencies::Externs;
use crate::error::Error;
use crate::options::{Arch, Math, Options};
use crate::ptx::{Ptx, layout};
use crate::source::device_crate::DeviceCrate;
use crate::toolchain::core_cache::CoreEntry;
use crate::toolchain::{Toolchain, process};
use hints::hint;
use inputs::Inputs;
use kept::Kept;

pub(crate) use jobs::compile_all;

/// The settings shared by all device crates of a package for one architecture.
#[derive(Debug)]
pub(crate) struct Compiler<'a> {
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) arch: &'a Arch,
    pub(crate) core: CoreEntry,
    pub(crate) externs: Externs,
    /// The build's options.
    pub(crate) options: &'a Options,
    /// The id of the package.
    pub(crate) package: &'a str,
    /// The library of mathematical functions.
    pub(crate) math: Math,
    /// `OUT_DIR/ferrogrid`.
    pub(crate) folder: &'a Path,
    /// Messages show paths below this folder without it.
    pub(crate) workspace_root: &'a Path,
    /// Folders in the line table, and their machine-independent names.
    pub(crate) folders: &'a [(PathBuf, String)],
}

/// A compiled program.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    pub(crate) ptx: Ptx,
    /// The layouts that the PTX states, by entry point.
    pub(crate) layouts: BTreeMap<String, Vec<u64>>,
    /// The files and variables that it was built from, besides the device crate.
    pub(crate) inputs: Inputs,
    /// Files with device code to link it with when it is loaded.
    pub(crate) links: Vec<PathBuf>,
    /// Its machine code, if any.
    pub(crate) cubin: Option<PathBuf>,
    /// Why ptxas refused it.
    pub(crate) refusal: Option<String>,
}

/// A library for other device crates to link.
#[derive(Debug)]
pub(crate) struct Rlib {
    file: PathBuf,
    /// Its folder, and those of the libraries that it uses.
    folders: BTreeSet<PathBuf>,
    key: String,
    /// The files and variables that all of these were made of, besides device crates.
    inputs: Inputs,
}

/// The externs of a device crate besides those of its package: the libraries that it uses, by name.
pub(crate) type Linked<'a> = BTreeMap<&'a str, &'a Rlib>;

impl Compiler<'_> {
    /// The PTX of `device_crate`, checked against its modules. Equal input is compiled once, even with other
    /// builds in between.
    pub(crate) fn image(&self, device_crate: &DeviceCrate, linked: &Linked<'_>) -> Result<Image, Error> {
        let file = self.folder.join(format!("{}.{}.ptx", device_crate.slug, self.arch));
        let work = self.work_folder(&device_crate.slug);
        let mut command = self.rustc(device_crate, self.package, linked, "device");
        if self.math == Math::Libdevice {
            command.args(self.reflection());
        }
        let assembly = work.join(format!("{}.s", device_crate.crate_name));
        let read_files = work.join(format!("{}.d", device_crate.crate_name));
        command.args(["--crate-type=cdylib", "--emit=asm,link,dep-info", "-Clinker=true", "-Clto=fat"]);
        command.arg("--out-dir").arg(&work);
        let key = self.key(&command, device_crate, linked);
        let variables = process::variables(&command);
        let mut checked = None;
        let (text, mut inputs) = Kept::in_folder(self.folder).find_or_compile(&key, &variables, || {
            self.run(&mut command, device_crate, &work)?;
            let (text, ptx) = self.finished(&assembly, device_crate)?;
            checked = Some(ptx);
            Ok((text, self.inputs(&read_files)?))
        })?;
        cache::write(&file, &text)?;
        let ptx = checked.map_or_else(|| self.check(&file, &text, device_crate), Ok)?;
        let layouts = layout::read(&text);
        let called = ptx.unresolved.iter().filter_map(|function| device_crate.externs.get(function));
        let links = called.flatten().cloned().collect::<BTreeSet<_>>();
        inputs.files.extend(links.iter().cloned());
        linked.values().for_each(|rlib| inputs.extend(&rlib.inputs));
        let links = links.into_iter().collect();
        Ok(Image { file, text, ptx, layouts, inputs, links, cubin: None, refusal: None })
    }

    /// The files and variables that rustc has read, except files that the build step writes.
    fn inputs(&self, dep_info: &Path) -> Result<Inputs, Error> {
        let mut inputs = Inputs::from_dep_info(&cache::read(dep_info)?);
        inputs.files.retain(|file| !file.starts_with(self.folder));
        Ok(inputs)
    }

    /// The rlib of the library of the package `id`, without entry points.
    pub(crate) fn library(
        &self,
        device_crate: &DeviceCrate,
        id: &str,
        linked: &Linked<'_>,
    ) -> Result<Rlib, Error> {
        let work = self.work_folder(&format!("{}-library", device_crate.slug));
        let mut command = self.rustc(device_crate, id, linked, "device-library");
        command.args(["--crate-type=rlib", "--emit=link,dep-info", "-Clinker-plugin-lto"]);
        command.arg("--out-dir").arg(&work);
        let key = self.key(&command, device_crate, linked);
        let variables = process::variables(&command);
        let key_with = |inputs: &Inputs| format!("{key} {}", inputs.key(&variables));
        let (stamp_file, name) = (work.join("stamp"), &device_crate.crate_name);
        let (read_files, file) = (work.join(format!("{name}.d")), work.join(format!("lib{name}.rlib")));
        let known = self.inputs(&read_files).ok().filter(|inputs| {
            file.is_file() && cache::read(&stamp_file).is_ok_and(|old| old == key_with(inputs))
        });
        let mut inputs = match known {
            Some(inputs) => inputs,
            None => {
                let _ = fs::remove_file(&stamp_file);
                self.run(&mut command, device_crate, &work)?;
                let inputs = self.inputs(&read_files)?;
                cache::write(&stamp_file, &key_with(&inputs))?;
                inputs
            }
        };
        let key = key_with(&inputs);
        linked.values().for_each(|rlib| inputs.extend(&rlib.inputs));
        let folders = linked.values().flat_map(|rlib| rlib.folders.iter().cloned()).chain([work]).collect();
        Ok(Rlib { file, folders, key, inputs })
    }

    /// The folder that rustc writes to.
    fn work_folder(&self, slug: &str) -> PathBuf {
        self.folder.join("build").join(format!("{slug}.{}", self.arch))
    }

    fn run(&self, command: &mut Command, device_crate: &DeviceCrate, work: &Path) -> Result<(), Error> {
        cache::create_dir(work)?;
        let output = process::run(command)?;
        if output.status.success() {
            return Ok(());
        }
        if output.status.code().is_none() {
            return Err(Error::Program {
                what: format!("compiling the kernels of {}", device_crate.target),
                command: process::command_line(command),
                output: format!("rustc was ended by a {}", output.status),
            });
        }
        let found = diagnostics::read(&String::from_utf8_lossy(&output.stderr), self.workspace_root, &hint);
        Err(Error::Device {
            target: device_crate.target.clone(),
            arch: self.arch.to_string(),
            hint: hint(&found.text),
            diagnostics: found.text,
            places: found.places,
        })
    }
}
