//! [`SharedSlice`]: shared memory whose length the launch gives.

use core::marker::PhantomData;
use core::ops::Deref;

use crate::thread::Thread;

/// A slice in the shared memory of a block in its write phase: like [`Shared`](super::Shared), but the launch
/// gives its length in elements (CUDA's `extern __shared__`, and the size in bytes of the launch).
///
/// Element `i` belongs to thread `i % threads` of the block.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Turns blocks of any size around.
/// #[kernel]
/// pub fn reverse(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut tile: SharedSlice<u32>) {
///     let i = t.index();
///     tile.fill_with(&t, |_| x[i.get()]);
///     let tile = t.publish(tile);
///     if let Some(y) = y.get_mut(i) {
///         *y = tile[tile.len() - 1 - t.thread_rank() as usize];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1, 2, 3, 4, 5, 6])?;
/// let mut y = stream.zeros(6)?;
/// kernels::reverse(&stream, Grid::new(2, 3), &x, &mut y, 3)?; // 3 elements in each block
/// assert_eq!(stream.download(&y)?, [3, 2, 1, 6, 5, 4]);
/// # Ok(()) }
/// ```
///
/// More or fewer elements than threads:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// A histogram of bytes with as many bins as the launch says.
/// #[kernel]
/// pub fn histogram(
///     t: Thread<1>, x: &[u8], counts: &[DeviceAtomic<u32>], mut bins: SharedSlice<DeviceAtomic<u32>>,
/// ) {
///     let (bins_in_all, has_none) = (bins.len(), bins.is_empty());
///     for (_place, bin) in bins.iter_mut(&t) {
///         *bin = DeviceAtomic::new(0);
///     }
///     let bins = t.publish(bins);
///     for i in t.grid_stride(if has_none { 0 } else { x.len() }) {
///         bins[usize::from(x[i.get()]) % bins_in_all].fetch_add(1, atomic::Ordering::Relaxed);
///     }
///     t.sync_threads();
///     for bin in t.block_stride(bins_in_all) {
///         counts[bin].fetch_add(bins[bin].load(atomic::Ordering::Relaxed), atomic::Ordering::Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..100).collect::<Vec<u8>>())?;
/// let mut counts = stream.zeros(3)?;
/// kernels::histogram(&stream, Grid::new(2, 2), &x, counts.as_atomic(), 3)?;
/// assert_eq!(stream.download(&counts)?, [34, 33, 33]);
/// # Ok(()) }
/// ```
pub struct SharedSlice<'b, T: 'static, const ID: usize = 0> {
    pub(crate) start: *mut T,
    pub(crate) length: usize,
    pub(crate) block: PhantomData<&'b mut T>,
}

/// A slice in the shared memory of a block in its read phase; it dereferences to `[T]`.
///
/// See [`SharedSlice`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::PublishedSlice;
///
/// /// What a thread finds `distance` places further, around the end.
/// fn further<const ID: usize>(t: &Thread<1>, all: &PublishedSlice<u32, ID>, distance: usize) -> u32 {
///     all[(t.thread_rank() as usize + distance) % all.len()]
/// }
///
/// /// Turns the elements of each block by `distance` places.
/// #[kernel]
/// pub fn turn(t: Thread<1>, distance: u32, mut x: DisjointSlice<u32>, mut tile: SharedSlice<u32>) {
///     let mine = x.get_mut(t.index()).map_or(0, |x| *x);
///     tile.fill_with(&t, |_| mine);
///     let tile = t.publish(tile);
///     if let Some(x) = x.get_mut(t.index()) {
///         *x = further(&t, &tile, distance as usize);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[1, 2, 3, 4, 5, 6])?;
/// kernels::turn(&stream, Grid::new(2, 3), 2, &mut x, 3)?;
/// assert_eq!(stream.download(&x)?, [3, 1, 2, 6, 4, 5]);
/// # Ok(()) }
/// ```
pub struct PublishedSlice<'b, T: 'static, const ID: usize = 0> {
    pub(super) start: *mut T,
    pub(super) length: usize,
    pub(super) block: PhantomData<&'b T>,
}

impl<T: 'static, const ID: usize> SharedSlice<'_, T, ID> {
    /// The region of `length` elements that starts at `start`.
    ///
    /// # Safety
    /// As for `Shared::from_raw`, for `length` elements, which are [`SharedElement`](super::SharedElement)s.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw(start: *mut T, length: usize) -> Self {
        SharedSlice { start, length, block: PhantomData }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The first of the thread's own elements; `None` if there are fewer elements than threads before it.
    #[inline(always)]
    pub fn get_mut<const R: usize>(&mut self, thread: &Thread<'_, R>) -> Option<&mut T> {
        let number = thread.thread_rank() as usize;
        if number >= self.length {
            return None;
        }
        // SAFETY: in bounds; no other thread has this number, no thread reads while the region is written,
        // and this thread's access is exclusive by `&mut self`, whose borrow the result keeps.
        Some(unsafe { &mut *self.start.add(number) })
    }

    /// The thread's own elements with their indices.
    #[inline(always)]
    pub fn iter_mut<const R: usize>(&mut self, thread: &Thread<'_, R>) -> SharedSliceIter<'_, T> {
        SharedSliceIter {
            start: self.start,
            next: thread.thread_rank() as usize,
            end: self.length,
            stride: thread.block_threads() as usize,
            region: PhantomData,
        }
    }

    /// Writes `value(index)` to every element, each by the thread that owns it. All threads of the block call
    /// it, each for its own part.
    #[inline(always)]
    pub fn fill_with<const R: usize>(&mut self, thread: &Thread<'_, R>, mut value: impl FnMut(usize) -> T) {
        let (mut number, stride) = (thread.thread_rank() as usize, thread.block_threads() as usize);
        while number < self.length {
            let value = value(number);
            // SAFETY: in bounds; the number belongs to this thread alone, and no thread reads while the
            // region is written. Elements need no dropping.
            unsafe { self.start.add(number).write(value) };
            number += stride;
        }
    }

    /// The region's address, for accesses that the phases cannot express, as
    /// [`Shared::as_mut_ptr`](super::Shared::as_mut_ptr).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// What the first thread of a block writes, whichever places they are: here a list that ends with 0.
    /// #[kernel]
    /// pub fn divisors(t: Thread<1>, n: u32, mut y: DisjointSlice<u32>, mut list: SharedSlice<u32>) {
    ///     let (start, room) = (list.as_mut_ptr(), list.len());
    ///     if t.thread_rank() == 0 {
    ///         for (k, divisor) in (1..=n).filter(|d| n % d == 0).chain([0]).take(room).enumerate() {
    ///             // SAFETY: below the length; the other threads come to the barrier without writing.
    ///             unsafe { start.add(k).write(divisor) };
    ///         }
    ///     }
    ///     let list = t.publish(list);
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = list[t.thread_rank() as usize];
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.zeros(5)?;
    /// kernels::divisors(&stream, Grid::new(1, 5), 10, &mut y, 5)?;
    /// assert_eq!(stream.download(&y)?, [1, 2, 5, 10, 0]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.start
    }
}

impl<T: 'static, const ID: usize> Deref for PublishedSlice<'_, T, ID> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: as for `Published`, for `length` elements.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }
}

/// A thread's own elements of a [`SharedSlice`], with their indices.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::shared::SharedSliceIter;
///
/// /// Squares of the places.
/// fn squares(elements: SharedSliceIter<u32>) {
///     elements.for_each(|(place, element)| *element = (place * place) as u32);
/// }
///
/// #[kernel]
/// pub fn sum_of_squares(t: Thread<1>, mut y: DisjointSlice<u32>, mut table: SharedSlice<u32>) {
///     squares(table.iter_mut(&t));
///     let table = t.publish(table);
///     if let Some(y) = y.get_mut(t.index()) {
///         *y = table.iter().sum();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut y = stream.zeros(4)?;
/// kernels::sum_of_squares(&stream, Grid::new(1, 4), &mut y, 10)?; // 10 elements, 4 threads
/// assert_eq!(stream.download(&y)?, [285; 4]);
/// # Ok(()) }
/// ```
pub struct SharedSliceIter<'s, T> {
    start: *mut T,
    next: usize,
    end: usize,
    stride: usize,
    region: PhantomData<&'s mut T>,
}

impl<'s, T> Iterator for SharedSliceIter<'s, T> {
    type Item = (usize, &'s mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next;
        if number >= self.end {
            return None;
        }
        self.next += self.stride;
        // SAFETY: in bounds; numbers that are equal modulo the number of threads in the block belong to
        // this thread alone, each is given out once, and the region is borrowed for as long.
        Some((number, unsafe { &mut *self.start.add(number) }))
    }
}
