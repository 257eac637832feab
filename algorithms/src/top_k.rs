//! The greatest elements, by radix selection: digit by digit it finds the last of them, and then sorts those alone.

use crate::reduce::Number;
use crate::sort::{RadixSort, Sorted};
use crate::tuning::{Tuning, tuned};
use crate::{DeviceInput, DeviceOutput, DeviceView, Error, Grid, Result, Stream};
use kernels::{DIGIT, DIGITS, TILE, collect_greatest, count_candidates};

/// The kernels. `state` has the digits of the last of the greatest elements that are known, and how many elements with these
/// digits are among the greatest.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::scan::{ROWS, Rows, THREADS, each_row, scan_rows};

    use crate::sort::digits::kernels::{Bits, Flips};

    /// The bits of a digit.
    pub const DIGIT: u32 = 8;
    /// The values of a digit: as many as a block has threads.
    pub const DIGITS: usize = 256;
    /// The elements of a block that collects.
    pub const TILE: usize = THREADS * ROWS;

    #[inline(always)]
    fn ordered<K: Bits>(key: K, flips: Flips<K>) -> u64 {
        (key ^ (key.sign() & flips.negative) ^ flips.all).widen()
    }

    /// counts[digit] += how many elements with the known digits have that one next, from bit `shift` on
    #[kernel(block = THREADS, K = [u8, u16, u32, u64])]
    pub fn count_candidates<K: Bits>(
        t: Thread<1>,
        flips: Flips<K>,
        shift: u32,
        state: &[u64],
        x: &[K],
        counts: &[DeviceAtomic<u32>],
        mut own: Shared<[DeviceAtomic<u32, atomic::Block>; DIGITS]>,
    ) {
        own.fill_with(&t, |_| DeviceAtomic::new(0));
        let own = t.publish(own);
        let known = state[0];
        for i in t.grid_stride(x.len()) {
            let digits = ordered(x[i.get()], flips) >> shift;
            if digits >> DIGIT == known {
                own[digits as usize % DIGITS].fetch_add(1, Relaxed);
            }
        }
        t.sync_threads();
        let rank = t.thread_rank() as usize % DIGITS;
        let count = own[rank].load(Relaxed);
        if count > 0
            && let Some(all) = counts.get(rank)
        {
            all.fetch_add(count, Relaxed);
        }
    }

    /// Adds the digit with which the last of the greatest elements goes on to `state`, and clears `counts` for the next one. One block.
    #[kernel(block = THREADS)]
    pub fn choose_digit(
        t: Thread<1>,
        counts: &[DeviceAtomic<u32>],
        state: &[DeviceAtomic<u64>],
        mut scratch: Shared<Scratch<u32>>,
    ) {
        let rank = t.thread_rank() as usize % DIGITS;
        let count = counts[rank].load(Relaxed);
        counts[rank].store(0, Relaxed);
        let (known, wanted) = (state[0].load(Relaxed), state[1].load(Relaxed));
        let before = t.block_exclusive_scan(&mut scratch, count, 0, |a, b| a + b).widen();
        // So of one thread alone; all have read, since the scan has barriers.
        if before < wanted && wanted <= before + count.widen() {
            state[0].store(known << DIGIT | rank as u64, Relaxed);
            state[1].store(wanted - before, Relaxed);
        }
    }

    /// keys <- the greatest elements, and places <- where they are, in the order of their places
    #[kernel(block = THREADS, K = [u8, u16, u32, u64])]
    pub fn collect_greatest<K: Bits>(
        t: Thread<1>,
        flips: Flips<K>,
        state: &[u64],
        x: &[K],
        keys: &[DeviceAtomic<K>],
        places: &[DeviceAtomic<u32>],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
    ) {
        /// One of the elements that are greater than the last one. Those that equal it are counted below.
        const GREATER: u64 = 1 << 32;
        let (last, equals) = (state[0], state[1]);
        let first = t.block_idx()[0] as usize * TILE
            + t.thread_rank() as usize / 32 * (32 * ROWS)
            + t.thread_rank() as usize % 32;
        let kinds: Rows<_, 1> = each_row(|row| {
            let key = x.get(first + 32 * row).map(|key| ordered(*key, flips));
            [key.map_or(0, |key| if key < last { GREATER } else { (key == last).into() })]
        });
        let sums = scan_rows(&t.warp(), kinds, 0, |a, b| a + b);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, |a, b| a + b).unwrap_or(0);
        let before = sums.exclusive(start, |a, b| a + b);
        let _: Rows<_, 1> = each_row(|row| {
            let ([kind], [before]) = (kinds[row], before[row]);
            let equals_before = (before % GREATER).min(equals);
            if kind == GREATER || kind == 1 && equals_before < equals {
                let (index, place) = (first + 32 * row, (before / GREATER + equals_before) as usize);
                if let (Some(key), Some(to), Some(at)) = (x.get(index), keys.get(place), places.get(place)) {
                    to.store(*key, Relaxed);
                    at.store(index as u32, Relaxed);
                }
            }
            [(); 1]
        });
    }
}

/// A number whose greatest can be found.
pub trait Ranked: Sorted<Unsigned: count_candidates::Instance + collect_greatest::Instance> {}

impl<T: Sorted<Unsigned: count_candidates::Instance + collect_greatest::Instance>> Ranked for T {}

/// Writes the greatest elements of `x`, as many as `values` has, to `values`, and where they are to `indices`, the greatest first;
/// of equal ones the first (CUB's `DeviceTopK`, PyTorch's `topk`). The order is that of [`sort`](crate::sort()): NaN is the greatest.
///
/// It reads `x` once for each 8 bits of an element and once more, and sorts only what it has found.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[3, 9, 4, 9])?;
/// let (mut values, mut indices) = (stream.zeros(3)?, stream.zeros(3)?);
/// algorithms::top_k(&stream, &x, &mut values, &mut indices)?;
/// assert_eq!(stream.download(&values)?, [9, 9, 4]);
/// assert_eq!(stream.download(&indices)?, [1, 3, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`RadixSort::pairs`], for `x`, of fewer than 2^32 elements. `Error::OutOfRange` if `x` has fewer elements than `values`;
/// `Error::LengthMismatch` if `values` and `indices` differ in length.
pub fn top_k<'a, 'b, 'c, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    values: impl DeviceOutput<'b, T>,
    indices: impl DeviceOutput<'c, u32>,
) -> Result<()> {
    let (x, values, indices) = (x.into_input(), values.into_output(), indices.into_output());
    let k = values.len();
    if k > x.len() {
        return Err(Error::OutOfRange { start: 0, end: k, length: x.len() });
    }
    if indices.len() != k {
        return Err(Error::LengthMismatch {
            operation: "top_k",
            source_length: k,
            target_length: indices.len(),
        });
    }
    if k == 0 {
        return Ok(());
    }
    let (mut keys, mut places) = (stream.temporary::<T>(k)?, stream.temporary::<u32>(k)?);
    let (x, keys_out): (DeviceView<T::Unsigned>, _) = (x.cast()?, keys.view_mut().cast()?);
    let flips = RadixSort::descending().flips::<T>();
    let (mut counts, mut state) = (stream.temporary::<u32>(DIGITS)?, stream.temporary::<u64>(2)?);
    stream.fill_into(0, counts.view_mut())?;
    stream.fill_into(0, state.view_mut().slice(..1)?)?;
    stream.fill_into(k as u64, state.view_mut().slice(1..)?)?;
    let tiles = x.len().div_ceil(TILE);
    let blocks = tiles.min(tuned::<T, ()>(stream, Tuning::TopKBlocks));
    for shift in (0..8 * size_of::<T>() as u32).step_by(DIGIT as usize).rev() {
        let (grid, all) = (Grid::blocks(blocks), counts.view_mut().into_atomic());
        count_candidates::<T::Unsigned>(stream, grid, flips, shift, state.view(), x, all)?;
        kernels::choose_digit(
            stream,
            Grid::blocks(1),
            counts.view_mut().into_atomic(),
            state.view_mut().into_atomic(),
        )?;
    }
    collect_greatest::<T::Unsigned>(
        stream,
        Grid::blocks(tiles),
        flips,
        state.view(),
        x,
        keys_out.into_atomic(),
        places.view_mut().into_atomic(),
    )?;
    RadixSort::descending().pairs(stream, keys.view(), places.view(), values, indices)
}
