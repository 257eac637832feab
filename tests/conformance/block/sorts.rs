//! Exchanges and sorts of blocks and warps, compared with std's.

use std::cmp::Ordering;
use std::fmt::Debug;

use ferrogrid::prelude::*;

use crate::block::sort_kernels::sorting;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("blocks_of_any_warps_sort_keys", blocks_of_any_warps_sort_keys),
    ("keys_of_any_type_are_sorted_up_and_down", keys_of_any_type_are_sorted_up_and_down),
    ("values_follow_their_keys_stably", values_follow_their_keys_stably),
    ("a_sort_by_some_bits_leaves_the_others_in_order", a_sort_by_some_bits_leaves_the_others_in_order),
    ("neighbouring_threads_store_sorted_rows", neighbouring_threads_store_sorted_rows),
    ("a_sort_wants_the_threads_that_its_scratch_is_for", a_sort_wants_the_threads_that_its_scratch_is_for),
    ("blocks_exchange_items", blocks_exchange_items),
    ("a_rank_beyond_the_block_is_named", a_rank_beyond_the_block_is_named),
    ("items_of_one_rank_are_one_item", items_of_one_rank_are_one_item),
    ("warps_sort_by_comparison", warps_sort_by_comparison),
    ("warps_exchange_items", warps_exchange_items),
    ("half_a_warp_does_not_sort", half_a_warp_does_not_sort),
];

/// `items` as the items of threads.
fn threads<T: Copy, const N: usize>(items: &[T]) -> Vec<[T; N]> {
    items.chunks_exact(N).map(|chunk| std::array::from_fn(|k| chunk[k])).collect()
}

/// Each `size` of `items` in order, by a stable sort.
fn sorted_parts<T: Clone>(items: &[T], size: usize, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut items = items.to_vec();
    items.chunks_mut(size).for_each(|part| part.sort_by(&order));
    items
}

/// Informative keys: random, few distinct ones, the extremes, all equal, sorted, and reversed.
fn inputs(count: usize, random: &mut fastrand::Rng) -> Vec<Vec<u64>> {
    let extremes = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 0x8000_0000_8000_0000];
    vec![
        (0..count).map(|_| random.u64(..)).collect(),
        (0..count).map(|_| random.u64(..3)).collect(),
        (0..count).map(|_| extremes[random.usize(..extremes.len())]).collect(),
        vec![random.u64(..); count],
        (0..count as u64).collect(),
        (0..count as u64).rev().collect(),
    ]
}

fn blocks_of_any_warps_sort_keys(device: &Device) -> Outcome {
    /// In blocks of `B` threads with `N` keys each.
    macro_rules! sorts {
        ($($b:literal)*; $n:tt) => { $( sorts!(@each $b $n); )* };
        (@each $b:literal [$($n:literal)*]) => { $( sorts!(@one $b $n); )* };
        (@one $b:literal $n:literal) => {{
            let stream = device.new_stream()?;
            let mut random = fastrand::Rng::with_seed($b * 100 + $n);
            // The CPU device is slow with many threads.
            let some = if $b > 256 { 1 } else if $b > 96 { 2 } else { 6 };
            for input in inputs(2 * $b * $n, &mut random).into_iter().take(some) {
                let keys: Vec<u32> = input.iter().map(|&key| key as u32).collect();
                let x = stream.upload(&threads::<u32, $n>(&keys))?;
                let mut y = stream.upload(&vec![[7; $n]; 2 * $b])?;
                sorting::keys::<$b, $n>(&stream, Grid::new(2, $b), &x, &mut y)?;
                let expected = threads::<u32, $n>(&sorted_parts(&keys, $b * $n, u32::cmp));
                expect(concat!(stringify!($b), " x ", stringify!($n)), stream.download(&y)?, expected)?;
            }
        }};
    }
    sorts!(32 96 128 256 1024; [1 4 8]);
    Ok(())
}

fn keys_of_any_type_are_sorted_up_and_down(device: &Device) -> Outcome {
    macro_rules! sorts {
        ($($ty:ty, $order:expr, $bits:expr;)*) => { $({
            let stream = device.new_stream()?;
            let mut random = fastrand::Rng::with_seed(size_of::<$ty>() as u64);
            for input in inputs(2 * 64 * 5, &mut random) {
                let keys: Vec<$ty> = input.into_iter().map($bits).collect();
                let x = stream.upload(&threads::<$ty, 5>(&keys))?;
                for descending in [false, true] {
                    let mut y = stream.upload(&vec![[keys[0]; 5]; 128])?;
                    sorting::both_ways::<$ty>(&stream, Grid::new(2, 64), descending, &x, &mut y)?;
                    let order = |a: &$ty, b: &$ty| if descending { $order(b, a) } else { $order(a, b) };
                    let expected = sorted_parts(&keys, 64 * 5, order);
                    // As bytes: NaN is not equal to itself.
                    let found: Vec<_> = stream.download(&y)?.concat().iter().map(|key| key.to_ne_bytes()).collect();
                    let expected: Vec<_> = expected.iter().map(|key| key.to_ne_bytes()).collect();
                    expect(stringify!($ty), found, expected)?;
                }
            }
        })* };
    }
    sorts! {
        u8, u8::cmp, |bits| bits as u8;
        u16, u16::cmp, |bits| bits as u16;
        u64, u64::cmp, |bits| bits;
        i8, i8::cmp, |bits| bits as i8;
        i16, i16::cmp, |bits| bits as i16;
        i32, i32::cmp, |bits| bits as i32;
        i64, i64::cmp, |bits| bits as i64;
        f32, f32::total_cmp, |bits| f32::from_bits(bits as u32);
        f64, f64::total_cmp, f64::from_bits;
    }
    Ok(())
}

fn values_follow_their_keys_stably(device: &Device) -> Outcome {
    macro_rules! sorts {
        ($($key:ty, $value:ty, $n:literal, $order:expr, $bits:expr;)*) => { $({
            let stream = device.new_stream()?;
            let count = 2 * 128 * $n;
            for input in inputs(count, &mut fastrand::Rng::with_seed($n)) {
                let pairs: Vec<($key, $value)> =
                    input.into_iter().map($bits).zip((0..count).map(|i| i as $value * 0x1_0001)).collect();
                let (keys, values): (Vec<$key>, Vec<$value>) = pairs.iter().copied().unzip();
                let x = stream.upload(&threads::<$key, $n>(&keys))?;
                let v = stream.upload(&threads::<$value, $n>(&values))?;
                let mut y = stream.upload(&vec![[keys[0]; $n]; 256])?;
                let mut w = stream.upload(&vec![[0; $n]; 256])?;
                sorting::pairs::<$key, $value, $n>(&stream, Grid::new(2, 128), &x, &v, &mut y, &mut w)?;
                let order = |(a, _): &($key, $value), (b, _): &($key, $value)| $order(b, a);
                let (keys, values): (Vec<$key>, Vec<$value>) =
                    sorted_parts(&pairs, 128 * $n, order).into_iter().unzip();
                expect("values", stream.download(&w)?.concat(), values)?;
                let bytes = |keys: &[$key]| keys.iter().flat_map(|key| key.to_ne_bytes()).collect::<Vec<u8>>();
                expect("keys", bytes(&stream.download(&y)?.concat()), bytes(&keys))?;
            }
        })* };
    }
    sorts! {
        u8, u32, 2, u8::cmp, |bits| bits as u8;
        u8, u128, 2, u8::cmp, |bits| bits as u8;
        f64, u32, 2, f64::total_cmp, f64::from_bits;
        f64, u128, 2, f64::total_cmp, f64::from_bits;
        u8, u32, 17, u8::cmp, |bits| bits as u8;
        f64, u32, 17, f64::total_cmp, f64::from_bits;
    }
    Ok(())
}

fn a_sort_by_some_bits_leaves_the_others_in_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(9);
    let keys: Vec<u32> = (0..2 * 96 * 3).map(|_| random.u32(..)).collect();
    let x = stream.upload(&threads::<u32, 3>(&keys))?;
    let mut y = stream.upload(&vec![[0; 6]; 2 * 96])?;
    sorting::by_some_bits(&stream, Grid::new(2, 96), &x, &mut y)?;
    let bits = |key: &u32| key >> 4 & 0x7FF;
    let up = sorted_parts(&keys, 96 * 3, |a, b| bits(a).cmp(&bits(b)));
    let down = sorted_parts(&keys, 96 * 3, |a, b| bits(b).cmp(&bits(a)));
    let (found_up, found_down): (Vec<_>, Vec<_>) = stream
        .download(&y)?
        .iter()
        .map(|own| (threads::<u32, 3>(&own[..3])[0], threads::<u32, 3>(&own[3..])[0]))
        .unzip();
    expect("ascending", found_up.concat(), up)?;
    expect("descending", found_down.concat(), down)
}

fn neighbouring_threads_store_sorted_rows(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(11);
    let keys: Vec<f32> = (0..4 * 1024).map(|_| (random.f32() * 50.0).round() - 25.0).collect();
    let (mut x, mut from) = (stream.upload(&keys)?, stream.zeros::<u32>(keys.len())?);
    sorting::rows(&stream, Grid::new(4, 128), x.view_2d_mut(1024, 4)?, from.view_2d_mut(1024, 4)?)?;
    let numbered: Vec<(f32, u32)> = keys.iter().copied().zip((0..4).flat_map(|_| 0..1024)).collect();
    let (keys, places): (Vec<f32>, Vec<u32>) =
        sorted_parts(&numbered, 1024, |(a, _), (b, _)| a.total_cmp(b)).into_iter().unzip();
    expect("keys", stream.download(&x)?, keys)?;
    expect("where they came from", stream.download(&from)?, places)
}

fn a_sort_wants_the_threads_that_its_scratch_is_for(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&[[1_u32]; 64])?;
    let mut y = stream.upload(&[[0_u32]; 64])?;
    let launched = sorting::keys::<128, 1>(&stream, Grid::new(1, 64), &x, &mut y);
    let launched = launched.and_then(|()| stream.synchronize());
    let text = expect_error("a sort in a smaller block", launched, is_panic)?;
    names(&text, &["blocks of 128 threads", "this block has 64"])
}

fn is_panic(error: &ferrogrid::Error) -> bool {
    matches!(error, ferrogrid::Error::KernelPanic { .. })
}

/// The item at position `number` of a part of `size` items after an exchange from blocked to striped.
fn striped(number: usize, n: usize, size: usize) -> usize {
    let (thread, item) = (number / n, number % n);
    item * (size / n) + thread
}

/// For all of several parts of `size` items, the item at `place(number)` of the same part.
fn moved<T: Copy>(items: &[T], size: usize, place: impl Fn(usize) -> usize) -> Vec<T> {
    (0..items.len()).map(|i| items[i / size * size + place(i % size)]).collect()
}

fn blocks_exchange_items(device: &Device) -> Outcome {
    macro_rules! exchanges {
        ($($ty:ty, $n:literal;)*) => { $({
            let stream = device.new_stream()?;
            let (size, count) = (96 * $n, 2 * 96 * $n);
            let mut random = fastrand::Rng::with_seed($n);
            let items: Vec<$ty> = (0..count).map(|i| (i as $ty).wrapping_mul(<$ty>::MAX / 3)).collect();
            let mut ranks: Vec<u32> = (0..2).flat_map(|_| 0..size as u32).collect();
            ranks.chunks_mut(size).for_each(|part| random.shuffle(part));
            let x = stream.upload(&threads::<$ty, $n>(&items))?;
            let device_ranks = stream.upload(&threads::<u32, $n>(&ranks))?;
            let mut y = stream.upload(&vec![[[0; $n]; 4]; 2 * 96])?;
            sorting::exchanges::<$ty, $n>(&stream, Grid::new(2, 96), &x, &device_ranks, &mut y)?;
            let found = stream.download(&y)?;
            let part = |which: usize| found.iter().flat_map(|own| own[which]).collect::<Vec<$ty>>();
            let mut there = items.clone();
            for (i, &rank) in ranks.iter().enumerate() {
                there[i / size * size + rank as usize] = items[i];
            }
            let stripe = |number: usize| striped(number, $n, size);
            let what = |how: &str| format!("{}, {} each, {how}", stringify!($ty), $n);
            expect(&what("striped"), part(0), moved(&items, size, stripe))?;
            expect(&what("and back"), part(1), items.clone())?;
            expect(&what("by ranks"), part(2), there.clone())?;
            expect(&what("by ranks, striped"), part(3), moved(&there, size, stripe))?;
        })* };
    }
    exchanges! { u8, 1; u8, 3; u8, 8; u32, 1; u32, 3; u32, 8; u128, 1; u128, 3; u128, 8; }
    Ok(())
}

/// The result of exchanging one item of each of 96 threads by `ranks`.
fn by_ranks(
    device: &Device,
    items: &[[u32; 1]],
    ranks: &[[u32; 1]],
) -> ferrogrid::Result<Vec<[[u32; 1]; 4]>> {
    let stream = device.new_stream()?;
    let (x, ranks) = (stream.upload(items)?, stream.upload(ranks)?);
    let mut y = stream.upload(&[[[0; 1]; 4]; 96])?;
    sorting::exchanges::<u32, 1>(&stream, Grid::new(1, 96), &x, &ranks, &mut y)?;
    stream.download(&y)
}

fn a_rank_beyond_the_block_is_named(device: &Device) -> Outcome {
    let mut ranks = [[5_u32]; 96];
    ranks[40] = [96];
    let text = expect_error("a rank beyond the end", by_ranks(device, &[[1]; 96], &ranks), is_panic)?;
    names(&text, &["rank is 96", "96 items"])
}

fn items_of_one_rank_are_one_item(device: &Device) -> Outcome {
    let found = by_ranks(device, &[[13]; 96], &[[7]; 96])?;
    expect("the item at that rank", found[7][2..].concat(), vec![13, 13])
}

fn warps_sort_by_comparison(device: &Device) -> Outcome {
    macro_rules! sorts {
        ($($m:literal, $n:literal;)*) => { $({
            let stream = device.new_stream()?;
            for input in inputs(128 * $n, &mut fastrand::Rng::with_seed($m + $n)) {
                let items: Vec<f32> = input.into_iter().map(|bits| f32::from_bits(bits as u32)).collect();
                let x = stream.upload(&threads::<f32, $n>(&items))?;
                let mut y = stream.upload(&vec![[0.0; $n]; 128])?;
                sorting::warps::<$m, $n>(&stream, Grid::new(2, 64), &x, &mut y)?;
                let bits = |items: &[f32]| items.iter().map(|item| item.to_bits()).collect::<Vec<u32>>();
                let expected = sorted_parts(&items, $m * $n, f32::total_cmp);
                let what = format!("tiles of {}, {} each", $m, $n);
                expect(&what, bits(&stream.download(&y)?.concat()), bits(&expected))?;
            }
        })* };
    }
    sorts! { 4, 1; 4, 4; 4, 16; 32, 1; 32, 4; 32, 16; }
    Ok(())
}

fn warps_exchange_items(device: &Device) -> Outcome {
    fn items<T>(count: usize, item: impl Fn(u32) -> T) -> Vec<T> {
        (0..count as u32).map(item).collect()
    }
    fn check<T: Copy + PartialEq + Debug, const N: usize>(
        what: &str,
        tile: usize,
        items: &[T],
        found: &[[[T; N]; 2]],
    ) -> Outcome {
        let part = |which: usize| found.iter().flat_map(|own| own[which]).collect::<Vec<T>>();
        let size = tile * N;
        let expected = moved(items, size, |number| striped(number, N, size));
        expect(&format!("{what}, tiles of {tile}, {N} each"), part(0), expected)?;
        expect("and back", part(1), items.to_vec())
    }
    macro_rules! exchanges {
        ($($ty:ty, $m:literal, $n:literal, $item:expr;)*) => { $({
            let stream = device.new_stream()?;
            let items: Vec<$ty> = items(64 * $n, $item);
            let x = stream.upload(&threads::<$ty, $n>(&items))?;
            let mut y = stream.upload(&[[[items[0]; $n]; 2]; 64])?;
            sorting::warp_exchanges::<$ty, $m, $n>(&stream, Grid::new(1, 64), &x, &mut y)?;
            check(stringify!($ty), $m, &items, &stream.download(&y)?)?;
        })* };
    }
    exchanges! {
        u8, 8, 1, |i| i as u8;
        u8, 8, 2, |i| i as u8;
        u8, 8, 8, |i| i as u8;
        u8, 32, 8, |i| i as u8;
        [u32; 3], 8, 2, |i| [i, !i, 3 * i];
        [u32; 3], 8, 8, |i| [i, !i, 3 * i];
        [u32; 3], 32, 1, |i| [i, !i, 3 * i];
        [u32; 3], 32, 2, |i| [i, !i, 3 * i];
        [u32; 3], 32, 8, |i| [i, !i, 3 * i];
    }
    Ok(())
}

fn half_a_warp_does_not_sort(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&[[1.0_f32]; 48])?;
    let mut y = stream.upload(&[[0.0_f32]; 48])?;
    let launched = sorting::warps::<32, 1>(&stream, Grid::new(1, 48), &x, &mut y);
    let text = expect_error("a sort of 16 threads", launched.and_then(|()| stream.synchronize()), is_panic)?;
    names(&text, &["has fewer threads, and cannot sort"])
}
