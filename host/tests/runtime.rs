//! The cases of the conformance suite that need no kernels, and random work with launches of one, on the CPU
//! device and on a fake driver (`fake_driver/libcuda.rs`), which defers work, so that a
//! missing order shows. Each case on that driver runs in a separate process; random work also where streams
//! run by themselves and freed memory is given out again at once. No GPU is needed.

extern crate ferrogrid_host as ferrogrid;

mod kernels;
#[path = "../../tests/conformance/runtime/mod.rs"]
mod runtime;
#[cfg(target_os = "linux")]
mod scenario;

use std::process::{Command, ExitCode};

use ferrogrid_host::{CpuOptions, Device, DeviceBuffer, Error, Grid, Result, Stream};
use libtest_mimic::{Arguments, Failed, Trial};
use runtime::stream::sharing;
use runtime::stress::{Failing, LENGTH, random_work, soak};
use runtime::{CASES, Case, LIVE_CASES, Outcome};

/// Random work with launches, of kernels that need no compiler.
const WITH_LAUNCHES: &[Case] = &[
    ("random_launches_of_many_threads_equal_the_model", |device| random_work(device, Some(mix))),
    ("random_work_with_failures_loses_none_and_no_memory", |device| {
        let launch = |stream: &_, x: &_, y: &mut _, factor, number| {
            kernels::may_fail(stream, Grid::cover(LENGTH), (factor, number), x, y)
        };
        // Other cases use the CPU device meanwhile.
        let own = if device.is_cuda() { device.clone() } else { Device::cpu_with(CpuOptions::new())? };
        let (line, outcome) = soak(&[&own], mix, Failing { launch, rate: 50 })?;
        eprintln!("{line}");
        outcome
    }),
    ("failures_reach_what_cudarc_writes", failures_reach_what_cudarc_writes),
];

/// A copy by cudarc of what a failed kernel has written fails as the kernel did, and later ones do not.
fn failures_reach_what_cudarc_writes(device: &Device) -> Outcome {
    let Some(stream) = sharing::shared(device)? else { return Ok(()) };
    let (mut x, mut y) = (stream.fill(1_u32, LENGTH)?, stream.zeros::<u32>(LENGTH)?);
    let z = stream.fill(2_u32, LENGTH)?;
    kernels::may_fail(&stream, Grid::cover(LENGTH), (1, 7), &z, &mut x)?;
    // The output begins before the input is named.
    let mut written = stream.write(&mut y)?;
    stream.cudarc().memcpy_dtod(&stream.read(&x)?, &mut written)?;
    drop(written);
    let other = device.new_stream()?;
    assert!(matches!(other.download(&y), Err(Error::KernelPanic { .. })));
    assert_eq!(other.download(&z)?, [2; LENGTH]);

    stream.cudarc().memcpy_dtod(&stream.read(&z)?, &mut stream.write(&mut y)?)?;
    assert_eq!(other.download(&y)?, [2; LENGTH], "it has been written anew");
    Ok(())
}

/// Cannot panic.
fn mix(stream: &Stream, x: &DeviceBuffer<u32>, y: &mut DeviceBuffer<u32>, factor: u32) -> Result<()> {
    kernels::silent_mix(stream, Grid::cover(LENGTH), factor, x, y)
}

/// Names the case that a process is to run on CUDA.
const VARIABLE: &str = "FERROGRID_TEST_CASE";

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(VARIABLE) {
        return run_case(&name);
    }
    let arguments = Arguments::from_args();
    let all = || CASES.iter().copied().flatten().chain(WITH_LAUNCHES).copied();
    let live = LIVE_CASES.iter().copied().flatten().copied();
    let mut trials: Vec<Trial> = all().chain(live).map(on_the_cpu).collect();
    if cfg!(target_os = "linux") {
        trials.extend(all().map(|case| on_the_fake_driver(case, "fake", "devices=2,version=13000")));
        let random = all().filter(|(name, _)| name.starts_with("random_"));
        trials.extend(random.map(|case| on_the_fake_driver(case, "alive", "devices=2,alive=1")));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn on_the_cpu((name, case): Case) -> Trial {
    Trial::test(format!("cpu::{name}"), move || {
        case(&Device::cpu()).map_err(|error| Failed::from(error.to_string()))
    })
}

fn on_the_fake_driver((name, _): Case, prefix: &str, settings: &'static str) -> Trial {
    Trial::test(format!("{prefix}::{name}"), move || {
        let mut process = Command::new(std::env::current_exe()?);
        #[cfg(target_os = "linux")]
        process.env("LD_LIBRARY_PATH", scenario::fake_driver(&[]));
        let output =
            process.env(VARIABLE, name).env("FAKE_CUDA", settings).env_remove("FAKE_CUDA_LOG").output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(Failed::from(text.into_owned())) }
    })
}

fn run_case(name: &str) -> ExitCode {
    let mut cases = CASES.iter().copied().flatten().chain(WITH_LAUNCHES);
    let (_, case) = cases.find(|(known, _)| *known == name).expect("a case of that name");
    match Device::cuda(0).map_err(Into::into).and_then(|device| case(&device)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
