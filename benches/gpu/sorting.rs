//! Block-wide sorts.

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::duel::Arena;

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    /// The keys of each block, eight of each thread, in order: a tile of `y` has them row by row.
    #[kernel(block = [256, 1])]
    pub fn block_sort(
        t: Thread<2>,
        x: &[u32],
        mut y: DisjointTiles<u32, 256, 8>,
        mut scratch: Shared<SortScratch<u32, 256, 8>>,
    ) {
        let first = t.block_idx()[1] as usize * 2048 + t.thread_rank() as usize;
        let keys = core::array::from_fn(|k| x.get(first + 256 * k).copied().unwrap_or(u32::MAX));
        let keys: [u32; 8] = t.block_radix_sort_to_striped(&mut scratch, keys, sort::Ascending);
        let first_row = t.block_idx()[1] as usize * 8;
        y.fill_with(&t, |[row, _]| keys[row - first_row]);
    }
}

/// 2^24 keys, 2048 in each block, against `cub::BlockRadixSort`.
pub fn block_sort(arena: &Arena) -> Outcome<()> {
    let n = 1 << 24;
    let x: Vec<u32> = (0..n).map(|_| fastrand::u32(..)).collect();
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("block_sort")?;
    let blocks = n as u32 / 2048;
    let mut sorted = x;
    sorted.chunks_mut(2048).for_each(<[u32]>::sort_unstable);
    arena.duel(
        "block_sort",
        &vec![0_u32; n],
        |out| {
            let grid = Grid::new([1, blocks], [256, 1]);
            kernels::block_sort(arena.stream, grid, &input, out.view_2d_mut(256, n / 256)?)
        },
        // SAFETY: `block_sort(int n, const unsigned* x, unsigned* y)`; both have `n` elements.
        |out| unsafe { cpp.launch(arena.stream, Grid::new(blocks, 256), (n as i32, &input, out)) },
        |found| match (0..n).find(|&i| found[i] != sorted[i]) {
            None => Ok(()),
            Some(i) => Err(format!("element {i} is {}, not {}", found[i], sorted[i]).into()),
        },
    )
}
