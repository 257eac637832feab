//! The native bodies of the radix sort's kernels, by their names.

use ferrogrid_device::atomic::{DeviceAtomic, Ordering::Relaxed};

use super::digits::kernels::{Bits, DIGIT, DIGITS, Digit, Flips, PASSES, digit_of, ordered};
use crate::native::{in_pieces, piece};

pub(super) fn count_digits<K: Bits>(
    _: [u32; 1],
    flips: Flips<K>,
    first: u32,
    end: u32,
    x: &[K],
    counts: &[DeviceAtomic<u64>],
) {
    let passes = (counts.len() / DIGITS).min(PASSES);
    in_pieces(x, piece(x.len()), &|_, x| {
        let mut own = [[0_u64; DIGITS]; PASSES];
        for key in x {
            for (pass, own) in own[..passes].iter_mut().enumerate() {
                let begin = first + DIGIT * pass as u32;
                let mask = (1 << (end - begin).min(DIGIT)) - 1;
                own[digit_of(ordered(*key, flips), Digit { first: begin, mask })] += 1;
            }
        }
        for (sum, count) in counts.iter().zip(own.as_flattened()) {
            sum.fetch_add(*count, Relaxed);
        }
    });
}

pub(super) fn starts(_: [u32; 1], counts: &[u64], starts: &mut [u64]) {
    for (counts, starts) in counts.chunks(DIGITS).zip(starts.chunks_mut(DIGITS)) {
        let mut before = 0;
        for (count, start) in counts.iter().zip(starts) {
            *start = before;
            before += count;
        }
    }
}

pub(super) fn move_keys<K: Bits, const N: usize>(
    _: [u32; 1],
    flips: Flips<K>,
    digit: Digit,
    starts: &[u64],
    next: &[DeviceAtomic<u64>],
    x: &[K],
    out: &[DeviceAtomic<K>],
) {
    for_each_place(
        x,
        |key| digit_of(ordered(key, flips), digit),
        (starts, next),
        |_, key, place| {
            if let Some(out) = out.get(place) {
                out.store(key, Relaxed);
            }
        },
    );
}

#[expect(clippy::too_many_arguments, reason = "they are those of the kernel")]
pub(super) fn move_pairs<K: Bits, V: Bits, const N: usize>(
    _: [u32; 1],
    flips: Flips<K>,
    digit: Digit,
    starts: &[u64],
    next: &[DeviceAtomic<u64>],
    x: &[K],
    values: &[V],
    out: &[DeviceAtomic<K>],
    values_out: &[DeviceAtomic<V>],
) {
    for_each_place(
        x,
        |key| digit_of(ordered(key, flips), digit),
        (starts, next),
        |number, key, place| {
            if let (Some(out), Some(value_out)) = (out.get(place), values_out.get(place)) {
                out.store(key, Relaxed);
                value_out.store(values[number], Relaxed);
            }
        },
    );
}

pub(super) fn sort_few<K: Bits>(
    _: [u32; 1],
    flips: Flips<K>,
    first: u32,
    end: u32,
    x: &[K],
    y: &[DeviceAtomic<K>],
    origins: &[DeviceAtomic<u32>],
) {
    let bits = u64::MAX.unbounded_shr(u64::BITS - (end - first));
    let mut from: Vec<u32> = (0..x.len() as u32).collect();
    from.sort_by_key(|&from| ordered(x[from as usize], flips).widen().unbounded_shr(first) & bits);
    for (place, from) in from.into_iter().enumerate() {
        y[place].store(x[from as usize], Relaxed);
        if let Some(origin) = origins.get(place) {
            origin.store(from, Relaxed);
        }
    }
}

/// Calls `store` with the number of each key, the key, and its place in the order of digits, where digit `d` begins at
/// `starts[d]`. Equal digits stay in order. Writes to `next` where the digits of later keys begin.
#[inline(always)]
fn for_each_place<K: Bits>(
    x: &[K],
    digit: impl Fn(K) -> usize + Sync,
    (starts, next_starts): (&[u64], &[DeviceAtomic<u64>]),
    store: impl Fn(usize, K, usize) + Sync,
) {
    let len = piece(x.len());
    let count = |x: &[K]| {
        let mut counts = [0_u64; DIGITS];
        x.iter().for_each(|key| counts[digit(*key)] += 1);
        counts
    };
    let counts = in_pieces(x, len, &|_, x| count(x));
    let mut next: [u64; DIGITS] = std::array::from_fn(|digit| starts.get(digit).copied().unwrap_or(0));
    let mut places = |counts: [u64; DIGITS]| {
        let own = next;
        next.iter_mut().zip(counts).for_each(|(next, count)| *next += count);
        own
    };
    let places: Vec<[u64; DIGITS]> = counts.into_iter().map(&mut places).collect();
    next_starts.iter().zip(next).for_each(|(place, next)| place.store(next, Relaxed));
    in_pieces(x, len, &|number, x| {
        let mut places = places[number];
        for (k, key) in x.iter().enumerate() {
            let place = &mut places[digit(*key)];
            store(number * len + k, *key, *place as usize);
            *place += 1;
        }
    });
}
