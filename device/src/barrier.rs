//! Barriers of a block and of a grid: where threads wait for each other, and what they wrote becomes
//! visible to the others. It must not know what is shared.

use core::panic::Location;

use crate::shared::sealed::Region;
use crate::shared::{Publish, Reclaim, Shared, SharedArray};
use crate::thread::Thread;

/// Barriers. One that some threads of the block skip, or meet elsewhere, is undefined on a GPU: the build step proves of the
/// compiled code that all threads come to each of them together, and refuses a program where it cannot. So any function may
/// wait: helpers, methods, closures, those of other crates.
impl<const R: usize> Thread<'_, R> {
    /// Waits for all threads of the block (CUDA's `__syncthreads()`, PTX `bar.sync`). What they wrote
    /// before is visible to all of them afterwards.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// How many of each block's 64 elements are even.
    /// #[kernel(block = 64)]
    /// pub fn even(t: Thread<1>, x: &[u32], mut counts: DisjointSlice<u32>, mut all: Shared<[DeviceAtomic<u32>; 1]>) {
    ///     all.fill_with(&t, |_| DeviceAtomic::new(0));
    ///     let all = t.publish(all);
    ///     if x[t.index().get()] % 2 == 0 {
    ///         all[0].fetch_add(1, Relaxed);
    ///     }
    ///     t.sync_threads(); // all have counted
    ///     if let Some(count) = counts.get_mut(t.index()) {
    ///         *count = all[0].load(Relaxed);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..64).collect::<Vec<u32>>())?;
    /// let mut counts = stream.zeros(64)?;
    /// kernels::even(&stream, Grid::cover(64), &x, &mut counts)?;
    /// assert_eq!(stream.download(&counts)?, [32; 64]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn sync_threads(&self) {
        source::sync(self);
    }

    /// Waits for all threads of the block; tells how many brought `true` (CUDA's
    /// `__syncthreads_count()`, PTX `bar.red.popc`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// How many of the elements of each row are greater than `limit`; a row has as many as a block threads.
    /// #[kernel]
    /// pub fn greater(t: Thread<1>, x: Plane<f32>, limit: f32, mut counts: DisjointRows<u32>) {
    ///     let mine = x[t.block_idx()[0] as usize][t.thread_rank() as usize];
    ///     let count = t.sync_threads_count(mine > limit);
    ///     counts.fill_with(&t, |_| count);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&[1.0, 5.0, 7.0, 2.0, 6.0, 3.0_f32])?;
    /// let mut counts = stream.zeros(2)?;
    /// kernels::greater(&stream, Grid::new(2, 3), x.view_2d(3, 2)?, 4.0, counts.view_2d_mut(1, 2)?)?;
    /// assert_eq!(stream.download(&counts)?, [2, 1]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn sync_threads_count(&self, predicate: bool) -> u32 {
        source::count(self, predicate)
    }

    /// Waits for all threads of the block; tells whether all brought `true` (CUDA's
    /// `__syncthreads_and()`, PTX `bar.red.and`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Halves the elements of a block until all of them are at most 1; counts the rounds.
    /// #[kernel]
    /// pub fn rounds(t: Thread<1>, x: &[f32], mut rounds: DisjointRows<u32>) {
    ///     let (mut mine, mut count) = (x[t.index().get()], 0);
    ///     while !t.sync_threads_and(mine <= 1.0) {
    ///         mine /= 2.0;
    ///         count += 1;
    ///     }
    ///     rounds.fill_with(&t, |_| count);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&[0.5, 3.0, 1.0, 1.0])?;
    /// let mut rounds = stream.zeros(2)?;
    /// kernels::rounds(&stream, Grid::new(2, 2), &x, rounds.view_2d_mut(1, 2)?)?;
    /// assert_eq!(stream.download(&rounds)?, [2, 0]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn sync_threads_and(&self, predicate: bool) -> bool {
        source::and(self, predicate)
    }

    /// Waits for all threads of the block; tells whether any brought `true` (CUDA's
    /// `__syncthreads_or()`, PTX `bar.red.or`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The most steps of `n -> n / 2` or `3 * n + 1` that a number of the block's takes to come to 1.
    /// #[kernel]
    /// pub fn steps(t: Thread<1>, x: &[u32], mut most: DisjointRows<u32>) {
    ///     let (mut n, mut steps) = (x[t.index().get()], 0);
    ///     while t.sync_threads_or(n != 1) {
    ///         n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
    ///         n = if n == 4 { 1 } else { n };
    ///         steps += 1;
    ///     }
    ///     most.fill_with(&t, |_| steps);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&[1_u32, 2, 3, 6])?;
    /// let mut most = stream.zeros(2)?;
    /// kernels::steps(&stream, Grid::new(2, 2), &x, most.view_2d_mut(1, 2)?)?;
    /// assert_eq!(stream.download(&most)?, [1, 6]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn sync_threads_or(&self, predicate: bool) -> bool {
        source::or(self, predicate)
    }

    /// Ends the writing of shared memory: waits for all threads of the block, and turns `regions`, in
    /// which each thread wrote what is its own, into ones that all threads read. `regions` is a
    /// [`Shared`](crate::Shared), a [`SharedSlice`](crate::SharedSlice), or a tuple of them: one barrier
    /// (CUDA's `__syncthreads()`, PTX `bar.sync`) serves all.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Turns each block of 64 elements around.
    /// #[kernel(block = 64)]
    /// pub fn reverse(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut tile: Shared<[u32; 64]>) {
    ///     let i = t.index();
    ///     tile.fill_with(&t, |_| x[i.get()]); // each thread its own element
    ///     let tile = t.publish(tile);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = tile[63 - t.thread_rank() as usize]; // any thread any element
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..128).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(128)?;
    /// kernels::reverse(&stream, Grid::cover(128), &x, &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!((y[0], y[63], y[64]), (63, 0, 127));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn publish<P: Publish>(&self, regions: P) -> P::Published {
        self.sync_for(&regions);
        regions.published()
    }

    /// Ends the reading of shared memory: waits for all threads of the block (CUDA's `__syncthreads()`, PTX
    /// `bar.sync`), and turns `regions` back into ones in which each thread writes what is its own.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Adds to each element of a block of 64 those before it, in six rounds.
    /// #[kernel(block = 64)]
    /// pub fn running_sums(t: Thread<1>, mut x: DisjointSlice<u32>, mut tile: Shared<[u32; 64]>) {
    ///     let (i, rank) = (t.index(), t.thread_rank() as usize);
    ///     let mut sum = x.get_mut(i).map_or(0, |x| *x);
    ///     let mut distance = 1;
    ///     while distance < 64 {
    ///         tile.fill_with(&t, |_| sum);
    ///         let all = t.publish(tile);
    ///         sum += if rank >= distance { all[rank - distance] } else { 0 };
    ///         tile = t.reclaim(all); // nobody reads any more
    ///         distance *= 2;
    ///     }
    ///     if let Some(x) = x.get_mut(i) {
    ///         *x = sum;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.fill(1_u32, 64)?;
    /// kernels::running_sums(&stream, Grid::cover(64), &mut x)?;
    /// assert_eq!(stream.download(&x)?, (1..=64).collect::<Vec<u32>>());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn reclaim<P: Reclaim>(&self, regions: P) -> P::Reclaimed {
        self.sync_for(&regions);
        regions.reclaimed()
    }

    /// [`Thread::publish`] and [`Thread::reclaim`] of different regions with one barrier, as for two
    /// buffers that take turns.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Adds to each element of a block of 64 those before it: two regions that take turns, one barrier a round.
    /// #[kernel(block = 64)]
    /// pub fn running_sums(
    ///     t: Thread<1>, mut x: DisjointSlice<u32>, mut a: Shared<[u32; 64]>, mut b: Shared<[u32; 64]>,
    /// ) {
    ///     let (i, rank) = (t.index(), t.thread_rank() as usize);
    ///     let mut sum = x.get_mut(i).map_or(0, |x| *x);
    ///     a.fill_with(&t, |_| sum);
    ///     let mut read_a = t.publish(a);
    ///     let mut distance = 1;
    ///     while distance < 64 {
    ///         sum += if rank >= distance { read_a[rank - distance] } else { 0 };
    ///         b.fill_with(&t, |_| sum);
    ///         let (read_b, write_a) = t.publish_and_reclaim(b, read_a);
    ///         distance *= 2;
    ///         sum += if rank >= distance { read_b[rank - distance] } else { 0 };
    ///         a = write_a;
    ///         a.fill_with(&t, |_| sum);
    ///         (read_a, b) = t.publish_and_reclaim(a, read_b);
    ///         distance *= 2;
    ///     }
    ///     if let Some(x) = x.get_mut(i) {
    ///         *x = sum;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.fill(1_u32, 64)?;
    /// kernels::running_sums(&stream, Grid::cover(64), &mut x)?;
    /// assert_eq!(stream.download(&x)?, (1..=64).collect::<Vec<u32>>());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn publish_and_reclaim<P: Publish, Q: Reclaim>(
        &self,
        written: P,
        read: Q,
    ) -> (P::Published, Q::Reclaimed) {
        self.agree_on(&read);
        self.sync_for(&written);
        (written.published(), read.reclaimed())
    }

    /// What `read` makes of all that the threads of the block wrote into `region`: [`Thread::publish`] before it,
    /// [`Thread::reclaim`] after it, so that the region is there to be written again. For functions that are given
    /// a region to work with:
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The greatest `x` of the block, for a function that is given a region to work with.
    /// fn block_max<const ID: usize>(t: &Thread<1>, tile: &mut Shared<[f32; 64], ID>, x: f32) -> f32 {
    ///     tile.fill_with(t, |_| x);
    ///     t.with_published(tile, |all| all.iter().copied().fold(f32::MIN, f32::max))
    /// }
    ///
    /// #[kernel(block = 64)]
    /// pub fn spread(t: Thread<1>, mut x: DisjointSlice<f32>, mut tile: Shared<[f32; 64]>) {
    ///     let i = t.index();
    ///     let mine = x.get_mut(i).map_or(0.0, |x| *x);
    ///     let greatest = block_max(&t, &mut tile, mine);
    ///     let least = -block_max(&t, &mut tile, -mine); // the region again
    ///     if let Some(x) = x.get_mut(i) {
    ///         *x = greatest - least;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(5..69).map(|x| x as f32).collect::<Vec<_>>())?;
    /// kernels::spread(&stream, Grid::cover(64), &mut x)?;
    /// assert_eq!(stream.download(&x)?, [63.0; 64]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn with_published<A: SharedArray, U, const ID: usize>(
        &self,
        region: &mut Shared<'_, A, ID>,
        read: impl FnOnce(&A) -> U,
    ) -> U {
        self.sync_for(region);
        // SAFETY: valid for the block's life by `Shared::from_raw`. The barrier has ended all writing, and nobody
        // writes before the next one, where this thread comes when it has read: until then `region` is borrowed.
        // Elements take any bits.
        let result = read(unsafe { &*region.as_mut_ptr() });
        source::sync(self);
        result
    }

    /// Waits for all threads of the block, which bring the same `regions`.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn sync_for(&self, regions: &impl Region) {
        self.agree_on(regions);
        source::sync(self);
    }

    /// All threads of the block come here with the same `regions`: proven of the compiled code, and found out by the CPU device. It
    /// is no barrier.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn agree_on(&self, regions: &impl Region) {
        let caller = Location::caller();
        regions.visit(&mut |region| source::agree_on(self, region, caller));
    }
}

impl<const R: usize> Thread<'_, R> {
    /// Waits for all threads of the grid (cooperative groups' `grid.sync()`), in a kernel that is
    /// `#[kernel(cooperative)]`. What they wrote before is visible to all of them afterwards.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// What part of the sum of all elements each of them is, in one launch.
    /// #[kernel(cooperative)]
    /// pub fn parts(t: Thread<1>, x: &[u32], sum: &[DeviceAtomic<u32>], mut y: DisjointSlice<f32>) {
    ///     let i = t.index();
    ///     sum[0].fetch_add(x[i.get()], Relaxed);
    ///     t.sync_grid(); // all threads of all blocks have added theirs
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = x[i.get()] as f32 / sum[0].load(Relaxed) as f32;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&[1_u32, 2, 3, 2])?;
    /// let (mut sum, mut y) = (stream.zeros(1)?, stream.zeros(4)?);
    /// kernels::parts(&stream, Grid::new(2, 2), &x, sum.as_atomic(), &mut y)?;
    /// assert_eq!(stream.download(&y)?, [0.125, 0.25, 0.375, 0.25]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn sync_grid(&self) {
        source::sync_grid(self);
    }
}

/// Fences: what the calling thread wrote before is seen by the others before what it writes after.
/// They wait for nobody; that others read in order is for atomics to see to.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
///
/// /// The sum of all elements: each block adds up its own, and the last one to finish adds up the blocks'.
/// #[kernel(block = 64)]
/// pub fn sum(
///     t: Thread<1>, x: &[u32], of_blocks: &[DeviceAtomic<u32>], finished: &[DeviceAtomic<u32>],
///     result: &[DeviceAtomic<u32>], mut scratch: Shared<Scratch<u32>>,
/// ) {
///     let mine = x.get(t.index().get()).copied().unwrap_or(0);
///     let of_block = t.block_reduce(&mut scratch, mine, |a, b| a + b);
///     if t.thread_rank() == 0 {
///         of_blocks[t.block_idx()[0] as usize].store(of_block, Relaxed);
///         fence::device(); // whoever sees the count sees the sum
///         if finished[0].fetch_add(1, Relaxed) == t.grid_dim()[0] - 1 {
///             fence::device();
///             result[0].store(of_blocks.iter().map(|sum| sum.load(Relaxed)).sum(), Relaxed);
///         }
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..200).collect::<Vec<u32>>())?;
/// let (mut sums, mut finished, mut result) = (stream.zeros(4)?, stream.zeros(1)?, stream.zeros(1)?);
/// kernels::sum(&stream, Grid::cover(200), &x, sums.as_atomic(), finished.as_atomic(), result.as_atomic())?;
/// assert_eq!(stream.download(&result)?, [19_900]);
/// # Ok(()) }
/// ```
///
/// Among the threads of a block [`fence::block`] suffices; what the host or another device reads while the
/// kernel runs needs [`fence::system`]:
///
/// ```
/// use ferrogrid_device::atomic::{Block, DeviceAtomic, Ordering::Relaxed, System};
/// use ferrogrid_device::fence;
///
/// fn tell_block(value: &DeviceAtomic<f32, Block>, is_there: &DeviceAtomic<u32, Block>, x: f32) {
///     value.store(x, Relaxed);
///     fence::block();
///     is_there.store(1, Relaxed);
/// }
///
/// fn tell_host(value: &DeviceAtomic<f32, System>, is_there: &DeviceAtomic<u32, System>, x: f32) {
///     value.store(x, Relaxed);
///     fence::system();
///     is_there.store(1, Relaxed);
/// }
/// # let (value, is_there) = (DeviceAtomic::new(0.0), DeviceAtomic::new(0));
/// # tell_host(&value, &is_there, 2.5);
/// # assert_eq!((value.into_inner(), is_there.into_inner()), (2.5, 1));
/// # let (value, is_there) = (DeviceAtomic::new(0.0), DeviceAtomic::new(0));
/// # tell_block(&value, &is_there, 2.5);
/// # assert_eq!((value.into_inner(), is_there.into_inner()), (2.5, 1));
/// ```
pub mod fence {
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
}

/// LLVM's intrinsics, which it knows to be convergent. Each comes behind a mark, for which the build step proves that all threads
/// come there together.
#[cfg(target_arch = "nvptx64")]
mod source {
    use core::arch::asm;
    use core::panic::Location;

    use crate::atomic::{DeviceAtomic, Ordering};
    use crate::mark;
    use crate::panic::{give_up, is_reported};
    use crate::thread::Thread;

    unsafe extern "C" {
        #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
        fn barrier_sync(barrier: u32);
        #[link_name = "llvm.nvvm.barrier.cta.red.popc.aligned.all"]
        fn barrier_popc(barrier: u32, predicate: bool) -> u32;
        #[link_name = "llvm.nvvm.barrier.cta.red.and.aligned.all"]
        fn barrier_and(barrier: u32, predicate: bool) -> bool;
        #[link_name = "llvm.nvvm.barrier.cta.red.or.aligned.all"]
        fn barrier_or(barrier: u32, predicate: bool) -> bool;
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn sync_grid<const R: usize>(thread: &Thread<'_, R>) {
        mark::of_grid(Location::caller(), None);
        // SAFETY: all threads of the grid come here together, in a cooperative launch, as is proven for the mark.
        unsafe { wait_for_grid(thread) }
    }

    /// One thread of each block adds to a counter that the driver keeps for a cooperative launch, and waits
    /// until its highest bit changes. The block that comes with what is missing to half the range makes it
    /// change, and leaves the rest 0, whatever the number of blocks: so the next barrier starts as this did.
    ///
    /// # Safety
    /// All threads of the grid make this call together, in a cooperative launch.
    #[inline(never)]
    unsafe fn wait_for_grid<const R: usize>(thread: &Thread<'_, R>) {
        const HALF: u32 = 1 << 31;
        // SAFETY: all threads of the block come here, as the caller vouches.
        unsafe { barrier_sync(0) };
        if thread.thread_rank() == 0 {
            let (blocks, first) = thread.blocks();
            let missing = if first { HALF - (blocks - 1) } else { 1 };
            // SAFETY: in a cooperative launch the driver provides the counter, and only barriers use it.
            let counter = unsafe { &*grid_counter() };
            let before = counter.fetch_add(missing, Ordering::AcqRel);
            let mut turns = 0_u32;
            while (before ^ counter.load(Ordering::Acquire)) & HALF == 0 {
                turns = turns.wrapping_add(1);
                // Looking is slow: the record is in the host's memory.
                if turns % 1024 == 0 && is_reported() {
                    // A thread that has panicked does not come. The counter is left as if nobody had.
                    counter.fetch_sub(missing, Ordering::AcqRel);
                    give_up();
                }
            }
        }
        // SAFETY: as above.
        unsafe { barrier_sync(0) };
    }

    /// The counter of the launch: in the workspace whose address the driver puts into environment registers
    /// 1 (high) and 2 (low), behind its size.
    #[inline(always)]
    fn grid_counter() -> *const DeviceAtomic<u32> {
        let (high, low): (u32, u32);
        // SAFETY: reads registers.
        unsafe {
            asm!("mov.u32 {high}, %envreg1;", "mov.u32 {low}, %envreg2;", high = out(reg32) high, low = out(reg32) low, options(pure, nomem, nostack));
        }
        let workspace = (u64::from(high) << 32 | u64::from(low)) as usize;
        core::ptr::with_exposed_provenance::<DeviceAtomic<u32>>(workspace + 4)
    }

    #[inline(always)]
    pub(super) fn agree_on<const R: usize>(_: &Thread<'_, R>, region: *const u8, caller: &Location<'_>) {
        mark::of_block(caller, Some(region));
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn sync<const R: usize>(_: &Thread<'_, R>) {
        mark::of_block(Location::caller(), None);
        // SAFETY: all threads of the block come here together, as is proven for the mark.
        unsafe { barrier_sync(0) }
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn count<const R: usize>(_: &Thread<'_, R>, predicate: bool) -> u32 {
        mark::of_block(Location::caller(), None);
        // SAFETY: as above.
        unsafe { barrier_popc(0, predicate) }
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn and<const R: usize>(_: &Thread<'_, R>, predicate: bool) -> bool {
        mark::of_block(Location::caller(), None);
        // SAFETY: as above.
        unsafe { barrier_and(0, predicate) }
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn or<const R: usize>(_: &Thread<'_, R>, predicate: bool) -> bool {
        mark::of_block(Location::caller(), None);
        // SAFETY: as above.
        unsafe { barrier_or(0, predicate) }
    }
}

/// The same by the CPU device, which finds out if threads do not come.
#[cfg(not(target_arch = "nvptx64"))]
mod source {
    use core::panic::Location;

    use crate::thread::Thread;

    #[track_caller]
    #[inline(always)]
    pub(super) fn sync_grid<const R: usize>(thread: &Thread<'_, R>) {
        thread.block.grid_barrier(thread.place());
    }

    #[inline(always)]
    pub(super) fn agree_on<const R: usize>(
        thread: &Thread<'_, R>,
        region: *const u8,
        caller: &'static Location<'static>,
    ) {
        thread.block.agree(thread.place(), region.addr() as u64, caller);
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn sync<const R: usize>(thread: &Thread<'_, R>) {
        thread.block.barrier(thread.place());
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn count<const R: usize>(thread: &Thread<'_, R>, predicate: bool) -> u32 {
        thread.block.barrier_count(thread.place(), predicate)
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn and<const R: usize>(thread: &Thread<'_, R>, predicate: bool) -> bool {
        thread.block.barrier_count(thread.place(), !predicate) == 0
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn or<const R: usize>(thread: &Thread<'_, R>, predicate: bool) -> bool {
        thread.block.barrier_count(thread.place(), predicate) > 0
    }
}
