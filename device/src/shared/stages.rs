//! [`Stages`]: a region in stages that take turns, of which one is written while another is read, and copies into the rest are on
//! their way.

use core::marker::PhantomData;

use super::{Shared, SharedArray, SharedElement, sealed, without_elements};
use crate::element::device_copy::DeviceCopy;
use crate::thread::Thread;

/// Memory for a [`StagedShared`], `N` arrays of one type: `tiles: Shared<Stages<[f32; 256], 2>>` for a double buffer. No thread owns
/// any of it until [`Shared::into_stages`].
#[repr(C)]
pub struct Stages<A, const N: usize> {
    stages: [A; N],
}

impl<A, const N: usize> Stages<A, N> {
    const ARE_SEVERAL: () =
        assert!(N >= 2, "one stage is written while another is read: `Stages` has at least two");
}

without_elements!([A: SharedArray, const N: usize] Stages<A, N>, A::Element);

/// Shared memory in stages, a software pipeline: each thread writes its own elements of one stage while all read another. Both are
/// the next ones in turn after [`Thread::advance`], a barrier. So what is written is read `N - 1` turns later.
///
/// With two stages this is a double buffer: the stage that was written is read in the next turn. With more of them, asynchronous
/// copies from global memory ([`copy_with`](StagedShared::copy_with), PTX `cp.async`) have `N - 2` further turns to arrive. In CUDA
/// C++ these are `__shared__` buffers with `__pipeline_memcpy_async()`, or `cuda::pipeline`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The product of two matrices of `16 * steps` rows and columns: tiles arrive while those of two steps before are multiplied.
/// #[kernel(block = [16, 16])]
/// pub fn product(
///     t: Thread<2>, steps: usize, a: Plane<f32>, b: Plane<f32>, mut c: DisjointSlice<f32, 2>,
///     tiles: Shared<Stages<[[[f32; 16]; 16]; 2], 3>>,
/// ) {
///     let [column, row] = t.index().position();
///     let [x, y] = [column % 16, row % 16];
///     let mut tiles = tiles.into_stages();
///     let mut sum = 0.0;
///     for step in 0..steps + 2 {
///         if step < steps {
///             tiles.copy_with(&t, |[which, i, k]| match which {
///                 0 => a.get(row - y + i, 16 * step + k),
///                 _ => b.get(16 * step + i, column - x + k),
///             });
///         }
///         if step >= 2 {
///             let [a, b] = tiles.current(); // of step - 2
///             for k in 0..16 {
///                 sum += a[y][k] * b[k][x];
///             }
///         }
///         t.advance(&mut tiles); // the only barrier of the step
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
/// References to the stage that is read end with the turn:
///
/// ```compile_fail,E0502
/// # use ferrogrid::prelude::*;
/// #[ferrogrid::module(host_only)]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     #[kernel(block = 32)]
///     pub fn kept(t: Thread<1>, tiles: Shared<Stages<[u32; 32], 2>>, mut y: DisjointSlice<u32>) {
///         let mut tiles = tiles.into_stages();
///         let first = &tiles.current()[0];
///         t.advance(&mut tiles);
///         if let Some(y) = y.get_mut(t.index()) {
///             *y = *first;
///         }
///     }
/// }
/// ```
pub struct StagedShared<'b, A: SharedArray, const N: usize, const ID: usize = 0> {
    start: *mut A,
    /// The stage that is written: the same in all threads of the block, because all of them make each turn.
    written: usize,
    /// The stage that is written, as lent to the thread.
    next: Shared<'b, A, ID>,
    /// Whether the thread has copies into the stage that is written.
    is_copied: bool,
    block: PhantomData<&'b mut A>,
}

impl<'b, A: SharedArray, const N: usize, const ID: usize> Shared<'b, Stages<A, N>, ID> {
    /// Splits the memory into stages, of which the first is written first. All start with arbitrary bits.
    #[inline(always)]
    pub fn into_stages(self) -> StagedShared<'b, A, N, ID> {
        const { Stages::<A, N>::ARE_SEVERAL }
        let start = self.start.cast::<A>();
        // SAFETY: the first stage of this region, which `self` gives up.
        let next = unsafe { Shared::from_raw(start) };
        StagedShared { start, written: 0, next, is_copied: false, block: PhantomData }
    }
}

impl<'b, A: SharedArray, const N: usize, const ID: usize> StagedShared<'b, A, N, ID> {
    /// The stage that is written, each thread its own elements. It waits for the thread's copies into it.
    #[inline(always)]
    pub fn next_mut(&mut self) -> &mut Shared<'b, A, ID> {
        self.both().1
    }

    /// The stage that all threads read: the one that was written `N - 1` turns before.
    #[inline(always)]
    pub fn current(&self) -> &A {
        // SAFETY: another stage of the region than the one that is written. The last turn's barrier has ended all writes there, after
        // each thread had waited for its copies, and no thread writes before the next turn, which borrows `self` mutably. Elements
        // take any bits.
        unsafe { &*self.start.add(Self::after(self.written)) }
    }

    /// The stage that all threads read, and the one that is written, as by [`next_mut`](Self::next_mut).
    #[inline(always)]
    pub fn both(&mut self) -> (&A, &mut Shared<'b, A, ID>) {
        self.wait_for_own_copies();
        // SAFETY: a stage of the region that this owns; what was lent before is no longer borrowed, and no copy is in flight there. By
        // index, so that LLVM knows it is in shared memory.
        self.next = unsafe { Shared::from_raw(self.start.add(self.written)) };
        // SAFETY: as in `current`; the two are different stages.
        let current = unsafe { &*self.start.add(Self::after(self.written)) };
        (current, &mut self.next)
    }

    /// Copies `source(place)` to every element of the stage that is written, each by the thread that owns it; `None` becomes zeros.
    /// All threads of the block call it, each for its own part: for the same elements at every turn, the first one first.
    ///
    /// From `sm_80` on it does not wait for the copies (PTX `cp.async`, CUDA C++'s `__pipeline_memcpy_async()`), if elements have 4, 8
    /// or 16 bytes, are aligned to as many (`f32`, [`Aligned16`](crate::Aligned16)), and lie in global memory: those of `&[T]` and
    /// [`Plane`](crate::Plane). Elements of 16 bytes are fastest. Other copies are loads and stores, as on the CPU device.
    ///
    /// The sources are borrowed as long as the stages are used, so that nothing changes them under a copy:
    ///
    /// ```compile_fail,E0499
    /// # use ferrogrid::prelude::*;
    /// #[ferrogrid::module(host_only)]
    /// mod kernels {
    ///     use ferrogrid::device::prelude::*;
    ///
    ///     #[kernel(block = 32)]
    ///     pub fn changed(t: Thread<1>, tiles: Shared<Stages<[u32; 32], 2>>, mut y: DisjointSlice<u32>) {
    ///         let mut tiles = tiles.into_stages();
    ///         let own = y.get_mut(t.index()).map(|y| &*y);
    ///         tiles.copy_with(&t, |_| own);
    ///         if let Some(y) = y.get_mut(t.index()) {
    ///             *y = 0;
    ///         }
    ///         t.advance(&mut tiles);
    ///     }
    /// }
    /// ```
    #[inline(always)]
    pub fn copy_with<const R: usize>(
        &mut self,
        thread: &Thread<'_, R>,
        mut source: impl FnMut(A::Place) -> Option<&'b A::Element>,
    ) where
        A::Element: SharedElement + DeviceCopy,
    {
        self.wait_for_own_copies();
        // SAFETY: as in `current`, of the stage that is written.
        let stage = unsafe { self.start.add(self.written) };
        super::for_own_places::<A, R>(thread, |place| {
            // SAFETY: an element of the stage, which belongs to this thread alone. Whatever reaches it next waits for the copy: this
            // thread in `wait_for_own_copies`, the others by the barrier of a later turn, before which it has waited. Sources are
            // borrowed as long as the region; if its value is forgotten before that, no thread reads what was copied.
            unsafe { copy_element(A::element(stage, place), source(place)) };
        });
        self.is_copied = true;
    }

    #[inline(always)]
    fn wait_for_own_copies(&mut self) {
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        if self.is_copied {
            super::copy::wait_for_all();
        }
        self.is_copied = false;
    }

    /// The stage after `stage`.
    #[inline(always)]
    fn after(stage: usize) -> usize {
        if stage + 1 == N { 0 } else { stage + 1 }
    }
}

/// Copies an element, or zeros: asynchronously where that can be.
///
/// # Safety
/// As `copy::start`.
#[inline(always)]
pub(super) unsafe fn copy_element<T: SharedElement + DeviceCopy>(to: *mut T, from: Option<&T>) {
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    // SAFETY: as the caller vouches.
    if unsafe { super::copy::start(to, from) } {
        return;
    }
    // SAFETY: as the caller vouches; elements take any bits, zeros too.
    unsafe { to.write(from.map_or_else(|| core::mem::zeroed(), |from| *from)) };
}

impl<A: SharedArray, const N: usize, const ID: usize> sealed::Region for &mut StagedShared<'_, A, N, ID> {
    #[inline(always)]
    fn visit(&self, visitor: &mut impl FnMut(*const u8)) {
        visitor(self.start.cast_const().cast());
    }
}

/// Stages that take their turns together: a `&mut` [`StagedShared`] or [`StagedTiles`](super::StagedTiles), or two or three of them,
/// `(&mut a, &mut b)`.
pub trait Advance: sealed::Region {
    /// The turns before the last one whose copies need not have arrived.
    #[doc(hidden)]
    const LAG: usize;

    /// After the barrier.
    #[doc(hidden)]
    fn advance<const R: usize>(self, thread: &Thread<'_, R>);
}

impl<A: SharedArray, const N: usize, const ID: usize> Advance for &mut StagedShared<'_, A, N, ID> {
    const LAG: usize = N - 2;

    #[inline(always)]
    fn advance<const R: usize>(self, _: &Thread<'_, R>) {
        self.written = StagedShared::<A, N, ID>::after(self.written);
        self.is_copied = false;
    }
}

macro_rules! tuple {
    ($($stages:ident)*) => {
        #[allow(non_snake_case)]
        impl<$($stages: Advance),*> Advance for ($($stages,)*) {
            const LAG: usize = {
                let mut lag = usize::MAX;
                $(if $stages::LAG < lag { lag = $stages::LAG })*
                lag
            };

            #[inline(always)]
            fn advance<const R: usize>(self, thread: &Thread<'_, R>) {
                let ($($stages,)*) = self;
                $($stages.advance(thread);)*
            }
        }
    };
}

tuple!(A B);
tuple!(A B C);

impl<const R: usize> Thread<'_, R> {
    /// Waits for all threads of the block and for what the next turn reads, then each of the `stages` is the next one in turn.
    /// [`StagedShared`](crate::shared::StagedShared) has an example.
    ///
    /// Before the barrier (CUDA's `__syncthreads()`) each thread waits for its copies of all but the last `N - 2` turns (PTX
    /// `cp.async.wait_group`, CUDA C++'s `__pipeline_wait_prior()`). Several stages have one barrier: `t.advance((&mut a, &mut b))`.
    #[track_caller]
    #[inline(always)]
    pub fn advance<S: Advance>(&self, stages: S) {
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        {
            super::copy::commit();
            super::copy::wait::<S>();
        }
        self.sync_for(&stages);
        stages.advance(self);
    }
}
