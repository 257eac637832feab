//! Shared memory whose length the launch gives. It must not know where it lies.

use core::marker::PhantomData;
use core::ops::Deref;

use super::element::SharedElement;
use crate::thread::Thread;

/// A slice in the shared memory of a block, while each thread writes what is its own: as
/// [`Shared`](super::Shared), with a length that is an argument of the launch.
///
/// Element `i` belongs to thread number `i % threads` of the block.
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
pub struct SharedSlice<'b, T: SharedElement, const ID: usize = 0> {
    pub(crate) start: *mut T,
    pub(crate) length: usize,
    pub(crate) block: PhantomData<&'b mut T>,
}

/// A slice in the shared memory of a block, while all threads read it; it dereferences to `[T]`.
///
///
/// See [`SharedSlice`].
pub struct PublishedSlice<'b, T: SharedElement, const ID: usize = 0> {
    pub(super) start: *mut T,
    pub(super) length: usize,
    pub(super) block: PhantomData<&'b T>,
}

impl<T: SharedElement, const ID: usize> SharedSlice<'_, T, ID> {
    /// The region of `length` elements that starts at `start`.
    ///
    /// # Safety
    /// As for `Shared::from_raw`, for `length` elements.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw(start: *mut T, length: usize) -> Self {
        SharedSlice { start, length, block: PhantomData }
    }

    /// How many elements there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
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
        // SAFETY: in bounds; no other thread has this number, nobody reads while the region is written,
        // and this thread's access is exclusive by `&mut self`, whose borrow the result keeps.
        Some(unsafe { &mut *self.start.add(number) })
    }

    /// The thread's own elements with their places.
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

    /// Writes `value(place)` to every element, each by the thread that owns it; the threads of a block do
    /// it together, each its part.
    #[inline(always)]
    pub fn fill_with<const R: usize>(&mut self, thread: &Thread<'_, R>, mut value: impl FnMut(usize) -> T) {
        let (mut number, stride) = (thread.thread_rank() as usize, thread.block_threads() as usize);
        while number < self.length {
            let value = value(number);
            // SAFETY: in bounds; the number belongs to this thread alone, and nobody reads while the region
            // is written. Elements need no dropping.
            unsafe { self.start.add(number).write(value) };
            number += stride;
        }
    }

    /// The region's address, for what the phases cannot express.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.start
    }
}

impl<T: SharedElement, const ID: usize> Deref for PublishedSlice<'_, T, ID> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: as for `Published`, for `length` elements.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }
}

/// The elements of a [`SharedSlice`] that are a thread's own, with their places.
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
