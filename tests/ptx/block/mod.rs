//! Facts about blocks: shared memory and barriers (`blocks`), `clusters`, blocks in order (`in_order`), and `sorts`.

mod blocks;
mod clusters;
mod in_order;
mod sorts;
