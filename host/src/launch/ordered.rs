//! What a comparison's functions launch: passes of a merge sort, a merge, sets. `#[comparison]` passes its kernels, as the crate of
//! ready-made algorithms does.

use ferrogrid_device::DeviceCopy;
use ferrogrid_device::ordered::{MEMBERS, THREADS, tile};
use ferrogrid_device::shared::AnyBits;

use super::reduction::value_of;
use crate::error::{Error, Result};
use crate::launch::grid::Grid;
use crate::launch::temporary::Temporary;
use crate::stream::Stream;
use crate::view::atomic::DeviceAtomicView;
use crate::view::{DeviceView, DeviceViewMut, agree};

/// Writes the elements of `x` to `y`, sorted: tiles first, then ever longer runs, merged. The kernels are as those of
/// [`merge`]; a pass takes runs of its first slice.
#[doc(hidden)]
pub fn merge_sort<T: DeviceCopy + AnyBits>(
    stream: &Stream,
    x: DeviceView<T>,
    mut y: DeviceViewMut<T>,
    sort_tiles: impl FnOnce(Grid<1>, DeviceView<T>, DeviceViewMut<T>) -> Result<()>,
    split: impl Fn(Grid<1>, DeviceView<T>, DeviceView<T>, u64, DeviceViewMut<u64>) -> Result<()>,
    merge_tiles: impl Fn(Grid<1>, DeviceView<T>, u64, DeviceView<u64>, DeviceViewMut<T>) -> Result<()>,
) -> Result<()> {
    agree("merge_sort", x.len(), y.len())?;
    let tiles = x.len().div_ceil(tile::<T>());
    let grid = Grid::blocks(tiles);
    if tiles <= 1 {
        return if tiles == 0 { Ok(()) } else { sort_tiles(grid, x, y) };
    }
    let passes = tiles.next_power_of_two().ilog2();
    let mut other = Temporary::arbitrary(stream, x.len())?;
    let mut splits = Temporary::arbitrary(stream, tiles)?;
    // The last pass ends in `y`.
    let mut in_output = passes.is_multiple_of(2);
    sort_tiles(grid, x, if in_output { y.reborrow() } else { other.view_mut() })?;
    for pass in 0..passes {
        let run = (tile::<T>() as u64) << pass;
        let (from, to) = if in_output { (y.view(), other.view_mut()) } else { (other.view(), y.reborrow()) };
        split(Grid::blocks(tiles.div_ceil(THREADS)), from, from, run, splits.view_mut())?;
        merge_tiles(grid, from, run, splits.view(), to)?;
        in_output = !in_output;
    }
    Ok(())
}

/// Writes the elements of `a` and `b` to `y`. `split` writes for each tile of the merged slices how many elements of `a` are before it.
#[doc(hidden)]
pub fn merge<T: DeviceCopy>(
    stream: &Stream,
    (a, b): (DeviceView<T>, DeviceView<T>),
    y: DeviceViewMut<T>,
    split: impl FnOnce(Grid<1>, DeviceViewMut<u64>) -> Result<()>,
    merge_tiles: impl FnOnce(Grid<1>, DeviceView<u64>, DeviceViewMut<T>) -> Result<()>,
) -> Result<()> {
    agree("merge", a.len() + b.len(), y.len())?;
    let tiles = y.len().div_ceil(tile::<T>());
    if tiles == 0 {
        return Ok(());
    }
    let mut splits = Temporary::arbitrary(stream, tiles)?;
    split(Grid::blocks(tiles.div_ceil(THREADS)), splits.view_mut())?;
    merge_tiles(Grid::blocks(tiles), splits.view(), y)
}

/// Launches `search` with the grid for its values, unless there is nothing to do.
#[doc(hidden)]
pub fn search(values: usize, found: usize, search: impl FnOnce(Grid<1>) -> Result<()>) -> Result<()> {
    if values == 0 && found == 0 { Ok(()) } else { search(Grid::blocks(values.div_ceil(THREADS).max(1))) }
}

/// Writes the elements of a set of `a` and `b` to `y`, as far as there is room, and how many they are to `count`. `ends` writes how many
/// there are up to each element of the merged slices, and `take` finds them.
#[doc(hidden)]
pub fn set<T: DeviceCopy>(
    stream: &Stream,
    (a, b): (usize, usize),
    y: DeviceViewMut<T>,
    count: DeviceViewMut<u64>,
    ends: impl FnOnce(Grid<1>, DeviceViewMut<u64>) -> Result<()>,
    take: impl FnOnce(Grid<1>, DeviceView<u64>, DeviceViewMut<T>, DeviceAtomicView<u64>) -> Result<()>,
) -> Result<()> {
    let count = count.slice(..1)?.into_atomic();
    let mut all = Temporary::arbitrary(stream, a + b)?;
    if a + b > 0 {
        ends(Grid::blocks((a + b).div_ceil(MEMBERS * (THREADS / 32))), all.view_mut())?;
    }
    // One block at least, which writes the count.
    take(Grid::blocks(y.len().div_ceil(THREADS).max(1)), all.view(), y, count)
}

/// The number that `into` writes, after a wait for it, if `room` elements suffice for so many results.
///
/// # Errors
/// `Error::OutOfRange` if they don't.
#[doc(hidden)]
pub fn count_within(
    stream: &Stream,
    room: usize,
    into: impl FnOnce(DeviceViewMut<u64>) -> Result<()>,
) -> Result<usize> {
    let count = value_of(stream, into)? as usize;
    if count > room {
        return Err(Error::OutOfRange { start: 0, end: count, length: room });
    }
    Ok(count)
}
