//! Graphs of copies, fills, events and host functions.
//!
//! `recording` covers mistakes, `graphs` copies, fills and host functions, and `child_graphs` graphs in graphs.
//! `graph_events`, `graph_memory`, `graph_arrays` and `pinned_graphs` cover nodes for events, allocations, texture
//! arrays and page-locked memory.

pub(super) mod child_graphs;
pub(super) mod graph_arrays;
pub(super) mod graph_events;
pub(super) mod graph_memory;
pub(super) mod graphs;
pub(super) mod pinned_graphs;
pub(super) mod recording;
