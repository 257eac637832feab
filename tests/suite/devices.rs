//! The devices under test, and their labels.

use std::sync::OnceLock;

use ferrogrid_host::{CpuOptions, Device};

/// All devices of this machine, and a virtual CPU device with tight limits, as no guarantee may depend on having
/// more; it runs kernels as kernels where the other one runs native bodies.
pub fn all() -> &'static [(String, Device)] {
    static DEVICES: OnceLock<Vec<(String, Device)>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let present = Device::all().into_iter().map(|device| (name(&device), device));
        present.chain([("cpu_small".to_owned(), small())]).collect()
    })
}

/// Three workers (no power of two), the shared memory of the oldest GPUs that there is code for, little memory.
fn small() -> Device {
    let options = CpuOptions::new().workers(3).shared_memory_per_block(64 << 10).memory(256 << 20);
    Device::cpu_with(options.without_native_bodies()).expect("these limits are possible")
}

/// `cpu`, `cpu_small`, `cuda0`, `cuda1`, ...
pub fn label(device: &Device) -> &'static str {
    let known = all().iter().find(|(_, known)| known == device);
    known.map_or("unknown", |(label, _)| label)
}

fn name(device: &Device) -> String {
    match device.ordinal() {
        Some(ordinal) => format!("cuda{ordinal}"),
        None => "cpu".to_owned(),
    }
}
