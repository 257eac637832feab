//! Warp operations: the 32 threads of a warp, or tiles of 16, 8, 4, 2 or 1 of them, exchange values without
//! memory. `shuffle` moves values, `reduce` has reductions and scans, `exchange` and `sort` rearrange items,
//! `group` has groups of lanes found at run time, and `packed` the bytes of a value that travels; `ptx` and
//! `native` execute them.

mod exchange;
mod group;
#[cfg(not(target_arch = "nvptx64"))]
mod native;
pub(crate) mod packed;
#[cfg(target_arch = "nvptx64")]
mod ptx;
mod reduce;
mod shuffle;
mod sort;

use core::marker::PhantomData;

pub use group::CoalescedGroup;
#[cfg(not(target_arch = "nvptx64"))]
use native as source;
#[cfg(target_arch = "nvptx64")]
use ptx as source;
pub use reduce::Word32;
pub use shuffle::Exchange;
pub(crate) use shuffle::{value as value_of, words as words_of};

use crate::thread::Thread;

/// The 32 threads of a block that form a warp; the last warp of a block may have fewer.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// What a warp's threads hold, added up: a function of the module, called by kernels of any rank.
/// fn sum(warp: &Warp, x: f32) -> f32 {
///     warp.reduce(x, |a, b| a + b)
/// }
///
/// #[kernel(block = 64)]
/// pub fn sums(t: Thread<1>, x: &[f32], sums: &[DeviceAtomic<f32>]) {
///     let (i, warp) = (t.index().get(), t.warp());
///     let sum = sum(&warp, x[i]);
///     if warp.lane() == 0 {
///         sums[i / 32].store(sum, atomic::Ordering::Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..64).map(|x| x as f32).collect::<Vec<_>>())?;
/// let mut sums = stream.zeros(2)?;
/// kernels::sums(&stream, Grid::cover(64), &x, sums.as_atomic())?;
/// assert_eq!(stream.download(&sums)?, [496.0, 1520.0]);
/// # Ok(()) }
/// ```
pub type Warp<'t> = Tile<'t, 32>;

/// `N` neighbouring threads of a warp, `N` = 1, 2, 4, 8, 16, 32 (cooperative groups'
/// `thread_block_tile`): [`Thread::warp`] for 32, [`Tile::tile`] for fewer.
///
/// All threads of the tile must call an operation together. Where the build step can prove that on the
/// compiled code, an operation is its instruction and nothing else. It knows what the threads of a warp have
/// in common: parameters, `t.thread_rank() / 32`, comparisons of ranks with multiples of 32, votes and
/// [`Tile::broadcast`]. In grids of rank 2 and 3 the block shape must be fixed for that (`#[kernel(block =
/// [32, 8])]`).
///
/// # Panics
/// What is not proven is checked at run time. If a thread of the tile is missing at the call, the kernel
/// panics on a GPU (`Error::KernelPanic`), and the CPU device reports `KernelError::WarpDivergence`. The check
/// compares with the threads that are active (PTX `activemask`). It takes five instructions, and some twenty
/// more in a block's last warp if that may be partial. A thread that has returned is missing, too.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The greatest of each 8 neighbouring elements.
/// #[kernel]
/// pub fn greatest_of_eight(t: Thread<1>, x: &[i32], mut y: DisjointSlice<i32>) {
///     let i = t.index();
///     let tile = t.warp().tile::<8>();
///     let greatest = tile.reduce(x[i.get()], i32::max);
///     if let Some(y) = y.get_mut(i) {
///         *y = greatest;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..32).collect::<Vec<i32>>())?;
/// let mut y = stream.zeros(32)?;
/// kernels::greatest_of_eight(&stream, Grid::cover(32).with_block(32), &x, &mut y)?;
/// let y = stream.download(&y)?;
/// assert_eq!((y[0], y[7], y[8]), (7, 7, 15));
/// # Ok(()) }
/// ```
pub struct Tile<'t, const N: usize> {
    #[cfg(not(target_arch = "nvptx64"))]
    lanes: native::Lanes<'t>,
    /// Neither `Send` nor `Sync`: a lane belongs to its thread.
    stays: PhantomData<(&'t (), *mut ())>,
}

/// Lanes of one warp that take part in an operation.
trait Members {
    /// Their bits in the warp's mask, including the calling thread's.
    fn mask(&self) -> u32;

    /// The calling thread as a lane.
    #[cfg(not(target_arch = "nvptx64"))]
    fn lanes(&self) -> native::Lanes<'_>;

    /// The values of all of them, combined in lane order.
    fn combined<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T;
}

impl<const N: usize> Members for Tile<'_, N> {
    #[inline(always)]
    fn mask(&self) -> u32 {
        Tile::mask(self)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    fn lanes(&self) -> native::Lanes<'_> {
        self.lanes
    }

    #[track_caller]
    #[inline(always)]
    fn combined<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        self.reduce(value, operation)
    }
}

impl<const R: usize> Thread<'_, R> {
    /// The warp of the thread (cooperative groups' `tiled_partition<32>(this_thread_block())`). 32 threads
    /// with consecutive [ranks](Thread::thread_rank) form a warp; see [`Warp`] and [`Tile`].
    #[inline(always)]
    pub fn warp(&self) -> Warp<'_> {
        Tile {
            #[cfg(not(target_arch = "nvptx64"))]
            lanes: native::Lanes::of(self),
            stays: PhantomData,
        }
    }
}

impl<'t, const N: usize> Tile<'t, N> {
    /// The number of threads in a tile.
    pub const SIZE: u32 = {
        assert!(N.is_power_of_two() && N <= 32, "a tile has 1, 2, 4, 8, 16 or 32 threads");
        N as u32
    };

    /// The tile of `M` threads that this thread is in (cooperative groups' `tiled_partition<M>`).
    #[inline(always)]
    pub fn tile<const M: usize>(&self) -> Tile<'t, M> {
        const { assert!(M <= N, "a tile is divided into smaller ones") };
        Tile {
            #[cfg(not(target_arch = "nvptx64"))]
            lanes: self.lanes,
            stays: PhantomData,
        }
    }

    /// The thread's lane in the warp, 0 to 31 (PTX `%laneid`).
    #[inline(always)]
    pub fn lane(&self) -> u32 {
        source::lane(self)
    }

    /// The thread's rank in the tile, from 0 (cooperative groups' `thread_rank()`).
    #[inline(always)]
    pub fn rank(&self) -> u32 {
        self.lane() % Self::SIZE
    }

    /// The lanes of the tile as a warp mask.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The lanes of each thread's tile of 8, those of them that are in a branch, and the thread's rank in the tile.
    /// #[kernel(block = 32)]
    /// pub fn lanes(t: Thread<1>, mut y: DisjointSlice<[u32; 3]>) {
    ///     let tile = t.warp().tile::<8>();
    ///     let active = if tile.lane() % 2 == 0 { tile.active_mask() } else { 0 };
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = [tile.mask(), active, tile.rank()];
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.zeros(32)?;
    /// kernels::lanes(&stream, Grid::cover(32), &mut y)?;
    /// assert_eq!(stream.download(&y)?[10], [0xFF00, 0x5500, 2]); // on a GPU the second may have fewer bits
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn mask(&self) -> u32 {
        let all = u32::MAX >> (32 - Self::SIZE);
        all << (self.lane() & !(Self::SIZE - 1) & 31)
    }

    /// Whether the warp has 32 threads: the last one of a block may have fewer.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        source::existing(self) == u32::MAX
    }

    /// The lanes of the tile that are active at the call, as a warp mask with lane 0 lowest (CUDA's
    /// `__activemask()`, PTX `activemask`). Where threads diverge, compiler and device decide which lanes are
    /// active.
    #[track_caller]
    #[inline(always)]
    pub fn active_mask(&self) -> u32 {
        source::active_mask(self) & self.mask()
    }

    /// Waits for all threads of the tile (CUDA's `__syncwarp()`, PTX `bar.warp.sync`). Afterwards all of them
    /// see what they wrote before.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// The threads of a warp leave something for their neighbours, in memory that all of them share.
    /// #[kernel(block = 32)]
    /// pub fn neighbours(t: Thread<1>, left: &[DeviceAtomic<u32>], mut y: DisjointSlice<u32>) {
    ///     let (i, warp) = (t.index(), t.warp());
    ///     left[i.get()].store(warp.lane() + 100, Relaxed);
    ///     warp.sync();
    ///     let neighbour = left[i.get() ^ 1].load(Relaxed);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = neighbour;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (mut left, mut y) = (stream.zeros(32)?, stream.zeros(32)?);
    /// kernels::neighbours(&stream, Grid::cover(32), left.as_atomic(), &mut y)?;
    /// assert_eq!(stream.download(&y)?[..4], [101, 100, 103, 102]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn sync(&self) {
        source::sync(self);
    }

    /// Which threads of the tile pass `true`: one bit each, the tile's first thread lowest (CUDA's
    /// `__ballot_sync()`, PTX `vote.sync.ballot`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Where each element that is not 0 goes if the others of its warp are left out.
    /// #[kernel(block = 32)]
    /// pub fn places(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
    ///     let (i, warp) = (t.index(), t.warp());
    ///     let kept = warp.ballot(x[i.get()] != 0);
    ///     let before = kept & ((1 << warp.rank()) - 1);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = before.count_ones();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..32).map(|x| x % 2).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(32)?;
    /// kernels::places(&stream, Grid::cover(32), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..6], [0, 0, 1, 1, 2, 2]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn ballot(&self, predicate: bool) -> u32 {
        self.seen_from_first(source::ballot(self, predicate))
    }

    /// Whether all threads of the tile pass `true` (CUDA's `__all_sync()`, PTX `vote.sync.all`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Whether all elements of a tile of 4 are 0, whether any is, and whether all are the same.
    /// #[kernel(block = 32)]
    /// pub fn votes(t: Thread<1>, x: &[u32], mut y: DisjointSlice<[bool; 3]>) {
    ///     let (tile, x) = (t.warp().tile::<4>(), x[t.index().get()]);
    ///     let votes = [tile.all(x == 0), tile.any(x == 0), tile.match_all(x)];
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = votes;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = [0_u32; 32];
    /// x[4..12].copy_from_slice(&[0, 5, 0, 5, 7, 7, 7, 7]);
    /// let (x, mut y) = (stream.upload(&x)?, stream.upload(&[[false; 3]; 32])?);
    /// kernels::votes(&stream, Grid::cover(32), &x, &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!([y[0], y[4], y[8]], [[true, true, true], [false, true, false], [false, false, true]]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn all(&self, predicate: bool) -> bool {
        source::all(self, predicate)
    }

    /// Whether any thread of the tile passes `true` (CUDA's `__any_sync()`, PTX `vote.sync.any`); used like
    /// [`Tile::all`].
    #[track_caller]
    #[inline(always)]
    pub fn any(&self, predicate: bool) -> bool {
        source::any(self, predicate)
    }

    /// Which threads of the tile pass the same bits as this one: one bit each, the tile's first thread lowest
    /// (CUDA's `__match_any_sync()`, PTX `match.any.sync`). Values of 32 or 64 bits take one instruction.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// How often each element occurs in its warp.
    /// #[kernel(block = 32)]
    /// pub fn occurrences(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
    ///     let i = t.index();
    ///     let same = t.warp().match_any(x[i.get()]);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = same.count_ones();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..32).map(|x| x % 3).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(32)?;
    /// kernels::occurrences(&stream, Grid::cover(32), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..3], [11, 11, 10]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn match_any<T: Exchange>(&self, value: T) -> u32 {
        self.seen_from_first(source::match_any(self, shuffle::words(value)))
    }

    /// Which threads of the tile pass the same lowest `BITS` bits, 1 to 32 (CUB's `MatchAny`): a vote for each bit. That is faster than
    /// [`Tile::match_any`] for few bits that have many values: `match.any` takes a step for each.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// How many elements of the warp are even, or odd, as this one is.
    /// #[kernel(block = 32)]
    /// pub fn as_this(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
    ///     let same = t.warp().match_bits::<1>(x[t.index().get()]);
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = same.count_ones();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..32).map(|x| x * x % 3).collect::<Vec<u32>>())?; // 0, 1, 1, 0, 1, 1, ...
    /// let mut y = stream.zeros(32)?;
    /// kernels::as_this(&stream, Grid::cover(32), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..3], [11, 21, 21]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn match_bits<const BITS: u32>(&self, value: u32) -> u32 {
        const { assert!(BITS >= 1 && BITS <= 32, "match_bits compares 1 to 32 bits") };
        self.seen_from_first(source::match_bits::<BITS>(self, value))
    }

    /// Whether all threads of the tile pass the same bits (CUDA's `__match_all_sync()`).
    #[track_caller]
    #[inline(always)]
    pub fn match_all<T: Exchange>(&self, value: T) -> bool {
        source::match_any(self, shuffle::words(value)) == source::members(self)
    }

    /// `true` in one thread of the tile: the first (cooperative groups' `invoke_one`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// One atomic operation a warp, in place of 32.
    /// #[kernel]
    /// pub fn count(t: Thread<1>, x: &[u32], even: &[DeviceAtomic<u32>]) {
    ///     let warp = t.warp();
    ///     let found = warp.ballot(x[t.index().get()] % 2 == 0).count_ones();
    ///     if warp.elect() {
    ///         even[0].fetch_add(found, Relaxed);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..64).collect::<Vec<u32>>())?;
    /// let mut even = stream.zeros(1)?;
    /// kernels::count(&stream, Grid::new(1, 64), &x, even.as_atomic())?;
    /// assert_eq!(stream.download(&even)?, [32]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn elect(&self) -> bool {
        self.rank() == 0
    }

    /// The number of threads of the tile that exist: in the last warp of a block some may be missing.
    #[track_caller]
    #[inline(always)]
    fn present(&self) -> u32 {
        let threads = source::block_threads(self);
        if threads % 32 == 0 {
            return Self::SIZE;
        }
        source::members(self).count_ones()
    }

    /// A warp mask, shifted so that the tile's first thread is bit 0.
    #[inline(always)]
    fn seen_from_first(&self, mask: u32) -> u32 {
        (mask & self.mask()) >> (self.lane() & !(Self::SIZE - 1) & 31)
    }
}
