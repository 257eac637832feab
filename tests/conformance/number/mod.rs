//! Numbers: mathematics, half precision and random numbers, compared with the host's.
//!
//! `math` has functions, `half` 16-bit floats, `random` random numbers, and `products`, `tiles` and
//! `twice` products of matrices.
//! `X_kernels` has the kernels of `X`.

pub(crate) mod half;
pub(crate) mod math;
pub(crate) mod product_kernels;
pub(crate) mod products;
pub(crate) mod random;
pub(crate) mod random_kernels;
pub(crate) mod tile_kernels;
pub(crate) mod tiles;
pub(crate) mod twice;
pub(crate) mod twice_kernels;
