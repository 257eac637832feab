//! Products of matrices, by tensor cores unless they are of `f32`.
//!
//! `kernels` and `singles` have the products of threads, `warps` those of `f64` and `tf32` by the tensor cores of warps, `tiles` those by the tensor cores of
//! blocks, which `halves`, `narrow` and `multiply_rounded` launch as `blocks` says; `pack` what makes a factor readable for all of them,
//! `native` the bodies for the CPU device.

mod blocks;
#[cfg(feature = "half")]
mod halves;
pub(crate) mod kernels;
mod narrow;
mod native;
pub(crate) mod pack;
pub(crate) mod singles;
pub(crate) mod tiles;
pub(crate) mod warps;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};
use ferrogrid_device::matrix::RowGroups;
use ferrogrid_device::narrow::tf32;
#[cfg(feature = "half")]
use ferrogrid_device::narrow::{f8e4m3, f8e5m2};
use ferrogrid_host::__private::{ProductShape, Several, is_large};
use ferrogrid_host::{DeviceAttribute, PitchedView, PitchedViewMut};

use crate::number::numbers::Element;
use crate::{DeviceAtomicView, DeviceView, Error, Grid, Result, Stream, Temporary};
use blocks::{Launch, ProductTile};
use kernels::kernels::Sizes;
use pack::kernels::Source;
use singles::kernels::{SKIPPED, multiply_few_singles, multiply_singles};

/// A number whose matrices are multiplied to matrices of `C`: `f32`, `f64`, and with the feature `half` `f16` and `bf16` to their own type,
/// `i8` to `i32`, and with the feature `half` [`f8e4m3`](ferrogrid_device::narrow::f8e4m3) and [`f8e5m2`](ferrogrid_device::narrow::f8e5m2)
/// to `f32` or `bf16`.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (a, b) = (stream.upload(&[100_i8, 100, -100, 100])?, stream.upload(&[100_i8, 1, 100, 2])?);
/// let mut c = stream.zeros::<i32>(4)?;
/// algorithms::matmul(&stream, a.view_2d(2, 2)?, b.view_2d(2, 2)?, c.view_2d_mut(2, 2)?)?;
/// assert_eq!(stream.download(&c)?, [20_000, 300, 0, 100]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "matrices of `{Self}` are not multiplied to matrices of `{C}`",
    label = "expected `f32`, `f64`, `i8` with results in `i32`, or with the feature `half` `f16`, `bf16`, or 8-bit floats with results in `f32` or `bf16`"
)]
pub trait Multiplied<C: DeviceCopy = Self>: Factor {
    #[doc(hidden)]
    fn gemm(stream: &Stream, product: Product<Self, C>) -> Result<()>;
}

/// An element of factors: [`Multiplied`] says which there are.
pub trait Factor: Pod + DeviceCopy {
    /// What products are scaled by: `f64` and `i32` for elements of that type and of `i8`, `f32` for all others.
    type Scale: Element + Pod;

    /// An integer of that size.
    #[doc(hidden)]
    type Bits: Pod + DeviceCopy + pack::kernels::pack::Instance;
}

macro_rules! factors {
    ($($t:ident by $scale:ident as $bits:ident),*) => { $(
        impl Factor for $t {
            type Scale = $scale;
            type Bits = $bits;
        }
    )* };
}
factors!(f32 by f32 as u32, f64 by f64 as u64, i8 by i32 as u8);
#[cfg(feature = "half")]
factors!(f16 by f32 as u16, bf16 by f32 as u16, f8e4m3 by f32 as u8, f8e5m2 by f32 as u8);

/// A product of matrices, `c <- alpha a b + beta c`, for [`gemm`]. `alpha` is 1 and `beta` 0 unless it is said.
#[derive(Debug)]
pub struct Gemm<'a, 'c, T: Factor, C: DeviceCopy = T> {
    factors: [PitchedView<'a, T>; 2],
    c: PitchedViewMut<'c, C>,
    are_transposed: [bool; 2],
    scales: [T::Scale; 2],
    batches: usize,
    /// Where groups of rows of `a` and `c` begin, and the end of the last one.
    groups: Option<DeviceView<'a, u32>>,
    is_tf32: bool,
}

impl<'a, 'c, T: Factor, C: DeviceCopy> Gemm<'a, 'c, T, C> {
    /// The product of `a` and `b`: row-major matrices, dense or with a pitch.
    pub fn new(
        a: impl Into<PitchedView<'a, T>>,
        b: impl Into<PitchedView<'a, T>>,
        c: impl Into<PitchedViewMut<'c, C>>,
    ) -> Self {
        Gemm {
            factors: [a.into(), b.into()],
            c: c.into(),
            are_transposed: [false; 2],
            scales: [T::Scale::ONE, T::Scale::ZERO],
            batches: 1,
            groups: None,
            is_tf32: false,
        }
    }

    /// Multiplies the transpose of `a` (cuBLAS's `CUBLAS_OP_T`): `a` is given with a row for each column of the factor.
    #[must_use]
    pub fn transpose_a(self) -> Self {
        Gemm { are_transposed: [true, self.are_transposed[1]], ..self }
    }

    /// Multiplies by the transpose of `b`: `b` is given with a row for each column of the factor.
    #[must_use]
    pub fn transpose_b(self) -> Self {
        Gemm { are_transposed: [self.are_transposed[0], true], ..self }
    }

    /// Multiplies sums by `alpha`.
    #[must_use]
    pub fn alpha(self, alpha: T::Scale) -> Self {
        Gemm { scales: [alpha, self.scales[1]], ..self }
    }

    /// Adds `beta` times what `c` holds. With 0, `c` is not read.
    #[must_use]
    pub fn beta(self, beta: T::Scale) -> Self {
        Gemm { scales: [self.scales[0], beta], ..self }
    }

    /// Multiplies as many matrices of the same size, which are below each other in `a`, `b` and `c` (cuBLAS's
    /// `cublasGemmStridedBatchedEx()`).
    #[must_use]
    pub fn batches(self, batches: usize) -> Self {
        Gemm { batches, ..self }
    }

    /// Multiplies groups of rows by a matrix each (PyTorch's `_grouped_mm`, cuBLAS's `cublasGemmGroupedBatchedEx()`): the experts of a
    /// mixture, say. `b` has the groups' matrices below each other, all of the same size. `offsets` has the first row of each group in `a` and
    /// `c`, and the end of the last one, so one number more than there are groups: it is on the device, which may have computed it. A
    /// group may be empty; rows of no group are left as they are in `c`.
    ///
    /// If offsets do not ascend, or exceed the rows, the kernel panics.
    ///
    /// ```
    /// # use ferrogrid_host::{Device, Result};
    /// # fn main() -> Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// # use ferrogrid_algorithms as algorithms;
    /// use algorithms::Gemm;
    ///
    /// // Rows 0 to 2 by the first matrix, none by the second, row 3 by the third.
    /// let offsets = stream.upload(&[0_u32, 3, 3, 4])?;
    /// let a = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?; // 4 x 2
    /// let b = stream.upload(&[1.0, 1.0, 9.0, 9.0, 0.0, 10.0])?; // a column of each matrix
    /// let mut c = stream.zeros(4)?;
    /// let product = Gemm::new(a.view_2d(2, 4)?, b.view_2d(2, 3)?, c.view_2d_mut(1, 4)?);
    /// algorithms::gemm(&stream, product.transpose_b().groups(offsets.view()))?;
    /// assert_eq!(stream.download(&c)?, [3.0, 7.0, 11.0, 80.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn groups(self, offsets: DeviceView<'a, u32>) -> Self {
        Gemm { groups: Some(offsets), ..self }
    }

    /// How many matrices factor number `which` has below each other.
    fn matrices(&self, which: usize) -> usize {
        self.several().matrices(which)
    }

    fn several(&self) -> Several {
        self.groups.map_or(Several::Batches(self.batches), |offsets| Several::Groups(offsets.len()))
    }

    /// Rows, columns and depth of each of the products: all rows, if they are in groups.
    fn shape(&self) -> Result<[usize; 3]> {
        let Gemm { factors, c, are_transposed, batches, groups, .. } = self;
        if groups.is_some() && *batches != 1 {
            return Err(Error::Argument {
                function: "gemm",
                argument: "the number of batches",
                value: batches.to_string().into(),
                expected: "1, as rows are in groups",
            });
        }
        let factors = factors.map(|factor| [factor.width(), factor.height()]);
        let product = [c.width(), c.height()];
        let shape =
            ProductShape { factors, product, are_transposed: *are_transposed, several: self.several() };
        let depths = "gemm, columns of the left factor and rows of the right one";
        shape.extents("gemm", [depths, "gemm, the product and `c`"])
    }
}

impl Gemm<'_, '_, f32> {
    /// Rounds the elements of both factors to [`tf32`](ferrogrid_device::narrow::tf32), 10 bits of fraction, which tensor cores multiply from
    /// compute capability 8.0 on (cuBLAS's `CUBLAS_COMPUTE_32F_FAST_TF32`). Sums remain `f32`.
    #[must_use]
    pub fn tf32(self) -> Self {
        Gemm { is_tf32: true, ..self }
    }
}

/// The rows of a launch that packs: grids have at most 65535 blocks along y.
const PACKED_ROWS: usize = 32 * 65535;

/// The compute capability from which on tensor cores multiply all elements.
const TENSOR_CORES: (u32, u32) = (8, 0);

/// The shared memory of a block for large tiles of `f32`.
const LARGE_SINGLES: i32 = 96 << 10;

/// The sizes of a large and of a small tile, and how long a multiplication takes by comparison.
type Tiles = [([usize; 2], f64); 2];

/// A product of known size, which is not empty.
#[doc(hidden)]
pub struct Product<'a, 'c, T: Factor, C: DeviceCopy = T> {
    gemm: Gemm<'a, 'c, T, C>,
    shape: [usize; 3],
    /// Those of groups, or none.
    offsets: DeviceView<'a, u32>,
}

/// A factor as a kernel reads it.
enum Readable<'a, T: Factor> {
    AsGiven(PitchedView<'a, T>),
    Packed(Box<Temporary<T::Bits>>, [usize; 2]),
}

impl<T: Factor> Readable<'_, T> {
    /// All elements, and from the start of a row to that of the next.
    fn elements(&self) -> Result<(DeviceView<'_, T>, usize)> {
        match self {
            Readable::AsGiven(matrix) => Ok((matrix.span(), matrix.pitch())),
            Readable::Packed(elements, [width, _]) => Ok((elements.view().cast()?, *width)),
        }
    }

    /// The rows.
    fn plane(&self) -> Result<PitchedView<'_, T>> {
        match self {
            Readable::AsGiven(matrix) => Ok(*matrix),
            Readable::Packed(elements, [width, height]) => {
                elements.view().cast()?.pitched(*width, *height, *width)
            }
        }
    }
}

/// Whether all rows begin at multiples of 16 bytes.
fn is_aligned<T: DeviceCopy>(matrix: &PitchedView<T>) -> bool {
    let start = matrix.as_device_ptr().as_raw().addr();
    (matrix.pitch() * size_of::<T>()).is_multiple_of(16) && start.is_multiple_of(16)
}

/// Whether all rows consist of whole groups of 16 bytes.
fn has_groups<T: DeviceCopy>(matrix: &PitchedView<T>) -> bool {
    (matrix.width() * size_of::<T>()).is_multiple_of(16) && is_aligned(matrix)
}

impl<'a, T: Factor, C: DeviceCopy> Product<'a, '_, T, C> {
    /// Factor number `which`: as it is if `is_readable`, or else [`packed`](Self::packed).
    fn readable(
        &self,
        stream: &Stream,
        which: usize,
        is_readable: bool,
        turns: bool,
    ) -> Result<Readable<'a, T>> {
        if is_readable {
            return Ok(Readable::AsGiven(self.gemm.factors[which]));
        }
        let (packed, extent) = self.packed::<T::Bits>(stream, which, turns)?;
        Ok(Readable::Packed(Box::new(packed), extent))
    }

    /// Factor number `which` in memory of its own, with width and height: the rows of the stored matrix, or of its transpose if `turns`, with
    /// zeros up to a multiple of 16 bytes.
    fn packed<B: Pod + pack::kernels::pack::Instance>(
        &self,
        stream: &Stream,
        which: usize,
        turns: bool,
    ) -> Result<(Temporary<B>, [usize; 2])> {
        let matrix = self.gemm.factors[which];
        let batches = self.gemm.matrices(which);
        let stored = [matrix.height() / batches, matrix.width()];
        let [rows, columns] = if turns { [stored[1], stored[0]] } else { stored };
        let (width, height) = (columns.next_multiple_of(16 / size_of::<B>()), rows * batches);
        let mut packed = stream.temporary::<B>(width * height)?;
        for first_row in (0..height).step_by(PACKED_ROWS) {
            let source = Source {
                extents: [rows as u64, columns as u64],
                pitch: matrix.pitch() as u64,
                first_row: first_row as u64,
                is_transposed: turns.into(),
            };
            let rows = first_row..height.min(first_row + PACKED_ROWS);
            let grid = Grid::blocks([width.div_ceil(32), rows.len().div_ceil(32)]);
            let target = packed.view_mut().slice(rows.start * width..rows.end * width)?;
            let target = target.into_2d(width, rows.len())?;
            pack::kernels::pack::<B>(stream, grid, source, matrix.span().cast()?, target)?;
        }
        Ok((packed, [width, height]))
    }

    fn sizes(&self, pitches: [usize; 2]) -> Sizes {
        let [rows, columns, depth] = self.shape;
        Sizes {
            result: [rows, columns].map(|it| it as u64),
            depth: depth as u64,
            batches: self.gemm.batches as u64,
            pitches: [pitches[0], pitches[1], self.gemm.c.pitch()].map(|it| it as u64),
            parts: [1, depth as u64],
        }
    }

    /// The tiles of so many rows below each other in a batch, or in all groups.
    fn down(&self, height: usize) -> usize {
        match self.gemm.groups {
            Some(_) => RowGroups::most_tiles(self.gemm.matrices(1), self.shape[0], height),
            None => self.shape[0].div_ceil(height),
        }
    }

    /// The tiles of that size in all batches.
    fn blocks(&self, [height, width]: [usize; 2]) -> usize {
        self.down(height) * self.shape[1].div_ceil(width) * self.gemm.batches
    }

    /// Whether the left factor is copied to rows, since groups begin anywhere within its columns.
    fn turns_groups(&self) -> bool {
        self.gemm.groups.is_some() && self.gemm.are_transposed[0]
    }

    /// Whether the large tiles take no more time than the small ones.
    fn is_large(&self, stream: &Stream, tiles: Tiles) -> Result<bool> {
        is_large(stream, tiles, |tile| self.blocks(tile))
    }

    /// The product of threads: by `launch`, of tiles of that size. `by_k` says whether rows of the left factor are for each `k`, or along `k`;
    /// those of the right one are for each `k`.
    fn by_threads(
        self,
        stream: &Stream,
        tile: [usize; 2],
        by_k: bool,
        launch: impl FnOnce(Blocks<T, C>) -> Result<()>,
    ) -> Result<()> {
        let readable = |which: usize| {
            let turns = self.gemm.are_transposed[which] != (which == 0 && by_k);
            self.readable(stream, which, !turns && has_groups(&self.gemm.factors[which]), turns)
        };
        let factors = [readable(0)?, readable(1)?];
        self.by_blocks(factors, tile, launch)
    }

    /// The product by the tensor cores of warps, which read factors of either orientation.
    fn by_warps(
        self,
        stream: &Stream,
        tile: [usize; 2],
        launch: impl FnOnce(Blocks<T, C>) -> Result<()>,
    ) -> Result<()> {
        let turns = [self.turns_groups(), false];
        let readable = |which: usize| {
            let is_readable = !turns[which] && has_groups(&self.gemm.factors[which]);
            self.readable(stream, which, is_readable, turns[which])
        };
        let factors = [readable(0)?, readable(1)?];
        self.by_blocks(factors, tile, launch)
    }

    /// By a block for each tile.
    fn by_blocks(
        self,
        [a, b]: [Readable<T>; 2],
        tile: [usize; 2],
        launch: impl FnOnce(Blocks<T, C>) -> Result<()>,
    ) -> Result<()> {
        let ((a, pitch_a), (b, pitch_b)) = (a.elements()?, b.elements()?);
        let s = self.sizes([pitch_a, pitch_b].map(|pitch| pitch * size_of::<T>() / 16));
        let grid = Grid::blocks(self.blocks(tile));
        let (scales, offsets, c) = (self.gemm.scales, self.offsets, self.gemm.c.span().into_atomic());
        launch(Blocks { grid, s, scales, offsets, a, b, c })
    }
}

/// What a launch with a block for each tile takes.
struct Blocks<'v, T: Factor, C: DeviceCopy> {
    grid: Grid<1>,
    s: Sizes,
    scales: [T::Scale; 2],
    offsets: DeviceView<'v, u32>,
    a: DeviceView<'v, T>,
    b: DeviceView<'v, T>,
    c: DeviceAtomicView<'v, C>,
}

macro_rules! by_threads {
    ($product:ident, $stream:ident, $tile:expr, $by_k:literal, $group:literal, $launch:path) => {
        $product.by_threads($stream, $tile, $by_k, |Blocks { grid, s, scales, offsets, a, b, c }| {
            let (a, b) = (a.as_aligned16::<$group>()?, b.as_aligned16::<$group>()?);
            $launch($stream, grid, s, scales, offsets, a, b, c)
        })
    };
}

#[cfg(feature = "half")]
use by_threads;

/// The product by the kernel for its orientation: rows for each `k` are those of a left factor that is transposed, and of a right one
/// that is not.
macro_rules! by_warps {
    ($product:ident, $stream:ident, $tile:expr, $group:literal, $kernel:path) => {{
        let by_k =
            [$product.gemm.are_transposed[0] && !$product.turns_groups(), !$product.gemm.are_transposed[1]];
        $product.by_warps($stream, $tile, |Blocks { grid, s, scales, offsets, a, b, c }| {
            use $kernel as launch;
            let (a, b) = (a.as_aligned16::<$group>()?, b.as_aligned16::<$group>()?);
            match by_k {
                [false, false] => launch::<false, false>($stream, grid, s, scales, offsets, a, b, c),
                [false, true] => launch::<false, true>($stream, grid, s, scales, offsets, a, b, c),
                [true, false] => launch::<true, false>($stream, grid, s, scales, offsets, a, b, c),
                [true, true] => launch::<true, true>($stream, grid, s, scales, offsets, a, b, c),
            }
        })
    }};
}

impl Multiplied for f32 {
    fn gemm(stream: &Stream, product: Product<f32>) -> Result<()> {
        if product.gemm.is_tf32 {
            return multiply_tf32(stream, product);
        }
        let height = if product.gemm.groups.is_some() { 128 - SKIPPED } else { 128 };
        let memory = stream.device().attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        if memory >= LARGE_SINGLES
            && product.is_large(stream, [([height, 128], 1.0), ([height, 64], 1.08)])?
        {
            return by_threads!(product, stream, [height, 128], true, 4, multiply_singles);
        }
        by_threads!(product, stream, [height, 64], true, 4, multiply_few_singles)
    }
}

/// The product of elements that are rounded to `tf32`: by tensor cores, or by threads of rounded copies.
fn multiply_tf32(stream: &Stream, product: Product<f32>) -> Result<()> {
    let capability = stream.device().compute_capability();
    if capability < Some(TENSOR_CORES) {
        let ([a, b], [rounded_a, rounded_b]) = (product.gemm.factors, product.rounded(stream, [false; 2])?);
        let (of_a, of_b) = (&rounded_a, &rounded_b);
        let factors = [
            of_a.0.view().pitched(a.width(), a.height(), of_a.1[0])?,
            of_b.0.view().pitched(b.width(), b.height(), of_b.1[0])?,
        ];
        let gemm = Gemm { factors, is_tf32: false, ..product.gemm };
        return f32::gemm(stream, Product { gemm, shape: product.shape, offsets: product.offsets });
    }
    let [rows, columns, _] = product.shape;
    // Rounded copies take less time than what they spare.
    if capability == Some((9, 0)) && rows * columns >= 512 * (rows + columns) {
        return multiply_rounded(stream, product);
    }
    let memory = stream.device().attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    // Rows of 128 bytes in three stages: more shared memory than GPUs for graphics have.
    if memory >= 3 * (128 + 256) * 128 && product.is_large(stream, [([128, 256], 1.0), ([64, 64], 1.4)])? {
        return by_warps!(product, stream, [128, 256], 4, warps::kernels::multiply_tf32);
    }
    by_warps!(product, stream, [64, 64], 4, warps::kernels::multiply_few_tf32)
}

/// Whether what was there before counts: there are kernels for that, and kernels that store whole rows.
fn adds<U: Element>([_, beta]: [U; 2]) -> bool {
    beta != U::ZERO
}

/// The product of rounded copies, by the tensor cores of blocks.
fn multiply_rounded(stream: &Stream, product: Product<f32>) -> Result<()> {
    use tiles::rounded::{multiply_large, multiply_small};

    let [(a, [width_a, height_a]), (b, [width_b, height_b])] = product.rounded(stream, product.turns())?;
    let a = a.view().cast::<tf32>()?.into_2d(width_a, height_a)?;
    let b = b.view().cast::<tf32>()?.into_2d(width_b, height_b)?;
    let (scales, offsets) = (product.gemm.scales, product.offsets);
    product.by_tiles(stream, false, |Launch { grid, s, tile, c }| match tile {
        ProductTile::Large if adds(scales) => {
            multiply_large::<true>(stream, grid, s, scales, offsets, a, b, c)
        }
        ProductTile::Large => multiply_large::<false>(stream, grid, s, scales, offsets, a, b, c),
        _ => multiply_small(stream, grid, s, scales, offsets, a, b, c),
    })
}

impl Product<'_, '_, f32> {
    /// Both factors, rounded to `tf32` and [`packed`](Self::packed).
    fn rounded(&self, stream: &Stream, turns: [bool; 2]) -> Result<[(Temporary<f32>, [usize; 2]); 2]> {
        Ok([self.packed(stream, 0, turns[0])?, self.packed(stream, 1, turns[1])?])
    }
}

impl Multiplied for f64 {
    fn gemm(stream: &Stream, product: Product<f64>) -> Result<()> {
        if stream.device().compute_capability() < Some(TENSOR_CORES) {
            return by_threads!(product, stream, [64, 64], false, 2, kernels::kernels::multiply_doubles);
        }
        if product.is_large(stream, [([128, 64], 1.0), ([64, 64], 1.2)])? {
            return by_warps!(product, stream, [128, 64], 2, warps::kernels::multiply_doubles);
        }
        by_warps!(product, stream, [64, 64], 2, warps::kernels::multiply_few_doubles)
    }
}

/// Multiplies matrices (cuBLAS's `cublasGemmEx()`): [`Gemm`] says which, and how.
///
/// Products and sums of `f32` and `f64` are of that type: each sum adds its products in the order of `k`, and each product is rounded once,
/// with its sum. Those have the same bits on every device. With [`Gemm::tf32`], elements of `f32` are rounded first. Sums of `f16` and `bf16`
/// are `f32`, and rounded when they are stored. GPUs from compute capability 8.0 on compute them, and those of `tf32`, by tensor cores,
/// whose sums may differ in their last bits from those of other devices. So do those from 8.9 on with 8-bit floats, whose sums are `f32`
/// with perhaps 14 bits. Sums of `i8` are `i32`, and wrap around. If a result of such elements has few tiles and great depth, sums of parts of
/// the depth are computed apart, and added in their order (split-K): the same ones in each run on a GPU.
///
/// A factor is copied first if a kernel cannot read it as it is: if rows have no multiple of 16 bytes, or begin at none; of 8-bit elements and
/// 16-bit floats also if rows have a pitch; of 16-bit floats if there are several matrices of rows along `k`, and no multiple of 64 in
/// each; of 8-bit elements if rows are not along `k`; the left one if it is transposed and has groups; of others, if threads multiply them, if it is transposed, and the left one of `f32` if it is not. The copy's memory comes from the stream's device in stream order.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Gemm;
///
/// let a = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 x 3
/// let b = stream.upload(&[1.0, 0.0, 2.0, 1.0, 0.0, 3.0])?; // 2 x 3: the transpose of the right factor
/// let mut c = stream.fill(1.0, 4)?;
/// let product = Gemm::new(a.view_2d(3, 2)?, b.view_2d(3, 2)?, c.view_2d_mut(2, 2)?);
/// algorithms::gemm(&stream, product.transpose_b().alpha(2.0).beta(10.0))?;
/// assert_eq!(stream.download(&c)?, [24.0, 30.0, 42.0, 54.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::LengthMismatch` if the columns of the left factor are not as many as the rows of the right one, `Error::ShapeMismatch` if `c`
/// has another size than the product, `Error::Argument` if the batches do not divide the rows of a matrix; and those of a launch.
pub fn gemm<T: Multiplied<C>, C: DeviceCopy>(stream: &Stream, gemm: Gemm<T, C>) -> Result<()> {
    let shape = gemm.shape()?;
    if shape[0] == 0 || shape[1] == 0 {
        return Ok(());
    }
    let none = stream.temporary(0)?;
    let offsets = gemm.groups.unwrap_or_else(|| none.view());
    T::gemm(stream, Product { gemm, shape, offsets })
}

/// Writes the product of `a` and `b` to `c` (CuPy's and NumPy's `matmul`): [`gemm`] with the default options.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (a, b) = (stream.upload(&[1.0_f64, 2.0, 3.0, 4.0])?, stream.upload(&[5.0, 6.0, 7.0, 8.0])?);
/// let mut c = stream.zeros(4)?;
/// algorithms::matmul(&stream, a.view_2d(2, 2)?, b.view_2d(2, 2)?, c.view_2d_mut(2, 2)?)?;
/// assert_eq!(stream.download(&c)?, [19.0, 22.0, 43.0, 50.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`gemm`].
pub fn matmul<'a, 'c, T: Multiplied<C>, C: DeviceCopy>(
    stream: &Stream,
    a: impl Into<PitchedView<'a, T>>,
    b: impl Into<PitchedView<'a, T>>,
    c: impl Into<PitchedViewMut<'c, C>>,
) -> Result<()> {
    gemm(stream, Gemm::new(a, b, c))
}
