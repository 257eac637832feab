//! The kernels of attention by products of a block.

/// The kernels of GPUs that multiply tiles: for heads whose keys are a multiple of [`KEYS`](kernels::KEYS).
#[ferrogrid::module(arch = ["sm_90a"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{HalfElement, OnlineSoftmax, ProductSums, RowValues, TwoProducts};
    use ferrogrid::device::prelude::*;

    use crate::attention::kernels::steps::{Rows, Sizes, TensorElement};

    /// The queries of a block.
    pub const QUERIES: usize = 128;
    /// Those of heads of up to 64 elements, unless too much of the last tile would be empty: with three groups of threads, tensor cores wait
    /// less for weights.
    pub const MANY_QUERIES: usize = 192;
    /// The keys that are read at once.
    pub const KEYS: usize = 128;
    /// Those of heads of up to 256 elements, for whose sums a thread has the registers then.
    pub const KEYS_OF_256: usize = 64;

    /// An element of both.
    pub trait TiledElement: TensorElement + HalfElement {}

    impl<T: TensorElement + HalfElement> TiledElement for T {}

    /// As `steps::attend`; rows of the results are fours of elements.
    #[inline(always)]
    fn attend_tiles<
        T: TiledElement,
        const QUERIES: usize,
        const KEYS: usize,
        const D: usize,
        const S: usize,
        const ID: usize,
    >(
        t: &Thread<1>,
        s: Sizes,
        [q, k, v]: [TensorMap<T, 64, 64>; 3],
        (y, pitch): (&[DeviceAtomic<u64>], u32),
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS, D, S>, ID>,
    ) {
        let (slice, block) = s.slice(t);
        let place = s.place(block, QUERIES);
        let [queries, keys, groups] = [s.queries, s.keys, s.groups].map(|it| it as usize);
        let [row, group] = s.corner(0, place.head, queries);
        let row = row + place.first;
        let [first_key, group_of_keys] = s.corner(1, place.head / s.sharing as usize, keys);
        let (of_head, of_key_head) = (group * 8, group_of_keys * 8);
        let factors = [(q, of_head), (k, of_key_head), (v, of_key_head)]
            .map(|(tensor, first)| tensor.columns(first, groups * 8));
        let of_slice = log_sums.len() / (s.slices as usize).max(1);
        let first_query = slice * of_slice + place.head * queries + place.first;
        let corner = if s.slices > 1 { [first_query, 0] } else { [row, group] };
        let results = Rows { corner, pitch: pitch as usize, len: queries - place.first, groups };
        let [first_step, end] = s.steps_of(slice, place.seen.div_ceil(KEYS));
        let (warp, steps) = (t.warp(), end - first_step);
        let weigh =
            |(softmax, shrunk): &mut (OnlineSoftmax, _), step: usize, scores: &mut ProductSums<KEYS>| {
                let step = first_step + step;
                let most = s.most_ahead(place.first, step * KEYS);
                if most < KEYS as i32 {
                    scores.mask_above(most, f32::NEG_INFINITY);
                }
                *shrunk = softmax.step(&warp, scores);
            };
        let shrink = |(_, shrunk): &mut (_, RowValues<f32>), sums: &mut ProductSums<D>| {
            sums.map_rows(shrunk, |sum, shrunk| sum * shrunk);
        };
        let finish = |(softmax, _): (OnlineSoftmax, _), mut sums: ProductSums<D>| {
            sums.map_rows(&softmax.factors(), |sum, factor| sum * factor);
            sums.for_each_row(&softmax.log_sums(), |row, log_sum| {
                if let Some(to) = log_sums.get(first_query + row).filter(|_| row < results.len) {
                    to.store(log_sum, Relaxed);
                }
            });
            write_rows::<T, D>(t, results, &sums, y);
        };
        let kept = (OnlineSoftmax::new(s.scale), RowValues::splat(1.0));
        let first_key = first_key + first_step * KEYS;
        t.multiply_twice(memory, factors, [row, first_key], steps, kept, weigh, shrink, finish);
    }

    /// Writes sums to rows of a tensor.
    #[inline(always)]
    pub fn write_rows<T: TiledElement, const D: usize>(
        t: &Thread<1>,
        rows: Rows,
        sums: &ProductSums<D>,
        to: &[DeviceAtomic<u64>],
    ) {
        sums.for_each_four(&t.warp(), |row| {
            let start = rows.place(row, 0) * 2;
            let to = to.get(start..start + rows.groups * 2).filter(|_| row < rows.len).unwrap_or_default();
            let store = move |four: usize, bits| {
                if let Some(to) = to.get(four) {
                    to.store(bits, Relaxed);
                }
            };
            (|_, pair| T::pair_to_bits(pair), store)
        });
    }

    /// Heads of up to 64 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn attend_tiles_64<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS, 64, 4>>,
    ) {
        attend_tiles(&t, s, [q, k, v], (y, pitch), log_sums, memory);
    }

    /// The same with more queries.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1, T = [f16, bf16])]
    pub fn attend_many_64<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, MANY_QUERIES, KEYS, 64, 4>>,
    ) {
        attend_tiles(&t, s, [q, k, v], (y, pitch), log_sums, memory);
    }

    /// Heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn attend_tiles_128<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS, 128, 4>>,
    ) {
        attend_tiles(&t, s, [q, k, v], (y, pitch), log_sums, memory);
    }

    /// Heads of up to 256 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn attend_tiles_256<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS_OF_256, 256, 4>>,
    ) {
        attend_tiles(&t, s, [q, k, v], (y, pitch), log_sums, memory);
    }
}
