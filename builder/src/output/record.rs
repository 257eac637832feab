//! The record that a build step leaves in `OUT_DIR/ferrogrid/record.json` for tools: its kernels, the files
//! with their code, and what compiling them again requires. `inspect::Record` reads it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cache;
use crate::cargo::metadata::Source;
use crate::compile::Image;
use crate::error::Error;
use crate::source::device_crate::DeviceCrate;
use crate::step::Step;

/// The version of the format: another version of this crate may have written the file.
pub(crate) const SCHEMA: u64 = 1;

/// Where the record is, below the `OUT_DIR` of a build script.
pub(crate) fn file(out_dir: &Path) -> PathBuf {
    out_dir.join("ferrogrid/record.json")
}

/// A device crate and its PTX.
pub(crate) fn unit(of_crate: &DeviceCrate, images: &[Image]) -> Value {
    let image_files: Vec<Value> =
        images.iter().map(|image| json!({ "arch": image.ptx.target, "file": image.file })).collect();
    let mut kernels = Vec::new();
    for module in &of_crate.modules {
        for kernel in &module.kernels {
            let of_constants =
                || images.first()?.layouts.get(&kernel.entry).and_then(|it| crate::ptx::layout::block(it));
            let is_constant = kernel.bounds.block_of_constants;
            let block = if is_constant { of_constants() } else { kernel.bounds.block };
            kernels.push(json!({
                "name": kernel.name,
                "arguments": kernel.arguments,
                "module": module.name,
                "entry": kernel.entry,
                "file": module.file,
                "first_line": kernel.lines.0,
                "last_line": kernel.lines.1,
                "block": block,
                "max_threads": kernel.bounds.max_threads,
            }));
        }
    }
    json!({ "slug": of_crate.slug, "target": of_crate.target, "images": image_files, "kernels": kernels })
}

/// Writes the record of a step that has built `units`. `local_folders` are those of packages outside the
/// workspace, with their names in PTX.
pub(crate) fn write(
    step: &Step<'_>,
    local_folders: &[(PathBuf, String)],
    units: Vec<Value>,
) -> Result<(), Error> {
    let environment = step.environment;
    let device = step.package.ferrogrid.as_ref().map(|[device, _]| &device.source);
    let device = device.and_then(|source| match source {
        Source::Path(folder) => Some(folder),
        _ => None,
    });
    let record = json!({
        "schema": SCHEMA,
        "package": step.package.name,
        "workspace_root": step.package.workspace_root,
        "manifest_dir": environment.manifest_dir,
        "features": environment.features,
        "only": environment.only_target(step.package),
        "cfgs": environment.cfgs,
        "host_cfgs": environment.host_cfgs,
        "crate_variables": environment.crate_variables,
        "libdevice": environment.libdevice,
        "options": step.options.to_metadata(),
        "device_crate": device,
        "local_folders": local_folders,
        "units": units,
    });
    cache::write(&step.folder.join("record.json"), &format!("{record:#}\n"))
}
