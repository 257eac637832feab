//! Global and constant memory, as kernels see it.
//!
//! Kernels write through the `Disjoint*` types of `disjoint`, which give each thread its own elements. They
//! read slices, `plane`s of rows and `volume`s of layers; `at` indexes them by `u32`. A `tensor_map` copies tiles of a
//! plane, a `tensor_map_mut` stores them, and a `box_map` does so in other ranks. `constant` and `statics` are variables of a module; `cache` has loads and stores
//! with cache hints. `indexing` explains the compile error for outputs indexed by plain numbers.

pub(crate) mod at;
pub(crate) mod box_map;
pub mod cache;
#[doc(hidden)]
pub mod constant;
pub(crate) mod disjoint;
mod indexing;
pub(crate) mod plane;
pub mod statics;
pub(crate) mod tensor_map;
pub(crate) mod tensor_map_mut;
pub(crate) mod volume;
