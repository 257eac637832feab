//! Values that all threads of a block agree on, so that barriers may depend on them.

use crate::thread::Thread;
use crate::warp::{Exchange, value_of, words_of};

/// Makes values uniform in the block where the build step cannot see that they are.
impl<const R: usize> Thread<'_, R> {
    /// Returns the value of the thread with rank 0 to all threads of the block, at the cost of two barriers.
    /// A barrier may depend on the result.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// Blocks share `x.len() / 64` pieces of work; a block that is done takes the next one.
    /// #[kernel(block = 64)]
    /// pub fn squares(t: Thread<1>, next: &[DeviceAtomic<u32>], x: &[u32], y: &[DeviceAtomic<u32>]) {
    ///     loop {
    ///         let mine = if t.thread_rank() == 0 { next[0].fetch_add(1, Relaxed) } else { 0 };
    ///         let piece = t.broadcast(mine) as usize; // the same in all threads: they leave the loop together
    ///         if piece >= x.len() / 64 {
    ///             break;
    ///         }
    ///         let i = 64 * piece + t.thread_rank() as usize;
    ///         y[i].store(x[i] * x[i], Relaxed);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..640).collect::<Vec<u32>>())?;
    /// let (mut next, mut y) = (stream.zeros(1)?, stream.zeros(640)?);
    /// kernels::squares(&stream, Grid::new(4, 64), next.as_atomic(), &x, y.as_atomic())?;
    /// assert_eq!(stream.download(&y)?, (0..640).map(|x| x * x).collect::<Vec<u32>>());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    #[must_use]
    pub fn broadcast<T: Exchange>(&self, held: T) -> T {
        let (words, count) = words_of(held);
        value_of(source::of_first(self, words, count))
    }

    /// Asserts that `held` is the same in all threads of the block, where only you know that. A barrier may
    /// depend on the result. It costs nothing on a GPU; on the CPU device a launch fails whose threads bring
    /// different values.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use atomic::Ordering::Relaxed;
    ///
    /// /// Adds 1 `rounds` times; no thread changes that number while the kernel runs.
    /// #[kernel(block = 64)]
    /// pub fn count(t: Thread<1>, rounds: &[DeviceAtomic<u32>], mut y: DisjointSlice<u32>) {
    ///     // SAFETY: the host alone writes `rounds`, between launches.
    ///     let rounds = unsafe { t.assume_uniform(rounds[0].load(Relaxed)) };
    ///     for _ in 0..rounds {
    ///         if let Some(y) = y.get_mut(t.index()) {
    ///             *y += 1;
    ///         }
    ///         t.sync_threads();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (mut rounds, mut y) = (stream.fill(3_u32, 1)?, stream.zeros(64)?);
    /// kernels::count(&stream, Grid::cover(64), rounds.as_atomic(), &mut y)?;
    /// assert_eq!(stream.download(&y)?, [3; 64]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Safety
    /// All threads of the block make this call equally often between two barriers, each time with the same
    /// value. What a GPU does at a barrier that some threads skip is undefined.
    #[track_caller]
    #[inline(always)]
    #[must_use]
    pub unsafe fn assume_uniform<T: Exchange>(&self, held: T) -> T {
        let (words, count) = words_of(held);
        value_of(source::assumed(self, words, count))
    }
}

#[cfg(target_arch = "nvptx64")]
mod source {
    use crate::compiler::mark;
    use crate::shared::in_shared;
    use crate::thread::Thread;

    core::arch::global_asm!(".shared .align 16 .b8 ferrogrid_broadcast[16];");

    /// The words of the thread with rank 0.
    #[track_caller]
    #[inline(always)]
    pub(super) fn of_first<const R: usize>(
        thread: &Thread<'_, R>,
        words: [u32; 4],
        count: usize,
    ) -> [u32; 4] {
        let start: *mut u8;
        // SAFETY: the code takes an address and reaches no memory.
        unsafe {
            core::arch::asm!(
                "{{ .reg .u64 %t; mov.u64 %t, ferrogrid_broadcast; cvta.shared.u64 {0}, %t; }}",
                out(reg64) start,
                options(pure, nomem, nostack),
            );
        }
        // SAFETY: the address was computed from the shared window.
        let place = unsafe { in_shared(start) }.cast::<u32>();
        if thread.thread_rank() == 0 {
            // SAFETY: there is room for four words, which only this function uses. All threads have read those of the last
            // call before its last barrier.
            (0..count).for_each(|at| unsafe { place.add(at).write(words[at]) });
        }
        thread.sync_threads();
        // SAFETY: the words are there since the barrier, and no thread writes before the next barrier.
        let words = core::array::from_fn(|at| if at < count { unsafe { place.add(at).read() } } else { 0 });
        thread.sync_threads();
        words
    }

    #[inline(always)]
    pub(super) fn assumed<const R: usize>(_: &Thread<'_, R>, words: [u32; 4], count: usize) -> [u32; 4] {
        core::array::from_fn(|at| if at < count { mark::assumed(words[at]) } else { 0 })
    }
}

/// The CPU device, which reports a wrong assumption.
#[cfg(not(target_arch = "nvptx64"))]
mod source {
    use core::panic::Location;

    use crate::thread::Thread;

    #[track_caller]
    #[inline(always)]
    pub(super) fn of_first<const R: usize>(thread: &Thread<'_, R>, words: [u32; 4], _: usize) -> [u32; 4] {
        if thread.thread_rank() == 0 {
            thread.block.first.set(words);
        }
        thread.sync_threads();
        let words = thread.block.first.get();
        thread.sync_threads();
        words
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn assumed<const R: usize>(thread: &Thread<'_, R>, words: [u32; 4], count: usize) -> [u32; 4] {
        for pair in words[..count].chunks(2) {
            let high = pair.get(1).copied().unwrap_or(0);
            thread.block.agree(
                thread.place(),
                u64::from(pair[0]) | u64::from(high) << 32,
                Location::caller(),
            );
        }
        words
    }
}
