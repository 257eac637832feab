//! Shuffles: a thread gets the value of another thread of its tile.

use super::packed::Packed;
use super::{Tile, source};

/// A value of up to 16 bytes that threads of a warp exchange: a number, a `bool`, arrays, tuples and `Option`s of such
/// values, and structs of them with `#[derive(DeviceCopy)]`.
///
/// An `Option` takes one byte more than its value; padding takes none.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::warp::Exchange;
///
/// /// What the thread with `rank` holds, and what this one does, whatever that is.
/// fn with_that_of<T: Exchange>(warp: &Warp, rank: u32, held: T) -> [T; 2] {
///     [warp.shuffle(held, rank), held]
/// }
///
/// /// The differences of points to the first of their warp.
/// #[kernel(block = 32)]
/// pub fn from_first(t: Thread<1>, mut points: DisjointSlice<[f64; 2]>) {
///     let held = points.get_mut(t.index()).map_or([0.0; 2], |point| *point);
///     let [first, held] = with_that_of(&t.warp(), 0, held); // 16 bytes: four words
///     if let Some(point) = points.get_mut(t.index()) {
///         *point = [held[0] - first[0], held[1] - first[1]];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut points = stream.upload(&(0..32).map(|i| [f64::from(i) + 5.0, 1.0]).collect::<Vec<_>>())?;
/// kernels::from_first(&stream, Grid::cover(32), &mut points)?;
/// assert_eq!(stream.download(&points)?[31], [31.0, 0.0]);
/// # Ok(()) }
/// ```
///
/// A value and its index, as arg-reductions need them (CUB's `KeyValuePair`, `ArgMax`):
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The greatest of the elements that are not negative, and its place; `None` in warps that have none.
/// #[kernel(block = 32)]
/// pub fn arg_max(t: Thread<1>, x: &[f32], mut y: DisjointRows<i32>) {
///     let i = t.index().get();
///     let mine = x.get(i).filter(|x| **x >= 0.0).map(|x| (*x, i as i32));
///     let greatest = t.warp().reduce(mine, |a, b| match (a, b) {
///         (Some(a), Some(b)) => Some(if b.0 > a.0 { b } else { a }),
///         (a, b) => a.or(b),
///     });
///     y.fill_with(&t, |_| greatest.map_or(-1, |(_, place)| place));
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, -8.0, 6.0, 6.0])?;
/// let mut y = stream.zeros(2)?;
/// kernels::arg_max(&stream, Grid::new(2, 32), &x, y.view_2d_mut(1, 2)?)?;
/// assert_eq!(stream.download(&y)?, [2, -1]);
/// # Ok(()) }
/// ```
///
/// # Safety
/// Implemented by the derive. `put` writes at most `BYTES` bytes, all initialised, and `take` reads no more.
/// If `PLAIN` is set, these are the value's bytes in memory, and all bits are valid.
#[diagnostic::on_unimplemented(
    message = "threads of a warp cannot exchange `{Self}`",
    label = "not an `Exchange`",
    note = "values that are exchanged are numbers, `bool`, arrays, tuples and `Option`s of them, and structs of them with `#[derive(DeviceCopy)]`, of up to 16 bytes"
)]
pub unsafe trait Exchange: Copy + 'static {
    /// The size in bytes when exchanged.
    #[doc(hidden)]
    const BYTES: usize;

    /// Whether these are the value's bytes in memory, all bits of which are valid.
    #[doc(hidden)]
    const PLAIN: bool = false;

    /// Writes the value.
    ///
    /// # Safety
    /// `to` is valid for writes of `BYTES` bytes, which are initialised.
    #[doc(hidden)]
    unsafe fn put(self, to: *mut u8);

    /// Reads a value. From bytes that are no value (those of a lane that has exited) it returns some value.
    ///
    /// # Safety
    /// `from` is valid for reads of `BYTES` bytes, which are initialised.
    #[doc(hidden)]
    unsafe fn take(from: *const u8) -> Self;
}

/// Four words; a value takes the first of them.
pub(crate) type Four = [u32; 4];

/// A value's words, and their number.
pub(crate) type Words = (Four, usize);

/// The value's bytes as words, and the number of these.
#[inline(always)]
pub(crate) fn words<T: Exchange>(value: T) -> Words {
    const { assert!(T::BYTES <= Packed::MOST, "threads of a warp exchange values of up to 16 bytes") };
    let mut words = [0; 4];
    // SAFETY: 16 initialised bytes, and the value takes no more.
    unsafe { value.put(words.as_mut_ptr().cast()) };
    (words, T::BYTES.div_ceil(4))
}

#[inline(always)]
pub(crate) fn value<T: Exchange>(words: Four) -> T {
    const { assert!(T::BYTES <= Packed::MOST, "threads of a warp exchange values of up to 16 bytes") };
    // SAFETY: 16 initialised bytes, and the value takes no more.
    unsafe { T::take(words.as_ptr().cast()) }
}

/// The thread of the tile that a value comes from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// The thread with this rank, modulo the size of the tile.
    Rank(u32),
    /// The thread this many ranks below; the thread itself if there is none.
    Below(u32),
    /// The thread this many ranks above; the thread itself if there is none.
    Above(u32),
    /// The thread whose rank differs in these bits.
    Xor(u32),
}

impl<const N: usize> Tile<'_, N> {
    /// The value of the thread with this rank in the tile, modulo the tile's size (CUDA's `__shfl_sync()`,
    /// PTX `shfl.sync.idx`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The four shuffles, by threads 0 to 31 of one warp, each of which holds its number.
    /// #[kernel(block = 32)]
    /// pub fn shuffles(t: Thread<1>, mut y: DisjointSlice<[u32; 4]>) {
    ///     let warp = t.warp();
    ///     let held = warp.lane();
    ///     let got = [
    ///         warp.shuffle(held, 5),      // of thread 5, in all threads
    ///         warp.shuffle_up(held, 1),   // of the thread below
    ///         warp.shuffle_down(held, 1), // of the thread above
    ///         warp.shuffle_xor(held, 1),  // even and odd threads swap
    ///     ];
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = got;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.zeros(32)?;
    /// kernels::shuffles(&stream, Grid::cover(32), &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!(y[0], [5, 0, 1, 1]); // no thread is below thread 0, which gets its own value
    /// assert_eq!(y[9], [5, 8, 10, 8]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn shuffle<T: Exchange>(&self, held: T, rank: u32) -> T {
        self.exchange(held, Source::Rank(rank))
    }

    /// Returns the value of the tile's first thread to all of its threads, by one shuffle for each four bytes
    /// (CUDA's `__shfl_sync(.., 0)`, PTX `shfl.sync.idx`). [`Thread::broadcast`](crate::Thread::broadcast)
    /// does the same for a block.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// The first thread of each warp takes 32 places for all of its threads, and each has one of them.
    /// #[kernel(block = 64)]
    /// pub fn places(t: Thread<1>, taken: &[DeviceAtomic<u32>], mut y: DisjointSlice<u32>) {
    ///     let warp = t.warp();
    ///     let first = if warp.rank() == 0 { taken[0].fetch_add(32, Relaxed) } else { 0 };
    ///     let place = warp.broadcast(first) + warp.rank();
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = place;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (mut taken, mut y) = (stream.zeros(1)?, stream.zeros(128)?);
    /// kernels::places(&stream, Grid::cover(128), taken.as_atomic(), &mut y)?;
    /// let mut places = stream.download(&y)?;
    /// places.sort_unstable();
    /// assert_eq!(places, (0..128).collect::<Vec<u32>>());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    #[must_use]
    pub fn broadcast<T: Exchange>(&self, held: T) -> T {
        self.shuffle(held, 0)
    }

    /// The value of the thread `delta` ranks below (CUDA's `__shfl_up_sync()`, PTX `shfl.sync.up`); the
    /// thread's own value if there is no such thread. [`Tile::shuffle`] has an example.
    #[track_caller]
    #[inline(always)]
    pub fn shuffle_up<T: Exchange>(&self, held: T, delta: u32) -> T {
        self.exchange(held, Source::Below(delta))
    }

    /// The value of the thread `delta` ranks above (CUDA's `__shfl_down_sync()`, PTX `shfl.sync.down`); the
    /// thread's own value if there is no such thread. [`Tile::shuffle`] has an example.
    #[track_caller]
    #[inline(always)]
    pub fn shuffle_down<T: Exchange>(&self, held: T, delta: u32) -> T {
        self.exchange(held, Source::Above(delta))
    }

    /// The value of the thread whose rank is this one's with `bits` flipped (CUDA's `__shfl_xor_sync()`, PTX
    /// `shfl.sync.bfly`); the thread's own value if there is no such thread. [`Tile::shuffle`] has an
    /// example.
    #[track_caller]
    #[inline(always)]
    pub fn shuffle_xor<T: Exchange>(&self, held: T, bits: u32) -> T {
        self.exchange(held, Source::Xor(bits))
    }

    #[track_caller]
    #[inline(always)]
    fn exchange<T: Exchange>(&self, held: T, from: Source) -> T {
        let (words, count) = words(held);
        value(source::shuffle(self, words, count, from))
    }
}
