//! Names, numbers and layouts that the build step, device code and the host runtime share.
//!
//! `failure` is the record of a panic, `output` the ring buffer of printed text, and `message` their common content: a
//! template and the bytes of its arguments. `layout` is the hash by which both compilations compare the layouts of types.

#![no_std]
#![deny(missing_docs)]

pub mod failure;
pub mod layout;
pub mod message;
pub mod output;
