//! Merge sorts of blocks, compared with std's stable sort.

use std::cmp::Ordering;

use ferrogrid::prelude::*;

use crate::block::merge_kernels::merging::{self, Record};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    (
        "blocks_sort_by_comparison_and_keep_the_order_of_equals",
        blocks_sort_by_comparison_and_keep_the_order_of_equals,
    ),
    ("blocks_sort_structs_by_a_part_of_them", blocks_sort_structs_by_a_part_of_them),
    ("values_follow_keys_sorted_by_comparison", values_follow_keys_sorted_by_comparison),
    (
        "a_comparison_that_is_no_order_gives_items_of_the_block",
        a_comparison_that_is_no_order_gives_items_of_the_block,
    ),
    (
        "a_merge_sort_wants_the_threads_that_its_scratch_is_for",
        a_merge_sort_wants_the_threads_that_its_scratch_is_for,
    ),
];

/// `items` as the items of threads.
fn threads<T: Copy, const N: usize>(items: &[T]) -> Vec<[T; N]> {
    items.chunks_exact(N).map(|chunk| std::array::from_fn(|k| chunk[k])).collect()
}

/// The first `valid` of each `size` of `items` in order, by a stable sort.
fn sorted_parts<T: Clone>(
    items: &[T],
    size: usize,
    valid: usize,
    order: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let mut items = items.to_vec();
    items.chunks_mut(size).for_each(|part| part[..valid.min(size)].sort_by(&order));
    items
}

fn blocks_sort_by_comparison_and_keep_the_order_of_equals(device: &Device) -> Outcome {
    /// In blocks of `B` threads with `N` keys each.
    macro_rules! sorts {
        ($($b:literal)*; $n:tt) => { $( sorts!(@each $b $n); )* };
        (@each $b:literal [$($n:literal)*]) => { $( sorts!(@one $b $n); )* };
        (@one $b:literal $n:literal) => {{
            let stream = device.new_stream()?;
            let mut random = fastrand::Rng::with_seed($b * 100 + $n);
            let size = $b * $n;
            for (valid, bits) in [(size, 28), (size - 1, 4), (size + 5, 2), (size / 2 + 1, 28), (1, 28), (0, 28), (33, 6)] {
                // Few distinct keys, so that many compare as equal.
                let keys: Vec<u32> = (0..2 * size).map(|_| random.u32(..) >> (28 - bits)).collect();
                let x = stream.upload(&threads::<u32, $n>(&keys))?;
                let mut y = stream.upload(&vec![[7; $n]; 2 * $b])?;
                merging::keys::<$b, $n>(&stream, Grid::new(2, $b), valid as u32, &x, &mut y)?;
                let expected = sorted_parts(&keys, size, valid, |a, b| (a >> 4).cmp(&(b >> 4)));
                let what = format!("{} x {}, {valid} valid", $b, $n);
                expect(&what, stream.download(&y)?, threads::<u32, $n>(&expected))?;
            }
        }};
    }
    sorts!(32 96 256 1024; [1 3 8]);
    Ok(())
}

fn blocks_sort_structs_by_a_part_of_them(device: &Device) -> Outcome {
    macro_rules! sorts {
        ($($n:literal)*) => { $({
            let stream = device.new_stream()?;
            let mut random = fastrand::Rng::with_seed($n);
            let record = |i: usize| Record { key: random.i16(-20..20), rest: [i as u16, 1, 2, 3, 4] };
            let records: Vec<Record> = (0..2 * 128 * $n).map(record).collect();
            let x = stream.upload(&threads::<Record, $n>(&records))?;
            for descending in [false, true] {
                let mut y = stream.upload(&vec![[records[0]; $n]; 2 * 128])?;
                merging::records::<$n>(&stream, Grid::new(2, 128), descending, &x, &mut y)?;
                let order = |a: &Record, b: &Record| if descending { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) };
                let expected = sorted_parts(&records, 128 * $n, usize::MAX, order);
                expect(stringify!($n), stream.download(&y)?.concat(), expected)?;
            }
        })* };
    }
    sorts!(1 2 17);
    Ok(())
}

fn values_follow_keys_sorted_by_comparison(device: &Device) -> Outcome {
    macro_rules! sorts {
        ($($key:ty, $value:ty, $of:expr;)*) => { $({
            let stream = device.new_stream()?;
            let mut random = fastrand::Rng::with_seed(size_of::<$value>() as u64);
            for valid in [u32::MAX, 256, 255, 100, 3, 0] {
                let pairs: Vec<($key, $value)> =
                    (0..512).map(|i| ($of(random.u32(..50)), i as $value * 0x1_0001)).collect();
                let (keys, values): (Vec<$key>, Vec<$value>) = pairs.iter().copied().unzip();
                let (x, v) = (stream.upload(&threads::<$key, 4>(&keys))?, stream.upload(&threads::<$value, 4>(&values))?);
                let mut y = stream.upload(&vec![[keys[0]; 4]; 128])?;
                let mut w = stream.upload(&vec![[0; 4]; 128])?;
                merging::pairs::<$key, $value>(&stream, Grid::new(2, 64), valid, &x, &v, &mut y, &mut w)?;
                let order = |(a, _): &($key, $value), (b, _): &($key, $value)| a.partial_cmp(b).expect("no NaN");
                let (keys, values): (Vec<$key>, Vec<$value>) =
                    sorted_parts(&pairs, 256, valid as usize, order).into_iter().unzip();
                expect("keys", stream.download(&y)?.concat(), keys)?;
                expect("values", stream.download(&w)?.concat(), values)?;
            }
        })* };
    }
    sorts! {
        u8, u32, |key: u32| key as u8;
        u8, u128, |key: u32| key as u8;
        f64, u32, |key: u32| f64::from(key) - 25.0;
        f64, u128, |key: u32| f64::from(key) - 25.0;
    }
    Ok(())
}

fn a_comparison_that_is_no_order_gives_items_of_the_block(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let keys: Vec<u32> = (0..64 * 5).map(|i| 1000 + i * 7919 % 320).collect();
    let x = stream.upload(&threads::<u32, 5>(&keys))?;
    let mut y = stream.upload(&[[0; 5]; 64])?;
    merging::disorder(&stream, Grid::new(1, 64), &x, &mut y)?;
    let strange: Vec<u32> =
        stream.download(&y)?.concat().into_iter().filter(|key| !keys.contains(key)).collect();
    expect("keys that are not among the input", strange, vec![])
}

fn a_merge_sort_wants_the_threads_that_its_scratch_is_for(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&[[0; 5]; 64])?;
    let mut y = stream.upload(&[[0; 5]; 64])?;
    let launched = merging::disorder(&stream, Grid::new(1, 32), &x, &mut y);
    let launched = launched.and_then(|()| stream.synchronize());
    let text = expect_error("a sort in a smaller block", launched, |error| {
        matches!(error, Error::KernelPanic { .. })
    })?;
    names(&text, &["blocks of 64 threads", "this block has 32"])
}
