//! Graphs of typed launches (`graphs`), and loops in graphs (`loops`, with kernels in `loop_kernels`). Graphs without kernels are
//! in `runtime/graph`.

pub(crate) mod graphs;
pub(crate) mod loop_kernels;
pub(crate) mod loops;
