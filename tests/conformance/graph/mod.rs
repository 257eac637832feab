//! Graphs of typed launches, and loops in graphs; graphs without kernels are in `runtime/graph`.

pub(crate) mod graphs;
pub(crate) mod loop_kernels;
pub(crate) mod loops;
