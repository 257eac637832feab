//! Graphs of copies, fills, events and host functions.

pub(super) mod child_graphs;
pub(super) mod graph_arrays;
pub(super) mod graph_events;
pub(super) mod graph_memory;
pub(super) mod graphs;
pub(super) mod pinned_graphs;
pub(super) mod recording;
