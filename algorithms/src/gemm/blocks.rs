//! What products by the tensor cores of blocks have in common: their tiles, parts of the depth, and results of whole groups of 8 bytes.

use bytemuck::Pod;
pub(super) use ferrogrid_host::__private::ProductTile;
use ferrogrid_host::__private::{parts_of_depth, processors, steps};
use ferrogrid_host::PitchedViewMut;

use super::kernels::kernels::Sizes;
use super::pack::kernels;
use super::{Factor, Gemm, Product, Readable, is_aligned};
use crate::number::numbers::Element;
use crate::{DeviceAtomicView, DeviceView, Grid, Result, Stream, Temporary};

/// An element of results, by tensor cores.
pub trait Summed: Element + Pod + kernels::Summed<Sum: Pod> + kernels::store_sums::Instance {}
impl<C: Element + Pod + kernels::Summed<Sum: Pod> + kernels::store_sums::Instance> Summed for C {}

/// How a product is launched.
pub(super) struct Launch<'v> {
    pub(super) grid: Grid<1>,
    pub(super) s: Sizes,
    pub(super) tile: ProductTile,
    /// Groups of 8 bytes: of the result, or of the sums of several parts.
    pub(super) c: DeviceAtomicView<'v, u64>,
}

impl<'a, T: Factor, C: Summed<Sum = T::Scale>> Product<'a, '_, T, C> {
    /// The product by `multiply`, in tiles, of which there are narrow ones if that is said.
    pub(super) fn by_tiles(
        self,
        stream: &Stream,
        has_narrow: bool,
        multiply: impl FnOnce(Launch) -> Result<()>,
    ) -> Result<()> {
        // Parts of groups would be added up in rows of no group, too.
        let steps = if self.gemm.groups.is_some() { 0 } else { steps::<T>(self.shape[2]) };
        let (tile, parts) = ProductTile::choose(stream, |size| self.blocks(size), steps, has_narrow)?;
        let grid = Grid::blocks((self.blocks(tile.size()) * parts).min(processors(stream)?));
        let of_depth = parts_of_depth::<T>(self.shape[2], parts);
        if parts == 1 {
            return self.in_groups(stream, |product| {
                let s = Sizes { parts: of_depth, ..product.sizes([0; 2]) };
                multiply(Launch { grid, s, tile, c: product.gemm.c.span().cast()?.into_atomic() })
            });
        }
        let (rows, pitch) = (self.gemm.c.height(), self.shape[1].next_multiple_of(8 / size_of::<C::Sum>()));
        let mut sums = stream.temporary::<C::Sum>(rows * pitch * parts)?;
        let mut s = Sizes { parts: of_depth, ..self.sizes([0; 2]) };
        s.pitches[2] = pitch as u64;
        let scales = self.gemm.scales;
        multiply(Launch { grid, s, tile, c: sums.view_mut().cast()?.into_atomic() })?;
        store_sums(stream, &sums, parts, scales, self.offsets, self.gemm.c)
    }
}

/// c <- alpha sums + beta c, with the sums of so many parts, below each other.
pub(super) fn store_sums<C: Summed>(
    stream: &Stream,
    sums: &Temporary<C::Sum>,
    parts: usize,
    [alpha, beta]: [C::Sum; 2],
    offsets: DeviceView<u32>,
    c: PitchedViewMut<C>,
) -> Result<()> {
    let (width, rows) = (c.width(), c.height());
    let (pitch, grid) = (sums.len() / (rows * parts), Grid::blocks((width * rows).div_ceil(256)));
    let [pitch_of_c, width, pitch, parts] = [c.pitch(), width, pitch, parts].map(|it| it as u64);
    let (width, c) = ([width, pitch_of_c], c.span().into_atomic());
    kernels::store_sums::<C>(stream, grid, width, pitch, parts, alpha, beta, offsets, sums.view(), c)
}

impl<'a, T: Factor, C: Element + Pod> Product<'a, '_, T, C> {
    /// Both factors as planes, which kernels read along either axis; copied along the other one if that is said.
    pub(super) fn planes(&self, stream: &Stream, turns: [bool; 2]) -> Result<[Readable<'a, T>; 2]> {
        let readable = |which: usize| {
            let is_readable = !turns[which] && is_aligned(&self.gemm.factors[which]);
            self.readable(stream, which, is_readable, turns[which])
        };
        Ok([readable(0)?, readable(1)?])
    }

    /// Which factors have rows along `k` only when they are turned.
    pub(super) fn turns(&self) -> [bool; 2] {
        [self.gemm.are_transposed[0], !self.gemm.are_transposed[1]]
    }

    /// Whether the rows of the result are whole groups of 8 bytes, which the kernels write.
    fn has_groups(&self) -> bool {
        let (c, group) = (&self.gemm.c, 8 / size_of::<C>());
        c.width().is_multiple_of(group)
            && c.pitch().is_multiple_of(group)
            && c.as_device_ptr().as_raw().addr().is_multiple_of(8)
    }

    /// The product by `multiply`, whose result has whole groups: in memory of its own, and then copied to `c`, if that has not.
    fn in_groups(self, stream: &Stream, multiply: impl FnOnce(Product<T, C>) -> Result<()>) -> Result<()> {
        if self.has_groups() {
            return multiply(self);
        }
        let Product { gemm, shape, offsets } = self;
        let (width, height, pitch) = (gemm.c.width(), gemm.c.height(), gemm.c.pitch());
        let (c, padded) = (gemm.c.span(), width.next_multiple_of(8 / size_of::<C>()));
        let mut results = stream.temporary::<C>(padded * height)?;
        // Rows of no group stay as they are.
        if gemm.scales[1] != T::Scale::ZERO || gemm.groups.is_some() {
            // The last columns of groups are read, too.
            stream.fill_into(C::ZERO, results.view_mut())?;
            let before = c.view().pitched(width, height, pitch)?;
            stream.copy_2d(before, results.view_mut().pitched(width, height, padded)?)?;
        }
        let c_of_groups = results.view_mut().pitched(padded, height, padded)?;
        multiply(Product { gemm: Gemm { c: c_of_groups, ..gemm }, shape, offsets })?;
        stream.copy_2d(results.view().pitched(width, height, padded)?, c.pitched(width, height, pitch)?)
    }
}
