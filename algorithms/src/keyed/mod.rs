//! Runs of equal keys: their values combined, and scans that begin anew with each run.
//!
//! `totals` and `scans` are the functions. Of the kernels, `keys` finds the runs and `values` combines their elements, so that none is
//! compiled for each pair of types.

pub(crate) mod keys;
mod scans;
mod totals;
pub(crate) mod values;

use bytemuck::Pod;
use ferrogrid_host::LaunchError;

use crate::accumulate::Accumulated;
use crate::number::numbers::Element;
use crate::order::Ordinal;
use crate::reduce::Number;
use crate::select::placing::placing::{THREADS, WIDE_RUN as RUN};
use crate::{DeviceView, DeviceViewMut, Error, Grid, Result, Stream, Temporary};
use keys::kernels::mark_runs;
use values::kernels::combine_runs;

#[cfg(feature = "half")]
pub(crate) use scans::{Kind, scan_without_keys};
pub use scans::{exclusive_sum_by_key, inclusive_max, inclusive_min, inclusive_sum_by_key};
pub use totals::{max_by_key, max_by_key_into, min_by_key, min_by_key_into, sum_by_key, sum_by_key_into};

/// A number whose runs are found and combined.
pub trait Keyed:
    Ordinal<Place: mark_runs::Instance>
    + Accumulated<Sum: combine_runs::Instance, Least: combine_runs::Instance>
    + Element<Total: Pod>
{
}

impl<T> Keyed for T where
    T: Ordinal<Place: mark_runs::Instance>
        + Accumulated<Sum: combine_runs::Instance, Least: combine_runs::Instance>
        + Element<Total: Pod>
{
}

/// The elements of a block.
const TILE: usize = THREADS / 32 * RUN;

/// The blocks for `len` elements: one at least, which writes the number of runs.
fn grid(len: usize) -> Grid<1> {
    Grid::blocks(len.div_ceil(TILE).max(1))
}

/// Where runs begin.
struct Runs {
    /// A word for each lane.
    marks: Temporary<u32>,
    /// The runs before the elements of each warp.
    places: Temporary<u32>,
}

/// Finds the runs of `keys`, writes the first key of each to `unique`, and their number to `count`.
fn runs_of<K: Number>(
    stream: &Stream,
    keys: DeviceView<K>,
    unique: DeviceViewMut<K>,
    count: DeviceViewMut<u64>,
) -> Result<Runs> {
    let warps = keys.len().div_ceil(TILE).max(1) * (TILE / RUN);
    let (mut marks, mut places) = (stream.temporary(warps * 32)?, stream.temporary(warps)?);
    let (keys, unique, count) = (keys.cast()?, unique.cast()?.into_atomic(), count.slice(..1)?.into_atomic());
    keys::kernels::mark_runs::<K::Place>(
        stream,
        grid(keys.len()),
        K::ASCENDING,
        keys,
        unique,
        marks.view_mut(),
        places.view_mut(),
        count,
    )?;
    Ok(Runs { marks, places })
}

/// Refuses arguments of different lengths.
pub(crate) fn expect_pairs(
    function: &'static str,
    arguments: [&'static str; 2],
    lengths: [usize; 2],
) -> Result<()> {
    if lengths[0] == lengths[1] {
        return Ok(());
    }
    let shapes = lengths.map(|len| [len, 1, 1]);
    Err(Error::Launch(LaunchError::ShapesDiffer { kernel: function, arguments, shapes }))
}
