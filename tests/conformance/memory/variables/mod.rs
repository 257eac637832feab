//! Variables of a module in the memory of devices: `constants`, and `statics` of atomics. `X_kernels` has the
//! kernels of `X`.

pub(crate) mod constant_kernels;
pub(crate) mod constants;
pub(crate) mod static_kernels;
pub(crate) mod statics;
