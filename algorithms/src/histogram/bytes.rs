//! The kernel that counts bytes.

/// The kernel.
///
/// A block counts all 256 values, and finds the bin of each value at the end: all bins cost the same. Each lane of a warp has
/// counters in a bank of its own, so the time does not depend on how samples are distributed. Four equal ones side by side are counted
/// together, which is faster.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::group;
    use ferrogrid::device::prelude::*;

    use super::super::bins::bins::{Binning, COUNTERS, Channels, Ranges, add, copies, total, zero_first};
    use crate::sort::digits::kernels::each;

    /// The threads of a block: two fill a multiprocessor.
    pub const THREADS: usize = 1024;
    /// The bytes that a thread loads before it counts them.
    pub const BYTES: usize = 16;
    /// The values of a byte.
    const VALUES: u32 = 256;

    /// Bins of one width for bytes. Byte `k` of `lower` and `last` is that of channel `k`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct EvenBytes {
        /// What to flip in samples, so that they are in the order of unsigned integers.
        pub flip: u32,
        /// The least sample that is counted, flipped.
        pub lower: u32,
        /// The greatest, less the least.
        pub last: u32,
    }

    impl EvenBytes {
        /// The bin of a value of `channel`; `bins` if it is outside.
        #[inline(always)]
        fn bin(self, value: u8, bins: u32, channel: u32) -> u32 {
            let of_channel = |bytes: u32| bytes >> (8 * channel) & 0xFF;
            let (lower, last) = (of_channel(self.lower), of_channel(self.last));
            let offset = (u32::from(value) ^ self.flip).wrapping_sub(lower);
            if offset <= last {
                (u64::from(offset) * u64::from(bins) / u64::from(last + 1)) as u32
            } else {
                bins
            }
        }
    }

    type Counters = [DeviceAtomic<u32, atomic::Block>; COUNTERS];

    /// Counts bytes of a channel: `counter` is that of their value, in one of the copies.
    #[inline(always)]
    fn count(own: &Counters, counter: u32, (copies, copy): (u32, u32), bytes: u32) {
        own[(counter * copies + copy) as usize % COUNTERS].fetch_add(bytes, Relaxed);
    }

    /// Counts the bytes of a word, all of one channel. Equal ones are common in images and text.
    #[inline(always)]
    fn count_word(own: &Counters, word: u32, lane: u32) {
        if word == word.rotate_left(8) {
            return count(own, word & 0xFF, (32, lane), 4);
        }
        each::<(), 4>(|byte| count(own, word >> (8 * byte) & 0xFF, (32, lane), 1));
    }

    /// 16 bytes of `x`, in four words: 16 registers would be many.
    #[inline(always)]
    fn load(x: &[u8], first: usize) -> [u32; 4] {
        let Some(group) = group::input::<u8, BYTES>(x, first) else { return [0; 4] };
        let bytes = group.load();
        core::array::from_fn(|word| u32::from_le_bytes(core::array::from_fn(|byte| bytes[4 * word + byte])))
    }

    /// counts[bin] += how many bytes of `x` fall into the bin: one of `bounds`, if there are any.
    #[kernel(block = THREADS, min_blocks = 2, wide)]
    pub fn count_bytes(
        t: Thread<1>,
        channels: Channels,
        even: EvenBytes,
        ranges: Ranges<u8>,
        x: &[u8],
        bounds: &[u8],
        counts: &[DeviceAtomic<u32>],
        order: BlockOrder<u32>,
        mut own: Shared<[DeviceAtomic<u32, atomic::Block>; 8192]>,
    ) {
        own.fill_with(&t, |_| DeviceAtomic::new(0));
        let own = t.publish(own);
        let order = zero_first(&t, channels, counts, order);
        let rank = t.thread_rank() as usize % THREADS;
        let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
        // From here on they are loaded 16 at a time.
        let head = (x.as_ptr().addr().wrapping_neg() % BYTES).min(x.len());
        let groups = (x.len() - head) / BYTES;
        let stride = blocks as usize * THREADS;
        let mut group = block as usize * THREADS + rank;
        let mut words = load(x, head + group * BYTES);
        let copies = if channels.all == 1 { 32 } else { copies(channels.counted * VALUES) };
        if channels.all == 1 {
            let lane = t.thread_rank() % 32;
            while group < groups {
                group += stride;
                let next = load(x, head + group * BYTES);
                each::<(), 4>(|word| count_word(&own, words[word], lane));
                words = next;
            }
        } else {
            let (copy, all) = (t.thread_rank() & (copies - 1), u64::from(channels.all));
            let mut channel = ((head + group * BYTES) as u64 % all) as u32;
            let step = ((stride - 1) as u64 * BYTES as u64 % all) as u32;
            while group < groups {
                group += stride;
                let next = load(x, head + group * BYTES);
                let mut one = |byte: u32| {
                    if channel < channels.counted {
                        count(&own, channel * VALUES + byte, (copies, copy), 1);
                    }
                    channel = if channel + 1 == channels.all { 0 } else { channel + 1 };
                };
                each::<(), 8>(|k| {
                    let half = words[k / 2] >> (16 * (k % 2));
                    one(half & 0xFF);
                    one(half >> 8 & 0xFF);
                });
                words = next;
                channel += step;
                channel = if channel >= channels.all { channel - channels.all } else { channel };
            }
        }
        // What is before the first group, and after the last one.
        let tail = head + groups * BYTES;
        let one = |place: usize| {
            let channel = (place as u64 % u64::from(channels.all)) as u32;
            if channel < channels.counted {
                let copy = t.thread_rank() & (copies - 1);
                count(&own, channel * VALUES + u32::from(x[place]), (copies, copy), 1);
            }
        };
        if block == 0 && rank < head {
            one(rank);
        }
        if block == 0 && tail + rank < x.len() {
            one(tail + rank);
        }
        if let Some(order) = order {
            order.wait_for(0);
        }
        t.sync_threads();
        let mut counter = t.thread_rank();
        while counter < channels.counted * VALUES {
            let (channel, value) = (counter / VALUES, (counter % VALUES) as u8);
            let bin = if bounds.is_empty() {
                even.bin(value, channels.bins, channel)
            } else {
                let bound = |bound: u32| bounds.get((bound * channels.counted + channel) as usize).copied();
                ranges.bin(value, channels.bins, bound)
            };
            if bin < channels.bins {
                let samples = total(&t, &own, counter, copies);
                add(counts, channels, bin as usize * channels.counted as usize + channel as usize, samples);
            }
            counter += t.block_threads();
        }
        ranges.check(&t, bounds, channels);
    }
}
