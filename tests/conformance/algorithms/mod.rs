//! Device-wide algorithms.

pub(crate) mod filters;
pub(crate) mod halves;
pub(crate) mod histograms;
pub(crate) mod images;
pub(crate) mod keyed;
pub(crate) mod matrices;
pub(crate) mod movements;
pub(crate) mod properties;
pub(crate) mod randoms;
pub(crate) mod reductions;
pub(crate) mod rows;
pub(crate) mod scans;
pub(crate) mod searches;
pub(crate) mod segmented;
pub(crate) mod segmented_sorts;
pub(crate) mod selections;
pub(crate) mod sets;
pub(crate) mod sorts;
pub(crate) mod sparse;
pub(crate) mod statistics;
pub(crate) mod transforms;
pub(crate) mod tunings;

/// Lengths around those at which the algorithms' paths change: a row of a warp, a tile of a block (4096 elements), the
/// next block.
const LENGTHS: &[usize] =
    &[0, 1, 31, 32, 33, 511, 512, 513, 3072, 3073, 4095, 4096, 4097, 8192, 8193, 12_301];

/// For cases that repeat for each type.
const FEW_LENGTHS: &[usize] = &[0, 33, 4095, 8197];
