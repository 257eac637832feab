//! Random work of many threads, with launches of kernels.

use ferrogrid::prelude::*;

use crate::devices;
use crate::launch::stress_kernels::stress;
use crate::own_process::in_its_own_process;
use crate::runtime::stress::{Failing, LENGTH, random_work, soak};
use crate::{Case, Outcome};

const SOAK: &str = "random_work_with_failures_loses_none_and_no_memory";

pub(crate) const CASES: &[Case] = &[
    ("random_launches_of_many_threads_equal_the_model", random_launches_equal_the_model),
    (SOAK, |device| in_its_own_process(device, SOAK)),
];

/// The case, as it runs in its process.
pub(crate) const APART: &[Case] = &[(SOAK, random_work_with_failures)];

/// The file for the result line of a soak.
const RESULT: &str = "FERROGRID_SOAK_RESULT";

fn mix(
    stream: &Stream,
    x: &DeviceBuffer<u32>,
    y: &mut DeviceBuffer<u32>,
    factor: u32,
) -> ferrogrid::Result<()> {
    stress::mix(stream, Grid::cover(LENGTH), factor, x, y)
}

fn random_launches_equal_the_model(device: &Device) -> Outcome {
    random_work(device, Some(mix))
}

/// For two seconds on `device`; if a time is set, for that on all devices at once.
fn random_work_with_failures(device: &Device) -> Outcome {
    let is_long = std::env::var_os("FERROGRID_SOAK_SECONDS").is_some();
    let devices: Vec<&Device> = match is_long {
        true => devices::all().iter().map(|(_, device)| device).collect(),
        false => vec![device],
    };
    let failing = Failing {
        launch: |stream, x, y, factor, number| {
            stress::may_fail(stream, Grid::cover(LENGTH), factor, number, x, y)
        },
        rate: if is_long { 1000 } else { 50 },
    };
    let (line, outcome) = soak(&devices, mix, failing)?;
    println!("{line}");
    if let Some(file) = std::env::var_os(RESULT) {
        std::fs::write(file, format!("{line}\n"))?;
    }
    outcome
}
