//! Products of 16-bit floats: by tensor cores, where a GPU has them.

use ferrogrid_device::half::{bf16, f16};

use super::blocks::{Launch, ProductTile, Summed};
use super::tiles::halves::{multiply_large, multiply_narrow, multiply_small};
use super::{Blocks, Multiplied, Product, TENSOR_CORES, adds, by_threads, kernels};
use crate::{Result, Stream};

/// Rows and elements of a square that is copied at once.
const TILE: usize = 64;
/// The elements of 16 bytes, of which rows have whole ones.
const GROUP: usize = 8;

macro_rules! multiplied {
    ($($t:ident),*) => { $(
        impl Multiplied for $t {
            fn gemm(stream: &Stream, product: Product<$t>) -> Result<()> {
                if stream.device().compute_capability() < Some(TENSOR_CORES) {
                    return by_threads!(product, stream, [128, 128], false, 8, kernels::kernels::multiply_halves::<$t>);
                }
                by_tensor_cores(stream, product)
            }
        }
    )* };
}
multiplied!(f16, bf16);

/// Has the kernels for all orientations.
trait Tiled:
    Multiplied<Scale = f32>
    + Summed<Sum = f32>
    + multiply_large::Instance<false, false, false>
    + multiply_large::Instance<false, false, true>
    + multiply_large::Instance<false, true, false>
    + multiply_large::Instance<false, true, true>
    + multiply_large::Instance<true, false, false>
    + multiply_large::Instance<true, false, true>
    + multiply_large::Instance<true, true, false>
    + multiply_large::Instance<true, true, true>
    + multiply_small::Instance<false, false>
    + multiply_small::Instance<false, true>
    + multiply_small::Instance<true, false>
    + multiply_small::Instance<true, true>
    + multiply_narrow::Instance<false, false>
    + multiply_narrow::Instance<false, true>
    + multiply_narrow::Instance<true, false>
    + multiply_narrow::Instance<true, true>
{
}
impl Tiled for f16 {}
impl Tiled for bf16 {}

fn by_tensor_cores<T: Tiled>(stream: &Stream, product: Product<T>) -> Result<()> {
    // The kernels read tiles along either axis of one plane, also of several matrices along `k`, if these have whole tiles below each other.
    let along_rows = product.turns();
    let turns = [0, 1].map(|which| {
        let matrix = &product.gemm.factors[which];
        let is_whole = product.shape[2].is_multiple_of(TILE) && matrix.width().is_multiple_of(GROUP);
        along_rows[which] && product.gemm.matrices(which) > 1 && !is_whole
    });
    let turns = [turns[0] || product.turns_groups(), turns[1]];
    let [a, b] = product.planes(stream, turns)?;
    let (a, b) = (a.plane()?, b.plane()?);
    let (scales, offsets) = (product.gemm.scales, product.offsets);
    macro_rules! launch {
        ($left:literal, $right:literal) => {
            product.by_tiles(stream, true, |Launch { grid, s, tile, c }| match tile {
                ProductTile::Large if adds(scales) => {
                    multiply_large::<T, $left, $right, true>(stream, grid, s, scales, offsets, a, b, c)
                }
                ProductTile::Large => {
                    multiply_large::<T, $left, $right, false>(stream, grid, s, scales, offsets, a, b, c)
                }
                ProductTile::Small => {
                    multiply_small::<T, $left, $right>(stream, grid, s, scales, offsets, a, b, c)
                }
                ProductTile::Narrow => {
                    multiply_narrow::<T, $left, $right>(stream, grid, s, scales, offsets, a, b, c)
                }
            })
        };
    }
    match [0, 1].map(|which| along_rows[which] && !turns[which]) {
        [false, false] => launch!(false, false),
        [false, true] => launch!(false, true),
        [true, false] => launch!(true, false),
        [true, true] => launch!(true, true),
    }
}
