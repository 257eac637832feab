//! Kernels of Fourier transforms of powers of two, by Stockham's algorithm: no pass needs its elements in another order.

/// The kernels.
///
/// A pass transforms columns of `1 << rows` elements, which lie as far apart in the input as they can, in shared memory, 4096 elements
/// in a block. The first pass of a transform of up to 4096 elements is its last one.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use core::f64::consts::TAU;

    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    use ferrogrid::device::prelude::*;

    use crate::sort::digits::kernels::each;

    /// The threads of a block.
    pub const THREADS: usize = 512;
    /// The elements of a thread.
    const ITEMS: usize = 8;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ITEMS;
    /// The binary logarithm of it.
    pub const TILE_LOG: u32 = TILE.ilog2();
    /// The elements of a block in shared memory: after each 32 one is left out, for other banks.
    const PADDED: usize = TILE + TILE / 32;

    /// A complex number: its real and its imaginary part.
    type Complex<T> = [T; 2];

    /// A real number of which there are complex ones, in words of 8 bytes.
    pub trait Part: Float + SharedElement + AtomicLoadStore {
        /// The complex number at `number`; 0 beyond the end.
        fn read(x: &[u64], number: usize) -> Complex<Self>;
        /// Writes it, if there is such a place.
        fn write(y: &[DeviceAtomic<u64>], number: usize, value: Complex<Self>);
    }

    impl Part for f32 {
        #[inline(always)]
        fn read(x: &[u64], number: usize) -> [f32; 2] {
            let word = x.get(number).copied().unwrap_or(0);
            [f32::from_bits(word as u32), f32::from_bits((word >> 32) as u32)]
        }
        #[inline(always)]
        fn write(y: &[DeviceAtomic<u64>], number: usize, [re, im]: [f32; 2]) {
            if let Some(y) = y.get(number) {
                y.store(u64::from(re.to_bits()) | u64::from(im.to_bits()) << 32, Relaxed);
            }
        }
    }

    impl Part for f64 {
        #[inline(always)]
        fn read(x: &[u64], number: usize) -> [f64; 2] {
            x.as_chunks().0.get(number).map_or([0.0; 2], |words: &[u64; 2]| words.map(f64::from_bits))
        }
        #[inline(always)]
        fn write(y: &[DeviceAtomic<u64>], number: usize, value: [f64; 2]) {
            if let Some([re, im]) = y.as_chunks().0.get(number) {
                re.store(value[0].to_bits(), Relaxed);
                im.store(value[1].to_bits(), Relaxed);
            }
        }
    }

    /// A pass. Numbers are binary logarithms.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Pass {
        /// The length of a transform.
        pub length: u32,
        /// The elements of a column.
        pub rows: u32,
        /// The product of the columns of earlier passes.
        pub done: u32,
        /// Whether real and imaginary parts change places in the input, which makes the transform an inverse one; and in the output.
        pub swaps: [bool; 2],
        /// What results are multiplied with.
        pub scale: f64,
    }

    /// Numbers at equal distances, one for each item of a thread.
    #[derive(Clone, Copy)]
    struct Walk {
        first: usize,
        step: usize,
    }

    impl Walk {
        #[inline(always)]
        fn at(self, k: usize) -> usize {
            self.first + k * self.step
        }

        /// From `first` on, `factor` times as far apart.
        #[inline(always)]
        fn scaled(self, first: usize, factor: usize) -> Walk {
            Walk { first: first + self.first * factor, step: self.step * factor }
        }
    }

    /// The thread's number, below `THREADS`.
    #[inline(always)]
    fn rank(t: &Thread<'_, 1>) -> usize {
        t.thread_rank() as usize % THREADS
    }

    /// The numbers of a thread's items where a block has neighbours.
    #[inline(always)]
    fn neighbours(t: &Thread<'_, 1>) -> Walk {
        Walk { first: t.block_idx()[0] as usize * TILE + rank(t), step: THREADS }
    }

    impl Pass {
        /// A thread's column of the block, and its rows of it. Neighbouring threads have neighbouring columns.
        #[inline(always)]
        fn own(self, t: &Thread<'_, 1>) -> (usize, Walk) {
            let columns = TILE_LOG - self.rows;
            (rank(t) & mask(columns), Walk { first: rank(t) >> columns, step: THREADS >> columns })
        }

        /// The number of the first element of the transform that a thread's column belongs to, and that of the column in it.
        #[inline(always)]
        fn column(self, t: &Thread<'_, 1>) -> (usize, usize) {
            let column = ((t.block_idx()[0] as usize * TILE) >> self.rows) + self.own(t).0;
            let columns = self.length - self.rows;
            (column >> columns << self.length, column & mask(columns))
        }

        /// The numbers of a thread's items in the input.
        #[inline(always)]
        fn input(self, t: &Thread<'_, 1>) -> Walk {
            if self.rows == self.length {
                return neighbours(t);
            }
            let (first, column) = self.column(t);
            self.own(t).1.scaled(first + column, 1 << (self.length - self.rows))
        }

        /// The turns that the columns of earlier passes ask for, in parts of the transform's length.
        #[inline(always)]
        fn turns(self, t: &Thread<'_, 1>) -> Walk {
            let of_row = (self.column(t).1 & mask(self.done)) << (self.length - self.done - self.rows);
            self.own(t).1.scaled(0, of_row)
        }

        /// The numbers of a thread's items in the output.
        #[inline(always)]
        fn output(self, t: &Thread<'_, 1>) -> Walk {
            if self.done == 0 {
                return neighbours(t);
            }
            let (first, column) = self.column(t);
            let spread = (column >> self.done << (self.done + self.rows)) + (column & mask(self.done));
            self.own(t).1.scaled(first + spread, 1 << self.done)
        }

        /// Where a thread's items are in shared memory, if it has neighbours, or rows of a column.
        #[inline(always)]
        fn in_tile(self, t: &Thread<'_, 1>, are_neighbours: bool) -> Places {
            let (column, rows) = self.own(t);
            let walk = if are_neighbours {
                Walk { first: rank(t), step: THREADS }
            } else {
                rows.scaled(column << self.rows, 1)
            };
            each(move |k| walk.at(k) as u32)
        }
    }

    /// The lowest `bits` bits.
    #[inline(always)]
    fn mask(bits: u32) -> usize {
        (1 << bits) - 1
    }

    #[inline(always)]
    fn sum<T: Part>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
        [a[0] + b[0], a[1] + b[1]]
    }

    #[inline(always)]
    fn difference<T: Part>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
        [a[0] - b[0], a[1] - b[1]]
    }

    #[inline(always)]
    fn product<T: Part>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
        [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
    }

    #[inline(always)]
    fn swapped<T>([re, im]: Complex<T>, swaps: bool) -> Complex<T> {
        if swaps { [im, re] } else { [re, im] }
    }

    /// roots[k] <- exp(-2 pi i f) for the fractions `f` that a transform of `1 << length` elements needs: `k / 4096`, then
    /// `k` times the inverse of the length, then `4096 k` times it.
    #[kernel(T = [f32, f64])]
    pub fn roots_of_unity<T: Part>(t: Thread<1>, length: u32, mut roots: DisjointSlice<[T; 2]>) {
        let i = t.index();
        let Some(root) = roots.get_mut(i) else { return };
        let (number, of) = match i.get() {
            number if number < TILE => (number, TILE),
            number if number < 2 * TILE => (number - TILE, 1 << length),
            number => ((number - 2 * TILE) * TILE, 1 << length),
        };
        // Quarters of a turn are exact.
        let quarters = number as f64 / of as f64 * 4.0;
        let (sin, cos) = ((quarters - quarters.floor()) * (TAU / 4.0)).sin_cos();
        let [re, im] = match quarters as usize % 4 {
            0 => [cos, -sin],
            1 => [-sin, -cos],
            2 => [-cos, sin],
            _ => [sin, cos],
        };
        *root = [T::from_f64(re), T::from_f64(im)];
    }

    /// Where a thread's items are in the tile.
    type Places = [u32; ITEMS];

    /// The items of a thread.
    type Items<T> = [Complex<T>; ITEMS];

    /// A block's elements in shared memory: real parts, then imaginary ones.
    type Tile<T> = [DeviceAtomic<T, atomic::Block>; PADDED];

    /// Moves a thread's items to the places `to`, and returns those at the places `from`.
    #[inline(always)]
    fn exchange<T: Part>(
        t: &Thread<'_, 1>,
        tile: &Tile<T>,
        items: Items<T>,
        to: Places,
        from: Places,
    ) -> Items<T> {
        let re = exchange_part(t, tile, each(move |k| items[k][0]), to, from);
        let im = exchange_part(t, tile, each(move |k| items[k][1]), to, from);
        each(move |k| [re[k], im[k]])
    }

    #[inline(always)]
    fn exchange_part<T: Part>(
        t: &Thread<'_, 1>,
        tile: &Tile<T>,
        parts: [T; ITEMS],
        to: Places,
        from: Places,
    ) -> [T; ITEMS] {
        each::<(), ITEMS>(move |k| padded(tile, to[k]).store(parts[k], Relaxed));
        t.sync_threads();
        let parts = each(move |k| padded(tile, from[k]).load(Relaxed));
        t.sync_threads();
        parts
    }

    #[inline(always)]
    fn padded<T: Part>(tile: &Tile<T>, place: u32) -> &DeviceAtomic<T, atomic::Block> {
        let place = place % TILE as u32;
        &tile[(place + place / 32) as usize]
    }

    /// Where the elements of butterfly `number` begin before a step, as far apart as columns have room: `1 << distance`.
    #[inline(always)]
    fn apart(number: usize, distance: u32, radix: u32) -> usize {
        (number >> distance << (distance + radix)) + (number & mask(distance))
    }

    /// The places of a thread's fours, whose elements are `1 << distance` apart.
    #[inline(always)]
    fn places_of_fours(t: &Thread<'_, 1>, distance: u32) -> Places {
        let first = apart(rank(t), distance, 2) as u32;
        // The thread's next four is `THREADS` butterflies further.
        let step = apart(THREADS, distance, 2) as u32;
        each(move |k| first + (k / 4) as u32 * step + ((k as u32 % 4) << distance))
    }

    /// The places of a thread's pairs.
    #[inline(always)]
    fn places_of_pairs(t: &Thread<'_, 1>, distance: u32) -> Places {
        let rank = rank(t);
        each(move |k| (apart(k / 2 * THREADS + rank, distance, 1) + ((k % 2) << distance)) as u32)
    }

    /// Transforms pairs.
    #[inline(always)]
    fn pairs<T: Part>(items: Items<T>) -> Items<T> {
        each(move |k| {
            let (a, b) = (items[k / 2 * 2], items[k / 2 * 2 + 1]);
            if k % 2 == 0 { sum(a, b) } else { difference(a, b) }
        })
    }

    /// Transforms fours, after turns of which `roots` has the first.
    #[inline(always)]
    fn fours<T: Part>(items: Items<T>, turns: [usize; ITEMS / 4], roots: &[Complex<T>]) -> Items<T> {
        let fours: [[Complex<T>; 4]; ITEMS / 4] = each(move |k| {
            let root = roots[turns[k] % TILE];
            let square = product(root, root);
            let a = items[4 * k];
            let b = product(items[4 * k + 1], root);
            let c = product(items[4 * k + 2], square);
            let d = product(items[4 * k + 3], product(square, root));
            let (even, odd) = ((sum(a, c), difference(a, c)), (sum(b, d), difference(b, d)));
            // A quarter of a turn back.
            let turned = [odd.1[1], T::ZERO - odd.1[0]];
            [sum(even.0, odd.0), sum(even.1, turned), difference(even.0, odd.0), difference(even.1, turned)]
        });
        each(move |k| fours[k / 4][k % 4])
    }

    /// Transforms columns of each transform in `x` to `y`, in 8-byte words.
    #[inline(always)]
    #[kernel(block = THREADS, min_blocks = 2, same_shape(x, y), T = [f32, f64])]
    pub fn fft_pass<T: Part>(
        t: Thread<1>,
        pass: Pass,
        roots: &[[T; 2]],
        x: &[u64],
        y: &[DeviceAtomic<u64>],
        tile: Shared<[DeviceAtomic<T, atomic::Block>; 4224]>,
    ) {
        let (tile, t) = (t.publish(tile), &t);
        let (roots_of_tile, rest) = roots.split_at(TILE);
        let (fine, coarse) = rest.split_at(TILE);
        let Pass { length, rows, done, .. } = pass;
        // All loads are in flight before one is used.
        let input = pass.input(t);
        let mut items: [[T; 2]; ITEMS] = each(move |k| swapped(T::read(x, input.at(k)), pass.swaps[0]));
        if done > 0 {
            let turns = pass.turns(t);
            items = each(move |k| {
                let turn = turns.at(k);
                let coarse = coarse.get(turn / TILE).copied().unwrap_or([T::ZERO; 2]);
                product(items[k], product(fine[turn % TILE], coarse))
            });
        }
        let mut to = pass.in_tile(t, rows == length);
        let mut within = 0;
        if rows % 2 == 1 {
            items = pairs(exchange(t, &tile, items, to, places_of_pairs(t, rows - 1)));
            to = places_of_pairs(t, 0);
            within = 1;
        }
        while within < rows {
            items = exchange(t, &tile, items, to, places_of_fours(t, rows - 2));
            let turns = each(move |k| ((k * THREADS + rank(t)) & mask(within)) << (TILE_LOG - 2 - within));
            items = fours(items, turns, roots_of_tile);
            to = places_of_fours(t, within);
            within += 2;
        }
        items = exchange(t, &tile, items, to, pass.in_tile(t, done == 0));
        let output = pass.output(t);
        let scale = T::from_f64(pass.scale);
        each::<(), ITEMS>(|k| {
            let [re, im] = swapped(items[k], pass.swaps[1]);
            T::write(y, output.at(k), [re * scale, im * scale]);
        });
    }
}
