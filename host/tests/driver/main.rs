//! What the CUDA backend asks of a driver, and what it makes of the answers, with one that is made up (`fake_driver/libcuda.rs`). Each
//! scenario runs in a process of its own, because a process loads one driver. Results on a real GPU are for the conformance suite.
#![cfg(target_os = "linux")]

mod arrays;
mod attributes;
mod backend;
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
