//! What the function of a `#[matmul]` does around its kernels: it checks shapes, chooses tiles, and copies results that are no whole groups.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::matrix::{ProductResult, Products, ResultRows, RowGroups};

use crate::DeviceAttribute;
use crate::Temporary;
use crate::error::{Error, Result};
use crate::launch::grid::Grid;
use crate::stream::Stream;
use crate::view::agree;
use crate::view::atomic::DeviceAtomicView;
use crate::view::pitched::{PitchedView, PitchedViewMut};

/// The bytes of a row that are a step along the depth.
const STEP: usize = 128;
/// The steps of a narrow tile that take as long as adding up the sums of parts: measured on an H200.
const SPARED_STEPS: usize = 40;
/// The threads of a block that makes results of parts.
const STORING: usize = 256;

/// The parts of a depth of so many elements, of `T`, and the elements of each.
#[doc(hidden)]
pub fn parts_of_depth<T>(depth: usize, parts: usize) -> [u64; 2] {
    [parts, depth.div_ceil(parts).next_multiple_of(STEP / size_of::<T>())].map(|it| it as u64)
}

/// The steps along a depth of so many elements of `T`.
#[doc(hidden)]
pub fn steps<T>(depth: usize) -> usize {
    (depth * size_of::<T>()).div_ceil(STEP)
}

/// The tiles of a product's blocks.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductTile {
    /// 128 x 256 sums, in four stages, stored by rows.
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

    /// The one whose blocks, `blocks(size)`, take the least time on the stream's device, and have the shared memory; and the parts of the depth that
    /// are multiplied apart, of which none is empty: one if there are no `steps`. A step along the depth has [`STEP`] bytes.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn choose(
        stream: &Stream,
        blocks: impl Fn([usize; 2]) -> usize,
        steps: usize,
        has_narrow: bool,
    ) -> Result<(Self, usize)> {
        let memory = at_least_one(stream, DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        // Of all elements they have as many bytes. Most GPUs have less than large tiles take.
        let has_large = memory >= size_of::<Products<u8, 128, 256, 4>>() + size_of::<ResultRows<128>>();
        let has_small = memory >= size_of::<Products<u8, 64, 128, 4>>();
        // Small tiles of all multiprocessors wait for the L2 cache: measured on an H200.
        let tiles = [(ProductTile::Large.size(), 1.0), (ProductTile::Small.size(), 2.0)];
        if has_large && is_large(stream, tiles, &blocks)? {
            return Ok((ProductTile::Large, 1));
        }
        if !has_small {
            return Ok((ProductTile::Narrow, 1));
        }
        let processors = processors(stream)?;
        // If half of the multiprocessors had none, more of them read the factors.
        let is_narrow = has_narrow && blocks(ProductTile::Narrow.size()) <= processors;
        let parts = (processors / blocks(ProductTile::Small.size()).max(1)).clamp(1, steps.max(1));
        // A step of a narrow tile takes half as long.
        let (whole, of_parts) = (if is_narrow { steps } else { 2 * steps }, 2 * steps / parts);
        if whole.saturating_sub(of_parts) >= SPARED_STEPS {
            return Ok((ProductTile::Small, steps.div_ceil(steps.div_ceil(parts))));
        }
        Ok((if is_narrow { ProductTile::Narrow } else { ProductTile::Small }, 1))
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
fn oriented([width, height]: [usize; 2], is_transposed: bool) -> [usize; 2] {
    if is_transposed { [width, height] } else { [height, width] }
}

/// The products of one launch: batches below each other, or groups of rows, each with a matrix of its own as right factor.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Several {
    /// So many batches: one, if nothing is said.
    Batches(usize),
    /// Groups with so many offsets, one more than there are groups.
    Groups(usize),
}

impl Several {
    /// How many matrices factor number `which` has below each other.
    pub fn matrices(self, which: usize) -> usize {
        match self {
            Several::Batches(batches) => batches,
            Several::Groups(offsets) if which == 1 => offsets - 1,
            Several::Groups(_) => 1,
        }
    }

    /// Whether all matrices of the factors and of the product have a height.
    fn check(self, function: &'static str, [a, b, product]: [usize; 3]) -> Result<()> {
        let refused = |argument, value: String, expected| {
            Err(Error::Argument { function, argument, value: value.into(), expected })
        };
        match self {
            Several::Batches(batches) => {
                let is_odd = |height: &usize| batches == 0 || !height.is_multiple_of(batches);
                let Some(height) = [a, b, product].into_iter().find(is_odd) else { return Ok(()) };
                let value = format!("{batches} for {height} rows");
                refused("the number of batches", value, "a number that divides the rows of all matrices")
            }
            Several::Groups(offsets @ (0 | 1)) => {
                let expected = "one number more than there are groups, of which there is one at least";
                refused("the number of offsets", offsets.to_string(), expected)
            }
            Several::Groups(offsets) if !b.is_multiple_of(offsets - 1) => {
                let value = format!("{} for {b} rows", offsets - 1);
                refused("the number of groups", value, "a number that divides the rows of `b`")
            }
            Several::Groups(_) => Ok(()),
        }
    }
}

/// A product as its operands say: the widths and heights of both factors and of the result, and which factors are stored transposed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ProductShape {
    /// Those of the factors.
    pub factors: [[usize; 2]; 2],
    /// Those of the result.
    pub product: [usize; 2],
    /// Whether factors are stored transposed.
    pub are_transposed: [bool; 2],
    /// How many there are.
    pub several: Several,
}

impl ProductShape {
    /// Rows, columns and depth of each product; all rows, if they have groups. The last two are what is compared: depths, and sizes of the result.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are not as many matrices, [`Error::LengthMismatch`] if depths differ, [`Error::ShapeMismatch`] if the result
    /// has another size.
    pub fn extents(self, function: &'static str, [depths, results]: [&'static str; 2]) -> Result<[usize; 3]> {
        let ProductShape { factors: [a, b], product, are_transposed, several } = self;
        several.check(function, [a[1], b[1], product[1]])?;
        let of_one = |[width, height]: [usize; 2], which: usize| {
            oriented([width, height / several.matrices(which)], are_transposed[which])
        };
        let ([rows, depth], [depth_b, columns]) = (of_one(a, 0), of_one(b, 1));
        agree(depths, depth, depth_b)?;
        let (from, to) = ([columns, rows], [product[0], product[1] / several.matrices(0)]);
        if from != to {
            return Err(Error::ShapeMismatch { operation: results, from, to });
        }
        Ok([rows, columns, depth])
    }
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

impl ProductInputs<'_> {
    /// Whether they have as many as there are, of a product with this width and height, and so many columns.
    fn check(&self, product: [usize; 2], columns: usize) -> Result<()> {
        for len in self.of_rows {
            agree("matmul, an input for each row of the product", *len, product[1])?;
        }
        for len in self.of_columns {
            agree("matmul, an input for each column of the product", *len, columns)?;
        }
        match self.planes.iter().find(|to| **to != product) {
            Some(&to) => {
                let operation = "matmul, the product and an input of it";
                Err(Error::ShapeMismatch { operation, from: product, to })
            }
            None => Ok(()),
        }
    }
}

/// A product that is to be launched: by the kernel of these tiles, which writes to [`out`](Self::out). Then it is [finished](Self::finish). Not a
/// function that calls the launch, whose caller the launch's errors would not name.
#[doc(hidden)]
pub struct PlannedProduct<'o, C: DeviceCopy, G> {
    /// The kernel's grid.
    pub grid: Grid<1>,
    /// Its tiles.
    pub tile: ProductTile,
    /// The parts of the depth, if there are several.
    pub parts: Option<ProductParts>,
    results: Results<'o, C, G>,
}

/// Parts of the depth that are multiplied apart. One kernel stores their [`sums`](Self::sums), another one makes results of them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ProductParts {
    /// How many there are, and the elements of each.
    pub depth: [u64; 2],
    /// The grid of the kernel that makes results.
    pub grid: Grid<1>,
    /// The parts, rows of all batches, columns, and rows of a batch.
    pub extents: [u64; 4],
}

impl ProductParts {
    /// Memory for the sums: pairs of numbers of 32 bits.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn sums(&self, stream: &Stream) -> Result<Temporary<u64>> {
        let [parts, rows, columns, _] = self.extents.map(|it| it as usize);
        stream.temporary(parts * rows * columns.div_ceil(2))
    }
}

/// Where the kernel writes.
enum Results<'o, C: DeviceCopy, G> {
    /// To the output itself.
    InPlace(DeviceAtomicView<'o, G>),
    /// To rows of whole groups, so many elements each, which are copied to the output.
    Copied(Box<Temporary<C>>, usize, PitchedViewMut<'o, C>),
}

impl<'o, C: ProductResult> PlannedProduct<'o, C, C::Group> {
    /// The product of both factors, whose function has such inputs; `None` if it is empty.
    ///
    /// # Errors
    /// Those of [`ProductShape::extents`]; [`Error::LengthMismatch`] if an input has not an element for each row or column,
    /// [`Error::ShapeMismatch`] if a plane has another shape than the product, [`Error::Argument`] if several matrices along the depth have not
    /// whole tiles below each other; and if the driver refuses.
    pub fn new<T: DeviceCopy>(
        stream: &Stream,
        factors: [PitchedView<'_, T>; 2],
        are_transposed: [bool; 2],
        several: Several,
        inputs: ProductInputs<'_>,
        out: PitchedViewMut<'o, C>,
    ) -> Result<Option<Self>> {
        let factors = factors.map(|factor| [factor.width(), factor.height()]);
        let product = [out.width(), out.height()];
        let shape = ProductShape { factors, product, are_transposed, several };
        let operations =
            ["matmul, columns of the left factor and rows of the right one", "matmul, the product and `out`"];
        let [rows, columns, depth] = shape.extents("matmul", operations)?;
        // Then kernels copy squares of 16-bit floats. The right factor has rows along the depth unless it is transposed.
        let is_along_depth = [are_transposed[0], !are_transposed[1]];
        let are_several = |which: usize| is_along_depth[which] && several.matrices(which) > 1;
        if (are_several(0) || are_several(1)) && !depth.is_multiple_of(64) {
            return Err(Error::Argument {
                function: "matmul",
                argument: "the depth of several matrices whose rows are along it",
                value: depth.to_string().into(),
                expected: "a multiple of 64",
            });
        }
        inputs.check(product, columns)?;
        if rows == 0 || columns == 0 {
            return Ok(None);
        }
        let blocks = |[height, width]: [usize; 2]| {
            let down = match several {
                Several::Batches(batches) => rows.div_ceil(height) * batches,
                Several::Groups(offsets) => RowGroups::most_tiles(offsets - 1, rows, height),
            };
            down * columns.div_ceil(width)
        };
        let (steps, batches) = match several {
            Several::Batches(batches) => (steps::<T>(depth), batches),
            // Parts of groups would be added up in rows of no group, too.
            Several::Groups(_) => (0, 1),
        };
        let (tile, parts) = ProductTile::choose(stream, blocks, steps, true)?;
        let grid = Grid::blocks((blocks(tile.size()) * parts).min(processors(stream)?));
        let parts = (parts > 1).then(|| {
            let groups = columns.div_ceil(C::GROUP) * rows * batches;
            let extents = [parts, rows * batches, columns, rows].map(|it| it as u64);
            let depth = parts_of_depth::<T>(depth, parts);
            ProductParts { depth, grid: Grid::blocks(groups.div_ceil(STORING)), extents }
        });
        let results = Results::new(stream, out, matches!(several, Several::Groups(_)))?;
        Ok(Some(PlannedProduct { grid, tile, parts, results }))
    }
}

// Not of results that products have: else a type that is none would be an error of each of these, too.
impl<C: DeviceCopy + Pod, G: DeviceCopy + Pod> PlannedProduct<'_, C, G> {
    /// Whole groups of results.
    ///
    /// # Errors
    /// None: groups begin where elements may.
    pub fn out(&mut self) -> Result<DeviceAtomicView<'_, G>> {
        match &mut self.results {
            Results::InPlace(out) => Ok(*out),
            Results::Copied(groups, ..) => Ok(groups.view_mut().cast()?.into_atomic()),
        }
    }

    /// Copies the results to the output, if they are elsewhere.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn finish(self, stream: &Stream) -> Result<()> {
        let Results::Copied(groups, padded, out) = self.results else { return Ok(()) };
        stream.copy_2d(groups.view().pitched(out.width(), out.height(), padded)?, out)
    }
}

impl<'o, C: ProductResult> Results<'o, C, C::Group> {
    /// Those for `out`, of whose rows some may stay as they are.
    fn new(stream: &Stream, out: PitchedViewMut<'o, C>, some_stay: bool) -> Result<Self> {
        let (columns, rows, pitch) = (out.width(), out.height(), out.pitch());
        let (padded, start) = (columns.next_multiple_of(C::GROUP), out.as_device_ptr().as_raw().addr());
        let out = out.span();
        if pitch == padded && padded == columns && start.is_multiple_of(size_of::<C::Group>()) {
            return Ok(Results::InPlace(out.cast()?.into_atomic()));
        }
        let mut groups = stream.temporary::<C>(padded * rows)?;
        if some_stay {
            let before = out.view().pitched(columns, rows, pitch)?;
            stream.copy_2d(before, groups.view_mut().pitched(columns, rows, padded)?)?;
        }
        Ok(Results::Copied(Box::new(groups), padded, out.pitched(columns, rows, pitch)?))
    }
}
