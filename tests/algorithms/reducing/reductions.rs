//! Reductions: sums, products, dot products, the least and the greatest element.

use std::fmt::Debug;

use ferrogrid::LaunchError;
use ferrogrid::algorithms::{self, Indexed, Number};
use ferrogrid::prelude::*;

use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};
use crate::{FEW_LENGTHS, LENGTHS};

pub(crate) const CASES: &[Case] = &[
    ("sums_of_integers_are_exact", sums_of_integers_are_exact),
    ("sums_of_floats_are_close_to_exact", sums_of_floats_are_close_to_exact),
    ("sums_of_floats_have_the_same_bits_on_every_device", sums_of_floats_have_the_same_bits_on_every_device),
    ("products_wrap_around", products_wrap_around),
    ("dot_products_are_wide", dot_products_are_wide),
    ("dot_products_take_equal_lengths", dot_products_take_equal_lengths),
    ("least_and_greatest_of_all_types", least_and_greatest_of_all_types),
    ("extrema_skip_nan", extrema_skip_nan),
    ("the_first_of_equal_elements_is_found", the_first_of_equal_elements_is_found),
    ("results_stay_on_the_device", results_stay_on_the_device),
    ("views_are_reduced", views_are_reduced),
    ("reductions_are_recorded_in_graphs", reductions_are_recorded_in_graphs),
    ("long_inputs_are_reduced", long_inputs_are_reduced),
    ("more_than_2_to_the_32_elements_are_reduced", more_than_2_to_the_32_elements_are_reduced),
];

fn sums_of_integers_are_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(181);
    macro_rules! sums {
        ($($t:ident: $total:ty),*) => {
            $(for &n in FEW_LENGTHS {
                let x: Vec<$t> = (0..n).map(|_| random.$t(..)).collect();
                let expected = x.iter().fold(0, |sum: $total, &x| sum.wrapping_add(x.into()));
                let what = format!("{n} {}", stringify!($t));
                expect(&what, algorithms::sum(&stream, &stream.upload(&x)?)?, expected)?;
            })*
        };
    }
    sums!(i8: i64, i16: i64, i32: i64, i64: i64, u8: u64, u16: u64, u32: u64, u64: u64);
    Ok(())
}

fn sums_of_floats_are_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(182);
    for &n in LENGTHS {
        let x: Vec<f64> = (0..n).map(|_| random.f64() - 0.25).collect();
        let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        // Both are exact enough here.
        let [exact, size] = [x.iter().sum::<f64>(), x.iter().map(|x| x.abs()).sum()];
        let exact_single: f64 = single.iter().map(|&x| f64::from(x)).sum();
        let sum = algorithms::sum(&stream, &stream.upload(&x)?)?;
        let sum_single = algorithms::sum(&stream, &stream.upload(&single)?)?;
        if (sum - exact).abs() > 1e-14 * size || (f64::from(sum_single) - exact_single).abs() > 1e-6 * size {
            return Err(format!("{n}: {sum} and {sum_single}, expected {exact} and {exact_single}").into());
        }
    }
    for (x, expected) in [([f32::INFINITY, 1.0], f32::INFINITY), ([-0.0, -0.0], 0.0)] {
        expect("special sums", algorithms::sum(&stream, &stream.upload(&x)?)?, expected)?;
    }
    let opposed = stream.upload(&[f32::INFINITY, f32::NEG_INFINITY])?;
    expect("the sum is NaN", algorithms::sum(&stream, &opposed)?.is_nan(), true)
}

/// A change of these bits breaks a promise to users: the order of additions is part of the function.
fn sums_of_floats_have_the_same_bits_on_every_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(183);
    let x: Vec<f64> = (0..100_003).map(|_| (random.f64() - 0.5) * 10_f64.powi(random.i32(-6..6))).collect();
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let (x, single) = (stream.upload(&x)?, stream.upload(&single)?);
    for _ in 0..3 {
        let bits = algorithms::sum(&stream, &x)?.to_bits();
        let bits_single = algorithms::sum(&stream, &single)?.to_bits();
        let dot = algorithms::dot(&stream, &single, &single)?.to_bits();
        expect("bits", (bits, bits_single, dot), (4705429325083495948, 1248352338, 1422536515))?;
    }
    Ok(())
}

fn products_wrap_around(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(184);
    for &n in LENGTHS {
        let x: Vec<i16> = (0..n).map(|_| random.i16(..) | 1).collect();
        let expected = x.iter().fold(1, |product: i64, &x| product.wrapping_mul(x.into()));
        expect(&format!("{n} i16"), algorithms::product(&stream, &stream.upload(&x)?)?, expected)?;
    }
    // Powers of two are exact in any order.
    let x: Vec<f32> = (0..10_000).map(|i| if i % 2 == 0 { 2.0 } else { 0.5 }).collect();
    expect("f32", algorithms::product(&stream, &stream.upload(&x)?)?, 1.0)
}

fn dot_products_are_wide(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(185);
    for &n in LENGTHS {
        let [x, y] = [0; 2].map(|_| (0..n).map(|_| random.i32(..)).collect::<Vec<_>>());
        let exact =
            x.iter().zip(&y).fold(0, |sum: i64, (&x, &y)| sum.wrapping_add(i64::from(x) * i64::from(y)));
        let (x, y) = (stream.upload(&x)?, stream.upload(&y)?);
        expect(&format!("{n}"), algorithms::dot(&stream, &x, &y)?, exact)?;
    }
    Ok(())
}

fn dot_products_take_equal_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.fill(1.0_f32, 5000)?, stream.fill(1.0_f32, 5001)?);
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    let text = expect_error("lengths", algorithms::dot(&stream, &x, &y), is_expected)?;
    names(&text, &["5000", "5001"])
}

/// The four results for `x`, which is not empty, against the same on the host.
fn check_extrema<T: Number + PartialOrd + Debug>(what: &str, stream: &Stream, x: &[T]) -> Outcome {
    let best = |is_better: fn(&T, &T) -> bool| {
        let start = Indexed { index: 0, value: x[0] };
        x.iter().enumerate().fold(start, |best, (index, value)| {
            if is_better(value, &best.value) { Indexed { index: index as u64, value: *value } } else { best }
        })
    };
    let (least, greatest) = (best(|a, b| a < b), best(|a, b| a > b));
    let x = stream.upload(x)?;
    expect(what, algorithms::argmin(stream, &x)?, Some(least))?;
    expect(what, algorithms::argmax(stream, &x)?, Some(greatest))?;
    expect(what, algorithms::min(stream, &x)?, Some(least.value))?;
    expect(what, algorithms::max(stream, &x)?, Some(greatest.value))
}

fn least_and_greatest_of_all_types(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(186);
    macro_rules! extrema {
        ($($t:ident: $of:expr),*) => {
            $(for &n in &FEW_LENGTHS[1..] {
                let mut x: Vec<$t> = (0..n).map(|_| $of).collect();
                check_extrema(&format!("{n} {}", stringify!($t)), &stream, &x)?;
                x.fill(<$t>::MAX);
                check_extrema(&format!("{n} times the greatest {}", stringify!($t)), &stream, &x)?;
                x[n / 2] = <$t>::MIN;
                check_extrema(&format!("{n} with the least {}", stringify!($t)), &stream, &x)?;
            })*
            expect("none", algorithms::min::<u8>(&stream, &stream.zeros(0)?)?, None)?;
            expect("none", algorithms::argmax::<u8>(&stream, &stream.zeros(0)?)?, None)?;
        };
    }
    extrema! {
        i8: random.i8(..), i16: random.i16(..), i32: random.i32(..), i64: random.i64(..),
        u8: random.u8(..), u16: random.u16(..), u32: random.u32(..), u64: random.u64(..),
        f32: random.f32() - 0.5, f64: (random.f64() - 0.5) * 1e300
    }
    let mut sorted: Vec<i32> = (-6000..6000).collect();
    check_extrema("ascending", &stream, &sorted)?;
    sorted.reverse();
    check_extrema("descending", &stream, &sorted)
}

fn extrema_skip_nan(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [3, 5000] {
        let mut x = vec![f64::NAN; n];
        let all_nan = stream.upload(&x)?;
        expect("only NaN", algorithms::min(&stream, &all_nan)?.map(f64::is_nan), Some(true))?;
        expect("only NaN", algorithms::max(&stream, &all_nan)?.map(f64::is_nan), Some(true))?;
        expect("only NaN", algorithms::argmax(&stream, &all_nan)?.map(|it| it.index), Some(0))?;
        (x[1], x[n - 1]) = (f64::INFINITY, f64::NEG_INFINITY);
        let x = stream.upload(&x)?;
        expect(
            "least",
            algorithms::argmin(&stream, &x)?,
            Some(Indexed { index: n as u64 - 1, value: f64::NEG_INFINITY }),
        )?;
        expect(
            "greatest",
            algorithms::argmax(&stream, &x)?,
            Some(Indexed { index: 1, value: f64::INFINITY }),
        )?;
    }
    Ok(())
}

fn the_first_of_equal_elements_is_found(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut x = vec![0.0_f32; 20_000];
    (x[9000], x[17_000], x[4100]) = (-1.0, -1.0, -0.0);
    let device_x = stream.upload(&x)?;
    expect("least", algorithms::argmin(&stream, &device_x)?, Some(Indexed { index: 9000, value: -1.0 }))?;
    expect("greatest", algorithms::argmax(&stream, &device_x)?, Some(Indexed { index: 0, value: 0.0 }))
}

fn results_stay_on_the_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&(1..=10_000).collect::<Vec<i32>>())?;
    let (mut totals, mut extrema) = (stream.zeros::<i64>(3)?, stream.zeros::<i32>(2)?);
    let mut places = stream.upload(&[Indexed { index: 0, value: 0 }; 2])?;
    algorithms::sum_into(&stream, &x, totals.slice_mut(..1)?)?;
    algorithms::dot_into(&stream, &x, &x, totals.slice_mut(1..2)?)?;
    algorithms::product_into(&stream, x.slice(..5)?, totals.slice_mut(2..)?)?;
    algorithms::min_into(&stream, &x, extrema.slice_mut(..1)?)?;
    algorithms::max_into(&stream, &x, extrema.slice_mut(1..)?)?;
    algorithms::argmin_into(&stream, &x, places.slice_mut(..1)?)?;
    algorithms::argmax_into(&stream, &x, places.slice_mut(1..)?)?;
    expect("totals", stream.download(&totals)?, vec![50_005_000, 333_383_335_000, 120])?;
    expect("extrema", stream.download(&extrema)?, vec![1, 10_000])?;
    let expected = vec![Indexed { index: 0, value: 1 }, Indexed { index: 9999, value: 10_000 }];
    expect("places", stream.download(&places)?, expected)?;
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::MoreBlocksThanTiles { .. }));
    expect_error("no room", algorithms::sum_into(&stream, &x, totals.slice_mut(..0)?), is_expected)?;
    Ok(())
}

fn views_are_reduced(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u16> = (0..20_000).map(|i| (i % 251) as u16).collect();
    let device_x = stream.upload(&x)?;
    for range in [1..2, 3..4099, 5..19_998] {
        let expected: u64 = x[range.clone()].iter().map(|&x| u64::from(x)).sum();
        expect(&format!("{range:?}"), algorithms::sum(&stream, device_x.slice(range)?)?, expected)?;
    }
    Ok(())
}

fn reductions_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, sum) = (stream.zeros::<u32>(10_000)?, stream.zeros::<u64>(1)?);
    let (graph, (x, sum)) = stream.capture(|capture| {
        let (x, mut sum) = (capture.keep(x)?, capture.keep(sum)?);
        algorithms::sum_into(capture, &x, &mut sum)?;
        Ok((x.key(), sum.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in 1..4 {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("sum", stream.download(graph.view(sum)?)?, vec![10_000 * u64::from(value)])?;
    }
    Ok(())
}

/// More tiles than a launch has blocks: on a GPU, because it is slow on the CPU device without optimisation.
fn long_inputs_are_reduced(device: &Device) -> Outcome {
    let n: usize = if device.is_cuda() { 20_000_003 } else { 200_003 };
    let stream = device.new_stream()?;
    let mut x = vec![1_u8; n];
    (x[n - 2], x[7]) = (9, 0);
    let x = stream.upload(&x)?;
    expect("sum", algorithms::sum(&stream, &x)?, n as u64 + 7)?;
    expect("least", algorithms::argmin(&stream, &x)?, Some(Indexed { index: 7, value: 0 }))?;
    expect("greatest", algorithms::argmax(&stream, &x)?, Some(Indexed { index: n as u64 - 2, value: 9 }))
}

fn more_than_2_to_the_32_elements_are_reduced(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return not_for_this_device("it would take a minute");
    }
    let n = (1_usize << 32) + 5;
    let stream = device.new_stream()?;
    let mut x = stream.fill(1_u8, n)?;
    stream.fill_into(3, x.slice_mut(n - 2..n - 1)?)?;
    expect("sum", algorithms::sum(&stream, &x)?, n as u64 + 2)?;
    expect("greatest", algorithms::argmax(&stream, &x)?, Some(Indexed { index: n as u64 - 2, value: 3 }))
}
