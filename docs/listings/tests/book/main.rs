//! The listings of the book: one file for each chapter with kernels, with tests made of the chapter's
//! listings. `tests/chapters.rs` requires each file to be listed here. The conformance suite tests everything
//! that the book does not show.

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
mod tensor_cores;
mod textures;
