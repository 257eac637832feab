//! Benches of kernels: each case on every device, timed by the device's own clock. Cases can be swept over
//! block sizes, and are compared with the measured roofs of the device. The result is a table, JSON and
//! plots.
//!
//! A bench is a target of the package without cargo's harness:
//!
//! ```toml
//! [dev-dependencies]
//! ferrogrid-bench = { path = "../ferrogrid/bench" }
//!
//! [[bench]]
//! name = "kernels"
//! harness = false
//! ```
//!
//! and its `main` gives the cases to [`main`]:
//!
//! ```
//! #[ferrogrid::module(host_only)] // in your own package: #[ferrogrid::module]
//! mod kernels {
//!     use ferrogrid::device::prelude::*;
//!
//!     #[kernel]
//!     pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
//!         let i = t.index();
//!         if let Some(y) = y.get_mut(i) {
//!             *y += a * x[i.get()];
//!         }
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     ferrogrid_bench::main("kernels", |bench| {
//!         let n = bench.size(1 << 26, 1 << 20); // on a GPU, on the CPU
//!         let x = bench.stream().fill(1.0_f32, n)?;
//!         let mut y = bench.stream().fill(2.0_f32, n)?;
//!         bench.case("saxpy").bytes(12 * n).flops(2 * n).sweep(&[128, 256, 512]).run(|launch| {
//!             kernels::saxpy(launch.stream(), launch.cover(n), 2.0, &x, &mut y)
//!         })?;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! `cargo ferrogrid bench` builds and runs the benches of a package; `cargo bench` runs them, too. A program that cargo has
//! built runs without cargo: `./kernels --bench --json results.json --plots plots`. Without `--bench`, as `cargo test
//! --benches` calls it, each case runs once, to check that it works.

#![deny(missing_docs)]

mod case;
mod measure;
mod options;
mod plot;
mod report;
mod roof;
mod table;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use ferrogrid::Device;

pub use case::{Bench, Case, Launch};
pub use report::{CaseReport, DeviceReport, Report, Roof, RunReport};

use options::Options;

/// The result of the benches of a program.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The mark of programs with this harness, by which tools recognise them.
#[used]
static MARK: [u8; 36] = *b"ferrogrid-bench harness, interface 1";

/// Runs `cases` on every device that the command line selects, prints a table, and writes JSON and plots if requested.
/// `name` is the name of the bench. Fails if a case fails; the other devices are measured all the same.
pub fn main(name: &str, cases: impl Fn(&Bench) -> Outcome) -> ExitCode {
    match run(name, cases, std::env::args_os().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// As [`main`], with the arguments of a command line; returns whether all cases ran.
fn run(
    name: &str,
    cases: impl Fn(&Bench) -> Outcome,
    arguments: impl IntoIterator<Item = OsString>,
) -> Outcome<bool> {
    let options = Options::parse(arguments)?;
    if options.help {
        println!("{}", options::HELP);
        return Ok(true);
    }
    let report = measure(name, &cases, &options)?;
    if let Some(file) = &options.json {
        std::fs::write(file, format!("{:#}\n", report.to_json()))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if let Some(folder) = &options.plots {
        for file in plot::all(&report, folder)? {
            if !options.quiet {
                println!("plot {}", file.display());
            }
        }
    }
    Ok(report.devices.iter().all(|device| device.failure.is_none()))
}

/// Runs the cases on each device, and prints the results of each as soon as they are known.
fn measure(name: &str, cases: &dyn Fn(&Bench) -> Outcome, options: &Options) -> Outcome<Report> {
    let mut report = Report { bench: name.to_owned(), quick: options.quick, devices: Vec::new() };
    for device in options.devices(Device::all())? {
        let of_device = on_device(&device, cases, options)?;
        if !options.quiet {
            println!("{}", table::of_device(&of_device, options.quick));
        }
        if let Some(failure) = &of_device.failure {
            eprintln!("error on {}: {failure}", of_device.name);
        }
        report.devices.push(of_device);
    }
    Ok(report)
}

fn on_device(device: &Device, cases: &dyn Fn(&Bench) -> Outcome, options: &Options) -> Outcome<DeviceReport> {
    let stream = device.new_stream()?;
    let roof = roof::measure(&stream, options.quick)?;
    let mut report = DeviceReport::new(device, roof)?;
    let bench = Bench::new(stream, options);
    report.failure = cases(&bench).err().map(|error| error.to_string());
    report.cases = bench.into_cases();
    if report.cases.is_empty() && report.failure.is_none() && options.filter.is_some() {
        report.failure =
            Some(format!("no case has `{}` in its name", options.filter.clone().unwrap_or_default()));
    }
    // The mark is only in the program if something uses it.
    std::hint::black_box(&MARK);
    Ok(report)
}
