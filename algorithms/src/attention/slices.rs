//! Attention of few queries, as when a model writes a text: blocks share the keys of a head.

use ferrogrid_host::__private::processors;
use ferrogrid_host::PitchedViewMut;

use super::kernels::steps::{self, Sizes};
use super::{Attended, Attention, Work};
use crate::{DeviceAtomicView, DeviceViewMut, Grid, Result, Stream};
use kernels::combine;

/// The steps that a slice of the keys has at least: adding up the results of slices takes as long as a few of them.
const STEPS_OF_SLICE: usize = 4;

impl<T: Attended> Work<'_, '_, T> {
    /// The same, if each head has one query: heads that share keys are queries of one head, since a query sees all keys. Not if the rows of queries
    /// or results have a pitch.
    pub(super) fn with_heads_as_queries(self, y: &PitchedViewMut<T>) -> Self {
        let Work { attention, sizes, q, .. } = self;
        let is_dense = |width: usize, height: usize, pitch: usize| height == 1 || pitch == width;
        let are_dense =
            is_dense(q.width(), q.height(), q.pitch()) && is_dense(y.width(), y.height(), y.pitch());
        if sizes.queries != 1 || sizes.sharing == 1 || !are_dense || !self.offsets[0].is_empty() {
            return self;
        }
        let Ok(rows) = q.span().pitched(attention.size, attention.heads, attention.size) else { return self };
        let attention = Attention { heads: attention.key_heads, is_causal: false, ..attention };
        let sizes = Sizes {
            queries: sizes.sharing,
            sharing: 1,
            beside: [1, sizes.beside[1]],
            is_causal: false,
            ..sizes
        };
        Work { attention, sizes, q: rows, pitch: sizes.groups, ..self }
    }

    /// The slices of the keys that have a block each: several, if there are so few queries that multiprocessors would be idle.
    pub(super) fn slices(&self, stream: &Stream) -> Result<usize> {
        let Work { attention, sizes, offsets, .. } = self;
        if !offsets[0].is_empty() {
            return Ok(1);
        }
        let which = usize::from(attention.size > 128);
        // Queries and keys of a tile, and the blocks that fit into a multiprocessor.
        let (queries, keys, together) = if self.has_tiles(stream) {
            (self.queries_of_tile(), self.keys_of_tile(), 1)
        } else {
            (steps::QUERIES[which], steps::KEYS[which], 2)
        };
        let blocks = self.blocks(queries);
        let (processors, steps) = (processors(stream)?, (sizes.keys as usize).div_ceil(keys));
        if 2 * blocks > processors {
            return Ok(1);
        }
        Ok((together * processors / blocks.max(1)).min(steps / STEPS_OF_SLICE).max(1))
    }

    /// Computes it by so many slices of the keys, and writes what they are together.
    pub(super) fn in_slices(
        mut self,
        stream: &Stream,
        slices: usize,
        y: DeviceViewMut<T>,
        log_sums: DeviceAtomicView<f32>,
    ) -> Result<()> {
        let (rows, pitch) = (self.attention.heads * self.sizes.queries as usize, self.pitch);
        let (size, groups) = (self.attention.size, self.sizes.groups);
        (self.sizes.slices, self.pitch) = (slices as u32, groups);
        let mut of_slices = stream.temporary::<T>(slices * rows * size)?;
        let mut log_sums_of_slices = stream.temporary::<f32>(slices * rows)?;
        self.launch(stream, of_slices.view_mut(), log_sums_of_slices.view_mut().into_atomic())?;
        let grid = Grid::blocks((rows * groups as usize).div_ceil(steps::THREADS));
        let (of_slices, y) = (of_slices.view().as_aligned16()?, y.cast::<u32>()?.into_atomic());
        let log_sums_of_slices = log_sums_of_slices.view();
        combine::<T>(stream, grid, self.sizes, pitch, of_slices, log_sums_of_slices, y, log_sums)
    }
}

/// What the kernel does.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod kernels {
    use core::f32::consts::LOG2_E;

    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::attention::kernels::steps::{Group, Rows, Sizes, THREADS, TensorElement};

    /// y <- the results of all slices of the keys, each weighted by its share of the sum of weights, of which it has the logarithm. A thread has a
    /// group.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn combine<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitch: u32,
        of_slices: &[Group<T>],
        log_sums_of_slices: &[f32],
        y: &[DeviceAtomic<u32>],
        log_sums: &[DeviceAtomic<f32>],
    ) {
        let (groups, queries, slices) =
            (s.groups.max(1) as usize, s.queries.max(1) as usize, s.slices as usize);
        let (number, of_slice) = (t.index().get(), log_sums_of_slices.len() / slices.max(1));
        let (row, group) = (number / groups, number % groups);
        if row >= of_slice {
            return;
        }
        let log_sum = |slice: usize| {
            log_sums_of_slices.get(slice * of_slice + row).copied().unwrap_or(f32::NEG_INFINITY)
        };
        let greatest = (0..slices).map(log_sum).fold(f32::NEG_INFINITY, Float::max);
        // Without keys all are minus infinity.
        let weight = |slice: usize| {
            if greatest == f32::NEG_INFINITY {
                0.0
            } else {
                ((log_sum(slice) - greatest) * LOG2_E).fast_exp2()
            }
        };
        let (mut sums, mut total) = ([0.0_f32; 8], 0.0);
        for slice in 0..slices {
            let weight = weight(slice);
            total += weight;
            if let Some(own) = of_slices.get((slice * of_slice + row) * groups + group) {
                for i in 0..8 {
                    sums[i] = Float::mul_add(weight, own[i].to_f32(), sums[i]);
                }
            }
        }
        let factor = if total == 0.0 { 0.0 } else { 1.0 / total };
        let [first, column] = s.corner(0, row / queries, queries);
        let rows = Rows { corner: [first + row % queries, column], pitch: pitch as usize, len: 1, groups };
        for i in 0..4 {
            rows.write::<T>(
                y,
                [0, group * 8 + 2 * i],
                [sums[2 * i], sums[2 * i + 1]].map(|sum| sum * factor),
            );
        }
        if let Some(to) = log_sums.get(row).filter(|_| group == 0) {
            to.store(greatest + Float::ln(total), atomic::Ordering::Relaxed);
        }
    }
}
