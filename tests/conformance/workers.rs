//! Repeats the whole suite with other numbers of worker threads, each in a separate process.

use std::process::Command;

use ferrogrid::prelude::*;

use crate::table::not_for_this_device;
use crate::{Case, Outcome};

const NAME: &str = "the_suite_holds_with_1_2_and_16_workers";

pub(crate) const CASES: &[Case] = &[(NAME, the_suite_holds_with_1_2_and_16_workers)];

fn the_suite_holds_with_1_2_and_16_workers(device: &Device) -> Outcome {
    if *device != Device::cpu() {
        return not_for_this_device("only `Device::cpu()` heeds FERROGRID_CPU_THREADS");
    }
    for workers in ["1", "2", "16"] {
        let output = Command::new(std::env::current_exe()?)
            .args(["cpu::", "--skip", NAME])
            .env("FERROGRID_CPU_THREADS", workers)
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
