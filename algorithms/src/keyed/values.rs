//! The kernel that combines the elements of runs, by decoupled look-back.

/// The kernel.
///
/// A lane has a few neighbours of each row, and combines them one after the other. Runs that go on beyond a lane are continued from
/// what the lanes, warps and blocks before it have since the last mark.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::scan::{ROWS, Rows};

    use crate::accumulate::accumulations::{Accumulation, Least, SumFloats, SumIntegers};
    use crate::select::placing::placing::{
        Kept, THREADS, WIDE_GROUP as GROUP, WIDE_RUN as RUN, first, for_each_of_lane, is_last, load, of_warp,
        pass_on, put,
    };
    use crate::sort::digits::kernels::each;

    /// A warp's elements, and where runs begin.
    struct Part<A: Accumulation> {
        a: A,
        items: Rows<A::Item, GROUP>,
        /// A bit for each element of the lane that begins a run, `GROUP` for each row.
        heads: u32,
    }

    impl<A: Accumulation> Part<A> {
        /// Whether an element begins a run.
        #[inline(always)]
        fn is_head(&self, row: usize, k: usize) -> bool {
            self.heads >> (row * GROUP + k) & 1 != 0
        }

        /// Those of the run of an element, where `before` are those before it.
        #[inline(always)]
        fn up_to(&self, row: usize, k: usize, before: A::Sum) -> A::Sum {
            let item = self.a.sum(self.items[row][k]);
            if self.is_head(row, k) { item } else { self.a.combine(before, item) }
        }

        /// What the warp's run alone has.
        #[inline(always)]
        fn combined(&self, warp: &Warp) -> Combined<A> {
            let (a, lane) = (self.a, warp.lane());
            let mut sums: [A::Sum; ROWS] = each(|row| {
                let mut sum = a.sum(self.items[row][0]);
                for k in 1..GROUP {
                    sum = self.up_to(row, k, sum);
                }
                sum
            });
            let marked: [u32; ROWS] =
                each(|row| warp.ballot(self.heads >> (row * GROUP) & ((1 << GROUP) - 1) != 0));
            // Lanes combine from the last one with a mark on. The rows advance together, so that they don't wait for each other's shuffles.
            let starts: [u32; ROWS] = each(|row| {
                let up_to = marked[row] & (u32::MAX >> (31 - lane));
                up_to.checked_ilog2().unwrap_or(0)
            });
            let mut distance = 1;
            while distance < 32 {
                each::<(), ROWS>(|row| {
                    let earlier = warp.shuffle_up(sums[row], distance);
                    if lane >= starts[row] + distance {
                        sums[row] = a.combine(earlier, sums[row]);
                    }
                });
                distance *= 2;
            }
            let (mut any, mut open, mut total) = (0, 0, a.identity());
            let before = each(|row| {
                let (earlier, of_row) = (warp.shuffle_up(sums[row], 1), warp.shuffle(sums[row], 31));
                let is_open = marked[row] & !(u32::MAX << lane) == 0;
                open |= u32::from(is_open && any == 0) << row;
                let before = match (lane, is_open) {
                    (0, _) => total,
                    (_, true) => a.combine(total, earlier),
                    (_, false) => earlier,
                };
                total = if marked[row] == 0 { a.combine(total, of_row) } else { of_row };
                any |= marked[row];
                before
            });
            Combined { before, open, any, total }
        }
    }

    /// What is combined of a warp's run since the last mark.
    struct Combined<A: Accumulation> {
        /// Before the lane's elements of each row.
        before: [A::Sum; ROWS],
        /// A bit for each row before whose elements of the lane there is no mark.
        open: u32,
        /// Not 0 if there is a mark.
        any: u32,
        /// Up to the end.
        total: A::Sum,
    }

    /// Combines the elements of runs, which begin where [`mark_runs`](super::super::keys::kernels::mark_runs) has marked them. Without
    /// marks, all elements are one run.
    ///
    /// totals[r] <- all elements of run `r`; the runs that begin before the elements of each warp are in `places`.
    /// y[i] <- those of the run of `i` up to it; or, if `is_exclusive`, `start` and those before it.
    #[kernel(
        block = THREADS,
        min_blocks = 3,
        wide,
        A = [
            SumIntegers<u8>, SumIntegers<u16>, SumIntegers<u32>, SumIntegers<u64>, SumFloats<f32>, SumFloats<f64>,
            #[cfg(feature = "half")] SumFloats<f16>, #[cfg(feature = "half")] SumFloats<bf16>,
            Least<u8>, Least<u16>, Least<u32>, Least<u64>
        ]
    )]
    pub fn combine_runs<A: Accumulation>(
        t: Thread<1>,
        a: A,
        is_exclusive: bool,
        start: <A as Accumulation>::Item,
        x: &[<A as Accumulation>::Item],
        marks: &[u32],
        places: &[u32],
        totals: &[DeviceAtomic<<A as Accumulation>::Total>],
        mut y: DisjointWarps<<A as Accumulation>::Item, RUN, 32, GROUP>,
        order: BlockOrder<(u32, <A as Accumulation>::Sum)>,
        scratch: Shared<Scratch<(u32, <A as Accumulation>::Sum)>>,
        tile: Shared<[DeviceAtomic<<A as Accumulation>::Total, atomic::Block>; 4096]>,
    ) {
        let tile = t.publish(tile);
        let (warp, of_grid) = (t.warp(), first::<RUN>(&t) / RUN);
        let own = of_warp::<_, RUN>(&t, &*tile);
        let marks = marks.get(of_grid * 32 + warp.lane() as usize).copied().unwrap_or(0);
        // Beyond the end is what changes nothing.
        let part = Part { a, items: load::<_, GROUP, RUN>(&t, x, a.item(a.identity())), heads: marks };
        let combined = part.combined(&warp);
        let join = |x: (u32, A::Sum), y: (u32, A::Sum)| {
            (x.0 | y.0, if y.0 != 0 { y.1 } else { a.combine(x.1, y.1) })
        };
        let earlier = order.publish_of_warps(&t, scratch, (combined.any, combined.total), join);
        if !y.is_empty() {
            let of_warps = earlier.exclusive(&t, join).map_or(a.identity(), |(_, sum)| sum);
            let start = a.sum(start);
            y.fill_grouped(
                &t,
                each::<_, ROWS>(|row| {
                    let before = combined.before[row];
                    let is_open = combined.open >> row & 1 != 0;
                    let mut sum = if is_open { a.combine(of_warps, before) } else { before };
                    each(|k| {
                        let earlier = if part.is_head(row, k) { start } else { a.combine(start, sum) };
                        sum = part.up_to(row, k, sum);
                        a.item(if is_exclusive { earlier } else { sum })
                    })
                }),
            );
            return;
        }
        let heads = Kept::<GROUP>::with_bits(&warp, marks);
        // Each mark ends the run before it. The first one's has begun in an earlier warp.
        let (mut sum, mut of_first) = (a.identity(), None);
        heads.for_each(|row, k, is_head, rank| {
            let before = if k == 0 { combined.before[row] } else { sum };
            sum = part.up_to(row, k, before);
            if is_head {
                put(own, rank.into(), a.total(before));
                of_first = if rank == 0 { Some(before) } else { of_first };
            }
        });
        let of_warps = earlier.exclusive(&t, join).map_or(a.identity(), |(_, sum)| sum);
        if let Some(of_first) = of_first {
            put(own, 0, a.total(a.combine(of_warps, of_first)));
        }
        // The first run of all ends at the second mark.
        let place = u64::from(places.get(of_grid).copied().unwrap_or(0)).wrapping_sub(1);
        for_each_of_lane(&warp, 0..heads.total, |number| {
            pass_on(own, number, totals, place.wrapping_add(number.into()));
        });
        if is_last(&t) {
            let last = if combined.any == 0 { a.combine(of_warps, combined.total) } else { combined.total };
            put(totals, place.wrapping_add(heads.total.into()), a.total(last));
        }
    }
}
