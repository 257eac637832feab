//! What benches beside another implementation need: a GPU, and the file with the other side.

use std::path::PathBuf;

use ferrogrid::prelude::*;

/// The first GPU and the file that `variable` names, which has the code of the `other` side. `None`, with a line that says why,
/// where one of them is missing: `cargo test --benches` runs benches too, and there is nothing to check without a GPU.
pub fn gpu_and_file(variable: &str, other: &str) -> Option<(Device, PathBuf)> {
    let device = Device::cuda(0).inspect_err(|error| println!("no GPU to measure: {error}")).ok()?;
    let Some(file) = std::env::var_os(variable) else {
        println!("no {other} to measure against: {variable} is not set");
        return None;
    };
    Some((device, file.into()))
}
