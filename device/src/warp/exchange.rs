//! Rearranges a tile's items between the blocked and the striped arrangement, by shuffles (CUB's
//! `WarpExchange`).

#![expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]

use super::{Exchange, Tile};

/// `N` is a power of two. In each of `N` rounds every thread sends one item and gets one. Which item it sends
/// depends only on the thread: threads that were asked for different items in one round would need more
/// rounds. So each thread rotates its items before and after by a number of its own.
impl<const M: usize> Tile<'_, M> {
    /// From the blocked to the striped arrangement: thread `i` passes items `i * N` to `i * N + N - 1` of the
    /// tile and gets items `i`, `i + M`, `i + 2 * M`, and so on (CUB's `WarpExchange::BlockedToStriped`,
    /// without shared memory).
    ///
    /// `N` must be a power of two and at most `M`; anything else is a compile error. A tile with fewer
    /// threads, at the end of a block, panics.
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// Four results of each thread, so that neighbouring threads store neighbouring ones.
    /// fn for_storing(t: &Thread<1>, results: [f32; 4]) -> [f32; 4] {
    ///     t.warp().blocked_to_striped(results)
    /// }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn blocked_to_striped<T: Exchange, const N: usize>(&self, items: [T; N]) -> [T; N] {
        let (rank, each) = (self.rank(), self.threads_for_each_item::<N>());
        let (sends, gets) = (rank / each, rank % N as u32);
        self.turned(items, sends, gets, |item| item * each + rank / N as u32)
    }

    /// From the striped to the blocked arrangement, the inverse of [`Tile::blocked_to_striped`] (CUB's
    /// `WarpExchange::StripedToBlocked`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Running sums within each 4 elements. Neighbouring threads load and store neighbouring elements; between,
    /// /// each has four that are next to each other.
    /// #[kernel(block = 32)]
    /// pub fn sums_of_four(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
    ///     let (warp, rank) = (t.warp(), t.thread_rank() as usize);
    ///     let mut items: [u32; 4] = warp.striped_to_blocked(core::array::from_fn(|k| x[32 * k + rank]));
    ///     for k in 1..4 {
    ///         items[k] += items[k - 1];
    ///     }
    ///     let items = warp.blocked_to_striped(items);
    ///     for k in 0..4 {
    ///         y[32 * k + rank].store(items[k], atomic::Ordering::Relaxed);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..128).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(128)?;
    /// kernels::sums_of_four(&stream, Grid::new(1, 32), &x, y.as_atomic())?;
    /// assert_eq!(stream.download(&y)?[36..44], [36, 73, 111, 150, 40, 81, 123, 166]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn striped_to_blocked<T: Exchange, const N: usize>(&self, items: [T; N]) -> [T; N] {
        let (rank, each) = (self.rank(), self.threads_for_each_item::<N>());
        let (sends, gets) = (rank % N as u32, rank / each);
        self.turned(items, sends, gets, |item| rank % each * N as u32 + item)
    }

    #[track_caller]
    #[inline(always)]
    fn threads_for_each_item<const N: usize>(&self) -> u32 {
        const {
            assert!(N.is_power_of_two(), "the threads of a tile exchange 1, 2, 4, 8, 16 or 32 items each");
            assert!(N <= M, "the threads of a tile exchange no more items each than there are threads");
        }
        assert!(
            self.present() == Self::SIZE,
            "the last tile of the block has fewer threads, and cannot exchange"
        );
        Self::SIZE / N as u32
    }

    /// In round `r` the thread sends item `sends - r` and gets item `gets + r` of the thread that `source`
    /// names, modulo `N`.
    #[track_caller]
    #[inline(always)]
    fn turned<T: Exchange, const N: usize>(
        &self,
        items: [T; N],
        sends: u32,
        gets: u32,
        source: impl Fn(u32) -> u32,
    ) -> [T; N] {
        let mut held = items;
        for round in 0..N {
            held[round] = items[(N - round) % N];
        }
        held = rotated(held, sends);
        for round in 0..N {
            held[round] = self.shuffle(held[round], source((gets + round as u32) % N as u32));
        }
        rotated(held, gets)
    }
}

/// Rotates items by `by` positions, in steps of powers of two, so that every index is a compile-time
/// constant.
#[inline(always)]
fn rotated<T: Copy, const N: usize>(items: [T; N], by: u32) -> [T; N] {
    let mut items = items;
    let mut step = 1;
    while step < N {
        let before = items;
        for k in 0..N {
            items[k] = if by & step as u32 == 0 { before[k] } else { before[(k + N - step) % N] };
        }
        step *= 2;
    }
    items
}
