//! Measures the largest errors of mathematical functions on the devices that are present, and writes them down:
//!
//! ```sh
//! cargo bench --bench math_errors                               # a quick look: a million numbers each
//! cargo bench --bench math_errors -- --all --out errors.csv     # all 2^32 numbers of f32; minutes on a GPU
//! cargo bench --bench math_errors -- --table gpu.csv cpu.csv    # the table of docs/src/reference/math-errors.md
//! cargo bench --bench math_errors -- --judge 2000 | python3 benches/math_errors/check_judge.py
//! ```
//!
//! `--device cpu` and `--device cuda` select a device; `--step N` takes each N-th `f32` instead of all.
//! `FERROGRID_MATH_ERRORS_LIMIT` bounds the number of arguments of each function, for a test of the command
//! line. The exit code is 1 if a documented bound does not hold.

/// Launches the instance of a kernel that is for one function.
macro_rules! for_function {
    ($function:expr, $kernels:ident::$kernel:ident[$($number:literal)*]$arguments:tt) => {
        match $function {
            $($number => $kernels::$kernel::<$number> $arguments?,)*
            other => return Err(format!("there is no function {other}").into()),
        }
    };
    ($function:expr, of one $kernels:ident::$kernel:ident $arguments:tt) => {
        for_function!($function, $kernels::$kernel[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25]
            $arguments)
    };
}

mod double;
mod fast;
mod judge;
mod kernels;
mod report;
mod single;

use std::path::PathBuf;
use std::process::ExitCode;

use ferrogrid::prelude::*;
use report::Line;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The extent of the measurement.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// The step between tested `f32`s; odd, so that all bits vary.
    pub step: u32,
    /// The number of arguments for functions of `f64` and of two `f32`s.
    pub random: usize,
}

fn main() -> ExitCode {
    // `cargo bench` adds this.
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match run(arguments.collect()) {
        Ok(beyond) if beyond.is_empty() => ExitCode::SUCCESS,
        Ok(beyond) => {
            beyond.iter().for_each(|line| eprintln!("beyond its documented bound: {}", line.csv()));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Outcome<Vec<Line>> {
    if let Some(at) = arguments.iter().position(|argument| argument == "--table") {
        let files: Vec<PathBuf> = arguments[at + 1..].iter().map(PathBuf::from).collect();
        print!("{}", report::table(&report::read(&files)?));
        return Ok(Vec::new());
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--judge") {
        double::print_judgements(arguments.get(at + 1).map_or(Ok(1000), |count| count.parse())?);
        return Ok(Vec::new());
    }
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let is_full = arguments.iter().any(|argument| argument == "--all");
    let step = after("--step").map(|step| step.parse::<u32>()).transpose()?;
    let limit =
        std::env::var("FERROGRID_MATH_ERRORS_LIMIT").ok().map(|limit| limit.parse::<u32>()).transpose()?;
    let least_step = limit.map_or(1, |limit| u32::MAX / limit.max(1));
    let random: usize = if is_full { 100_663_296 } else { 1 << 20 };
    let effort = Effort {
        step: step.unwrap_or(if is_full { 1 } else { 4099 }).max(least_step) | 1,
        random: limit.map_or(random, |limit| random.min(limit as usize)),
    };
    let mut devices = vec![Device::cpu()];
    devices.extend(Device::cuda(0));
    if let Some(wanted) = after("--device") {
        devices.retain(|device| device.is_cuda() == wanted.starts_with("cuda"));
        if devices.is_empty() {
            return Err(format!("there is no device {wanted} here").into());
        }
    }
    let mut lines = Vec::new();
    for device in &devices {
        println!("{}: {}, {effort:?}", device.name(), report::library(device));
        lines.extend(single::measure(device, effort)?);
        lines.extend(fast::measure(device, effort)?);
        lines.extend(double::measure(device, effort)?);
    }
    if let Some(file) = after("--out") {
        std::fs::write(file, report::csv(&lines))?;
    }
    Ok(lines.into_iter().filter(Line::is_beyond).collect())
}
