//! What kernels may use: who a thread is, what it may write, and which types may travel to a device.
//! On `nvptx64` these are a few instructions each; elsewhere the same API runs natively, for the CPU
//! device (only mathematics takes std there). This crate allocates nothing and must not know the host
//! runtime.
//!
//! ```
//! use ferrogrid_device::prelude::*;
//!
//! // The body of an element-wise kernel: ordinary Rust.
//! fn scale(t: Thread<1>, factor: f32, mut y: DisjointSlice<f32>) {
//!     if let Some(y) = y.get_mut(t.index()) {
//!         *y *= factor;
//!     }
//! }
//!
//! // Run here for one block of four threads, as the CPU device does.
//! let mut data = [1.0_f32, 2.0, 3.0];
//! let block = ferrogrid_device::native::Block::new([0; 3], [4, 1, 1], [1; 3]);
//! let pointer = data.as_mut_ptr();
//! // SAFETY: this block is the whole launch, and the only one to use the slice; `data` has three
//! // elements.
//! unsafe {
//!     block.for_each_thread::<1>(|t| scale(t, 10.0, DisjointSlice::from_raw_parts(pointer, [3])));
//! }
//! assert_eq!(data, [10.0, 20.0, 30.0]);
//! ```

#![deny(missing_docs)]
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx, link_llvm_intrinsics, asm_experimental_arch))]
#![cfg_attr(all(target_arch = "nvptx64", feature = "half"), feature(f16))]

mod aligned;
pub mod atomic;
mod barrier;
pub mod cache;
mod cluster;
#[doc(hidden)]
pub mod constant;
mod device_copy;
mod disjoint;
#[doc(hidden)]
pub mod failure;
#[cfg(feature = "half")]
pub mod half;
mod index;
mod indexing;
pub mod integer;
pub mod math;
#[cfg(target_arch = "nvptx64")]
mod memcmp;
#[doc(hidden)]
pub mod message;
#[cfg(not(target_arch = "nvptx64"))]
pub mod native;
pub mod output;
#[cfg(target_arch = "nvptx64")]
mod panic;
mod plane;
pub mod random;
pub mod shared;
mod stride;
mod thread;
pub mod uniform;
pub mod warp;

pub use aligned::Aligned16;
pub use atomic::DeviceAtomic;
pub use barrier::fence;
#[doc(hidden)]
pub use cluster::leave_cluster;
pub use cluster::{
    ClusterElement, ClusterPublished, ClusterPublishedSlice, PublishToCluster, ReclaimFromCluster,
};
pub use constant::Constant;
pub use device_copy::{DeviceCopy, SliceElement, assert_device_copy, assert_slice_element};
pub use disjoint::{DisjointRows, DisjointSlice, DisjointTiles, RowIter, TileIter};
pub use ferrogrid_macros::DeviceCopy;
pub use index::Index;
pub use plane::Plane;
pub use shared::{Padded, Scratch, Shared, SharedElement, SharedSlice};
pub use stride::{BlockStride, GridStride};
pub use thread::Thread;
pub use warp::{Tile, Warp};

/// What a kernel module imports: `use ferrogrid::device::prelude::*`.
pub mod prelude {
    pub use crate::integer::MulHi;
    pub use crate::math::{FastMath, Float};
    pub use crate::{
        Aligned16, Constant, DeviceAtomic, DeviceCopy, DisjointRows, DisjointSlice, DisjointTiles, Index,
        Padded, Plane, Scratch, Shared, SharedElement, SharedSlice, Thread, Tile, Warp, atomic, cache, fence,
    };
    pub use ferrogrid_macros::{constant, kernel};
}
