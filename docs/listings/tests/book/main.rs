//! The listings of the book: one file for each chapter that has kernels, with tests that are what the chapter
//! shows. `tests/chapters.rs` demands that each file is listed here. It must not test what the book does not show:
//! the conformance suite does that.

mod build_options;
mod constant_memory;
mod cpu_device;
mod errors;
mod foreign_kernels;
mod graphs;
mod memory_and_streams;
mod performance;
mod profiling;
mod shared_memory;
mod signature;
mod textures;
