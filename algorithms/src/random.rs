//! Random numbers by Philox, and random permutations.

#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

use crate::movement::sequence;
use crate::{DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};
use kernels::{Distribution, Exponential, Normal, THREADS, Uniform, random_doubles, random_singles};

/// The kernels.
#[expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::prelude::*;

    use ferrogrid::device::group;
    use ferrogrid::device::random::Philox4x32;

    /// The threads of a block, each with one group of the generator.
    pub const THREADS: usize = 256;

    /// A distribution, of which all threads take the same branch.
    #[cfg(feature = "half")]
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(u32)]
    pub enum Kind {
        /// That of [`Uniform`].
        Uniform,
        /// That of [`Normal`].
        Normal,
        /// That of [`Exponential`].
        Exponential,
    }

    /// What numbers become of a group of four words.
    pub trait Distribution {
        /// Its name for kernels that have all.
        #[cfg(feature = "half")]
        const KIND: Kind;
        /// Four of 32 bits.
        fn singles(random: &mut Philox4x32) -> [f32; 4];
        /// Two of 64 bits.
        fn doubles(random: &mut Philox4x32) -> [f64; 2];
    }

    /// Evenly distributed in (0, 1].
    #[derive(Clone, Copy, Debug)]
    pub struct Uniform;

    /// Mean 0, standard deviation 1.
    #[derive(Clone, Copy, Debug)]
    pub struct Normal;

    /// Mean 1.
    #[derive(Clone, Copy, Debug)]
    pub struct Exponential;

    impl Distribution for Uniform {
        #[cfg(feature = "half")]
        const KIND: Kind = Kind::Uniform;
        #[inline(always)]
        fn singles(random: &mut Philox4x32) -> [f32; 4] {
            random.next_uniform_f32x4()
        }
        #[inline(always)]
        fn doubles(random: &mut Philox4x32) -> [f64; 2] {
            random.next_uniform_f64x2()
        }
    }

    /// The method of Box and Muller. Sine and cosine of a part of a turn need no reduction of large angles, which takes a stack.
    macro_rules! normal {
        ($name:ident, $t:ident, $terms:literal) => {
            #[inline(always)]
            fn $name([radius, turn]: [$t; 2]) -> [$t; 2] {
                const TERMS: usize = $terms;
                /// The coefficients of both series: 1 / 0!, -1 / 2!, .. and 1 / 1!, -1 / 3!, ..
                const SERIES: [[$t; 2]; TERMS] = {
                    let (mut series, mut k, mut term) = ([[1.0; 2]; TERMS], 0, 1.0);
                    while k < TERMS {
                        series[k] = [term, term / (2 * k + 1) as $t];
                        term = -series[k][1] / (2 * k + 2) as $t;
                        k += 1;
                    }
                    series
                };
                let radius = Float::sqrt(-2.0 * Float::ln(radius));
                let quarter = Float::floor(4.0 * turn + 0.5);
                // At most an eighth of a turn.
                let angle = (4.0 * turn - quarter) * core::f64::consts::FRAC_PI_2 as $t;
                let (mut cos, mut sin) = (0.0, 0.0);
                for k in 0..TERMS {
                    let [of_cos, of_sin] = SERIES[TERMS - 1 - k];
                    cos = of_cos + cos * (angle * angle);
                    sin = of_sin + sin * (angle * angle);
                }
                sin *= angle;
                let (sin, cos) = if quarter as u32 % 2 == 0 { (sin, cos) } else { (cos, -sin) };
                let radius = if quarter as u32 / 2 % 2 == 0 { radius } else { -radius };
                [radius * sin, radius * cos]
            }
        };
    }
    normal!(normal_singles, f32, 5);
    normal!(normal_doubles, f64, 9);

    impl Distribution for Normal {
        #[cfg(feature = "half")]
        const KIND: Kind = Kind::Normal;
        #[inline(always)]
        fn singles(random: &mut Philox4x32) -> [f32; 4] {
            let [a, b, c, d] = random.next_uniform_f32x4();
            let ([a, b], [c, d]) = (normal_singles([a, b]), normal_singles([c, d]));
            [a, b, c, d]
        }
        #[inline(always)]
        fn doubles(random: &mut Philox4x32) -> [f64; 2] {
            normal_doubles(random.next_uniform_f64x2())
        }
    }

    impl Distribution for Exponential {
        #[cfg(feature = "half")]
        const KIND: Kind = Kind::Exponential;
        #[inline(always)]
        fn singles(random: &mut Philox4x32) -> [f32; 4] {
            random.next_uniform_f32x4().map(|x| -Float::ln(x))
        }
        #[inline(always)]
        fn doubles(random: &mut Philox4x32) -> [f64; 2] {
            random.next_uniform_f64x2().map(|x| -Float::ln(x))
        }
    }

    /// Writes what `numbers` makes of the thread's group of the generator to its elements.
    #[inline(always)]
    fn fill<T: Copy, const N: usize>(
        t: &Thread<'_, 1>,
        (seed, offset): (u64, u64),
        y: &mut DisjointWarps<T, N, 1>,
        numbers: impl Fn(&mut Philox4x32) -> [T; N],
    ) {
        let number = (y.first(t) / N) as u64;
        let numbers = numbers(&mut Philox4x32::new(seed, 0, offset.wrapping_add(number)));
        if let Some(group) = group::output(y.run_mut(t)) {
            return group.store(numbers);
        }
        let mut rest = y.iter_mut(t);
        for k in 0..N {
            if let Some((_, y)) = rest.next() {
                *y = numbers[k];
            }
        }
    }

    /// y[i] <- number i % 4 of group offset + i / 4
    #[kernel(block = THREADS, wide, D = [Uniform, Normal, Exponential])]
    pub fn random_singles<D: Distribution>(
        t: Thread<1>,
        seed: u64,
        offset: u64,
        mut y: DisjointWarps<f32, 4, 1>,
    ) {
        fill(&t, (seed, offset), &mut y, D::singles);
    }

    /// As [`random_singles`], rounded.
    #[cfg(feature = "half")]
    #[kernel(block = THREADS, wide, T = [f16, bf16])]
    pub fn random_halves<T: HalfFloat>(
        t: Thread<1>,
        kind: Kind,
        seed: u64,
        offset: u64,
        mut y: DisjointWarps<T, 4, 1>,
    ) {
        fill(&t, (seed, offset), &mut y, |random| {
            let singles = match kind {
                Kind::Uniform => Uniform::singles(random),
                Kind::Normal => Normal::singles(random),
                Kind::Exponential => Exponential::singles(random),
            };
            singles.map(T::from_f32)
        });
    }

    /// y[i] <- number i % 2 of group offset + i / 2
    #[kernel(block = THREADS, wide, D = [Uniform, Normal, Exponential])]
    pub fn random_doubles<D: Distribution>(
        t: Thread<1>,
        seed: u64,
        offset: u64,
        mut y: DisjointWarps<f64, 2, 1>,
    ) {
        fill(&t, (seed, offset), &mut y, D::doubles);
    }

    /// y[i] <- word i % 4 of group offset + i / 4
    #[kernel(block = THREADS, wide)]
    pub fn random_words(t: Thread<1>, seed: u64, offset: u64, mut y: DisjointWarps<u32, 4, 1>) {
        fill(&t, (seed, offset), &mut y, Philox4x32::next_u32x4);
    }
}

/// A floating-point number that can be drawn: `f32` or `f64`; with the feature `half` also `f16` and `bf16`, which are `f32` that are
/// rounded.
#[diagnostic::on_unimplemented(
    message = "there are no random numbers of type `{Self}`",
    label = "expected `f32` or `f64`, or `f16` or `bf16` with the feature `half`"
)]
pub trait Drawn: ferrogrid_device::DeviceCopy {
    /// The numbers that a group of four words gives.
    #[doc(hidden)]
    const OF_GROUP: usize;
    /// Launches the kernel.
    #[doc(hidden)]
    fn draw<D: Distribution + random_singles::Instance + random_doubles::Instance>(
        stream: &Stream,
        grid: Grid<1>,
        seed: u64,
        offset: u64,
        y: DeviceViewMut<Self>,
    ) -> Result<()>;
}

macro_rules! drawn {
    ($($t:ty: $count:literal, $kernel:ident::<$argument:ty>($($kind:expr)?);)*) => {
        $(impl Drawn for $t {
            const OF_GROUP: usize = $count;
            fn draw<D: Distribution + random_singles::Instance + random_doubles::Instance>(
                stream: &Stream,
                grid: Grid<1>,
                seed: u64,
                offset: u64,
                y: DeviceViewMut<Self>,
            ) -> Result<()> {
                kernels::$kernel::<$argument>(stream, grid, $($kind,)? seed, offset, y)
            }
        })*
    };
}
drawn! {
    f32: 4, random_singles::<D>();
    f64: 2, random_doubles::<D>();
}
#[cfg(feature = "half")]
drawn! {
    f16: 4, random_halves::<f16>(D::KIND);
    bf16: 4, random_halves::<bf16>(D::KIND);
}

/// A generator of random numbers: Philox 4x32-10, as cuRAND's `CURAND_RNG_PSEUDO_PHILOX4_32_10` and
/// [`Philox4x32`](ferrogrid_device::random::Philox4x32) in kernels.
///
/// Its state, a seed and the number of groups that are drawn, is on the host and advances with each call; the numbers are written
/// in stream order. So the same calls give the same numbers, whatever streams and devices they use: words and uniform numbers to the
/// last bit, the others up to the rounding of logarithm, sine and cosine. A recorded call gives the same numbers
/// at each launch of its graph.
///
/// A call takes a group of four words for each four words, `f32`, `f16` or `bf16`, or two `f64`, begun or whole. Element `i` is number `i` of the
/// groups from the present one on, in subsequence 0.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Philox;
///
/// let mut random = Philox::new(2024);
/// let (mut x, mut again) = (stream.zeros::<f32>(1000)?, stream.zeros(1000)?);
/// random.normal(&stream, &mut x)?;
/// assert!((algorithms::mean(&stream, &x)?).abs() < 0.2);
/// Philox::new(2024).normal(&stream, &mut again)?;
/// assert_eq!(stream.download(&x)?, stream.download(&again)?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Philox {
    seed: u64,
    offset: u64,
}

impl Philox {
    /// The generator with that seed, from its first group on.
    pub const fn new(seed: u64) -> Self {
        Philox { seed, offset: 0 }
    }

    /// Skips groups of four words (cuRAND's `curandSetGeneratorOffset`).
    pub const fn skip(&mut self, groups: u64) {
        self.offset = self.offset.wrapping_add(groups);
    }

    fn fill<'a, T: Drawn, D: Distribution + random_singles::Instance + random_doubles::Instance>(
        &mut self,
        stream: &Stream,
        y: impl DeviceOutput<'a, T>,
    ) -> Result<()> {
        let y = y.into_output();
        self.advance(y.len().div_ceil(T::OF_GROUP), |grid, seed, offset| {
            T::draw::<D>(stream, grid, seed, offset, y)
        })
    }

    /// Calls `launch` with a thread for each group, unless there are none; advances if it succeeds.
    fn advance(&mut self, groups: usize, launch: impl FnOnce(Grid<1>, u64, u64) -> Result<()>) -> Result<()> {
        if groups > 0 {
            launch(Grid::blocks(groups.div_ceil(THREADS)), self.seed, self.offset)?;
            self.skip(groups as u64);
        }
        Ok(())
    }

    /// Fills `y` with numbers that are evenly distributed in (0, 1] (cuRAND's `curandGenerateUniform`). Rounded to `f16`, one in
    /// 2^25 is 0.
    ///
    /// # Errors
    /// Those of a launch.
    pub fn uniform<'a, T: Drawn>(&mut self, stream: &Stream, y: impl DeviceOutput<'a, T>) -> Result<()> {
        self.fill::<T, Uniform>(stream, y)
    }

    /// Fills `y` with numbers of the normal distribution with mean 0 and standard deviation 1 (cuRAND's
    /// `curandGenerateNormal`).
    ///
    /// # Errors
    /// Those of a launch.
    pub fn normal<'a, T: Drawn>(&mut self, stream: &Stream, y: impl DeviceOutput<'a, T>) -> Result<()> {
        self.fill::<T, Normal>(stream, y)
    }

    /// Fills `y` with numbers of the exponential distribution with mean 1 (CuPy's `standard_exponential`).
    ///
    /// # Errors
    /// Those of a launch.
    pub fn exponential<'a, T: Drawn>(&mut self, stream: &Stream, y: impl DeviceOutput<'a, T>) -> Result<()> {
        self.fill::<T, Exponential>(stream, y)
    }

    /// Fills `y` with words, each of the 2^32 values equally likely (cuRAND's `curandGenerate`).
    ///
    /// # Errors
    /// Those of a launch.
    pub fn words<'a>(&mut self, stream: &Stream, y: impl DeviceOutput<'a, u32>) -> Result<()> {
        let y = y.into_output();
        self.advance(y.len().div_ceil(4), |grid, seed, offset| {
            kernels::random_words(stream, grid, seed, offset, y)
        })
    }

    /// Writes the numbers from 0 to `y.len() - 1` to `y` in random order (CuPy's `random.permutation`): it sorts them by random
    /// keys of 64 bits.
    ///
    /// # Errors
    /// As [`RadixSort::pairs`](crate::RadixSort::pairs).
    pub fn permutation<'a>(&mut self, stream: &Stream, y: impl DeviceOutput<'a, u32>) -> Result<()> {
        let y = y.into_output();
        let (mut keys, mut sorted) = (stream.temporary::<u64>(y.len())?, stream.temporary::<u64>(y.len())?);
        let mut numbers = stream.temporary::<u32>(y.len())?;
        self.words(stream, keys.view_mut().cast::<u32>()?)?;
        sequence(stream, 0, 1, numbers.view_mut())?;
        let keys: DeviceView<u64> = keys.view();
        crate::sort_pairs(stream, keys, numbers.view(), sorted.view_mut(), y)
    }
}
