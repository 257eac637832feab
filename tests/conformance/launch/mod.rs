//! Launches: configurations, queries and occupancy, order, overlap, several devices and processes, timelines,
//! and random work of many threads.
//!
//! `launching` covers configurations, `queries` properties and occupancy, `ordering` order between streams,
//! `dependents` launches that begin early, and `natives` native bodies. `several_devices` and `ipc` need two devices or
//! processes. `stress` does random work, and `timelines` measures it. `X_kernels` has the kernels of `X`.

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
