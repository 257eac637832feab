//! Machine code beside the PTX, if the build requests it and ptxas is installed. It is cached by PTX,
//! architecture and ptxas, so unchanged kernels are not assembled again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::cargo::Environment;
use crate::compile::Image;
use crate::error::Error;
use crate::inspect::Assembler;
use crate::options::Arch;
use crate::toolchain::cuda_toolkit::CudaTool;

/// The variable that overrides the package's choice.
pub(crate) const VARIABLE: &str = "FERROGRID_CUBIN";

/// The assembler of a build's images.
#[derive(Debug)]
pub(crate) enum Cubins {
    /// Not requested.
    Unwanted,
    /// Requested, but ptxas is not installed.
    NoAssembler,
    /// Results go to `folder`.
    Made { assembler: Assembler, folder: PathBuf },
}

/// Whether `FERROGRID_CUBIN` asks for machine code; `None` if it is not set.
///
/// # Errors
/// [`Error::Variable`] if it is something else than 0 or 1.
pub(crate) fn asked(environment: &Environment) -> Result<Option<bool>, Error> {
    match environment.cubin.as_deref().map(str::trim) {
        None => Ok(None),
        Some("1") => Ok(Some(true)),
        Some("0") => Ok(Some(false)),
        Some(other) => Err(Error::Variable { name: VARIABLE, value: other.to_owned(), expected: "0 or 1" }),
    }
}

impl Cubins {
    /// For a build in `folder`; `target` is the package's target folder.
    pub(crate) fn new(wanted: bool, environment: &Environment, folder: &Path, target: &Path) -> Self {
        if !wanted {
            return Cubins::Unwanted;
        }
        let found = match &environment.ptxas {
            Some(named) => Some(named.clone()).filter(|file| file.is_file()),
            None => CudaTool::Ptxas.find(Some(target)),
        };
        let Some(program) = found else { return Cubins::NoAssembler };
        let folder = folder.join("cubin");
        Cubins::Made { assembler: Assembler::new(program, folder.clone()), folder }
    }

    /// Adds the machine code to `image`, or the reason why there is none.
    pub(crate) fn add_to(&self, image: &mut Image, arch: &Arch) {
        let Cubins::Made { assembler, .. } = self else { return };
        match assembler.assemble(&image.file, arch, None) {
            Ok(assembled) => image.cubin = Some(assembled.cubin),
            Err(error) => image.refusal = Some(error.to_string()),
        }
    }

    /// Warnings about images that the driver has to compile.
    pub(crate) fn warnings<'i>(&self, images: impl Iterator<Item = &'i Image>) -> Vec<String> {
        if let Cubins::NoAssembler = self {
            return vec![format!(
                "cargo::warning=`cubin` is set, but ptxas is not installed, so the driver compiles the PTX at run time; \
                 to get it: {}, or set FERROGRID_PTXAS",
                CudaTool::Ptxas.advice(None)
            )];
        }
        let refused = images.filter_map(|image| {
            let why = image.refusal.as_ref()?.lines().map(str::trim).collect::<Vec<_>>().join(" | ");
            Some(format!("cargo::warning=no cubin for {}, the driver compiles it: {why}", image.ptx.target))
        });
        refused.collect()
    }

    /// Removes files that belong to none of `cubins`.
    pub(crate) fn remove_stale(&self, cubins: &[PathBuf]) -> Result<(), Error> {
        let Cubins::Made { folder, .. } = self else { return Ok(()) };
        let live: BTreeSet<_> = cubins.iter().filter_map(|file| file.file_stem()).collect();
        cache::retain(folder, |file| file.file_stem().is_some_and(|stem| live.contains(stem)))
    }
}
