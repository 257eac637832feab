//! Failures: panics and printed text, faults that only the CPU device detects, and which call reports a
//! failure.

pub(crate) mod failure_kernels;
pub(crate) mod failures;
pub(crate) mod fault_kernels;
pub(crate) mod faults;
pub(crate) mod outcome_kernels;
pub(crate) mod outcomes;
