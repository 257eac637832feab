//! Kernels as Rust code: what signatures may say, types of the program's own, the language itself, and random
//! inputs.
//!
//! `kernels` has the kernels that other folders use as well.

pub(crate) mod kernels;
pub(crate) mod properties;
pub(crate) mod property_kernels;
pub(crate) mod rust_semantics;
pub(crate) mod rust_semantics_kernels;
pub(crate) mod signatures;
pub(crate) mod type_kernels;
pub(crate) mod types;
