//! Cache operators and policies change no value.

use ferrogrid::device::Aligned16;
use ferrogrid::prelude::*;

use crate::memory::access::cache_kernels::caching;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("cache_operators_move_elements_of_any_width", cache_operators_move_elements_of_any_width),
    ("policies_of_l2_change_no_value", policies_of_l2_change_no_value),
    ("a_policy_for_no_part_of_the_lines_is_refused", a_policy_for_no_part_of_the_lines_is_refused),
    ("a_prefetch_may_be_beyond_the_end", a_prefetch_may_be_beyond_the_end),
    ("cache_operators_see_the_writes_of_their_thread", cache_operators_see_the_writes_of_their_thread),
    ("a_cached_load_checks_its_bounds", a_cached_load_checks_its_bounds),
];

/// Elements of a type that differ in as many bits as possible go through every load and every store.
macro_rules! reversed {
    ($device:ident, $ty:ty, $element:expr) => {{
        let stream = $device.new_stream()?;
        let x: Vec<$ty> = (0..100).map($element).collect();
        let expected: Vec<$ty> = x.iter().rev().copied().collect();
        let input = stream.upload(&x)?;
        for how in 0..caching::LOADS.max(caching::STORES) {
            let (load, store) = (how % caching::LOADS, (how + 3) % caching::STORES);
            let mut y = stream.upload(&vec![x[0]; x.len()])?;
            caching::reverse::<$ty>(&stream, Grid::new(2, 64), load, store, &input, &mut y)?;
            let what = format!("{}, load {load}, store {store}", stringify!($ty));
            expect(&what, stream.download(&y)?, expected.clone())?;
        }
    }};
}

fn mixed(i: u64) -> u64 {
    (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn cache_operators_move_elements_of_any_width(device: &Device) -> Outcome {
    reversed!(device, u8, |i: u64| i as u8);
    reversed!(device, i16, |i| mixed(i) as i16);
    reversed!(device, f32, |i| mixed(i) as u32 as f32);
    reversed!(device, f64, |i| mixed(i) as f64);
    reversed!(device, u128, |i| u128::from(mixed(i)) << 64 | u128::from(!mixed(i)));
    let four = |i: u64| Aligned16::new([i as f32, i as f32 + 0.25, i as f32 + 0.5, -(i as f32)]);
    reversed!(device, Aligned16<[f32; 4]>, four);
    Ok(())
}

fn policies_of_l2_change_no_value(device: &Device) -> Outcome {
    macro_rules! reversed {
        ($ty:ty, $element:expr) => {{
            let stream = device.new_stream()?;
            let x: Vec<$ty> = (0..100).map($element).collect();
            let expected: Vec<$ty> = x.iter().rev().copied().collect();
            let input = stream.upload(&x)?;
            for (fraction, first) in [(1.0, 0), (0.5, 50), (f32::MIN_POSITIVE, 100), (0.3, usize::MAX)] {
                let mut y = stream.upload(&vec![x[0]; x.len()])?;
                caching::reverse_by_policy::<$ty>(
                    &stream,
                    Grid::new(2, 64),
                    fraction,
                    first,
                    &input,
                    &mut y,
                )?;
                expect(stringify!($ty), stream.download(&y)?, expected.clone())?;
            }
        }};
    }
    reversed!(u8, |i: u32| i as u8 ^ 0x5a);
    reversed!(i16, |i: u32| i as i16 * 300 - 15_000);
    reversed!(f32, |i: u32| i as f32 * 1.7 - 80.0);
    reversed!(f64, |i: u32| f64::from(i) * 1.7 - 80.0);
    reversed!(u128, |i: u32| u128::from(i) << 90 | u128::from(i) << 60 | u128::from(i) << 30 | 1);
    reversed!(Aligned16<[f32; 4]>, |i: u32| Aligned16::new([1.0, 2.0, 3.0, 4.0].map(|k| k * i as f32)));
    Ok(())
}

fn a_policy_for_no_part_of_the_lines_is_refused(device: &Device) -> Outcome {
    for fraction in [0.0, -0.5, 1.5, f32::NAN] {
        let stream = device.new_stream()?;
        let x = stream.upload(&[1.0_f32])?;
        let mut y = stream.zeros(1)?;
        let launched = caching::reverse_by_policy::<f32>(&stream, Grid::cover(1), fraction, 0, &x, &mut y);
        let launched = launched.and_then(|()| stream.synchronize());
        let text = expect_error(&fraction.to_string(), launched, |error| {
            matches!(error, ferrogrid::Error::KernelPanic { .. })
        })?;
        names(&text, &["a fraction above 0 and up to 1"])?;
    }
    Ok(())
}

fn a_prefetch_may_be_beyond_the_end(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u64> = (0..1000).map(mixed).collect();
    let input = stream.upload(&x)?;
    for ahead in [0, 1, 128, 999, 1000, 1 << 40, usize::MAX] {
        let mut y = stream.zeros::<u64>(x.len())?;
        caching::copy_ahead(&stream, Grid::new(2, 64), ahead, &input, &mut y)?;
        expect(&format!("{ahead} ahead"), stream.download(&y)?, x.clone())?;
    }
    Ok(())
}

fn cache_operators_see_the_writes_of_their_thread(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.upload(&[[u32::MAX; 4]; 128])?;
    caching::own(&stream, Grid::new(2, 64), 5, &mut y)?;
    let expected = (0..128).map(|i| i % 64).map(|rank| [rank, rank + 1, rank, 65 - rank]).collect();
    expect("own", stream.download(&y)?, expected)
}

fn a_cached_load_checks_its_bounds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&[1_u32, 2, 3])?;
    let mut y = stream.zeros::<u32>(3)?;
    let launched = caching::beyond(&stream, Grid::cover(3), &x, &mut y).and_then(|()| stream.synchronize());
    let text = expect_error("a load beyond the end", launched, |error| {
        matches!(error, ferrogrid::Error::KernelPanic { .. })
    })?;
    names(&text, &["index out of bounds", "the len is 3 but the index is 3"])
}
