//! The CUDA backend's calls of the driver and its handling of the results, with a fake driver (`fake_driver/libcuda.rs`). Each
//! scenario runs in a separate process, because a process loads one driver. Results on a real GPU are for the conformance suite.
#![cfg(target_os = "linux")]

mod arrays;
mod attributes;
mod backend;
mod bursts;
mod calls;
mod externs;
mod failures;
mod foreign;
mod handles;
mod host_memory;
#[path = "../kernels/mod.rs"]
mod kernels;
mod loading;
mod machine_code;
mod memory;
#[path = "../model/mod.rs"]
mod model;
mod reset;
#[path = "../scenario/mod.rs"]
mod scenario;
mod streams;
