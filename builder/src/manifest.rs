//! Writes the manifest of an annotated module: what the host half of the macro includes. It must
//! not know how the images were made. The format is described in `docs/src/internals.md`.

use std::path::{Path, PathBuf};

use crate::cache;
use crate::compile::Image;
use crate::error::Error;
use crate::module_tree::FoundModule;

/// The name of the variable through which the macro finds a module's manifest.
pub(crate) fn variable(module: &FoundModule) -> String {
    format!("FERROGRID_MODULE_{}", module.fingerprint)
}

/// Writes the manifest of `module`, whose code is in each of `images`, and returns its path.
pub(crate) fn write(module: &FoundModule, images: &[Image], folder: &Path) -> Result<PathBuf, Error> {
    let file = folder.join("modules").join(format!("{}.rs", module.fingerprint));
    cache::write(&file, &text(module, images))?;
    Ok(file)
}

fn text(module: &FoundModule, images: &[Image]) -> String {
    let all: String = images.iter().map(|image| image.text.as_str()).collect();
    let mut out = format!("(\n    0x{:032x}_u128,\n    &[\n", xxhash_rust::xxh3::xxh3_128(all.as_bytes()));
    for image in images {
        let (major, minor) = image.ptx.version;
        let file = image.file.to_string_lossy();
        let cubin = image.cubin.as_ref().map_or("&[]".to_owned(), |file| format!("include_bytes!({file:?})"));
        out.push_str(&format!(
            "        ({:?}, {major}, {minor}, include_str!({file:?}), {cubin}),\n",
            image.ptx.target
        ));
    }
    out.push_str("    ],\n    &[\n");
    for kernel in &module.kernels {
        let Some(entry) = images.first().and_then(|image| image.ptx.entry(&kernel.entry)) else { continue };
        let params: Vec<(usize, usize)> =
            entry.params.iter().map(|param| (param.size, param.align)).collect();
        out.push_str(&format!("        ({:?}, &{params:?}),\n", entry.name));
    }
    out.push_str("    ],\n)\n");
    out
}
