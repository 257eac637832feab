//! Clusters of thread blocks: a block's position in its cluster, the cluster's barrier, and the shared memory
//! of its other blocks.
//!
//! The protocol is that of a block's shared memory (`shared`) with the cluster's barrier: each thread writes
//! its own elements, [`Thread::publish_cluster`] lets all threads of all blocks read them,
//! [`Thread::reclaim_cluster`] makes them writable again. A block must not exit while others read its memory,
//! so the entry point of a kernel with clusters ends with one more barrier, [`leave_cluster`].
//!
//! `native` and `ptx` implement them on the CPU device and from `sm_90` on; `single` is for older GPUs, where a block
//! is a cluster.

#[cfg(not(target_arch = "nvptx64"))]
mod native;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90"))]
mod ptx;
#[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_90")))]
mod single;

use core::marker::PhantomData;
use core::ops::Deref;

use bytemuck::Pod;
#[cfg(not(target_arch = "nvptx64"))]
use native as source;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90"))]
use ptx as source;
#[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_90")))]
use single as source;

use crate::atomic::{AtomicValue, Device, DeviceAtomic, System};
use crate::element::aligned::Aligned16;
use crate::element::device_copy::DeviceCopy;
use crate::shared::{
    AnyBits, ByCluster, Publish, Reclaim, Shared, SharedArray, SharedElement, SharedSlice, sealed,
};
use crate::thread::{Thread, first};

/// The position of a block in its cluster. In a launch without clusters each block is a cluster of its own.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Of each block: its cluster, its place in it and its number there; and how many blocks a cluster has.
/// #[kernel(cluster = [2, 3])]
/// pub fn places(t: Thread<2>, mut y: DisjointSlice<[[u32; 2]; 3], 2>) {
///     assert!(t.cluster_dim() == [2, 3] && t.cluster_blocks() == 6);
///     if let Some(y) = y.get_mut(t.index()) {
///         *y = [t.cluster_idx(), t.cluster_block_idx(), [t.cluster_rank(), t.cluster_blocks()]];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut y = stream.upload(&[[[0; 2]; 3]; 24])?; // 4 by 6 blocks of one thread each
/// kernels::places(&stream, Grid::new([4, 6], [1, 1]), y.view_2d_mut(4, 6)?)?;
/// assert_eq!(stream.download(&y)?[4 * 4 + 3], [[1, 1], [1, 1], [3, 6]]); // block (3, 4)
/// # Ok(()) }
/// ```
impl<const R: usize> Thread<'_, R> {
    /// The cluster's index in the grid, counted in clusters (PTX `%clusterid`).
    #[inline(always)]
    pub fn cluster_idx(&self) -> [u32; R] {
        first(source::cluster_idx(self))
    }

    /// The number of blocks per cluster along each axis (cooperative groups' `cluster.dim_blocks()`, PTX
    /// `%cluster_nctaid`).
    #[inline(always)]
    pub fn cluster_dim(&self) -> [u32; R] {
        first(source::cluster_dim(self))
    }

    /// The block's index in its cluster (cooperative groups' `cluster.block_index()`, PTX `%cluster_ctaid`).
    #[inline(always)]
    pub fn cluster_block_idx(&self) -> [u32; R] {
        first(source::cluster_block_idx(self))
    }

    /// The block's rank in its cluster, x fastest (cooperative groups' `cluster.block_rank()`, PTX
    /// `%cluster_ctarank`).
    #[inline(always)]
    pub fn cluster_rank(&self) -> u32 {
        source::cluster_rank(self)
    }

    /// The number of blocks in a cluster (cooperative groups' `cluster.num_blocks()`, PTX
    /// `%cluster_nctarank`).
    #[inline(always)]
    pub fn cluster_blocks(&self) -> u32 {
        source::cluster_blocks(self)
    }
}

/// Barriers of a cluster. As for those of a block, the build step proves that all threads reach them
/// together. In a launch without clusters each block is a cluster of its own.
impl<const R: usize> Thread<'_, R> {
    /// Waits for all threads of the cluster (cooperative groups' `cluster.sync()`, PTX
    /// `barrier.cluster.arrive` and `.wait`). Afterwards all of them see what they wrote before.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// The two blocks of a cluster tell each other how many of their elements are 0.
    /// #[kernel(cluster = 2)]
    /// pub fn zeros(t: Thread<1>, x: &[u32], told: &[DeviceAtomic<u32>], mut others: DisjointRows<u32>) {
    ///     let [block] = t.block_idx();
    ///     let count = t.sync_threads_count(x[t.index().get()] == 0);
    ///     told[block as usize].store(count, Relaxed);
    ///     t.sync_cluster();
    ///     others.fill_with(&t, |_| told[block as usize ^ 1].load(Relaxed));
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&[0, 0, 7, 0, 0, 0, 1, 2, 3, 0, 0, 9])?;
    /// let (mut told, mut others) = (stream.zeros(4)?, stream.zeros(4)?);
    /// kernels::zeros(&stream, Grid::new(4, 3), &x, told.as_atomic(), others.view_2d_mut(1, 4)?)?;
    /// assert_eq!(stream.download(&others)?, [3, 2, 2, 0]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn sync_cluster(&self) {
        source::sync(self);
    }

    /// Ends the write phase of shared memory: waits for all threads of the cluster as
    /// [`Thread::sync_cluster`] does, and turns `regions` into ones that all of them read. `regions` is a
    /// [`Shared`], a [`SharedSlice`], or a tuple of them.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Two blocks of 64 threads swap their elements through shared memory.
    /// #[kernel(block = 64, cluster = 2)]
    /// pub fn swap(t: Thread<1>, mut x: DisjointSlice<u32>, mut tile: Shared<[u32; 64]>) {
    ///     let i = t.index();
    ///     let mine = x.get_mut(i).map_or(0, |x| *x);
    ///     tile.fill_with(&t, |_| mine);
    ///     let tile = t.publish_cluster(tile);
    ///     let other = tile.block(&t, 1 - t.cluster_rank());
    ///     if let Some(x) = x.get_mut(i) {
    ///         *x = other[t.thread_rank() as usize];
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(0..128).collect::<Vec<u32>>())?;
    /// kernels::swap(&stream, Grid::cover(128), &mut x)?;
    /// let x = stream.download(&x)?;
    /// assert_eq!((x[0], x[63], x[64]), (64, 127, 0));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn publish_cluster<P: Publish<ByCluster>>(&self, regions: P) -> P::Published {
        self.sync_cluster_for(&regions);
        regions.published()
    }

    /// Ends the read phase of shared memory: waits for all threads of the cluster as [`Thread::sync_cluster`]
    /// does, and turns `regions` back into ones in which each thread writes its own elements.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Adds up what the blocks of a cluster hold, in rounds: after each, a block has the sum of twice as many.
    /// #[kernel(block = 32, cluster = 4)]
    /// pub fn sums(t: Thread<1>, mut x: DisjointSlice<u32>, mut tile: Shared<[u32; 32]>) {
    ///     let own = t.thread_rank() as usize;
    ///     let mut sum = x.get_mut(t.index()).map_or(0, |x| *x);
    ///     let mut distance = 1;
    ///     while distance < 4 {
    ///         tile.fill_with(&t, |_| sum);
    ///         let all = t.publish_cluster(tile);
    ///         sum += all.block(&t, t.cluster_rank() ^ distance)[own];
    ///         tile = t.reclaim_cluster(all); // no block reads it any more
    ///         distance *= 2;
    ///     }
    ///     if let Some(x) = x.get_mut(t.index()) {
    ///         *x = sum;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(0..128).collect::<Vec<u32>>())?;
    /// kernels::sums(&stream, Grid::cover(128), &mut x)?;
    /// let x = stream.download(&x)?;
    /// assert_eq!((x[0], x[31], x[96]), (32 + 64 + 96, 31 + 63 + 95 + 127, x[0]));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn reclaim_cluster<P: Reclaim<ByCluster>>(&self, regions: P) -> P::Reclaimed {
        self.sync_cluster_for(&regions);
        regions.reclaimed()
    }

    /// Waits for all threads of the cluster, which pass the same `regions`.
    #[track_caller]
    #[inline(always)]
    fn sync_cluster_for(&self, regions: &impl sealed::Region) {
        #[cfg(target_arch = "nvptx64")]
        {
            let caller = core::panic::Location::caller();
            regions.visit(&mut |region| crate::compiler::mark::of_cluster(caller, Some(region)));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.agree_on(regions);
        source::sync(self);
    }
}

/// A [`SharedElement`] that threads of other blocks may access: a number, an [`Aligned16`], a tuple, a struct
/// with `#[derive(DeviceCopy)]`, or a [`DeviceAtomic`] whose scope is wider than a block.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
///
/// /// A histogram too large for one block's shared memory: of 8 bins, each block of a cluster has 4.
/// #[kernel(block = 32, cluster = 2)]
/// pub fn histogram(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>], mut bins: Shared<[DeviceAtomic<u32>; 4]>) {
///     bins.fill_with(&t, |_| DeviceAtomic::new(0));
///     let bins = t.publish_cluster(bins);
///     let bin = x[t.index().get()] % 8;
///     bins.block(&t, bin / 4)[bin as usize % 4].fetch_add(1, Relaxed);
///     t.sync_cluster();
///     for own in t.block_stride(4) {
///         y[4 * t.cluster_rank() as usize + own].fetch_add(bins[own].load(Relaxed), Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..64).map(|i| i * i).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(8)?;
/// kernels::histogram(&stream, Grid::cover(64), &x, y.as_atomic())?;
/// assert_eq!(stream.download(&y)?, [16, 32, 0, 0, 16, 0, 0, 0]);
/// # Ok(()) }
/// ```
///
/// # Safety
/// Sharing a value among threads of several blocks must be sound.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shared by the blocks of a cluster",
    label = "not a `ClusterElement`",
    note = "other blocks reach numbers, `Aligned16`, tuples and structs with `#[derive(DeviceCopy)]` of these, and `DeviceAtomic` of a scope wider than `atomic::Block`"
)]
pub unsafe trait ClusterElement: SharedElement {}

macro_rules! cluster_element {
    ($($ty:ty),*) => { $(
        // SAFETY: without interior mutability, so it is only read.
        unsafe impl ClusterElement for $ty {}
    )* };
}

cluster_element!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

// SAFETY: without interior mutability, so it is only read.
unsafe impl<T: DeviceCopy + Pod> ClusterElement for Aligned16<T> {}
macro_rules! tuple {
    ($($member:ident)*) => {
        // SAFETY: what is `Copy` has no interior mutability, so it is only read.
        unsafe impl<$($member: AnyBits + Copy),*> ClusterElement for ($($member,)*) {}
    };
}

tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);

// SAFETY: its operations are atomic among all threads of the device.
unsafe impl<T: AtomicValue> ClusterElement for DeviceAtomic<T, Device> {}
// SAFETY: its operations are atomic among all threads of the system.
unsafe impl<T: AtomicValue> ClusterElement for DeviceAtomic<T, System> {}

macro_rules! core_atomics {
    ($($atomic:ident),*) => { $(
        // SAFETY: its operations are atomic among all threads of the system.
        unsafe impl ClusterElement for core::sync::atomic::$atomic {}
    )* };
}

core_atomics!(AtomicU32, AtomicI32, AtomicU64, AtomicI64);

/// An array in shared memory that all threads of the cluster read; see [`Thread::publish_cluster`].
///
/// It dereferences to the array of the thread's own block; [`ClusterPublished::block`] returns that of any
/// block. [`Thread::reclaim_cluster`] makes it writable again.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::ClusterPublished;
///
/// /// The element at `place` of the row that the blocks of a cluster have one after the other.
/// fn at<const ID: usize>(t: &Thread<1>, row: &ClusterPublished<[i32; 32], ID>, place: u32) -> i32 {
///     row.block(t, place / 32)[place as usize % 32]
/// }
///
/// /// The differences to the next element, for each 64 elements by two blocks.
/// #[kernel(block = 32, cluster = 2)]
/// pub fn differences(t: Thread<1>, mut x: DisjointSlice<i32>, mut tile: Shared<[i32; 32]>) {
///     let mine = x.get_mut(t.index()).map_or(0, |x| *x);
///     tile.fill_with(&t, |_| mine);
///     let row = t.publish_cluster(tile);
///     let place = 32 * t.cluster_rank() + t.thread_rank();
///     if let Some(x) = x.get_mut(t.index()) {
///         *x = at(&t, &row, (place + 1) % 64) - row[t.thread_rank() as usize];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&(0..64).map(|i| i * i).collect::<Vec<i32>>())?;
/// kernels::differences(&stream, Grid::cover(64), &mut x)?;
/// let x = stream.download(&x)?;
/// assert_eq!((x[0], x[31], x[63]), (1, 63, -63 * 63));
/// # Ok(()) }
/// ```
pub struct ClusterPublished<'b, A: SharedArray, const ID: usize = 0> {
    start: *mut A,
    block: PhantomData<&'b A>,
}

/// A slice in shared memory that all threads of the cluster read; see [`ClusterPublished`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::ClusterPublishedSlice;
///
/// /// The sum of all that the blocks of a cluster hold.
/// fn sum<const ID: usize>(t: &Thread<1>, parts: &ClusterPublishedSlice<f64, ID>) -> f64 {
///     (0..t.cluster_blocks()).map(|rank| parts.block(t, rank).iter().sum::<f64>()).sum()
/// }
///
/// #[kernel(cluster = 2)]
/// pub fn sums(t: Thread<1>, x: &[f64], mut sums: DisjointRows<f64>, mut part: SharedSlice<f64>) {
///     part.fill_with(&t, |_| x[t.index().get()]);
///     let parts = t.publish_cluster(part);
///     let sum = sum(&t, &parts);
///     sums.fill_with(&t, |_| sum);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
/// let mut sums = stream.zeros(4)?;
/// kernels::sums(&stream, Grid::new(4, 2), &x, sums.view_2d_mut(1, 4)?, 2)?;
/// assert_eq!(stream.download(&sums)?, [10.0, 10.0, 26.0, 26.0]);
/// # Ok(()) }
/// ```
pub struct ClusterPublishedSlice<'b, T: 'static, const ID: usize = 0> {
    start: *mut T,
    length: usize,
    block: PhantomData<&'b T>,
}

impl<A: SharedArray, const ID: usize> ClusterPublished<'_, A, ID> {
    /// The array of the block with this rank in the cluster (cooperative groups' `cluster.map_shared_rank()`,
    /// PTX `mapa`; reads are `ld.shared::cluster`).
    ///
    /// # Panics
    /// If the cluster has no such block.
    #[track_caller]
    #[inline(always)]
    pub fn block<const R: usize>(&self, thread: &Thread<'_, R>, rank: u32) -> &A {
        check_rank(thread, rank);
        // SAFETY: the block exists, and each block has this region at the same place. The barrier that made
        // this region has ended all writing in all blocks of the cluster; none writes before the barrier that
        // takes it back, by value, from every thread of each; and none ends before all have left the kernel.
        // Elements take any bits.
        unsafe { &*source::in_block(thread, self.start, rank) }
    }
}

impl<T: 'static, const ID: usize> ClusterPublishedSlice<'_, T, ID> {
    /// The slice of the block with this rank in the cluster (cooperative groups' `cluster.map_shared_rank()`,
    /// PTX `mapa`; reads are `ld.shared::cluster`).
    ///
    /// # Panics
    /// If the cluster has no such block.
    #[track_caller]
    #[inline(always)]
    pub fn block<const R: usize>(&self, thread: &Thread<'_, R>, rank: u32) -> &[T] {
        check_rank(thread, rank);
        // SAFETY: as for `ClusterPublished`; the length is an argument of the launch, so that of all blocks.
        unsafe { core::slice::from_raw_parts(source::in_block(thread, self.start, rank), self.length) }
    }
}

#[track_caller]
#[inline(always)]
fn check_rank<const R: usize>(thread: &Thread<'_, R>, rank: u32) {
    assert!(rank < thread.cluster_blocks(), "the cluster has no block of this rank");
}

impl<A: SharedArray, const ID: usize> Deref for ClusterPublished<'_, A, ID> {
    type Target = A;

    #[inline(always)]
    fn deref(&self) -> &A {
        // SAFETY: as in `block`, for the thread's own block.
        unsafe { &*self.start }
    }
}

impl<T: 'static, const ID: usize> Deref for ClusterPublishedSlice<'_, T, ID> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: as in `block`, for the thread's own block.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }
}

impl<'b, A: SharedArray<Element: ClusterElement>, const ID: usize> Publish<ByCluster> for Shared<'b, A, ID> {
    type Published = ClusterPublished<'b, A, ID>;

    #[inline(always)]
    fn published(self) -> Self::Published {
        ClusterPublished { start: self.start, block: PhantomData }
    }
}

impl<A: SharedArray, const ID: usize> sealed::Region for ClusterPublished<'_, A, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }
}

impl<'b, A: SharedArray, const ID: usize> Reclaim<ByCluster> for ClusterPublished<'b, A, ID> {
    type Reclaimed = Shared<'b, A, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        Shared { start: self.start, block: PhantomData }
    }
}

impl<'b, T: ClusterElement, const ID: usize> Publish<ByCluster> for SharedSlice<'b, T, ID> {
    type Published = ClusterPublishedSlice<'b, T, ID>;

    #[inline(always)]
    fn published(self) -> Self::Published {
        ClusterPublishedSlice { start: self.start, length: self.length, block: PhantomData }
    }
}

impl<T: 'static, const ID: usize> sealed::Region for ClusterPublishedSlice<'_, T, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }
}

impl<'b, T: 'static, const ID: usize> Reclaim<ByCluster> for ClusterPublishedSlice<'b, T, ID> {
    type Reclaimed = SharedSlice<'b, T, ID>;

    #[inline(always)]
    fn reclaimed(self) -> Self::Reclaimed {
        SharedSlice { start: self.start, length: self.length, block: PhantomData }
    }
}

/// Waits at the end of a kernel for all threads of the cluster, so that no block's shared memory disappears
/// while another reads it. (Threads that panicked are not waited for. If all threads of a block panicked, the
/// hardware does not define what others read of its memory; the panic is recorded by then.)
///
/// # Safety
/// All threads of the cluster end with this call.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn leave_cluster() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: passed on.
    unsafe {
        source::leave()
    }
}
