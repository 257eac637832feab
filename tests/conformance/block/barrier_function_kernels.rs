//! Kernels that call functions with barriers, and values that are uniform in a block.

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

    /// Recursive, with a barrier at each level: the number of threads of the block that passed less than `n`, for each n down to 0.
    fn below(t: &Thread<1>, n: u32, x: u32) -> u32 {
        let count = t.sync_threads_count(x < n);
        if n == 0 { count } else { count + weighted(below(t, n - 1, x)) }
    }

    fn weighted(x: u32) -> u32 {
        x * WEIGHTS[0]
    }

    /// A generic reduction over all threads of the block.
    fn combined<T: Exchange + SharedElement, const ID: usize>(
        t: &Thread<1>,
        scratch: &mut Shared<Scratch<T>, ID>,
        x: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let once = t.block_reduce(scratch, x, operation);
        t.block_reduce(scratch, once, |a, _| a)
    }

    /// The results of the functions above, for each block of 128 threads.
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

    /// Passes values from block to block: after each barrier of the grid, block b has the value of block b - 1.
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

/// Broadcasts and `assume_uniform`.
#[ferrogrid::module]
pub mod agreed {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::warp::Exchange;

    /// The value of the first thread of each block, several times in a row.
    #[kernel(T = [u8, f32, u64, [u16; 3], [u32; 4]])]
    pub fn first<T: DeviceCopy + Exchange>(t: Thread<2>, x: &[T], mut y: DisjointSlice<[T; 3], 2>) {
        let at = |k: u32| x[((t.block_idx()[0] + t.thread_rank() + k) as usize) % x.len()];
        let all = [t.broadcast(at(0)), t.broadcast(at(1)), t.broadcast(at(2))];
        if let Some(y) = y.get_mut(t.index()) {
            *y = all;
        }
    }

    /// The value of the first thread of each warp, and of each tile of 8.
    #[kernel]
    pub fn first_of_tiles(t: Thread<1>, x: &[[u64; 2]], mut y: DisjointSlice<[[u64; 2]; 2]>) {
        let (i, warp) = (t.index(), t.warp());
        let held = x[i.get()];
        let firsts = [warp.broadcast(held), warp.tile::<8>().broadcast(held)];
        if let Some(y) = y.get_mut(i) {
            *y = firsts;
        }
    }

    /// Blocks take pieces of work until none are left; the number of threads that worked on each.
    #[kernel]
    pub fn pieces(t: Thread<1>, next: &[DeviceAtomic<u32>], worked: &[DeviceAtomic<u32>]) {
        loop {
            let mine = if t.thread_rank() == 0 { next[0].fetch_add(1, Relaxed) } else { u32::MAX };
            let piece = t.broadcast(mine);
            let Some(worked) = worked.get(piece as usize) else { return };
            worked.fetch_add(t.sync_threads_count(true), Relaxed);
        }
    }

    /// Iterates `rounds` times; no kernel writes that number.
    #[kernel]
    pub fn rounds(t: Thread<1>, rounds: &[DeviceAtomic<u64>], mut y: DisjointSlice<u32>) {
        // SAFETY: only the host writes it, between launches.
        let rounds = unsafe { t.assume_uniform(rounds[0].load(Relaxed)) };
        let mut sum = 0;
        for _ in 0..rounds {
            sum += t.sync_threads_count(t.thread_rank().is_multiple_of(2));
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }
}

/// Values that differ between threads of block 1; for a GPU the second would not compile.
#[ferrogrid::module(host_only)]
pub mod disagreed {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::SharedArray;

    /// Assumes that the thread's rank is uniform, in block 1.
    #[kernel]
    pub fn value(t: Thread<1>) {
        let mine = if t.block_idx()[0] == 1 { t.thread_rank() / 40 } else { 7 };
        // SAFETY: none, for the test's sake.
        let _ = unsafe { t.assume_uniform(mine) }; // value
    }

    /// Some threads of block 1 skip the assumption.
    #[kernel]
    pub fn silent(t: Thread<1>) {
        if t.block_idx()[0] != 1 || t.thread_rank() < 40 {
            // SAFETY: none, for the test's sake.
            let _ = unsafe { t.assume_uniform(7_u32) }; // silent
        }
        t.sync_threads();
    }

    /// Waits at one place in the source, with any region.
    fn publish<A: SharedArray, const ID: usize>(t: &Thread<1>, region: Shared<A, ID>) {
        let _ = t.publish(region); // regions
    }

    /// The upper threads of block 1 publish another region than the lower ones.
    #[kernel(block = 64)]
    pub fn regions(t: Thread<1>, a: Shared<[u32; 64]>, b: Shared<[u32; 64]>) {
        if t.block_idx()[0] == 1 && t.thread_rank() >= 40 {
            publish(&t, b);
        } else {
            publish(&t, a);
        }
    }
}
