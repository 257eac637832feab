//! The kernel that counts samples of more than one byte.

/// The kernel.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    #[cfg(feature = "half")]
    use super::super::bins::bins::EvenHalves;
    use super::super::bins::bins::{
        Binning, COUNTERS, Channels, EvenFloats, EvenIntegers, ForEach, ITEMS, Ranges, add, copies, total,
    };
    use crate::sort::digits::kernels::each;

    /// The threads of a block.
    pub const THREADS: usize = 512;

    /// counts[bin] += how many samples of `x` fall into the bin.
    ///
    /// A thread has samples of one channel only. If the counters of all bins fit into shared memory, each block counts there, in
    /// as many copies as fit; else in global memory, where each thread adds up equal neighbours first.
    #[kernel(
        block = THREADS,
        wide,
        B = [
            EvenIntegers<u16>, EvenIntegers<u32>, EvenIntegers<u64>, EvenFloats<f32>, EvenFloats<f64>,
            Ranges<u16>, Ranges<u32>, Ranges<u64>,
            #[cfg(feature = "half")] EvenHalves
        ]
    )]
    pub fn count_samples<B: Binning>(
        t: Thread<1>,
        channels: Channels,
        binning: ForEach<B>,
        x: &[<B as Binning>::Sample],
        bounds: &[<B as Binning>::Sample],
        counts: &[DeviceAtomic<u32>],
        mut own: Shared<[DeviceAtomic<u32, atomic::Block>; 8192]>,
    ) {
        own.fill_with(&t, |_| DeviceAtomic::new(0));
        let own = t.publish(own);
        let counters = channels.counted * channels.bins;
        let (is_private, copies) = (counters as usize <= COUNTERS, copies(counters));
        let copy = t.thread_rank() & (copies - 1);
        // A multiple of the number of channels, so that all samples of a thread are of one.
        let stride = THREADS as u32 - THREADS as u32 % channels.all;
        let channel = t.thread_rank() % channels.all;
        if t.thread_rank() < stride && channel < channels.counted {
            let (binning, stride) = (binning.of(channel), stride as usize);
            let bound = |bound: u32| bounds.get((bound * channels.counted + channel) as usize).copied();
            let bin = |sample| binning.bin(sample, channels.bins, bound);
            let counter = |bin: u32| bin * channels.counted + channel;
            // The last bin in global memory, and what is to be added there.
            let mut run = (channels.bins, 0_u64);
            let mut count = |bin: u32| {
                if is_private && bin < channels.bins {
                    own[(counter(bin) * copies + copy) as usize % COUNTERS].fetch_add(1, Relaxed);
                } else if !is_private {
                    if bin != run.0 {
                        if run.0 < channels.bins {
                            add(counts, channels, counter(run.0) as usize, run.1);
                        }
                        run = (bin, 0);
                    }
                    run.1 += 1;
                }
            };
            let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
            let mut first = block as usize * stride * ITEMS + t.thread_rank() as usize;
            while first + (ITEMS - 1) * stride < x.len() {
                let samples = each::<_, ITEMS>(|k| x[first + k * stride]);
                let bins = each::<_, ITEMS>(|k| bin(samples[k]));
                each::<(), ITEMS>(|k| count(bins[k]));
                first += blocks as usize * stride * ITEMS;
            }
            // The last tile, if it is this block's.
            while first < x.len() {
                count(bin(x[first]));
                first += stride;
            }
            if run.0 < channels.bins {
                add(counts, channels, counter(run.0) as usize, run.1);
            }
        }
        t.sync_threads();
        let mut counter = t.thread_rank();
        while is_private && counter < counters {
            add(counts, channels, counter as usize, total(&t, &own, counter, copies));
            counter += t.block_threads();
        }
        binning.first.check(&t, bounds, channels);
    }
}
