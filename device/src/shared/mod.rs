//! Shared memory of a block, written and read in phases.
//!
//! A region is written or read, never both. While it is written, each thread reaches only its own elements. A
//! barrier turns it into one that all threads read; the next barrier turns it back. The type says which phase
//! a region is in, so a program with a race does not compile.
//!
//! [`Shared`] is here. `array` has the shapes of regions and `element` what they may hold; `slice` is a
//! region whose length the launch gives, `stages` a region whose parts take turns, `tiles` ones that tensor maps
//! copy from and to, and `claim` elements that threads claim. `phase` has the changes of phase, `copy`
//! asynchronous copies from global memory, `mbarrier` what counts those of tiles, `address` the layout of all
//! regions of a kernel.

mod address;
mod array;
mod claim;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
mod copy;
mod element;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
pub(crate) mod mbarrier;
mod phase;
mod slice;
mod stages;
pub(crate) mod tiles;

use core::marker::PhantomData;
use core::ops::Deref;

#[cfg(target_arch = "nvptx64")]
pub(crate) use address::in_shared;
pub use address::{ALIGNMENT, array_region, offset_after, region};
pub(crate) use array::without_elements;
pub use array::{ArrayElement, Padded, PaddedRow, Scratch, SharedArray, assert_shared_element};
pub use claim::{ClaimScratch, Claims};
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
pub(crate) use copy::within_shared;
pub use element::{AnyBits, SharedElement};
pub(crate) use phase::sealed;
pub use phase::{ByBlock, ByCluster, Publish, Reclaim, Retyped};
pub use slice::{PublishedSlice, SharedSlice, SharedSliceIter};
pub use stages::{Advance, StagedShared, Stages};
pub use tiles::array::BoxArray;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a", not(feature = "panic-trap")))]
pub(crate) use tiles::hopper::__ferrogrid_end_tiles;
pub use tiles::output::{OutputBox, OutputTile};
pub use tiles::{BoxStages, CopiedBox, CopiedTile, StagedBoxes, StagedTiles, TileStages};

#[cfg(target_arch = "nvptx64")]
use crate::compiler::threading::is_below;
use crate::thread::Thread;

/// An array in the shared memory of a block (CUDA's `__shared__`) in its write phase: each thread writes its
/// own elements.
///
/// A kernel takes it as a parameter, `tile: Shared<[[f32; 16]; 16]>`; the launch passes nothing for it. `A`
/// is an array of one to five dimensions, or a [`Padded`] one. Element `i`, in memory order without
/// padding, belongs to thread `i % threads` of the block. Its initial content is arbitrary bits; the CPU
/// device writes a recognisable pattern.
///
/// [`Thread::publish`] makes it readable by all threads. `ID` tells the regions of a kernel apart; a function
/// that takes a region is generic over it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Each thread writes its element, then all read their neighbour's.
/// #[kernel(block = 64)]
/// pub fn rotate(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut all: Shared<[u32; 64]>) {
///     let i = t.index();
///     if let Some(place) = all.get_mut(&t) {
///         *place = x[i.get()];
///     }
///     let all = t.publish(all); // waits for the block
///     if let Some(y) = y.get_mut(i) {
///         *y = all[(t.thread_rank() as usize + 1) % 64];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..64).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(64)?;
/// kernels::rotate(&stream, Grid::cover(64), &x, &mut y)?; // nothing is passed for `all`
/// let y = stream.download(&y)?;
/// assert_eq!((y[0], y[63]), (1, 0));
/// # Ok(()) }
/// ```
pub struct Shared<'b, A, const ID: usize = 0> {
    pub(crate) start: *mut A,
    pub(crate) block: PhantomData<&'b mut A>,
}

/// An array in the shared memory of a block in its read phase: all threads read it; see [`Shared`].
///
/// It dereferences to the array. [`Thread::reclaim`] makes it writable again.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::Published;
///
/// /// The mean of an element and those beside it, around the end.
/// fn smoothed<const ID: usize>(all: &Published<[f32; 64], ID>, place: usize) -> f32 {
///     (all[(place + 63) % 64] + all[place] + all[(place + 1) % 64]) / 3.0
/// }
///
/// #[kernel(block = 64)]
/// pub fn smooth(t: Thread<1>, mut x: DisjointSlice<f32>, mut tile: Shared<[f32; 64]>) {
///     let mine = x.get_mut(t.index()).map_or(0.0, |x| *x);
///     tile.fill_with(&t, |_| mine);
///     let tile = t.publish(tile);
///     if let Some(x) = x.get_mut(t.index()) {
///         *x = smoothed(&tile, t.thread_rank() as usize);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&(0..64).map(|i| [6.0, 3.0].get(i).copied().unwrap_or(0.0)).collect::<Vec<_>>())?;
/// kernels::smooth(&stream, Grid::cover(64), &mut x)?;
/// let x = stream.download(&x)?;
/// assert_eq!((&x[..4], x[63]), (&[3.0, 3.0, 1.0, 0.0][..], 2.0));
/// # Ok(()) }
/// ```
pub struct Published<'b, A: SharedArray, const ID: usize = 0> {
    start: *mut A,
    block: PhantomData<&'b A>,
}

impl<A, const ID: usize> Shared<'_, A, ID> {
    /// The region that starts at `start`.
    ///
    /// # Safety
    /// `A` must be a [`SharedArray`] of [`SharedElement`]s. For `'b`, `start` must be valid for reads and writes of an
    /// `A` in the shared memory of the calling thread's block, and the same for all threads of the block. Nothing else
    /// may reach it except the one region with this `ID` that each of them creates.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw(start: *mut A) -> Self {
        Shared { start, block: PhantomData }
    }
}

impl<A: SharedArray, const ID: usize> Shared<'_, A, ID> {
    /// The first of the thread's own elements, which is the only one if the array has at most as many
    /// elements as the block has threads; `None` if the array has fewer.
    #[inline(always)]
    pub fn get_mut<const R: usize>(&mut self, thread: &Thread<'_, R>) -> Option<&mut A::Element> {
        let number = thread.thread_rank() as usize;
        if number >= A::LEN {
            return None;
        }
        // SAFETY: in bounds; no other thread has this number, no thread reads while the region is written,
        // and this thread's access is exclusive by `&mut self`, whose borrow the result keeps.
        Some(unsafe { &mut *A::element(self.start, A::own_place(thread, 0)) })
    }

    /// The thread's own elements with their indices.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Each block of 32 threads writes the squares of 0 to 99.
    /// #[kernel(block = 32)]
    /// pub fn squares(t: Thread<1>, mut rows: DisjointRows<u32>, mut tile: Shared<[u32; 100]>) {
    ///     for (place, element) in tile.iter_mut(&t) {
    ///         *element = (place * place) as u32; // places t, t + 32, t + 64, ...
    ///     }
    ///     let tile = t.publish(tile);
    ///     rows.fill_with(&t, |column| tile[column]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut rows = stream.zeros(100)?;
    /// kernels::squares(&stream, Grid::new(1, 32), rows.view_2d_mut(100, 1)?)?;
    /// assert_eq!(stream.download(&rows)?[99], 9801);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn iter_mut<const R: usize>(&mut self, thread: &Thread<'_, R>) -> SharedIter<'_, A> {
        SharedIter {
            start: self.start,
            next: thread.thread_rank() as usize,
            stride: thread.block_threads() as usize,
            region: PhantomData,
        }
    }

    /// Writes `value(index)` to every element, each by the thread that owns it. All threads of the block call
    /// it, each for its own part.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The mean of each element and the two beside it. A block of 32 needs 34; beyond the ends there is 0.
    /// #[kernel(block = 32)]
    /// pub fn smooth(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 34]>) {
    ///     let first = 32 * t.block_idx()[0] as usize;
    ///     tile.fill_with(&t, |place| x.get((first + place).wrapping_sub(1)).copied().unwrap_or(0.0));
    ///     let (tile, own) = (t.publish(tile), t.thread_rank() as usize);
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = (tile[own] + tile[own + 1] + tile[own + 2]) / 3.0;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..64).map(|x| x as f32).collect::<Vec<_>>())?;
    /// let mut y = stream.zeros(64)?;
    /// kernels::smooth(&stream, Grid::cover(64), &x, &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!((y[1], y[31], y[32], y[63]), (1.0, 31.0, 32.0, 125.0 / 3.0));
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn fill_with<const R: usize>(
        &mut self,
        thread: &Thread<'_, R>,
        mut value: impl FnMut(A::Place) -> A::Element,
    ) {
        for_own_places::<A, R>(thread, |place| {
            let value = value(place);
            // SAFETY: in bounds; the place belongs to this thread alone, and no thread reads while the
            // region is written. Elements need no dropping.
            unsafe { A::element(self.start, place).write(value) };
        });
    }

    /// The region's address, for accesses that the phases cannot express.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Reverses each 32 elements. Each warp reads only what it wrote, so it needs no barrier of the block.
    /// #[kernel(block = 64)]
    /// pub fn reverse_warps(t: Thread<1>, mut x: DisjointSlice<u32>, mut tile: Shared<[u32; 64]>) {
    ///     let (rank, places) = (t.thread_rank() as usize, tile.as_mut_ptr().cast::<u32>());
    ///     let mine = x.get_mut(t.index()).map_or(0, |x| *x);
    ///     // SAFETY: one of 64 places, and this thread's alone.
    ///     unsafe { places.add(rank).write(mine) };
    ///     t.warp().sync();
    ///     // SAFETY: written by a thread of this warp before it waited, and not written again.
    ///     let other = unsafe { places.add(rank ^ 31).read() };
    ///     if let Some(x) = x.get_mut(t.index()) {
    ///         *x = other;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(0..64).collect::<Vec<u32>>())?;
    /// kernels::reverse_warps(&stream, Grid::cover(64), &mut x)?;
    /// let x = stream.download(&x)?;
    /// assert_eq!((x[0], x[31], x[32]), (31, 0, 63));
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut A {
        self.start
    }
}

#[cfg(not(target_arch = "nvptx64"))]
fn is_below(number: usize, end: usize) -> bool {
    number < end
}

/// Calls `f` with the index of each element that belongs to the thread.
#[inline(always)]
fn for_own_places<A: SharedArray, const R: usize>(thread: &Thread<'_, R>, mut f: impl FnMut(A::Place)) {
    let (rank, stride) = (thread.thread_rank() as usize, thread.block_threads() as usize);
    // Counted from 0, so that LLVM knows the number of rounds if it knows the number of threads.
    let mut first = 0;
    while first < A::LEN {
        if is_below(first + rank, A::LEN) {
            f(A::own_place(thread, first));
        }
        first += stride;
    }
}

impl<'b, A: SharedArray, const ID: usize> Published<'b, A, ID> {
    /// Reuses the memory as an array of another type from the next [`Thread::reclaim`] on, with undefined
    /// content. A larger type is a compile error.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The sum of each block's 64 elements, and then their places by size, in the same memory.
    /// #[kernel(block = 64)]
    /// pub fn both(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 64]>) {
    ///     let i = t.index();
    ///     tile.fill_with(&t, |_| x[i.get()]);
    ///     let numbers = t.publish(tile);
    ///     let sum: f32 = numbers.iter().sum();
    ///     let place = numbers.iter().filter(|other| **other < x[i.get()]).count() as u32;
    ///     let mut places: Shared<[u32; 64], _> = t.reclaim(numbers.retype()); // was `[f32; 64]`
    ///     places.fill_with(&t, |_| place);
    ///     let places = t.publish(places);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = sum + places[0] as f32;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..64).rev().map(|x| x as f32).collect::<Vec<_>>())?;
    /// let mut y = stream.zeros(64)?;
    /// kernels::both(&stream, Grid::cover(64), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?, [2016.0 + 63.0; 64]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn retype<B: SharedArray<Element: SharedElement>>(self) -> Retyped<'b, B, ID> {
        const {
            assert!(size_of::<B>() <= size_of::<A>(), "the new type of a region of shared memory is larger");
            assert!(align_of::<B>() <= address::ALIGNMENT);
            assert!(
                !A::HAS_STATE && !B::HAS_STATE,
                "stages and outputs of tensor maps, such as `TileStages` and `OutputTile`, are types of a parameter's whole region"
            );
        };
        // SAFETY: `Retyped` is for `reclaim` only; after that barrier no thread reads the region as `A`, and
        // memory of the block is valid as any type of no larger size, as elements take any bits.
        unsafe { Retyped::new(self.start.cast()) }
    }
}

impl<A: SharedArray, const ID: usize> Deref for Published<'_, A, ID> {
    type Target = A;

    #[inline(always)]
    fn deref(&self) -> &A {
        // SAFETY: valid for the block's life by `Shared::from_raw`; the barrier that made this region has
        // ended all writing, and no thread writes before the barrier that takes it back, by value, from
        // every thread. Elements take any bits.
        unsafe { &*self.start }
    }
}

/// A thread's own elements of a [`Shared`], with their indices.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::SharedIter;
///
/// /// Copies a part of a plane; what is beyond its edges is 0.
/// fn load<const W: usize, const H: usize>(elements: SharedIter<[[f32; W]; H]>, x: Plane<f32>) {
///     elements.for_each(|([row, column], element)| *element = x.get(row, column).copied().unwrap_or(0.0));
/// }
///
/// /// The trace of a matrix of at most 16 by 16 elements.
/// #[kernel(block = [8, 4])]
/// pub fn trace(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>, mut tile: Shared<[[f32; 16]; 16]>) {
///     load(tile.iter_mut(&t), x);
///     let tile = t.publish(tile);
///     if let Some(y) = y.get_mut(t.index()) {
///         *y = (0..16).map(|k| tile[k][k]).sum();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, 2.0, 3.0, 4.0])?;
/// let mut y = stream.zeros(1)?;
/// kernels::trace(&stream, Grid::new([1, 1], [8, 4]), x.view_2d(2, 2)?, y.view_2d_mut(1, 1)?)?;
/// assert_eq!(stream.download(&y)?, [5.0]);
/// # Ok(()) }
/// ```
pub struct SharedIter<'s, A: SharedArray> {
    start: *mut A,
    next: usize,
    stride: usize,
    region: PhantomData<&'s mut A>,
}

impl<'s, A: SharedArray> Iterator for SharedIter<'s, A> {
    type Item = (A::Place, &'s mut A::Element);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next;
        if number >= A::LEN {
            return None;
        }
        self.next += self.stride;
        let place = A::place(number);
        // SAFETY: in bounds; numbers that are equal modulo the number of threads in the block belong to
        // this thread alone, each is given out once, and the region is borrowed for as long.
        Some((place, unsafe { &mut *A::element(self.start, place) }))
    }
}
