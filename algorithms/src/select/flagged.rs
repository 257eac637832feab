//! Kernels for elements with flags, in one pass over memory by decoupled look-back.

/// The kernels. Only the size of an element matters.
#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    use super::super::placing::placing::{
        HALF, ROWS, THREADS, count, first, lanes_before, load, part, put, put_count, put_kept,
    };
    use ferrogrid::device::fold;

    /// The flags of the warp's elements that are not 0, a bit each.
    #[inline(always)]
    fn flagged(t: &Thread<'_, 1>, flags: &[u8]) -> [u32; ROWS] {
        let (warp, flags) = (t.warp(), load(t, flags, 0));
        let mut kept = [0; ROWS];
        for row in 0..ROWS {
            kept[row] = warp.ballot(flags[row] != 0);
        }
        kept
    }

    /// y[k] <- the k-th flagged element of x, for each k below results[0], the number of flagged elements.
    #[kernel(block = THREADS, same_shape(x, flags), T = [u8, u16, u32, u64])]
    pub fn select<T: DeviceCopy + atomic::AtomicLoadStore + Default>(
        t: Thread<1>,
        x: &[T],
        flags: &[u8],
        y: &[DeviceAtomic<T>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u32>,
        scratch: Shared<Scratch<u32>>,
    ) {
        let warp = t.warp();
        let (kept, items) = (flagged(&t, flags), load(&t, x, T::default()));
        let start = order.exclusive_of_warps(&t, scratch, count(&kept), |a, b| a + b);
        let end = put_kept(&warp, y, &kept, &items, start.unwrap_or(0));
        put_count(&t, results, end);
    }

    /// y <- the flagged elements of x, of which there are results[0], and then the others.
    #[kernel(block = THREADS, same_shape(x, flags, y), T = [u8, u16, u32, u64])]
    pub fn partition<T: DeviceCopy + atomic::AtomicLoadStore + Default>(
        t: Thread<1>,
        x: &[T],
        flags: &[u8],
        y: &[DeviceAtomic<T>],
        results: &[u64],
        order: BlockOrder<u32>,
        scratch: Shared<Scratch<u32>>,
    ) {
        let (warp, all) = (t.warp(), results[0] as u32);
        let (kept, items) = (flagged(&t, flags), load(&t, x, T::default()));
        let start = order.exclusive_of_warps(&t, scratch, count(&kept), |a, b| a + b);
        let put_half = |first_row: usize, mut place: u32| {
            let (kept, items): ([u32; HALF], [T; HALF]) = (part(&kept, first_row), part(&items, first_row));
            for row in 0..HALF {
                let index = first(&t) as u32 + (first_row + row) as u32 * 32 + warp.lane();
                let before = place + (kept[row] & lanes_before(&warp)).count_ones();
                let is_kept = kept[row] >> warp.lane() & 1 != 0;
                put(y, if is_kept { before } else { all + (index - before) }, items[row]);
                place += kept[row].count_ones();
            }
            place
        };
        put_half(HALF, put_half(0, start.unwrap_or(0)));
    }

    /// counts[b] <- the number of flags in the tiles of block `b` that are not 0.
    #[kernel(block = fold::THREADS, dependent_launch)]
    pub fn flags(
        t: Thread<1>,
        flags: &[u8],
        mut counts: DisjointChunks<u64, 1>,
        mut scratch: Shared<Scratch<u64>>,
    ) {
        t.launch_dependents();
        let own = fold::fold(&t, flags, 0, |flag| u64::from(flag != 0), |a, b| a + b);
        let count = t.block_reduce(&mut scratch, own, |a, b| a + b);
        counts.fill_with(&t, |_| count);
    }
}
