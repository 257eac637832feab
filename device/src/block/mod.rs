//! Cooperation within a block, a cluster or the whole grid.
//!
//! `barrier` has the barriers of block and grid, `cluster` the barrier and the shared memory of a cluster,
//! and `fence` the memory fences. `exchange` rearranges a block's items and `sort` sorts them. `order`
//! numbers blocks in the order in which they start, for algorithms such as decoupled look-back. `fold` has what
//! reductions of whole slices share, `scan` what scans share, and
//! `ordered` what sorts, merges and sets by comparison share.

pub(crate) mod barrier;
pub(crate) mod cluster;
pub(crate) mod exchange;
pub mod fence;
pub mod fold;
pub mod order;
pub mod ordered;
pub mod scan;
pub mod sort;
