//! The conformance suite of the device-wide algorithms.
//!
//! `sorting`, `reducing` and `numeric` group most of them. `movements` and `selections` move elements, and `randoms` makes
//! numbers. `halves` runs the algorithms on 16-bit floats, `properties` on random inputs, and `tunings` with other tuned numbers. `templates` has
//! those whose operation is a function of the user's.

mod halves;
mod movements;
mod numeric;
mod properties;
mod randoms;
mod reducing;
mod selections;
mod sorting;
mod templates;
mod tunings;

use ferrogrid_suite::{Case, Outcome, expect, expect_error, names, table};

/// Lengths around those at which the algorithms' paths change: a row of a warp, a tile of a block (4096 elements), the
/// next block.
const LENGTHS: &[usize] =
    &[0, 1, 31, 32, 33, 511, 512, 513, 3072, 3073, 4095, 4096, 4097, 8192, 8193, 12_301];

/// For cases that repeat for each type.
const FEW_LENGTHS: &[usize] = &[0, 33, 4095, 8197];

fn main() -> std::process::ExitCode {
    let cases = [
        halves::CASES,
        movements::CASES,
        numeric::attention::CASES,
        numeric::attention_gradients::CASES,
        numeric::attention_sequences::CASES,
        numeric::filters::CASES,
        numeric::images::CASES,
        numeric::matrices::CASES,
        numeric::products::CASES,
        numeric::rows::CASES,
        numeric::sparse::CASES,
        numeric::transforms::CASES,
        properties::CASES,
        randoms::CASES,
        reducing::histograms::CASES,
        reducing::keyed::CASES,
        reducing::reductions::CASES,
        reducing::scans::CASES,
        reducing::segmented::CASES,
        reducing::statistics::CASES,
        selections::CASES,
        sorting::searches::CASES,
        sorting::segmented_sorts::CASES,
        sorting::sets::CASES,
        sorting::sorts::CASES,
        templates::comparisons::CASES,
        templates::elementwise::CASES,
        templates::matmul::CASES,
        templates::reductions::CASES,
        templates::scans::CASES,
        tunings::CASES,
    ]
    .concat();
    ferrogrid_suite::run(&cases, |device, (_, case)| case(device))
}
