//! The conformance suite: every behaviour of kernels and of the host runtime, stated once as a function over
//! a device, and run on the CPU device and on each GPU that is present.
//! A case asks which backend runs only where GPUs and the CPU device differ by design.

mod algorithms;
mod block;
mod devices;
mod failure;
mod foreign;
mod graph;
mod language;
mod launch;
mod memory;
mod number;
mod own_process;
mod runtime;
mod table;
mod templates;
mod texture;
mod workers;

use ferrogrid::Device;
use libtest_mimic::{Arguments, Failed, Trial};
use table::Verdict;

/// The result of a case: `?` works on every error.
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A behaviour: its name, and the function that checks it on a device.
type Case = (&'static str, fn(&Device) -> Outcome);

fn main() -> std::process::ExitCode {
    if let Some(case) = own_process::requested() {
        return own_process::run(&case);
    }
    let mut arguments = Arguments::from_args();
    let devices = devices::all();
    // CUDA calls host functions one after the other, and the legacy stream waits for all: cases that block in
    // such a function would deadlock with others that it waits for.
    if devices.iter().any(|(_, device)| device.ordinal().is_some()) {
        arguments.test_threads.get_or_insert(1);
    }
    let cases = [
        algorithms::halves::CASES,
        algorithms::movements::CASES,
        algorithms::numeric::attention::CASES,
        algorithms::numeric::attention_gradients::CASES,
        algorithms::numeric::attention_sequences::CASES,
        algorithms::numeric::filters::CASES,
        algorithms::numeric::images::CASES,
        algorithms::numeric::matrices::CASES,
        algorithms::numeric::products::CASES,
        algorithms::numeric::rows::CASES,
        algorithms::numeric::sparse::CASES,
        algorithms::numeric::transforms::CASES,
        algorithms::properties::CASES,
        algorithms::randoms::CASES,
        algorithms::reducing::histograms::CASES,
        algorithms::reducing::keyed::CASES,
        algorithms::reducing::reductions::CASES,
        algorithms::reducing::scans::CASES,
        algorithms::reducing::segmented::CASES,
        algorithms::reducing::statistics::CASES,
        algorithms::selections::CASES,
        algorithms::sorting::searches::CASES,
        algorithms::sorting::segmented_sorts::CASES,
        algorithms::sorting::sets::CASES,
        algorithms::sorting::sorts::CASES,
        algorithms::tunings::CASES,
        block::barrier_functions::CASES,
        block::blocks::CASES,
        block::clusters::CASES,
        block::groups::CASES,
        block::merges::CASES,
        block::orders::CASES,
        block::sorts::CASES,
        block::stages::CASES,
        block::stages::outputs::CASES,
        block::stages::boxes::CASES,
        block::stages::tiles::CASES,
        failure::failures::CASES,
        failure::faults::CASES,
        failure::outcomes::CASES,
        foreign::compiling::CASES,
        foreign::handles::CASES,
        foreign::loading::CASES,
        graph::graphs::CASES,
        graph::loops::CASES,
        language::properties::CASES,
        language::rust_semantics::CASES,
        language::signatures::CASES,
        language::types::CASES,
        launch::dependents::CASES,
        launch::ipc::CASES,
        launch::launching::CASES,
        launch::natives::CASES,
        launch::ordering::CASES,
        launch::queries::CASES,
        launch::several_devices::CASES,
        launch::stress::CASES,
        launch::timelines::CASES,
        memory::access::caches::CASES,
        memory::access::strides::CASES,
        memory::access::writes::CASES,
        memory::atomics::CASES,
        memory::buffers::CASES,
        memory::host_slices::CASES,
        memory::variables::constants::CASES,
        memory::variables::statics::CASES,
        memory::zero_copy::CASES,
        number::half::CASES,
        number::math::CASES,
        number::products::CASES,
        number::tiles::CASES,
        number::twice::CASES,
        number::random::CASES,
        templates::comparisons::CASES,
        templates::elementwise::CASES,
        templates::matmul::CASES,
        templates::reductions::CASES,
        templates::scans::CASES,
        texture::arrays::CASES,
        texture::sampling::CASES,
        texture::surfaces::CASES,
        own_process::CASES,
        workers::CASES,
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
        // Only if it returns: a panicking case never does.
        table::enter(name, label, Verdict::Failed);
        let outcome = own_process::case(device, case);
        let verdict = table::verdict(&outcome);
        table::enter(name, label, verdict.clone());
        if matches!(verdict, Verdict::NotHere(_)) {
            return Ok(());
        }
        outcome.map_err(|error| Failed::from(error.to_string()))
    })
    .with_ignored_flag(name == workers::NAME)
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
