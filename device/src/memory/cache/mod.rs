//! Loads, stores and prefetches with cache hints: an element is read once, should stay cached, or is needed
//! soon. They change no value, only where copies of it are kept.
//!
//! An element is named by a reference, so bounds are checked as usual: `cache::ldcs(&x[i])`,
//! `x.get(i).map(cache::ldcs)`, `cache::stcs(y, value)` with the `y` that
//! [`DisjointSlice::get_mut`](crate::DisjointSlice::get_mut) returns. Elements have 1, 2, 4, 8 or 16 bytes
//! and are aligned to their size: numbers, and [`Aligned16`](crate::Aligned16) of four `f32`, which moves as
//! `.v4`. Any other type is a compile error.
//!
//! The functions have CUDA C++'s names without the underscores; priorities of the first level have PTX's
//! names. Every load of a kernel's `&[T]` already is CUDA C++'s `__ldg` (`ld.global.nc`). There is no
//! `__ldcv`, which reloads what others may have changed: such memory is a
//! [`DeviceAtomic`](crate::DeviceAtomic), whose `load` does that.
//!
//! On elements outside global memory (local arrays, shared memory) these are plain loads and stores, as they
//! all are on the CPU device.
//!
//! ```
//! use ferrogrid_device::prelude::*;
//!
//! /// Each element is read once and written once: neither is worth a place in the caches that `table` needs.
//! fn look_up(t: Thread<1>, x: &[u8], table: &[f32], mut y: DisjointSlice<f32>) {
//!     let i = t.index();
//!     cache::prefetch_l2(x, i.get() + 1024);
//!     if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get()).map(cache::ldcs)) {
//!         cache::stcs(y, table[usize::from(x)]);
//!     }
//! }
//! # let (x, table, mut y) = ([2_u8, 0, 1], [5.0_f32, 6.0, 7.0], [0.0_f32; 3]);
//! # let pointer = y.as_mut_ptr();
//! # let block = ferrogrid_device::native::Block::new([0; 3], [4, 1, 1], [1; 3]);
//! # // SAFETY: this block is the whole launch, and the only one to use the slice of three elements.
//! # unsafe {
//! #     block.for_each_thread::<1>(|t| look_up(t, &x, &table, DisjointSlice::from_raw_parts(pointer, [3])));
//! # }
//! # assert_eq!(y, [7.0, 5.0, 6.0]);
//! ```
//!
//! ```compile_fail
//! let twelve_bytes = [1.0_f32, 2.0, 3.0];
//! ferrogrid_device::cache::ldcs(&twelve_bytes);
//! ```

// `policy` has the eviction policies of L2, and `ptx` the instructions.

mod policy;
#[cfg(target_arch = "nvptx64")]
mod ptx;

pub use policy::{L2Policy, PrimaryPriority, SecondaryPriority, load_cache_hint, store_cache_hint};

use crate::element::device_copy::DeviceCopy;

/// The size of an element in bytes.
const fn width<T>() -> usize {
    let size = size_of::<T>();
    assert!(
        matches!(size, 1 | 2 | 4 | 8 | 16) && align_of::<T>() == size,
        "cache operators move elements of 1, 2, 4, 8 or 16 bytes, aligned to as many: numbers, `Aligned16<[f32; 4]>`"
    );
    size
}

macro_rules! loads {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[doc = concat!(
            "\n```\nuse ferrogrid_device::{Aligned16, cache};\n\
             let x = [Aligned16::new([1.0_f32, 2.0, 3.0, 4.0]); 3];\n\
             assert_eq!(cache::", stringify!($name), "(&x[1])[3], 4.0); // 16 bytes at once\n\
             assert_eq!(x.get(3).map(cache::", stringify!($name), "), None);\n```"
        )]
        #[inline(always)]
        pub fn $name<T: DeviceCopy>(place: &T) -> T {
            const { width::<T>() };
            #[cfg(target_arch = "nvptx64")]
            let value = ptx::$name(place);
            #[cfg(not(target_arch = "nvptx64"))]
            let value = *place;
            value
        }
    )* };
}

macro_rules! stores {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[doc = concat!(
            "\n```\nuse ferrogrid_device::cache;\n\
             let mut y = [0_u32; 3];\n\
             cache::", stringify!($name), "(&mut y[1], 7);\n\
             assert_eq!(y, [0, 7, 0]);\n```"
        )]
        #[inline(always)]
        pub fn $name<T: DeviceCopy>(place: &mut T, value: T) {
            const { width::<T>() };
            #[cfg(target_arch = "nvptx64")]
            ptx::$name(place, value);
            #[cfg(not(target_arch = "nvptx64"))]
            {
                *place = value;
            }
        }
    )* };
}

loads! {
    /// Loads, cached at all levels, L1 included (CUDA's `__ldca()`, CUB's `LOAD_CA`, PTX `ld.global.ca`).
    ldca;
    /// Loads, cached in L2 and bypassing L1 (CUDA's `__ldcg()`, CUB's `LOAD_CG`, PTX `ld.global.cg`): for
    /// data that another multiprocessor reads next.
    ldcg;
    /// Loads data that is likely to be read once; its cache line is evicted first (CUDA's `__ldcs()`, CUB's
    /// `LOAD_CS`, PTX `ld.global.cs`, "streaming").
    ldcs;
    /// Loads data that is read for the last time (CUDA's `__ldlu()`, PTX `ld.global.lu`). In global memory
    /// this is a streaming load, as [`ldcs`].
    ldlu;
    /// Loads without allocating a line in L1 (PTX `ld.global.L1::no_allocate`). Code for architectures before
    /// `sm_87`, whose PTX lacks it, uses [`ldcg`].
    load_no_allocate;
    /// Loads into lines of L1 that are evicted first (PTX `ld.global.L1::evict_first`). Code for
    /// architectures before `sm_87`, whose PTX lacks it, uses [`ldcs`].
    load_evict_first;
    /// Loads into lines of L1 that are evicted last (PTX `ld.global.L1::evict_last`): for a small table
    /// beside a stream. Code for architectures before `sm_87`, whose PTX lacks it, uses a plain load.
    load_evict_last;
}

stores! {
    /// Stores, written back from all cache levels (CUDA's `__stwb()`, CUB's `STORE_WB`, PTX `st.global.wb`,
    /// "write back").
    stwb;
    /// Stores into L2, bypassing L1 (CUDA's `__stcg()`, CUB's `STORE_CG`, PTX `st.global.cg`).
    stcg;
    /// Stores data that is not read soon; its cache line is evicted first (CUDA's `__stcs()`, CUB's
    /// `STORE_CS`, PTX `st.global.cs`, "streaming").
    stcs;
    /// Stores through L2 into system memory (CUDA's `__stwt()`, CUB's `STORE_WT`, PTX `st.global.wt`, "write through").
    stwt;
    /// Stores without allocating a line in L1 (PTX `st.global.L1::no_allocate`). Code for architectures
    /// before `sm_87`, whose PTX lacks it, uses [`stcg`].
    store_no_allocate;
    /// Stores into lines of L1 that are evicted first (PTX `st.global.L1::evict_first`). Code for
    /// architectures before `sm_87`, whose PTX lacks it, uses [`stcs`].
    store_evict_first;
    /// Stores into lines of L1 that are evicted last (PTX `st.global.L1::evict_last`). Code for architectures
    /// before `sm_87`, whose PTX lacks it, uses a plain store.
    store_evict_last;
}

macro_rules! prefetches {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// Does nothing beyond the end of `x`, so a loop may prefetch some rounds ahead. Also does nothing on
        /// the CPU device, and for elements outside global memory.
        #[doc = concat!(
            "\n```\nuse ferrogrid_device::cache;\n\n\
             /// A sum whose loads do not wait for memory: each element is prefetched 64 rounds before it is read.\n\
             fn sum(x: &[f32]) -> f32 {\n    \
                 let read = |i| {\n        \
                     cache::", stringify!($name), "(x, i + 64);\n        \
                     x[i]\n    \
                 };\n    \
                 (0..x.len()).map(read).sum()\n\
             }\nassert_eq!(sum(&[0.5; 100]), 50.0);\n```"
        )]
        #[inline(always)]
        pub fn $name<T>(x: &[T], index: usize) {
            #[cfg(target_arch = "nvptx64")]
            if let Some(place) = x.get(index) {
                ptx::$name(place);
            }
            #[cfg(not(target_arch = "nvptx64"))]
            let _ = (x, index);
        }
    )* };
}

prefetches! {
    /// Prefetches the cache line in which element `index` of `x` begins into L1 and L2, without waiting for
    /// it (PTX `prefetch.global.L1`).
    prefetch_l1;
    /// Prefetches the cache line in which element `index` of `x` begins into L2, without waiting for it (PTX
    /// `prefetch.global.L2`).
    prefetch_l2;
}
