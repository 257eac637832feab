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

    /// Row and column of an item of a block.
    #[derive(Clone, Copy)]
    struct Place {
        row: usize,
        column: usize,
    }

    impl Pass {
        /// The place of a thread's item `k`, along columns or along rows.
        #[inline(always)]
        fn place(self, t: &Thread<'_, 1>, k: usize, along_columns: bool) -> Place {
            let item = k * THREADS + t.thread_rank() as usize % THREADS;
            if along_columns {
                Place { row: item & mask(self.rows), column: item >> self.rows }
            } else {
                let columns = TILE_LOG - self.rows;
                Place { row: item >> columns, column: item & mask(columns) }
            }
        }

        /// Where an item of a block is in shared memory.
        #[inline(always)]
        fn in_tile(self, place: Place) -> usize {
            (place.column << self.rows) + place.row
        }

        /// The number of the first element of the transform that a column belongs to, and the number of the column in it.
        #[inline(always)]
        fn column(self, t: &Thread<'_, 1>, place: Place) -> (usize, usize) {
            let column = (t.block_idx()[0] as usize * TILE >> self.rows) + place.column;
            let columns = self.length - self.rows;
            (column >> columns << self.length, column & mask(columns))
        }

        /// The number of an item in the input.
        #[inline(always)]
        fn input(self, t: &Thread<'_, 1>, place: Place) -> usize {
            let (first, column) = self.column(t, place);
            first + column + (place.row << (self.length - self.rows))
        }

        /// A thread's item `k`, turned as the columns of earlier passes ask for.
        #[inline(always)]
        fn read<T: Part>(
            self,
            t: &Thread<'_, 1>,
            k: usize,
            x: &[u64],
            fine: &[Complex<T>],
            coarse: &[Complex<T>],
        ) -> Complex<T> {
            let place = self.place(t, k, self.rows == self.length);
            let item = swapped(T::read(x, self.input(t, place)), self.swaps[0]);
            if self.done == 0 {
                return item;
            }
            let turn = place.row * (self.column(t, place).1 & mask(self.done));
            let turn = turn << (self.length - self.done - self.rows);
            product(item, product(fine[turn % TILE], coarse[turn / TILE]))
        }

        /// The number of an item in the output.
        #[inline(always)]
        fn output(self, t: &Thread<'_, 1>, place: Place) -> usize {
            let (first, column) = self.column(t, place);
            first + expanded(column, self.done, self.rows) + (place.row << self.done)
        }
    }

    /// The lowest `bits` bits.
    #[inline(always)]
    fn mask(bits: u32) -> usize {
        (1 << bits) - 1
    }

    /// `number` with `more` zeros above its lowest `low` bits.
    #[inline(always)]
    fn expanded(number: usize, low: u32, more: u32) -> usize {
        (number >> low << (low + more)) + (number & mask(low))
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
        to: [usize; ITEMS],
        from: [usize; ITEMS],
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
        to: [usize; ITEMS],
        from: [usize; ITEMS],
    ) -> [T; ITEMS] {
        each::<(), ITEMS>(move |k| padded(tile, to[k]).store(parts[k], Relaxed));
        t.sync_threads();
        let parts = each(move |k| padded(tile, from[k]).load(Relaxed));
        t.sync_threads();
        parts
    }

    #[inline(always)]
    fn padded<T: Part>(tile: &Tile<T>, place: usize) -> &DeviceAtomic<T, atomic::Block> {
        &tile[place % TILE + place % TILE / 32]
    }

    /// Where element `part` of butterfly `number` is, of `1 << radix` elements, before a step: as far apart as columns have room.
    #[inline(always)]
    fn apart(number: usize, part: usize, rows: u32, radix: u32) -> usize {
        let distance = rows - radix;
        (number >> distance << rows) + (number & mask(distance)) + (part << distance)
    }

    /// Where it is after a step that follows others, of columns of `1 << within` in all. Columns are whole numbers of these.
    #[inline(always)]
    fn together(number: usize, part: usize, within: u32, radix: u32) -> usize {
        expanded(number, within, radix) + (part << within)
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
        let mut items: [[T; 2]; ITEMS] = each(move |k| pass.read(t, k, x, fine, coarse));
        let mut to: [usize; ITEMS] = each(move |k| pass.in_tile(pass.place(t, k, rows == length)));
        let rank = t.thread_rank() as usize % THREADS;
        let mut within = 0;
        if rows % 2 == 1 {
            let from: [usize; ITEMS] = each(move |k| apart(k / 2 * THREADS + rank, k % 2, rows, 1));
            items = exchange(t, &*tile, items, to, from);
            items = pairs(items);
            to = each(move |k| together(k / 2 * THREADS + rank, k % 2, 0, 1));
            within = 1;
        }
        while within < rows {
            let from: [usize; ITEMS] = each(move |k| apart(k / 4 * THREADS + rank, k % 4, rows, 2));
            items = exchange(t, &*tile, items, to, from);
            let turns: [usize; ITEMS / 4] = each(move |k| {
                ((k * THREADS + rank) & mask(rows - 2) & mask(within)) << (TILE_LOG - 2 - within)
            });
            items = fours(items, turns, roots_of_tile);
            to = each(move |k| together(k / 4 * THREADS + rank, k % 4, within, 2));
            within += 2;
        }

        let along_columns = done == 0;
        let from: [usize; ITEMS] = each(move |k| pass.in_tile(pass.place(t, k, along_columns)));
        items = exchange(t, &*tile, items, to, from);
        let scale = T::from_f64(pass.scale);
        each::<(), ITEMS>(|k| {
            let [re, im] = swapped(items[k], pass.swaps[1]);
            T::write(y, pass.output(t, pass.place(t, k, along_columns)), [re * scale, im * scale]);
        });
    }
}
