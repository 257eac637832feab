//! Kernels of the kinds that CUDA's samples show: reductions, scans, sorts and histograms.

/// Sums of a block, in the stages of the well-known lecture.
#[ferrogrid::module]
mod reductions {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel(block = 256)]
    pub fn interleaved_by_remainder(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut tile: Shared<[f32; 256]>) {
        let rank = t.thread_rank() as usize;
        let mut sum = x.get(t.index().get()).copied().unwrap_or(0.0);
        let mut distance = 1;
        while distance < 256 {
            tile.fill_with(&t, |_| sum);
            let all = t.publish(tile);
            if rank % (2 * distance) == 0 { sum += all[rank + distance]; }
            tile = t.reclaim(all);
            distance *= 2;
        }
        if rank == 0 { y[0].fetch_add(sum, Relaxed); }
    }
    #[kernel(block = 256)]
    pub fn by_halves(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut tile: Shared<[f32; 256]>) {
        let rank = t.thread_rank() as usize;
        let mut sum = x[t.index().get()];
        let mut half = 128;
        while half > 0 {
            tile.fill_with(&t, |_| sum);
            let all = t.publish(tile);
            if rank < half { sum += all[rank + half]; }
            tile = t.reclaim(all);
            half >>= 1;
        }
        if rank == 0 { y[t.block_idx()[0] as usize].store(sum, Relaxed); }
    }
    #[kernel]
    pub fn of_a_block_of_any_size(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>], mut tile: SharedSlice<u32>) {
        let rank = t.thread_rank() as usize;
        let mut sum = x[t.index().get()];
        let mut left = t.block_threads() as usize;
        while left > 1 {
            let half = left.div_ceil(2);
            tile.fill_with(&t, |_| sum);
            let all = t.publish(tile);
            if rank + half < left { sum += all[rank + half]; }
            tile = t.reclaim(all);
            left = half;
        }
        if rank == 0 { y[0].fetch_add(sum, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn first_sum_while_loading(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let first = t.block_idx()[0] as usize * 256 + t.thread_rank() as usize;
        let own = x.get(first).copied().unwrap_or(0.0) + x.get(first + 128).copied().unwrap_or(0.0);
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        if t.thread_rank() == 0 { y[0].fetch_add(sum, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn over_a_grid_stride(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let own: f32 = t.grid_stride(x.len()).map(|i| x[i.get()]).sum();
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        if t.thread_rank() == 0 { y[0].fetch_add(sum, Relaxed); }
    }
    #[kernel(block = 256)]
    pub fn warps_first(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>], mut of_warps: Shared<[DeviceAtomic<u32>; 8]>) {
        of_warps.fill_with(&t, |_| DeviceAtomic::new(0));
        let of_warps = t.publish(of_warps);
        let sum = t.warp().reduce(x[t.index().get()], |a, b| a + b);
        if t.warp().lane() == 0 { of_warps[t.thread_rank() as usize / 32].store(sum, Relaxed); }
        t.sync_threads();
        if t.thread_rank() == 0 { y[0].fetch_add(of_warps.iter().map(|s| s.load(Relaxed)).sum(), Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn unrolled_by_a_constant(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut tile: Shared<[f32; 64]>) {
        let rank = t.thread_rank() as usize;
        let mut sum = x[t.index().get()];
        for half in [32, 16, 8, 4, 2, 1] {
            tile.fill_with(&t, |_| sum);
            let all = t.publish(tile);
            if rank < half { sum += all[rank + half]; }
            tile = t.reclaim(all);
        }
        if rank == 0 { y[0].store(sum, Relaxed); }
    }
    #[kernel(block = 64, N = [1, 4, 8])]
    pub fn items_of_a_constant<const N: usize>(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let mut own = 0.0;
        for k in 0..N { own += x[t.index().get() * N + k]; }
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        if t.thread_rank() == 0 { y[0].store(sum, Relaxed); }
    }
    #[kernel(cooperative)]
    pub fn of_the_grid(t: Thread<1>, x: &[f32], parts: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let own: f32 = t.grid_stride(x.len()).map(|i| x[i.get()]).sum();
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        if t.thread_rank() == 0 { parts[t.block_idx()[0] as usize].store(sum, Relaxed); }
        t.sync_grid();
        if t.index().get() == 0 {
            let all = (1..t.grid_dim()[0]).fold(sum, |sum, block| sum + parts[block as usize].load(Relaxed));
            parts[0].store(all, Relaxed);
        }
    }
    #[kernel]
    pub fn last_block_adds_up(t: Thread<1>, x: &[u32], parts: &[DeviceAtomic<u32>], done: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        let own: u32 = t.grid_stride(x.len()).map(|i| x[i.get()]).sum();
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        let mut count = 0;
        if t.thread_rank() == 0 {
            parts[t.block_idx()[0] as usize].store(sum, Relaxed);
            fence::device();
            count = done[0].fetch_add(1, Relaxed);
        }
        if t.broadcast(count) + 1 == t.grid_dim()[0] {
            let own = t.block_stride(t.grid_dim()[0] as usize).map(|i| parts[i].load(Relaxed)).sum();
            let sum = t.block_reduce(&mut s, own, |a, b| a + b);
            if t.thread_rank() == 0 { parts[0].store(sum, Relaxed); }
        }
    }
    #[kernel(block = 128)]
    pub fn mean_and_variance(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut s: Shared<Scratch<f32>>) {
        let own = x[t.index().get()];
        let mean = t.block_reduce(&mut s, own, |a, b| a + b) / 128.0;
        let variance = t.block_reduce(&mut s, (own - mean) * (own - mean), |a, b| a + b) / 128.0;
        if let Some(y) = y.get_mut(t.index()) { *y = (own - mean) / (variance + 1e-5).sqrt(); }
    }
    #[kernel(block = 128)]
    pub fn softmax(t: Thread<1>, x: Plane<f32>, mut y: DisjointRows<f32>, mut s: Shared<Scratch<f32>>) {
        let row = x[t.block_idx()[0] as usize].iter();
        let own = row.clone().skip(t.thread_rank() as usize).step_by(128).copied().fold(f32::MIN, f32::max);
        let greatest = t.block_reduce(&mut s, own, f32::max);
        let own: f32 = row.skip(t.thread_rank() as usize).step_by(128).map(|v| (v - greatest).exp()).sum();
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        y.fill_with(&t, |column| (x[t.block_idx()[0] as usize][column] - greatest).exp() / sum);
    }
    #[kernel(block = 128)]
    pub fn place_of_the_greatest(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u64>>) {
        let own = u64::from(x[t.index().get()].to_bits()) << 32 | u64::from(t.thread_rank());
        let greatest = t.block_reduce(&mut s, own, u64::max);
        if t.thread_rank() == 0 { y[0].store(greatest as u32, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn dot_product(t: Thread<1>, a: &[f32], b: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let mut own = 0.0;
        for i in t.grid_stride(a.len().min(b.len())) { own += a[i.get()] * b[i.get()]; }
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        if t.thread_rank() == 0 { y[0].fetch_add(sum, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn estimate_of_pi(t: Thread<1>, seed: u64, draws: u32, y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        let mut random = ferrogrid::device::random::Philox4x32::new(seed, t.index().get() as u64, 0);
        let mut inside = 0;
        for _ in 0..draws {
            let [a, b, ..] = random.next_uniform_f32x4();
            inside += u32::from(a * a + b * b <= 1.0);
        }
        let sum = t.block_reduce(&mut s, inside, |a, b| a + b);
        if t.thread_rank() == 0 { y[0].fetch_add(sum, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn option_prices(t: Thread<1>, spot: &[f32], strike: f32, years: f32, rate: f32, vol: f32, y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let mut own = 0.0;
        for i in t.grid_stride(spot.len()) {
            let spot = spot[i.get()];
            let spread = vol * years.sqrt();
            let d = ((spot / strike).ln() + (rate + 0.5 * vol * vol) * years) / spread;
            own += spot / (1.0 + (-1.7 * d).exp()) - strike * (-rate * years).exp() / (1.0 + (-1.7 * (d - spread)).exp());
        }
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        if t.thread_rank() == 0 { y[0].fetch_add(sum, Relaxed); }
    }
}

/// Scans, and algorithms built on them.
#[ferrogrid::module]
mod scans {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel(block = 128)]
    pub fn by_doubled_distances(t: Thread<1>, mut x: DisjointSlice<u32>, mut tile: Shared<[u32; 128]>) {
        let rank = t.thread_rank() as usize;
        let mut sum = x.get_mut(t.index()).map_or(0, |x| *x);
        let mut distance = 1;
        while distance < 128 {
            tile.fill_with(&t, |_| sum);
            let all = t.publish(tile);
            if rank >= distance { sum += all[rank - distance]; }
            tile = t.reclaim(all);
            distance *= 2;
        }
        if let Some(x) = x.get_mut(t.index()) { *x = sum; }
    }
    #[kernel(block = 128)]
    pub fn two_buffers_in_turn(t: Thread<1>, mut x: DisjointSlice<u32>, mut a: Shared<[u32; 128]>, mut b: Shared<[u32; 128]>) {
        let rank = t.thread_rank() as usize;
        let mut sum = x.get_mut(t.index()).map_or(0, |x| *x);
        a.fill_with(&t, |_| sum);
        let mut read_a = t.publish(a);
        let mut distance = 1;
        while distance < 128 {
            sum += if rank >= distance { read_a[rank - distance] } else { 0 };
            b.fill_with(&t, |_| sum);
            let (read_b, write_a) = t.publish_and_reclaim(b, read_a);
            distance *= 2;
            sum += if rank >= distance { read_b[rank - distance] } else { 0 };
            a = write_a;
            a.fill_with(&t, |_| sum);
            (read_a, b) = t.publish_and_reclaim(a, read_b);
            distance *= 2;
        }
        if let Some(x) = x.get_mut(t.index()) { *x = sum; }
    }
    #[kernel(block = 64)]
    pub fn up_and_down_a_tree(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>], mut tree: Shared<[DeviceAtomic<u32>; 128]>) {
        let rank = t.thread_rank() as usize;
        tree.fill_with(&t, |i| DeviceAtomic::new(x[i]));
        let tree = t.publish(tree);
        let (mut distance, mut work) = (1, 64);
        while work > 0 {
            t.sync_threads();
            if rank < work {
                let (a, b) = (distance * (2 * rank + 1) - 1, distance * (2 * rank + 2) - 1);
                tree[b].fetch_add(tree[a].load(Relaxed), Relaxed);
            }
            distance *= 2;
            work >>= 1;
        }
        if rank == 0 { tree[127].store(0, Relaxed); }
        let mut work = 1;
        while work < 128 {
            distance >>= 1;
            t.sync_threads();
            if rank < work {
                let (a, b) = (distance * (2 * rank + 1) - 1, distance * (2 * rank + 2) - 1);
                let left = tree[a].load(Relaxed);
                tree[a].store(tree[b].load(Relaxed), Relaxed);
                tree[b].fetch_add(left, Relaxed);
            }
            work *= 2;
        }
        t.sync_threads();
        y[2 * rank].store(tree[2 * rank].load(Relaxed), Relaxed);
        y[2 * rank + 1].store(tree[2 * rank + 1].load(Relaxed), Relaxed);
    }
    #[kernel(block = 128)]
    pub fn of_tiles_in_a_row(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>, mut last: Shared<[u32; 1]>) {
        let mut before = 0;
        for start in (0..x.len()).step_by(128) {
            let at = start + t.thread_rank() as usize;
            let sum = before + t.block_inclusive_scan(&mut s, x.get(at).copied().unwrap_or(0), |a, b| a + b);
            if let Some(y) = y.get(at) { y.store(sum, Relaxed); }
            before += t.block_reduce(&mut s, x.get(at).copied().unwrap_or(0), |a, b| a + b);
        }
        last.fill_with(&t, |_| before);
    }
    #[kernel(block = 128)]
    pub fn compaction(t: Thread<1>, x: &[u32], kept: &[DeviceAtomic<u32>], count: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        let own = x.get(t.index().get()).copied().filter(|v| v % 2 == 1);
        let place = t.block_exclusive_scan(&mut s, u32::from(own.is_some()), 0, |a, b| a + b);
        let all = t.sync_threads_count(own.is_some());
        let first = t.broadcast(if t.thread_rank() == 0 { count[0].fetch_add(all, Relaxed) } else { 0 });
        if let Some(own) = own { kept[(first + place) as usize].store(own, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn lengths_of_runs(t: Thread<1>, x: &[u32], starts: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        let i = t.index().get();
        let is_first = i == 0 || x[i] != x[i - 1];
        let run = t.block_inclusive_scan(&mut s, u32::from(is_first), |a, b| a + b);
        if is_first { starts[run as usize - 1].store(i as u32, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn sums_of_segments(t: Thread<1>, x: &[u32], heads: &[u32], mut y: DisjointSlice<u32>, mut s: Shared<Scratch<u64>>) {
        let i = t.index();
        let own = u64::from(heads[i.get()]) << 32 | u64::from(x[i.get()]);
        let sum = t.block_inclusive_scan(&mut s, own, |a, b| if b >> 32 > 0 { b } else { a + b });
        if let Some(y) = y.get_mut(i) { *y = sum as u32; }
    }
    #[kernel(block = 64)]
    pub fn integral_image_row(t: Thread<1>, x: Plane<u32>, y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        let row = t.block_idx()[0] as usize;
        let mut before = 0;
        let mut column = 0;
        while column < x.width() {
            let own = x[row].get(column + t.thread_rank() as usize).copied().unwrap_or(0);
            let sum = t.block_inclusive_scan(&mut s, own, |a, b| a + b);
            if let Some(y) = y.get(row * x.width() + column + t.thread_rank() as usize) { y.store(before + sum, Relaxed); }
            before += t.block_reduce(&mut s, own, |a, b| a + b);
            column += 64;
        }
    }
}

/// Sorts and histograms.
#[ferrogrid::module]
mod sorts {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel(block = 128)]
    pub fn bitonic(t: Thread<1>, mut x: DisjointSlice<u32>, mut tile: Shared<[u32; 128]>) {
        let rank = t.thread_rank() as usize;
        let mut own = x.get_mut(t.index()).map_or(0, |x| *x);
        let mut size = 2;
        while size <= 128 {
            let mut distance = size / 2;
            while distance > 0 {
                tile.fill_with(&t, |_| own);
                let all = t.publish(tile);
                let other = all[rank ^ distance];
                let takes_less = (rank & distance == 0) == (rank & size == 0);
                own = if takes_less { own.min(other) } else { own.max(other) };
                tile = t.reclaim(all);
                distance /= 2;
            }
            size *= 2;
        }
        if let Some(x) = x.get_mut(t.index()) { *x = own; }
    }
    #[kernel(block = 64)]
    pub fn odd_and_even(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let at = 2 * t.thread_rank() as usize;
        for round in 0..128 {
            let at = at + round % 2;
            if at + 1 < y.len() {
                let (a, b) = (y[at].load(Relaxed), y[at + 1].load(Relaxed));
                if a > b { y[at].store(b, Relaxed); y[at + 1].store(a, Relaxed); }
            }
            t.sync_threads();
        }
    }
    #[kernel(block = 64)]
    pub fn until_nothing_moves(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let mut round = 0;
        loop {
            let at = 2 * t.thread_rank() as usize + round % 2;
            let mut has_moved = false;
            if at + 1 < y.len() {
                let (a, b) = (y[at].load(Relaxed), y[at + 1].load(Relaxed));
                if a > b { y[at].store(b, Relaxed); y[at + 1].store(a, Relaxed); has_moved = true; }
            }
            if !t.sync_threads_or(has_moved) && round > 0 { break; }
            round += 1;
        }
    }
    #[kernel(block = 128)]
    pub fn merge_by_ranks(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>], mut tile: Shared<[u32; 128]>) {
        let rank = t.thread_rank() as usize;
        let mut own = x[rank];
        let mut at = rank;
        let mut run = 1;
        while run < 128 {
            tile.fill_with(&t, |_| own);
            let all = t.publish(tile);
            let other = (rank / run) ^ 1;
            let (mut low, mut high) = (other * run, other * run + run);
            while low < high {
                let middle = (low + high) / 2;
                if all[middle] < own { low = middle + 1; } else { high = middle; }
            }
            at = low;
            own = all[rank];
            tile = t.reclaim(all);
            run *= 2;
        }
        y[at % 128].store(own, Relaxed);
    }
    #[kernel(block = 128)]
    pub fn radix_by_bits(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>, mut tile: Shared<ExchangeScratch<u32, 128, 1>>) {
        let mut key = x[t.thread_rank() as usize];
        for bit in 0..32 {
            let is_zero = key >> bit & 1 == 0;
            let before = t.block_exclusive_scan(&mut s, u32::from(is_zero), 0, |a, b| a + b);
            let zeros = t.sync_threads_count(is_zero);
            let place = if is_zero { before } else { zeros + t.thread_rank() - before };
            [key] = t.block_scatter_to_striped(&mut tile, [key], [place]);
        }
        y[t.thread_rank() as usize].store(key, Relaxed);
    }
    #[kernel]
    pub fn histogram(t: Thread<1>, x: &[u8], y: &[DeviceAtomic<u32>], mut bins: Shared<[DeviceAtomic<u32>; 256]>) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish(bins);
        for i in t.grid_stride(x.len()) { bins[x[i.get()] as usize].fetch_add(1, Relaxed); }
        t.sync_threads();
        for i in t.block_stride(256) { y[i].fetch_add(bins[i].load(Relaxed), Relaxed); }
    }
    #[kernel(block = 256)]
    pub fn histogram_and_its_sums(t: Thread<1>, x: &[u8], y: &[DeviceAtomic<u32>], mut bins: Shared<[DeviceAtomic<u32>; 256]>, mut s: Shared<Scratch<u32>>) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish(bins);
        for &v in x.iter().skip(t.thread_rank() as usize).step_by(256) { bins[v as usize].fetch_add(1, Relaxed); }
        t.sync_threads();
        let rank = t.thread_rank() as usize;
        let start = t.block_exclusive_scan(&mut s, bins[rank].load(Relaxed), 0, |a, b| a + b);
        y[rank].store(start, Relaxed);
    }
    #[kernel(block = 64)]
    pub fn median_of_a_block(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<SortScratch<f32, 64, 4>>) {
        let first = t.index().get() * 4;
        let keys = t.block_radix_sort(&mut s, core::array::from_fn(|k| x[first + k]), sort::Ascending);
        if t.thread_rank() == 32 { y[t.block_idx()[0] as usize].store(keys[0], Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn selection_by_bisection(t: Thread<1>, x: &[u32], k: u32, y: &[DeviceAtomic<u32>]) {
        let own = x[t.index().get()];
        let (mut low, mut high) = (0, u32::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if t.sync_threads_count(own <= middle) > k { high = middle; } else { low = middle + 1; }
        }
        if t.thread_rank() == 0 { y[0].store(low, Relaxed); }
    }
}
