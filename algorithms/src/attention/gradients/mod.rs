//! The gradients of attention, which multiply scores again instead of keeping them.

pub(crate) mod kernels;
pub(crate) mod tiled;

use ferrogrid_host::{PitchedView, PitchedViewMut};

use super::{Attended, Attention, attend, expect_equal, expect_shape, extent, groups, has_tiles, pitch};
use crate::{DeviceOutput, DeviceView, Grid, Result, Stream};
use kernels::kernels::{of_keys_64, of_keys_128, of_keys_256, of_queries_64, of_queries_128, of_queries_256};
use kernels::steps::{LANES, ROWS, THREADS, prepare};
use tiled::kernels::{
    self as tiles, of_both_tiles_64, of_both_tiles_128, of_keys_tiles_64, of_keys_tiles_128,
    of_queries_tiles_64, of_queries_tiles_128, round_queries,
};

/// Computes [`attention`](super::attention), and writes the logarithm of the sum of `exp(scale * score)` of each query to `log_sums`
/// (FlashAttention's `softmax_lse`): what [`attention_gradients`] needs. A query that sees no key has minus infinity.
///
/// # Errors
/// As [`attention`](super::attention), and `Error::LengthMismatch` unless `log_sums` has an element for each query of each head: those of a head
/// follow each other, in any layout of the tensors.
pub fn attention_with_log_sums<'a, 'y, T: Attended>(
    stream: &Stream,
    q: impl Into<PitchedView<'a, T>>,
    k: impl Into<PitchedView<'a, T>>,
    v: impl Into<PitchedView<'a, T>>,
    y: impl Into<PitchedViewMut<'y, T>>,
    log_sums: impl DeviceOutput<'y, f32>,
    attention: Attention,
) -> Result<()> {
    let log_sums = Some(log_sums.into_output());
    attend(stream, [q.into(), k.into(), v.into()], y.into(), log_sums, attention)
}

/// An attention that was computed, and the gradient of its results: for [`attention_gradients`].
#[derive(Clone, Copy, Debug)]
pub struct AttentionPass<'a, T> {
    /// The queries.
    pub q: PitchedView<'a, T>,
    /// The keys.
    pub k: PitchedView<'a, T>,
    /// The values.
    pub v: PitchedView<'a, T>,
    /// The results.
    pub y: PitchedView<'a, T>,
    /// What [`attention_with_log_sums`] wrote of each query.
    pub log_sums: DeviceView<'a, f32>,
    /// The gradient of the results.
    pub dy: PitchedView<'a, T>,
}

/// Where [`attention_gradients`] writes.
#[derive(Debug)]
pub struct AttentionGradients<'g, T> {
    /// The gradient of the queries.
    pub dq: PitchedViewMut<'g, T>,
    /// The gradient of the keys.
    pub dk: PitchedViewMut<'g, T>,
    /// The gradient of the values.
    pub dv: PitchedViewMut<'g, T>,
}

/// Writes the gradients of an [`attention`](super::attention) (PyTorch's `scaled_dot_product_attention` backwards, FlashAttention): those of
/// queries, keys and values, of which a key's and a value's are sums over all heads that share them.
///
/// Shapes, mask and scale are those of the attention; each tensor may have a pitch of its own. Scores are multiplied again, so no matrix of scores is in memory; a temporary one has 8
/// bytes for each query. Weights, and gradients of scores, are rounded to `T` before they are multiplied; sums are `f32`, in the same order
/// in every run unless [`Attention::any_order`] allows others, and rounded once.
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
/// let (q, k, v) = (q.view_2d(8, 4)?, k.view_2d(8, 2)?, v.view_2d(8, 2)?);
/// algorithms::attention_with_log_sums(&stream, q, k, v, y.view_2d_mut(8, 4)?, &mut log_sums, shape)?;
///
/// let dy = stream.fill(f16::ONE, 4 * 8)?;
/// let (mut dq, mut dk, mut dv) = (stream.zeros(4 * 8)?, stream.zeros(2 * 8)?, stream.zeros(2 * 8)?);
/// let (y, dy) = (y.view_2d(8, 4)?.into(), dy.view_2d(8, 4)?.into());
/// let pass = AttentionPass { q: q.into(), k: k.into(), v: v.into(), y, log_sums: log_sums.view(), dy };
/// let (of_q, of_k, of_v) = (dq.view_2d_mut(8, 4)?, dk.view_2d_mut(8, 2)?, dv.view_2d_mut(8, 2)?);
/// let gradients = AttentionGradients { dq: of_q.into(), dk: of_k.into(), dv: of_v.into() };
/// algorithms::attention_gradients(&stream, pass, gradients, shape)?;
/// assert_eq!(stream.download(&dv)?, [f16::from_f32(2.0); 16]); // half of each of four rows
/// // More weight for the second key, whose values are greater.
/// let dk: Vec<f32> = stream.download(&dk)?.iter().step_by(8).map(|x| x.to_f32()).collect();
/// assert!(dk[0] < 0.0 && dk[1] == -dk[0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`attention_with_log_sums`], and `Error::ShapeMismatch` unless gradients have the shapes of what they belong to. A block takes up to
/// 70 KiB of shared memory, or 132 KiB if heads have more than 128 elements.
pub fn attention_gradients<T: Attended>(
    stream: &Stream,
    pass: AttentionPass<T>,
    gradients: AttentionGradients<T>,
    attention: Attention,
) -> Result<()> {
    let AttentionPass { q, k, v, y, log_sums, dy } = pass;
    let AttentionGradients { dq, dk, dv } = gradients;
    let sizes = attention.sizes(q, k)?;
    let (queries, size) = (sizes.queries as usize * attention.heads, attention.size);
    let [of_dq, of_dk, of_dv] = [&dq, &dk, &dv].map(|it| [it.width(), it.height()]);
    for (operation, from, to) in [
        ("attention_gradients, keys and values", extent(k), extent(v)),
        ("attention_gradients, queries and results", extent(q), extent(y)),
        ("attention_gradients, results and their gradient", extent(y), extent(dy)),
        ("attention_gradients, queries and their gradient", extent(q), of_dq),
        ("attention_gradients, keys and their gradient", extent(k), of_dk),
        ("attention_gradients, values and their gradient", extent(v), of_dv),
    ] {
        expect_shape(operation, from, to)?;
    }
    expect_equal("attention_gradients, queries and logarithms of sums", queries, log_sums.len())?;
    let [of_dq, of_dk, of_dv] = [
        pitch(dq.pitch(), "the pitch of the queries' gradient")?,
        pitch(dk.pitch(), "the pitch of the keys' gradient")?,
        pitch(dv.pitch(), "the pitch of the values' gradient")?,
    ];
    let [for_queries, for_keys] = attention.offsets(q)?;
    if for_queries.len() == 1 {
        return Ok(());
    }
    // Blocks read whole tiles, also beyond the last query.
    let padded = queries.next_multiple_of(4) + tiles::ROWS;
    let mut known = stream.temporary::<f32>(2 * padded)?;
    let grid = Grid::blocks((padded * LANES).div_ceil(THREADS));
    let (groups_of_y, of_y) = groups(y, "the pitch of the results")?;
    let (groups_of_dy, of_dy) = groups(dy, "the pitch of the results' gradient")?;
    let (to, to_means) = known.view_mut().split_at(padded)?;
    let (to, to_means) = (to.into_atomic(), to_means.into_atomic());
    prepare::<T>(stream, grid, sizes, [of_y, of_dy], groups_of_y, groups_of_dy, log_sums, to, to_means)?;
    let (log_sums, means) = known.view().split_at(padded)?;
    let values = known.view().into_2d(padded, 2)?;
    let of_keys = |tile| attention.grid(attention.key_heads, sizes.keys, tile);
    let of_queries = |tile| attention.grid(attention.heads, sizes.queries, tile);
    let others = [
        (sizes.queries, tiles::QUERIES),
        (sizes.keys, if size <= 64 { tiles::KEYS_64 } else { tiles::KEYS_128 }),
    ];
    if size <= 128 && for_queries.is_empty() && has_tiles(stream, sizes, &others, [q, k]) {
        let [dq, dk, dv] = [dq, dk, dv].map(|it| it.span().cast::<u64>());
        let (dq, dk, dv) = (dq?.into_atomic(), dk?.into_atomic(), dv?.into_atomic());
        let (of_keys, of_queries) = (of_keys(tiles::ROWS), of_queries(tiles::ROWS));
        macro_rules! launch {
            ($launch:ident, $grid:ident, $pitches:expr, $($more:ident),*) => {
                $launch::<T>(stream, $grid, sizes, $pitches, q, k, v, dy, $($more),*)
            };
        }
        // Rows of the next head would be added, too.
        let added = if size <= 64 { tiles::QUERIES_ADDED } else { tiles::QUERIES };
        let are_whole = (sizes.queries as usize).is_multiple_of(added)
            && (sizes.keys as usize).is_multiple_of(tiles::ROWS);
        if attention.adds_in_any_order && are_whole {
            let mut sums = stream.temporary::<f32>(queries * size)?;
            stream.fill_into(0.0, sums.view_mut())?;
            let to = sums.view_mut().into_2d(size, queries)?;
            if size <= 64 {
                launch!(of_both_tiles_64, of_keys, [of_dk, of_dv], values, dk, dv, to)?;
            } else {
                launch!(of_both_tiles_128, of_keys, [of_dk, of_dv], values, dk, dv, to)?;
            }
            let grid = Grid::cover(queries * size / 8);
            return round_queries::<T>(stream, grid, sizes, of_dq, sums.view().cast()?, dq);
        }
        if size <= 64 {
            launch!(of_keys_tiles_64, of_keys, [of_dk, of_dv], values, dk, dv)?;
            return launch!(of_queries_tiles_64, of_queries, [of_dq, 0], log_sums, means, dq);
        }
        launch!(of_keys_tiles_128, of_keys, [of_dk, of_dv], values, dk, dv)?;
        return launch!(of_queries_tiles_128, of_queries, [of_dq, 0], log_sums, means, dq);
    }
    let ((q, of_q), (k, of_k), (v, of_v)) = (
        groups(q, "the pitch of the queries")?,
        groups(k, "the pitch of the keys")?,
        groups(v, "the pitch of the values")?,
    );
    let [dq, dk, dv] = [dq, dk, dv].map(|it| it.span().cast::<u32>());
    let (dq, dk, dv) = (dq?.into_atomic(), dk?.into_atomic(), dv?.into_atomic());
    macro_rules! launch {
        ($launch:ident::<$($generic:tt),*>, $grid:ident, [$first:expr, $second:expr], $($to:ident),*) => {{
            let pitches = [of_q, of_k, of_v, of_dy, $first, $second];
            let (offsets_q, offsets_k, dy) = (for_queries, for_keys, groups_of_dy);
            $launch::<$($generic),*>(
                stream, $grid, sizes, pitches, offsets_q, offsets_k, q, k, v, dy, log_sums, means, $($to),*
            )
        }};
    }
    if !k.is_empty() {
        let grid = of_keys(ROWS);
        match size {
            ..=64 => launch!(of_keys_64::<T>, grid, [of_dk, of_dv], dk, dv)?,
            65..=128 => launch!(of_keys_128::<T>, grid, [of_dk, of_dv], dk, dv)?,
            _ => {
                launch!(of_keys_256::<T, 0>, grid, [of_dk, of_dv], dk)?;
                launch!(of_keys_256::<T, 1>, grid, [of_dk, of_dv], dv)?;
            }
        }
    }
    if queries == 0 {
        return Ok(());
    }
    let grid = of_queries(ROWS);
    match size {
        ..=64 => launch!(of_queries_64::<T>, grid, [of_dq, 0], dq),
        65..=128 => launch!(of_queries_128::<T>, grid, [of_dq, 0], dq),
        _ => launch!(of_queries_256::<T>, grid, [of_dq, 0], dq),
    }
}
