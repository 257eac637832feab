//! Products of 16-bit floats: by tensor cores, where a GPU has them.

use ferrogrid_device::half::{bf16, f16};

use super::blocks::{Launch, ProductTile, Summed};
use super::tiles::halves::{multiply_large, multiply_narrow, multiply_small};
use super::{Blocks, Multiplied, Product, TENSOR_CORES, by_threads, kernels};
use crate::{Result, Stream};

macro_rules! multiplied {
    ($($t:ident),*) => { $(
        impl Multiplied for $t {
            fn gemm(stream: &Stream, product: Product<$t>) -> Result<()> {
                if stream.device().compute_capability() < Some(TENSOR_CORES) {
                    return by_threads!(product, stream, [128, 128], 8, kernels::kernels::multiply_halves::<$t>);
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
    + multiply_large::Instance<false, false>
    + multiply_large::Instance<false, true>
    + multiply_large::Instance<true, false>
    + multiply_large::Instance<true, true>
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
    // The kernels read tiles along either axis of one plane; several batches are below each other along `k`, too, if that is the
    // axis of rows.
    let along_rows = product.turns();
    let turns = along_rows.map(|along_rows| along_rows && product.gemm.batches > 1);
    let [a, b] = product.planes(stream, turns)?;
    let (a, b) = (a.dense()?, b.dense()?);
    let [alpha, beta] = product.gemm.scales;
    macro_rules! launch {
        ($left:literal, $right:literal) => {
            product.by_tiles(stream, true, |Launch { grid, s, tile, c }| match tile {
                ProductTile::Large => {
                    multiply_large::<T, $left, $right>(stream, grid, s, alpha, beta, a, b, c)
                }
                ProductTile::Small => {
                    multiply_small::<T, $left, $right>(stream, grid, s, alpha, beta, a, b, c)
                }
                ProductTile::Narrow => {
                    multiply_narrow::<T, $left, $right>(stream, grid, s, alpha, beta, a, b, c)
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
