//! What the function of a `#[matmul]` does around its kernels: it checks shapes, chooses tiles, and stores whole groups.

use ferrogrid_device::DeviceCopy;
use ferrogrid_device::matrix::{ProductResult, Products};

use crate::DeviceAttribute;
use crate::error::{Error, Result};
use crate::launch::grid::Grid;
use crate::stream::Stream;
use crate::view::atomic::DeviceAtomicView;
use crate::view::pitched::PitchedViewMut;
use crate::view::{DeviceView, agree};

/// The tiles of a product's blocks.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductTile {
    /// 128 x 256 sums, in four stages.
    Large,
    /// 64 x 128 sums, in four stages.
    Small,
    /// 64 x 64 sums.
    Narrow,
}

impl ProductTile {
    /// Rows and columns.
    pub const fn size(self) -> [usize; 2] {
        match self {
            ProductTile::Large => [128, 256],
            ProductTile::Small => [64, 128],
            ProductTile::Narrow => [64, 64],
        }
    }

    /// The one whose blocks, `blocks(size)`, take the least time on the stream's device, and have the shared memory.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn choose(stream: &Stream, blocks: impl Fn([usize; 2]) -> usize) -> Result<Self> {
        let memory = at_least_one(stream, DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        // Of all elements they have as many bytes. Most GPUs have less than large tiles take.
        let has_large = memory >= size_of::<Products<u8, 128, 256, 4>>();
        let has_small = memory >= size_of::<Products<u8, 64, 128, 4>>();
        let tiles = [(ProductTile::Large.size(), 1.0), (ProductTile::Small.size(), 1.3)];
        if has_large && is_large(stream, tiles, &blocks)? {
            return Ok(ProductTile::Large);
        }
        // If half of the multiprocessors had none, more of them read the factors.
        let is_narrow = !has_small || blocks(ProductTile::Narrow.size()) <= processors(stream)?;
        Ok(if is_narrow { ProductTile::Narrow } else { ProductTile::Small })
    }
}

/// Whether the first tiles, each with how long a multiplication takes by comparison, take no more time than the second ones: the blocks of
/// a round take as long as one of them.
///
/// # Errors
/// If the driver refuses.
#[doc(hidden)]
pub fn is_large(
    stream: &Stream,
    tiles: [([usize; 2], f64); 2],
    blocks: impl Fn([usize; 2]) -> usize,
) -> Result<bool> {
    let processors = processors(stream)?;
    let [large, small] = tiles
        .map(|(size, cost)| blocks(size).div_ceil(processors) as f64 * (size[0] * size[1]) as f64 * cost);
    Ok(large <= small)
}

/// The multiprocessors of the stream's device.
///
/// # Errors
/// If the driver refuses.
#[doc(hidden)]
pub fn processors(stream: &Stream) -> Result<usize> {
    at_least_one(stream, DeviceAttribute::MULTIPROCESSOR_COUNT)
}

/// A number that the device has of something, at least 1.
fn at_least_one(stream: &Stream, attribute: DeviceAttribute) -> Result<usize> {
    stream.device().attribute(attribute).map(|it| it.max(1) as usize)
}

/// Rows of a matrix and elements in each, as stored or as its transpose, by its width and height.
#[doc(hidden)]
pub fn oriented([width, height]: [usize; 2], is_transposed: bool) -> [usize; 2] {
    if is_transposed { [width, height] } else { [height, width] }
}

/// The extents of what is read for each sum of a product.
#[doc(hidden)]
pub struct ProductInputs<'i> {
    /// Width and height of what has an element for each.
    pub planes: &'i [[usize; 2]],
    /// The length of what has an element for each row.
    pub of_rows: &'i [usize],
    /// That of what has one for each column.
    pub of_columns: &'i [usize],
}

/// Writes to `out` what `launch` stores of the product of both factors.
///
/// # Errors
/// [`Error::LengthMismatch`] if the factors have not the same depth, or an input not an element for each row or column;
/// [`Error::ShapeMismatch`] if `out` or a plane has another shape than the product; and those of a launch.
#[doc(hidden)]
pub fn matmul<T: DeviceCopy, C: ProductResult>(
    stream: &Stream,
    factors: [DeviceView<'_, T, 2>; 2],
    are_transposed: [bool; 2],
    inputs: ProductInputs<'_>,
    out: PitchedViewMut<'_, C>,
    launch: impl FnOnce(Grid<1>, ProductTile, DeviceAtomicView<'_, C::Group>) -> Result<()>,
) -> Result<()> {
    let [rows, depth] = oriented(*factors[0].extents(), are_transposed[0]);
    let [depth_b, columns] = oriented(*factors[1].extents(), are_transposed[1]);
    agree("matmul, columns of the left factor and rows of the right one", depth, depth_b)?;
    for len in inputs.of_rows {
        agree("matmul, an input for each row of the product", *len, rows)?;
    }
    for len in inputs.of_columns {
        agree("matmul, an input for each column of the product", *len, columns)?;
    }
    let product = [columns, rows];
    let planes = inputs.planes.iter().map(|extents| ("matmul, the product and an input of it", *extents));
    for (operation, to) in planes.chain([("matmul, the product and `out`", [out.width(), out.height()])]) {
        if to != product {
            return Err(Error::ShapeMismatch { operation, from: product, to });
        }
    }
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let blocks = |[height, width]: [usize; 2]| rows.div_ceil(height) * columns.div_ceil(width);
    let tile = ProductTile::choose(stream, blocks)?;
    let grid = Grid::blocks(blocks(tile.size()).min(processors(stream)?));
    let padded = columns.next_multiple_of(C::GROUP);
    let (pitch, start) = (out.pitch(), out.as_device_ptr().as_raw().addr());
    if pitch == padded && padded == columns && start.is_multiple_of(size_of::<C::Group>()) {
        return launch(grid, tile, out.span().cast()?.into_atomic());
    }
    let mut groups = stream.temporary::<C>(padded * rows)?;
    launch(grid, tile, groups.view_mut().cast()?.into_atomic())?;
    stream.copy_2d(groups.view().pitched(columns, rows, padded)?, out)
}
