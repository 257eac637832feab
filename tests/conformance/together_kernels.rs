//! Functions with barriers in them, which kernels call without `unsafe`. It must not know what is expected of them.

/// Functions that work with shared memory and barriers.
#[ferrogrid::module]
pub mod together {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::warp::Exchange;

    #[constant]
    pub static WEIGHTS: Constant<[u32; 2]> = Constant::new([1, 10]);

    /// The largest value of the block, for all of its threads.
    fn block_max<const R: usize, const ID: usize>(
        t: &Thread<R>,
        tile: &mut Shared<[f32; 256], ID>,
        x: f32,
    ) -> f32 {
        tile.fill_with(t, |_| f32::MIN);
        if let Some(mine) = tile.get_mut(t) {
            *mine = x;
        }
        t.with_published(tile, |all| all.iter().copied().fold(f32::MIN, f32::max))
    }

    /// The largest value of each block, and minus the smallest.
    #[kernel]
    pub fn extremes(
        t: Thread<1>,
        x: &[f32],
        mut largest: DisjointRows<f32>,
        mut smallest: DisjointRows<f32>,
        mut high: Shared<[f32; 256]>,
        mut low: Shared<[f32; 256]>,
    ) {
        let mine = x.get(t.index().get()).copied();
        let top = block_max(&t, &mut high, mine.unwrap_or(f32::MIN));
        let bottom = block_max(&t, &mut low, mine.map_or(f32::MIN, |x| -x));
        // The same region again.
        let range = block_max(&t, &mut low, top + bottom);
        largest.fill_with(&t, |_| top);
        smallest.fill_with(&t, |_| range);
    }

    /// The sum of the block by halves, `rounds` times over; gives the region back.
    fn sums<'b, const ID: usize>(
        t: &Thread<1>,
        mut tile: Shared<'b, [u32; 128], ID>,
        rounds: u32,
        x: u32,
    ) -> (u32, Shared<'b, [u32; 128], ID>) {
        let rank = t.thread_rank() as usize;
        let mut total = 0;
        for _ in 0..rounds {
            tile.fill_with(t, |_| x);
            let mut half = 64;
            while half > 0 {
                let read = t.publish(tile);
                let other = if rank < half { read[rank + half] } else { 0 };
                tile = t.reclaim(read);
                tile.iter_mut(t).for_each(|(_, value)| *value += other);
                half /= 2;
            }
            total += t.with_published(&mut tile, |all| all[0]);
        }
        (total, tile)
    }

    /// Calls itself, with a barrier each time; how many threads of the block brought less than `n`, for each n down to 0.
    fn below(t: &Thread<1>, n: u32, x: u32) -> u32 {
        let count = t.sync_threads_count(x < n);
        if n == 0 { count } else { count + weighted(below(t, n - 1, x)) }
    }

    fn weighted(x: u32) -> u32 {
        x * WEIGHTS[0]
    }

    /// Any value that all threads of the block combine, whatever it is.
    fn combined<T: Exchange + SharedElement, const ID: usize>(
        t: &Thread<1>,
        scratch: &mut Shared<Scratch<T>, ID>,
        x: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let once = t.block_reduce(scratch, x, operation);
        t.block_reduce(scratch, once, |a, _| a)
    }

    /// What the functions above give, for each block of 128 threads.
    #[kernel(block = 128)]
    pub fn calls(
        t: Thread<1>,
        rounds: u32,
        x: &[u32],
        mut out: DisjointRows<[u32; 3]>,
        tile: Shared<[u32; 128]>,
        mut scratch: Shared<Scratch<u64>>,
    ) {
        let x = x[t.index().get()];
        let mut result = [0; 3];
        for round in 0..2 {
            if round == 1 {
                result[1] = below(&t, rounds, x) * WEIGHTS[1];
            }
        }
        let (total, _) = sums(&t, tile, rounds, x);
        result[0] = total;
        result[2] = combined(&t, &mut scratch, u64::from(x), |a, b| a.max(b)) as u32;
        out.fill_with(&t, |_| result);
    }

    /// Hands values on from block to block: after each barrier of the grid, block b has what block b - 1 had.
    #[kernel(cooperative)]
    pub fn around(t: Thread<1>, rounds: u32, values: &[DeviceAtomic<u32>]) {
        for _ in 0..rounds {
            step(&t, values);
        }
    }

    fn step(t: &Thread<1>, values: &[DeviceAtomic<u32>]) {
        let (blocks, block) = (t.grid_dim()[0] as usize, t.block_idx()[0] as usize);
        let next = values[(block + blocks - 1) % blocks].load(atomic::Ordering::Acquire);
        t.sync_grid();
        if t.thread_rank() == 0 {
            values[block].store(next, atomic::Ordering::Release);
        }
        t.sync_grid();
    }
}
