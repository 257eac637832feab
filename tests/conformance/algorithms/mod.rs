//! Device-wide algorithms.
//!
//! `sorting`, `reducing` and `numeric` group most of them. `movements` and `selections` move elements, and `randoms` makes
//! numbers. `halves` runs the algorithms on 16-bit floats, `properties` on random inputs, and `tunings` with other tuned numbers.

pub(crate) mod halves;
pub(crate) mod movements;
pub(crate) mod numeric;
pub(crate) mod properties;
pub(crate) mod randoms;
pub(crate) mod reducing;
pub(crate) mod selections;
pub(crate) mod sorting;
pub(crate) mod tunings;

/// Lengths around those at which the algorithms' paths change: a row of a warp, a tile of a block (4096 elements), the
/// next block.
const LENGTHS: &[usize] =
    &[0, 1, 31, 32, 33, 511, 512, 513, 3072, 3073, 4095, 4096, 4097, 8192, 8193, 12_301];

/// For cases that repeat for each type.
const FEW_LENGTHS: &[usize] = &[0, 33, 4095, 8197];
