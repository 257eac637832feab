//! Loads, stores and prefetches that tell the caches what to expect of an element: that it is read once, that it
//! shall stay, that it comes soon. They change no value, only where a copy of it is kept. It must not know where
//! elements lie, nor how an instruction is written.
//!
//! An element is named by a reference, so places are found, and bounds are checked, as everywhere:
//! `cache::ldcs(&x[i])`, `x.get(i).map(cache::ldcs)`, `cache::stcs(y, value)` with the `y` that
//! [`DisjointSlice::get_mut`](crate::DisjointSlice::get_mut) gives. Elements have 1, 2, 4, 8 or 16 bytes, aligned to as
//! many: numbers, and [`Aligned16`](crate::Aligned16) of four `f32`, which moves as `.v4`. Any other is a compile error.
//!
//! The functions have the names of CUDA C++'s, without the underscores; the priorities in the first level have PTX's.
//! CUDA C++'s `__ldg` is every load of a kernel's `&[T]` (`ld.global.nc`), without a word. `__ldcv`, which fetches again
//! what others may have changed, has no place here: what others may change is a
//! [`DeviceAtomic`](crate::DeviceAtomic), whose `load` does that.
//!
//! Of elements that are not in global memory (an array of the thread's own, shared memory) these are plain loads and
//! stores, as they all are on the CPU device.
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

mod policy;
#[cfg(target_arch = "nvptx64")]
mod ptx;

pub use policy::{L2Policy, PrimaryPriority, SecondaryPriority, load_cache_hint, store_cache_hint};

use crate::device_copy::DeviceCopy;

/// How many bytes an element has.
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
    /// Loads, and keeps a copy in all caches, L1 among them (CUDA's `__ldca()`, CUB's `LOAD_CA`, PTX `ld.global.ca`).
    ldca;
    /// Loads, and keeps a copy in L2 only, past L1 (CUDA's `__ldcg()`, CUB's `LOAD_CG`, PTX `ld.global.cg`): for what
    /// another multiprocessor reads next.
    ldcg;
    /// Loads what is likely to be read once: its line is the first to go (CUDA's `__ldcs()`, CUB's `LOAD_CS`, PTX
    /// `ld.global.cs`, "streaming").
    ldcs;
    /// Loads what is read for the last time (CUDA's `__ldlu()`, PTX `ld.global.lu`); in global memory a streaming load,
    /// as [`ldcs`].
    ldlu;
    /// Loads past L1, without a place for it there (PTX `ld.global.L1::no_allocate`). In code built for architectures
    /// before `sm_87`, whose PTX lacks it, that is [`ldcg`].
    load_no_allocate;
    /// Loads into the lines of L1 that go first (PTX `ld.global.L1::evict_first`). In code built for architectures
    /// before `sm_87`, whose PTX lacks it, that is [`ldcs`].
    load_evict_first;
    /// Loads into lines of L1 that stay while there are others to go (PTX `ld.global.L1::evict_last`): for a small table
    /// beside a stream. In code built for architectures before `sm_87`, whose PTX lacks it, that is a plain load.
    load_evict_last;
}

stores! {
    /// Stores by way of all caches that keep what is written (CUDA's `__stwb()`, CUB's `STORE_WB`, PTX `st.global.wb`,
    /// "write back").
    stwb;
    /// Stores into L2, past L1 (CUDA's `__stcg()`, CUB's `STORE_CG`, PTX `st.global.cg`).
    stcg;
    /// Stores what is not read soon: its line is the first to go (CUDA's `__stcs()`, CUB's `STORE_CS`, PTX
    /// `st.global.cs`, "streaming").
    stcs;
    /// Stores through L2 into system memory (CUDA's `__stwt()`, CUB's `STORE_WT`, PTX `st.global.wt`, "write through").
    stwt;
    /// Stores without a place for it in L1 (PTX `st.global.L1::no_allocate`). In code built for architectures before
    /// `sm_87`, whose PTX lacks it, that is [`stcg`].
    store_no_allocate;
    /// Stores into the lines of L1 that go first (PTX `st.global.L1::evict_first`). In code built for architectures
    /// before `sm_87`, whose PTX lacks it, that is [`stcs`].
    store_evict_first;
    /// Stores into lines of L1 that stay while there are others to go (PTX `st.global.L1::evict_last`). In code built
    /// for architectures before `sm_87`, whose PTX lacks it, that is a plain store.
    store_evict_last;
}

macro_rules! prefetches {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// Beyond the end of `x` it does nothing: a loop may ask for what is some rounds ahead. It does nothing on the
        /// CPU device, and of what is not in global memory.
        #[doc = concat!(
            "\n```\nuse ferrogrid_device::cache;\n\n\
             /// A sum whose loads do not wait for memory: each element is asked for 64 rounds before it is read.\n\
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
    /// Brings the line in which element `index` of `x` begins into L1 and L2, and does not wait for it (PTX
    /// `prefetch.global.L1`).
    prefetch_l1;
    /// Brings the line in which element `index` of `x` begins into L2, and does not wait for it (PTX
    /// `prefetch.global.L2`).
    prefetch_l2;
}
