//! The conformance suite of the language and of the host runtime. That of the device-wide algorithms is in `tests/algorithms`.

mod block;
mod failure;
mod foreign;
mod graph;
mod language;
mod launch;
mod memory;
mod number;
mod own_process;
mod runtime;
mod texture;

use ferrogrid::Device;
use ferrogrid_suite::{Case, Outcome, devices, expect, expect_error, names, table};
use runtime::HoldsAStream;

fn main() -> std::process::ExitCode {
    if let Some(case) = own_process::requested() {
        return own_process::run(&case);
    }
    let cases = [
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
        texture::arrays::CASES,
        texture::sampling::CASES,
        texture::surfaces::CASES,
        own_process::CASES,
        &runtime::CASES.concat(),
        &runtime::LIVE_CASES.concat(),
    ]
    .concat();
    ferrogrid_suite::run(&cases, call)
}

/// Runs `case`, which does not apply where it may hold no stream.
fn call(device: &Device, case: Case) -> Outcome {
    match own_process::case(device, case) {
        Err(error) if error.is::<HoldsAStream>() => table::not_for_this_device(error.to_string()),
        outcome => outcome,
    }
}
