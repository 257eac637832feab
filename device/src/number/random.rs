//! Counter-based random numbers: a function of seed, subsequence and offset, the same on GPUs and the CPU
//! device.

use crate::integer::MulHi;
use crate::math::Float;

/// The generator Philox 4x32-10 of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy as 1, 2,
/// 3", 2011): a bijection of 128-bit counters for each 64-bit key, four words of 32 bits a time. It passes
/// BigCrush, has no state in memory, and takes some twenty 32-bit multiplications for four words.
///
/// As in cuRAND (`curandStatePhilox4_32_10_t`), the key is the seed, the low 64 bits of the counter are the
/// offset, and the high 64 bits the subsequence. Give all threads one seed, and each its own subsequence,
/// which is 2^66 words long. The offset counts groups of four words; cuRAND's counts words, so it is four
/// times this one.
///
/// ```
/// use ferrogrid_device::random::Philox4x32;
///
/// let mut random = Philox4x32::new(2024, 7, 0);
/// let first = random.next_u32x4();
/// let second = random.next_u32x4();
/// assert_eq!(Philox4x32::new(2024, 7, 1).next_u32x4(), second);
/// assert_ne!(first, second);
/// assert!(random.next_uniform_f32x4().iter().all(|&x| 0.0 < x && x <= 1.0));
/// ```
///
/// Other distributions. Each call takes one group of four words, whatever it returns:
///
/// ```
/// use ferrogrid_device::random::Philox4x32;
///
/// let (mut random, mut other) = (Philox4x32::new(1, 0, 0), Philox4x32::new(1, 0, 0));
/// let steps: Vec<f32> = (0..1000).flat_map(|_| random.next_normal_f32x4()).collect();
/// let variance = steps.iter().map(|x| x * x).sum::<f32>() / 4000.0;
/// assert!((variance - 1.0).abs() < 0.1);
/// other.skip(1000); // as if drawn
/// assert_eq!(random, other);
/// let ([x, y], [a, b]) = (random.next_uniform_f64x2(), random.next_normal_f64x2());
/// assert!(0.0 < x.min(y) && x.max(y) <= 1.0 && a.abs().max(b.abs()) < 8.7);
/// assert_eq!(random, Philox4x32::new(1, 0, 1002));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox4x32 {
    key: [u32; 2],
    counter: u128,
}

impl Philox4x32 {
    /// The generator of stream `subsequence` under `seed`, at its group number `offset`
    /// (`curand_init(seed, subsequence, 4 * offset, &state)`).
    #[inline(always)]
    pub const fn new(seed: u64, subsequence: u64, offset: u64) -> Self {
        Philox4x32 {
            key: [seed as u32, (seed >> 32) as u32],
            counter: (subsequence as u128) << 64 | offset as u128,
        }
    }

    /// Four words, each of the 2^32 values equally likely (`curand4`).
    #[inline(always)]
    pub fn next_u32x4(&mut self) -> [u32; 4] {
        let words = ten_rounds(words_of(self.counter), self.key);
        self.skip(1);
        words
    }

    /// Four numbers, evenly distributed in (0, 1]: 0 never occurs, 1 does (`curand_uniform4`, bit for bit).
    #[inline(always)]
    pub fn next_uniform_f32x4(&mut self) -> [f32; 4] {
        self.next_u32x4().map(uniform_f32)
    }

    /// Two numbers of 53 random bits each, evenly distributed in (0, 1] (`curand_uniform2_double`).
    #[inline(always)]
    pub fn next_uniform_f64x2(&mut self) -> [f64; 2] {
        let [a, b, c, d] = self.next_u32x4();
        [uniform_f64(a, b), uniform_f64(c, d)]
    }

    /// Four numbers of the normal distribution with mean 0 and standard deviation 1, by the method of Box
    /// and Muller, at most 6.7 from 0 (`curand_normal4`, up to rounding).
    #[inline(always)]
    pub fn next_normal_f32x4(&mut self) -> [f32; 4] {
        let [a, b, c, d] = self.next_u32x4();
        let ([a, b], [c, d]) = (normal_f32(a, b), normal_f32(c, d));
        [a, b, c, d]
    }

    /// Two numbers of the normal distribution with mean 0 and standard deviation 1, by the method of Box
    /// and Muller, at most 8.7 from 0 (`curand_normal2_double`, up to rounding).
    #[inline(always)]
    pub fn next_normal_f64x2(&mut self) -> [f64; 2] {
        normal_f64(self.next_uniform_f64x2())
    }

    /// Skips `groups` groups of four words (`skipahead(4 * groups, &state)`). At the end of a subsequence it
    /// continues with the next.
    #[inline(always)]
    pub const fn skip(&mut self, groups: u64) {
        self.counter = self.counter.wrapping_add(groups as u128);
    }
}

/// The lowest word first.
#[inline(always)]
const fn words_of(counter: u128) -> [u32; 4] {
    [counter as u32, (counter >> 32) as u32, (counter >> 64) as u32, (counter >> 96) as u32]
}

#[inline(always)]
fn ten_rounds(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const ROUNDS: u32 = 10;
    /// What is added to the key after each round: the golden ratio and the square root of 3, less one.
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    for _ in 0..ROUNDS {
        counter = round(counter, key);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

#[inline(always)]
fn round([a, b, c, d]: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (first, second) = (0xD251_1F53_u32, 0xCD9E_8D57_u32);
    [
        second.mul_hi(c) ^ b ^ key[0],
        second.wrapping_mul(c),
        first.mul_hi(a) ^ d ^ key[1],
        first.wrapping_mul(a),
    ]
}

/// The middle of the word's interval, one of 2^32, rounded.
#[inline(always)]
fn uniform_f32(word: u32) -> f32 {
    const INTERVAL: f32 = 1.0 / 4_294_967_296.0;
    Float::mul_add(word as f32, INTERVAL, INTERVAL / 2.0)
}

/// The middle of one of 2^53 intervals, rounded.
#[inline(always)]
fn uniform_f64(low: u32, high: u32) -> f64 {
    const INTERVAL: f64 = 1.0 / 9_007_199_254_740_992.0;
    let bits = u64::from(low) ^ u64::from(high) << 21;
    Float::mul_add(bits as f64, INTERVAL, INTERVAL / 2.0)
}

#[inline(always)]
fn normal_f32(radius: u32, turn: u32) -> [f32; 2] {
    let radius = Float::sqrt(-2.0 * Float::ln(uniform_f32(radius)));
    let (sin, cos) = Float::sin_cos(uniform_f32(turn) * core::f32::consts::TAU);
    [radius * sin, radius * cos]
}

#[inline(always)]
fn normal_f64([radius, turn]: [f64; 2]) -> [f64; 2] {
    let radius = Float::sqrt(-2.0 * Float::ln(radius));
    let (sin, cos) = Float::sin_cos(turn * core::f64::consts::TAU);
    [radius * sin, radius * cos]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
        let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let [offset, subsequence] = [wide(counter[0], counter[1]), wide(counter[2], counter[3])];
        Philox4x32::new(wide(key[0], key[1]), subsequence, offset).next_u32x4()
    }

    /// `philox4x32 10` of the file `kat_vectors` that Random123 is published with.
    #[test]
    fn the_generator_gives_the_known_answers_of_random123() {
        let zero = philox([0; 4], [0; 2]);
        assert_eq!(zero, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = philox([u32::MAX; 4], [u32::MAX; 2]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let digits_of_pi =
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
        assert_eq!(digits_of_pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn skipping_is_drawing_without_looking() {
        let mut drawn = Philox4x32::new(1, 2, u64::MAX - 1);
        let mut skipped = drawn;
        for _ in 0..5 {
            drawn.next_u32x4();
        }
        skipped.skip(5);
        assert_eq!(drawn, skipped);
        assert_eq!(drawn, Philox4x32::new(1, 3, 3), "a subsequence is followed by the next");
    }

    #[test]
    fn uniform_numbers_end_at_one_and_begin_above_zero() {
        assert_eq!(uniform_f32(0), 2.0_f32.powi(-33));
        assert_eq!(uniform_f32(u32::MAX), 1.0);
        assert_eq!(uniform_f64(0, 0), 2.0_f64.powi(-54));
        // All 53 bits are set: the words overlap in bits 21 to 31.
        assert_eq!(uniform_f64(0x001f_ffff, u32::MAX), 1.0);
    }

    /// `curand_normal2` gives the sine first.
    #[test]
    fn of_two_normal_numbers_the_first_has_the_sine() {
        let quarter = 1 << 30;
        let [first, second] = normal_f32(1 << 31, quarter);
        let radius = (2.0 * core::f32::consts::LN_2).sqrt();
        assert!((first - radius).abs() < 1e-6 && second.abs() < 1e-6, "{first} {second}");
        let [first, second] = normal_f64([0.5, 0.25]);
        let radius = (2.0 * core::f64::consts::LN_2).sqrt();
        assert!((first - radius).abs() < 1e-15 && second.abs() < 1e-15, "{first} {second}");
    }

    /// Mean and variance of 400,000 numbers, within five standard errors.
    #[test]
    fn the_moments_are_those_of_the_distributions() {
        let mut random = Philox4x32::new(77, 0, 0);
        let (mut uniform, mut normal, mut wide) = ([0.0; 2], [0.0; 2], [0.0; 2]);
        let add = |sums: &mut [f64; 2], x: f64| *sums = [sums[0] + x, sums[1] + x * x];
        const N: f64 = 400_000.0;
        for _ in 0..100_000 {
            random.next_uniform_f32x4().iter().for_each(|&x| add(&mut uniform, f64::from(x) - 0.5));
            random.next_normal_f32x4().iter().for_each(|&x| add(&mut normal, f64::from(x)));
            random.next_normal_f64x2().iter().for_each(|&x| add(&mut wide, x));
        }
        let near = |found: f64, expected: f64, error: f64| (found - expected).abs() < 5.0 * error;
        assert!(near(uniform[0] / N, 0.0, (1.0 / 12.0 / N).sqrt()), "{uniform:?}");
        assert!(near(uniform[1] / N, 1.0 / 12.0, (1.0 / 180.0 / N).sqrt()), "{uniform:?}");
        for (sums, count) in [(normal, N), (wide, N / 2.0)] {
            assert!(near(sums[0] / count, 0.0, (1.0 / count).sqrt()), "{sums:?}");
            assert!(near(sums[1] / count, 1.0, (2.0 / count).sqrt()), "{sums:?}");
        }
    }
}
