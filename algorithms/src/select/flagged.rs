//! Kernels for elements with flags, in one pass over memory by decoupled look-back.

/// The kernels. Only the size of an element matters.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::AtomicLoadStore;
    use ferrogrid::device::prelude::*;

    use super::super::placing::placing::{
        GROUP, InShared, Kept, RUN, THREADS, WIDE_GROUP, WIDE_RUN, first, for_each_of_lane, load, of_warp,
        pass_on, place_of, put, put_count,
    };

    /// The elements of the warp whose flags are not 0.
    #[inline(always)]
    fn flagged<const G: usize, const R: usize>(t: &Thread<'_, 1>, flags: &[u8]) -> Kept<G> {
        let flags = load::<u8, G, R>(t, flags, 0);
        Kept::of(&t.warp(), |row, k| flags[row][k] != 0)
    }

    /// Selects from a tile whose warps have runs of `R`.
    #[inline(always)]
    fn select_tile<
        T: DeviceCopy + AtomicLoadStore + Default,
        const G: usize,
        const R: usize,
        const S: usize,
    >(
        t: &Thread<'_, 1>,
        (x, flags): (&[T], &[u8]),
        (y, results): (&[DeviceAtomic<T>], &[DeviceAtomic<u64>]),
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>, S>,
        tile: &[InShared<T>],
    ) {
        let own = of_warp::<_, R>(t, tile);
        // In this order no load waits for another one.
        let (items, kept) = (load::<T, G, R>(t, x, T::default()), flagged::<G, R>(t, flags));
        let total = u64::from(kept.total);
        let earlier = order.publish_of_warps(t, scratch, total, |a, b| a + b);
        kept.for_each(|row, k, is_kept, rank| {
            if is_kept {
                put(own, rank.into(), items[row][k]);
            }
        });
        let start = earlier.exclusive(t, |a, b| a + b).unwrap_or(0);
        for_each_of_lane(&t.warp(), 0..kept.total, |number| {
            pass_on(own, number, y, start + u64::from(number))
        });
        put_count(t, results, start + total);
    }

    /// y[k] <- the k-th flagged element of x, for each k below results[0], the number of flagged elements.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 4,
        wide,
        same_shape(x, flags),
        T = [u8, u16, u32],
        native = super::super::native::select
    )]
    pub fn select<T: DeviceCopy + AtomicLoadStore + Default>(
        t: Thread<1>,
        x: &[T],
        flags: &[u8],
        y: &[DeviceAtomic<T>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 8192]>,
    ) {
        let tile = t.publish(tile);
        select_tile::<T, GROUP, RUN, _>(&t, (x, flags), (y, results), order, scratch, &*tile);
    }

    /// As [`select`], of elements of 8 bytes.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 4,
        wide,
        same_shape(x, flags),
        T = [u64],
        native = super::super::native::select
    )]
    pub fn select_wide<T: DeviceCopy + AtomicLoadStore + Default>(
        t: Thread<1>,
        x: &[T],
        flags: &[u8],
        y: &[DeviceAtomic<T>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 4096]>,
    ) {
        let tile = t.publish(tile);
        select_tile::<T, WIDE_GROUP, WIDE_RUN, _>(&t, (x, flags), (y, results), order, scratch, &*tile);
    }

    /// Parts a tile whose warps have runs of `R`.
    #[inline(always)]
    fn partition_tile<
        T: DeviceCopy + AtomicLoadStore + Default,
        const G: usize,
        const R: usize,
        const S: usize,
    >(
        t: &Thread<'_, 1>,
        (x, flags): (&[T], &[u8]),
        (y, results): (&[DeviceAtomic<T>], &[u64]),
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>, S>,
        tile: &[InShared<T>],
    ) {
        let own = of_warp::<_, R>(t, tile);
        // In this order no load waits for another one.
        let (items, kept) = (load::<T, G, R>(t, x, T::default()), flagged::<G, R>(t, flags));
        let total = u64::from(kept.total);
        let earlier = order.publish_of_warps(t, scratch, total, |a, b| a + b);
        // The others follow those that are kept. What is beyond the end has no flag.
        kept.for_each(|row, k, is_kept, rank| {
            let other = kept.total + (place_of::<G>(t, row) + k) as u32 - rank;
            put(own, if is_kept { rank } else { other }.into(), items[row][k]);
        });
        let start = earlier.exclusive(t, |a, b| a + b).unwrap_or(0);
        let others = results[0] + first::<R>(t) as u64 - start - total;
        let count = x.len().saturating_sub(first::<R>(t)).min(own.len()) as u32;
        for_each_of_lane(&t.warp(), 0..count, |number| {
            let before = if number < kept.total { start } else { others };
            pass_on(own, number, y, before + u64::from(number));
        });
    }

    /// y <- the flagged elements of x, of which there are results[0], and then the others.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 4,
        wide,
        same_shape(x, flags, y),
        T = [u8, u16, u32],
        native = super::super::native::partition
    )]
    pub fn partition<T: DeviceCopy + AtomicLoadStore + Default>(
        t: Thread<1>,
        x: &[T],
        flags: &[u8],
        y: &[DeviceAtomic<T>],
        results: &[u64],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 8192]>,
    ) {
        let tile = t.publish(tile);
        partition_tile::<T, GROUP, RUN, _>(&t, (x, flags), (y, results), order, scratch, &*tile);
    }

    /// As [`partition`], of elements of 8 bytes.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 4,
        wide,
        same_shape(x, flags, y),
        T = [u64],
        native = super::super::native::partition
    )]
    pub fn partition_wide<T: DeviceCopy + AtomicLoadStore + Default>(
        t: Thread<1>,
        x: &[T],
        flags: &[u8],
        y: &[DeviceAtomic<T>],
        results: &[u64],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 4096]>,
    ) {
        let tile = t.publish(tile);
        partition_tile::<T, WIDE_GROUP, WIDE_RUN, _>(&t, (x, flags), (y, results), order, scratch, &*tile);
    }
}
