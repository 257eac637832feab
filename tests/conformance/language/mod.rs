//! Kernels as Rust code: signatures, the program's own types, the language itself, and random inputs.
//!
//! `signatures` covers kinds of parameters, `types` types of the program, `rust_semantics` the language, and `properties` random
//! inputs. Their kernels are in the file of each with `_kernels`; `kernels` has those that other folders use, too.

pub(crate) mod kernels;
pub(crate) mod properties;
pub(crate) mod property_kernels;
pub(crate) mod rust_semantics;
pub(crate) mod rust_semantics_kernels;
pub(crate) mod signatures;
pub(crate) mod type_kernels;
pub(crate) mod types;
