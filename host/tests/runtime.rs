//! The cases of the conformance suite that need no kernels, on the CPU device and on a driver that is not
//! there (`fake_driver/libcuda.rs`), which puts work off, so that a missing order shows. Each case on that
//! driver runs in a process of its own. It must not need a GPU.

extern crate ferrogrid_host as ferrogrid;

#[path = "../../tests/conformance/runtime/mod.rs"]
mod runtime;
#[cfg(target_os = "linux")]
mod scenario;

use std::process::{Command, ExitCode};

use ferrogrid_host::Device;
use libtest_mimic::{Arguments, Failed, Trial};
use runtime::{CASES, Case, LIVE_CASES};

/// Names the case that a process is to run on CUDA.
const VARIABLE: &str = "FERROGRID_TEST_CASE";

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(VARIABLE) {
        return run_case(&name);
    }
    let arguments = Arguments::from_args();
    let on_cpu = CASES.iter().chain(LIVE_CASES).copied().flatten().copied().map(on_the_cpu);
    let mut trials: Vec<Trial> = on_cpu.collect();
    if cfg!(target_os = "linux") {
        trials.extend(CASES.iter().copied().flatten().copied().map(on_the_fake_driver));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn on_the_cpu((name, case): Case) -> Trial {
    Trial::test(format!("cpu::{name}"), move || {
        case(&Device::cpu()).map_err(|error| Failed::from(error.to_string()))
    })
}

fn on_the_fake_driver((name, _): Case) -> Trial {
    Trial::test(format!("fake::{name}"), move || {
        let mut process = Command::new(std::env::current_exe()?);
        #[cfg(target_os = "linux")]
        process.env("LD_LIBRARY_PATH", scenario::fake_driver(&[]));
        let output =
            process.env(VARIABLE, name).env("FAKE_CUDA", "devices=2").env_remove("FAKE_CUDA_LOG").output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(Failed::from(text.into_owned())) }
    })
}

fn run_case(name: &str) -> ExitCode {
    let case = CASES.iter().copied().flatten().find(|(known, _)| *known == name);
    let (_, case) = case.expect("a case of that name");
    match Device::cuda(0).map_err(Into::into).and_then(|device| case(&device)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
