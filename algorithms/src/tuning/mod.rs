//! Tuned numbers: how algorithms are launched, by architecture, operation and size of elements.
//!
//! `table.csv` has them. `choice` picks a row. The bench `tunings` tries others and writes that file anew (benches/README.md).
//!
//! None of them decides on the order in which floats are added, because sums have the same bits on every device. So the blocks of a
//! reduction, the parts of a matrix, the threads of a row and the length from which a segment has a block are constants of their modules.

mod choice;
mod table;

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::Stream;
use crate::sort::few::kernels::FEW;
pub use choice::{Measured, best};
pub use table::{Row, Table};

/// What a number is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tuning {
    /// The rows of a filter's tile, rounded up to a power of two.
    FilterRows,
    /// The most blocks of a histogram: each adds all of its counters to global memory.
    HistogramBlocks,
    /// The least samples of a block of a histogram, for each counter.
    HistogramSamples,
    /// The most elements that one block sorts.
    SortAtOnce,
    /// The most blocks that count the digits of a sort.
    SortCount,
    /// The most elements that a sort moves in small tiles, so that more blocks have work; 0 where all tiles are equal.
    SortSmall,
    /// The most blocks that count the digits of the greatest elements.
    TopKBlocks,
}

impl Tuning {
    /// All, in the order of the table.
    pub const ALL: [Tuning; 7] = [
        Tuning::FilterRows,
        Tuning::HistogramBlocks,
        Tuning::HistogramSamples,
        Tuning::SortAtOnce,
        Tuning::SortCount,
        Tuning::SortSmall,
        Tuning::TopKBlocks,
    ];

    /// Its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Tuning::FilterRows => "filter_rows",
            Tuning::HistogramBlocks => "histogram_blocks",
            Tuning::HistogramSamples => "histogram_samples",
            Tuning::SortAtOnce => "sort_at_once",
            Tuning::SortCount => "sort_count",
            Tuning::SortSmall => "sort_small",
            Tuning::TopKBlocks => "top_k_blocks",
        }
    }

    /// The bytes of an element, and of the value with it or 0: all that have a number, in the order of the table.
    pub fn sizes(self) -> impl Iterator<Item = [usize; 2]> {
        let (elements, values): (&[usize], &[usize]) = match self {
            Tuning::FilterRows => (&[4, 8], &[0]),
            // Bytes have few counters.
            Tuning::HistogramSamples => (&[2, 4, 8], &[0]),
            Tuning::SortAtOnce | Tuning::SortSmall => (&[1, 2, 4, 8], &[0, 4, 8]),
            Tuning::HistogramBlocks | Tuning::SortCount | Tuning::TopKBlocks => (&[1, 2, 4, 8], &[0]),
        };
        elements.iter().flat_map(|element| values.iter().map(|value| [*element, *value]))
    }

    /// The numbers that the code can take.
    pub const fn limits(self) -> RangeInclusive<usize> {
        match self {
            Tuning::FilterRows => 1..=256,
            Tuning::HistogramBlocks | Tuning::SortCount | Tuning::TopKBlocks => 1..=1 << 20,
            Tuning::HistogramSamples => 1..=1 << 16,
            Tuning::SortAtOnce => 0..=FEW,
            Tuning::SortSmall => 0..=1 << 40,
        }
    }

    /// The place of a number among those of an architecture.
    #[inline]
    const fn place(self, [element, value]: [usize; 2]) -> usize {
        (self as usize * 4 + element.ilog2() as usize) * 3 + value / 4
    }
}

/// How many places there are.
const PLACES: usize = Tuning::ALL.len() * 4 * 3;

/// The numbers of an architecture by [`Tuning::place`].
type Numbers = [Option<usize>; PLACES];

/// The numbers of all architectures in the table, the oldest first.
static NUMBERS: LazyLock<Vec<((u32, u32), Numbers)>> = LazyLock::new(|| Table::of_this_crate().numbers());

thread_local! {
    /// The place and the number that a [`Trial`] of this thread tries.
    static TRIED: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// The number for elements `T` with values `V` on the stream's device: that of the newest architecture which is not newer than its
/// own, or else of the oldest, as on the CPU.
#[inline]
pub(crate) fn tuned<T, V>(stream: &Stream, tuning: Tuning) -> usize {
    const {
        assert!(
            matches!(size_of::<T>(), 1 | 2 | 4 | 8) && matches!(size_of::<V>(), 0 | 4 | 8),
            "the table has no such sizes"
        );
    }
    let place = tuning.place([size_of::<T>(), size_of::<V>()]);
    match TRIED.get() {
        Some((tried, number)) if tried == place => number,
        _ => number(&NUMBERS, stream.device().compute_capability(), place),
    }
}

fn number(numbers: &[((u32, u32), Numbers)], device: Option<(u32, u32)>, place: usize) -> usize {
    let is_not_newer = |(architecture, _): &&((u32, u32), Numbers)| Some(*architecture) <= device;
    let (_, numbers) = numbers.iter().rfind(is_not_newer).unwrap_or(&numbers[0]);
    numbers[place].expect("the oldest architecture has a row for each operation and size")
}

/// Has another number for the launches of this thread, until it is dropped: for the command that measures, and for tests.
#[derive(Debug)]
#[must_use]
pub struct Trial {
    before: Option<(usize, usize)>,
    of_this_thread: PhantomData<*const ()>,
}

impl Trial {
    /// Instead of the number for elements and values of these sizes.
    ///
    /// # Errors
    /// If no launch takes such a number, or it is beyond the limits.
    pub fn new(tuning: Tuning, sizes: [usize; 2], number: usize) -> Result<Self, String> {
        table::check(tuning, sizes, number)?;
        let before = TRIED.replace(Some((tuning.place(sizes), number)));
        Ok(Trial { before, of_this_thread: PhantomData })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        TRIED.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrogrid_host::Device;

    #[test]
    fn a_device_takes_the_newest_architecture_that_is_not_newer() {
        let all = [((7, 5), [Some(1); PLACES]), ((9, 0), [Some(2); PLACES]), ((10, 0), [Some(3); PLACES])];
        let devices = [None, Some((7, 0)), Some((7, 5)), Some((8, 9)), Some((9, 0)), Some((10, 3))];
        assert_eq!(devices.map(|device| number(&all, device, 7)), [1, 1, 1, 1, 2, 3]);
    }

    #[test]
    fn a_trial_is_of_its_thread_and_ends() -> Result<(), Box<dyn std::error::Error>> {
        let stream = Device::cpu().new_stream()?;
        let small = || tuned::<u32, ()>(&stream, Tuning::SortSmall);
        let before = small();
        let trial = Trial::new(Tuning::SortSmall, [4, 0], 77)?;
        {
            let _inner = Trial::new(Tuning::SortSmall, [4, 0], 78)?;
            assert_eq!(small(), 78);
        }
        assert_eq!((small(), tuned::<u32, u32>(&stream, Tuning::SortSmall)), (77, before));
        assert_eq!(std::thread::scope(|scope| scope.spawn(small).join().ok()), Some(before));
        drop(trial);
        assert_eq!(small(), before);
        assert!(Trial::new(Tuning::SortSmall, [4, 2], 77).is_err());
        Ok(())
    }

    #[test]
    fn each_number_has_a_place_of_its_own() {
        let places = Tuning::ALL.into_iter().flat_map(|it| it.sizes().map(move |sizes| it.place(sizes)));
        let places: Vec<usize> = places.collect();
        assert!(places.is_sorted_by(|a, b| a < b) && places.last() < Some(&PLACES), "{places:?}");
    }
}
