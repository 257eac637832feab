//! The native bodies of the scans, by their names: in the order of the kernels, where each block finds the total of the one
//! before it.

use ferrogrid_device::scan::ROWS;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::running::kernels::{GROUP, LONG_ROWS, THREADS, WIDE_GROUP};
use crate::native::{in_any_order, in_pairs, in_pieces};
use crate::number::numbers::Element;

const WARPS: usize = THREADS / 32;

/// The tiles of a thread that are summed and then scanned: few enough to stay in its cache, and enough to outweigh the start.
const TILES: usize = 16;

/// The groups of a warp's row.
type Row<T, const G: usize> = [[T; G]; 32];

pub(super) fn inclusive_sums<T: Element>(_: [u32; 1], x: &[T], y: &mut [T]) {
    scan::<T, GROUP, ROWS, true>(x, T::ZERO, y);
}

pub(super) fn inclusive_sums_wide<T: Element>(_: [u32; 1], x: &[T], y: &mut [T]) {
    scan::<T, WIDE_GROUP, LONG_ROWS, true>(x, T::ZERO, y);
}

pub(super) fn exclusive_sums<T: Element>(_: [u32; 1], x: &[T], first: T, y: &mut [T]) {
    scan::<T, GROUP, ROWS, false>(x, first, y);
}

pub(super) fn exclusive_sums_wide<T: Element>(_: [u32; 1], x: &[T], first: T, y: &mut [T]) {
    scan::<T, WIDE_GROUP, LONG_ROWS, false>(x, first, y);
}

/// Scans some tiles at a time, so that the second pass over them finds them in a cache. `first` is for exclusive sums.
fn scan<T: Element, const G: usize, const R: usize, const INCLUSIVE: bool>(x: &[T], first: T, y: &mut [T]) {
    let tile = THREADS * R * G;
    let several = TILES * rayon::current_num_threads() * tile;
    let mut total = None;
    for (x, y) in x.chunks(several).zip(y.chunks_mut(several)) {
        let warps = in_pieces(x, tile, &|_, x| sums_of_warps::<T, G, R>(x));
        let mut before_tile = |warps: &[T; WARPS]| {
            let (before, own) = (total, warps[WARPS - 1]);
            total = Some(before.map_or(own, |before: T| before.add(own)));
            before
        };
        let before: Vec<Option<T>> = warps.iter().map(&mut before_tile).collect();
        let scan_tile = |(number, y): (usize, &mut [T])| {
            let (x, warps, before) = (&x[number * tile..][..y.len()], &warps[number], before[number]);
            if T::IS_EXACT {
                return scan_exactly::<T, INCLUSIVE>(x, y, first.add(before.unwrap_or(T::ZERO)));
            }
            let runs = x.chunks(32 * R * G).zip(y.chunks_mut(32 * R * G));
            for (warp, (x, y)) in runs.enumerate() {
                let earlier = warp.checked_sub(1).map(|warp| warps[warp]);
                let before = match (before, earlier) {
                    (Some(before), Some(earlier)) => before.add(earlier),
                    (before, earlier) => before.or(earlier).unwrap_or(T::ZERO),
                };
                let start = if INCLUSIVE { before } else { first.add(before) };
                scan_run::<T, G, INCLUSIVE>(x, y, start);
            }
        };
        y.par_chunks_mut(tile).enumerate().for_each(&scan_tile as &(dyn Fn(_) + Sync));
    }
}

/// Scans elements whose sums are the same in any order.
#[inline(always)]
fn scan_exactly<T: Element, const INCLUSIVE: bool>(x: &[T], y: &mut [T], start: T) {
    let mut before = start;
    for (x, y) in x.iter().zip(y) {
        let sum = before.add(*x);
        *y = if INCLUSIVE { sum } else { before };
        before = sum;
    }
}

/// The sum of each warp of a tile and of those before it; only the last one if sums are the same in any order.
fn sums_of_warps<T: Element, const G: usize, const R: usize>(x: &[T]) -> [T; WARPS] {
    let mut sums = [T::ZERO; WARPS];
    if T::IS_EXACT {
        sums[WARPS - 1] = in_any_order(x, T::ZERO, T::add, T::add);
        return sums;
    }
    for (x, sum) in x.chunks(32 * R * G).zip(&mut sums) {
        // Each lane's groups first, as the kernel adds them.
        let mut lanes = [T::ZERO; 32];
        for row in x.chunks(32 * G) {
            let ends = row_of::<T, G>(row).map(|group| running(group)[G - 1]);
            lanes.iter_mut().zip(ends).for_each(|(lane, end)| *lane = lane.add(end));
        }
        *sum = in_pairs(lanes, T::add);
    }
    up_to(sums)
}

/// Scans a warp's run, before which `start` comes.
#[inline(always)]
fn scan_run<T: Element, const G: usize, const INCLUSIVE: bool>(x: &[T], y: &mut [T], start: T) {
    let mut total = T::ZERO;
    for (x, y) in x.chunks(32 * G).zip(y.chunks_mut(32 * G)) {
        let groups = row_of::<T, G>(x).map(running);
        let ends = up_to(groups.map(|group| group[G - 1]));
        let mut before = [total; 32];
        before[1..].iter_mut().zip(ends).for_each(|(before, end)| *before = total.add(end));
        total = total.add(ends[31]);
        let mut results = [[T::ZERO; G]; 32];
        for (result, (before, group)) in results.iter_mut().zip(before.into_iter().zip(groups)) {
            let before = start.add(before);
            *result = std::array::from_fn(|k| match k.checked_sub(1) {
                _ if INCLUSIVE => before.add(group[k]),
                None => before,
                Some(earlier) => before.add(group[earlier]),
            });
        }
        y.copy_from_slice(&results.as_flattened()[..y.len()]);
    }
}

/// A row, 0 beyond the end.
#[inline(always)]
fn row_of<T: Element, const G: usize>(x: &[T]) -> Row<T, G> {
    match x.as_chunks::<G>().0.first_chunk::<32>() {
        Some(row) => *row,
        None => std::array::from_fn(|lane| {
            std::array::from_fn(|k| x.get(lane * G + k).copied().unwrap_or(T::ZERO))
        }),
    }
}

/// The running sums of a lane's neighbours, one after the other.
#[inline(always)]
fn running<T: Element, const G: usize>(mut group: [T; G]) -> [T; G] {
    for k in 1..G {
        group[k] = group[k - 1].add(group[k]);
    }
    group
}

/// The running sums of lanes or warps, as `Tile::inclusive_scan` adds them.
#[inline(always)]
fn up_to<T: Element, const N: usize>(mut sums: [T; N]) -> [T; N] {
    let mut distance = 1;
    while distance < N {
        let earlier = sums;
        sums[distance..].iter_mut().zip(earlier).for_each(|(sum, earlier)| *sum = earlier.add(*sum));
        distance *= 2;
    }
    sums
}
