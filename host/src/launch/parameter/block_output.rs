//! Outputs that belong to blocks: the check that each block of a launch has a row or a tile, because the results of
//! others would be lost.

use crate::error::{Axis, Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::launch::extent::Extents;
use crate::launch::grid::Grid;
use crate::stream::Stream;

/// Checks that `rows`, the argument of that name, has one row for each block.
///
/// # Errors
/// [`LaunchError::MoreBlocksThanRows`]; and for a grid that cannot be launched.
#[doc(hidden)]
pub fn rows_for_blocks<const R: usize>(
    kernel: &'static Kernel,
    stream: &Stream,
    grid: Grid<R>,
    argument: &'static str,
    rows: &impl Extents,
) -> Result<()> {
    let Some(config) = grid.resolve(kernel, stream.device().limits())? else { return Ok(()) };
    let (kernel, rows) = (kernel.name(), rows.extents()[1]);
    if has_for_each([config.grid[0], config.cluster[0]], rows) {
        return Ok(());
    }
    Err(Error::Launch(LaunchError::MoreBlocksThanRows { kernel, argument, blocks: config.grid[0], rows }))
}

/// Checks that `output`, the argument of that name, has a tile of extents `tile` for each block: of a plane, or a chunk of a slice.
///
/// # Errors
/// [`LaunchError::MoreBlocksThanTiles`]; and for a grid that cannot be launched.
#[doc(hidden)]
pub fn tiles_for_blocks<const R: usize, const AXES: usize>(
    kernel: &'static Kernel,
    stream: &Stream,
    grid: Grid<R>,
    argument: &'static str,
    output: &impl Extents,
    tile: [usize; AXES],
) -> Result<()> {
    let Some(config) = grid.resolve(kernel, stream.device().limits())? else { return Ok(()) };
    for (place, axis) in Axis::ALL.into_iter().enumerate().take(AXES) {
        let (blocks, tiles) = (config.grid[place], output.extents()[place].div_ceil(tile[place]));
        if !has_for_each([blocks, config.cluster[place]], tiles) {
            let kernel = kernel.name();
            return Err(Error::Launch(LaunchError::MoreBlocksThanTiles {
                kernel,
                argument,
                axis,
                blocks,
                tiles,
            }));
        }
    }
    Ok(())
}

/// Whether there are as many `parts` as blocks along an axis, or would be but for the last cluster, which is whole.
fn has_for_each([blocks, cluster]: [u32; 2], parts: usize) -> bool {
    blocks.div_ceil(cluster) as usize <= parts.div_ceil(cluster as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(blocks: u32, cluster: u32, parts: usize) -> bool {
        has_for_each([blocks, cluster], parts)
    }

    #[test]
    fn each_block_needs_a_part_unless_it_completes_a_cluster() {
        assert!(fits(4, 1, 4) && fits(4, 1, 5) && fits(1, 1, usize::MAX));
        assert!(!fits(5, 1, 4) && !fits(1, 1, 0));
        assert!(fits(8, 4, 5) && fits(8, 4, 8));
        assert!(!fits(8, 4, 4) && !fits(4, 4, 0));
    }
}
