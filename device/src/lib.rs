//! What kernels may use: who a thread is, what it may write, and which types may travel to a device.
//! On `nvptx64` these are a few instructions each; elsewhere the same API runs natively, for the CPU
//! device (only mathematics takes std there). This crate allocates nothing and must not know the host
//! runtime.
//!
//! Programs reach it as `ferrogrid::device`; a module of kernels imports the [`prelude`]:
//!
//! ```
//! use ferrogrid::prelude::*;
//!
//! #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
//! mod kernels {
//!     use ferrogrid::device::prelude::*;
//!
//!     /// y <- factor * y, one element per thread.
//!     #[kernel]
//!     pub fn scale(t: Thread<1>, factor: f32, mut y: DisjointSlice<f32>) {
//!         if let Some(y) = y.get_mut(t.index()) {
//!             *y *= factor;
//!         }
//!     }
//! }
//!
//! fn main() -> ferrogrid::Result<()> {
//!     let stream = Device::cpu().new_stream()?;
//!     let mut y = stream.upload(&[1.0_f32, 2.0, 3.0])?;
//!     kernels::scale(&stream, Grid::cover(y.len()), 10.0, &mut y)?;
//!     assert_eq!(stream.download(&y)?, [10.0, 20.0, 30.0]);
//!     Ok(())
//! }
//! ```
//!
//! | CUDA C++ | here |
//! |---|---|
//! | `threadIdx`, `blockIdx`, `blockDim`, `gridDim` | [`Thread::thread_idx`] and so on; [`Thread::index`] is the place in the grid |
//! | `T*` that a kernel writes | [`DisjointSlice`], [`DisjointChunks`], [`DisjointTiles`], [`DisjointRows`], [`DisjointWarps`]: to each thread its own |
//! | `T*` that a kernel writes anywhere | [`ScatterSlice`]: each element once |
//! | `const T*` | `&[T]`; rows of equal length are a [`Plane`], layers of rows a [`Volume`], elements of 16 bytes (`float4`) an [`Aligned16`] |
//! | `cudaTextureObject_t`, `tex2D()`; `cudaSurfaceObject_t`, `surf2Dwrite()` | [`Texture`]; [`Surface`] |
//! | `__shared__`, `extern __shared__` | [`Shared`], [`SharedSlice`] |
//! | `__constant__` | [`Constant`] |
//! | `__device__` variables | `#[device]` before a `static` that is a [`statics::StaticValue`] |
//! | `__syncthreads()`, `__syncthreads_count()` | [`Thread::publish`] and [`Thread::reclaim`]; [`Thread::sync_threads`], [`Thread::sync_threads_count`] |
//! | `__threadfence()` | [`fence`] |
//! | `cooperative_groups::this_grid().sync()` | [`Thread::sync_grid`] |
//! | decoupled look-back, tickets by `atomicAdd()` | [`BlockOrder`] |
//! | `__shfl_sync()`, `__ballot_sync()`, `tiled_partition` | [`Thread::warp`], [`Tile`] |
//! | `cub::BlockReduce`, `cub::BlockScan` | [`Thread::block_reduce`], [`Thread::block_inclusive_scan`] |
//! | `coalesced_threads()`, `labeled_partition` | [`Tile::coalesced`], [`Tile::labeled_partition`] |
//! | `cub::BlockRadixSort`, `cub::BlockMergeSort` | [`Thread::block_radix_sort`], [`Thread::block_merge_sort`] |
//! | clusters, distributed shared memory | [`Thread::publish_cluster`] |
//! | `atomicAdd()`, `cuda::atomic_ref` | [`DeviceAtomic`] |
//! | `sinf()`, `__sinf()` | [`math::Float`]: std's names; [`math::FastMath`] |
//! | `__half`, `__nv_bfloat16`, `__half2` | the module `half` |
//! | `__popc()`, `__clz()` | core's `count_ones()`, `leading_zeros()`; [`integer`] has what core lacks |
//! | `curand` (Philox) | [`random::Philox4x32`] |
//! | `printf()`, `assert()` | [`println!`], core's `assert!` |

#![deny(missing_docs)]
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx, link_llvm_intrinsics, asm_experimental_arch))]
#![cfg_attr(all(target_arch = "nvptx64", feature = "half"), feature(f16))]

mod aligned;
mod at;
pub mod atomic;
mod barrier;
pub mod cache;
mod cluster;
#[doc(hidden)]
pub mod constant;
mod dependents;
mod device_copy;
mod disjoint;
mod exchange;
#[doc(hidden)]
pub mod failure;
#[cfg(feature = "half")]
pub mod half;
mod index;
mod indexing;
pub mod integer;
mod layout;
#[cfg(target_arch = "nvptx64")]
mod mark;
pub mod math;
#[cfg(target_arch = "nvptx64")]
mod memcmp;
#[doc(hidden)]
pub mod message;
#[cfg(not(target_arch = "nvptx64"))]
pub mod native;
#[doc(hidden)]
mod option;
pub mod order;
pub mod output;
#[cfg(target_arch = "nvptx64")]
mod panic;
mod plane;
pub mod random;
pub mod shared;
pub mod sort;
pub mod statics;
mod stride;
pub mod surface;
mod texture;
mod thread;
mod uniform;
mod volume;
pub mod warp;

pub use aligned::Aligned16;
pub use at::At;
pub use atomic::DeviceAtomic;
pub use barrier::fence;
pub use bytemuck;
#[doc(hidden)]
pub use cluster::leave_cluster;
pub use cluster::{ClusterElement, ClusterPublished, ClusterPublishedSlice};
pub use constant::Constant;
pub use device_copy::{DeviceCopy, SliceElement, assert_device_copy, assert_slice_element};
pub use disjoint::{
    ChunkIter, DisjointChunks, DisjointRows, DisjointSlice, DisjointTiles, DisjointWarps, RowIter,
    ScatterSlice, TileIter,
};
pub use exchange::ExchangeScratch;
pub use ferrogrid_macros::{AtomicForm, DeviceCopy, SharedElement};
pub use index::Index;
pub use order::{BlockOrder, EarlierBlocks, Seen};
pub use plane::Plane;
pub use shared::{ClaimScratch, Double, Padded, Scratch, Shared, SharedElement, SharedSlice};
pub use sort::{MergeSortScratch, SortScratch};
pub use stride::{BlockStride, GridStride};
pub use surface::Surface;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use texture::Reading;
pub use texture::{AddressMode, FilterMode, ReadAs, Texel, Texture, TextureElement};
#[doc(hidden)]
pub use texture::{Format, assert_texel, assert_texture_element};
pub use thread::Thread;
#[doc(hidden)]
pub use thread::block as __block;
pub use volume::Volume;
pub use warp::{Tile, Warp};

/// What the derives name.
#[doc(hidden)]
pub mod __derive {
    pub use bytemuck::{NoUninit, Pod, Zeroable};

    pub use crate::atomic::{AtomicField, AtomicForm};
    pub use crate::cluster::ClusterElement;
    pub use crate::device_copy::{DeviceCopy, SliceElement};
    pub use crate::layout::{NoPadding, Padding, Variants, WithZero, of_atomic, of_type};
    pub use crate::shared::{AnyBits, SharedElement};
    pub use crate::warp::Exchange;
    pub use crate::warp::packed::Packed;
}

/// What a kernel module imports: `use ferrogrid::device::prelude::*`.
pub mod prelude {
    pub use crate::atomic::{AtomicValue, Ordering};
    pub use crate::integer::MulHi;
    pub use crate::math::{FastMath, Float};
    pub use crate::warp::Exchange;
    pub use crate::{
        Aligned16, At, AtomicForm, BlockOrder, ClaimScratch, Constant, DeviceAtomic, DeviceCopy,
        DisjointChunks, DisjointRows, DisjointSlice, DisjointTiles, DisjointWarps, Double, ExchangeScratch,
        Index, MergeSortScratch, Padded, Plane, ScatterSlice, Scratch, Seen, Shared, SharedElement,
        SharedSlice, SortScratch, Surface, Texture, Thread, Tile, Volume, Warp, atomic, cache, fence, sort,
    };
    pub use ferrogrid_macros::{constant, device, kernel};
}
