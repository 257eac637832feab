//! Names, numbers and layouts on which the build step, device code and the host runtime agree. Each is written here once.
//!
//! `failure` is the record of a panic, `output` the ring of printed text, `message` what both carry: a template and the
//! bytes of its arguments.

#![no_std]
#![deny(missing_docs)]

pub mod failure;
pub mod message;
pub mod output;
