//! Half precision in kernels: `f16` and `bf16` under the names of the crate `half`, their packed pairs, and the
//! functions that `half` lacks. `ptx` has the device's instructions, `exact` replacements for those that an
//! architecture lacks. `number` is one number, `packed` are two, `float` the functions.
//!
//! ```
//! use ferrogrid_device::half::{F16x2, HalfFloat, f16};
//!
//! /// A dot product: eight bytes from each side, four products, one rounding for each.
//! fn dot(a: [F16x2; 2], b: [F16x2; 2]) -> f16 {
//!     a[1].mul_add(b[1], a[0] * b[0]).sum()
//! }
//! let ones = [F16x2::splat(f16::ONE); 2];
//! assert_eq!(dot(ones, ones), f16::from_f32(4.0));
//! assert_eq!(f16::from_f32(1.5).mul_add(f16::from_f32(2.0), f16::ONE), f16::from_f32(4.0));
//! ```
//!
//! # On the host and on the device
//! On the host `f16` and `bf16` are those of the crate `half`: buffers of `half::f16` go to kernels that take
//! `&[f16]`. On the device they are types of the same names, layout and meaning whose operators are the
//! hardware's instructions, where `half` itself computes them bit by bit. So kernels name
//! `ferrogrid::device::half::f16`; a kernel that names `half::f16` of a dependency of yours works and is slow.
//!
//! | | `f16` | `bf16` |
//! |---|---|---|
//! | `+ - *`, `mul_add`, comparisons | one instruction on every GPU | one instruction from `sm_90` on; `fma.rn.bf16` from `sm_80` on (comparisons in `f32`); before that in `f32` |
//! | to and from `f32` | one instruction on every GPU | one instruction from `sm_80` on |
//! | `/`, `%`, functions | in `f32`, rounded | in `f32`, rounded |
//! | packed `+ - *`, `mul_add` | one instruction for both on every GPU | as for one number |
//!
//! Which form is taken depends on the architecture that the code is compiled for, not on the GPU that runs it.
//! Results are the same bits everywhere: `+ - * /`, `%`, `sqrt`, `mul_add` and conversions from `f32` are rounded
//! once, to the nearest, ties to even; subnormal numbers are kept. What is not the same: the bits of a NaN;
//! functions such as `exp`, as far as those of `f32` differ; and `from_f64`, which `half` rounds twice for `f16`
//! and truncates first for `bf16`.

#[cfg(any(not(target_arch = "nvptx64"), not(target_feature = "sm_80"), test))]
mod exact;
mod float;
#[cfg(target_arch = "nvptx64")]
mod number;
mod packed;
#[cfg(target_arch = "nvptx64")]
mod ptx;
#[cfg(test)]
mod tests;

#[cfg(not(target_arch = "nvptx64"))]
pub use ::half::{bf16, f16};
#[cfg(target_arch = "nvptx64")]
pub use number::{bf16, f16};

pub use float::HalfFloat;
pub use packed::{Bf16x2, F16x2};

use crate::element::device_copy::DeviceCopy;
use crate::shared::{AnyBits, SharedElement};

macro_rules! travels {
    ($($ty:ty),*) => { $(
        // SAFETY: transparent over a `u16` or a `u32`.
        unsafe impl DeviceCopy for $ty {
            const LAYOUT: u64 = crate::element::layout::of_type(stringify!($ty), &[]);
        }
        // SAFETY: any bits are a number, or two; nothing in it changes while it is shared.
        unsafe impl AnyBits for $ty {}
        // SAFETY: as above.
        unsafe impl SharedElement for $ty {}
    )* };
}

travels!(f16, bf16, F16x2, Bf16x2);
// Those of a kernel that names the crate `half` itself.
#[cfg(target_arch = "nvptx64")]
travels!(::half::f16, ::half::bf16);
