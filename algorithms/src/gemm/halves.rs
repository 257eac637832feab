//! Products of 16-bit floats: by tensor cores, where a GPU has them.

use ferrogrid_device::half::{bf16, f16};
use ferrogrid_device::matrix::Products;
use ferrogrid_host::DeviceAttribute;

use super::tiles::kernels::{multiply_large, multiply_small};
use super::{
    Blocks, Gemm, Multiplied, Product, TENSOR_CORES, Tiles, attribute, by_threads, has_groups, kernels,
};
use crate::number::numbers::Element;
use crate::{Grid, Result, Stream};

const TILES: Tiles = [([128, 256], 1.0), ([64, 128], 1.3)];

macro_rules! multiplied {
    ($($t:ident),*) => { $(
        impl Multiplied for $t {
            type Bits = u16;

            fn gemm(stream: &Stream, product: Product<$t>) -> Result<()> {
                if stream.device().compute_capability() < Some(TENSOR_CORES) {
                    return by_threads!(product, stream, [128, 128], 8, kernels::kernels::multiply_halves::<$t>);
                }
                if product.has_fours() {
                    by_tensor_cores(stream, product)
                } else {
                    by_way_of_fours(stream, product)
                }
            }
        }
    )* };
}
multiplied!(f16, bf16);

/// Has the kernels for all orientations.
trait Tiled:
    Multiplied<Total = f32>
    + multiply_large::Instance<false, false>
    + multiply_large::Instance<false, true>
    + multiply_large::Instance<true, false>
    + multiply_large::Instance<true, true>
    + multiply_small::Instance<false, false>
    + multiply_small::Instance<false, true>
    + multiply_small::Instance<true, false>
    + multiply_small::Instance<true, true>
{
}
impl Tiled for f16 {}
impl Tiled for bf16 {}

impl<T: Multiplied> Product<'_, '_, T> {
    /// Whether the rows of the result are whole fours of elements, which the kernels write.
    fn has_fours(&self) -> bool {
        let c = &self.gemm.c;
        c.width().is_multiple_of(4)
            && c.pitch().is_multiple_of(4)
            && c.as_device_ptr().as_raw().addr().is_multiple_of(8)
    }
}

fn by_tensor_cores<T: Tiled>(stream: &Stream, product: Product<T>) -> Result<()> {
    // The kernels read tiles along either axis of one plane; several batches are below each other along `k`, too, if that is the
    // axis of rows.
    let along_rows = [product.gemm.are_transposed[0], !product.gemm.are_transposed[1]];
    let turns = along_rows.map(|along_rows| along_rows && product.gemm.batches > 1);
    let readable = |which: usize| {
        let matrix = &product.gemm.factors[which];
        let is_plane = matrix.pitch() == matrix.width() && has_groups(matrix);
        product.readable(stream, which, is_plane && !turns[which], turns[which])
    };
    let (a, b) = (readable(0)?, readable(1)?);
    let (a, b) = (a.dense()?, b.dense()?);
    let processors = attribute(stream, DeviceAttribute::MULTIPROCESSOR_COUNT)?;
    let memory = attribute(stream, DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    // A large tile takes more shared memory than most GPUs have.
    let is_large = product.is_large(stream, TILES)? && memory >= size_of::<Products<T, 128, 256, 4>>();
    let tile = if is_large { TILES[0].0 } else { TILES[1].0 };
    let s = product.sizes([0; 2], tile);
    let grid = Grid::blocks(product.blocks(tile).min(processors));
    let [alpha, beta] = product.gemm.scales;
    let c = product.gemm.c.span().cast::<u64>()?.into_atomic();
    macro_rules! launch {
        ($left:literal, $right:literal) => {
            match is_large {
                true => multiply_large::<T, $left, $right>(stream, grid, s, alpha, beta, a, b, c),
                false => multiply_small::<T, $left, $right>(stream, grid, s, alpha, beta, a, b, c),
            }
        };
    }
    match [0, 1].map(|which| along_rows[which] && !turns[which]) {
        [false, false] => launch!(false, false),
        [false, true] => launch!(false, true),
        [true, false] => launch!(true, false),
        [true, true] => launch!(true, true),
    }
}

/// The product in memory with rows of whole fours, and then copied to `c`.
fn by_way_of_fours<T: Tiled>(stream: &Stream, product: Product<T>) -> Result<()> {
    let Product { gemm: Gemm { factors, c, are_transposed, scales, batches, is_tf32 }, shape } = product;
    let (width, height, pitch) = (c.width(), c.height(), c.pitch());
    let (c, padded) = (c.span(), width.next_multiple_of(4));
    let mut fours = stream.temporary::<T::Bits>(padded * height)?;
    let mut fours = fours.view_mut().cast::<T>()?;
    if scales[1] != 0.0 {
        // The last columns of fours are read, too.
        stream.fill_into(<T as Element>::ZERO, fours.reborrow())?;
        let before = c.view().pitched(width, height, pitch)?;
        stream.copy_2d(before, fours.reborrow().pitched(width, height, padded)?)?;
    }
    let of_fours = fours.reborrow().pitched(padded, height, padded)?;
    let gemm = Gemm { factors, c: of_fours, are_transposed, scales, batches, is_tf32 };
    by_tensor_cores(stream, Product { gemm, shape })?;
    stream.copy_2d(fours.view().pitched(width, height, padded)?, c.pitched(width, height, pitch)?)
}
