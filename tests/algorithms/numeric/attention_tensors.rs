//! Tensors of attention in the layouts that it takes.

use ferrogrid::prelude::*;
use ferrogrid::{PitchedView, PitchedViewMut};

use super::attention_gradients::Number;
use crate::{Outcome, expect};

/// What a test computes, or why it cannot.
pub(super) type Found<T> = Result<T, Box<dyn std::error::Error>>;

/// Heads of queries and of keys, the rows of each, and the size of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) heads: [usize; 2],
    pub(super) rows: [usize; 2],
    pub(super) size: usize,
}

/// Where heads lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    /// Below each other.
    Below,
    /// Beside each other in rows of so many batches, with so many elements before and behind each row.
    Beside { batches: usize, apart: usize },
}

/// Those of a test with so many batches: all of them on a GPU, and else the one of that number, since each takes a second.
pub(super) fn layouts(device: &Device, batches: usize, number: usize) -> Vec<Layout> {
    let all = [Layout::Below, Layout::Beside { batches, apart: 24 }, Layout::Beside { batches, apart: 0 }];
    if device.is_cuda() { all.to_vec() } else { vec![all[number % all.len()]] }
}

/// A tensor in device memory, among NaN.
pub(super) struct Tensor<T> {
    buffer: DeviceBuffer<T>,
    width: usize,
    height: usize,
    /// The elements before and behind each row.
    apart: usize,
    /// Where its elements are, head by head.
    places: Vec<usize>,
}

impl<T: Number> Tensor<T> {
    /// One of queries, or of keys if `which` is 1, with NaN.
    pub(super) fn new(
        stream: &Stream,
        shape: Shape,
        which: usize,
        layout: Layout,
    ) -> ferrogrid::Result<Self> {
        let ([heads, rows], size) = ([shape.heads[which], shape.rows[which]], shape.size);
        let (beside, apart) = match layout {
            Layout::Below => (1, 0),
            Layout::Beside { batches, apart } => (heads / batches, apart),
        };
        let (width, height) = (beside * size, heads / beside * rows);
        let place = |at: usize| {
            let (head, row, i) = (at / size / rows, at / size % rows, at % size);
            (head / beside * rows + row) * (width + 2 * apart) + apart + head % beside * size + i
        };
        let places = (0..heads * rows * size).map(place).collect();
        let buffer = stream.fill(T::NAN, (width + 2 * apart) * height)?;
        Ok(Tensor { buffer, width, height, apart, places })
    }

    /// As `new`, with numbers head by head.
    pub(super) fn of(
        stream: &Stream,
        shape: Shape,
        which: usize,
        layout: Layout,
        numbers: &[T],
    ) -> ferrogrid::Result<Self> {
        let mut tensor = Tensor::new(stream, shape, which, layout)?;
        let mut all = vec![T::NAN; tensor.buffer.len()];
        tensor.places.iter().zip(numbers).for_each(|(place, number)| all[*place] = *number);
        tensor.buffer = stream.upload(&all)?;
        Ok(tensor)
    }

    pub(super) fn view(&self) -> ferrogrid::Result<PitchedView<'_, T>> {
        let pitch = self.width + 2 * self.apart;
        let all = self.buffer.view().pitched(pitch, self.height, pitch)?;
        all.slice(self.apart..self.apart + self.width, ..)
    }

    pub(super) fn view_mut(&mut self) -> ferrogrid::Result<PitchedViewMut<'_, T>> {
        let pitch = self.width + 2 * self.apart;
        let all = self.buffer.view_mut().pitched(pitch, self.height, pitch)?;
        all.slice(self.apart..self.apart + self.width, ..)
    }

    /// The numbers, head by head.
    pub(super) fn download(&self, stream: &Stream) -> ferrogrid::Result<Vec<T>> {
        let all = stream.download(&self.buffer)?;
        Ok(self.places.iter().map(|place| all[*place]).collect())
    }

    /// What is between its rows is still NaN.
    pub(super) fn check_between(&self, stream: &Stream) -> Outcome {
        let mut all = stream.download(&self.buffer)?;
        self.places.iter().for_each(|place| all[*place] = T::NAN);
        expect("what is between rows", all.iter().all(|it| it.to_f32().is_nan()), true)
    }
}
