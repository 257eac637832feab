//! Which bin a sample falls into, and the counts of bins in global memory.

/// Device code that the kernels of histograms share.
#[ferrogrid::module]
pub mod bins {
    use atomic::Ordering::Relaxed;
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::order::numbers::Order;
    use crate::sort::digits::kernels::Bits;

    /// The samples that a thread loads before it counts them.
    pub const ITEMS: usize = 8;
    /// The counters of a block.
    pub const COUNTERS: usize = 8192;
    /// The most channels that are counted.
    pub const CHANNELS: usize = 4;

    /// The channels of interleaved samples: sample `i` is of channel `i % all`, and the first `counted` of them have bins.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Channels {
        /// All channels.
        pub all: u32,
        /// Those that are counted.
        pub counted: u32,
        /// The bins of each.
        pub bins: u32,
        /// The 32-bit words of a count in global memory.
        pub words: u32,
        /// Whether the counts are 0 before the launch.
        pub is_zeroed: bool,
    }

    /// One value for each channel that is counted.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct ForEach<B> {
        /// That of channel 0.
        pub first: B,
        /// That of channel 1.
        pub second: B,
        /// That of channel 2.
        pub third: B,
        /// That of channel 3.
        pub fourth: B,
    }

    impl<B: Copy> ForEach<B> {
        /// That of `channel`. (An array with a computed index would be in local memory.)
        #[inline(always)]
        pub fn of(self, channel: u32) -> B {
            match channel {
                0 => self.first,
                1 => self.second,
                2 => self.third,
                _ => self.fourth,
            }
        }
    }

    /// How the samples of a channel fall into bins.
    pub trait Binning: DeviceCopy {
        /// A sample, as it is in memory.
        type Sample: DeviceCopy;
        /// The bin of a sample. It is none of the `bins` if the sample is outside.
        fn bin(self, sample: Self::Sample, bins: u32, bounds: impl Fn(u32) -> Option<Self::Sample>) -> u32;
        /// Panics if these are no bounds of bins. Each thread of the first block looks at some.
        #[inline(always)]
        fn check(self, _: &Thread<'_, 1>, _: &[Self::Sample], _: Channels) {}
    }

    /// Bins of one width for integers, exactly: `(sample - lower) * bins / width`, rounded down.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct EvenIntegers<K> {
        /// What to flip in samples, so that they are in the order of unsigned integers.
        pub flip: K,
        /// The least sample that is counted, flipped.
        pub lower: K,
        /// The greatest, less the least.
        pub last: K,
        /// How many whole bins there are for each integer.
        pub whole: u64,
        /// The rest of that number, a binary fraction rounded up; this is its first half.
        pub high: u64,
        /// Its second half. A half has 64 bits for integers of 64 bits, else 32.
        pub low: u64,
    }

    impl<K: Bits> Binning for EvenIntegers<K> {
        type Sample = K;
        #[inline(always)]
        fn bin(self, sample: K, bins: u32, _: impl Fn(u32) -> Option<K>) -> u32 {
            let flipped = (sample ^ self.flip).widen();
            let (offset, lower) = (flipped.wrapping_sub(self.lower.widen()), self.lower.widen());
            // The fraction is too large by less than `1 / (offset * width)`, so that no quotient is.
            let part = if size_of::<K>() == 8 {
                let (offset, high, low) = (u128::from(offset), u128::from(self.high), u128::from(self.low));
                ((offset * high + ((offset * low) >> 64)) >> 64) as u64
            } else {
                let (offset, low) = ((offset as u32).widen(), (self.low as u32).widen());
                (offset * self.high + ((offset * low) >> 32)) >> 32
            };
            let bin = offset.wrapping_mul(self.whole).wrapping_add(part) as u32;
            if flipped >= lower && offset <= self.last.widen() { bin } else { bins }
        }
    }

    /// Bins of one width for floats.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct EvenFloats<F> {
        /// The least number that is counted.
        pub lower: F,
        /// The least number above it that is not.
        pub end: F,
        /// Bins for each unit.
        pub scale: F,
    }

    macro_rules! floats {
        ($($t:ty),*) => {
            $(impl Binning for EvenFloats<$t> {
                type Sample = $t;
                #[inline(always)]
                fn bin(self, sample: $t, bins: u32, _: impl Fn(u32) -> Option<$t>) -> u32 {
                    let bin = ((sample - self.lower) * self.scale) as u32;
                    // Not for NaN. The product may be rounded up to the number of bins.
                    if sample >= self.lower && sample < self.end { bin.min(bins - 1) } else { bins }
                }
            })*
        };
    }
    floats!(f32, f64);

    /// Bins of one width for `f16` or `bf16`, found in `f32`.
    #[cfg(feature = "half")]
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct EvenHalves {
        /// Those of the samples in `f32`.
        pub even: EvenFloats<f32>,
        /// Whether samples are `bf16`.
        pub is_brain: bool,
    }

    #[cfg(feature = "half")]
    impl Binning for EvenHalves {
        type Sample = u16;
        #[inline(always)]
        fn bin(self, sample: u16, bins: u32, _: impl Fn(u32) -> Option<u16>) -> u32 {
            let sample = if self.is_brain {
                bf16::from_bits(sample).to_f32()
            } else {
                f16::from_bits(sample).to_f32()
            };
            self.even.bin(sample, bins, |_| None)
        }
    }

    /// Bins from each bound to the next.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Ranges<K> {
        /// The order of the samples.
        pub order: Order<K>,
    }

    impl<K: Bits> Binning for Ranges<K> {
        type Sample = K;
        #[inline(always)]
        fn bin(self, sample: K, bins: u32, bounds: impl Fn(u32) -> Option<K>) -> u32 {
            let place = self.order.place(sample).widen();
            // How many bounds are not above the sample.
            let (mut from, mut to) = (0, bins + 1);
            while from < to {
                let middle = from + (to - from) / 2;
                if bounds(middle).is_some_and(|bound| self.order.place(bound).widen() <= place) {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            // None: below the first bound. All: above the last.
            from.wrapping_sub(1).min(bins)
        }

        #[inline(always)]
        fn check(self, t: &Thread<'_, 1>, bounds: &[K], channels: Channels) {
            let ([block], mut bound) = (t.block_idx(), t.thread_rank() as usize);
            let counted = channels.counted as usize;
            while block == 0 && bound + counted < bounds.len() {
                let (low, high) =
                    (self.order.place(bounds[bound]), self.order.place(bounds[bound + counted]));
                assert!(
                    low.widen() <= high.widen() && high.widen() <= self.order.last.widen(),
                    "a bound of a histogram's bins is above the next one, or is NaN: bounds must ascend"
                );
                bound += t.block_threads() as usize;
            }
        }
    }

    /// Adds to a count in global memory, which has one or two words, the lower one first.
    #[inline(always)]
    pub fn add(counts: &[DeviceAtomic<u32>], channels: Channels, count: usize, samples: u64) {
        let place = count * channels.words as usize;
        if samples == 0 || place >= counts.len() {
            return;
        }
        if channels.words == 1 {
            counts[place].fetch_add(samples as u32, Relaxed);
        } else {
            let before = counts[place].fetch_add(samples as u32, Relaxed);
            let carry = (before.widen() + (samples & 0xFFFF_FFFF)) >> 32;
            let high = (samples >> 32) + carry;
            if let Some(word) = counts.get(place + 1)
                && high > 0
            {
                word.fetch_add(high as u32, Relaxed);
            }
        }
    }

    /// Sets the counts to 0, unless they are, by the block that started first, and gives the order to the others: before a block adds to
    /// the counts, it waits for block 0.
    #[inline(always)]
    pub fn zero_first<'a>(
        t: &Thread<'_, 1>,
        channels: Channels,
        counts: &[DeviceAtomic<u32>],
        order: BlockOrder<'a, u32>,
    ) -> Option<BlockOrder<'a, u32>> {
        if t.block_idx() != [0] {
            return Some(order);
        }
        let mut place = t.thread_rank() as usize;
        while let Some(count) = counts.get(place)
            && !channels.is_zeroed
        {
            count.store(0, Relaxed);
            place += t.block_threads() as usize;
        }
        let _ = order.publish(t, 0);
        None
    }

    /// How many copies of each counter a block has: a power of two up to 32.
    #[inline(always)]
    pub fn copies(counters: u32) -> u32 {
        let fit = COUNTERS as u32 / counters.max(1);
        if fit >= 32 { 32 } else { 1 << (31 - (fit | 1).leading_zeros()) }
    }

    /// What the copies of a counter have counted together. The thread begins with a copy of its own, so that the threads of a
    /// warp read different banks.
    #[inline(always)]
    pub fn total(
        t: &Thread<'_, 1>,
        own: &[DeviceAtomic<u32, atomic::Block>; COUNTERS],
        counter: u32,
        copies: u32,
    ) -> u64 {
        let mut total = 0;
        for copy in 0..copies {
            let place = counter * copies + ((copy + t.thread_rank()) & (copies - 1));
            total += own[place as usize % COUNTERS].load(Relaxed).widen();
        }
        total
    }
}
