//! Random numbers and permutations.

use ferrogrid::algorithms::{self, Philox};
use ferrogrid::device::random::Philox4x32;
use ferrogrid::prelude::*;

use super::LENGTHS;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("fills_are_the_groups_of_the_generator", fills_are_the_groups_of_the_generator),
    ("distributions_have_their_moments", distributions_have_their_moments),
    ("permutations_have_each_number_once", permutations_have_each_number_once),
];

/// Also of misaligned views, and from where the last call ended.
fn fills_are_the_groups_of_the_generator(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        for first in [0, 1] {
            let mut fills = Philox::new(7);
            fills.skip(u64::MAX - 2);
            // The offset wraps around within the subsequence.
            let mut at = u64::MAX - 2;
            let mut next = |count: usize| -> Vec<Philox4x32> {
                let groups = (0..count).map(|i| Philox4x32::new(7, 0, at.wrapping_add(i as u64))).collect();
                at = at.wrapping_add(count as u64);
                groups
            };
            let what = format!("{n} from {first}");
            let mut words = stream.zeros::<u32>(n + first)?;
            fills.words(&stream, words.slice_mut(first..)?)?;
            let expected: Vec<u32> =
                next(n.div_ceil(4)).iter_mut().flat_map(|it| it.next_u32x4()).take(n).collect();
            expect(&what, stream.download(words.slice(first..)?)?, expected)?;
            let mut singles = stream.zeros::<f32>(n + first)?;
            fills.uniform(&stream, singles.slice_mut(first..)?)?;
            let expected: Vec<f32> =
                next(n.div_ceil(4)).iter_mut().flat_map(|it| it.next_uniform_f32x4()).take(n).collect();
            expect(&what, stream.download(singles.slice(first..)?)?, expected)?;
            let mut doubles = stream.zeros::<f64>(n + first)?;
            fills.uniform(&stream, doubles.slice_mut(first..)?)?;
            let expected: Vec<f64> =
                next(n.div_ceil(2)).iter_mut().flat_map(|it| it.next_uniform_f64x2()).take(n).collect();
            expect(&what, stream.download(doubles.slice(first..)?)?, expected)?;
            fills.normal(&stream, singles.slice_mut(first..)?)?;
            let expected = next(n.div_ceil(4));
            let expected = expected.into_iter().flat_map(|mut it| it.next_normal_f32x4());
            let found = stream.download(singles.slice(first..)?)?;
            expect(&what, found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 4e-6), true)?;
            fills.normal(&stream, doubles.slice_mut(first..)?)?;
            let expected = next(n.div_ceil(2)).into_iter().flat_map(|mut it| it.next_normal_f64x2());
            let found = stream.download(doubles.slice(first..)?)?;
            expect(&what, found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14), true)?;
        }
    }
    Ok(())
}

/// Mean and variance of 200,001 numbers, within five standard errors.
fn distributions_have_their_moments(device: &Device) -> Outcome {
    const N: usize = 200_001;
    let stream = device.new_stream()?;
    let mut random = Philox::new(99);
    macro_rules! check {
        ($($t:ident),*) => {
            $({
                let mut y = stream.zeros::<$t>(N)?;
                let check = |what: &str, y: &DeviceBuffer<$t>, [mean, variance, fourth]: [f64; 3]| {
                    let found = algorithms::moments(&stream, y)?;
                    let errors = [variance, fourth - variance * variance].map(|it| 5.0 * (it / N as f64).sqrt());
                    let is_near = (found.mean() - mean).abs() < errors[0] && (found.variance() - variance).abs() < errors[1];
                    expect(&format!("{what}: {found:?}"), is_near, true)
                };
                random.uniform(&stream, &mut y)?;
                check("uniform", &y, [0.5, 1.0 / 12.0, 1.0 / 80.0])?;
                random.normal(&stream, &mut y)?;
                check("normal", &y, [0.0, 1.0, 3.0])?;
                random.exponential(&stream, &mut y)?;
                check("exponential", &y, [1.0, 1.0, 9.0])?;
                expect("least", algorithms::min(&stream, &y)?.is_some_and(|least| least >= 0.0), true)?;
            })*
        };
    }
    check!(f32, f64);
    Ok(())
}

fn permutations_have_each_number_once(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = Philox::new(3);
    for &n in LENGTHS {
        let (mut a, mut b) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(n)?);
        random.permutation(&stream, &mut a)?;
        random.permutation(&stream, &mut b)?;
        let (mut a, b) = (stream.download(&a)?, stream.download(&b)?);
        if n > 30 {
            expect(&n.to_string(), a == b || a.is_sorted(), false)?;
        }
        a.sort_unstable();
        expect(&n.to_string(), a, (0..n as u32).collect())?;
    }
    Ok(())
}
