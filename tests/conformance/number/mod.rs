//! Numbers: mathematics, half precision and random numbers, compared with the host's.

pub(crate) mod half;
pub(crate) mod math;
pub(crate) mod product_kernels;
pub(crate) mod products;
pub(crate) mod random;
pub(crate) mod random_kernels;
