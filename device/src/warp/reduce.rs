//! Reductions and scans over the threads of a tile or a block, with any associative operation; operands stay
//! in the order of the threads.

use super::{Exchange, Tile, source};
use crate::shared::{Scratch, Shared, SharedElement};
use crate::thread::Thread;

impl<const N: usize> Tile<'_, N> {
    /// Combines the values of all threads of the tile by `operation`, which must be associative; every thread
    /// gets the result (cooperative groups' `reduce`). Threads that the last warp of a block lacks are
    /// skipped.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The sums of 32 elements each.
    /// #[kernel(block = 32)]
    /// pub fn sums(t: Thread<1>, x: &[f32], mut y: DisjointRows<f32>) {
    ///     let sum = t.warp().reduce(x[t.index().get()], |a, b| a + b);
    ///     y.fill_with(&t, |_| sum);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.fill(0.5_f32, 64)?;
    /// let mut y = stream.zeros(2)?;
    /// kernels::sums(&stream, Grid::cover(64), &x, y.view_2d_mut(1, 2)?)?;
    /// assert_eq!(stream.download(&y)?, [16.0, 16.0]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn reduce<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        let (rank, present) = (self.rank(), self.present());
        // The same in all tiles of the warp, so that its lanes stay together.
        let is_whole = source::block_threads(self) % 32 == 0;
        let mut value = value;
        let mut distance = 1;
        while distance < Self::SIZE {
            let (other, exists) = if is_whole {
                (self.shuffle_xor(value, distance), true)
            } else {
                // The other half of the pair, all of whose threads hold the same by now.
                let half = (rank ^ distance) & !(distance - 1);
                (self.shuffle(value, half), half < present)
            };
            if exists {
                let first = rank & distance == 0;
                value = if first { operation(value, other) } else { operation(other, value) };
            }
            distance *= 2;
        }
        value
    }

    /// Combines the values of this thread and those before it in the tile by `operation`, which must be
    /// associative (cooperative groups' `inclusive_scan`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Running sums and running maxima within each 4 neighbouring elements.
    /// #[kernel]
    /// pub fn running(t: Thread<1>, x: &[u32], mut sums: DisjointSlice<u32>, mut maxima: DisjointSlice<u32>) {
    ///     let (i, tile) = (t.index(), t.warp().tile::<4>());
    ///     let sum = tile.inclusive_scan(x[i.get()], |a, b| a + b);
    ///     let maximum = tile.inclusive_scan(x[i.get()], u32::max);
    ///     if let (Some(sums), Some(maxima)) = (sums.get_mut(i), maxima.get_mut(i)) {
    ///         (*sums, *maxima) = (sum, maximum);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&[3, 1, 4, 1, 5, 9, 2, 6])?;
    /// let (mut sums, mut maxima) = (stream.zeros(8)?, stream.zeros(8)?);
    /// kernels::running(&stream, Grid::new(1, 8), &x, &mut sums, &mut maxima)?;
    /// assert_eq!(stream.download(&sums)?, [3, 4, 8, 9, 5, 14, 16, 22]);
    /// assert_eq!(stream.download(&maxima)?, [3, 3, 4, 4, 5, 9, 9, 9]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn inclusive_scan<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        let rank = self.rank();
        let mut value = value;
        let mut distance = 1;
        while distance < Self::SIZE {
            let before = self.shuffle_up(value, distance);
            if rank >= distance {
                value = operation(before, value);
            }
            distance *= 2;
        }
        value
    }

    /// Combines the values of the threads before this one in the tile by `operation`, which must be
    /// associative; returns `first` in the first thread (cooperative groups' `exclusive_scan`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Where each thread's `count` elements begin if the warp's threads write theirs one after the other.
    /// #[kernel(block = 32)]
    /// pub fn starts(t: Thread<1>, counts: &[u32], mut starts: DisjointSlice<u32>) {
    ///     let i = t.index();
    ///     let start = t.warp().exclusive_scan(counts[i.get()], 0, |a, b| a + b);
    ///     if let Some(place) = starts.get_mut(i) {
    ///         *place = start;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let counts = stream.upload(&(0..32).collect::<Vec<u32>>())?;
    /// let mut starts = stream.zeros(32)?;
    /// kernels::starts(&stream, Grid::cover(32), &counts, &mut starts)?;
    /// assert_eq!(stream.download(&starts)?[..5], [0, 0, 1, 3, 6]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn exclusive_scan<T: Exchange>(&self, value: T, first: T, operation: impl Fn(T, T) -> T) -> T {
        let before = self.shuffle_up(self.inclusive_scan(value, operation), 1);
        if self.rank() == 0 { first } else { before }
    }
}

impl<const N: usize> Tile<'_, N> {
    /// The sum of the values of all threads of the tile, wrapping; every thread gets it (CUDA's
    /// `__reduce_add_sync()`, PTX `redux.sync.add` where the architecture has it, from `sm_80` on).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Sum, least and greatest of 32 elements: one instruction each from compute capability 8.0 on.
    /// #[kernel(block = 32)]
    /// pub fn figures(t: Thread<1>, x: &[i32], mut y: DisjointRows<i32>) {
    ///     let (warp, x) = (t.warp(), x[t.index().get()]);
    ///     let figures = [warp.reduce_add(x), warp.reduce_min(x), warp.reduce_max(x)];
    ///     y.fill_with(&t, |column| figures[column]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(-10..22).collect::<Vec<i32>>())?;
    /// let mut y = stream.zeros(3)?;
    /// kernels::figures(&stream, Grid::cover(32), &x, y.view_2d_mut(3, 1)?)?;
    /// assert_eq!(stream.download(&y)?, [176, -10, 21]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn reduce_add<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Add, value)
    }

    /// The least of the values of all threads of the tile; every thread gets it (CUDA's
    /// `__reduce_min_sync()`, PTX `redux.sync.min` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_min<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Min, value)
    }

    /// The greatest of the values of all threads of the tile; every thread gets it (CUDA's
    /// `__reduce_max_sync()`, PTX `redux.sync.max` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_max<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Max, value)
    }

    /// The bitwise AND of the values of all threads of the tile; every thread gets it (CUDA's
    /// `__reduce_and_sync()`, PTX `redux.sync.and` where the architecture has it).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The bits that all of a warp's numbers have, that any has, and that an odd number of them has.
    /// #[kernel(block = 32)]
    /// pub fn bits(t: Thread<1>, x: &[u32], mut y: DisjointRows<u32>) {
    ///     let (warp, x) = (t.warp(), x[t.index().get()]);
    ///     let bits = [warp.reduce_and(x), warp.reduce_or(x), warp.reduce_xor(x)];
    ///     y.fill_with(&t, |column| bits[column]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = [0b0011; 32];
    /// x[7] = 0b1110;
    /// let (x, mut y) = (stream.upload(&x)?, stream.zeros(3)?);
    /// kernels::bits(&stream, Grid::cover(32), &x, y.view_2d_mut(3, 1)?)?;
    /// assert_eq!(stream.download(&y)?, [0b0010, 0b1111, 0b1101]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn reduce_and<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::And, value)
    }

    /// The bitwise OR of the values of all threads of the tile; every thread gets it (CUDA's
    /// `__reduce_or_sync()`, PTX `redux.sync.or` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_or<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Or, value)
    }

    /// The bitwise XOR of the values of all threads of the tile; every thread gets it (CUDA's
    /// `__reduce_xor_sync()`, PTX `redux.sync.xor` where the architecture has it).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_xor<T: Word32>(&self, value: T) -> T {
        source::redux(self, Redux::Xor, value)
    }
}

/// An operation for which some architectures have a reduction instruction.
#[derive(Clone, Copy)]
pub(super) enum Redux {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// A 32-bit integer: `u32`, `i32`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::warp::Word32;
///
/// /// The least and the greatest of what the threads of a warp hold.
/// fn range<T: Word32>(warp: &Warp, x: T) -> [T; 2] {
///     [warp.reduce_min(x), warp.reduce_max(x)]
/// }
///
/// #[kernel(block = 32)]
/// pub fn ranges(t: Thread<1>, x: &[i32], mut y: DisjointRows<i32>) {
///     let range = range(&t.warp(), x[t.index().get()]);
///     y.fill_with(&t, |column| range[column]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(-20..12).collect::<Vec<i32>>())?;
/// let mut y = stream.zeros(2)?;
/// kernels::ranges(&stream, Grid::cover(32), &x, y.view_2d_mut(2, 1)?)?;
/// assert_eq!(stream.download(&y)?, [-20, 11]);
/// # Ok(()) }
/// ```
pub trait Word32: Exchange + sealed::Word {}

impl Word32 for u32 {}
impl Word32 for i32 {}

mod sealed {
    /// How a number is passed to the instruction, and what the instruction does.
    pub trait Word: Copy + Ord {
        const SIGNED: bool;
        fn bits(self) -> u32;
        fn of(bits: u32) -> Self;
    }

    impl Word for u32 {
        const SIGNED: bool = false;
        #[inline(always)]
        fn bits(self) -> u32 {
            self
        }
        #[inline(always)]
        fn of(bits: u32) -> u32 {
            bits
        }
    }

    impl Word for i32 {
        const SIGNED: bool = true;
        #[inline(always)]
        fn bits(self) -> u32 {
            self as u32
        }
        #[inline(always)]
        fn of(bits: u32) -> i32 {
            bits as i32
        }
    }
}

impl Redux {
    /// The operation on two values, for architectures without the instruction.
    #[inline(always)]
    pub(super) fn apply<T: Word32>(self, a: T, b: T) -> T {
        match self {
            Redux::Add => T::of(a.bits().wrapping_add(b.bits())),
            Redux::Min => a.min(b),
            Redux::Max => a.max(b),
            Redux::And => T::of(a.bits() & b.bits()),
            Redux::Or => T::of(a.bits() | b.bits()),
            Redux::Xor => T::of(a.bits() ^ b.bits()),
        }
    }
}

/// Reductions and scans over a block. They contain barriers, so all threads must reach them together, which
/// the build step proves.
impl<const R: usize> Thread<'_, R> {
    /// Combines the values of all threads of the block by `operation`, which must be associative; every
    /// thread gets the result (CUB's `BlockReduce`). `scratch` is a region of its own, `mut scratch:
    /// Shared<Scratch<f32>>`, and can be reused.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The greatest element of each row.
    /// #[kernel(block = 128)]
    /// pub fn greatest(t: Thread<1>, x: Plane<f32>, mut y: DisjointRows<f32>, mut scratch: Shared<Scratch<f32>>) {
    ///     let row = &x[t.block_idx()[0] as usize];
    ///     let mine = t.block_stride(row.len()).fold(f32::MIN, |a, i| a.max(row[i]));
    ///     let greatest = t.block_reduce(&mut scratch, mine, f32::max);
    ///     y.fill_with(&t, |_| greatest);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..2000).map(|x| x as f32).collect::<Vec<_>>())?;
    /// let mut y = stream.zeros(2)?;
    /// kernels::greatest(&stream, Grid::new(2, 128), x.view_2d(1000, 2)?, y.view_2d_mut(1, 2)?)?;
    /// assert_eq!(stream.download(&y)?, [999.0, 1999.0]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_reduce<T: Exchange + SharedElement, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        value: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let (total, warps) = (self.warp().reduce(value, &operation), self.block_threads().div_ceil(32));
        self.with_warp_totals(scratch, total, |totals| fold(totals, warps, &operation))
    }

    /// Combines the values of this thread and those before it in the block by `operation`, which must be
    /// associative (CUB's `BlockScan`). `scratch` is a region of its own, `mut scratch:
    /// Shared<Scratch<f32>>`, and can be reused.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The greatest element so far, within each block of 64.
    /// #[kernel(block = 64)]
    /// pub fn records(t: Thread<1>, x: &[i32], mut y: DisjointSlice<i32>, mut scratch: Shared<Scratch<i32>>) {
    ///     let i = t.index();
    ///     let greatest = t.block_inclusive_scan(&mut scratch, x[i.get()], i32::max);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = greatest;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..64).map(|i| i * 37 % 64).collect::<Vec<i32>>())?; // 0, 37, 10, 47, ...
    /// let mut y = stream.zeros(64)?;
    /// kernels::records(&stream, Grid::cover(64), &x, &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!((&y[..7], y[63]), (&[0, 37, 37, 47, 47, 57, 57][..], 63));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_inclusive_scan<T: Exchange + SharedElement, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        value: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let (warp, number) = (self.warp(), self.thread_rank() / 32);
        let mine = warp.inclusive_scan(value, &operation);
        let total = warp.shuffle(mine, warp.present() - 1);
        self.with_warp_totals(scratch, total, |totals| match number {
            0 => mine,
            _ => operation(fold(totals, number, &operation), mine),
        })
    }

    /// Combines the values of the threads before this one in the block by `operation`, which must be
    /// associative; returns `first` in the first thread (CUB's `BlockScan`). `scratch` is a region of its
    /// own, `mut scratch: Shared<Scratch<f32>>`, and can be reused.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Keeps what is not 0 of the block's 128 elements, one after the other.
    /// #[kernel(block = 128)]
    /// pub fn compact(t: Thread<1>, x: &[u32], kept: &[DeviceAtomic<u32>], mut scratch: Shared<Scratch<u32>>) {
    ///     let mine = x[t.index().get()];
    ///     let place = t.block_exclusive_scan(&mut scratch, u32::from(mine != 0), 0, |a, b| a + b);
    ///     if mine != 0 {
    ///         kept[place as usize].store(mine, atomic::Ordering::Relaxed);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..128).map(|x| x % 2 * x).collect::<Vec<u32>>())?;
    /// let mut kept = stream.zeros(64)?;
    /// kernels::compact(&stream, Grid::cover(128), &x, kept.as_atomic())?;
    /// assert_eq!(stream.download(&kept)?[..3], [1, 3, 5]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_exclusive_scan<T: Exchange + SharedElement, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        value: T,
        first: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let (warp, number) = (self.warp(), self.thread_rank() / 32);
        let mine = warp.inclusive_scan(value, &operation);
        let (total, within) = (warp.shuffle(mine, warp.present() - 1), warp.shuffle_up(mine, 1));
        self.with_warp_totals(scratch, total, |totals| match (number, warp.lane()) {
            (0, 0) => first,
            (0, _) => within,
            (_, 0) => fold(totals, number, &operation),
            _ => operation(fold(totals, number, &operation), within),
        })
    }

    /// Calls `read` with the values of the warps, by warp number.
    #[track_caller]
    #[inline(always)]
    fn with_warp_totals<T: Exchange + SharedElement, U, const ID: usize>(
        &self,
        scratch: &mut Shared<'_, Scratch<T>, ID>,
        total: T,
        read: impl FnOnce(&[T; 32]) -> U,
    ) -> U {
        let (rank, region) = (self.thread_rank(), scratch.as_mut_ptr());
        if rank % 32 == 0 {
            // SAFETY: a block has at most 32 warps. Only this function writes such a region, the last call's
            // readers have passed its last barrier, and only this thread writes this place.
            unsafe { region.cast::<T>().add(rank as usize / 32).write(total) };
        }
        self.agree_on(scratch);
        self.sync_threads();
        // SAFETY: all writing ended at the barrier, and elements take any bits.
        let result = read(unsafe { &*region }.places());
        // No thread writes the region again before all have read.
        self.sync_threads();
        result
    }
}

/// The first `count` (not 0) of the totals, combined in order.
#[inline(always)]
fn fold<T: Copy>(totals: &[T; 32], count: u32, operation: impl Fn(T, T) -> T) -> T {
    let mut result = totals[0];
    for &total in &totals[1..(count as usize).min(32)] {
        result = operation(result, total);
    }
    result
}
