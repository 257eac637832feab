//! What is timed for each tuning.

use ferrogrid::bytemuck::Pod;
use ferrogrid::prelude::*;
use ferrogrid::{DeviceCopy, DeviceView, DeviceViewMut};
use ferrogrid_algorithms::tuning::Tuning;
use ferrogrid_algorithms::{self as algorithms, Border, Number, RadixSort};

use crate::Outcome;

/// Enqueues one call.
pub type Call<'a> = dyn FnMut() -> ferrogrid::Result<()> + 'a;

/// The most elements of any call.
const LARGEST: usize = 1 << 26;
/// As many bins as there are counters in shared memory: the most that a block adds to global memory.
const BINS: usize = 8192;
/// The columns and rows of a filter's weights.
const WEIGHTS: usize = 5;

/// Random input, and outputs of the same size.
pub struct Memory {
    x: DeviceBuffer<u64>,
    y: DeviceBuffer<u64>,
    values: DeviceBuffer<u64>,
    counts: DeviceBuffer<u32>,
}

/// Whether the numbers for elements and values of these sizes make a difference: other sorts of pairs have tiles of one size.
pub fn matters(tuning: Tuning, [element, value]: [usize; 2]) -> bool {
    tuning != Tuning::SortSmall || value == 0 || (element < 8 && value == 4)
}

impl Memory {
    /// For up to `largest` elements.
    pub fn new(stream: &Stream, largest: usize) -> Outcome<Self> {
        let len = largest.clamp(BINS, LARGEST);
        let mut random = fastrand::Rng::with_seed(18);
        let x: Vec<u64> = (0..len).map(|_| random.u64(..)).collect();
        Ok(Memory {
            x: stream.upload(&x)?,
            y: stream.zeros(len)?,
            values: stream.zeros(len)?,
            counts: stream.zeros(BINS)?,
        })
    }

    /// What a number for elements and values of these sizes is measured by.
    pub fn call<'a>(
        &'a mut self,
        stream: &'a Stream,
        (tuning, [element, value]): (Tuning, [usize; 2]),
        len: usize,
    ) -> Outcome<Box<Call<'a>>> {
        match (tuning, element) {
            (Tuning::FilterRows, 4) => self.filter::<f32>(stream, len),
            (Tuning::FilterRows, _) => self.filter::<f64>(stream, len),
            (_, 1) => self.of::<u8>(stream, tuning, value, len),
            (_, 2) => self.of::<u16>(stream, tuning, value, len),
            (_, 4) => self.of::<u32>(stream, tuning, value, len),
            _ => self.of::<u64>(stream, tuning, value, len),
        }
    }

    fn filter<'a, T: algorithms::Filtered + Pod>(
        &'a mut self,
        stream: &'a Stream,
        len: usize,
    ) -> Outcome<Box<Call<'a>>> {
        let (width, x) = (len.isqrt(), elements::<T>(&self.x, len)?);
        let image = x.into_2d(width, len / width)?;
        let weights = x.slice(..WEIGHTS * WEIGHTS)?.into_2d(WEIGHTS, WEIGHTS)?;
        let mut y = elements_mut::<T>(&mut self.y, len)?;
        Ok(Box::new(move || algorithms::correlate(stream, image, weights, Border::Clamp, y.reborrow())))
    }

    fn of<'a, T: Number + Pod>(
        &'a mut self,
        stream: &'a Stream,
        tuning: Tuning,
        value: usize,
        len: usize,
    ) -> Outcome<Box<Call<'a>>> {
        match (tuning, value) {
            (Tuning::HistogramBlocks, _) => self.histogram::<T>(stream, 256, len),
            (Tuning::HistogramSamples, _) => self.histogram::<T>(stream, BINS, len),
            (Tuning::TopKBlocks, _) => self.top_k::<T>(stream, len),
            (_, 0) => self.sort::<T>(stream, len),
            (_, 4) => self.sort_pairs::<T, u32>(stream, len),
            _ => self.sort_pairs::<T, u64>(stream, len),
        }
    }

    fn histogram<'a, T: Number + Pod>(
        &'a mut self,
        stream: &'a Stream,
        bins: usize,
        len: usize,
    ) -> Outcome<Box<Call<'a>>> {
        let (x, mut counts) = (elements::<T>(&self.x, len)?, self.counts.slice_mut(..bins)?);
        Ok(Box::new(move || algorithms::histogram_even(stream, x, .., counts.reborrow())))
    }

    fn top_k<'a, T: Number + Pod>(&'a mut self, stream: &'a Stream, len: usize) -> Outcome<Box<Call<'a>>> {
        let (x, mut indices) = (elements::<T>(&self.x, len)?, self.counts.slice_mut(..100)?);
        let mut values = elements_mut::<T>(&mut self.y, 100)?;
        Ok(Box::new(move || algorithms::top_k(stream, x, values.reborrow(), indices.reborrow())))
    }

    fn sort<'a, T: Number + Pod>(&'a mut self, stream: &'a Stream, len: usize) -> Outcome<Box<Call<'a>>> {
        let (x, mut y) = (elements::<T>(&self.x, len)?, elements_mut::<T>(&mut self.y, len)?);
        Ok(Box::new(move || algorithms::sort(stream, x, y.reborrow())))
    }

    fn sort_pairs<'a, T: Number + Pod, V: Pod + DeviceCopy>(
        &'a mut self,
        stream: &'a Stream,
        len: usize,
    ) -> Outcome<Box<Call<'a>>> {
        let (x, values) = (elements::<T>(&self.x, len)?, elements::<V>(&self.x, len)?);
        let (mut y, mut moved) =
            (elements_mut::<T>(&mut self.y, len)?, elements_mut::<V>(&mut self.values, len)?);
        Ok(Box::new(move || RadixSort::ascending().pairs(stream, x, values, y.reborrow(), moved.reborrow())))
    }
}

/// The first `len` elements of the memory.
fn elements<T: Pod + DeviceCopy>(memory: &DeviceBuffer<u64>, len: usize) -> Outcome<DeviceView<'_, T>> {
    Ok(memory.view().cast::<T>()?.slice(..len)?)
}

fn elements_mut<T: Pod + DeviceCopy>(
    memory: &mut DeviceBuffer<u64>,
    len: usize,
) -> Outcome<DeviceViewMut<'_, T>> {
    Ok(memory.view_mut().cast::<T>()?.slice(..len)?)
}
