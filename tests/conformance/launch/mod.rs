//! Launches: configurations, queries and occupancy, order, overlap, several devices and processes, timelines,
//! and random work of many threads.

pub(crate) mod dependent_kernels;
pub(crate) mod dependents;
pub(crate) mod ipc;
pub(crate) mod launching;
pub(crate) mod native_kernels;
pub(crate) mod natives;
pub(crate) mod ordering;
pub(crate) mod queries;
pub(crate) mod several_devices;
pub(crate) mod stress;
pub(crate) mod stress_kernels;
pub(crate) mod timelines;
