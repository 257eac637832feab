//! The gradients of attention, which multiply scores again instead of keeping them.

pub(crate) mod kernels;
pub(crate) mod tiled;

use super::{Attended, Attention, attend, expect_equal, has_tiles};
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};
use kernels::kernels::{of_keys_64, of_keys_128, of_keys_256, of_queries_64, of_queries_128, of_queries_256};
use kernels::steps::{LANES, ROWS, THREADS, prepare};
use tiled::kernels::{
    self as tiles, of_keys_tiles_64, of_keys_tiles_128, of_queries_tiles_64, of_queries_tiles_128,
};

/// Computes [`attention`](super::attention), and writes the logarithm of the sum of `exp(scale * score)` of each query to `log_sums`
/// (FlashAttention's `softmax_lse`): what [`attention_gradients`] needs. A query that sees no key has minus infinity.
///
/// # Errors
/// As [`attention`](super::attention), and `Error::LengthMismatch` unless `log_sums` has an element for each query of each head.
pub fn attention_with_log_sums<'a, 'y, T: Attended>(
    stream: &Stream,
    q: impl DeviceInput<'a, T>,
    k: impl DeviceInput<'a, T>,
    v: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'y, T>,
    log_sums: impl DeviceOutput<'y, f32>,
    attention: Attention,
) -> Result<()> {
    let log_sums = Some(log_sums.into_output());
    attend(stream, [q.into_input(), k.into_input(), v.into_input()], y.into_output(), log_sums, attention)
}

/// An attention that was computed, and the gradient of its results: for [`attention_gradients`].
#[derive(Clone, Copy, Debug)]
pub struct AttentionPass<'a, T> {
    /// The queries.
    pub q: DeviceView<'a, T>,
    /// The keys.
    pub k: DeviceView<'a, T>,
    /// The values.
    pub v: DeviceView<'a, T>,
    /// The results.
    pub y: DeviceView<'a, T>,
    /// What [`attention_with_log_sums`] wrote of each query.
    pub log_sums: DeviceView<'a, f32>,
    /// The gradient of the results.
    pub dy: DeviceView<'a, T>,
}

/// Where [`attention_gradients`] writes.
#[derive(Debug)]
pub struct AttentionGradients<'g, T> {
    /// The gradient of the queries.
    pub dq: DeviceViewMut<'g, T>,
    /// The gradient of the keys.
    pub dk: DeviceViewMut<'g, T>,
    /// The gradient of the values.
    pub dv: DeviceViewMut<'g, T>,
}

/// Writes the gradients of an [`attention`](super::attention) (PyTorch's `scaled_dot_product_attention` backwards, FlashAttention): those of
/// queries, keys and values, of which a key's and a value's are sums over all heads that share them.
///
/// Shapes, mask and scale are those of the attention. Scores are multiplied again, so no matrix of scores is in memory; a temporary one has 8
/// bytes for each query. Weights, and gradients of scores, are rounded to `T` before they are multiplied; sums are `f32`, in the same order
/// in every run, and rounded once.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::{Attention, AttentionGradients, AttentionPass};
/// use ferrogrid_device::half::f16;
///
/// let (q, k) = (stream.fill(f16::ONE, 4 * 8)?, stream.fill(f16::ONE, 2 * 8)?); // both keys have half of the weight
/// let v = stream.upload(&(0..2 * 8).map(|i| f16::from_f32((i / 8) as f32)).collect::<Vec<_>>())?;
/// let (mut y, mut log_sums) = (stream.zeros(4 * 8)?, stream.zeros(4)?);
/// let shape = Attention::new(1, 8);
/// algorithms::attention_with_log_sums(&stream, &q, &k, &v, &mut y, &mut log_sums, shape)?;
///
/// let dy = stream.fill(f16::ONE, 4 * 8)?;
/// let (mut dq, mut dk, mut dv) = (stream.zeros(4 * 8)?, stream.zeros(2 * 8)?, stream.zeros(2 * 8)?);
/// let pass = AttentionPass {
///     q: q.view(), k: k.view(), v: v.view(), y: y.view(), log_sums: log_sums.view(), dy: dy.view(),
/// };
/// let gradients = AttentionGradients { dq: dq.view_mut(), dk: dk.view_mut(), dv: dv.view_mut() };
/// algorithms::attention_gradients(&stream, pass, gradients, shape)?;
/// assert_eq!(stream.download(&dv)?, [f16::from_f32(2.0); 16]); // half of each of four rows
/// // More weight for the second key, whose values are greater.
/// let dk: Vec<f32> = stream.download(&dk)?.iter().step_by(8).map(|x| x.to_f32()).collect();
/// assert!(dk[0] < 0.0 && dk[1] == -dk[0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`attention_with_log_sums`], and `Error::LengthMismatch` unless gradients have the lengths of what they belong to. A block takes up to
/// 70 KiB of shared memory, or 132 KiB if heads have more than 128 elements.
pub fn attention_gradients<T: Attended>(
    stream: &Stream,
    pass: AttentionPass<T>,
    gradients: AttentionGradients<T>,
    attention: Attention,
) -> Result<()> {
    let AttentionPass { q, k, v, y, log_sums, dy } = pass;
    let AttentionGradients { dq, dk, dv } = gradients;
    let sizes = attention.sizes(q.len(), k.len())?;
    let (queries, size) = (sizes.queries as usize * attention.heads, attention.size);
    for (operation, source_length, target_length) in [
        ("attention_gradients, keys and values", k.len(), v.len()),
        ("attention_gradients, queries and results", q.len(), y.len()),
        ("attention_gradients, queries and logarithms of sums", queries, log_sums.len()),
        ("attention_gradients, results and their gradient", y.len(), dy.len()),
        ("attention_gradients, queries and their gradient", q.len(), dq.len()),
        ("attention_gradients, keys and their gradient", k.len(), dk.len()),
        ("attention_gradients, values and their gradient", v.len(), dv.len()),
    ] {
        expect_equal(operation, source_length, target_length)?;
    }
    let [for_queries, for_keys] = attention.offsets(q)?;
    if for_queries.len() == 1 {
        return Ok(());
    }
    // Blocks read whole tiles, also beyond the last query.
    let padded = queries.next_multiple_of(2) + tiles::ROWS;
    let (mut binary, mut means) = (stream.temporary::<f32>(padded)?, stream.temporary::<f32>(padded)?);
    let grid = Grid::blocks((padded * LANES).div_ceil(THREADS));
    let (of_rows, of_results) = (y.as_aligned16()?, dy.as_aligned16()?);
    let (to, to_means) = (binary.view_mut().into_atomic(), means.view_mut().into_atomic());
    prepare::<T>(stream, grid, sizes.groups, of_rows, of_results, log_sums, to, to_means)?;
    let (log_sums, means) = (binary.view(), means.view());
    let of_keys = |tile| attention.grid(attention.key_heads, sizes.keys, tile);
    let of_queries = |tile| attention.grid(attention.heads, sizes.queries, tile);
    let others = [
        (sizes.queries, tiles::QUERIES),
        (sizes.keys, if size <= 64 { tiles::KEYS_64 } else { tiles::KEYS_128 }),
    ];
    if size <= 128 && for_queries.is_empty() && has_tiles(stream, &others, q.len().max(k.len()) / size) {
        let [q, k, v, dy] = [q, k, v, dy].map(|it| it.into_2d(size, it.len() / size));
        let (q, k, v, dy) = (q?, k?, v?, dy?);
        let [dq, dk, dv] = [dq, dk, dv].map(|it| it.cast::<u64>());
        let (dq, dk, dv) = (dq?.into_atomic(), dk?.into_atomic(), dv?.into_atomic());
        let (log_sums, means) = (log_sums.cast()?, means.cast()?);
        let (of_keys, of_queries) = (of_keys(tiles::ROWS), of_queries(tiles::ROWS));
        if size <= 64 {
            of_keys_tiles_64::<T>(stream, of_keys, sizes, q, k, v, dy, log_sums, means, dk, dv)?;
            return of_queries_tiles_64::<T>(stream, of_queries, sizes, q, k, v, dy, log_sums, means, dq);
        }
        of_keys_tiles_128::<T>(stream, of_keys, sizes, q, k, v, dy, log_sums, means, dk, dv)?;
        return of_queries_tiles_128::<T>(stream, of_queries, sizes, q, k, v, dy, log_sums, means, dq);
    }
    let [q, k, v, dy] = [q, k, v, dy].map(|it| it.as_aligned16());
    let (q, k, v, dy) = (q?, k?, v?, dy?);
    let [dq, dk, dv] = [dq, dk, dv].map(|it| it.cast::<u32>());
    let (dq, dk, dv) = (dq?.into_atomic(), dk?.into_atomic(), dv?.into_atomic());
    if !k.is_empty() {
        let grid = of_keys(ROWS);
        match size {
            ..=64 => of_keys_64::<T>(
                stream,
                grid,
                sizes,
                for_queries,
                for_keys,
                q,
                k,
                v,
                dy,
                log_sums,
                means,
                dk,
                dv,
            )?,
            65..=128 => of_keys_128::<T>(
                stream,
                grid,
                sizes,
                for_queries,
                for_keys,
                q,
                k,
                v,
                dy,
                log_sums,
                means,
                dk,
                dv,
            )?,
            _ => {
                of_keys_256::<T, 0>(
                    stream,
                    grid,
                    sizes,
                    for_queries,
                    for_keys,
                    q,
                    k,
                    v,
                    dy,
                    log_sums,
                    means,
                    dk,
                )?;
                of_keys_256::<T, 1>(
                    stream,
                    grid,
                    sizes,
                    for_queries,
                    for_keys,
                    q,
                    k,
                    v,
                    dy,
                    log_sums,
                    means,
                    dv,
                )?;
            }
        }
    }
    if queries == 0 {
        return Ok(());
    }
    let grid = of_queries(ROWS);
    match size {
        ..=64 => {
            of_queries_64::<T>(stream, grid, sizes, for_queries, for_keys, q, k, v, dy, log_sums, means, dq)
        }
        65..=128 => {
            of_queries_128::<T>(stream, grid, sizes, for_queries, for_keys, q, k, v, dy, log_sums, means, dq)
        }
        _ => {
            of_queries_256::<T>(stream, grid, sizes, for_queries, for_keys, q, k, v, dy, log_sums, means, dq)
        }
    }
}
