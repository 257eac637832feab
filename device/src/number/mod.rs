//! Numbers in kernels: `math` for `f32` and `f64`, `half` for 16-bit floating point, `narrow` for the other
//! numbers of tensor cores, `integer` for integer instructions that core lacks, and `random` for random numbers.

#[cfg(feature = "half")]
pub mod half;
pub mod integer;
pub mod math;
pub mod narrow;
pub mod random;
