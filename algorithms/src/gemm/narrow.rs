//! Products of 8-bit elements: by the tensor cores of blocks, or of wider copies.

use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::bf16;
#[cfg(feature = "half")]
use ferrogrid_device::narrow::{f8e4m3, f8e5m2};
use ferrogrid_host::PitchedView;

#[cfg(feature = "half")]
use super::blocks::store_sums;
use super::blocks::{Launch, ProductTile};
use super::pack::kernels::Narrow;
use super::tiles::integers;
#[cfg(feature = "half")]
use super::tiles::narrow_floats;
use super::{Factor, Gemm, Multiplied, Product, TENSOR_CORES, adds, pack};
use crate::number::numbers::Element;
use crate::{DeviceView, Grid, Result, Stream, Temporary};

/// The compute capability from which on tensor cores multiply 8-bit floats.
#[cfg(feature = "half")]
const TENSOR_CORES_OF_FLOATS: (u32, u32) = (8, 9);

/// The product by the tensor cores of blocks, which read rows along `k`.
macro_rules! by_tensor_cores {
    ($product:ident, $stream:ident, [$large:expr, $adding:expr], $small:expr) => {{
        let [a, b] = $product.planes($stream, $product.turns())?;
        let (a, b) = (a.plane()?, b.plane()?);
        let (scales, offsets) = ($product.gemm.scales, $product.offsets);
        $product.by_tiles($stream, false, |Launch { grid, s, tile, c }| match tile {
            ProductTile::Large if adds(scales) => $adding($stream, grid, s, scales, offsets, a, b, c),
            ProductTile::Large => $large($stream, grid, s, scales, offsets, a, b, c),
            _ => $small($stream, grid, s, scales, offsets, a, b, c),
        })
    }};
}

impl Multiplied<i32> for i8 {
    fn gemm(stream: &Stream, product: Product<i8, i32>) -> Result<()> {
        use integers::{multiply_large, multiply_small};
        if stream.device().compute_capability() < Some(TENSOR_CORES) {
            let Product { gemm, shape, offsets } = product;
            let sums = sums_of_wider(stream, &gemm, shape, offsets)?;
            let (grid, width, c) =
                (cover(&sums), [gemm.c.width() as u64, gemm.c.pitch() as u64], gemm.c.span());
            let [alpha, beta] = gemm.scales;
            return pack::kernels::store_integers(
                stream,
                grid,
                width,
                alpha,
                beta,
                offsets,
                sums.view(),
                c.into_atomic(),
            );
        }
        by_tensor_cores!(product, stream, [multiply_large::<false>, multiply_large::<true>], multiply_small)
    }
}

#[cfg(feature = "half")]
macro_rules! multiplied {
    ($($t:ident as $c:ident: $by_wider_copies:ident;)*) => { $(
        impl Multiplied<$c> for $t {
            fn gemm(stream: &Stream, product: Product<$t, $c>) -> Result<()> {
                use narrow_floats::{multiply_large, multiply_small};
                if stream.device().compute_capability() < Some(TENSOR_CORES_OF_FLOATS) {
                    return $by_wider_copies(stream, product);
                }
                by_tensor_cores!(product, stream, [multiply_large::<$t, $c, false>, multiply_large::<$t, $c, true>], multiply_small::<$t, $c>)
            }
        }
    )* };
}
#[cfg(feature = "half")]
multiplied! {
    f8e4m3 as f32: to_singles;
    f8e4m3 as bf16: to_halves;
    f8e5m2 as f32: to_singles;
    f8e5m2 as bf16: to_halves;
}

/// The product of wider copies.
#[cfg(feature = "half")]
fn to_singles<T: Widened<Wide = f32, Scale = f32>>(stream: &Stream, product: Product<T, f32>) -> Result<()> {
    let Product { gemm, shape, offsets } = product;
    let Gemm { factors, c, are_transposed, scales, batches, groups, is_tf32 } = gemm;
    let [a, b] = wider(stream, factors)?;
    let factors = views(factors, [&a, &b])?;
    let gemm = Gemm { factors, c, are_transposed, scales, batches, groups, is_tf32 };
    f32::gemm(stream, Product { gemm, shape, offsets })
}

/// The rounded product of wider copies.
#[cfg(feature = "half")]
fn to_halves<T: Widened<Wide = f32, Scale = f32>>(stream: &Stream, product: Product<T, bf16>) -> Result<()> {
    let Product { gemm, shape, offsets } = product;
    let sums = sums_of_wider(stream, &gemm, shape, offsets)?;
    store_sums(stream, &sums, 1, gemm.scales, offsets, gemm.c)
}

/// An element with wider ones whose products and sums are exact enough.
trait Widened:
    Factor + Narrow<Wide: Multiplied<Scale = Self::Wide> + Element> + pack::kernels::copy_wider::Instance
{
}
impl<T: Factor + Narrow<Wide: Multiplied<Scale = T::Wide> + Element> + pack::kernels::copy_wider::Instance>
    Widened for T
{
}

/// A thread for each element.
fn cover<T: DeviceCopy>(elements: &Temporary<T>) -> Grid<1> {
    Grid::blocks(elements.len().div_ceil(256))
}

/// Wider copies of factors, and of what is between their rows.
fn wider<T: Widened>(stream: &Stream, [a, b]: [PitchedView<T>; 2]) -> Result<[Temporary<T::Wide>; 2]> {
    let copy = |factor: PitchedView<T>| -> Result<_> {
        let elements = factor.span();
        let mut copy = stream.temporary(elements.len())?;
        if !elements.is_empty() {
            pack::kernels::copy_wider::<T>(stream, cover(&copy), elements, copy.view_mut())?;
        }
        Ok(copy)
    };
    Ok([copy(a)?, copy(b)?])
}

/// The copies as factors.
fn views<'w, T: DeviceCopy, W: DeviceCopy>(
    factors: [PitchedView<T>; 2],
    wide: [&'w Temporary<W>; 2],
) -> Result<[PitchedView<'w, W>; 2]> {
    let view = |which: usize| {
        let factor: PitchedView<T> = factors[which];
        wide[which].view().pitched(factor.width(), factor.height(), factor.pitch())
    };
    Ok([view(0)?, view(1)?])
}

/// The product of wider copies, without scales, in dense rows.
fn sums_of_wider<T: Widened, C: DeviceCopy>(
    stream: &Stream,
    &Gemm { factors, are_transposed, batches, groups, .. }: &Gemm<T, C>,
    shape @ [rows, columns, _]: [usize; 3],
    offsets: DeviceView<u32>,
) -> Result<Temporary<T::Wide>> {
    let [a, b] = wider(stream, factors)?;
    let mut sums = stream.temporary(rows * batches * columns)?;
    let c = sums.view_mut().pitched(columns, rows * batches, columns)?;
    let (factors, scales) = (views(factors, [&a, &b])?, [T::Wide::ONE, T::Wide::ZERO]);
    let gemm = Gemm { factors, c, are_transposed, scales, batches, groups, is_tf32: false };
    T::Wide::gemm(stream, Product { gemm, shape, offsets })?;
    Ok(sums)
}
