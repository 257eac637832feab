//! Messages that the host formats: a GPU thread sends the template of `core::fmt::Arguments` and the bytes of
//! each argument.
//!
//! `core::fmt` calls formatting functions through pointers, which would cost every kernel that can reach them
//! most of its registers. So the build step replaces the address of each formatting function by that of a
//! [`Description`](ferrogrid_abi::message::Description). The layout of `Arguments` is private to rustc; this file reads that of rustc 1.96
//! (`library/core/src/fmt/mod.rs` documents it).
//!
//! `sending` splits the arguments into words.

pub use ferrogrid_abi::message::*;

#[cfg(target_arch = "nvptx64")]
pub(crate) use sending::{Arguments, Length, Sink, each_word, send, send_flat};

#[cfg(target_arch = "nvptx64")]
mod sending;
