//! The native bodies of the kernels in this folder, by their names.

use ferrogrid_device::fold::{ITEMS, THREADS, TILE, by_pairs};

use super::extrema::kernels::{Indexed, better, key_of, of_key};
use super::moments::kernels::{Moments, Statistic};
use super::norms::kernels::Norm;
use crate::native::{Block, block_reduce, for_each_block, in_any_order};
use crate::number::numbers::{Element, Key, Operation};

pub(super) fn totals<T: Element, O: Operation>(blocks: [u32; 1], x: &[T], totals: &mut [T::Total]) {
    for_each_block(blocks, totals, |block| {
        if T::Total::IS_EXACT {
            let of_tile =
                |x: &[T]| in_any_order(x, O::identity(), |a, x| O::combine(a, x.widen()), O::combine);
            return block.tiles(x).fold(O::identity(), |a: T::Total, (_, tile)| O::combine(a, of_tile(tile)));
        }
        block_reduce(block.fold(x, O::identity(), T::widen, O::combine), O::combine)
    });
}

pub(super) fn dot_of_tiles<T: Element>(blocks: [u32; 1], x: &[T], y: &[T], sums: &mut [T::Total]) {
    let product = |x: T, y: T| x.widen().multiply(y.widen());
    let of_items = |first: usize, items: [T; ITEMS]| {
        let (tiles, _) = y.as_chunks::<TILE>();
        let (tile, rank) = (&tiles[first / TILE], first % THREADS);
        let products = std::array::from_fn(|k| product(items[k], tile[k * THREADS + rank]));
        by_pairs(products, Element::add)
    };
    let of_one = |index: usize, x| product(x, y[index]);
    for_each_block(blocks, sums, |block| {
        if T::Total::IS_EXACT {
            let products = |(first, tile): (usize, &[T])| {
                let pairs = tile.iter().zip(&y[first..]);
                pairs.fold(T::Total::ZERO, |sum, (x, y)| sum.add(product(*x, *y)))
            };
            return block.tiles(x).map(products).fold(Element::ZERO, Element::add);
        }
        let own = block.fold_tiles(x, Element::ZERO, of_items, of_one, Element::add);
        block_reduce(own, Element::add)
    });
}

/// The least key of a tile, or the greatest.
#[inline(always)]
fn key_of_tile<T: Element>(tile: &[T], greatest: bool) -> T::Key {
    // Numbers are compared as they are, which takes fewer instructions than to make keys; with NaN no comparison holds.
    let is_number = |x: &&T| x.partial_cmp(x).is_some();
    let Some(first) = tile.iter().find(is_number) else { return T::Key::LAST };
    let best = if greatest {
        let greater = |a, x| if x > a { x } else { a };
        in_any_order(tile, *first, greater, greater)
    } else {
        let lesser = |a, x| if x < a { x } else { a };
        in_any_order(tile, *first, lesser, lesser)
    };
    key_of(best, greatest)
}

pub(super) fn extremum<T: Element>(blocks: [u32; 1], greatest: bool, x: &[T], found: &mut [T]) {
    for_each_block(blocks, found, |block| {
        let keys = block.tiles(x).map(|(_, tile)| key_of_tile(tile, greatest));
        of_key(keys.fold(Key::LAST, Ord::min), greatest)
    });
}

pub(super) fn extremum_position<T: Element>(
    blocks: [u32; 1],
    greatest: bool,
    x: &[T],
    found: &mut [Indexed<T>],
) {
    for_each_block(blocks, found, |block| {
        let mut best = (T::Key::LAST, u64::MAX);
        for (first, tile) in block.tiles(x) {
            let key = key_of_tile(tile, greatest);
            // Rarely looked for: most tiles have nothing better.
            if key < best.0 || best.1 == u64::MAX {
                let nearest = tile.iter().position(|x| key_of(*x, greatest) == key);
                best = (key, (first + nearest.expect("it is there")) as u64);
            }
        }
        Indexed { index: best.1, value: of_key(best.0, greatest) }
    });
}

pub(super) fn best_position<T: Element>(
    blocks: [u32; 1],
    greatest: bool,
    x: &[Indexed<T>],
    found: &mut [Indexed<T>],
) {
    let places = x.iter().map(|x| (key_of(x.value, greatest), x.index));
    let (key, index) = places.fold((Key::LAST, u64::MAX), better);
    for_each_block(blocks, found, |_| Indexed { index, value: of_key(key, greatest) });
}

pub(super) fn count_same<T: Element>(blocks: [u32; 1], value: T, same: bool, x: &[T], counts: &mut [u64]) {
    for_each_block(blocks, counts, |block| {
        let of_tile = |tile: &[T]| tile.iter().map(|x| u32::from(x.is_same(value) == same)).sum::<u32>();
        block.tiles(x).map(|(_, tile)| u64::from(of_tile(tile))).sum()
    });
}

pub(super) fn test_counts(blocks: [u32; 1], none: bool, counts: &[u64], found: &mut [bool]) {
    let all = counts.iter().fold(0, |all, count| all | count);
    for_each_block(blocks, found, |_| (all == 0) == none);
}

pub(super) fn moments_of_tiles<T: Element>(blocks: [u32; 1], x: &[T], found: &mut [Moments]) {
    let (tiles, rest) = x.as_chunks::<TILE>();
    for_each_block(blocks, found, |block| {
        let own = block.fold_tiles(
            tiles.as_flattened(),
            Moments::NONE,
            |_, items| Moments::of_items(items),
            |_, _| Moments::NONE,
            Moments::merge,
        );
        let rest = if block.has_tile(tiles.len()) { rest } else { &[] };
        let of_rest = |rank: usize| of_rest(rest, rank);
        of_block(std::array::from_fn(|rank| own[rank].merge(of_rest(rank))))
    });
}

/// As `moments::kernels::of_rest`, of thread `rank`.
fn of_rest<T: Element>(rest: &[T], rank: usize) -> Moments {
    let own = || rest.iter().skip(rank).step_by(THREADS).map(|x| x.real());
    let count = own().len();
    let sum = own().sum::<f64>();
    let mean = sum / count as f64;
    Moments { count: count as u64, sum, deviations: own().map(|x| (x - mean) * (x - mean)).sum() }
}

/// As `Moments::of_block`.
fn of_block(own: [Moments; THREADS]) -> Moments {
    let reduce = |parts| block_reduce(parts, |a: (f64, u64), b| (a.0 + b.0, a.1 + b.1));
    let (sum, count) = reduce(own.map(|own| (own.sum, own.count)));
    let (deviations, _) = reduce(own.map(|own| (own.deviations_from(sum, count), 0)));
    Moments { count, sum, deviations }
}

fn merged(parts: &[Moments]) -> Moments {
    let of_thread = |rank| parts.iter().skip(rank).step_by(THREADS).copied();
    of_block(std::array::from_fn(|rank| of_thread(rank).fold(Moments::NONE, Moments::merge)))
}

pub(super) fn moments_of_parts(blocks: [u32; 1], parts: &[Moments], found: &mut [Moments]) {
    for_each_block(blocks, found, |_| merged(parts));
}

pub(super) fn statistic_of_parts(
    blocks: [u32; 1],
    statistic: Statistic,
    parts: &[Moments],
    found: &mut [f64],
) {
    for_each_block(blocks, found, |_| statistic.of(merged(parts)));
}

pub(super) fn norm_of_tiles<T: Element>(blocks: [u32; 1], norm: Norm, x: &[T], parts: &mut [f64]) {
    let part = |block: Block| {
        // A loop for each norm, so that it is vectorised.
        let part = match norm {
            Norm::One => part_of_norm(block, x, f64::abs, |a, b| Norm::One.combine(a, b)),
            Norm::Two => part_of_norm(block, x, |x| x * x, |a, b| Norm::Two.combine(a, b)),
            Norm::Max => part_of_norm(block, x, f64::abs, |a, b| Norm::Max.combine(a, b)),
        };
        if blocks == [1] { norm.finish(part) } else { part }
    };
    for_each_block(blocks, parts, part);
}

#[inline(always)]
fn part_of_norm<T: Element>(
    block: Block,
    x: &[T],
    of: impl Fn(f64) -> f64,
    combine: impl Fn(f64, f64) -> f64,
) -> f64 {
    block_reduce(block.fold(x, 0.0, |x| of(x.real()), &combine), &combine)
}

pub(super) fn norm_of_parts(blocks: [u32; 1], norm: Norm, parts: &[f64], found: &mut [f64]) {
    for_each_block(blocks, found, |block| {
        let own = block.fold(parts, 0.0, |part| part, |a, b| norm.combine(a, b));
        norm.finish(block_reduce(own, |a, b| norm.combine(a, b)))
    });
}
