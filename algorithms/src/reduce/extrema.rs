//! Kernels for the least and the greatest number, and where it is.

/// The kernels. `greatest` says which is sought: the greatest number is the least in the opposite order.
#[ferrogrid::module]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::{Element, Key};
    use ferrogrid::device::fold::{ITEMS, THREADS, by_pairs, fold, fold_tiles};

    /// found[b] <- the number sought in the tiles of block `b`.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        T = [
            i8, i16, i32, i64, u8, u16, u32, u64, f32, f64,
            #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16
        ],
        native = super::super::native::extremum
    )]
    pub fn extremum<T: Element>(
        t: Thread<1>,
        greatest: bool,
        x: &[T],
        mut found: DisjointChunks<T, 1>,
        mut scratch: Shared<Scratch<<T as Element>::Key>>,
    ) {
        t.launch_dependents();
        let own = fold(&t, x, Key::LAST, |x| key_of(x, greatest), Ord::min);
        let key = t.block_reduce(&mut scratch, own, Ord::min);
        found.fill_with(&t, |_| of_key(key, greatest));
    }

    #[inline(always)]
    fn directed<T: Element>(x: T, greatest: bool) -> T {
        if greatest { x.mirrored() } else { x }
    }

    /// The place of a number in the order in which the one sought is first.
    #[inline(always)]
    pub fn key_of<T: Element>(x: T, greatest: bool) -> T::Key {
        directed(x, greatest).key()
    }

    /// The number with that key.
    #[inline(always)]
    pub fn of_key<T: Element>(key: T::Key, greatest: bool) -> T {
        directed(T::of_key(key), greatest)
    }

    /// An element and its index (CUB's `KeyValuePair`).
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Indexed<T> {
        /// The index of the element in the input.
        pub index: u64,
        /// The element.
        pub value: T,
    }

    /// The key of an element and the element's index. The lesser key is better, then the lower index.
    type Place<T> = (<T as Element>::Key, u64);

    /// The lesser key, then the lower index.
    #[inline(always)]
    pub fn better<K: Key>(a: (K, u64), b: (K, u64)) -> (K, u64) {
        if b < a { b } else { a }
    }

    /// found[b] <- the index of the number sought in the tiles of block `b`, and the number.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        T = [
            i8, i16, i32, i64, u8, u16, u32, u64, f32, f64,
            #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16
        ],
        native = super::super::native::extremum_position
    )]
    pub fn extremum_position<T: Element>(
        t: Thread<1>,
        greatest: bool,
        x: &[T],
        mut found: DisjointChunks<Indexed<T>, 1>,
        mut scratch: Shared<Scratch<Place<T>>>,
    ) {
        t.launch_dependents();
        let key = |x: T| key_of(x, greatest);
        let of_items = |first: usize, items: [T; ITEMS]| {
            let keys = items.map(key);
            let best = by_pairs(keys, Ord::min);
            let mut nearest = ITEMS;
            for k in 0..ITEMS {
                nearest = if keys[ITEMS - 1 - k] == best { ITEMS - 1 - k } else { nearest };
            }
            (best, (first + nearest * THREADS) as u64)
        };
        let own =
            fold_tiles(&t, x, (Key::LAST, u64::MAX), of_items, |index, x| (key(x), index as u64), better);
        let (key, index) = t.block_reduce(&mut scratch, own, better);
        found.fill_with(&t, |_| Indexed { index, value: of_key(key, greatest) });
    }

    /// found[0] <- the best of those that blocks have found.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        T = [
            i8, i16, i32, i64, u8, u16, u32, u64, f32, f64,
            #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16
        ],
        native = super::super::native::best_position
    )]
    pub fn best_position<T: Element>(
        t: Thread<1>,
        greatest: bool,
        x: &[Indexed<T>],
        mut found: DisjointChunks<Indexed<T>, 1>,
        mut scratch: Shared<Scratch<Place<T>>>,
    ) {
        t.launch_dependents();
        let place = |i: usize| (key_of(x[i].value, greatest), x[i].index);
        let own = t.block_stride(x.len()).map(place).fold((Key::LAST, u64::MAX), better);
        let (key, index) = t.block_reduce(&mut scratch, own, better);
        found.fill_with(&t, |_| Indexed { index, value: of_key(key, greatest) });
    }
}
