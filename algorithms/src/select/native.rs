//! The native bodies of selections and runs, by the names of the kernels.

use ferrogrid_device::DeviceCopy;
use ferrogrid_device::atomic::{AtomicLoadStore, DeviceAtomic, Ordering::Relaxed};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::placing::placing::put;
use super::runs::kernels::length;
use crate::native::{in_parallel, piece};
use crate::number::numbers::Element;

pub(super) fn select<T: DeviceCopy + AtomicLoadStore + Default>(
    _: [u32; 1],
    x: &[T],
    flags: &[u8],
    y: &[DeviceAtomic<T>],
    results: &[DeviceAtomic<u64>],
) {
    let put_kept = |index: usize, place, is_kept| {
        if is_kept {
            put(y, place, x[index]);
        }
    };
    results[0].store(for_each(x.len(), |index| flags[index] != 0, put_kept), Relaxed);
}

pub(super) fn partition<T: DeviceCopy + AtomicLoadStore + Default>(
    _: [u32; 1],
    x: &[T],
    flags: &[u8],
    y: &[DeviceAtomic<T>],
    results: &[u64],
) {
    let all = results[0];
    let put_in_part = |index: usize, before, is_kept| {
        put(y, if is_kept { before } else { all + (index as u64 - before) }, x[index]);
    };
    for_each(x.len(), |index| flags[index] != 0, put_in_part);
}

pub(super) fn unique<T: Element + AtomicLoadStore>(
    _: [u32; 1],
    x: &[T],
    y: &[DeviceAtomic<T>],
    results: &[DeviceAtomic<u64>],
) {
    let put_head = |index: usize, place, is_head| {
        if is_head {
            put(y, place, x[index]);
        }
    };
    results[0].store(for_each(x.len(), |index| is_head(x, index), put_head), Relaxed);
}

/// Encodes all portions with the first one: it counts in 64 bits.
#[expect(clippy::too_many_arguments, reason = "they are those of the kernel")]
pub(super) fn encode<T: Element + AtomicLoadStore>(
    _: [u32; 1],
    x: &[T],
    begin: u64,
    _before: &[u64],
    _next: &[DeviceAtomic<u64>],
    values: &[DeviceAtomic<T>],
    lengths: &[DeviceAtomic<u32>],
    results: &[DeviceAtomic<u64>],
) {
    if begin > 0 {
        return;
    }
    let put_run = |index: usize, place, begins| {
        if begins {
            put(values, place, x[index]);
            let end = (index + 1..x.len()).find(|index| is_head(x, *index)).unwrap_or(x.len());
            put(lengths, place, length(index as u64, end as u64));
        }
    };
    results[0].store(for_each(x.len(), |index| is_head(x, index), put_run), Relaxed);
}

pub(super) fn run_ends(_: [u32; 1], lengths: &[u32], ends: &mut [u64], results: &[DeviceAtomic<u64>]) {
    let len = piece(lengths.len());
    let sum_of = |lengths: &[u32]| lengths.iter().map(|length| u64::from(*length)).sum();
    let sums: Vec<u64> = lengths.par_chunks(len).map(sum_of).collect();
    let (starts, total) = starts_of(sums);
    lengths.par_chunks(len).zip(ends.par_chunks_mut(len)).zip(starts).for_each(
        |((lengths, ends), mut end)| {
            for (length, place) in lengths.iter().zip(ends) {
                end += u64::from(*length);
                *place = end;
            }
        },
    );
    results[0].store(total, Relaxed);
}

fn is_head<T: Element>(x: &[T], index: usize) -> bool {
    index == 0 || !x[index].is_same(x[index - 1])
}

/// Calls `visit` with each index below `len`, how many before it are kept, and whether it is kept itself. Returns how many are.
#[inline(always)]
fn for_each(
    len: usize,
    is_kept: impl Fn(usize) -> bool + Sync,
    visit: impl Fn(usize, u64, bool) + Sync,
) -> u64 {
    let piece = piece(len);
    let (pieces, own) = (len.div_ceil(piece), |k: usize| k * piece..len.min((k + 1) * piece));
    let counts = in_parallel(pieces, &|k| own(k).filter(|index| is_kept(*index)).count() as u64);
    let (starts, total) = starts_of(counts);
    in_parallel(pieces, &|k| {
        let mut place = starts[k];
        for index in own(k) {
            let kept = is_kept(index);
            visit(index, place, kept);
            place += u64::from(kept);
        }
    });
    total
}

/// What is before each piece, and the sum of all.
fn starts_of(counts: Vec<u64>) -> (Vec<u64>, u64) {
    let mut total = 0;
    let starts = counts.into_iter().map(|count| {
        total += count;
        total - count
    });
    (starts.collect(), total)
}
