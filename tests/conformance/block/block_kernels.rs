//! Kernels with shared memory, barriers and warps. All but the last module are without `unsafe`.

/// Shared memory in phases.
#[ferrogrid::module]
pub mod shared {
    use ferrogrid::device::prelude::*;

    /// C = A * B, of m x n and n x p, row by row, with tiles of 16 x 16.
    #[kernel(block = [16, 16])]
    pub fn matmul(
        t: Thread<2>,
        n: usize,
        a: &[f32],
        b: &[f32],
        mut c: DisjointSlice<f32, 2>,
        mut tile_a: Shared<[[f32; 16]; 16]>,
        mut tile_b: Shared<[[f32; 16]; 16]>,
    ) {
        let ([x, y], [column, row]) = (t.thread_idx().map(|it| it as usize), t.index().position());
        let (m, p) = (c.height(), c.width());
        let mut sum = 0.0;
        for step in 0..n.div_ceil(16) {
            let (first_row, first_column) = (row - y, column - x);
            tile_a.fill_with(&t, |[i, k]| {
                let (row, column) = (first_row + i, step * 16 + k);
                if row < m && column < n { a[row * n + column] } else { 0.0 }
            });
            tile_b.fill_with(&t, |[k, j]| {
                let (row, column) = (step * 16 + k, first_column + j);
                if row < n && column < p { b[row * p + column] } else { 0.0 }
            });
            let (a, b) = t.publish((tile_a, tile_b));
            for k in 0..16 {
                sum += a[y][k] * b[k][x];
            }
            (tile_a, tile_b) = t.reclaim((a, b));
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }

    /// The transpose of `input`, which has `output`'s height as width, through a padded tile.
    #[kernel(block = [32, 8])]
    pub fn transpose(
        t: Thread<2>,
        input: &[u32],
        mut output: DisjointTiles<u32, 32, 32>,
        mut tile: Shared<Padded<u32, 32, 32>>,
    ) {
        let (width, height) = (output.height(), output.width());
        let [first_row, first_column] = t.block_idx().map(|it| it as usize * 32);
        tile.fill_with(&t, |[i, j]| {
            let (row, column) = (first_row + i, first_column + j);
            if row < height && column < width { input[row * width + column] } else { 0 }
        });
        let tile = t.publish(tile);
        output.fill_with(&t, |[row, column]| tile[column - first_row][row - first_column]);
    }

    /// Each block takes the greatest of its row from all of it.
    #[kernel]
    pub fn below_greatest(t: Thread<1>, mut rows: DisjointRows<u32>, mut scratch: Shared<Scratch<u32>>) {
        let own = rows.iter_mut(&t).fold(0, |greatest, (_, value)| greatest.max(*value));
        let greatest = t.block_reduce(&mut scratch, own, u32::max);
        for (_, value) in rows.iter_mut(&t) {
            *value = greatest - *value;
        }
    }

    /// Numbers the elements of a volume.
    #[kernel]
    pub fn number_volume(t: Thread<3>, mut volume: DisjointSlice<u32, 3>) {
        let (width, height) = (volume.width(), volume.height());
        let i = t.index();
        if let Some(value) = volume.get_mut(i) {
            *value += ((i.z() * height + i.y()) * width + i.x()) as u32;
        }
    }

    /// A 3-point stencil with halo: y[i] = x[i-1] + 2 x[i] + x[i+1], with 0 beyond the ends.
    #[kernel(block = 128)]
    pub fn stencil(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 130]>) {
        let first = t.block_idx()[0] as usize * 128;
        tile.fill_with(&t, |i| match first + i {
            0 => 0.0,
            i => x.get(i - 1).copied().unwrap_or(0.0),
        });
        let tile = t.publish(tile);
        let i = t.thread_idx()[0] as usize;
        if let Some(y) = y.get_mut(t.index()) {
            *y = tile[i] + 2.0 * tile[i + 1] + tile[i + 2];
        }
    }

    /// One sum for each block of 256, by a tree in shared memory.
    #[kernel(block = 256)]
    pub fn tree_sum(t: Thread<1>, x: &[u32], sums: &[DeviceAtomic<u32>], mut tile: Shared<[u32; 256]>) {
        let rank = t.thread_rank() as usize;
        if let Some(place) = tile.get_mut(&t) {
            *place = x.get(t.index().get()).copied().unwrap_or(0);
        }
        let mut half = 128;
        while half > 0 {
            let read = t.publish(tile);
            let other = if rank < half { read[rank + half] } else { 0 };
            tile = t.reclaim(read);
            if let Some(place) = tile.get_mut(&t) {
                *place += other;
            }
            half /= 2;
        }
        let total = t.publish(tile);
        if rank == 0 {
            sums[t.block_idx()[0] as usize].store(total[0], atomic::Ordering::Relaxed);
        }
    }

    /// A histogram of bytes: each block counts in shared memory, then adds to `counts`.
    #[kernel]
    pub fn histogram(
        t: Thread<1>,
        data: &[u8],
        counts: &[DeviceAtomic<u32>],
        mut bins: Shared<[DeviceAtomic<u32, atomic::Block>; 256]>,
    ) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish(bins);
        for i in t.grid_stride(data.len()) {
            bins[data[i.get()] as usize].fetch_add(1, atomic::Ordering::Relaxed);
        }
        t.sync_threads();
        let mut bin = t.thread_rank() as usize;
        while bin < 256 {
            counts[bin].fetch_add(bins[bin].load(atomic::Ordering::Relaxed), atomic::Ordering::Relaxed);
            bin += t.block_threads() as usize;
        }
    }

    /// Each block reverses its part of the data, by a slice whose length the launch gives.
    #[kernel]
    pub fn reverse(
        t: Thread<1>,
        mut data: DisjointSlice<u64>,
        mut bytes: SharedSlice<u8>,
        mut part: SharedSlice<u64>,
    ) {
        bytes.fill_with(&t, |i| i as u8);
        if let (Some(place), Some(value)) = (part.get_mut(&t), data.get_mut(t.index())) {
            *place = *value;
        }
        let (bytes, part) = t.publish((bytes, part));
        let rank = t.thread_rank() as usize;
        if let Some(value) = data.get_mut(t.index()) {
            *value = part[part.len() - 1 - rank] + u64::from(bytes[rank % bytes.len()]);
        }
    }

    /// The same memory holds numbers of one type, then of another.
    #[kernel(block = 64)]
    pub fn twice_used(t: Thread<1>, mut output: DisjointSlice<u64>, mut words: Shared<[u32; 128]>) {
        words.fill_with(&t, |i| i as u32);
        let words = t.publish(words);
        let rank = t.thread_rank() as usize;
        let sum = u64::from(words[rank]) + u64::from(words[127 - rank]);
        let mut longs = t.reclaim(words.retype::<[u64; 64]>());
        if let Some(place) = longs.get_mut(&t) {
            *place = sum + rank as u64;
        }
        let longs = t.publish(longs);
        if let Some(output) = output.get_mut(t.index()) {
            *output = longs[63 - rank];
        }
    }

    /// Two buffers take turns, with one barrier for each step: a running maximum over neighbours.
    #[kernel(block = 64)]
    pub fn turns(
        t: Thread<1>,
        steps: u32,
        mut data: DisjointSlice<u32>,
        mut first: Shared<[u32; 64]>,
        second: Shared<[u32; 64]>,
    ) {
        let rank = t.thread_rank() as usize;
        if let (Some(place), Some(value)) = (first.get_mut(&t), data.get_mut(t.index())) {
            *place = *value;
        }
        let (mut read, mut write) = (t.publish(first), second);
        let mut value = 0;
        for _ in 0..steps {
            value = read[rank].max(read[(rank + 1) % 64]);
            if let Some(place) = write.get_mut(&t) {
                *place = value;
            }
            let (new, mut old) = t.publish_and_reclaim(write, read);
            value = new[rank].max(new[(rank + 1) % 64]);
            if let Some(place) = old.get_mut(&t) {
                *place = value;
            }
            (read, write) = t.publish_and_reclaim(old, new);
        }
        if let Some(output) = data.get_mut(t.index()) {
            *output = value;
        }
    }
}

/// Barriers that count and decide.
#[ferrogrid::module]
pub mod barriers {
    use ferrogrid::device::prelude::*;

    /// The number of threads of the block with an odd value, whether all have one, whether any has.
    #[kernel]
    pub fn votes(t: Thread<1>, x: &[u32], mut output: DisjointSlice<[u32; 3]>) {
        let odd = x[t.index().get()] % 2 == 1;
        let count = t.sync_threads_count(odd);
        let all = t.sync_threads_and(odd);
        let any = t.sync_threads_or(odd);
        if let Some(output) = output.get_mut(t.index()) {
            *output = [count, all.into(), any.into()];
        }
    }

    /// Halves values until all of the block are 0: a loop with a uniform end.
    #[kernel]
    pub fn until_all_are_done(t: Thread<1>, mut data: DisjointSlice<u32>, mut rounds: DisjointSlice<u32>) {
        let mut value = data.get_mut(t.index()).map_or(0, |value| *value);
        let mut count = 0;
        while t.sync_threads_or(value > 0) {
            value /= 2;
            count += 1;
        }
        if let Some(rounds) = rounds.get_mut(t.index()) {
            *rounds = count;
        }
    }
}

/// Warps and tiles.
#[ferrogrid::module]
pub mod warps {
    use ferrogrid::device::prelude::*;

    /// The four shuffles in tiles of `N`, of 16 bytes.
    #[kernel(N = [2, 8, 32])]
    pub fn shuffles<const N: usize>(t: Thread<1>, by: u32, mut output: DisjointSlice<[[u32; 4]; 4]>) {
        let tile = t.warp().tile::<N>();
        let mine = [t.thread_rank(), tile.lane(), tile.rank(), 7];
        let held = [
            tile.shuffle(mine, by),
            tile.shuffle_up(mine, by),
            tile.shuffle_down(mine, by),
            tile.shuffle_xor(mine, by),
        ];
        if let Some(output) = output.get_mut(t.index()) {
            *output = held;
        }
    }

    /// Shuffles of 8, 16, 32 and 64 bits.
    #[kernel]
    pub fn widths(t: Thread<1>, mut output: DisjointSlice<[f64; 4]>) {
        let (warp, rank) = (t.warp(), t.thread_rank());
        let held = [
            f64::from(warp.shuffle_xor(rank as u8, 1)),
            f64::from(warp.shuffle_xor(rank as i16 - 100, 1)),
            f64::from(warp.shuffle_xor(rank as f32 + 0.5, 1)),
            warp.shuffle_xor(f64::from(rank) * 1e-9, 1),
        ];
        if let Some(output) = output.get_mut(t.index()) {
            *output = held;
        }
    }

    /// Ballot, all, any, match, of each warp.
    #[kernel]
    pub fn votes(t: Thread<1>, x: &[u32], mut output: DisjointSlice<[u32; 9]>) {
        let (warp, value) = (t.warp(), x[t.index().get()]);
        let odd = value % 2 == 1;
        let found = [
            warp.ballot(odd),
            warp.all(odd).into(),
            warp.any(odd).into(),
            warp.match_any(value),
            warp.match_any([value, 1, 2]),
            warp.match_all(value).into(),
            warp.match_bits::<1>(value),
            warp.match_bits::<32>(value),
            warp.tile::<8>().match_bits::<2>(value),
        ];
        warp.sync();
        if let Some(output) = output.get_mut(t.index()) {
            *output = found;
        }
    }

    /// Reductions and scans of each tile of `N`: the operation concatenates digits, so that the order is visible.
    #[kernel(N = [4, 32])]
    pub fn joined<const N: usize>(t: Thread<1>, mut output: DisjointSlice<[[u64; 2]; 3]>) {
        let tile = t.warp().tile::<N>();
        let join = |a: [u64; 2], b: [u64; 2]| {
            [a[0].wrapping_mul(31u64.wrapping_pow(b[1] as u32)).wrapping_add(b[0]), a[1] + b[1]]
        };
        let mine = [u64::from(t.thread_rank()) + 1, 1];
        let found = [
            tile.reduce(mine, join),
            tile.inclusive_scan(mine, join),
            tile.exclusive_scan(mine, [0, 0], join),
        ];
        if let Some(output) = output.get_mut(t.index()) {
            *output = found;
        }
    }

    /// The reductions that some architectures have an instruction for.
    #[kernel]
    pub fn redux(t: Thread<1>, x: &[i32], mut output: DisjointSlice<[i32; 8]>) {
        let (warp, value) = (t.warp(), x[t.index().get()]);
        let bits = value as u32;
        let found = [
            warp.reduce_add(value),
            warp.reduce_min(value),
            warp.reduce_max(value),
            warp.reduce_and(value),
            warp.reduce_or(value),
            warp.reduce_xor(value),
            warp.reduce_min(bits) as i32,
            warp.reduce_max(bits) as i32,
        ];
        if let Some(output) = output.get_mut(t.index()) {
            *output = found;
        }
    }

    /// Reduction and scans of a block.
    #[kernel]
    pub fn block_sums(
        t: Thread<1>,
        x: &[u32],
        mut output: DisjointSlice<[u32; 3]>,
        mut scratch: Shared<Scratch<u32>>,
    ) {
        let value = x[t.index().get()];
        let sum = t.block_reduce(&mut scratch, value, |a, b| a + b);
        let inclusive = t.block_inclusive_scan(&mut scratch, value, |a, b| a + b);
        let exclusive = t.block_exclusive_scan(&mut scratch, value, 1000, |a, b| a + b);
        if let Some(output) = output.get_mut(t.index()) {
            *output = [sum, inclusive, exclusive];
        }
    }
}

/// Kernels whose blocks wait for each other.
#[ferrogrid::module]
pub mod grids {
    use ferrogrid::device::prelude::*;

    /// In each step every block adds the value of the next block in the previous step.
    #[kernel(cooperative)]
    pub fn neighbours(t: Thread<1>, steps: u32, values: &[DeviceAtomic<u32>]) {
        let blocks = t.grid_dim()[0] as usize;
        let (own, next) = (t.block_idx()[0] as usize, (t.block_idx()[0] as usize + 1) % blocks);
        for _ in 0..steps {
            let value = values[next].load(atomic::Ordering::Relaxed);
            t.sync_grid();
            if t.thread_rank() == 0 {
                values[own].fetch_add(value, atomic::Ordering::Relaxed);
            }
            t.sync_grid();
        }
    }
}

/// Accesses that the phases cannot express.
#[ferrogrid::module]
pub mod raw {
    use ferrogrid::device::prelude::*;

    fn rotated<const ID: usize>(t: &Thread<1>, tile: &mut Shared<[u32; 64], ID>, by: usize) -> u32 {
        let (rank, places) = (t.thread_rank() as usize, tile.as_mut_ptr().cast::<u32>());
        // SAFETY: one element of 64, and this thread's alone.
        unsafe { places.add((rank + by) % 64).write(rank as u32) };
        t.sync_threads();
        // SAFETY: all have written, and no thread writes before the next barrier.
        let value = unsafe { places.add(rank).read() };
        t.sync_threads();
        value
    }

    /// Each thread gets the number of the one `by` before it.
    #[kernel(block = 64)]
    pub fn rotate(t: Thread<1>, by: usize, mut output: DisjointSlice<u32>, mut tile: Shared<[u32; 64]>) {
        let value = rotated(&t, &mut tile, by);
        if let Some(output) = output.get_mut(t.index()) {
            *output = value;
        }
    }
}
