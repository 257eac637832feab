//! What the programs of the conformance suite share. A program states each behaviour once, as a function over a device, and runs it on
//! the CPU device and on each GPU that is present. A case asks which backend runs only where GPUs and the CPU device differ by design.
//!
//! `devices` lists the devices, `table` prints what ran where, and `workers` repeats a program with other numbers of worker threads.

pub mod devices;
pub mod table;
mod workers;

use std::process::ExitCode;

use ferrogrid_host::Device;
use libtest_mimic::{Arguments, Failed, Trial};
use table::Verdict;

/// The result of a case: `?` works on every error.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A behaviour: its name, and the function that checks it on a device.
pub type Case = (&'static str, fn(&Device) -> Outcome);

/// Runs a program's cases on all devices, each by `call`, and prints what ran where.
pub fn run(cases: &[Case], call: fn(&Device, Case) -> Outcome) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let devices = devices::all();
    // CUDA calls host functions one after the other, and the legacy stream waits for all: cases that block in
    // such a function would deadlock with others that it waits for.
    if devices.iter().any(|(_, device)| device.ordinal().is_some()) {
        arguments.test_threads.get_or_insert(1);
    }
    let cases = [cases, workers::CASES].concat();
    let all = devices.iter().flat_map(|(label, device)| cases.iter().map(move |case| (label, device, *case)));
    let trials = all.map(|(label, device, case)| trial(label, device, case, call)).collect();
    for (label, device) in devices {
        println!("{label}: {}, {} cases", device.name(), cases.len());
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    table::print(&devices.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>());
    conclusion.exit_code()
}

fn trial(
    label: &'static str,
    device: &'static Device,
    case: Case,
    call: fn(&Device, Case) -> Outcome,
) -> Trial {
    let (name, _) = case;
    Trial::test(format!("{label}::{name}"), move || {
        // Only if it returns: a panicking case never does.
        table::enter(name, label, Verdict::Failed);
        let outcome = call(device, case);
        let verdict = table::verdict(&outcome);
        table::enter(name, label, verdict.clone());
        if matches!(verdict, Verdict::NotHere(_)) {
            return Ok(());
        }
        outcome.map_err(|error| Failed::from(error.to_string()))
    })
    .with_ignored_flag(name == workers::NAME)
}

/// Checks that `found` is `expected`; `what` names it in the error.
///
/// # Errors
/// Both values, if they differ.
pub fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

/// Checks that `found` is the error that `is_expected` recognises, and returns its text.
///
/// # Errors
/// What was found instead.
pub fn expect_error<T>(
    what: &str,
    found: ferrogrid_host::Result<T>,
    is_expected: impl Fn(&ferrogrid_host::Error) -> bool,
) -> Result<String, Box<dyn std::error::Error>> {
    match found {
        Ok(_) => Err(format!("{what}: expected an error, found success").into()),
        Err(error) if is_expected(&error) => Ok(error.to_string()),
        Err(other) => Err(format!("{what}: another error: {other:?}").into()),
    }
}

/// Checks that `text` has all `parts`.
///
/// # Errors
/// The first part that is missing.
pub fn names(text: &str, parts: &[&str]) -> Outcome {
    for part in parts {
        if !text.contains(part) {
            return Err(format!("{part:?} is missing in {text:?}").into());
        }
    }
    Ok(())
}
