//! Repeats the whole suite with other numbers of worker threads, each in a separate process.

use std::num::NonZero;
use std::process::Command;
use std::thread;

use ferrogrid_host::Device;

use crate::table::not_for_this_device;
use crate::{Case, Outcome};

/// Ignored by default, because it takes longer than all other cases together; `FULL=1 .ci/run` runs it.
pub(crate) const NAME: &str = "the_suite_holds_with_1_2_and_16_workers";

pub(crate) const CASES: &[Case] = &[(NAME, the_suite_holds_with_1_2_and_16_workers)];

fn the_suite_holds_with_1_2_and_16_workers(device: &Device) -> Outcome {
    if *device != Device::cpu() {
        return not_for_this_device("only `Device::cpu()` heeds FERROGRID_CPU_THREADS");
    }
    // `cpu::` itself has one worker for each processor.
    let usual = thread::available_parallelism().map_or(1, NonZero::get);
    for workers in [1, 2, 16].into_iter().filter(|workers| *workers != usual) {
        let output = Command::new(std::env::current_exe()?)
            .args(["cpu::", "--skip", NAME])
            .env("FERROGRID_CPU_THREADS", workers.to_string())
            // Random inputs are run with each of these numbers anyway.
            .env("PROPTEST_CASES", "1")
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || !text.contains("test result: ok") {
            return Err(format!("{workers} workers: {}\n{text}", output.status).into());
        }
    }
    Ok(())
}
