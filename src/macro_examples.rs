//! The examples in the documentation of the macros, as tests. They launch kernels.

#[doc = include_str!("../macros/src/docs/atomic_form.md")]
mod atomic_form {}
#[doc = include_str!("../macros/src/docs/comparison.md")]
#[cfg(feature = "algorithms")]
mod comparison {}
#[doc = include_str!("../macros/src/docs/constant.md")]
mod constant {}
#[doc = include_str!("../macros/src/docs/device.md")]
mod device {}
#[doc = include_str!("../macros/src/docs/device_copy.md")]
mod device_copy {}
#[doc = include_str!("../macros/src/docs/elementwise.md")]
mod elementwise {}
#[doc = include_str!("../macros/src/docs/kernel.md")]
mod kernel {}
#[doc = include_str!("../macros/src/docs/matmul.md")]
#[cfg(feature = "half")]
mod matmul {}
#[doc = include_str!("../macros/src/docs/module.md")]
mod module {}
#[doc = include_str!("../macros/src/docs/reduction.md")]
mod reduction {}
#[doc = include_str!("../macros/src/docs/scan.md")]
mod scan {}
