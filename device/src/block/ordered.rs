//! Slices in an order: sorted tiles, merges by merge path, binary search, and the members of sets. The kernels of `#[comparison]`
//! share it with the crate of ready-made algorithms.
//!
//! Whatever a comparison returns, nothing is read or written out of bounds; if it is not an order, results have any elements.

use crate::block::exchange::{Places, expect_threads};
use crate::block::scan::{Rows, each_row};
use crate::block::sort::MergeSortScratch;
use crate::block::sort::merge::{Runs, merge};
use crate::shared::{Shared, SharedElement};
use crate::thread::Thread;

/// The threads of a block.
pub const THREADS: usize = 256;
/// The members of both slices that a warp looks for.
pub const MEMBERS: usize = 32 * crate::block::scan::ROWS;

/// The items of a thread in a tile: as many as 64 bytes hold.
///
/// # Panics
/// If an element has more than 64 bytes; in a constant, so that it does not compile.
#[must_use]
pub const fn items<T>() -> usize {
    assert!(size_of::<T>() <= 64, "elements of up to 64 bytes are sorted and merged: sort their indices");
    match size_of::<T>() {
        0..=4 => 16,
        size => 64 / size,
    }
}

/// The elements of a block.
#[must_use]
pub const fn tile<T>() -> usize {
    THREADS * items::<T>()
}

type Scratch<'b, T, const N: usize, const ID: usize> = Shared<'b, MergeSortScratch<T, THREADS, N>, ID>;

/// The number in its tile of item `k` of the thread: those of a warp follow each other, row by row, as
/// `DisjointWarps::fill_striped` takes them.
#[inline(always)]
fn number<const N: usize>(t: &Thread<'_, 1>, k: usize) -> u32 {
    let rank = t.thread_rank();
    rank / 32 * (32 * N as u32) + k as u32 * 32 + rank % 32
}

/// Moves `items`, which belong to the numbers of [`number`], so that thread `i` has those from `i * N` on; or back.
#[inline(always)]
fn exchange<T: SharedElement + Copy, const N: usize, const ID: usize>(
    t: &Thread<'_, 1>,
    scratch: &mut Scratch<'_, T, N, ID>,
    items: [T; N],
    to_blocked: bool,
) -> [T; N] {
    expect_threads::<1, THREADS>(t);
    t.agree_on(scratch);
    let numbers = core::array::from_fn(|k| number::<N>(t, k));
    // SAFETY: the region has room for the items of `THREADS` threads, which all come here together. Before the first barrier
    // each writes its own places only, as the numbers of the block's items are all different and below `THREADS * N`, and no
    // thread reads: what used the region earlier has ended with a barrier. After it no thread writes before the second.
    unsafe {
        let places = Places::<T, THREADS, N>::new(scratch.as_mut_ptr().cast(), t);
        if to_blocked {
            places.scatter_unchecked(items, numbers);
        } else {
            places.write_blocked(items);
        }
        t.sync_threads();
        let items =
            if to_blocked { places.read_blocked() } else { numbers.map(|number| places.read(number)) };
        t.sync_threads();
        items
    }
}

/// The block's tile of `x`, sorted; equal elements keep their order.
#[inline(always)]
pub fn sort_tile<T: SharedElement + Copy, const N: usize, const ID: usize>(
    t: &Thread<'_, 1>,
    scratch: &mut Scratch<'_, T, N, ID>,
    x: &[T],
    is_less: impl Fn(&T, &T) -> bool,
) -> [T; N] {
    let first = t.block_idx()[0] as usize * (THREADS * N);
    let valid = x.len().saturating_sub(first).min(THREADS * N) as u32;
    let items =
        core::array::from_fn(|k| x.get(first + number::<N>(t, k) as usize).copied().unwrap_or_else(nothing));
    let items = exchange(t, scratch, items, true);
    let sorted = t.block_merge_sort_valid(scratch, items, valid, is_less);
    exchange(t, scratch, sorted, false)
}

/// In place of an item that is not there.
#[inline(always)]
fn nothing<T: SharedElement + Copy>() -> T {
    // SAFETY: it takes any bits.
    unsafe { core::mem::zeroed() }
}

/// The sorted slices that element `first` of the merged ones comes from, and where they begin there: `a` and `b`, or if there is a
/// `run`, neighbouring parts of that length of `a`, as a merge sort has them.
#[inline(always)]
fn pair<'x, T>((a, b): (&'x [T], &'x [T]), run: usize, first: usize) -> (usize, &'x [T], &'x [T]) {
    if run == 0 {
        return (0, a, b);
    }
    let start = first / (2 * run) * (2 * run);
    let [begin, middle, end] = [start, start + run, start + 2 * run].map(|place| place.min(a.len()));
    (start, a.get(begin..middle).unwrap_or_default(), a.get(middle..end).unwrap_or_default())
}

/// How many of the first `place` elements of the merged slices are those of `a`, the first of equal ones (merge path).
#[inline(always)]
pub fn split<T>(a: &[T], b: &[T], place: usize, is_less: impl Fn(&T, &T) -> bool) -> usize {
    let (mut low, mut high) = (place.saturating_sub(b.len()), place.min(a.len()));
    while low < high {
        let half = low + (high - low) / 2;
        let (Some(x), Some(y)) = (a.get(half), b.get(place - 1 - half)) else { break };
        if is_less(y, x) {
            high = half;
        } else {
            low = half + 1;
        }
    }
    low
}

/// Where tile number `tile` of the merged slices splits them.
#[inline(always)]
pub fn split_of_tile<T>(
    (a, b): (&[T], &[T]),
    run: u64,
    number: usize,
    is_less: impl Fn(&T, &T) -> bool,
) -> u64 {
    let first = number * tile::<T>();
    let (start, a, b) = pair((a, b), run as usize, first);
    split(a, b, first - start, is_less) as u64
}

/// The block's tile of the merged slices, which `splits` cuts as [`split_of_tile`] says.
#[inline(always)]
pub fn merge_tile<T: SharedElement + Copy, const N: usize, const ID: usize>(
    t: &Thread<'_, 1>,
    scratch: &mut Scratch<'_, T, N, ID>,
    slices: (&[T], &[T]),
    run: u64,
    splits: &[u64],
    is_less: impl Fn(&T, &T) -> bool,
) -> [T; N] {
    expect_threads::<1, THREADS>(t);
    t.agree_on(scratch);
    let (a, b) = parts::<T, N>(slices, run as usize, splits, t.block_idx()[0] as usize);
    let numbers = core::array::from_fn(|k| number::<N>(t, k));
    let item = |number: u32| match a.get(number as usize) {
        Some(item) => *item,
        None => b.get(number as usize - a.len()).copied().unwrap_or_else(nothing),
    };
    let ends = [0, a.len(), a.len() + b.len()].map(|end| end as u32);
    let mut items = [nothing(); N];
    // SAFETY: as in `exchange`; the merge reads below the last end, which is at most the number of items.
    unsafe {
        let places = Places::<T, THREADS, N>::new(scratch.as_mut_ptr().cast(), t);
        places.scatter_unchecked(numbers.map(item), numbers);
        t.sync_threads();
        merge(&mut items, Runs::new(ends, t.thread_rank() * N as u32), |k| places.read(k), is_less);
        t.sync_threads();
    }
    exchange(t, scratch, items, false)
}

/// The parts of both slices that make the tile, of at most its length together.
#[inline(always)]
fn parts<'x, T, const N: usize>(
    slices: (&'x [T], &'x [T]),
    run: usize,
    splits: &[u64],
    number: usize,
) -> (&'x [T], &'x [T]) {
    let place = |number: usize| splits.get(number).map_or(usize::MAX, |split| *split as usize);
    let first = number * (THREADS * N);
    let (start, a, b) = pair(slices, run, first);
    let all = a.len() + b.len();
    let (begin, from) = (first - start, place(number).min(a.len()));
    // The last tile of the pair has the rest.
    let is_last = all.saturating_sub(begin) <= THREADS * N;
    let to = if is_last { a.len() } else { place(number + 1).min(a.len()) };
    let len = all.saturating_sub(begin).min(THREADS * N);
    let of_a = to.saturating_sub(from).min(len);
    let b = b.get(begin.saturating_sub(from)..).unwrap_or_default();
    let b = b.get(..(len - of_a).min(b.len())).unwrap_or_default();
    (a.get(from..from + of_a).unwrap_or_default(), b)
}

/// How many elements of `sorted` there are before the first one for which `is_before` is false.
#[inline(always)]
pub fn bound<T>(sorted: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let (mut first, mut len) = (0, sorted.len());
    while len > 0 {
        let half = len / 2;
        let is_before = sorted.get(first + half).is_some_and(&is_before);
        first += if is_before { half + 1 } else { 0 };
        len = if is_before { len - half - 1 } else { half };
    }
    first
}

/// How many elements directly before `x[place]` equal it: those that are not before it. Looks nearby first.
#[inline(always)]
fn equals_before<T>(x: &[T], place: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let (mut end, mut width) = (place, 1);
    while end > 0 {
        let probe = end.saturating_sub(width);
        if x.get(probe).is_none_or(&is_before) {
            let rest = x.get(probe + 1..end).unwrap_or_default();
            return place - (probe + 1 + bound(rest, is_before)).min(place);
        }
        end = probe;
        width *= 2;
    }
    place
}

/// The elements that a set has, bits of `kept`.
pub mod kept {
    /// Elements of `a` for which `b` has an equal one, each of `b` for one of `a`.
    pub const COMMON: u32 = 1;
    /// The other elements of `a`.
    pub const OF_A: u32 = 2;
    /// The elements of `b` for which `a` has no equal one.
    pub const OF_B: u32 = 4;
}

/// The element of the merged slices at `place`, and what of [`kept`] it is.
#[inline(always)]
fn member<'x, T>(
    (a, b): (&'x [T], &'x [T]),
    place: usize,
    is_less: impl Fn(&T, &T) -> bool,
) -> Option<(&'x T, u32)> {
    let i = split(a, b, place, &is_less);
    let j = place - i;
    match (a.get(i), b.get(j)) {
        (Some(x), y) if y.is_none_or(|y| !is_less(y, x)) => {
            // Copy number `k` of `a` has a partner if `b` has more than `k`; its first one is at `j`.
            let k = equals_before(a, i, |other| is_less(other, x));
            let is_common = b.get(j + k).is_some_and(|y| !is_less(x, y));
            Some((x, if is_common { kept::COMMON } else { kept::OF_A }))
        }
        (_, Some(y)) => {
            // The last one of `a` is before `i`.
            let k = equals_before(b, j, |other| is_less(other, y));
            let partner = i.checked_sub(k + 1).and_then(|at| a.get(at));
            Some((y, if partner.is_some_and(|x| !is_less(x, y)) { 0 } else { kept::OF_B }))
        }
        (_, None) => None,
    }
}

/// Which of the thread's elements of the merged slices, of which the warp has [`MEMBERS`] from number `first` on, a set has.
#[inline(always)]
pub fn members<T>(
    t: &Thread<'_, 1>,
    slices: (&[T], &[T]),
    kept: u32,
    first: usize,
    is_less: impl Fn(&T, &T) -> bool,
) -> Rows<u64, 1> {
    let first = first + t.thread_rank() as usize % 32;
    each_row(|row| {
        [u64::from(member(slices, first + 32 * row, &is_less).is_some_and(|(_, it)| kept & it != 0))]
    })
}

/// Element `number` of a set, where `ends` says how many members it has up to each element of the merged slices.
#[inline(always)]
pub fn taken<'x, T>(
    slices: (&'x [T], &'x [T]),
    ends: &[u64],
    number: usize,
    is_less: impl Fn(&T, &T) -> bool,
) -> Option<&'x T> {
    let place = bound(ends, |end| *end <= number as u64);
    if place < ends.len() { member(slices, place, is_less).map(|(item, _)| item) } else { None }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// By the first member alone: equal ones can be told apart.
    fn is_less(a: &(u8, usize), b: &(u8, usize)) -> bool {
        a.0 < b.0
    }

    fn of(keys: &[u8], name: usize) -> Vec<(u8, usize)> {
        keys.iter().enumerate().map(|(i, key)| (*key, name + i)).collect()
    }

    #[test]
    fn a_member_of_two_slices_is_common_or_of_one() {
        let (a, b) = (of(&[1, 1, 3, 5, 5, 5], 0), of(&[0, 1, 5, 5, 7, 7], 10));
        let found: Vec<_> =
            (0..13).map(|place| member((&a, &b), place, is_less).map(|(x, it)| (x.1, it))).collect();
        let expected = [
            (10, kept::OF_B),
            (0, kept::COMMON),
            (1, kept::OF_A),
            (11, 0),
            (2, kept::OF_A),
            (3, kept::COMMON),
            (4, kept::COMMON),
            (5, kept::OF_A),
            (12, 0),
            (13, 0),
            (14, kept::OF_B),
            (15, kept::OF_B),
        ];
        assert_eq!(found[..12], expected.map(Some));
        assert_eq!(found[12], None);
    }

    #[test]
    fn equal_elements_are_found_at_any_distance() {
        for before in [0, 1, 5] {
            for equal in 0..20 {
                let x: Vec<u32> = (0..before).map(|_| 1).chain((0..=equal).map(|_| 2)).collect();
                let found = equals_before(&x, before + equal, |other| *other < 2);
                assert_eq!(found, equal, "{before}");
            }
        }
    }

    #[test]
    fn tiles_of_a_merge_have_all_elements_whatever_the_splits_are() {
        const N: usize = 16;
        let a: Vec<u32> = (0..6000).collect();
        for splits in [[0, 2000, 4000], [4000, 1, 9000], [u64::MAX, 0, u64::MAX]] {
            for number in 0..3 {
                let (from_a, from_b) = parts::<u32, N>((&a, &a), 0, &splits, number);
                assert!(from_a.len() + from_b.len() <= THREADS * N);
            }
        }
        let splits: Vec<u64> =
            (0..3).map(|number| split_of_tile((&a, &a), 0, number, |x, y| x < y)).collect();
        let lengths = (0..3).map(|number| {
            let (from_a, from_b) = parts::<u32, N>((&a, &a), 0, &splits, number);
            from_a.len() + from_b.len()
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [4096, 4096, 12_000 - 8192]);
    }
}
