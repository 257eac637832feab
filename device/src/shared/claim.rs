//! Elements of shared memory that any thread may claim and change in place: each goes to one thread between
//! two barriers.

use core::marker::PhantomData;

use super::{Shared, SharedArray, without_elements};
use crate::atomic::{Block, DeviceAtomic, Ordering};
use crate::thread::Thread;

/// Shared memory that [`Thread::with_claims`] needs besides the region: `W` words, one bit for each element.
/// No thread owns any of it, so nothing else can write there.
#[repr(C)]
pub struct ClaimScratch<const W: usize> {
    words: [DeviceAtomic<u32, Block>; W],
}

without_elements!([const W: usize] ClaimScratch<W>, u32);

/// The elements of a region, each of which one thread of the block may claim; see [`Thread::with_claims`].
pub struct Claims<'s, A: SharedArray> {
    start: *mut A,
    words: &'s [DeviceAtomic<u32, Block>],
    region: PhantomData<&'s mut A>,
}

impl<'s, A: SharedArray> Claims<'s, A> {
    /// Claims element `number`, in memory order without padding; `None` beyond the end, and if any thread of
    /// the block, including this one, has claimed it already.
    #[inline(always)]
    pub fn claim(&self, number: usize) -> Option<&'s mut A::Element> {
        if number >= A::LEN {
            return None;
        }
        let bit = 1 << (number % 32);
        if self.words[number / 32].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        // SAFETY: in bounds. The bit was not set, so no other thread has this element until the barrier at
        // the end of `with_claims`; the barrier at its start has ended earlier accesses.
        Some(unsafe { &mut *A::element(self.start, A::place(number)) })
    }
}

impl<const R: usize> Thread<'_, R> {
    /// Lets the threads of the block change elements of `region` in place, each thread those that it claims,
    /// regardless of ownership: the pairs of a butterfly, the cells around a particle. Each element is given
    /// out once per call, so overlapping claims are detected instead of racing. There is a barrier before and
    /// after: threads see what was written before, and afterwards what the claims wrote.
    ///
    /// `scratch` has one bit for each element, `Shared<ClaimScratch<8>>` for 256; fewer are a compile error.
    /// It can be reused. A claim is one atomic operation in shared memory.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The Walsh-Hadamard transform of 64 elements, in place: thread `i` changes both elements of pair `i`.
    /// #[kernel(block = 32)]
    /// pub fn transform(
    ///     t: Thread<1>, mut x: DisjointRows<f32>, mut tile: Shared<[f32; 64]>, mut scratch: Shared<ClaimScratch<2>>,
    /// ) {
    ///     for (column, x) in x.iter_mut(&t) {
    ///         tile.iter_mut(&t).filter(|(place, _)| *place == column).for_each(|(_, element)| *element = *x);
    ///     }
    ///     for stage in 0..6 {
    ///         let (distance, pair) = (1 << stage, t.thread_rank() as usize);
    ///         let first = pair / distance * 2 * distance + pair % distance;
    ///         t.with_claims(&mut tile, &mut scratch, |claims| {
    ///             if let (Some(a), Some(b)) = (claims.claim(first), claims.claim(first + distance)) {
    ///                 (*a, *b) = (*a + *b, *a - *b);
    ///             }
    ///         });
    ///     }
    ///     let tile = t.publish(tile);
    ///     x.fill_with(&t, |column| tile[column]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(0..64).map(|i| [1.0, 2.0][i % 2]).collect::<Vec<f32>>())?;
    /// kernels::transform(&stream, Grid::new(1, 32), x.view_2d_mut(64, 1)?)?;
    /// assert_eq!(stream.download(&x)?[..4], [96.0, -32.0, 0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn with_claims<A: SharedArray, U, const ID: usize, const SCRATCH: usize, const W: usize>(
        &self,
        region: &mut Shared<'_, A, ID>,
        scratch: &mut Shared<'_, ClaimScratch<W>, SCRATCH>,
        change: impl for<'s> FnOnce(&Claims<'s, A>) -> U,
    ) -> U {
        const { assert!(A::LEN <= 32 * W, "a claim needs a bit of the scratch memory for each element") };
        let words = scratch.start.cast::<u32>();
        for word in self.block_stride(W) {
            // SAFETY: within the region, and this thread's alone: the last call's claims ended with a barrier.
            unsafe { words.add(word).write(0) };
        }
        self.agree_on(region);
        self.sync_for(scratch);
        // SAFETY: all have been written, and are changed by atomic operations only until the next call.
        let words = unsafe { &(*scratch.start).words };
        let result = change(&Claims { start: region.start, words, region: PhantomData });
        self.sync_threads();
        result
    }
}
