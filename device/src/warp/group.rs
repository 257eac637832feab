//! Groups of lanes found at run time: those that take a branch together, hold the same label, or are named by
//! a mask.

use core::marker::PhantomData;

use super::reduce::Redux;
use super::{Exchange, Members, Tile, Word32, shuffle, source};

/// A group of threads of a warp that is determined at run time (cooperative groups' `coalesced_group`): from
/// [`Tile::coalesced`], [`Tile::labeled_partition`], [`Tile::binary_partition`] or [`Tile::masked`].
///
/// Ranks count the group's threads from 0 in lane order. As for a [`Tile`], all threads of the group must
/// call an operation together. That is checked at run time, because the group is unknown before: if a thread
/// is missing or names another group, the kernel panics on a GPU (`Error::KernelPanic`), and the CPU device
/// reports `KernelError::WarpDivergence`. A check takes six instructions, one of them `match.any.sync`;
/// consecutive operations without a branch between them share one check.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
///
/// /// Keeps the positive elements, in any order: one atomic addition for those of a warp that come to it together.
/// #[kernel]
/// pub fn filter(t: Thread<1>, x: &[i32], kept: &[DeviceAtomic<i32>], count: &[DeviceAtomic<u32>]) {
///     let Some(&x) = x.get(t.index().get()) else { return };
///     if x > 0 {
///         let warp = t.warp();
///         let group = warp.coalesced();
///         let first = if group.elect() { count[0].fetch_add(group.size(), Relaxed) } else { 0 };
///         let place = group.shuffle(first, 0) + group.rank();
///         kept[place as usize].store(x, Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(-50..50).collect::<Vec<i32>>())?;
/// let (mut kept, mut count) = (stream.zeros(100)?, stream.zeros(1)?);
/// kernels::filter(&stream, Grid::cover(100), &x, kept.as_atomic(), count.as_atomic())?;
/// assert_eq!(stream.download(&count)?, [49]);
/// let mut kept = stream.download(&kept)?;
/// kept.sort();
/// assert_eq!(kept[51..], (1..50).collect::<Vec<i32>>());
/// # Ok(()) }
/// ```
///
/// A group cannot leave its thread:
///
/// ```compile_fail,E0277
/// fn sent<T: Send>() {}
/// sent::<ferrogrid_device::warp::CoalescedGroup>();
/// ```
pub struct CoalescedGroup<'t> {
    /// Includes the calling thread's lane.
    mask: u32,
    lane: u32,
    #[cfg(not(target_arch = "nvptx64"))]
    lanes: super::native::Lanes<'t>,
    /// Neither `Send` nor `Sync`: a lane belongs to its thread.
    stays: PhantomData<(&'t (), *mut ())>,
}

impl<'t, const N: usize> Tile<'t, N> {
    /// The threads of the tile that make this call together (cooperative groups' `coalesced_threads()`, PTX
    /// `activemask`). Where threads diverge, compiler and device decide which they are: some of those that
    /// took the same path, including this one. [`CoalescedGroup`] has an example.
    #[track_caller]
    #[inline(always)]
    pub fn coalesced(&self) -> CoalescedGroup<'t> {
        self.group(self.active_mask())
    }

    /// The threads of the tile that pass the same bits as this one (cooperative groups' `labeled_partition`,
    /// PTX `match.any.sync`); all threads of the tile make the call. Labels of 32 or 64 bits take one
    /// instruction.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// Sums by key: one atomic addition for each key that a warp has, whatever the keys are.
    /// #[kernel(block = 64)]
    /// pub fn sums(t: Thread<1>, keys: &[u32], x: &[u32], sums: &[DeviceAtomic<u32>]) {
    ///     let (i, warp) = (t.index().get(), t.warp());
    ///     let group = warp.labeled_partition(keys[i]);
    ///     let sum = group.reduce(x[i], |a, b| a + b);
    ///     if group.elect() {
    ///         sums[keys[i] as usize].fetch_add(sum, Relaxed);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let keys = stream.upload(&(0..64).map(|i| i % 3).collect::<Vec<u32>>())?;
    /// let x = stream.upload(&(0..64).collect::<Vec<u32>>())?;
    /// let mut sums = stream.zeros(3)?;
    /// kernels::sums(&stream, Grid::cover(64), &keys, &x, sums.as_atomic())?;
    /// assert_eq!(stream.download(&sums)?, [693, 651, 672]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn labeled_partition<T: Exchange>(&self, label: T) -> CoalescedGroup<'t> {
        self.group(source::match_any(self, shuffle::words(label)))
    }

    /// The threads of the tile that pass the same predicate as this one (cooperative groups'
    /// `binary_partition`, PTX `vote.sync.ballot`); all threads of the tile make the call.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The even elements of each 32 first, then the odd ones; each part stays in order.
    /// #[kernel(block = 32)]
    /// pub fn part(t: Thread<1>, mut x: DisjointSlice<u32>) {
    ///     let (warp, mine) = (t.warp(), x.get_mut(t.index()).map_or(0, |x| *x));
    ///     let is_odd = mine % 2 == 1;
    ///     let group = warp.binary_partition(is_odd);
    ///     let place = if is_odd { 32 - group.size() + group.rank() } else { group.rank() };
    ///     let mut got = 0;
    ///     for lane in 0..32 {
    ///         let (other, its_place) = (warp.shuffle(mine, lane), warp.shuffle(place, lane));
    ///         got = if its_place == warp.lane() { other } else { got };
    ///     }
    ///     if let Some(x) = x.get_mut(t.index()) {
    ///         *x = got;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(0..32).map(|i| i / 2 * 3).collect::<Vec<u32>>())?;
    /// kernels::part(&stream, Grid::cover(32), &mut x)?;
    /// let x = stream.download(&x)?;
    /// assert_eq!((&x[..4], &x[16..20]), (&[0, 0, 6, 6][..], &[3, 3, 9, 9][..]));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn binary_partition(&self, predicate: bool) -> CoalescedGroup<'t> {
        let brought_true = source::ballot(self, predicate);
        // Not by a vote of the threads with `false` only.
        let brought_false = self.mask() & source::existing(self) & !brought_true;
        self.group(if predicate { brought_true } else { brought_false })
    }

    /// The existing threads of the tile that `mask` names, lane 0 of the warp lowest (the mask of CUDA's
    /// `__shfl_sync()`, `__ballot_sync()` and so on); `None` in a thread that is not among them. All of them
    /// must pass the same mask, and the group's operations wait for all of them.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Lanes 0, 1, 4 and 5 of each 8 add up what they hold; the others leave theirs as it is.
    /// #[kernel]
    /// pub fn some(t: Thread<1>, mut x: DisjointSlice<u32>) {
    ///     let (warp, mine) = (t.warp(), x.get_mut(t.index()).map_or(0, |x| *x));
    ///     if let Some(group) = warp.tile::<8>().masked(0x3333_3333) {
    ///         let sum = group.reduce_add(mine);
    ///         if let Some(x) = x.get_mut(t.index()) {
    ///             *x = sum;
    ///         }
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(0..16).collect::<Vec<u32>>())?;
    /// kernels::some(&stream, Grid::new(1, 16), &mut x)?;
    /// assert_eq!(stream.download(&x)?, [10, 10, 2, 3, 10, 10, 6, 7, 42, 42, 10, 11, 42, 42, 14, 15]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn masked(&self, mask: u32) -> Option<CoalescedGroup<'t>> {
        let mask = mask & self.mask() & source::existing(self);
        (mask >> self.lane() & 1 == 1).then(|| self.group(mask))
    }

    /// The group of the lanes of `mask`, which includes this thread's.
    #[inline(always)]
    fn group(&self, mask: u32) -> CoalescedGroup<'t> {
        CoalescedGroup {
            mask,
            lane: self.lane(),
            #[cfg(not(target_arch = "nvptx64"))]
            lanes: self.lanes,
            stays: PhantomData,
        }
    }
}

impl Members for CoalescedGroup<'_> {
    #[inline(always)]
    fn mask(&self) -> u32 {
        self.mask
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    fn lanes(&self) -> super::native::Lanes<'_> {
        self.lanes
    }

    #[track_caller]
    #[inline(always)]
    fn combined<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        self.reduce(value, operation)
    }
}

impl<'t> CoalescedGroup<'t> {
    /// The lanes of the group as a warp mask.
    #[inline(always)]
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// The number of threads in the group (cooperative groups' `num_threads()`).
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.mask.count_ones()
    }

    /// The thread's lane in the warp, 0 to 31 (PTX `%laneid`).
    #[inline(always)]
    pub fn lane(&self) -> u32 {
        self.lane
    }

    /// The thread's rank in the group, from 0 (cooperative groups' `thread_rank()`).
    #[inline(always)]
    pub fn rank(&self) -> u32 {
        (self.mask & self.below()).count_ones()
    }

    /// `true` in one thread of the group: the first (cooperative groups' `invoke_one`).
    #[inline(always)]
    pub fn elect(&self) -> bool {
        self.mask & self.below() == 0
    }

    /// The threads of this group that pass the same bits as this one; see [`Tile::labeled_partition`].
    #[track_caller]
    #[inline(always)]
    pub fn labeled_partition<T: Exchange>(&self, label: T) -> CoalescedGroup<'t> {
        self.part(source::match_any(self, shuffle::words(label)))
    }

    /// The threads of this group that pass the same predicate as this one; see [`Tile::binary_partition`].
    #[track_caller]
    #[inline(always)]
    pub fn binary_partition(&self, predicate: bool) -> CoalescedGroup<'t> {
        let brought_true = source::ballot(self, predicate);
        self.part(if predicate { brought_true } else { self.mask & !brought_true })
    }

    /// Waits for all threads of the group (CUDA's `__syncwarp()` with a mask, PTX `bar.warp.sync`).
    /// Afterwards all of them see what they wrote before.
    #[track_caller]
    #[inline(always)]
    pub fn sync(&self) {
        source::sync(self);
    }

    /// Which threads of the group pass `true`: one bit each by rank, the group's first thread lowest
    /// (cooperative groups' `ballot`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Votes among every third thread.
    /// #[kernel(block = 32)]
    /// pub fn votes(t: Thread<1>, x: &[i32], mut y: DisjointSlice<[u32; 2]>) {
    ///     let (i, warp) = (t.index(), t.warp());
    ///     if let Some(group) = warp.masked(0b001_001_001_001) {
    ///         let votes = [group.ballot(x[i.get()] < 0), group.ballot_lanes(x[i.get()] < 0)];
    ///         if let Some(y) = y.get_mut(i) {
    ///             *y = votes;
    ///         }
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..32).map(|i| i - 6).collect::<Vec<i32>>())?;
    /// let mut y = stream.upload(&[[0; 2]; 32])?;
    /// kernels::votes(&stream, Grid::cover(32), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?[9], [0b0011, 0b001_001]); // lanes 0 and 3 of 0, 3, 6 and 9
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn ballot(&self, predicate: bool) -> u32 {
        by_rank(source::ballot(self, predicate), self.mask)
    }

    /// Which threads of the group pass `true`, as a warp mask (CUDA's `__ballot_sync()`, PTX
    /// `vote.sync.ballot`): one instruction, where [`CoalescedGroup::ballot`] takes some sixty.
    #[track_caller]
    #[inline(always)]
    pub fn ballot_lanes(&self, predicate: bool) -> u32 {
        source::ballot(self, predicate)
    }

    /// Whether all threads of the group pass `true` (CUDA's `__all_sync()`, PTX `vote.sync.all`).
    #[track_caller]
    #[inline(always)]
    pub fn all(&self, predicate: bool) -> bool {
        source::all(self, predicate)
    }

    /// Whether any thread of the group passes `true` (CUDA's `__any_sync()`, PTX `vote.sync.any`).
    #[track_caller]
    #[inline(always)]
    pub fn any(&self, predicate: bool) -> bool {
        source::any(self, predicate)
    }

    /// Which threads of the group pass the same bits as this one: one bit each by rank (cooperative groups'
    /// `match_any`).
    #[track_caller]
    #[inline(always)]
    pub fn match_any<T: Exchange>(&self, value: T) -> u32 {
        by_rank(source::match_any(self, shuffle::words(value)), self.mask)
    }

    /// Whether all threads of the group pass the same bits (cooperative groups' `match_all`).
    #[track_caller]
    #[inline(always)]
    pub fn match_all<T: Exchange>(&self, value: T) -> bool {
        source::match_any(self, shuffle::words(value)) == self.mask
    }

    /// The value of the thread with this rank in the group (cooperative groups' `shfl`, PTX `shfl.sync.idx`);
    /// the thread's own value if there is no such thread.
    #[track_caller]
    #[inline(always)]
    pub fn shuffle<T: Exchange>(&self, held: T, rank: u32) -> T {
        let lane = if rank < self.size() { lane_of(rank, self.mask) } else { self.lane };
        let (words, count) = shuffle::words(held);
        shuffle::value(source::shuffle_lane(self, words, count, lane))
    }

    /// The value of the thread `delta` ranks below (cooperative groups' `shfl_up`); the thread's own value if
    /// there is no such thread.
    #[track_caller]
    #[inline(always)]
    pub fn shuffle_up<T: Exchange>(&self, held: T, delta: u32) -> T {
        self.shuffle(held, self.rank().checked_sub(delta).unwrap_or(u32::MAX))
    }

    /// The value of the thread `delta` ranks above (cooperative groups' `shfl_down`); the thread's own value
    /// if there is no such thread.
    #[track_caller]
    #[inline(always)]
    pub fn shuffle_down<T: Exchange>(&self, held: T, delta: u32) -> T {
        self.shuffle(held, self.rank().saturating_add(delta))
    }

    /// Combines the values of all threads of the group in rank order by `operation`, which must be
    /// associative; every thread gets the result (cooperative groups' `reduce`). [`Tile::labeled_partition`]
    /// has an example.
    #[track_caller]
    #[inline(always)]
    pub fn reduce<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        let (rank, size) = (self.rank(), self.size());
        let mut value = value;
        let mut distance = 1;
        while distance < size {
            // The other half of the pair, all of whose threads hold the same by now.
            let half = (rank ^ distance) & !(distance - 1);
            let other = self.shuffle(value, half);
            if half < size {
                let first = rank & distance == 0;
                value = if first { operation(value, other) } else { operation(other, value) };
            }
            distance *= 2;
        }
        value
    }

    /// Combines the values of this thread and those of lower rank by `operation`, which must be associative
    /// (cooperative groups' `inclusive_scan`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Running sums within the elements that have the same key, in each 32.
    /// #[kernel(block = 32)]
    /// pub fn running(t: Thread<1>, keys: &[u8], x: &[u32], mut y: DisjointSlice<[u32; 2]>) {
    ///     let (i, warp) = (t.index(), t.warp());
    ///     let group = warp.labeled_partition(keys[i.get()]);
    ///     let through = group.inclusive_scan(x[i.get()], |a, b| a + b);
    ///     let before = group.exclusive_scan(x[i.get()], 0, |a, b| a + b);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = [through, before];
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let keys = stream.upload(&(0..32).map(|i| i % 2).collect::<Vec<u8>>())?;
    /// let x = stream.upload(&(0..32).collect::<Vec<u32>>())?;
    /// let mut y = stream.upload(&[[0; 2]; 32])?;
    /// kernels::running(&stream, Grid::cover(32), &keys, &x, &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!((y[6], y[7]), ([12, 6], [16, 9])); // 0 + 2 + 4 + 6, 1 + 3 + 5 + 7
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn inclusive_scan<T: Exchange>(&self, value: T, operation: impl Fn(T, T) -> T) -> T {
        let (rank, size) = (self.rank(), self.size());
        let mut value = value;
        let mut distance = 1;
        while distance < size {
            let before = self.shuffle_up(value, distance);
            if rank >= distance {
                value = operation(before, value);
            }
            distance *= 2;
        }
        value
    }

    /// Combines the values of the threads of lower rank by `operation`, which must be associative; returns
    /// `first` in the first thread (cooperative groups' `exclusive_scan`).
    #[track_caller]
    #[inline(always)]
    pub fn exclusive_scan<T: Exchange>(&self, value: T, first: T, operation: impl Fn(T, T) -> T) -> T {
        let before = self.shuffle_up(self.inclusive_scan(value, operation), 1);
        if self.elect() { first } else { before }
    }

    /// A subgroup, which includes this thread.
    #[inline(always)]
    fn part(&self, mask: u32) -> CoalescedGroup<'t> {
        CoalescedGroup { mask, ..*self }
    }

    /// The lanes below this thread's.
    #[inline(always)]
    fn below(&self) -> u32 {
        (1 << self.lane) - 1
    }
}

macro_rules! reductions {
    ($($name:ident $operation:ident $what:literal $instruction:literal;)*) => {
        impl CoalescedGroup<'_> { $(
            #[doc = concat!(
                $what, " of the threads of the group; every thread gets it (PTX `redux.sync.", $instruction,
                "` where the architecture has it, from `sm_80` on): as [`Tile::", stringify!($name), "`]."
            )]
            #[track_caller]
            #[inline(always)]
            pub fn $name<T: Word32>(&self, value: T) -> T {
                source::redux(self, Redux::$operation, value)
            }
        )* }
    };
}

reductions! {
    reduce_add Add "The sum, wrapping, of the values" "add";
    reduce_min Min "The least of the values" "min";
    reduce_max Max "The greatest of the values" "max";
    reduce_and And "The bitwise AND of the values" "and";
    reduce_or Or "The bitwise OR of the values" "or";
    reduce_xor Xor "The bitwise XOR of the values" "xor";
}

/// The lane whose rank in `mask` is `rank`, which is below the number of its bits.
#[inline(always)]
fn lane_of(rank: u32, mask: u32) -> u32 {
    if rank == 0 {
        return mask.trailing_zeros();
    }
    let (mut rank, mut lane) = (rank, 0);
    let mut width = 16;
    while width > 0 {
        let low = (mask >> lane & ((1 << width) - 1)).count_ones();
        if rank >= low {
            rank -= low;
            lane += width;
        }
        width /= 2;
    }
    lane
}

/// The bits of `x` at the positions of `mask`, moved together (Hacker's Delight, `compress`).
#[inline(always)]
fn by_rank(x: u32, mask: u32) -> u32 {
    let (mut x, mut mask) = (x & mask, mask);
    let mut gaps = !mask << 1;
    let mut distance = 1;
    while distance < 32 {
        // Bit `i`: whether an odd number of places below it is free.
        let mut parity = gaps;
        for shift in [1, 2, 4, 8, 16] {
            parity ^= parity << shift;
        }
        let moved = parity & mask;
        mask = mask ^ moved | moved >> distance;
        let bits = x & moved;
        x = x ^ bits | bits >> distance;
        gaps &= !parity;
        distance *= 2;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::{by_rank, lane_of};

    #[test]
    fn ranks_and_lanes_are_counted_in_masks() {
        let mut mask = 1_u32;
        for round in 0..1000_u32 {
            mask = mask.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) | u32::from(round == 0);
            let mask = [mask, mask & mask >> 7, u32::MAX, 1 << (round % 32)][round as usize % 4];
            let x = mask.rotate_left(11) ^ round;
            let mut expected = 0;
            for (rank, lane) in (0..32).filter(|lane| mask >> lane & 1 == 1).enumerate() {
                assert_eq!(lane_of(rank as u32, mask), lane, "rank {rank} of {mask:#x}");
                expected |= (x >> lane & 1) << rank;
            }
            assert_eq!(by_rank(x, mask), expected, "{x:#x} of {mask:#x}");
        }
    }
}
