//! The order of a radix sort: ascending or descending, by all or some bits of the keys.

use core::ops::Range;

/// The order of a sort, and the bits of the keys that it compares: [`Ascending`], [`Descending`], or one of
/// them [`of_bits`](Ascending::of_bits). It is a type because threads that disagreed about it would wait at
/// different barriers.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use sort::{RadixKey, RadixOrder};
///
/// /// The first of the keys of a block, in any order.
/// fn first<K: RadixKey, O: RadixOrder, const ID: usize>(
///     t: &Thread<1>, scratch: &mut Shared<SortScratch<K, 32, 1>, ID>, key: K, order: O,
/// ) -> Option<K> {
///     let [key] = t.block_radix_sort(scratch, [key], order);
///     (t.thread_rank() == 0).then_some(key)
/// }
///
/// #[kernel(block = 32)]
/// pub fn least_and_greatest(
///     t: Thread<1>, x: &[i64], y: &[DeviceAtomic<i64>], mut scratch: Shared<SortScratch<i64, 32, 1>>,
/// ) {
///     let mine = x[t.index().get()];
///     let least = first(&t, &mut scratch, mine, sort::Ascending);
///     let greatest = first(&t, &mut scratch, mine, sort::Descending);
///     for (y, found) in y.iter().zip([least, greatest]) {
///         found.map(|found| y.store(found, atomic::Ordering::Relaxed));
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..32).map(|i| i * 5 % 32 - 9).collect::<Vec<i64>>())?;
/// let mut y = stream.zeros(2)?;
/// kernels::least_and_greatest(&stream, Grid::cover(32), &x, y.as_atomic())?;
/// assert_eq!(stream.download(&y)?, [-9, 22]);
/// # Ok(()) }
/// ```
pub trait RadixOrder: Copy + sealed::Order {}

mod sealed {
    /// The order as constants.
    pub trait Order {
        const DESCENDING: bool;
        /// The first bit and the one after the last; `None` for all bits of the key.
        const BITS: Option<(u32, u32)>;
    }
}

/// The least key first; equal keys keep their order (CUB's `Sort`).
#[derive(Clone, Copy, Debug)]
pub struct Ascending;

/// The greatest key first; equal keys keep their order (CUB's `SortDescending`).
#[derive(Clone, Copy, Debug)]
pub struct Descending;

/// By bits `BEGIN` to `END - 1` of the keys only; see [`Ascending::of_bits`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use sort::{Ascending, OfBits};
///
/// /// By the exponents of numbers that are not negative.
/// const BY_MAGNITUDE: OfBits<Ascending, 23, 31> = Ascending.of_bits();
///
/// /// Brings a block's numbers into the order of their magnitudes; those of one magnitude stay in order.
/// #[kernel(block = 32)]
/// pub fn by_magnitude(t: Thread<1>, mut x: DisjointSlice<f32>, mut scratch: Shared<SortScratch<f32, 32, 1>>) {
///     let mine = x.get_mut(t.index()).map_or(0.0, |x| *x);
///     let [sorted] = t.block_radix_sort(&mut scratch, [mine], BY_MAGNITUDE);
///     if let Some(x) = x.get_mut(t.index()) {
///         *x = sorted;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&(1..=32).rev().map(|x| x as f32).collect::<Vec<_>>())?;
/// kernels::by_magnitude(&stream, Grid::cover(32), &mut x)?;
/// assert_eq!(stream.download(&x)?[..8], [1.0, 3.0, 2.0, 7.0, 6.0, 5.0, 4.0, 15.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OfBits<O, const BEGIN: u32, const END: u32>(O);

macro_rules! order {
    ($name:ident, $descending:literal) => {
        impl $name {
            /// By bits `BEGIN` to `END - 1` of the keys only, where bit 0 is the lowest (CUB's `begin_bit`
            /// and `end_bit`); each four bits take one pass. Bits of signed and floating-point keys are those
            /// of the key's position in the order: all 0 for the least, all 1 for the greatest. It is a
            /// compile error if `END` is beyond the key's bits or not above `BEGIN`. [`OfBits`] has an
            /// example.
            #[inline(always)]
            pub const fn of_bits<const BEGIN: u32, const END: u32>(self) -> OfBits<Self, BEGIN, END> {
                OfBits(self)
            }
        }

        impl RadixOrder for $name {}
        impl sealed::Order for $name {
            const DESCENDING: bool = $descending;
            const BITS: Option<(u32, u32)> = None;
        }
    };
}

order!(Ascending, false);
order!(Descending, true);

impl<O: RadixOrder, const BEGIN: u32, const END: u32> RadixOrder for OfBits<O, BEGIN, END> {}
impl<O: RadixOrder, const BEGIN: u32, const END: u32> sealed::Order for OfBits<O, BEGIN, END> {
    const DESCENDING: bool = O::DESCENDING;
    const BITS: Option<(u32, u32)> = Some((BEGIN, END));
}

/// The bits that an order compares, of a key with `all` bits.
pub(super) const fn bits<O: RadixOrder>(all: u32) -> Range<u32> {
    match O::BITS {
        None => 0..all,
        Some((begin, end)) => {
            assert!(begin < end, "a sort by bits `BEGIN` to `END - 1` of its keys needs one at least");
            assert!(end <= all, "a sort looks at bits that its keys have");
            begin..end
        }
    }
}
