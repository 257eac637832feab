//! What products by the tensor cores of blocks have in common: their tiles, and results of whole groups of 8 bytes.

use bytemuck::Pod;
use ferrogrid_device::matrix::Products;
use ferrogrid_host::DeviceAttribute;

use super::kernels::kernels::Sizes;
use super::{Factor, Gemm, Product, Readable, Tiles, attribute, has_groups};
use crate::number::numbers::Element;
use crate::{Grid, Result, Stream};

const TILES: Tiles = [([128, 256], 1.0), ([64, 128], 1.3)];
/// Half a small tile.
const NARROW: [usize; 2] = [64, 64];

/// How a product is launched.
pub(super) struct Launch {
    pub(super) grid: Grid<1>,
    pub(super) s: Sizes,
    /// By the tiles of 128 x 256, or by those of 64 x 128.
    pub(super) is_large: bool,
}

impl Launch {
    /// Grid and sizes for tiles of 64 x 64, if there are so few small ones that half of the multiprocessors would have none: more of them
    /// then read the factors.
    pub(super) fn narrow<T: Factor, C: Element + Pod>(
        &self,
        product: &Product<T, C>,
        stream: &Stream,
    ) -> Result<Option<(Grid<1>, Sizes)>> {
        let processors = attribute(stream, DeviceAttribute::MULTIPROCESSOR_COUNT)?;
        let blocks = product.blocks(NARROW);
        if self.is_large || blocks > processors {
            return Ok(None);
        }
        Ok(Some((Grid::blocks(blocks), product.sizes([0; 2], NARROW))))
    }
}

impl<'a, T: Factor, C: Element + Pod> Product<'a, '_, T, C> {
    pub(super) fn launch(&self, stream: &Stream) -> Result<Launch> {
        let processors = attribute(stream, DeviceAttribute::MULTIPROCESSOR_COUNT)?;
        let memory = attribute(stream, DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        // A large tile takes more shared memory than most GPUs have.
        let is_large = self.is_large(stream, TILES)? && memory >= size_of::<Products<T, 128, 256, 4>>();
        let tile = TILES[usize::from(!is_large)].0;
        let grid = Grid::blocks(self.blocks(tile).min(processors));
        Ok(Launch { grid, s: self.sizes([0; 2], tile), is_large })
    }

    /// Both factors as planes, which kernels read along either axis; copied along the other one if that is said.
    pub(super) fn planes(&self, stream: &Stream, turns: [bool; 2]) -> Result<[Readable<'a, T>; 2]> {
        let readable = |which: usize| {
            let matrix = &self.gemm.factors[which];
            let is_plane = matrix.pitch() == matrix.width() && has_groups(matrix);
            self.readable(stream, which, is_plane && !turns[which], turns[which])
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
    pub(super) fn in_groups(
        self,
        stream: &Stream,
        multiply: impl FnOnce(Product<T, C>) -> Result<()>,
    ) -> Result<()> {
        if self.has_groups() {
            return multiply(self);
        }
        let Product { gemm: Gemm { factors, c, are_transposed, scales, batches, is_tf32 }, shape } = self;
        let (width, height, pitch) = (c.width(), c.height(), c.pitch());
        let (c, padded) = (c.span(), width.next_multiple_of(8 / size_of::<C>()));
        let mut groups = stream.temporary::<C>(padded * height)?;
        if scales[1] != T::Scale::ZERO {
            // The last columns of groups are read, too.
            stream.fill_into(C::ZERO, groups.view_mut())?;
            let before = c.view().pitched(width, height, pitch)?;
            stream.copy_2d(before, groups.view_mut().pitched(width, height, padded)?)?;
        }
        let c_of_groups = groups.view_mut().pitched(padded, height, padded)?;
        let gemm = Gemm { factors, c: c_of_groups, are_transposed, scales, batches, is_tf32 };
        multiply(Product { gemm, shape })?;
        stream.copy_2d(groups.view().pitched(width, height, padded)?, c.pitched(width, height, pitch)?)
    }
}
