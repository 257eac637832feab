//! Failures: panics and printed text, faults that only the CPU device detects, and which call reports a
//! failure.
//!
//! `X_kernels` has the kernels of `X`: `failures` (panics and printed text), `faults` (found by the CPU device only)
//! and `outcomes` (which call reports what).

pub(crate) mod failure_kernels;
pub(crate) mod failures;
pub(crate) mod fault_kernels;
pub(crate) mod faults;
pub(crate) mod outcome_kernels;
pub(crate) mod outcomes;
