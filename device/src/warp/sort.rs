//! Merge sort of a tile's items, by comparison (CUB's `WarpMergeSort`).

use super::{Exchange, Tile};

impl<const M: usize> Tile<'_, M> {
    /// Sorts the items of all threads of the tile by a bitonic network of shuffles: thread `i` gets those at
    /// positions `i * N` to `i * N + N - 1`. `is_less` returns whether its first argument comes first, as in
    /// CUB's `WarpMergeSort`, which needs shared memory. The sort is not stable.
    ///
    /// Items are any [`Exchange`] values of up to 16 bytes: `[u32; 2]` for a key with its value. Whatever
    /// `is_less` returns, all items are there afterwards, as long as equal calls return the same. That
    /// includes NaN: with `<` the result is not sorted then, with `|a, b| a.total_cmp(&b).is_lt()` it is.
    ///
    /// `N` must be a power of two up to 16; anything else is a compile error.
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// The greatest four of 128 items, in the first thread.
    /// fn greatest(t: &Thread<1>, items: [f32; 4]) -> [f32; 4] {
    ///     t.warp().bitonic_sort(items, |a, b| a > b)
    /// }
    /// ```
    ///
    /// # Panics
    /// If the tile has fewer threads than `SIZE`, as the last one of a block may.
    #[track_caller]
    #[inline(always)]
    pub fn bitonic_sort<T: Exchange, const N: usize>(
        &self,
        items: [T; N],
        is_less: impl Fn(T, T) -> bool,
    ) -> [T; N] {
        const {
            assert!(
                N.is_power_of_two() && N <= 16,
                "a bitonic sort takes 1, 2, 4, 8 or 16 items of each thread"
            );
        }
        assert!(
            self.present() == Self::SIZE,
            "the last tile of the block has fewer threads, and cannot sort"
        );
        let mut items = items;
        // Runs of `run` items are sorted; two of them, the second in reverse, are merged into one.
        mirrored(&mut items, 1, &is_less);
        if N > 2 {
            mirrored(&mut items, 2, &is_less);
            halved(&mut items, 1, &is_less);
        }
        if N > 4 {
            mirrored(&mut items, 4, &is_less);
            halved(&mut items, 2, &is_less);
        }
        if N > 8 {
            mirrored(&mut items, 8, &is_less);
            halved(&mut items, 4, &is_less);
        }
        let mut threads = 1;
        while threads < M {
            self.across(&mut items, 2 * threads as u32 - 1, true, &is_less);
            let mut distance = threads / 2;
            while distance > 0 {
                self.across(&mut items, distance as u32, false, &is_less);
                distance /= 2;
            }
            halved(&mut items, N / 2, &is_less);
            threads *= 2;
        }
        items
    }

    /// Compares with the items of the thread whose rank differs by `bits`, in reverse if `mirrored`; the
    /// lower of the two threads keeps those that come first.
    #[track_caller]
    #[inline(always)]
    fn across<T: Exchange, const N: usize>(
        &self,
        items: &mut [T; N],
        bits: u32,
        mirrored: bool,
        is_less: &impl Fn(T, T) -> bool,
    ) {
        let own = *items;
        let is_lower = self.rank() < self.rank() ^ bits;
        for k in 0..N {
            let other = self.shuffle_xor(own[if mirrored { N - 1 - k } else { k }], bits);
            // Both threads make the same comparison.
            let (lower, upper) = if is_lower { (own[k], other) } else { (other, own[k]) };
            if is_less(upper, lower) {
                items[k] = other;
            }
        }
    }
}

/// Within the thread's items, compares each item of a run with one of the next run, from its end.
#[inline(always)]
fn mirrored<T: Copy, const N: usize>(items: &mut [T; N], run: usize, is_less: &impl Fn(T, T) -> bool) {
    if run < N {
        for k in 0..N {
            if k & run == 0 {
                exchange(items, k, k ^ (2 * run - 1), is_less);
            }
        }
    }
}

/// Within the thread's items, compares those that are `distance` apart, then half of it, and so on. It is
/// written out so that every index is a compile-time constant, because LLVM does not always unroll nested
/// loops.
#[inline(always)]
fn halved<T: Copy, const N: usize>(items: &mut [T; N], distance: usize, is_less: &impl Fn(T, T) -> bool) {
    apart(items, 8, distance, is_less);
    apart(items, 4, distance, is_less);
    apart(items, 2, distance, is_less);
    apart(items, 1, distance, is_less);
}

/// Compares those that are `by` apart, if that is not more than `distance`.
#[inline(always)]
fn apart<T: Copy, const N: usize>(
    items: &mut [T; N],
    by: usize,
    distance: usize,
    is_less: &impl Fn(T, T) -> bool,
) {
    if by <= distance && by < N {
        for k in 0..N {
            if k & by == 0 {
                exchange(items, k, k ^ by, is_less);
            }
        }
    }
}

#[inline(always)]
fn exchange<T: Copy, const N: usize>(
    items: &mut [T; N],
    lower: usize,
    upper: usize,
    is_less: &impl Fn(T, T) -> bool,
) {
    let (a, b) = (items[lower], items[upper]);
    let swapped = is_less(b, a);
    (items[lower], items[upper]) = if swapped { (b, a) } else { (a, b) };
}
