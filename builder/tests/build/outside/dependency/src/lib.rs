//! A `no_std` crate that both kernels and hosts use.
#![no_std]

/// The greatest common divisor.
pub fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
