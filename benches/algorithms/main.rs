//! Times device-wide algorithms on a GPU against CUB's (benches/cuda/cub.cu, compiled to a shared library that
//! `FERROGRID_BENCH_LIBRARY` names): alternating in one process, on the same buffers, with results checked. `beside_copies`
//! has those that a device copy bounds. It prints one JSON line per figure, for benches/runtime.py.

mod beside_copies;
#[path = "../setting.rs"]
mod setting;
#[path = "../timed.rs"]
mod timed;
#[path = "../runtime/turns.rs"]
mod turns;

use std::cell::RefCell;
use std::ffi::c_void;
use std::time::Duration;

use ferrogrid::prelude::*;
use ferrogrid::{DeviceView, DeviceViewMut};
use ferrogrid_algorithms::{self as algorithms, Indexed};
use libloading::Library;
use timed::time;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// (temporary memory, its bytes, input, output, elements, stream) -> `cudaError_t`
type Algorithm =
    unsafe extern "C" fn(*mut c_void, *mut usize, *const c_void, *mut c_void, usize, *mut c_void) -> i32;

const SIZES: [usize; 5] = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28];
const ROUNDS: usize = 11;
/// What a round takes, at least.
const ROUND: Duration = Duration::from_millis(2);

struct Bench {
    stream: Stream,
    cub: Library,
}

impl Bench {
    /// CUB's function `name`, with its temporary memory, from `len` elements of `x` to `y`.
    fn cub<T: ferrogrid::DeviceCopy, U: ferrogrid::DeviceCopy>(
        &self,
        name: &str,
        x: DeviceView<T>,
        len: usize,
        y: &mut DeviceBuffer<U>,
    ) -> Outcome<impl FnMut() -> Outcome<()>> {
        // SAFETY: benches/cuda/cub.cu declares it so.
        let function: Algorithm = unsafe { *self.cub.get(name.as_bytes())? };
        let stream = self.stream.as_raw().ok_or("a stream of a GPU")?;
        let (from, to) = (x.as_device_ptr().as_raw(), y.as_device_ptr_mut().as_raw());
        let call = move |temporary: *mut c_void, bytes: &mut usize| {
            // SAFETY: the buffers are the caller's, which outlive the calls, and have the elements of the function's types.
            match unsafe { function(temporary, bytes, from.cast(), to.cast(), len, stream) } {
                0 => Ok(()),
                error => Err(format!("CUB: error {error}").into()),
            }
        };
        let mut bytes = 0;
        call(std::ptr::null_mut(), &mut bytes)?;
        let mut temporary = self.stream.zeros::<u8>(bytes.max(1))?;
        Ok(move || call(temporary.as_device_ptr_mut().as_raw().cast(), &mut bytes.clone()))
    }

    /// Times `ours` and CUB's `name` for `n` elements, from `x` to outputs of `len` elements, and gives ours to `check`.
    fn duel<T: ferrogrid::DeviceCopy, U: ferrogrid::DeviceCopy + bytemuck::AnyBitPattern>(
        &self,
        name: &str,
        n: usize,
        x: &[T],
        len: usize,
        ours: impl Fn(&Stream, DeviceView<T>, DeviceViewMut<U>) -> ferrogrid::Result<()>,
        check: impl Fn(&[U]) -> Option<String>,
    ) -> Outcome<()> {
        let poisoned = vec![0x5A_u8; len * size_of::<U>()];
        let poisoned: Vec<U> =
            poisoned.chunks_exact(size_of::<U>()).map(bytemuck::pod_read_unaligned).collect();
        let device_x = self.stream.upload(x)?;
        let (mut y, mut other) = (self.stream.upload(&poisoned)?, self.stream.upload(&poisoned)?);
        let mut theirs = self.cub(name, device_x.view(), n, &mut other)?;
        theirs()?;
        let calls =
            (ROUND.as_secs_f64() / time(&self.stream, 1, &mut theirs)?).ceil().clamp(1.0, 500.0) as u32;
        let y_cell = RefCell::new(&mut y);
        turns::duel(
            &format!("{name}_{n}"),
            ROUNDS,
            1.0,
            || {
                time(&self.stream, calls, || {
                    ours(&self.stream, device_x.view(), y_cell.borrow_mut().view_mut())
                })
            },
            || time(&self.stream, calls, &mut theirs),
        )?;
        match check(&self.stream.download(&y)?) {
            None => Ok(()),
            Some(found) => Err(format!("{name} of {n}: {found}").into()),
        }
    }
}

/// A complaint, unless `found` is as near to `exact` as sums of numbers whose magnitudes add up to `size` should be.
fn near(found: f64, exact: f64, size: f64, precision: f64) -> Option<String> {
    ((found - exact).abs() > size * precision || found.is_nan()).then(|| format!("{found}, expected {exact}"))
}

fn all(bench: &Bench, n: usize, random: &mut fastrand::Rng) -> Outcome<()> {
    macro_rules! algorithms {
        ($t:ident, $total:ident, $of:expr, $precision:expr, $name:literal, [$($kind:ident)*]) => {{
            let x: Vec<$t> = (0..n).map(|_| $of).collect();
            $(algorithms!(@$kind x, $t, $total, $precision, $name);)*
        }};
        (@sum $x:ident, $t:ident, $total:ident, $precision:expr, $name:literal) => {
            let [exact, size] = [$x.iter().map(|&x| x as f64).sum::<f64>(), $x.iter().map(|&x| (x as f64).abs()).sum()];
            bench.duel(concat!("sum_", $name), n, &$x, 1, |stream, x, y: DeviceViewMut<$total>| algorithms::sum_into(stream, x, y), |y| {
                near(y[0] as f64, exact, size, $precision)
            })?;
        };
        (@scans $x:ident, $t:ident, $total:ident, $precision:expr, $name:literal) => {
            let check = |y: &[$t], inclusive: bool| {
                let (mut sum, mut size) = (0.0, 0.0);
                $x.iter().zip(y).find_map(|(&x, &y)| {
                    let before = sum;
                    sum += x as f64;
                    size += (x as f64).abs();
                    near(y as f64, if inclusive { sum } else { before }, size, $precision)
                })
            };
            bench.duel(concat!("inclusive_sum_", $name), n, &$x, n, |stream, x, y| algorithms::inclusive_sum(stream, x, y), |y| check(y, true))?;
            bench.duel(concat!("exclusive_sum_", $name), n, &$x, n, |stream, x, y| algorithms::exclusive_sum(stream, x, <$t>::default(), y), |y| check(y, false))?;
        };
        (@extrema $x:ident, $t:ident, $total:ident, $precision:expr, $name:literal) => {
            let least = $x.iter().copied().fold($t::INFINITY, $t::min);
            let greatest = $x.iter().copied().fold($t::NEG_INFINITY, $t::max);
            bench.duel(concat!("min_", $name), n, &$x, 1, |stream, x, y| algorithms::min_into(stream, x, y), |y: &[$t]| {
                (y[0] != least).then(|| format!("{}, expected {least}", y[0]))
            })?;
            bench.duel(concat!("argmax_", $name), n, &$x, 1, |stream, x, y| algorithms::argmax_into(stream, x, y), |y: &[Indexed<$t>]| {
                let is_first = $x.iter().position(|&x| x == greatest) == Some(y[0].index as usize);
                (!is_first || y[0].value != greatest).then(|| format!("{:?}, expected {greatest}", y[0]))
            })?;
        };
    }
    algorithms!(f32, f32, random.f32() - 0.5, 1e-6, "f32", [sum extrema scans]);
    algorithms!(f64, f64, random.f64() - 0.5, 1e-14, "f64", [sum]);
    // The sums of these stay exact in `f64` and `i32`.
    algorithms!(i32, i64, random.i32(-3..=3), 0.0, "i32", [sum scans]);
    algorithms!(u64, u64, random.u64(..1 << 20), 0.0, "u64", [scans]);
    sorts(bench, n, random)?;
    results_of_unknown_length(bench, n, random)?;
    sums_by_key(bench, n, random)?;
    histograms(bench, n, random)?;
    segmented_sums(bench, n, 100, "segmented_sum_100_f32", random)?;
    segmented_sums(bench, n, 10_000, "segmented_sum_10000_f32", random)
}

/// Runs of about 8 keys. The layout is that of benches/cuda/cub.cu.
fn sums_by_key(bench: &Bench, n: usize, random: &mut fastrand::Rng) -> Outcome<()> {
    let mut x = Vec::with_capacity(2 * n + 16);
    while x.len() < n {
        x.extend(std::iter::repeat_n(random.i32(..), random.usize(1..16)));
    }
    x.truncate(n);
    x.extend((0..n).map(|_| random.i32(-1000..1000)));
    let mut values = x[n..].iter();
    let (keys, sums): (Vec<i32>, Vec<i64>) = x[..n]
        .chunk_by(|a, b| a == b)
        .map(|run| (run[0], values.by_ref().take(run.len()).map(|x| i64::from(*x)).sum::<i64>()))
        .unzip();
    let sum_by_key = |stream: &Stream, x: DeviceView<i32>, y: DeviceViewMut<i32>| {
        let ((keys, values), (unique, rest)) = (x.split_at(n)?, y.split_at(n)?);
        let (count, sums) = rest.split_at(2)?;
        let (count, sums) = (count.cast::<u64>()?, sums.cast::<i64>()?);
        algorithms::sum_by_key_into(stream, keys, values, unique, sums, count)
    };
    bench.duel("sum_by_key_i32", n, &x, 3 * n + 2, sum_by_key, |y: &[i32]| {
        let runs = y[n] as u32 as usize;
        let found = y[n + 2..]
            .chunks_exact(2)
            .take(runs)
            .map(|words| i64::from(words[0] as u32) | i64::from(words[1]) << 32);
        (runs != keys.len() || y[..runs] != keys || !found.eq(sums.iter().copied()))
            .then(|| format!("{runs} runs, expected {}, or other keys or sums", keys.len()))
    })
}

fn histograms(bench: &Bench, n: usize, random: &mut fastrand::Rng) -> Outcome<()> {
    let uniform: Vec<u8> = (0..n).map(|_| random.u8(..)).collect();
    for (name, x) in [("histogram_u8", uniform), ("histogram_equal_u8", vec![77; n])] {
        let mut expected = vec![0_u32; 256];
        x.iter().for_each(|x| expected[usize::from(*x)] += 1);
        let histogram = |stream: &Stream, x: DeviceView<u8>, y: DeviceViewMut<u32>| {
            algorithms::histogram_even(stream, x, .., y)
        };
        bench.duel(name, n, &x, 256, histogram, |y| {
            y.iter().zip(&expected).position(|(a, b)| a != b).map(|bin| format!("bin {bin} has {}", y[bin]))
        })?;
    }
    Ok(())
}

/// Segments of about `length` elements, whose offsets follow them.
fn segmented_sums(
    bench: &Bench,
    n: usize,
    length: usize,
    name: &str,
    random: &mut fastrand::Rng,
) -> Outcome<()> {
    let segments = n / length;
    if segments == 0 {
        return Ok(());
    }
    let mut offsets: Vec<u32> = (0..=segments)
        .map(|segment| {
            let place = segment * length;
            if segment % segments == 0 { place as u32 } else { (place + random.usize(..length / 2)) as u32 }
        })
        .collect();
    offsets[segments] = n as u32;
    let mut x: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
    let exact: Vec<[f64; 2]> = offsets
        .windows(2)
        .map(|bounds| {
            let x = &x[bounds[0] as usize..bounds[1] as usize];
            [x.iter().map(|x| f64::from(*x)).sum(), x.iter().map(|x| f64::from(x.abs())).sum()]
        })
        .collect();
    x.extend(offsets.iter().map(|offset| f32::from_bits(*offset)));
    let sums = |stream: &Stream, x: DeviceView<f32>, y: DeviceViewMut<f32>| {
        let (x, offsets) = x.split_at(n)?;
        algorithms::segmented_sum(stream, x, offsets.cast::<u32>()?, y)
    };
    bench.duel(name, n, &x, segments, sums, |y: &[f32]| {
        y.iter().zip(&exact).find_map(|(y, [sum, size])| near(f64::from(*y), *sum, *size, 1e-6))
    })
}

fn sorts(bench: &Bench, n: usize, random: &mut fastrand::Rng) -> Outcome<()> {
    macro_rules! sort {
        ($t:ident, $name:literal, $of:expr, $compare:expr) => {{
            let x: Vec<$t> = (0..n).map(|_| $of).collect();
            let mut sorted = x.clone();
            sorted.sort_unstable_by($compare);
            bench.duel(
                $name,
                n,
                &x,
                n,
                |stream, x, y| algorithms::sort(stream, x, y),
                |y: &[$t]| {
                    y.iter()
                        .zip(&sorted)
                        .position(|(a, b)| a != b)
                        .map(|at| format!("element {at} is {}", y[at]))
                },
            )?;
        }};
    }
    sort!(u32, "sort_u32", random.u32(..), u32::cmp);
    sort!(u64, "sort_u64", random.u64(..), u64::cmp);
    sort!(f32, "sort_f32", random.f32() - 0.5, f32::total_cmp);
    // The first half are keys, the second half their values.
    let x: Vec<u32> = (0..n).map(|i| if i < n / 2 { random.u32(..) } else { i as u32 }).collect();
    let mut sorted: Vec<_> = x[..n / 2].iter().copied().zip(x[n / 2..].iter().copied()).collect();
    sorted.sort_unstable();
    let pairs = |stream: &Stream, x: DeviceView<u32>, y: DeviceViewMut<u32>| {
        let ((keys, values), (y, moved)) = (x.split_at(n / 2)?, y.split_at(n / 2)?);
        algorithms::sort_pairs(stream, keys, values, y, moved)
    };
    bench.duel("sort_pairs_u32", n, &x, n, pairs, |y: &[u32]| {
        let found = y[..n / 2].iter().zip(&y[n / 2..]);
        found.zip(&sorted).position(|((a, b), pair)| (*a, *b) != *pair).map(|at| format!("pair {at} differs"))
    })?;
    Ok(())
}

/// The layout is that of benches/cuda/cub.cu: the flags follow the elements of `x`; in `y` the number of results follows `n`
/// elements, and then come the lengths of runs.
fn results_of_unknown_length(bench: &Bench, n: usize, random: &mut fastrand::Rng) -> Outcome<()> {
    let check = |y: &[i32], expected: &[i32], lengths: &[i32]| {
        let count = y[n] as u32 as usize;
        if count != expected.len() {
            return Some(format!("{count} results, expected {}", expected.len()));
        }
        let found = y[..count].iter().chain(y[n + 2..].iter().take(lengths.len()));
        found
            .zip(expected.iter().chain(lengths))
            .find(|(a, b)| a != b)
            .map(|(a, b)| format!("{a}, expected {b}"))
    };
    let flags: Vec<u8> = (0..n).map(|_| random.u8(..2)).collect();
    let mut x: Vec<i32> = (0..n).map(|_| random.i32(..)).collect();
    let kept: Vec<i32> = x.iter().zip(&flags).filter(|(_, flag)| **flag != 0).map(|(x, _)| *x).collect();
    x.extend(flags.chunks_exact(4).map(bytemuck::pod_read_unaligned::<i32>));
    let select = |stream: &Stream, x: DeviceView<i32>, y: DeviceViewMut<i32>| {
        let ((x, flags), (y, count)) = (x.split_at(n)?, y.split_at(n)?);
        algorithms::select_into(stream, x, flags.cast::<u8>()?, y, count.cast::<u64>()?)
    };
    bench.duel("select_i32", n, &x, n + 2, select, |y| check(y, &kept, &[]))?;

    // Runs of 1 to 7 elements.
    let mut runs = Vec::with_capacity(n + 7);
    while runs.len() < n {
        runs.extend(std::iter::repeat_n(random.i32(..), random.usize(1..8)));
    }
    runs.truncate(n);
    let (first, lengths): (Vec<i32>, Vec<i32>) =
        runs.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as i32)).unzip();
    let unique = |stream: &Stream, x: DeviceView<i32>, y: DeviceViewMut<i32>| {
        let (y, count) = y.split_at(n)?;
        algorithms::unique_into(stream, x, y, count.cast::<u64>()?)
    };
    bench.duel("unique_i32", n, &runs, n + 2, unique, |y| check(y, &first, &[]))?;
    let encode = |stream: &Stream, x: DeviceView<i32>, y: DeviceViewMut<i32>| {
        let (values, rest) = y.split_at(n)?;
        let (count, lengths) = rest.split_at(2)?;
        let (lengths, count) = (lengths.cast::<u32>()?, count.cast::<u64>()?);
        algorithms::run_length_encode_into(stream, x, values, lengths, count)
    };
    bench.duel("run_length_i32", n, &runs, 2 * n + 2, encode, |y| check(y, &first, &lengths))
}

fn main() -> Outcome<()> {
    let Some((device, path)) = setting::gpu_and_file("FERROGRID_BENCH_LIBRARY", "CUB") else {
        return Ok(());
    };
    // SAFETY: the library of benches/cuda/cub.cu, which runs nothing when it is loaded except the CUDA runtime's own
    // initialisation.
    let bench = Bench { stream: device.new_stream()?, cub: unsafe { Library::new(path)? } };
    let largest =
        std::env::var("FERROGRID_BENCH_LARGEST").map_or(Ok(usize::MAX), |largest| largest.parse())?;
    let mut random = fastrand::Rng::new();
    for n in SIZES.into_iter().filter(|n| *n <= largest) {
        all(&bench, n, &mut random)?;
    }
    beside_copies::all(&bench, largest, &mut random)
}
