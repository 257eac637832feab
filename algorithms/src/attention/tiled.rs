//! The kernels of attention by products of a block.

/// The kernels of GPUs that multiply tiles: for heads whose keys are a multiple of [`KEYS`](kernels::KEYS).
#[ferrogrid::module(arch = ["sm_90a"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{
        HalfElement, OnlineSoftmax, ProductSums, RowValues, TwicePlace, TwoProducts,
    };
    use ferrogrid::device::prelude::*;

    use crate::attention::kernels::steps::{Place, Rows, Sizes, TensorElement};

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

    /// The tiles of queries, which blocks take as they come to them.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Tiles {
        pub sizes: Sizes,
        /// The heads of queries.
        pub heads: u32,
        /// Of so many of them the longest tiles come first, then the second longest ones, and so on.
        pub together: u32,
    }

    impl Tiles {
        /// Those of a head.
        #[inline(always)]
        fn of_head(self, queries: usize) -> u32 {
            self.sizes.queries.div_ceil(queries as u32)
        }

        /// Those of all heads, for each slice of the keys.
        #[inline(always)]
        fn count(self, queries: usize) -> u32 {
            self.of_head(queries) * self.heads * self.sizes.slices
        }

        /// The slice of the keys, and the place, of a tile.
        #[inline(always)]
        fn place(self, number: u32, queries: usize) -> (usize, Place) {
            // Nothing is 0, but divisions by what may be would panic.
            let (of_head, together) = (self.of_head(queries), self.together.max(1));
            let of_slice = (of_head * self.heads).max(1);
            let (slice, number) = (number / of_slice, number % of_slice);
            let of_these = (of_head * together).max(1);
            let (first, number) = (number / of_these * together, number % of_these);
            let heads = together.min(self.heads - first).max(1);
            let head = (first + number % heads) as usize;
            (slice as usize, self.sizes.place_of_tile(head, (number / heads) as usize, queries))
        }
    }

    /// What threads keep of a tile.
    struct Kept {
        number: u32,
        /// With a causal mask, by how much the first key's number may exceed that of the first query.
        most: i32,
        softmax: OnlineSoftmax,
        shrunk: RowValues<f32>,
    }

    /// As `steps::attend`, of a tile for each block, and others that are counted as they are taken; rows of the results are fours of elements.
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
        (tiles, taken): (Tiles, &[DeviceAtomic<u32>]),
        tensors: [TensorMap<T, 64, 64>; 3],
        (y, pitch): (&[DeviceAtomic<u64>], u32),
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS, D, S>, ID>,
    ) {
        let (s, warp) = (tiles.sizes, t.warp());
        let [queries, keys, groups] = [s.queries, s.keys, s.groups].map(|it| it as usize);
        let steps_of = |slice: usize, place: Place| s.steps_of(slice, place.seen.div_ceil(KEYS));
        let mut own = Some(t.block_idx()[0]);
        let places = core::iter::from_fn(|| {
            let number = match own.take() {
                Some(own) => own,
                None => t.grid_dim()[0] + taken.first()?.fetch_add(1, Relaxed),
            };
            if number >= tiles.count(QUERIES) {
                return None;
            }
            let (slice, place) = tiles.place(number, QUERIES);
            let ([row, group], [first_step, end]) =
                (s.corner(0, place.head, queries), steps_of(slice, place));
            let head_of_keys = place.head as u32 / s.sharing.max(1);
            let [start, group_of_keys] = s.corner(1, head_of_keys as usize, keys);
            Some(TwicePlace {
                row: row + place.first,
                start: start + first_step * KEYS,
                columns: [group * 8, group_of_keys * 8],
                steps: end - first_step,
                tag: number,
            })
        });
        let begin = |number: u32| {
            let most = if s.is_causal {
                let (slice, place) = tiles.place(number, QUERIES);
                s.most_ahead(place.first, steps_of(slice, place)[0] * KEYS)
            } else {
                i32::MAX
            };
            Kept { number, most, softmax: OnlineSoftmax::new(s.scale), shrunk: RowValues::splat(1.0) }
        };
        let weigh = |kept: &mut Kept, step: usize, scores: &mut ProductSums<KEYS>| {
            let most = kept.most - (step * KEYS) as i32;
            if s.is_causal && most < KEYS as i32 {
                scores.mask_above(most, f32::NEG_INFINITY);
            }
            kept.shrunk = kept.softmax.step(&warp, scores);
        };
        let shrink = |kept: &mut Kept, sums: &mut ProductSums<D>| {
            sums.map_rows(&kept.shrunk, |sum, shrunk| sum * shrunk);
        };
        let finish = |kept: Kept, mut sums: ProductSums<D>| {
            let (slice, place) = tiles.place(kept.number, QUERIES);
            let [row, group] = s.corner(0, place.head, queries);
            let of_slice = log_sums.len() / (s.slices as usize).max(1);
            let first_query = slice * of_slice + place.head * queries + place.first;
            let corner = if s.slices > 1 { [first_query, 0] } else { [row + place.first, group] };
            let results = Rows { corner, pitch: pitch as usize, len: queries - place.first, groups };
            sums.map_rows(&kept.softmax.factors(), |sum, factor| sum * factor);
            sums.for_each_row(&kept.softmax.log_sums(), |row, log_sum| {
                if let Some(to) = log_sums.get(first_query + row).filter(|_| row < results.len) {
                    to.store(log_sum, Relaxed);
                }
            });
            write_rows::<T, D>(t, results, &sums, y);
        };
        let factors = tensors.map(|tensor| tensor.columns(0, groups * 8));
        t.multiply_tiles_twice(memory, factors, places, begin, weigh, shrink, finish);
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
        tiles: Tiles,
        taken: &[DeviceAtomic<u32>],
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS, 64, 4>>,
    ) {
        attend_tiles(&t, (tiles, taken), [q, k, v], (y, pitch), log_sums, memory);
    }

    /// The same with more queries.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1, T = [f16, bf16])]
    pub fn attend_many_64<T: TiledElement>(
        t: Thread<1>,
        tiles: Tiles,
        taken: &[DeviceAtomic<u32>],
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, MANY_QUERIES, KEYS, 64, 4>>,
    ) {
        attend_tiles(&t, (tiles, taken), [q, k, v], (y, pitch), log_sums, memory);
    }

    /// Heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn attend_tiles_128<T: TiledElement>(
        t: Thread<1>,
        tiles: Tiles,
        taken: &[DeviceAtomic<u32>],
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS, 128, 4>>,
    ) {
        attend_tiles(&t, (tiles, taken), [q, k, v], (y, pitch), log_sums, memory);
    }

    /// Heads of up to 256 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn attend_tiles_256<T: TiledElement>(
        t: Thread<1>,
        tiles: Tiles,
        taken: &[DeviceAtomic<u32>],
        pitch: u32,
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        y: &[DeviceAtomic<u64>],
        log_sums: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, QUERIES, KEYS_OF_256, 256, 4>>,
    ) {
        attend_tiles(&t, (tiles, taken), [q, k, v], (y, pitch), log_sums, memory);
    }
}
