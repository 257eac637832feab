//! Memory fences: other threads see what the calling thread wrote before the fence no later than what it
//! writes after it. A fence does not wait; the order of the readers' loads comes from atomics.
//!
//! ```
//! # use ferrogrid::prelude::*;
//! # #[ferrogrid::module(host_only)]
//! # mod kernels {
//! # use ferrogrid::device::prelude::*;
//! use atomic::Ordering::Relaxed;
//!
//! /// The sum of all elements: each block adds up its own, and the last one to finish adds up the blocks'.
//! #[kernel(block = 64)]
//! pub fn sum(
//!     t: Thread<1>, x: &[u32], of_blocks: &[DeviceAtomic<u32>], finished: &[DeviceAtomic<u32>],
//!     result: &[DeviceAtomic<u32>], mut scratch: Shared<Scratch<u32>>,
//! ) {
//!     let mine = x.get(t.index().get()).copied().unwrap_or(0);
//!     let of_block = t.block_reduce(&mut scratch, mine, |a, b| a + b);
//!     if t.thread_rank() == 0 {
//!         of_blocks[t.block_idx()[0] as usize].store(of_block, Relaxed);
//!         fence::device(); // a thread that sees the count also sees the sum
//!         if finished[0].fetch_add(1, Relaxed) == t.grid_dim()[0] - 1 {
//!             fence::device();
//!             result[0].store(of_blocks.iter().map(|sum| sum.load(Relaxed)).sum(), Relaxed);
//!         }
//!     }
//! }
//! # }
//! # fn main() -> ferrogrid::Result<()> {
//! # let stream = Device::cpu().new_stream()?;
//! let x = stream.upload(&(0..200).collect::<Vec<u32>>())?;
//! let (mut sums, mut finished, mut result) = (stream.zeros(4)?, stream.zeros(1)?, stream.zeros(1)?);
//! kernels::sum(&stream, Grid::cover(200), &x, sums.as_atomic(), finished.as_atomic(), result.as_atomic())?;
//! assert_eq!(stream.download(&result)?, [19_900]);
//! # Ok(()) }
//! ```
//!
//! Among the threads of a block [`block`] suffices; what the host or another device reads while the
//! kernel runs needs [`system`]:
//!
//! ```
//! use ferrogrid_device::atomic::{Block, DeviceAtomic, Ordering::Relaxed, System};
//! use ferrogrid_device::fence;
//!
//! fn tell_block(value: &DeviceAtomic<f32, Block>, is_there: &DeviceAtomic<u32, Block>, x: f32) {
//!     value.store(x, Relaxed);
//!     fence::block();
//!     is_there.store(1, Relaxed);
//! }
//!
//! fn tell_host(value: &DeviceAtomic<f32, System>, is_there: &DeviceAtomic<u32, System>, x: f32) {
//!     value.store(x, Relaxed);
//!     fence::system();
//!     is_there.store(1, Relaxed);
//! }
//! # let (value, is_there) = (DeviceAtomic::new(0.0), DeviceAtomic::new(0));
//! # tell_host(&value, &is_there, 2.5);
//! # assert_eq!((value.into_inner(), is_there.into_inner()), (2.5, 1));
//! # let (value, is_there) = (DeviceAtomic::new(0.0), DeviceAtomic::new(0));
//! # tell_block(&value, &is_there, 2.5);
//! # assert_eq!((value.into_inner(), is_there.into_inner()), (2.5, 1));
//! ```

#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.membar.cta"]
    fn membar_cta();
    #[link_name = "llvm.nvvm.membar.gl"]
    fn membar_gl();
    #[link_name = "llvm.nvvm.membar.sys"]
    fn membar_sys();
}

macro_rules! fence {
    ($($(#[$doc:meta])* $name:ident $intrinsic:ident;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: a fence has no precondition.
            unsafe { $intrinsic() };
            #[cfg(not(target_arch = "nvptx64"))]
            core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        }
    )* };
}

fence! {
    /// For the threads of the block (CUDA's `__threadfence_block()`, PTX `membar.cta`).
    block membar_cta;
    /// For all threads of the device (CUDA's `__threadfence()`, PTX `membar.gl`).
    device membar_gl;
    /// For the host and other devices, too (CUDA's `__threadfence_system()`, PTX `membar.sys`).
    system membar_sys;
}
