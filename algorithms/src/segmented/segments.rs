//! The kernels that combine the elements of segments.

/// The kernels. The order in which the elements of a segment are combined depends on its length and the kernel alone.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::accumulate::accumulations::{Accumulation, Least, SumFloats, SumIntegers};

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The segments of a warp: it loads elements of all at once.
    pub const SEGMENTS: usize = 4;
    /// The elements that a lane loads of each of them at once.
    const ROWS: usize = 4;

    /// Where segments begin and end: one of the two slices is empty.
    #[derive(Clone, Copy, Debug)]
    pub struct Offsets<'x> {
        /// In 32 bits.
        pub short: &'x [u32],
        /// In 64 bits.
        pub long: &'x [u64],
    }

    impl Offsets<'_> {
        /// Offset `index`, or the last one.
        #[inline(always)]
        pub fn get(self, index: usize) -> usize {
            let index = index.min((self.short.len() + self.long.len()).saturating_sub(1));
            match self.short.get(index) {
                Some(offset) => *offset as usize,
                None => self.long.get(index).map_or(0, |offset| *offset as usize),
            }
        }
    }

    /// Panics if the segment is none of `len` elements.
    #[track_caller]
    #[inline(always)]
    pub fn expect_segment(begin: usize, end: usize, len: usize) {
        assert!(begin <= end, "a segment ends before it begins: offsets must ascend");
        assert!(
            end <= len,
            "a segment ends beyond the elements: the last offset must be at most their number"
        );
    }

    /// The results of `f` for the number of each segment or row. LLVM does not unroll a loop of so much code, and what it indexes would
    /// go to memory.
    #[inline(always)]
    fn each<U>(mut f: impl FnMut(usize) -> U) -> [U; SEGMENTS] {
        [f(0), f(1), f(2), f(3)]
    }

    /// Four elements from `first` on, each `step` after the one before, combined; what is not before `end` is left out.
    #[inline(always)]
    fn four<A: Accumulation>(a: A, x: &[A::Item], first: usize, step: usize, end: usize) -> A::Sum {
        // First all loads. An element that changes nothing takes the place of those that are left out.
        let none = a.item(a.identity());
        let load = |index: usize| if index < end { x.get(index).copied().unwrap_or(none) } else { none };
        let items: [A::Item; ROWS] = each(|row| load(first + row * step));
        let [p, q, r, s] = each(|row| a.sum(items[row]));
        a.combine(a.combine(p, q), a.combine(r, s))
    }

    /// y[s] <- the elements of `x` from offset `s` up to the next one, combined: for segments of some hundred elements. A warp has four.
    #[kernel(
        block = THREADS,
        wide,
        A = [
            SumIntegers<u8>, SumIntegers<u16>, SumIntegers<u32>, SumIntegers<u64>, SumFloats<f32>, SumFloats<f64>,
            #[cfg(feature = "half")] SumFloats<f16>, #[cfg(feature = "half")] SumFloats<bf16>,
            Least<u8>, Least<u16>, Least<u32>, Least<u64>
        ]
    )]
    pub fn segments_of_warps<A: Accumulation>(
        t: Thread<1>,
        a: A,
        x: &[<A as Accumulation>::Item],
        short: &[u32],
        long: &[u64],
        y: &[DeviceAtomic<<A as Accumulation>::Total>],
    ) {
        let (warp, offsets) = (t.warp(), Offsets { short, long });
        let lane = warp.lane() as usize;
        let first = (t.block_idx()[0] as usize * THREADS / 32 + t.thread_rank() as usize / 32) * SEGMENTS;
        let own = offsets.get(first + lane.min(SEGMENTS));
        let bounds: [usize; SEGMENTS + 1] = core::array::from_fn(|segment| warp.shuffle(own, segment as u32));
        each(|segment| expect_segment(bounds[segment], bounds[segment + 1], x.len()));
        let part = |segment: usize, first: usize| four(a, x, first + lane, 32, bounds[segment + 1]);
        let sums = each(|segment| part(segment, bounds[segment]));
        let sums = each(|segment| {
            let (mut sum, mut next) = (sums[segment], bounds[segment] + 32 * ROWS);
            while next < bounds[segment + 1] {
                sum = a.combine(sum, part(segment, next));
                next += 32 * ROWS;
            }
            sum
        });
        let sums = each(|segment| warp.reduce(sums[segment], |p, q| a.combine(p, q)));
        let mut own = sums[0];
        each(|segment| own = if lane == segment { sums[segment] } else { own });
        if lane < SEGMENTS
            && let Some(y) = y.get(first + lane)
        {
            y.store(a.total(own), Ordering::Relaxed);
        }
    }

    /// As `segments_of_warps`, for longer segments: a block has one.
    #[kernel(
        block = THREADS,
        wide,
        A = [
            SumIntegers<u8>, SumIntegers<u16>, SumIntegers<u32>, SumIntegers<u64>, SumFloats<f32>, SumFloats<f64>,
            #[cfg(feature = "half")] SumFloats<f16>, #[cfg(feature = "half")] SumFloats<bf16>,
            Least<u8>, Least<u16>, Least<u32>, Least<u64>
        ]
    )]
    pub fn segments_of_blocks<A: Accumulation>(
        t: Thread<1>,
        a: A,
        x: &[<A as Accumulation>::Item],
        short: &[u32],
        long: &[u64],
        y: &[DeviceAtomic<<A as Accumulation>::Total>],
        mut scratch: Shared<Scratch<<A as Accumulation>::Sum>>,
    ) {
        let (segment, offsets) = (t.block_idx()[0] as usize, Offsets { short, long });
        let (begin, end) = (offsets.get(segment), offsets.get(segment + 1));
        expect_segment(begin, end, x.len());
        let (mut own, mut first) = (a.identity(), begin + t.thread_rank() as usize % THREADS);
        while first < end {
            let part = |number: usize| four(a, x, first + number * ROWS * THREADS, THREADS, end);
            let [p, q, r, s] = [part(0), part(1), part(2), part(3)];
            own = a.combine(own, a.combine(a.combine(p, q), a.combine(r, s)));
            first += 4 * ROWS * THREADS;
        }
        let sum = t.block_reduce(&mut scratch, own, |p, q| a.combine(p, q));
        if t.thread_rank() == 0
            && let Some(y) = y.get(segment)
        {
            y.store(a.total(sum), Ordering::Relaxed);
        }
    }
}
