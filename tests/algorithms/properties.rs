//! Random inputs of all algorithms that order, select or add up, beside sequential models: lengths around every tile, and many
//! equal keys, NaN, both zeros, infinities, all equal, sorted, reversed.

use std::fmt::Debug;

use ferrogrid::algorithms::{self, RadixSort};
use ferrogrid::prelude::*;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::templates::kernels::templates;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("random_numbers_are_sorted_and_searched_as_by_std", random_numbers_are_sorted_and_searched),
    ("random_sets_are_those_of_a_model", random_sets_are_those_of_a_model),
    ("random_selections_are_those_of_a_model", random_selections_are_those_of_a_model),
    ("random_segments_are_those_of_a_model", random_segments_are_those_of_a_model),
    ("random_scans_of_slices_are_those_of_a_model", random_scans_are_those_of_a_model),
];

/// Inputs for each property; `PROPTEST_CASES` sets more.
const INPUTS: u32 = 8;

#[derive(Clone, Copy, Debug)]
enum Arrangement {
    Random,
    FewDifferent,
    Special,
    AllEqual,
    Sorted,
    Reversed,
}

#[derive(Clone, Debug)]
struct Input {
    len: usize,
    arrangement: Arrangement,
    seed: u64,
}

/// Around a warp, its run, and the tiles of 2048 and 4096 elements; and any.
fn lengths() -> impl Strategy<Value = usize> {
    let boundaries = select(vec![0_usize, 1, 32, 256, 512, 1024, 2048, 4096, 8192]);
    prop_oneof![
        (boundaries, 0_usize..3).prop_map(|(at, more)| (at + more).saturating_sub(1)),
        0_usize..10_000
    ]
}

fn inputs() -> impl Strategy<Value = Input> {
    use Arrangement::{AllEqual, FewDifferent, Random, Reversed, Sorted, Special};
    let arrangement = select(vec![Random, FewDifferent, Special, AllEqual, Sorted, Reversed]);
    (lengths(), arrangement, any::<u64>()).prop_map(|(len, arrangement, seed)| Input {
        len,
        arrangement,
        seed,
    })
}

impl Input {
    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed)
    }

    fn floats(&self) -> Vec<f32> {
        let mut random = self.random();
        let special = [f32::NAN, -f32::NAN, -0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-45, f32::MIN];
        let mut of = |_| match self.arrangement {
            Arrangement::FewDifferent => random.u8(0..4).into(),
            Arrangement::Special => special[random.usize(..special.len())],
            Arrangement::AllEqual => -1.5,
            _ => f32::from_bits(random.u32(..)),
        };
        let mut x: Vec<f32> = (0..self.len).map(&mut of).collect();
        match self.arrangement {
            Arrangement::Sorted => x.sort_by(f32::total_cmp),
            Arrangement::Reversed => x.sort_by(|a, b| b.total_cmp(a)),
            _ => {}
        }
        x
    }

    /// As integers with the same arrangement.
    fn integers(&self) -> Vec<u32> {
        self.floats().into_iter().map(f32::to_bits).collect()
    }
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn holds<I: Debug>(inputs: impl Strategy<Value = I>, check: impl Fn(&I) -> Outcome) -> Outcome {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { INPUTS };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 64, ..Config::default() };
    let result = TestRunner::new(config)
        .run(&inputs, |input| check(&input).map_err(|error| TestCaseError::fail(error.to_string())));
    match result {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, input)) => {
            Err(format!("{input:?}: {}", reason.message().chars().take(400).collect::<String>()).into())
        }
        Err(other) => Err(other.to_string().into()),
    }
}

fn random_numbers_are_sorted_and_searched(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    holds((inputs(), 0_usize..=100), |(input, percent)| {
        let x = input.floats();
        let n = x.len();
        let (on_device, mut y) = (stream.upload(&x)?, stream.zeros::<f32>(n)?);
        let mut sorted = x.clone();
        sorted.sort_by(f32::total_cmp);
        algorithms::sort(&stream, &on_device, &mut y)?;
        expect("sort", bits(&stream.download(&y)?), bits(&sorted))?;
        let (values, mut found) = (stream.upload(&x)?, stream.zeros::<u64>(n)?);
        algorithms::upper_bound(&stream, &y, &values, &mut found)?;
        let upper = |value: &f32| sorted.partition_point(|x| x.total_cmp(value).is_le()) as u64;
        expect("upper bound", stream.download(&found)?, x.iter().map(upper).collect())?;
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by(|&a, &b| x[b as usize].total_cmp(&x[a as usize]));
        let k = n * percent / 100;
        let (mut greatest, mut places) = (stream.zeros::<f32>(k)?, stream.zeros::<u32>(k)?);
        algorithms::top_k(&stream, &on_device, &mut greatest, &mut places)?;
        expect("places of the greatest", stream.download(&places)?, order[..k].to_vec())?;
        sorted.reverse();
        expect("the greatest", bits(&stream.download(&greatest)?), bits(&sorted[..k]))?;
        templates::descending::merge_sort(&stream, &on_device, &mut y)?;
        expect("merge sort", bits(&stream.download(&y)?), bits(&sorted))
    })
}

fn random_sets_are_those_of_a_model(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    holds((inputs(), inputs()), |(a, b)| {
        let (mut a, mut b) = (a.integers(), b.integers());
        // Half of them are in both.
        b.extend_from_slice(&a[..a.len() / 2]);
        a.sort_unstable();
        b.sort_unstable();
        let (of_a, of_b) = (stream.upload(&a)?, stream.upload(&b)?);
        let mut y = stream.zeros::<u32>(a.len() + b.len())?;
        algorithms::merge(&stream, &of_a, &of_b, &mut y)?;
        let mut merged = [a.as_slice(), &b].concat();
        merged.sort_unstable();
        expect("merge", stream.download(&y)?, merged)?;
        // What is left of `b` when each element of `a` has taken its equal.
        let (mut rest, mut common, mut of_a_alone) = (b.iter().copied().peekable(), Vec::new(), Vec::new());
        let mut of_b_alone = Vec::new();
        for x in a {
            of_b_alone.extend(std::iter::from_fn(|| rest.next_if(|y| *y < x)));
            if rest.next_if_eq(&x).is_some() { common.push(x) } else { of_a_alone.push(x) }
        }
        of_b_alone.extend(rest);
        let union_of = |parts: &[&Vec<u32>]| {
            let mut all: Vec<u32> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            all.sort_unstable();
            all
        };
        let count = algorithms::set_intersection(&stream, &of_a, &of_b, &mut y)?;
        expect("intersection", stream.download(&y)?[..count].to_vec(), common.clone())?;
        let count = algorithms::set_difference(&stream, &of_a, &of_b, &mut y)?;
        expect("difference", stream.download(&y)?[..count].to_vec(), of_a_alone.clone())?;
        let count = algorithms::set_symmetric_difference(&stream, &of_a, &of_b, &mut y)?;
        expect("symmetric", stream.download(&y)?[..count].to_vec(), union_of(&[&of_a_alone, &of_b_alone]))?;
        let count = algorithms::set_union(&stream, &of_a, &of_b, &mut y)?;
        let all = union_of(&[&common, &of_a_alone, &of_b_alone]);
        expect("union", stream.download(&y)?[..count].to_vec(), all)
    })
}

fn random_selections_are_those_of_a_model(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    holds(inputs(), |input| {
        let x = input.integers();
        let mut random = input.random();
        let flags: Vec<bool> = x.iter().map(|_| random.bool()).collect();
        let (on_device, of_flags) = (stream.upload(&x)?, stream.upload(&flags)?);
        let mut y = stream.zeros::<u32>(x.len())?;
        let part = |kept: bool| x.iter().zip(&flags).filter(move |(_, flag)| **flag == kept).map(|(x, _)| *x);
        let count = algorithms::select(&stream, &on_device, &of_flags, &mut y)?;
        expect("select", stream.download(&y)?[..count].to_vec(), part(true).collect())?;
        algorithms::partition(&stream, &on_device, &of_flags, &mut y)?;
        expect("partition", stream.download(&y)?, part(true).chain(part(false)).collect())?;
        let count = algorithms::unique(&stream, &on_device, &mut y)?;
        let mut unique = x.clone();
        unique.dedup();
        expect("unique", stream.download(&y)?[..count].to_vec(), unique)
    })
}

fn random_segments_are_those_of_a_model(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    holds((inputs(), 1_usize..400), |(input, segments)| {
        let x = input.integers();
        let mut random = input.random();
        let mut offsets: Vec<u32> = (1..*segments).map(|_| random.u32(0..=x.len() as u32)).collect();
        offsets.extend([0, x.len() as u32]);
        offsets.sort_unstable();
        let of_segments = || offsets.windows(2).map(|ends| &x[ends[0] as usize..ends[1] as usize]);
        let (on_device, of_offsets) = (stream.upload(&x)?, stream.upload(&offsets)?);
        let mut sums = stream.zeros::<u64>(*segments)?;
        algorithms::segmented_sum(&stream, &on_device, &of_offsets, &mut sums)?;
        let expected = of_segments().map(|it| it.iter().map(|&x| u64::from(x)).sum()).collect();
        expect("segmented sum", stream.download(&sums)?, expected)?;
        let mut y = stream.zeros::<u32>(x.len())?;
        RadixSort::descending().segmented_keys(&stream, &on_device, &of_offsets, &mut y)?;
        let sorted = of_segments().flat_map(|segment| {
            let mut sorted = segment.to_vec();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            sorted
        });
        expect("segmented sort", stream.download(&y)?, sorted.collect())
    })
}

fn random_scans_are_those_of_a_model(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    holds(inputs(), |input| {
        let x = input.integers();
        let (on_device, mut y) = (stream.upload(&x)?, stream.zeros::<u32>(x.len())?);
        let sums = x.iter().scan(0_u32, |sum, x| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        });
        algorithms::inclusive_sum(&stream, &on_device, &mut y)?;
        expect("sums", stream.download(&y)?, sums.collect())?;
        // With NaN it would not be associative.
        let wide: Vec<f64> = x.iter().copied().map(f64::from).collect();
        let mut greatest = stream.zeros::<f64>(x.len())?;
        templates::greatest(&stream, &stream.upload(&wide)?, &mut greatest)?;
        let expected = wide.iter().scan(0.0, |greatest, &x| {
            *greatest = if x > *greatest { x } else { *greatest };
            Some(*greatest)
        });
        expect("greatest so far", stream.download(&greatest)?, expected.collect())
    })
}
