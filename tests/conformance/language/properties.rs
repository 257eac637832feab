//! Random inputs and shapes: results of the device under test, of the CPU device with any number of workers,
//! and of the host agree, bit for bit or within a stated bound.

use std::fmt::Debug;
use std::sync::OnceLock;

use ferrogrid::prelude::*;
use ferrogrid::{CpuOptions, DeviceCopy};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::block::block_kernels::{shared, warps};
use crate::block::sort_kernels::sorting;
use crate::language::kernels::elementwise;
use crate::language::property_kernels::random;
use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("random_saxpy_is_exact", random_saxpy_is_exact),
    ("random_sums_of_blocks_agree", random_sums_of_blocks_agree),
    ("random_float_sums_are_close_and_the_same_everywhere", random_float_sums),
    ("random_scans_of_blocks_agree", random_scans_of_blocks_agree),
    ("random_shuffles_in_some_tiles_agree", random_shuffles_in_some_tiles_agree),
    ("random_histograms_agree", random_histograms_agree),
    ("random_matrices_multiply_closely_and_the_same_everywhere", random_matrices_multiply),
    ("random_planes_transpose", random_planes_transpose),
    ("random_atomics_agree", random_atomics_agree),
    ("random_keys_are_sorted_as_by_std", random_keys_are_sorted),
];

/// Inputs for each property; `PROPTEST_CASES` sets more.
const INPUTS: u32 = 12;

/// Devices whose results must be the same, bit for bit: the CPU device with few and with many workers.
fn peers() -> &'static [Device] {
    static PEERS: OnceLock<Vec<Device>> = OnceLock::new();
    let with = |workers| Device::cpu_with(CpuOptions::new().workers(workers)).expect("possible");
    PEERS.get_or_init(|| [1, 2, 16].into_iter().map(with).collect())
}

/// Runs `kernel` on random inputs, on `device` and its peers. All results must be the same, and `is_right`.
fn holds<I: Debug + Clone, T: DeviceCopy + PartialEq + Debug>(
    device: &Device,
    inputs: impl Strategy<Value = I>,
    kernel: impl Fn(&Stream, &I) -> ferrogrid::Result<Vec<T>>,
    is_right: impl Fn(&I, &[T]) -> Result<(), String>,
) -> Outcome {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { INPUTS };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let fail = |text: String| TestCaseError::fail(text);
    let run = |device: &Device, input: &I| {
        let result = device.new_stream().and_then(|stream| kernel(&stream, input));
        result.map_err(|error| fail(format!("{device}: {error}")))
    };
    let checked = TestRunner::new(config).run(&inputs, |input| {
        let found = run(device, &input)?;
        is_right(&input, &found).map_err(fail)?;
        for peer in peers() {
            let theirs = run(peer, &input)?;
            if let Some(place) = (0..found.len().max(theirs.len())).find(|&i| found.get(i) != theirs.get(i)) {
                let (here, there) = (found.get(place), theirs.get(place));
                return Err(fail(format!("{place}: {here:?} on {device}, {there:?} on {peer}")));
            }
        }
        Ok(())
    });
    checked.map_err(|error| match error {
        TestError::Fail(reason, input) => format!("{reason}, for {input:?}").into(),
        TestError::Abort(reason) => reason.message().to_owned().into(),
    })
}

/// Fails where `found` is not `expected`.
fn is<T: PartialEq + Debug>(found: &[T], expected: &[T]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} elements, not {}", found.len(), expected.len()));
    }
    match (0..found.len()).find(|&i| found[i] != expected[i]) {
        None => Ok(()),
        Some(i) => Err(format!("element {i} is {:?}, not {:?}", found[i], expected[i])),
    }
}

/// Numbers that neither overflow nor vanish in a few operations.
fn ordinary() -> impl Strategy<Value = f32> + Clone {
    -1000.0_f32..1000.0
}

/// Blocks, threads of each, and one value for each thread of the grid.
fn grids<T: Debug + Clone>(
    threads: u32,
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (u32, u32, Vec<T>)> {
    (1_u32..6, 1..=threads).prop_flat_map(move |(blocks, threads)| {
        (Just(blocks), Just(threads), vec(value.clone(), (blocks * threads) as usize))
    })
}

/// One multiplication and one addition, each rounded: no bound is needed.
fn random_saxpy_is_exact(device: &Device) -> Outcome {
    let inputs = (ordinary(), vec((ordinary(), ordinary()), 0..5000), 1_u32..1025);
    let columns = |pairs: &[(f32, f32)]| pairs.iter().copied().unzip::<f32, f32, Vec<_>, Vec<_>>();
    let kernel = |stream: &Stream, (a, pairs, block): &(f32, Vec<(f32, f32)>, u32)| {
        let (x, y) = columns(pairs);
        let (x, mut y) = (stream.upload(&x)?, stream.upload(&y)?);
        elementwise::saxpy(stream, Grid::cover(pairs.len()).with_block(*block), *a, &x, &mut y)?;
        stream.download(&y)
    };
    holds(device, inputs, kernel, |(a, pairs, _), found| {
        is(found, &pairs.iter().map(|(x, y)| a * x + y).collect::<Vec<_>>())
    })
}

fn random_sums_of_blocks_agree(device: &Device) -> Outcome {
    let kernel = |stream: &Stream, x: &Vec<u32>| {
        let (device_x, mut sums) = (stream.upload(x)?, stream.zeros::<u32>(x.len().div_ceil(256))?);
        shared::tree_sum(stream, Grid::cover(x.len()), &device_x, sums.as_atomic())?;
        stream.download(&sums)
    };
    // Sums of 256 that do not overflow, which would be an error in debug builds.
    holds(device, vec(0_u32..1 << 24, 0..3000), kernel, |x, found| {
        is(found, &x.chunks(256).map(|part| part.iter().sum()).collect::<Vec<u32>>())
    })
}

/// Off by at most n rounding errors of the sum of magnitudes, and the same on every device: reductions and
/// scans guarantee the order of additions.
fn random_float_sums(device: &Device) -> Outcome {
    let kernel = |stream: &Stream, (blocks, threads, x): &(u32, u32, Vec<f32>)| {
        let (device_x, mut output) = (stream.upload(x)?, stream.zeros::<[f32; 2]>(x.len())?);
        random::float_sums(stream, Grid::new(*blocks, *threads), &device_x, &mut output)?;
        stream.download(&output)
    };
    holds(device, grids(1024, ordinary()), kernel, |(_, threads, x), found| {
        let exact = |part: &[f32]| part.iter().map(|&value| f64::from(value)).sum::<f64>();
        for (i, sums) in found.iter().enumerate() {
            let first = i - i % *threads as usize;
            let block = &x[first..first + *threads as usize];
            let magnitude: f64 = block.iter().map(|&value| f64::from(value.abs())).sum();
            let bound = f64::from(*threads) * f64::from(f32::EPSILON) / 2.0 * magnitude;
            for (sum, part) in sums.iter().zip([block, &x[first..=i]]) {
                let error = (f64::from(*sum) - exact(part)).abs();
                if error.is_nan() || error > bound {
                    return Err(format!("sum {i} is off by {error}, bound {bound}"));
                }
            }
        }
        Ok(())
    })
}

fn random_scans_of_blocks_agree(device: &Device) -> Outcome {
    let kernel = |stream: &Stream, (blocks, threads, x): &(u32, u32, Vec<u32>)| {
        let (device_x, mut output) = (stream.upload(x)?, stream.zeros::<[u32; 3]>(x.len())?);
        warps::block_sums(stream, Grid::new(*blocks, *threads), &device_x, &mut output)?;
        stream.download(&output)
    };
    holds(device, grids(1024, 0_u32..1 << 20), kernel, |(_, threads, x), found| {
        let mut expected = Vec::with_capacity(x.len());
        for block in x.chunks(*threads as usize) {
            let (sum, mut before) = (block.iter().sum(), 0);
            for (rank, value) in block.iter().enumerate() {
                let exclusive = if rank == 0 { 1000 } else { before };
                before += value;
                expected.push([sum, before, exclusive]);
            }
        }
        is(found, &expected)
    })
}

/// The size of tiles, which of them take part, whole warps of threads, and what each thread holds and reads.
type Shuffle = (usize, u32, u32, Vec<(u32, u32)>);

fn random_shuffles_in_some_tiles_agree(device: &Device) -> Outcome {
    let sizes = select(&[1_usize, 2, 4, 8, 16, 32][..]);
    let inputs = (sizes, any::<u32>(), 1_u32..9).prop_flat_map(|(size, tiles, warps)| {
        let threads = vec((any::<u32>(), any::<u32>()), 2 * 32 * warps as usize);
        (Just(size), Just(tiles), Just(warps), threads)
    });
    let kernel = |stream: &Stream, (size, tiles, warps, threads): &Shuffle| {
        let (held, from): (Vec<_>, Vec<_>) = threads.iter().copied().unzip();
        let (held, from) = (stream.upload(&held)?, stream.upload(&from)?);
        let mut output = stream.zeros::<[u32; 3]>(threads.len())?;
        let (grid, out) = (Grid::new(2, 32 * warps), &mut output);
        match size {
            1 => random::shuffled::<1>(stream, grid, *tiles, &held, &from, out)?,
            2 => random::shuffled::<2>(stream, grid, *tiles, &held, &from, out)?,
            4 => random::shuffled::<4>(stream, grid, *tiles, &held, &from, out)?,
            8 => random::shuffled::<8>(stream, grid, *tiles, &held, &from, out)?,
            16 => random::shuffled::<16>(stream, grid, *tiles, &held, &from, out)?,
            _ => random::shuffled::<32>(stream, grid, *tiles, &held, &from, out)?,
        }
        stream.download(&output)
    };
    holds(device, inputs, kernel, |(size, tiles, warps, threads), found| {
        let expected = |i: usize| {
            let (rank, first) = (i % (32 * *warps as usize), i - i % size);
            if tiles >> (rank / size % 32) & 1 == 0 {
                return [0; 3];
            }
            let tile = &threads[first..first + size];
            let sum = tile.iter().fold(0_u32, |sum, (held, _)| sum.wrapping_add(*held));
            let odd = tile.iter().enumerate().map(|(lane, (held, _))| (held % 2) << lane).sum();
            [tile[threads[i].1 as usize % size].0, sum, odd]
        };
        is(found, &(0..threads.len()).map(expected).collect::<Vec<_>>())
    })
}

fn random_histograms_agree(device: &Device) -> Outcome {
    let inputs = (vec(any::<u8>(), 0..20_000), 1_u32..9, 1_u32..513);
    let kernel = |stream: &Stream, (data, blocks, threads): &(Vec<u8>, u32, u32)| {
        let (data, mut counts) = (stream.upload(data)?, stream.zeros::<u32>(256)?);
        shared::histogram(stream, Grid::new(*blocks, *threads), &data, counts.as_atomic())?;
        stream.download(&counts)
    };
    holds(device, inputs, kernel, |(data, _, _), found| {
        let mut expected = [0_u32; 256];
        data.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
        is(found, &expected)
    })
}

/// Each product is off by at most n + 1 rounding errors of the sum of magnitudes; and all devices round alike.
fn random_matrices_multiply(device: &Device) -> Outcome {
    let inputs = (1_usize..50).prop_flat_map(|n| (Just(n), vec((ordinary(), ordinary()), n * n)));
    let kernel = |stream: &Stream, (n, pairs): &(usize, Vec<(f32, f32)>)| {
        let (a, b): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let (a, b, mut c) = (stream.upload(&a)?, stream.upload(&b)?, stream.zeros::<f32>(n * n)?);
        shared::matmul(stream, Grid::cover([*n, *n]), *n, &a, &b, c.view_2d_mut(*n, *n)?)?;
        stream.download(&c)
    };
    holds(device, inputs, kernel, |(n, pairs), found| {
        for (place, &product) in found.iter().enumerate() {
            let term =
                |k: usize| f64::from(pairs[place / n * n + k].0) * f64::from(pairs[k * n + place % n].1);
            let exact: f64 = (0..*n).map(term).sum();
            let magnitude: f64 = (0..*n).map(|k| term(k).abs()).sum();
            let bound = (*n + 1) as f64 * f64::from(f32::EPSILON) / 2.0 * magnitude;
            let error = (f64::from(product) - exact).abs();
            if error.is_nan() || error > bound {
                return Err(format!("product {place} is off by {error}, bound {bound}"));
            }
        }
        Ok(())
    })
}

fn random_planes_transpose(device: &Device) -> Outcome {
    let inputs = (1_usize..100, 1_usize..100)
        .prop_flat_map(|(width, height)| (Just(width), Just(height), vec(any::<u32>(), width * height)));
    let kernel = |stream: &Stream, (width, height, plane): &(usize, usize, Vec<u32>)| {
        let (input, mut output) = (stream.upload(plane)?, stream.zeros::<u32>(plane.len())?);
        let grid = Grid::new([height.div_ceil(32) as u32, width.div_ceil(32) as u32], [32, 8]);
        shared::transpose(stream, grid, &input, output.view_2d_mut(*height, *width)?)?;
        stream.download(&output)
    };
    holds(device, inputs, kernel, |(width, height, plane), found| {
        let expected = (0..plane.len()).map(|i| plane[i % height * width + i / height]);
        is(found, &expected.collect::<Vec<_>>())
    })
}

fn random_atomics_agree(device: &Device) -> Outcome {
    let inputs = (vec(any::<u32>(), 0..5000), 1_usize..40, 1_u32..5, 1_u32..300);
    let kernel = |stream: &Stream, (data, bins, blocks, threads): &(Vec<u32>, usize, u32, u32)| {
        let data = stream.upload(data)?;
        let (mut sums, mut greatest) = (stream.zeros::<u32>(*bins)?, stream.zeros::<u32>(*bins)?);
        let (mut least, mut parities) = (stream.upload(&vec![u32::MAX; *bins])?, stream.zeros::<u64>(*bins)?);
        let (all, max) = (sums.as_atomic(), greatest.as_atomic());
        let (min, bits) = (least.as_atomic(), parities.as_atomic());
        random::gathered(stream, Grid::new(*blocks, *threads), &data, all, max, min, bits)?;
        let (sums, greatest) = (stream.download(&sums)?, stream.download(&greatest)?);
        let (least, parities) = (stream.download(&least)?, stream.download(&parities)?);
        let wide = |bin: usize| [sums[bin], greatest[bin], least[bin]].map(u64::from);
        Ok((0..*bins).flat_map(|bin| wide(bin).into_iter().chain([parities[bin]])).collect::<Vec<u64>>())
    };
    holds(device, inputs, kernel, |(data, bins, _, _), found| {
        let mut expected: Vec<[u64; 4]> = vec![[0, 0, u64::from(u32::MAX), 0]; *bins];
        for &value in data {
            let [sum, greatest, least, parity] = &mut expected[value as usize % bins];
            *sum = u64::from((*sum as u32).wrapping_add(value));
            *greatest = (*greatest).max(u64::from(value));
            *least = (*least).min(u64::from(value));
            *parity ^= u64::from(value) << (value % 32);
        }
        is(found, expected.as_flattened())
    })
}

/// Whole blocks of 64 threads with five keys each, among them NaN, both zeros and many that are equal.
fn random_keys_are_sorted(device: &Device) -> Outcome {
    let key = prop_oneof![any::<f32>(), select(vec![0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, 1.5])];
    let inputs = (1_usize..4, any::<bool>()).prop_flat_map(move |(blocks, down)| {
        (vec([key.clone(), key.clone(), key.clone(), key.clone(), key.clone()], blocks * 64), Just(down))
    });
    holds(
        device,
        inputs,
        |stream, (keys, down)| {
            let (x, mut y) = (stream.upload(keys)?, stream.upload(keys)?);
            sorting::both_ways::<f32>(stream, Grid::new(keys.len() as u32 / 64, 64), *down, &x, &mut y)?;
            Ok(stream.download(&y)?.iter().map(|own| own.map(f32::to_bits)).collect())
        },
        |(keys, down), found: &[[u32; 5]]| {
            let mut expected = keys.concat();
            for block in expected.chunks_mut(64 * 5) {
                block.sort_by(|a, b| if *down { b.total_cmp(a) } else { a.total_cmp(b) });
            }
            let expected: Vec<u32> = expected.iter().map(|key| key.to_bits()).collect();
            is(&found.concat(), &expected)
        },
    )
}
