//! [`Double`]: double buffering, two halves of a region of which one is written while the other is read.

use core::marker::PhantomData;

use super::{Shared, SharedArray, sealed, without_elements};
use crate::thread::Thread;

/// Memory for a [`DoubleShared`], two arrays of one type: `tiles: Shared<Double<[f32; 256]>>`. No thread owns
/// any of it until [`Shared::into_double`].
#[repr(C)]
pub struct Double<A> {
    halves: [A; 2],
}

without_elements!([A: SharedArray] Double<A>, A::Element);

/// Double-buffered shared memory: each thread writes its own elements of one half while all read the other.
/// [`Thread::swap_halves`] swaps them, with one barrier for both (the two `__shared__` buffers of a software
/// pipeline in CUDA).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The product of two matrices of `16 * steps` rows and columns: the next tiles are loaded while these are multiplied,
/// /// and each step has one barrier.
/// #[kernel(block = [16, 16])]
/// pub fn product(
///     t: Thread<2>, steps: usize, a: Plane<f32>, b: Plane<f32>, mut c: DisjointSlice<f32, 2>,
///     tiles: Shared<Double<[[[f32; 16]; 16]; 2]>>,
/// ) {
///     let [column, row] = t.index().position();
///     let [x, y] = [column % 16, row % 16];
///     let load = |step: usize, [which, i, k]: [usize; 3]| match which {
///         0 => a[row - y + i][16 * step + k],
///         _ => b[16 * step + i][column - x + k],
///     };
///     let mut tiles = tiles.into_double();
///     tiles.next_mut().fill_with(&t, |place| load(0, place));
///     t.swap_halves(&mut tiles);
///     let mut sum = 0.0;
///     for step in 0..steps {
///         let (current, next) = tiles.both();
///         if step + 1 < steps {
///             next.fill_with(&t, |place| load(step + 1, place));
///         }
///         for k in 0..16 {
///             sum += current[0][y][k] * current[1][k][x];
///         }
///         t.swap_halves(&mut tiles);
///     }
///     if let Some(c) = c.get_mut(t.index()) {
///         *c = sum;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let a = stream.upload(&(0..48 * 48).map(|i| (i % 7) as f32).collect::<Vec<_>>())?;
/// let twice = stream.upload(&(0..48 * 48).map(|i| if i % 49 == 0 { 2.0 } else { 0.0 }).collect::<Vec<f32>>())?;
/// let mut c = stream.zeros(48 * 48)?;
/// let (a_plane, b_plane) = (a.view_2d(48, 48)?, twice.view_2d(48, 48)?);
/// kernels::product(&stream, Grid::cover([48, 48]), 3, a_plane, b_plane, c.view_2d_mut(48, 48)?)?;
/// assert_eq!(stream.download(&c)?, (0..48 * 48).map(|i| 2.0 * (i % 7) as f32).collect::<Vec<_>>());
/// # Ok(()) }
/// ```
///
/// References to the half that is read end with the swap:
///
/// ```compile_fail,E0502
/// # use ferrogrid::prelude::*;
/// #[ferrogrid::module(host_only)]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     #[kernel(block = 32)]
///     pub fn kept(t: Thread<1>, tiles: Shared<Double<[u32; 32]>>, mut y: DisjointSlice<u32>) {
///         let mut tiles = tiles.into_double();
///         let first = &tiles.current()[0];
///         t.swap_halves(&mut tiles);
///         if let Some(y) = y.get_mut(t.index()) {
///             *y = *first;
///         }
///     }
/// }
/// ```
pub struct DoubleShared<'b, A: SharedArray, const ID: usize = 0> {
    start: *mut A,
    /// The half that is written, 0 or 1: the same in all threads of the block, because all make each swap.
    written: usize,
    /// The half that is written, as lent to the thread.
    next: Shared<'b, A, ID>,
    block: PhantomData<&'b mut A>,
}

impl<'b, A: SharedArray, const ID: usize> Shared<'b, Double<A>, ID> {
    /// Splits the memory into two halves, of which the first is written first. Both start with arbitrary
    /// bits.
    #[inline(always)]
    pub fn into_double(self) -> DoubleShared<'b, A, ID> {
        let start = self.start.cast::<A>();
        // SAFETY: the first half of this region, which `self` gives up.
        let next = unsafe { Shared::from_raw(start) };
        DoubleShared { start, written: 0, next, block: PhantomData }
    }
}

impl<'b, A: SharedArray, const ID: usize> DoubleShared<'b, A, ID> {
    /// The half that is written, each thread its own elements.
    #[inline(always)]
    pub fn next_mut(&mut self) -> &mut Shared<'b, A, ID> {
        self.both().1
    }

    /// The half that all threads read: the one that was written before the last [`Thread::swap_halves`].
    #[inline(always)]
    pub fn current(&self) -> &A {
        // SAFETY: the other half of the region. The last swap's barrier has ended all writes there, and no
        // thread writes before the next swap, which borrows `self` mutably. Elements take any bits.
        unsafe { &*self.start.add(1 - self.written) }
    }

    /// The half that all threads read, and the one that is written.
    #[inline(always)]
    pub fn both(&mut self) -> (&A, &mut Shared<'b, A, ID>) {
        // SAFETY: a half of the region that this owns; what was lent before is no longer borrowed. By index, so that LLVM knows it
        // is in shared memory.
        self.next = unsafe { Shared::from_raw(self.start.add(self.written)) };
        // SAFETY: as in `current`; the two are different halves.
        let current = unsafe { &*self.start.add(1 - self.written) };
        (current, &mut self.next)
    }
}

impl<A: SharedArray, const ID: usize> sealed::Region for DoubleShared<'_, A, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }
}

impl<const R: usize> Thread<'_, R> {
    /// Waits for all threads of the block, then swaps the halves: all read the one that was written, and
    /// write the other (CUDA's `__syncthreads()` between the stages of a double buffer). [`DoubleShared`] has
    /// an example.
    #[track_caller]
    #[inline(always)]
    pub fn swap_halves<A: SharedArray, const ID: usize>(&self, halves: &mut DoubleShared<'_, A, ID>) {
        self.sync_for(halves);
        halves.written = 1 - halves.written;
    }
}
