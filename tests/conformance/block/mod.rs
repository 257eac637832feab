//! Cooperation of threads: shared memory, barriers, warps and groups, clusters, blocks in order, and sorts.
//!
//! `X_kernels` has the kernels of `X`. `blocks` is shared memory, barriers and warps; `barrier_functions` barriers in
//! functions; `groups` lanes that join at run time; `clusters` clusters of blocks. `orders` numbers blocks by their
//! start. `sorts` and `merges` sort by key and by comparison, and `stages` fills shared memory in turns.

pub(crate) mod barrier_function_kernels;
pub(crate) mod barrier_functions;
pub(crate) mod block_kernels;
pub(crate) mod blocks;
pub(crate) mod cluster_kernels;
pub(crate) mod clusters;
pub(crate) mod group_kernels;
pub(crate) mod groups;
pub(crate) mod merge_kernels;
pub(crate) mod merges;
pub(crate) mod order_kernels;
pub(crate) mod orders;
pub(crate) mod sort_kernels;
pub(crate) mod sorts;
pub(crate) mod stages;
