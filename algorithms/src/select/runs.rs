//! Kernels for runs of equal elements, in one pass over memory by decoupled look-back.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::scan::{ROWS, Rows, scan_rows};

    use super::super::placing::placing::{
        GROUP, InShared, Kept, RUN, THREADS, WIDE_GROUP, WIDE_RUN, first, for_each_of_lane, is_last, load,
        of_warp, pass_on, place_of, put, put_count,
    };
    use crate::number::numbers::Element;
    use crate::scan::running::kernels::load as load_run;

    /// The warp's elements, from `first` on, that differ from the one before them.
    #[inline(always)]
    fn heads<T: Element, const G: usize>(
        t: &Thread<'_, 1>,
        (x, first): (&[T], usize),
        items: &Rows<T, G>,
    ) -> Kept<G> {
        let warp = t.warp();
        let lane = warp.lane();
        // Lane 31 has the element before each row.
        let mut last = x.get(first.wrapping_sub(1)).copied().unwrap_or(T::ZERO);
        let mut before = T::ZERO;
        Kept::of(&warp, |row, k| {
            if k == 0 {
                let own_last = items[row][G - 1];
                before = warp.shuffle(if lane == 31 { last } else { own_last }, (lane + 31) % 32);
                last = own_last;
            }
            let index = first + place_of::<G>(t, row) + k;
            let differs = !items[row][k].is_same(before);
            before = items[row][k];
            index < x.len() && (index == 0 || differs)
        })
    }

    /// Takes the first elements of the runs of a tile whose warps have runs of `R`.
    #[inline(always)]
    fn unique_in_tile<T: Element + AtomicLoadStore, const G: usize, const R: usize, const S: usize>(
        t: &Thread<'_, 1>,
        x: &[T],
        (y, results): (&[DeviceAtomic<T>], &[DeviceAtomic<u64>]),
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>, S>,
        tile: &[InShared<T>],
    ) {
        let own = of_warp::<_, R>(t, tile);
        let items = load::<T, G, R>(t, x, T::ZERO);
        let heads = heads::<T, G>(t, (x, first::<R>(t)), &items);
        let total = u64::from(heads.total);
        let earlier = order.publish_of_warps(t, scratch, total, |a, b| a + b);
        heads.for_each(|row, k, is_head, rank| {
            if is_head {
                put(own, rank.into(), items[row][k]);
            }
        });
        let start = earlier.exclusive(t, |a, b| a + b).unwrap_or(0);
        for_each_of_lane(&t.warp(), 0..heads.total, |number| {
            pass_on(own, number, y, start + u64::from(number))
        });
        put_count(t, results, start + total);
    }

    /// y[k] <- the first element of the k-th run of equal elements of x, for each k below results[0], the number of runs.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 4,
        wide,
        T = [u8, u16, u32, f32, #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16],
        native = super::super::native::unique
    )]
    pub fn unique<T: Element + AtomicLoadStore>(
        t: Thread<1>,
        x: &[T],
        y: &[DeviceAtomic<T>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 8192]>,
    ) {
        let tile = t.publish(tile);
        unique_in_tile::<T, GROUP, RUN, _>(&t, x, (y, results), order, scratch, &*tile);
    }

    /// As [`unique`], of elements of 8 bytes.
    #[inline(always)]
    #[kernel(block = THREADS, min_blocks = 4, wide, T = [u64, f64], native = super::super::native::unique)]
    pub fn unique_wide<T: Element + AtomicLoadStore>(
        t: Thread<1>,
        x: &[T],
        y: &[DeviceAtomic<T>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 4096]>,
    ) {
        let tile = t.publish(tile);
        unique_in_tile::<T, WIDE_GROUP, WIDE_RUN, _>(&t, x, (y, results), order, scratch, &*tile);
    }

    /// The number of runs of some elements of a portion, and where the last of them begins, counted from the portion's beginning. With
    /// 64 bits each, blocks would look back for twice as long.
    type Runs = (u32, u32);

    /// Those of neighbours.
    #[inline(always)]
    fn joined(a: Runs, b: Runs) -> Runs {
        (a.0 + b.0, if b.0 == 0 { a.1 } else { b.1 })
    }

    /// The elements of a launch: less than 2^32 of all.
    struct Portion<'a, T> {
        x: &'a [T],
        /// The index of the first element.
        begin: u64,
        /// How many runs begin before it, and where the last of them does; nothing if it is the first of all.
        before: &'a [u64],
        /// The same of the next portion, if there is one.
        next: &'a [DeviceAtomic<u64>],
    }

    impl<T> Portion<'_, T> {
        /// How many runs of all begin before some elements, and where the last of them does.
        #[inline(always)]
        fn of_all(&self, (runs, last): Runs) -> (u64, u64) {
            let (runs_before, last_before) = match self.before {
                [runs, last, ..] => (*runs, *last),
                _ => (0, 0),
            };
            (
                runs_before + u64::from(runs),
                if runs == 0 { last_before } else { self.begin + u64::from(last) },
            )
        }
    }

    /// The length of a run that begins and ends there.
    #[inline(always)]
    pub fn length(begin: u64, end: u64) -> u32 {
        assert!(end - begin <= u32::MAX.into(), "a run has 2^32 elements or more: its length has 32 bits");
        (end - begin) as u32
    }

    /// Encodes a tile whose warps have runs of `R`.
    #[inline(always)]
    fn encode_tile<T: Element + AtomicLoadStore, const G: usize, const R: usize, const S: usize>(
        t: &Thread<'_, 1>,
        portion: Portion<T>,
        (values, lengths): (&[DeviceAtomic<T>], &[DeviceAtomic<u32>]),
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<Runs>,
        scratch: Shared<Scratch<Runs>, S>,
        (tile, begins): (&[InShared<T>], &[InShared<u16>]),
    ) {
        let first = first::<R>(t);
        let of_x = portion.begin as usize + first;
        let (own, begins) = (of_warp::<_, R>(t, tile), of_warp::<_, R>(t, begins));
        let items = load_run::<T, G, R, ROWS>(t, portion.x, of_x, T::ZERO);
        let heads = heads::<T, G>(t, (portion.x, of_x), &items);
        let (first, last) = (first as u32, t.warp().reduce_max(heads.last(t)));
        let own_runs = (heads.total, first + last);
        let earlier = order.publish_of_warps(t, scratch, own_runs, joined);
        heads.for_each(|row, k, is_head, rank| {
            if is_head {
                put(own, rank.into(), items[row][k]);
                put(begins, rank.into(), (place_of::<G>(t, row) + k) as u16);
            }
        });
        let before = earlier.exclusive(t, joined).unwrap_or((0, 0));
        let (start, last) = portion.of_all(before);
        let begin_of = |number: u32| {
            first + begins.get(number as usize).map_or(0, |begin| u32::from(begin.load(Relaxed)))
        };
        for_each_of_lane(&t.warp(), 0..heads.total, |number| {
            let place = start + u64::from(number);
            pass_on(own, number, values, place);
            // It ends the run before it.
            if number > 0 {
                put(lengths, place - 1, begin_of(number) - begin_of(number - 1));
            } else if place > 0 {
                put(lengths, place - 1, length(last, portion.begin + u64::from(begin_of(0))));
            }
        });
        let (runs, last) = portion.of_all(joined(before, own_runs));
        if is_last(t) {
            if let [next_runs, next_last, ..] = portion.next {
                next_runs.store(runs, Relaxed);
                next_last.store(last, Relaxed);
            } else if runs > 0 {
                put(lengths, runs - 1, length(last, portion.x.len() as u64));
            }
        }
        put_count(t, results, runs);
    }

    /// As `unique`; and lengths[k] <- the number of elements of the k-th run. A launch encodes a [`Portion`].
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 4,
        wide,
        T = [u8, u16, u32, f32, #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16],
        native = super::super::native::encode
    )]
    pub fn encode<T: Element + AtomicLoadStore>(
        t: Thread<1>,
        x: &[T],
        begin: u64,
        before: &[u64],
        next: &[DeviceAtomic<u64>],
        values: &[DeviceAtomic<T>],
        lengths: &[DeviceAtomic<u32>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<(u32, u32)>,
        scratch: Shared<Scratch<(u32, u32)>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 8192]>,
        begins: Shared<[DeviceAtomic<u16, atomic::Block>; 8192]>,
    ) {
        let (tile, begins) = t.publish((tile, begins));
        encode_tile::<T, GROUP, RUN, _>(
            &t,
            Portion { x, begin, before, next },
            (values, lengths),
            results,
            order,
            scratch,
            (&*tile, &*begins),
        );
    }

    /// As [`encode`], of elements of 8 bytes.
    #[inline(always)]
    #[kernel(block = THREADS, min_blocks = 4, wide, T = [u64, f64], native = super::super::native::encode)]
    pub fn encode_wide<T: Element + AtomicLoadStore>(
        t: Thread<1>,
        x: &[T],
        begin: u64,
        before: &[u64],
        next: &[DeviceAtomic<u64>],
        values: &[DeviceAtomic<T>],
        lengths: &[DeviceAtomic<u32>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<(u32, u32)>,
        scratch: Shared<Scratch<(u32, u32)>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 4096]>,
        begins: Shared<[DeviceAtomic<u16, atomic::Block>; 4096]>,
    ) {
        let (tile, begins) = t.publish((tile, begins));
        encode_tile::<T, WIDE_GROUP, WIDE_RUN, _>(
            &t,
            Portion { x, begin, before, next },
            (values, lengths),
            results,
            order,
            scratch,
            (&*tile, &*begins),
        );
    }

    /// ends[i] <- lengths[0] + ... + lengths[i], and results[0] <- the last of them.
    #[kernel(block = THREADS, wide, same_shape(lengths, ends), native = super::super::native::run_ends)]
    pub fn run_ends(
        t: Thread<1>,
        lengths: &[u32],
        mut ends: DisjointWarps<u64, WIDE_RUN, 32, WIDE_GROUP>,
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
    ) {
        let lengths = load_run::<u32, WIDE_GROUP, WIDE_RUN, ROWS>(&t, lengths, ends.first(&t), 0);
        let rows = lengths.map(|group| group.map(u64::from));
        let sums = scan_rows(&t.warp(), rows, 0, |a, b| a + b);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, |a, b| a + b).unwrap_or(0);
        ends.fill_grouped(&t, sums.inclusive(start, |a, b| a + b));
        if is_last(&t) {
            results[0].store(start + sums.total, Relaxed);
        }
    }

    /// How many of the ends `from..to` are at most `index`, and `from`.
    #[inline(always)]
    fn run_of(ends: &[u64], mut from: usize, mut to: usize, index: usize) -> usize {
        while from < to {
            let middle = from + (to - from) / 2;
            if ends[middle] <= index as u64 {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// y[i] <- the value of the first run that ends after i, if there is one.
    #[kernel(block = THREADS, wide, same_shape(values, ends), T = [u8, u16, u32, u64])]
    pub fn decode<T: DeviceCopy>(t: Thread<1>, values: &[T], ends: &[u64], mut y: DisjointWarps<T, RUN>) {
        let first = y.first(&t);
        let from = run_of(ends, 0, ends.len(), first);
        let to = run_of(ends, from, ends.len(), first + RUN);
        for (index, y) in y.iter_mut(&t) {
            if let Some(value) = values.get(run_of(ends, from, to, index)) {
                *y = *value;
            }
        }
    }
}
