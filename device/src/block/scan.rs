//! What a warp makes of its run of elements in a scan of whole slices. The crate of ready-made algorithms and the kernels of
//! `#[scan]` share it.

#![expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]

use core::mem::MaybeUninit;

use crate::element::group;
use crate::thread::Thread;
use crate::warp::{Exchange, Warp};

/// The threads of a block.
pub const THREADS: usize = 256;
/// The rows of 32 groups that a warp scans, unless it says otherwise.
pub const ROWS: usize = 8;

/// A thread's elements, a group of neighbours of each row.
pub type Rows<T, const G: usize, const R: usize = ROWS> = [[T; G]; R];

/// Calls `f` with the number of each row, of which there are 8 or 12. LLVM would not unroll a loop over large items, which would
/// go to memory.
#[inline(always)]
fn for_each_row<const R: usize>(mut f: impl FnMut(usize)) {
    const { assert!(R == 8 || R == 12) };
    f(0);
    f(1);
    f(2);
    f(3);
    f(4);
    f(5);
    f(6);
    f(7);
    if R == 12 {
        f(8);
        f(9);
        f(10);
        f(11);
    }
}

/// The results of `f` for the number of each row.
#[inline(always)]
pub fn each_row<T: Copy, const G: usize, const R: usize>(f: impl Fn(usize) -> [T; G]) -> Rows<T, G, R> {
    let mut rows = [f(0); R];
    for_each_row::<R>(|row| {
        if row > 0 {
            rows[row] = f(row);
        }
    });
    rows
}

/// A thread's elements as running totals of their groups, and what comes before each group.
pub struct Totals<A, const G: usize, const R: usize = ROWS> {
    groups: Rows<A, G, R>,
    before: [A; R],
    /// The total of the warp's run.
    pub total: A,
}

/// The total of the warp's run, if the order does not matter: it takes fewer steps than the running ones.
#[inline(always)]
pub fn total_of_rows<A: Exchange, const G: usize, const R: usize>(
    warp: &Warp,
    groups: &Rows<A, G, R>,
    identity: A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let mut total = identity;
    for_each_row::<R>(|row| {
        let mut group = groups[row][0];
        for k in 1..G {
            group = combine(group, groups[row][k]);
        }
        total = combine(total, group);
    });
    warp.reduce(total, combine)
}

/// The running totals of the warp's run.
#[inline(always)]
pub fn scan_rows<A: Exchange, const G: usize, const R: usize>(
    warp: &Warp,
    mut groups: Rows<A, G, R>,
    identity: A,
    combine: impl Fn(A, A) -> A,
) -> Totals<A, G, R> {
    for_each_row::<R>(|row| {
        for k in 1..G {
            groups[row][k] = combine(groups[row][k - 1], groups[row][k]);
        }
    });
    // The rows advance together, so that they don't wait for each other's shuffles.
    let mut up_to: [A; R] = core::array::from_fn(|row| groups[row][G - 1]);
    let mut distance = 1;
    while distance < 32 {
        for_each_row::<R>(|row| {
            let earlier = warp.shuffle_up(up_to[row], distance);
            if warp.lane() >= distance {
                up_to[row] = combine(earlier, up_to[row]);
            }
        });
        distance *= 2;
    }
    let (mut before, mut total) = (up_to, identity);
    for_each_row::<R>(|row| {
        let earlier = warp.shuffle_up(up_to[row], 1);
        before[row] = if warp.lane() == 0 { total } else { combine(total, earlier) };
        total = combine(total, warp.shuffle(up_to[row], 31));
    });
    Totals { groups, before, total }
}

impl<A: Copy, const G: usize, const R: usize> Totals<A, G, R> {
    /// The total of each element and all before it, where `start` comes before the warp's run.
    #[inline(always)]
    pub fn inclusive(&self, start: A, combine: impl Fn(A, A) -> A) -> Rows<A, G, R> {
        let mut totals = self.groups;
        for_each_row::<R>(|row| {
            let before = combine(start, self.before[row]);
            for k in 0..G {
                totals[row][k] = combine(before, totals[row][k]);
            }
        });
        totals
    }

    /// The total of all before each element, where `start` comes before the warp's run.
    #[inline(always)]
    pub fn exclusive(&self, start: A, combine: impl Fn(A, A) -> A) -> Rows<A, G, R> {
        let mut totals = self.groups;
        for_each_row::<R>(|row| {
            let before = combine(start, self.before[row]);
            totals[row][0] = before;
            for k in 1..G {
                totals[row][k] = combine(before, self.groups[row][k - 1]);
            }
        });
        totals
    }
}

/// A thread's elements of an input, as far as there are any.
pub struct Items<T, const G: usize> {
    rows: Rows<MaybeUninit<T>, G>,
    /// How many elements there are from the thread's first one on.
    left: usize,
}

impl<T: Copy, const G: usize> Items<T, G> {
    /// Those of a warp whose run of `N` elements begins at number `first` of `x`.
    #[inline(always)]
    pub fn of<const N: usize>(t: &Thread<'_, 1>, x: &[T], first: usize) -> Self {
        const { assert!(N == 32 * ROWS * G) };
        let lane = t.thread_rank() as usize % 32;
        let left = x.len().saturating_sub(first + lane * G);
        let run = x.get(first..).and_then(|rest| rest.first_chunk::<N>());
        let rows = match run.and_then(|run| group::inputs(run)) {
            Some(groups) => each_row(|row| groups.load(row * 32 + lane).map(MaybeUninit::new)),
            None => each_row(|row| {
                let first = first + (row * 32 + lane) * G;
                core::array::from_fn(|k| {
                    x.get(first + k).map_or_else(MaybeUninit::uninit, |item| MaybeUninit::new(*item))
                })
            }),
        };
        Items { rows, left }
    }

    /// Element `k` of the group of row `row`, if it is there.
    #[inline(always)]
    pub fn get(&self, row: usize, k: usize) -> Option<&T> {
        let is_there = row * 32 * G + k < self.left;
        // SAFETY: every element that is there has been loaded, from the place that `left` counts to.
        is_there.then(|| unsafe { self.rows[row][k].assume_init_ref() })
    }
}
