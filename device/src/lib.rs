//! The API of kernels: thread indices, output memory, shared memory, warps, atomics and mathematics.
//!
//! The crate is compiled twice. For `nvptx64` most items are a few instructions each; natively the same API
//! runs on the CPU device. It allocates nothing and does not depend on the host runtime.
//!
//! | folder | holds |
//! |---|---|
//! | `thread/` | a thread's position, indices, strided loops, values uniform in a block |
//! | `element/` | types that host and device exchange |
//! | `memory/` | global and constant memory: outputs, planes, statics, cache hints |
//! | `shared/` | shared memory and its phases |
//! | `block/`, `warp/` | cooperation of threads: barriers, clusters, fences, sorts, shuffles, reductions |
//! | `atomic/` | atomic numbers |
//! | `matrix/` | products of matrices by tensor cores |
//! | `number/` | mathematics, half precision, narrow floats, integer instructions, random numbers |
//! | `texture/` | textures and surfaces |
//! | `feedback/` | panics and printed text |
//! | `native/` | blocks that run on a CPU thread |
//! | `compiler/` | marks for the build step, and `memcmp` |
//!
//! Code that differs between the two compilations is in neighbouring files `native.rs` and `ptx.rs`.
//!
//! Programs reach the crate as `ferrogrid::device`; a module of kernels imports the [`prelude`]:
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
//! | `T*` that a kernel writes | [`DisjointSlice`], [`DisjointChunks`], [`DisjointTiles`], [`DisjointRows`], [`DisjointWarps`]: each thread writes its own elements |
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
//! | `nvcuda::wmma`, `mma.sync`, `ldmatrix` | the module [`matrix`] |
//! | `CUtensorMap`, `cp.async.bulk.tensor`, `wgmma` | [`TensorMap`], [`TensorMapMut`], [`BoxMap`], [`Thread::multiply_tiles`] |
//! | `atomicAdd()`, `cuda::atomic_ref` | [`DeviceAtomic`] |
//! | `sinf()`, `__sinf()` | [`math::Float`]: std's names; [`math::FastMath`] |
//! | `__half`, `__nv_bfloat16`, `__half2` | the module `half` |
//! | `__nv_fp8_e4m3`, `__nv_fp8_e5m2`, `wmma::precision::tf32` | the module [`narrow`] |
//! | `__popc()`, `__clz()` | core's `count_ones()`, `leading_zeros()`; [`integer`] has what core lacks |
//! | `curand` (Philox) | [`random::Philox4x32`] |
//! | `printf()`, `assert()` | [`println!`], core's `assert!` |

#![deny(missing_docs)]
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_unadjusted, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx)
)]
#![cfg_attr(all(target_arch = "nvptx64", feature = "half"), feature(f16))]

pub mod atomic;
mod block;
#[cfg(target_arch = "nvptx64")]
mod compiler;
mod element;
mod feedback;
pub mod matrix;
mod memory;
#[cfg(not(target_arch = "nvptx64"))]
pub mod native;
mod number;
pub mod shared;
mod texture;
mod thread;
pub mod warp;

pub use atomic::DeviceAtomic;
#[doc(hidden)]
pub use block::cluster::leave_cluster;
pub use block::cluster::{ClusterElement, ClusterPublished, ClusterPublishedSlice};
pub use block::exchange::ExchangeScratch;
pub use block::order::{BlockOrder, EachThread, EarlierBlocks, EarlierWarps, Seen};
pub use block::sort::{MergeSortScratch, SortScratch};
pub use block::{fence, order, sort};
#[doc(hidden)]
pub use block::{fold, ordered, scan};
pub use bytemuck;
pub use element::aligned::Aligned16;
pub use element::device_copy::{DeviceCopy, SliceElement, assert_device_copy, assert_slice_element};
#[doc(hidden)]
pub use element::group;
pub use feedback::output;
#[doc(hidden)]
pub use feedback::{failure, message};
pub use ferrogrid_macros::{AtomicForm, DeviceCopy, SharedElement};
pub use memory::at::At;
pub use memory::box_map::{BoxMap, BoxMapMut};
#[doc(hidden)]
pub use memory::constant;
pub use memory::constant::Constant;
pub use memory::disjoint::{
    ChunkIter, DisjointChunks, DisjointRows, DisjointSlice, DisjointTiles, DisjointWarps, RowIter,
    ScatterSlice, TileIter,
};
pub use memory::plane::Plane;
pub use memory::tensor_map::TensorMap;
#[doc(hidden)]
pub use memory::tensor_map::{Encoded, MapForm};
pub use memory::tensor_map_mut::{MapNumber, TensorMapMut};
pub use memory::volume::Volume;
pub use memory::{cache, statics};
#[cfg(feature = "half")]
pub use number::half;
pub use number::{integer, math, narrow, random};
#[doc(hidden)]
pub use shared::tiles::array::AXES;
pub use shared::{ClaimScratch, Padded, Scratch, Shared, SharedElement, SharedSlice, Stages};
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use texture::Reading;
pub use texture::surface::Surface;
pub use texture::{AddressMode, FilterMode, ReadAs, Texel, Texture, TextureElement, surface};
#[doc(hidden)]
pub use texture::{Format, assert_texel, assert_texture_element};
pub use thread::Thread;
#[doc(hidden)]
pub use thread::block as __block;
pub use thread::index::Index;
pub use thread::stride::{BlockStride, GridStride};
pub use warp::{Tile, Warp};

/// Items that the derives name.
#[doc(hidden)]
pub mod __derive {
    pub use bytemuck::{NoUninit, Pod, Zeroable};

    pub use crate::atomic::{AtomicField, AtomicForm};
    pub use crate::block::cluster::ClusterElement;
    pub use crate::element::device_copy::{DeviceCopy, SliceElement};
    pub use crate::element::layout::{NoPadding, Padding, Variants, WithZero, of_atomic, of_type};
    pub use crate::shared::{AnyBits, SharedElement};
    pub use crate::warp::Exchange;
    pub use crate::warp::packed::Packed;
}

/// The prelude of kernel modules: `use ferrogrid::device::prelude::*`.
pub mod prelude {
    pub use crate::atomic::{AtomicValue, Ordering};
    pub use crate::integer::MulHi;
    pub use crate::math::{FastMath, Float};
    pub use crate::warp::Exchange;
    pub use crate::{
        Aligned16, At, AtomicForm, BlockOrder, BoxMap, BoxMapMut, ClaimScratch, Constant, DeviceAtomic,
        DeviceCopy, DisjointChunks, DisjointRows, DisjointSlice, DisjointTiles, DisjointWarps, EachThread,
        ExchangeScratch, Index, MergeSortScratch, Padded, Plane, ScatterSlice, Scratch, Seen, Shared,
        SharedElement, SharedSlice, SortScratch, Stages, Surface, TensorMap, TensorMapMut, Texture, Thread,
        Tile, Volume, Warp, atomic, cache, fence, sort,
    };
    pub use ferrogrid_macros::{comparison, constant, device, elementwise, kernel, matmul, reduction, scan};
}
