//! Barriers of a block and of a grid (CUDA's `__syncthreads()` and `grid.sync()`), and the two that change
//! the phase of shared memory.
//!
//! `native` and `ptx` implement them on the CPU device and on a GPU.

#[cfg(not(target_arch = "nvptx64"))]
mod native;
#[cfg(target_arch = "nvptx64")]
mod ptx;

use core::panic::Location;

#[cfg(not(target_arch = "nvptx64"))]
use native as source;
#[cfg(target_arch = "nvptx64")]
use ptx as source;

use crate::shared::sealed::Region;
use crate::shared::{Publish, Reclaim, Shared, SharedArray};
use crate::thread::Thread;

/// Barriers. On a GPU a barrier that some threads of the block skip is undefined. So the build step proves on
/// the compiled code that all threads reach each barrier together, and refuses a program where it cannot. Any
/// function may therefore wait: helpers, methods, closures, and functions of other crates.
impl<const R: usize> Thread<'_, R> {
    /// Waits for all threads of the block (CUDA's `__syncthreads()`, PTX `bar.sync`). Afterwards all of them
    /// see what they wrote before.
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

    /// Waits for all threads of the block, and returns how many of them passed `true` (CUDA's
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

    /// Waits for all threads of the block, and returns whether all of them passed `true` (CUDA's
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

    /// Waits for all threads of the block, and returns whether any of them passed `true` (CUDA's
    /// `__syncthreads_or()`, PTX `bar.red.or`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The longest Collatz sequence among the numbers of a block: `n / 2` or `3 * n + 1`, down to 1.
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

    /// Ends the write phase of shared memory: waits for all threads of the block, and turns `regions`, in
    /// which each thread wrote its own elements, into ones that all threads read. `regions` is a
    /// [`Shared`](crate::Shared), a [`SharedSlice`](crate::SharedSlice), or a tuple of them, for which one
    /// barrier (CUDA's `__syncthreads()`, PTX `bar.sync`) suffices.
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

    /// Ends the read phase of shared memory: waits for all threads of the block (CUDA's `__syncthreads()`,
    /// PTX `bar.sync`), and turns `regions` back into ones in which each thread writes its own elements.
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
    ///         tile = t.reclaim(all); // all threads have finished reading
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

    /// [`Thread::publish`] and [`Thread::reclaim`] of different regions with one barrier, as for two buffers
    /// that alternate.
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
        read.before_barrier();
        self.sync_for(&written);
        (written.published(), read.reclaimed())
    }

    /// Calls `read` with all that the threads of the block wrote into `region`, between a [`Thread::publish`]
    /// and a [`Thread::reclaim`], so that the region can be written again. For functions that take a region
    /// as workspace:
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The greatest `x` of the block, by a function that gets a region as workspace.
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
        // SAFETY: valid for the block's life by `Shared::from_raw`. All writes ended at the barrier. No
        // thread writes before the next barrier, which this thread reaches only after reading: until then
        // `region` is borrowed. Elements take any bits.
        let result = read(unsafe { &*region.as_mut_ptr() });
        source::sync(self);
        result
    }

    /// Waits for all threads of the block, which pass the same `regions`.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn sync_for(&self, regions: &impl Region) {
        self.agree_on(regions);
        regions.before_barrier();
        source::sync(self);
    }

    /// All threads of the block pass the same `regions`: the build step proves it on the compiled code, and
    /// the CPU device checks it. This is no barrier.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn agree_on(&self, regions: &impl Region) {
        let caller = Location::caller();
        regions.visit(&mut |region| source::agree_on(self, region, caller));
    }
}

impl<const R: usize> Thread<'_, R> {
    /// Waits for all threads of the grid (cooperative groups' `grid.sync()`), in a `#[kernel(cooperative)]`.
    /// Afterwards all of them see what they wrote before.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// Each element's share of the sum of all elements, in one launch.
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
