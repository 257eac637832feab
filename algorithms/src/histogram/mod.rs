//! Histograms: how many samples fall into each bin.
//!
//! `bytes` and `samples` have the kernels, and `bins` device code for both.

pub(crate) mod bins;
pub(crate) mod bytes;
pub(crate) mod samples;

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

use crate::order::Ordinal;
use crate::reduce::Number;
use crate::tuning::{Tuning, tuned};
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
#[cfg(feature = "half")]
use bins::bins::EvenHalves;
use bins::bins::{CHANNELS, COUNTERS, Channels, EvenFloats, EvenIntegers, ForEach, ITEMS, Ranges};
use bytes::kernels::EvenBytes;

/// What counts samples: `u32`, which wraps around, or `u64`.
pub trait Count: Pod + DeviceCopy {}

impl Count for u32 {}
impl Count for u64 {}

/// A number that histograms take.
pub trait Sampled: Ordinal {
    /// How samples of one channel fall into bins of one width.
    #[doc(hidden)]
    type Even: DeviceCopy;

    /// Splits what is from `lower` to `upper` into `bins`; `None` if that is nothing, or no finite range.
    #[doc(hidden)]
    fn even(lower: Bound<&Self>, upper: Bound<&Self>, bins: u32) -> Option<Self::Even>;

    /// Counts in bins of one width.
    #[doc(hidden)]
    fn count_even(stream: &Stream, even: ForEach<Self::Even>, samples: Samples<'_, Self>) -> Result<()>;

    /// Counts in bins between bounds.
    #[doc(hidden)]
    fn count_ranges(stream: &Stream, bounds: DeviceView<Self>, samples: Samples<'_, Self>) -> Result<()>;
}

/// Interleaved samples, and the counts of their bins.
#[derive(Debug)]
pub struct Samples<'a, T> {
    channels: Channels,
    x: DeviceView<'a, T>,
    counts: DeviceViewMut<'a, u32>,
}

/// Blocks for bytes: half of the most, until each has so many that the number of loads in flight counts more than what a block
/// costs beside them.
fn grid_of_bytes<T>(stream: &Stream, len: usize) -> Grid<1> {
    let most = tuned::<T, ()>(stream, Tuning::HistogramBlocks);
    let least = bytes::kernels::THREADS * bytes::kernels::BYTES;
    Grid::blocks(len.div_ceil(least).min(most.div_ceil(2)).max(len / (32 * least)).clamp(1, most))
}

/// Blocks for samples of more than one byte.
fn grid_of_samples<T>(stream: &Stream, len: usize, channels: Channels) -> Grid<1> {
    let counters = (channels.counted * channels.bins) as usize;
    let of_counters = counters.saturating_mul(tuned::<T, ()>(stream, Tuning::HistogramSamples));
    let least = of_counters.max(samples::kernels::THREADS * ITEMS);
    Grid::blocks(len.div_ceil(least).clamp(1, tuned::<T, ()>(stream, Tuning::HistogramBlocks)))
}

macro_rules! integers {
    ($($t:ident as $bits:ident, $half:literal, $count:ident;)*) => {
        $(impl Sampled for $t {
            type Even = EvenIntegers<$bits>;

            fn even(lower: Bound<&Self>, upper: Bound<&Self>, bins: u32) -> Option<EvenIntegers<$bits>> {
                let lower = match lower {
                    Bound::Included(lower) => *lower,
                    Bound::Excluded(before) => before.checked_add(1)?,
                    Bound::Unbounded => $t::MIN,
                };
                let greatest = match upper {
                    Bound::Included(greatest) => *greatest,
                    Bound::Excluded(end) => end.checked_sub(1)?,
                    Bound::Unbounded => $t::MAX,
                };
                let flip = <$t as Ordinal>::ASCENDING.flips.all;
                let flipped = |x: $t| x as $bits ^ flip;
                let last = flipped(greatest).checked_sub(flipped(lower))?;
                let (bins, width) = (u128::from(bins), u128::from(last) + 1);
                let part = (bins % width) << $half;
                Some(EvenIntegers {
                    flip,
                    lower: flipped(lower),
                    last,
                    whole: (bins / width) as u64,
                    high: (part / width) as u64,
                    low: ((part % width) << $half).div_ceil(width) as u64,
                })
            }

            $count!($t, $bits, EvenIntegers<$bits>);
        })*
    };
}

macro_rules! floats {
    ($($t:ident as $bits:ident, $count:ident;)*) => {
        $(impl Sampled for $t {
            type Even = EvenFloats<$t>;

            fn even(lower: Bound<&Self>, upper: Bound<&Self>, bins: u32) -> Option<EvenFloats<$t>> {
                let lower = match lower {
                    Bound::Included(lower) => *lower,
                    Bound::Excluded(before) => before.next_up(),
                    Bound::Unbounded => return None,
                };
                let (upper, end) = match upper {
                    Bound::Included(upper) => (*upper, upper.next_up()),
                    Bound::Excluded(end) => (*end, *end),
                    Bound::Unbounded => return None,
                };
                let scale = bins as $t / (upper - lower);
                (lower < upper && (upper - lower).is_finite() && scale.is_finite())
                    .then_some(EvenFloats { lower, end, scale })
            }

            $count!($t, $bits, EvenFloats<$t>);
        })*
    };
}

#[cfg(feature = "half")]
macro_rules! halves {
    ($($t:ident as $bits:ident, $is_brain:literal, $count:ident;)*) => {
        $(impl Sampled for $t {
            type Even = EvenHalves;

            fn even(lower: Bound<&Self>, upper: Bound<&Self>, bins: u32) -> Option<EvenHalves> {
                let (lower, upper) = (lower.map(|it| it.to_f32()), upper.map(|it| it.to_f32()));
                let even = f32::even(lower.as_ref(), upper.as_ref(), bins)?;
                Some(EvenHalves { even, is_brain: $is_brain })
            }

            $count!($t, $bits, EvenHalves);
        })*
    };
}

/// Calls the kernel for bytes.
macro_rules! count_bytes {
    ($t:ident, $bits:ident, $even:ty) => {
        fn count_even(stream: &Stream, even: ForEach<$even>, samples: Samples<'_, Self>) -> Result<()> {
            let of_channels = |byte: fn(EvenIntegers<u8>) -> u8| {
                u32::from_le_bytes([even.first, even.second, even.third, even.fourth].map(byte))
            };
            let (lower, last) = (of_channels(|even| even.lower), of_channels(|even| even.last));
            let even = EvenBytes { flip: even.first.flip.into(), lower, last };
            bytes_of(stream, even, samples, None)
        }

        fn count_ranges(stream: &Stream, bounds: DeviceView<Self>, samples: Samples<'_, Self>) -> Result<()> {
            let even = EvenBytes { flip: 0, lower: 0, last: 0 };
            bytes_of(stream, even, samples, Some(bounds))
        }
    };
}

fn bytes_of<T: Ordinal<Place = u8>>(
    stream: &Stream,
    even: EvenBytes,
    Samples { channels, x, counts }: Samples<'_, T>,
    bounds: Option<DeviceView<T>>,
) -> Result<()> {
    let (ranges, x) = (Ranges { order: T::ASCENDING }, x.cast()?);
    let bounds = match bounds {
        Some(bounds) => bounds.cast()?,
        None => x.slice(..0)?,
    };
    let grid = grid_of_bytes::<T>(stream, x.len());
    bytes::kernels::count_bytes(stream, grid, channels, even, ranges, x, bounds, counts.into_atomic())
}

/// Calls the kernel for larger samples.
macro_rules! count_samples {
    ($t:ident, $bits:ident, $even:ty) => {
        fn count_even(
            stream: &Stream,
            even: ForEach<$even>,
            Samples { channels, x, counts }: Samples<'_, Self>,
        ) -> Result<()> {
            let grid = grid_of_samples::<Self>(stream, x.len(), channels);
            let x = x.cast()?;
            let none = x.slice(..0)?;
            samples::kernels::count_samples::<$even>(
                stream,
                grid,
                channels,
                even,
                x,
                none,
                counts.into_atomic(),
            )
        }

        fn count_ranges(
            stream: &Stream,
            bounds: DeviceView<Self>,
            Samples { channels, x, counts }: Samples<'_, Self>,
        ) -> Result<()> {
            let grid = grid_of_samples::<Self>(stream, x.len(), channels);
            let ranges = Ranges { order: Self::ASCENDING };
            let ranges = ForEach { first: ranges, second: ranges, third: ranges, fourth: ranges };
            samples::kernels::count_samples::<Ranges<$bits>>(
                stream,
                grid,
                channels,
                ranges,
                x.cast()?,
                bounds.cast()?,
                counts.into_atomic(),
            )
        }
    };
}

// The halves of a fraction have so many bits.
integers! {
    u8 as u8, 32, count_bytes;
    i8 as u8, 32, count_bytes;
    u16 as u16, 32, count_samples;
    i16 as u16, 32, count_samples;
    u32 as u32, 32, count_samples;
    i32 as u32, 32, count_samples;
    u64 as u64, 64, count_samples;
    i64 as u64, 64, count_samples;
}
floats! {
    f32 as u32, count_samples;
    f64 as u64, count_samples;
}
#[cfg(feature = "half")]
halves! {
    f16 as u16, false, count_samples;
    bf16 as u16, true, count_samples;
}

fn refused(function: &'static str, argument: &'static str, value: String, expected: &'static str) -> Error {
    Error::Argument { function, argument, value: value.into(), expected }
}

/// Sets the counts to 0, unless the kernel for bytes does, and gives them to `count` with the samples.
fn counted<T: Ordinal, N: Count, const C: usize, const A: usize>(
    function: &'static str,
    stream: &Stream,
    x: DeviceView<[T; C]>,
    mut counts: DeviceViewMut<[N; A]>,
    count: impl FnOnce(u32, Samples<'_, T>) -> Result<()>,
) -> Result<()> {
    const { assert!(0 < A && A <= CHANNELS, "a histogram counts 1 to 4 channels") };
    const { assert!(A <= C && C <= 256, "samples have the channels that are counted, and at most 256") };
    let bins = match u32::try_from(counts.len().saturating_mul(A)) {
        Ok(counters) if counters > 0 => counters / A as u32,
        _ => {
            let value = counts.len().to_string();
            return Err(refused(function, "the number of bins", value, "1 to 2^32 - 1 bins of all channels"));
        }
    };
    let words = (size_of::<N>() / 4) as u32;
    // One block sets so many to 0 while the others count.
    let is_zeroed = size_of::<T>() > 1 || x.is_empty() || bins as usize * A > COUNTERS / 2;
    if is_zeroed {
        stream.fill_into(N::zeroed(), counts.reborrow().cast::<N>()?)?;
    }
    let channels = Channels { all: C as u32, counted: A as u32, bins, words, is_zeroed };
    count(bins, Samples { channels, x: x.cast()?, counts: counts.cast()? })
}

fn even_of<T: Number, N: Count, R: RangeBounds<T> + Debug, const C: usize, const A: usize>(
    function: &'static str,
    stream: &Stream,
    x: DeviceView<[T; C]>,
    ranges: [R; A],
    counts: DeviceViewMut<[N; A]>,
) -> Result<()> {
    counted(function, stream, x, counts, |bins, samples| {
        let even = |channel: usize| {
            // What is not counted is as the last channel.
            let range = &ranges[channel.min(A - 1)];
            T::even(range.start_bound(), range.end_bound(), bins).ok_or_else(|| {
                let value = format!("{range:?}");
                refused(function, "a range", value, "finite bounds, the lower one first, some numbers apart")
            })
        };
        let even = ForEach { first: even(0)?, second: even(1)?, third: even(2)?, fourth: even(3)? };
        if samples.x.is_empty() { Ok(()) } else { T::count_even(stream, even, samples) }
    })
}

fn range_of<T: Number, N: Count, const C: usize, const A: usize>(
    function: &'static str,
    stream: &Stream,
    x: DeviceView<[T; C]>,
    bounds: DeviceView<[T; A]>,
    counts: DeviceViewMut<[N; A]>,
) -> Result<()> {
    if bounds.len() != counts.len() + 1 {
        let value = format!("{} for {} bins", bounds.len(), counts.len());
        return Err(refused(function, "the number of bounds", value, "one more than there are bins"));
    }
    counted(function, stream, x, counts, |_, samples| T::count_ranges(stream, bounds.cast()?, samples))
}

/// Writes to `counts` how many elements of `x` fall into each of `counts.len()` bins that split `range` evenly (CUB's
/// `DeviceHistogram::HistogramEven`, `torch.histc`, `cupy.histogram` with a number of bins). Elements outside and NaN are not
/// counted.
///
/// An integer falls into bin `(x - lower) * bins / width`, rounded down, exactly; `width` is the number of integers in `range`. A float
/// falls into bin `(x - lower) * (bins / (upper - lower))`, as its type computes that. `range` is as in Rust: `0.0..1.0` is without
/// 1.0, `0.0..=1.0` with it (in the last bin, as NumPy has it), and `..` is all values of an integer. Counts are `u32`, which wrap
/// around, or `u64`.
///
/// 8 bits of each byte are counted, and then assigned to bins: the time does not depend on the bins, nor on how bytes are distributed,
/// but four equal ones side by side are counted at once. Other samples are counted in shared memory if there are at most 8192 bins.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut counts) = (stream.upload(&[3_u8, 200, 64, 255, 0])?, stream.zeros::<u32>(4)?);
/// algorithms::histogram_even(&stream, &x, .., &mut counts)?;
/// assert_eq!(stream.download(&counts)?, [2, 1, 0, 2]); // from 0, 64, 128 and 192 on
///
/// let x = stream.upload(&[0.5_f32, 1.0, -0.1, 0.1, f32::NAN])?;
/// algorithms::histogram_even(&stream, &x, 0.0..1.0, &mut counts)?;
/// assert_eq!(stream.download(&counts)?, [1, 0, 1, 0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::Argument` if there are no bins or 2^32, or `range` is empty or, of floats, not finite; and those of a launch.
pub fn histogram_even<'a, 'b, T: Number + 'a, N: Count>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    range: impl RangeBounds<T> + Debug,
    counts: impl DeviceOutput<'b, N>,
) -> Result<()> {
    let (x, counts) = (x.into_input().cast::<[T; 1]>()?, counts.into_output().cast::<[N; 1]>()?);
    even_of("histogram_even", stream, x, [range], counts)
}

/// Writes to `counts[i]` how many elements of `x` are at least `bounds[i]` and less than `bounds[i + 1]` (CUB's
/// `DeviceHistogram::HistogramRange`, `cupy.histogram` with edges, but without the last one). Elements outside and NaN are not counted.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (ages, bounds) = (stream.upload(&[34, 17, 80, 5, 18])?, stream.upload(&[0, 18, 65, 120])?);
/// let mut counts = stream.zeros::<u32>(3)?;
/// algorithms::histogram_range(&stream, &ages, &bounds, &mut counts)?;
/// assert_eq!(stream.download(&counts)?, [2, 2, 1]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::Argument` if there is not one more bound than bins, or there are no bins or 2^32; and those of a launch. Bounds that do not
/// ascend, or are NaN, are a panic of the kernel; equal ones are an empty bin.
pub fn histogram_range<'a, 'b, 'c, T: Number + 'a + 'b, N: Count>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    bounds: impl DeviceInput<'b, T>,
    counts: impl DeviceOutput<'c, N>,
) -> Result<()> {
    let (x, bounds) = (x.into_input().cast::<[T; 1]>()?, bounds.into_input().cast::<[T; 1]>()?);
    range_of("histogram_range", stream, x, bounds, counts.into_output().cast::<[N; 1]>()?)
}

/// [`histogram_even`] of the first `A` of `C` channels: `counts[i][k]` is for bin `i` of channel `k` (CUB's
/// `DeviceHistogram::MultiHistogramEven`). All channels have the same number of bins; there are 1 to 4 that are counted.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let pixels = stream.upload(&[[250_u8, 0, 7, 255], [130, 10, 7, 255]])?; // red, green, blue, alpha
/// let mut counts = stream.zeros::<[u32; 3]>(2)?;
/// algorithms::multi_histogram_even(&stream, &pixels, [.., .., ..], &mut counts)?;
/// assert_eq!(stream.download(&counts)?, [[0, 2, 2], [2, 0, 0]]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`histogram_even`].
pub fn multi_histogram_even<'a, 'b, T: Number + 'a, N: Count + 'b, const C: usize, const A: usize>(
    stream: &Stream,
    x: impl DeviceInput<'a, [T; C]>,
    ranges: [impl RangeBounds<T> + Debug; A],
    counts: impl DeviceOutput<'b, [N; A]>,
) -> Result<()> {
    even_of("multi_histogram_even", stream, x.into_input(), ranges, counts.into_output())
}

/// [`histogram_range`] of the first `A` of `C` channels: `counts[i][k]` is for channel `k` and what is from `bounds[i][k]` up to
/// `bounds[i + 1][k]` (CUB's `DeviceHistogram::MultiHistogramRange`). There are 1 to 4 channels that are counted.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let points = stream.upload(&[[0.5_f32, 20.0], [0.7, -3.0], [1.5, 5.0]])?;
/// let bounds = stream.upload(&[[0.0_f32, 0.0], [0.6, 10.0], [1.0, 100.0]])?;
/// let mut counts = stream.zeros::<[u64; 2]>(2)?;
/// algorithms::multi_histogram_range(&stream, &points, &bounds, &mut counts)?;
/// assert_eq!(stream.download(&counts)?, [[1, 1], [1, 1]]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`histogram_range`].
pub fn multi_histogram_range<
    'a,
    'b,
    'c,
    T: Number + 'a + 'b,
    N: Count + 'c,
    const C: usize,
    const A: usize,
>(
    stream: &Stream,
    x: impl DeviceInput<'a, [T; C]>,
    bounds: impl DeviceInput<'b, [T; A]>,
    counts: impl DeviceOutput<'c, [N; A]>,
) -> Result<()> {
    range_of("multi_histogram_range", stream, x.into_input(), bounds.into_input(), counts.into_output())
}

#[cfg(test)]
mod tests {
    use ferrogrid_device::atomic::{DeviceAtomic, Ordering};

    use super::bins::bins::add;
    use super::*;

    #[test]
    fn counts_of_64_bits_carry() {
        let counts = [u32::MAX - 2, 5, 9].map(DeviceAtomic::<u32>::new);
        let channels = Channels { all: 1, counted: 1, bins: 1, words: 2, is_zeroed: true };
        for (samples, expected) in
            [(2, [u32::MAX, 5]), (1, [0, 6]), (7 << 32 | 3, [3, 13]), (0xFFFF_FFFF, [2, 14])]
        {
            add(&counts, channels, 0, samples);
            let found = [0, 1].map(|word: usize| counts[word].load(Ordering::Relaxed));
            assert_eq!(found, expected, "{samples}");
        }
        add(&counts, Channels { words: 1, ..channels }, 2, 1);
        assert_eq!(counts[2].load(Ordering::Relaxed), 10);
    }
}
