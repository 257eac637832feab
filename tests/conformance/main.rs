//! The conformance suite: every behaviour of kernels and of the host runtime, stated once as a
//! function over a device, and run on the CPU device and on each GPU that is present. It must not
//! know backends: a case asks the device what it is only where CUDA and CPU differ by design.

mod atomic_kernels;
mod atomics;
mod barrier_function_kernels;
mod barrier_functions;
mod block_kernels;
mod blocks;
mod cache_kernels;
mod caches;
mod cluster_kernels;
mod clusters;
mod constant_kernels;
mod constants;
mod dependent_kernels;
mod dependents;
mod devices;
mod failure_kernels;
mod failures;
mod fault_kernels;
mod faults;
mod graphs;
mod group_kernels;
mod groups;
mod half;
mod handles;
mod host_slices;
mod ipc;
mod kernels;
mod language;
mod launching;
mod loading;
mod loop_kernels;
mod loops;
mod math;
mod memory;
mod merge_kernels;
mod merges;
mod order_kernels;
mod ordering;
mod orders;
mod outcome_kernels;
mod outcomes;
mod own_process;
mod properties;
mod property_kernels;
mod random;
mod random_kernels;
mod runtime;
mod rust_semantics;
mod rust_semantics_kernels;
mod several_devices;
mod sort_kernels;
mod sorts;
mod static_kernels;
mod statics;
mod stress;
mod stress_kernels;
mod stride_kernels;
mod strides;
mod table;
mod texture_kernels;
mod textures;
mod timelines;
mod type_kernels;
mod types;
mod workers;
mod write_kernels;
mod writes;
mod zero_copy;

use ferrogrid::Device;
use libtest_mimic::{Arguments, Failed, Trial};
use table::Verdict;

/// What a case returns: `?` works on every error.
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A behaviour: its name, and the function that demands it of a device.
type Case = (&'static str, fn(&Device) -> Outcome);

fn main() -> std::process::ExitCode {
    if let Some(case) = own_process::requested() {
        return own_process::run(&case);
    }
    let mut arguments = Arguments::from_args();
    let devices = devices::all();
    // CUDA calls functions of the host one after the other, and the legacy stream waits for all: cases that
    // keep such a function waiting would keep others waiting that it waits for.
    if devices.iter().any(|(_, device)| device.ordinal().is_some()) {
        arguments.test_threads.get_or_insert(1);
    }
    let cases = [
        language::CASES,
        launching::CASES,
        loading::CASES,
        math::CASES,
        memory::CASES,
        merges::CASES,
        ordering::CASES,
        orders::CASES,
        rust_semantics::CASES,
        own_process::CASES,
        several_devices::CASES,
        sorts::CASES,
        statics::CASES,
        atomics::CASES,
        failures::CASES,
        graphs::CASES,
        groups::CASES,
        loops::CASES,
        outcomes::CASES,
        half::CASES,
        handles::CASES,
        ipc::CASES,
        host_slices::CASES,
        stress::CASES,
        strides::CASES,
        textures::CASES,
        timelines::CASES,
        barrier_functions::CASES,
        types::CASES,
        blocks::CASES,
        caches::CASES,
        clusters::CASES,
        dependents::CASES,
        constants::CASES,
        random::CASES,
        faults::CASES,
        properties::CASES,
        workers::CASES,
        writes::CASES,
        zero_copy::CASES,
        &runtime::CASES.concat(),
        &runtime::LIVE_CASES.concat(),
    ]
    .concat();
    let all = devices.iter().flat_map(|(label, device)| cases.iter().map(move |case| (label, device, *case)));
    let trials = all.map(|(label, device, case)| trial(label, device, case)).collect();
    for (label, device) in devices {
        println!("{label}: {}, {} cases", device.name(), cases.len());
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    table::print(&devices.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>());
    conclusion.exit_code()
}

fn trial(label: &'static str, device: &'static Device, case: Case) -> Trial {
    let (name, _) = case;
    Trial::test(format!("{label}::{name}"), move || {
        // Until it returns: a panic of the case never does.
        table::enter(name, label, Verdict::Failed);
        let outcome = own_process::case(device, case);
        let verdict = table::verdict(&outcome);
        table::enter(name, label, verdict.clone());
        if matches!(verdict, Verdict::NotHere(_)) {
            return Ok(());
        }
        outcome.map_err(|error| Failed::from(error.to_string()))
    })
}

/// Fails with what was expected and what was found.
fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

/// Fails unless `found` is the error that `is_expected` recognises; returns its text.
fn expect_error<T>(
    what: &str,
    found: ferrogrid::Result<T>,
    is_expected: impl Fn(&ferrogrid::Error) -> bool,
) -> Result<String, Box<dyn std::error::Error>> {
    match found {
        Ok(_) => Err(format!("{what}: expected an error, found success").into()),
        Err(error) if is_expected(&error) => Ok(error.to_string()),
        Err(other) => Err(format!("{what}: another error: {other:?}").into()),
    }
}

/// Fails unless `text` has all `parts`.
fn names(text: &str, parts: &[&str]) -> Outcome {
    for part in parts {
        if !text.contains(part) {
            return Err(format!("{part:?} is missing in {text:?}").into());
        }
    }
    Ok(())
}
