//! Blocks are counted by `u32` or `usize`, and along as many axes as the grid has.

use ferrogrid::prelude::*;

fn main() {
    let n = 1000_u64;
    let _line: Grid<1> = Grid::new(n.div_ceil(256), 256);
    let _plane: Grid<2> = Grid::new([4, 4], 256);
}
