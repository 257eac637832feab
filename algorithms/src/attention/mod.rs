//! Attention of 16-bit floats, with the scores in registers: `kernels` and `tiled` have it by tensor cores, `slices` that of few queries, and `gradients` what
//! training needs.

pub(crate) mod gradients;
pub(crate) mod kernels;
pub(crate) mod slices;
pub(crate) mod tiled;

use ferrogrid_device::Aligned16;
use ferrogrid_device::half::{bf16, f16};
use ferrogrid_device::matrix::RowGroups;
use ferrogrid_host::__private::processors;
use ferrogrid_host::{PitchedView, PitchedViewMut};

use crate::number::numbers::Element;
use crate::{DeviceAtomicView, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use gradients::kernels::kernels::{
    of_keys_64, of_keys_128, of_keys_256, of_queries_64, of_queries_128, of_queries_256,
};
use gradients::kernels::steps::prepare;
use gradients::tiled::kernels::{
    of_both_tiles_64, of_both_tiles_128, of_keys_tiles_64, of_keys_tiles_128, of_queries_tiles_64,
    of_queries_tiles_128, round_queries,
};
pub use gradients::{AttentionGradients, AttentionPass, attention_gradients, attention_with_log_sums};
use kernels::kernels::{attend_64, attend_128, attend_256};
use kernels::steps::{self, Sizes};
use slices::kernels::combine;
use tiled::kernels::{self as tiles, attend_many_64, attend_tiles_64, attend_tiles_128, attend_tiles_256};

/// A number whose attention is computed: `f16` or `bf16`.
#[diagnostic::on_unimplemented(
    message = "attention is not computed for `{Self}`",
    label = "expected `f16` or `bf16`"
)]
pub trait Attended:
    Element
    + attend_64::Instance
    + attend_128::Instance
    + attend_256::Instance
    + combine::Instance
    + attend_many_64::Instance
    + attend_tiles_64::Instance
    + attend_tiles_128::Instance
    + attend_tiles_256::Instance
    + prepare::Instance
    + of_keys_64::Instance
    + of_keys_128::Instance
    + of_queries_64::Instance
    + of_queries_128::Instance
    + of_keys_256::Instance<0>
    + of_keys_256::Instance<1>
    + of_queries_256::Instance
    + of_keys_tiles_64::Instance
    + of_keys_tiles_128::Instance
    + of_queries_tiles_64::Instance
    + of_queries_tiles_128::Instance
    + of_both_tiles_64::Instance
    + of_both_tiles_128::Instance
    + round_queries::Instance
{
}
impl Attended for f16 {}
impl Attended for bf16 {}

/// The shape of an [`attention`], and its mask.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'s> {
    heads: usize,
    key_heads: usize,
    size: usize,
    is_causal: bool,
    scale: Option<f32>,
    adds_in_any_order: bool,
    /// Where the sequences of queries and of keys begin, and the end of the last ones.
    sequences: Option<[DeviceView<'s, u32>; 2]>,
}

impl<'s> Attention<'s> {
    /// Attention without a mask, of `heads` heads in all batches, whose rows have `size` elements. Scores are multiplied by
    /// `1 / sqrt(size)`.
    #[must_use]
    pub fn new(heads: usize, size: usize) -> Self {
        Attention {
            heads,
            key_heads: heads,
            size,
            is_causal: false,
            scale: None,
            adds_in_any_order: false,
            sequences: None,
        }
    }

    /// The heads of keys and values in all batches, which divide the others: each is used by as many neighbouring heads of queries
    /// (grouped-query attention).
    #[must_use]
    pub fn key_heads(self, key_heads: usize) -> Self {
        Attention { key_heads, ..self }
    }

    /// Query `i` sees keys 0 to `i + keys - queries`: the last one sees all (FlashAttention's `causal`, PyTorch's `causal_lower_right`).
    #[must_use]
    pub fn causal(self) -> Self {
        Attention { is_causal: true, ..self }
    }

    /// Multiplies scores by `scale`, a positive number, in place of `1 / sqrt(size)`.
    #[must_use]
    pub fn scale(self, scale: f32) -> Self {
        Attention { scale: Some(scale), ..self }
    }

    /// Allows [`attention_gradients`] to add the gradients of queries in any order (what FlashAttention and cuDNN do unless they are asked to be
    /// deterministic): their bits may differ in each run. On GPUs of compute capability 9.0 it multiplies scores once, in place of twice, with
    /// heads of up to 128 elements, if keys and queries are multiples of 128 (queries of 64, with more than 64 elements); a temporary matrix has 4
    /// bytes for each element of the queries.
    #[must_use]
    pub fn any_order(self) -> Self {
        Attention { adds_in_any_order: true, ..self }
    }

    /// Heads have the rows of several sequences, one after the other, each of which attends to itself alone (FlashAttention's
    /// `flash_attn_varlen_func`, with `cu_seqlens_q` and `cu_seqlens_k`). Tensors are `[rows, heads, size]` or `[heads, rows, size]` then. `queries` and `keys` have the
    /// first row of each sequence, and the end of the last one: one number more than there are sequences. Rows of no sequence are left as they
    /// are. If offsets do not ascend, or exceed the rows of a head, the kernel panics.
    ///
    /// ```
    /// # use ferrogrid_host::{Device, Result};
    /// # fn main() -> Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// # use ferrogrid_algorithms as algorithms;
    /// use algorithms::Attention;
    /// use ferrogrid_device::half::f16;
    ///
    /// // Two sequences: two queries with two keys, and one query with three.
    /// let (of_queries, of_keys) = (stream.upload(&[0_u32, 2, 3])?, stream.upload(&[0_u32, 2, 5])?);
    /// let (q, k) = (stream.fill(f16::ONE, 3 * 8)?, stream.fill(f16::ONE, 5 * 8)?);
    /// let v = stream.upload(&(0..5 * 8).map(|i| f16::from_f32((i / 8) as f32)).collect::<Vec<_>>())?;
    /// let mut y = stream.zeros(3 * 8)?;
    /// let attention = Attention::new(1, 8).sequences(of_queries.view(), of_keys.view());
    /// let [q, k, v] = [q.view_2d(8, 3)?, k.view_2d(8, 5)?, v.view_2d(8, 5)?];
    /// algorithms::attention(&stream, q, k, v, y.view_2d_mut(8, 3)?, attention)?;
    /// let rows: Vec<f32> = stream.download(&y)?.iter().step_by(8).map(|y| y.to_f32()).collect();
    /// assert_eq!(rows, [0.5, 0.5, 3.0]); // the means of values 0 and 1, and of 2 to 4
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn sequences(self, queries: DeviceView<'s, u32>, keys: DeviceView<'s, u32>) -> Self {
        Attention { sequences: Some([queries, keys]), ..self }
    }

    /// The offsets of sequences for queries and keys: nothing, of `q`, if heads have no sequences.
    fn offsets<'v, T: Attended>(&self, q: PitchedView<'v, T>) -> Result<[DeviceView<'v, u32>; 2]>
    where
        's: 'v,
    {
        let Some([queries, keys]) = self.sequences else { return Ok([q.span().slice(..0)?.cast()?; 2]) };
        expect_equal("attention, offsets of queries and keys", queries.len(), keys.len())?;
        if queries.is_empty() {
            let expected = "one number more than there are sequences";
            return Err(argument_error("the offsets of sequences", "none".into(), expected));
        }
        Ok([queries, keys])
    }

    /// The blocks for tiles of so many rows, of those of a head.
    fn grid(&self, heads: usize, rows: u32, tile: usize) -> Grid<1> {
        let rows = rows as usize;
        let of_head = match self.sequences {
            Some([offsets, _]) => RowGroups::most_tiles(offsets.len() - 1, rows, tile),
            None => rows.div_ceil(tile),
        };
        Grid::blocks(of_head * heads)
    }

    /// What the kernels take for queries and keys.
    fn sizes<T: Attended>(&self, queries: PitchedView<T>, keys: PitchedView<T>) -> Result<Sizes> {
        let Attention { heads, key_heads, size, is_causal, scale, .. } = *self;
        let refused =
            |argument, value: String, expected| Err(argument_error(argument, value.into(), expected));
        if size == 0 || size > MOST || !size.is_multiple_of(8) {
            return refused("the size of a head", size.to_string(), "a multiple of 8 from 8 to 256");
        }
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            let value = format!("{key_heads} for {heads} heads of queries");
            return refused("the heads of keys", value, "a number that divides those of queries");
        }
        let scale = scale.unwrap_or_else(|| 1.0 / (size as f32).sqrt());
        if !scale.is_finite() || scale <= 0.0 {
            return refused("the scale", scale.to_string(), "a positive number");
        }
        let (queries, beside) = self.rows("the queries", queries, heads)?;
        let (keys, keys_beside) = self.rows("the keys", keys, key_heads)?;
        Ok(Sizes {
            queries,
            keys,
            sharing: (heads / key_heads) as u32,
            groups: (size / 8) as u32,
            beside: [beside, keys_beside],
            slices: 1,
            is_causal,
            scale,
        })
    }

    /// The rows of each of so many heads in a tensor, and how many heads are beside each other.
    fn rows<T: Attended>(
        &self,
        what: &'static str,
        tensor: PitchedView<T>,
        heads: usize,
    ) -> Result<(u32, u32)> {
        let (width, height, size) = (tensor.width(), tensor.height(), self.size);
        if width == 0 || height == 0 {
            return Ok((0, 1));
        }
        let beside = width / size;
        let rows = (height * beside).checked_div(heads).unwrap_or(0);
        let are_whole = width == beside * size && height * beside == rows * heads;
        match (u32::try_from(rows), u32::try_from(beside)) {
            (Ok(rows), Ok(beside)) if are_whole && heads.is_multiple_of(beside as usize) => {
                Ok((rows, beside))
            }
            _ => Err(argument_error(
                what,
                format!("{height} rows of {width} elements for {heads} heads of size {size}").into(),
                "heads beside or below each other, with equally many rows, fewer than 2^32",
            )),
        }
    }
}

/// The elements of a tensor in groups of 16 bytes, and those from the start of a row to that of the next.
fn groups<'v, T: Attended>(
    tensor: PitchedView<'v, T>,
    what: &'static str,
) -> Result<(DeviceView<'v, Aligned16<[T; 8]>>, u32)> {
    Ok((tensor.span().as_aligned16()?, pitch(tensor.pitch(), what)?))
}

/// The groups of 16 bytes in so many elements from the start of a row to that of the next.
fn pitch(elements: usize, what: &'static str) -> Result<u32> {
    match u32::try_from(elements / 8) {
        Ok(groups) if elements.is_multiple_of(8) => Ok(groups),
        _ => {
            let expected = "a multiple of 8 elements, less than 2^35";
            Err(argument_error(what, format!("{elements} elements").into(), expected))
        }
    }
}

/// The greatest size of a head.
const MOST: usize = 256;
/// The bytes of keys and values that are read again and again: a third of the cache (L2) of an H100 or H200.
const CACHED: usize = 16 << 20;

fn argument_error(argument: &'static str, value: Box<str>, expected: &'static str) -> Error {
    Error::Argument { function: "attention", argument, value, expected }
}

/// Writes `softmax(scale q k^T) v` to `y` for each head (PyTorch's `scaled_dot_product_attention`, FlashAttention): the means of values,
/// weighted by how well each query fits the keys. No matrix of scores is in memory.
///
/// Tensors are matrices: of heads below each other, `[batches, heads, rows, size]`, in rows of `size` elements; or of heads beside each other,
/// `[batches, rows, heads, size]` (FlashAttention's layout), in rows of `heads / batches * size` elements. They may be parts of a matrix with a pitch,
/// as where queries, keys and values of a token are beside each other; rows begin at multiples of 16 bytes. Queries and results have a row
/// for each query, keys and values one for each key. Scores and sums are `f32`; weights are rounded to `T` before values are multiplied, and
/// results once; twice for so few queries that blocks share the keys of a head. A query that sees no key gets zeros.
///
/// On GPUs from compute capability 8.0 on it is computed by tensor cores (PTX `mma.sync`, `cp.async`; on 9.0 `wgmma` and tensor maps, if keys
/// are a multiple of 128, and heads beside each other have 64, 128 or 256 elements).
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Attention;
/// use ferrogrid_device::half::f16;
///
/// // Two heads of three queries, which share the two keys of one head.
/// let q = stream.fill(f16::ONE, 2 * 3 * 8)?;
/// let k = stream.fill(f16::ONE, 2 * 8)?;
/// let v = stream.upload(&(0..2 * 8).map(|i| f16::from_f32((i / 8) as f32)).collect::<Vec<_>>())?;
/// let mut y = stream.zeros(2 * 3 * 8)?;
/// let attention = Attention::new(2, 8).key_heads(1).causal();
/// let (k, v) = (k.view_2d(8, 2)?, v.view_2d(8, 2)?);
/// algorithms::attention(&stream, q.view_2d(8, 2 * 3)?, k, v, y.view_2d_mut(8, 2 * 3)?, attention)?;
/// // The first query of a head sees no key, the second one the first, and the third both.
/// let rows: Vec<f32> = stream.download(&y)?.iter().step_by(8).map(|y| y.to_f32()).collect();
/// assert_eq!(rows, [0.0, 0.0, 0.5, 0.0, 0.0, 0.5]);
///
/// // The same heads beside each other.
/// algorithms::attention(&stream, q.view_2d(2 * 8, 3)?, k, v, y.view_2d_mut(2 * 8, 3)?, attention)?;
/// let rows: Vec<f32> = stream.download(&y)?.iter().step_by(8).map(|y| y.to_f32()).collect();
/// assert_eq!(rows, [0.0, 0.0, 0.0, 0.0, 0.5, 0.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::Argument` for a size that is no multiple of 8 up to 256, for heads of keys that do not divide those of queries, for tensors
/// whose rows are not as many for each head, or begin at others than multiples of 16 bytes, and for a scale that is not positive; `Error::ShapeMismatch` if keys and values, or
/// queries and results, differ in shape; that of [`DeviceView::as_aligned16`](crate::DeviceView::as_aligned16) for a tensor that does
/// not begin at a multiple of 16 bytes; `Error::LengthMismatch` for sequences of queries that are not as many as those of keys, and
/// `Error::Argument` without their end; and those of a launch, as for a GPU before compute capability 8.0, or for a device with less than
/// the 87 KiB of shared memory that a block takes if heads have more than 64 elements (up to 64 it takes 45 KiB).
pub fn attention<'a, 'y, T: Attended>(
    stream: &Stream,
    q: impl Into<PitchedView<'a, T>>,
    k: impl Into<PitchedView<'a, T>>,
    v: impl Into<PitchedView<'a, T>>,
    y: impl Into<PitchedViewMut<'y, T>>,
    attention: Attention,
) -> Result<()> {
    attend(stream, [q.into(), k.into(), v.into()], y.into(), None, attention)
}

/// As [`attention`], which also writes the logarithms of sums if they are asked for.
fn attend<T: Attended>(
    stream: &Stream,
    [q, k, v]: [PitchedView<T>; 3],
    y: PitchedViewMut<T>,
    log_sums: Option<DeviceViewMut<f32>>,
    attention: Attention,
) -> Result<()> {
    expect_shape("attention, keys and values", extent(k), extent(v))?;
    expect_shape("attention, queries and results", extent(q), [y.width(), y.height()])?;
    let sizes = attention.sizes(q, k)?;
    let pitch = pitch(y.pitch(), "the pitch of the results")?;
    if let Some(log_sums) = &log_sums {
        let queries = sizes.queries as usize * attention.heads;
        expect_equal("attention, queries and logarithms of sums", queries, log_sums.len())?;
    }
    let offsets = attention.offsets(q)?;
    if sizes.queries == 0 || offsets[0].len() == 1 {
        return Ok(());
    }
    let work = Work { attention, sizes, offsets, q, k, v, pitch }.with_heads_as_queries(&y);
    let slices = work.slices(stream)?;
    let (none, y) = y.span().split_at(0)?;
    let log_sums = log_sums.map_or_else(|| none.cast(), Ok)?.into_atomic();
    if slices > 1 { work.in_slices(stream, slices, y, log_sums) } else { work.launch(stream, y, log_sums) }
}

/// Attention that is to be computed.
#[derive(Clone, Copy)]
struct Work<'v, 's, T: Attended> {
    attention: Attention<'s>,
    sizes: Sizes,
    offsets: [DeviceView<'v, u32>; 2],
    q: PitchedView<'v, T>,
    k: PitchedView<'v, T>,
    v: PitchedView<'v, T>,
    /// That of the results.
    pitch: u32,
}

impl<T: Attended> Work<'_, '_, T> {
    /// The keys that the kernels of tiles read at once.
    fn keys_of_tile(&self) -> usize {
        if self.attention.size <= 128 { tiles::KEYS } else { tiles::KEYS_OF_256 }
    }

    /// The queries that a block of these kernels has. In a tile of many each takes some 5/6 of the time, but more of the last tile may be empty.
    fn queries_of_tile(&self) -> usize {
        let in_tiles_of = |queries: usize| (self.sizes.queries as usize).next_multiple_of(queries);
        let has_many = self.attention.size <= 64
            && 5 * in_tiles_of(tiles::MANY_QUERIES) < 6 * in_tiles_of(tiles::QUERIES);
        if has_many { tiles::MANY_QUERIES } else { tiles::QUERIES }
    }

    /// Whether the kernels of tiles compute it.
    fn has_tiles(&self, stream: &Stream) -> bool {
        let keys = [(self.sizes.keys, self.keys_of_tile())];
        self.offsets[0].is_empty() && has_tiles(stream, self.sizes, &keys, [self.q, self.k])
    }

    /// The tiles of so many queries, of all heads and slices of the keys.
    fn blocks(&self, queries: usize) -> usize {
        let Work { attention, sizes, .. } = self;
        attention.heads * sizes.slices as usize * (sizes.queries as usize).div_ceil(queries)
    }

    /// What the kernels of tiles take. With a causal mask, tiles differ in length: blocks end together if they take the longest ones first, of as
    /// many heads as have their keys and values in the cache.
    fn tiles(&self) -> tiles::Tiles {
        let Work { attention: Attention { heads, key_heads, size, .. }, sizes, .. } = *self;
        let of_keys = 2 * sizes.keys as usize * size * size_of::<T>();
        let most = if sizes.is_causal { (CACHED / of_keys.max(1)).clamp(1, key_heads) } else { 1 };
        // As many each time: if few were left, long tiles would come last.
        let of_these = (1..=most).rev().find(|it| key_heads.is_multiple_of(*it)).unwrap_or(1);
        tiles::Tiles { sizes, heads: heads as u32, together: of_these as u32 * sizes.sharing }
    }

    fn launch(self, stream: &Stream, y: DeviceViewMut<T>, log_sums: DeviceAtomicView<f32>) -> Result<()> {
        let Work { attention, sizes, offsets: [of_queries, of_keys], q, k, v, pitch } = self;
        let size = attention.size;
        if self.has_tiles(stream) {
            // One block fits on a multiprocessor, and takes a tile after the other: the next one is copied while the last is computed.
            let queries = self.queries_of_tile();
            let (blocks, tiles) = (processors(stream)?, self.blocks(queries));
            let mut counter = (tiles > blocks).then(|| stream.temporary::<u32>(1)).transpose()?;
            if let Some(counter) = &mut counter {
                stream.fill_into(0, counter.view_mut())?;
            }
            let (none, y) = y.cast::<u64>()?.split_at(0)?;
            let taken = counter.as_mut().map_or_else(|| none.cast(), |counter| Ok(counter.view_mut()))?;
            let (grid, tiles) = (Grid::blocks(blocks.min(tiles)), self.tiles());
            let (taken, y) = (taken.into_atomic(), y.into_atomic());
            return match size {
                ..=64 if queries == tiles::MANY_QUERIES => {
                    attend_many_64::<T>(stream, grid, tiles, taken, pitch, q, k, v, y, log_sums)
                }
                ..=64 => attend_tiles_64::<T>(stream, grid, tiles, taken, pitch, q, k, v, y, log_sums),
                65..=128 => attend_tiles_128::<T>(stream, grid, tiles, taken, pitch, q, k, v, y, log_sums),
                _ => attend_tiles_256::<T>(stream, grid, tiles, taken, pitch, q, k, v, y, log_sums),
            };
        }
        let ((q, of_q), (k, of_k), (v, of_v)) = (
            groups(q, "the pitch of the queries")?,
            groups(k, "the pitch of the keys")?,
            groups(v, "the pitch of the values")?,
        );
        let pitches = [of_q, of_k, of_v, pitch];
        let grid =
            |queries: usize| attention.grid(attention.heads * sizes.slices as usize, sizes.queries, queries);
        let [grid, grid_of_256] = steps::QUERIES.map(grid);
        let y = y.cast::<u32>()?.into_atomic();
        match size {
            ..=64 => attend_64::<T>(stream, grid, sizes, pitches, of_queries, of_keys, q, k, v, y, log_sums),
            65..=128 => {
                attend_128::<T>(stream, grid, sizes, pitches, of_queries, of_keys, q, k, v, y, log_sums)
            }
            _ => {
                let grid = grid_of_256;
                attend_256::<T>(stream, grid, sizes, pitches, of_queries, of_keys, q, k, v, y, log_sums)
            }
        }
    }
}

/// Width and height.
fn extent<T: Attended>(tensor: PitchedView<T>) -> [usize; 2] {
    [tensor.width(), tensor.height()]
}

fn expect_shape(operation: &'static str, from: [usize; 2], to: [usize; 2]) -> Result<()> {
    if from == to { Ok(()) } else { Err(Error::ShapeMismatch { operation, from, to }) }
}

fn expect_equal(operation: &'static str, source_length: usize, target_length: usize) -> Result<()> {
    if source_length == target_length {
        return Ok(());
    }
    Err(Error::LengthMismatch { operation, source_length, target_length })
}

/// Whether the kernels of tiles can be used for queries and keys. They multiply whole tiles of others, also by weights of 0: of each kind that is
/// read, how many a head has, and how many are read at once. Tiles of heads that are beside each other have all elements of one.
fn has_tiles<T: Attended>(
    stream: &Stream,
    sizes: Sizes,
    others: &[(u32, usize)],
    tensors: [PitchedView<T>; 2],
) -> bool {
    let is_of_90 = matches!(stream.device().compute_capability(), Some((9, 0)));
    let are_whole = others.iter().all(|&(len, tile)| len > 0 && (len as usize).is_multiple_of(tile));
    let has_columns = sizes.beside == [1, 1] || matches!(sizes.groups, 8 | 16 | 32);
    let are_aligned = tensors.iter().all(|it| it.pitch().is_multiple_of(8) && it.height() < 1 << 30);
    is_of_90 && are_whole && has_columns && are_aligned
}
