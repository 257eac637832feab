//! Kernels of the kinds that CUDA's samples show, as they are written here.

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

/// Scans, and what is made of them.
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

/// Matrices.
#[ferrogrid::module]
mod matrices {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel(block = [16, 16])]
    pub fn transposition(t: Thread<2>, x: Plane<f32>, y: &[DeviceAtomic<f32>], mut tile: Shared<[[f32; 16]; 16]>) {
        let [bx, by] = t.block_idx().map(|b| b as usize * 16);
        tile.fill_with(&t, |[row, column]| x.get(by + row, bx + column).copied().unwrap_or(0.0));
        let tile = t.publish(tile);
        let [column, row] = t.thread_idx().map(|i| i as usize);
        if bx + row < x.width() && by + column < x.height() {
            y[(bx + row) * x.height() + by + column].store(tile[column][row], Relaxed);
        }
    }
    #[kernel(block = [16, 16])]
    pub fn transposition_without_conflicts(t: Thread<2>, x: Plane<f32>, y: &[DeviceAtomic<f32>], mut tile: Shared<Padded<f32, 16, 16>>) {
        let [bx, by] = t.block_idx().map(|b| b as usize * 16);
        tile.fill_with(&t, |[row, column]| x[by + row][bx + column]);
        let tile = t.publish(tile);
        let [column, row] = t.thread_idx().map(|i| i as usize);
        y[(bx + row) * x.height() + by + column].store(tile[column][row], Relaxed);
    }
    #[kernel(block = [16, 16])]
    pub fn product_by_tiles(t: Thread<2>, a: Plane<f32>, b: Plane<f32>, y: &[DeviceAtomic<f32>], mut ta: Shared<[[f32; 16]; 16]>, mut tb: Shared<[[f32; 16]; 16]>) {
        let [bx, by] = t.block_idx().map(|b| b as usize * 16);
        let [column, row] = t.thread_idx().map(|i| i as usize);
        let mut sum = 0.0;
        for k in (0..a.width()).step_by(16) {
            ta.fill_with(&t, |[r, c]| a.get(by + r, k + c).copied().unwrap_or(0.0));
            tb.fill_with(&t, |[r, c]| b.get(k + r, bx + c).copied().unwrap_or(0.0));
            let (ra, rb) = t.publish((ta, tb));
            for i in 0..16 { sum += ra[row][i] * rb[i][column]; }
            (ta, tb) = t.reclaim((ra, rb));
        }
        if by + row < a.height() && bx + column < b.width() { y[(by + row) * b.width() + bx + column].store(sum, Relaxed); }
    }
    #[kernel(block = [16, 16])]
    pub fn product_with_two_buffers(t: Thread<2>, a: Plane<f32>, x: &[f32], y: &[DeviceAtomic<f32>], mut ta: Shared<[[f32; 16]; 16]>, mut tb: Shared<[[f32; 16]; 16]>) {
        let by = t.block_idx()[1] as usize * 16;
        let row = t.thread_idx()[1] as usize;
        let (mut sum, mut k) = (0.0, 0);
        ta.fill_with(&t, |[r, c]| a[by + r][c]);
        let mut read = t.publish(ta);
        while k + 32 <= a.width() {
            tb.fill_with(&t, |[r, c]| a[by + r][k + 16 + c]);
            for i in 0..16 { sum += read[row][i] * x[k + i]; }
            let (other, free) = t.publish_and_reclaim(tb, read);
            for i in 0..16 { sum += other[row][i] * x[k + 16 + i]; }
            ta = free;
            ta.fill_with(&t, |[r, c]| a[by + r][(k + 32 + c) % a.width()]);
            (read, tb) = t.publish_and_reclaim(ta, other);
            k += 32;
        }
        if t.thread_idx()[0] == 0 { y[by + row].store(sum, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn matrix_times_vector(t: Thread<1>, a: Plane<f32>, x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let row = t.block_idx()[0] as usize;
        if row >= a.height() { return; }
        let own: f32 = t.block_stride(a.width()).map(|k| a[row][k] * x[k]).sum();
        let sum = t.block_reduce(&mut s, own, |a, b| a + b);
        if t.thread_rank() == 0 { y[row].store(sum, Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn rows_of_a_sparse_matrix(t: Thread<1>, starts: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let row = t.block_idx()[0] as usize;
        let (from, to) = (starts[row] as usize, starts[row + 1] as usize);
        let mut sum = 0.0;
        for first in (from..to).step_by(128) {
            let k = first + t.thread_rank() as usize;
            let own = if k < to { values[k] * x[columns[k] as usize] } else { 0.0 };
            sum += t.block_reduce(&mut s, own, |a, b| a + b);
        }
        if t.thread_rank() == 0 { y[row].store(sum, Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn elimination(t: Thread<1>, n: usize, m: &[DeviceAtomic<f32>]) {
        let row = t.thread_rank() as usize;
        for k in 0..n {
            let factor = m[row * n + k].load(Relaxed) / m[k * n + k].load(Relaxed);
            t.sync_threads();
            if row > k && row < n {
                for c in k..n { m[row * n + c].store(m[row * n + c].load(Relaxed) - factor * m[k * n + c].load(Relaxed), Relaxed); }
            }
            t.sync_threads();
        }
    }
    #[kernel(block = 64)]
    pub fn back_substitution(t: Thread<1>, n: usize, m: &[f32], x: &[DeviceAtomic<f32>]) {
        let row = t.thread_rank() as usize;
        for k in (0..n).rev() {
            if row == k { x[k].store(x[k].load(Relaxed) / m[k * n + k], Relaxed); }
            t.sync_threads();
            if row < k { x[row].fetch_add(-m[row * n + k] * x[k].load(Relaxed), Relaxed); }
            t.sync_threads();
        }
    }
    #[kernel(block = 128)]
    pub fn power_iteration(t: Thread<1>, a: Plane<f32>, rounds: u32, y: &[DeviceAtomic<f32>], mut v: Shared<[f32; 128]>, mut s: Shared<Scratch<f32>>) {
        let row = t.thread_rank() as usize;
        let mut own = 1.0;
        for _ in 0..rounds {
            v.fill_with(&t, |_| own);
            let all = t.publish(v);
            own = (0..128).map(|k| a[row][k] * all[k]).sum();
            let norm = t.block_reduce(&mut s, own * own, |a, b| a + b).sqrt();
            own /= norm;
            v = t.reclaim(all);
        }
        y[row].store(own, Relaxed);
    }
    #[kernel(block = 128)]
    pub fn conjugate_gradients(t: Thread<1>, a: Plane<f32>, limit: f32, y: &[DeviceAtomic<f32>], mut v: Shared<[f32; 128]>, mut s: Shared<Scratch<f32>>) {
        let row = t.thread_rank() as usize;
        let (mut x, mut r, mut p) = (0.0, 1.0, 1.0);
        let mut old = t.block_reduce(&mut s, r * r, |a, b| a + b);
        while old > limit {
            v.fill_with(&t, |_| p);
            let all = t.publish(v);
            let ap: f32 = (0..128).map(|k| a[row][k] * all[k]).sum();
            let alpha = old / t.block_reduce(&mut s, p * ap, |a, b| a + b);
            x += alpha * p;
            r -= alpha * ap;
            let new = t.block_reduce(&mut s, r * r, |a, b| a + b);
            p = r + new / old * p;
            old = new;
            v = t.reclaim(all);
        }
        y[row].store(x, Relaxed);
    }
    #[kernel(block = [16, 16])]
    pub fn shortest_ways_of_a_tile(t: Thread<2>, n: u32, y: &[DeviceAtomic<u32>], mut d: Shared<[[u32; 16]; 16]>) {
        let [column, row] = t.thread_idx().map(|i| i as usize);
        let mut own = y[row * 16 + column].load(Relaxed);
        for k in 0..n.min(16) as usize {
            d.fill_with(&t, |_| own);
            let all = t.publish(d);
            own = own.min(all[row][k] + all[k][column]);
            d = t.reclaim(all);
        }
        y[row * 16 + column].store(own, Relaxed);
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

/// Stencils, filters, waves.
#[ferrogrid::module]
mod fields {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel(block = 128)]
    pub fn stencil(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 134]>) {
        let first = t.block_idx()[0] as usize * 128;
        tile.fill_with(&t, |i| x.get((first + i).wrapping_sub(3)).copied().unwrap_or(0.0));
        let tile = t.publish(tile);
        let own = t.thread_rank() as usize;
        if let Some(y) = y.get_mut(t.index()) { *y = (own..own + 7).map(|i| tile[i]).sum(); }
    }
    #[kernel(block = [16, 16])]
    pub fn five_points(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>, mut tile: Shared<[[f32; 18]; 18]>) {
        let [bx, by] = t.block_idx().map(|b| b as usize * 16);
        tile.fill_with(&t, |[r, c]| x.get((by + r).wrapping_sub(1), (bx + c).wrapping_sub(1)).copied().unwrap_or(0.0));
        let tile = t.publish(tile);
        let [c, r] = t.thread_idx().map(|i| i as usize + 1);
        if let Some(y) = y.get_mut(t.index()) { *y = 0.25 * (tile[r - 1][c] + tile[r + 1][c] + tile[r][c - 1] + tile[r][c + 1]); }
    }
    #[kernel(block = [16, 16])]
    pub fn rounds_on_a_tile(t: Thread<2>, x: Plane<f32>, rounds: u32, mut y: DisjointSlice<f32, 2>, mut tile: Shared<[[f32; 16]; 16]>) {
        let [c, r] = t.thread_idx().map(|i| i as usize);
        let mut own = x.get(t.index().y(), t.index().x()).copied().unwrap_or(0.0);
        for _ in 0..rounds {
            tile.fill_with(&t, |_| own);
            let all = t.publish(tile);
            own = 0.25 * (all[r.saturating_sub(1)][c] + all[(r + 1).min(15)][c] + all[r][c.saturating_sub(1)] + all[r][(c + 1).min(15)]);
            tile = t.reclaim(all);
        }
        if let Some(y) = y.get_mut(t.index()) { *y = own; }
    }
    #[kernel(block = [16, 16])]
    pub fn until_it_is_still(t: Thread<2>, x: Plane<f32>, limit: f32, mut y: DisjointSlice<f32, 2>, mut tile: Shared<[[f32; 16]; 16]>) {
        let [c, r] = t.thread_idx().map(|i| i as usize);
        let mut own = x[t.index().y()][t.index().x()];
        loop {
            tile.fill_with(&t, |_| own);
            let all = t.publish(tile);
            let next = 0.5 * (all[r][(c + 1) % 16] + all[(r + 1) % 16][c]);
            let is_busy = (next - own).abs() > limit;
            own = next;
            tile = t.reclaim(all);
            if !t.sync_threads_or(is_busy) { break; }
        }
        if let Some(y) = y.get_mut(t.index()) { *y = own; }
    }
    #[kernel(cooperative)]
    pub fn rounds_of_the_whole_grid(t: Thread<1>, n: u32, a: &[DeviceAtomic<f32>], b: &[DeviceAtomic<f32>]) {
        for round in 0..n {
            let (from, to) = if round % 2 == 0 { (a, b) } else { (b, a) };
            for i in t.grid_stride(to.len()) {
                let i = i.get();
                to[i].store(0.5 * (from[i].load(Relaxed) + from[(i + 1) % from.len()].load(Relaxed)), Relaxed);
            }
            t.sync_grid();
        }
    }
    #[constant]
    static WEIGHTS: Constant<[f32; 9]> = Constant::new([1.0; 9]);
    #[kernel(block = 128)]
    pub fn convolution_of_rows(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 136]>) {
        let first = t.block_idx()[0] as usize * 128;
        tile.fill_with(&t, |i| x.get((first + i).wrapping_sub(4)).copied().unwrap_or(0.0));
        let tile = t.publish(tile);
        let own = t.thread_rank() as usize;
        if let Some(y) = y.get_mut(t.index()) { *y = (0..9).map(|k| WEIGHTS[k] * tile[own + k]).sum(); }
    }
    #[kernel(block = [8, 32])]
    pub fn convolution_of_columns(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>, mut tile: Shared<[[f32; 8]; 40]>) {
        let [bx, by] = [t.block_idx()[0] as usize * 8, t.block_idx()[1] as usize * 32];
        tile.fill_with(&t, |[r, c]| x.get((by + r).wrapping_sub(4), bx + c).copied().unwrap_or(0.0));
        let tile = t.publish(tile);
        let [c, r] = t.thread_idx().map(|i| i as usize);
        if let Some(y) = y.get_mut(t.index()) { *y = (0..9).map(|k| WEIGHTS[k] * tile[r + k][c]).sum(); }
    }
    #[kernel(block = 128)]
    pub fn bodies(t: Thread<1>, places: &[[f32; 4]], mut pulls: DisjointSlice<[f32; 4]>, mut tile: Shared<[Aligned16<[f32; 4]>; 128]>) {
        let own = places.get(t.index().get()).copied().unwrap_or([0.0; 4]);
        let mut pull = [0.0_f32; 4];
        for first in (0..places.len()).step_by(128) {
            tile.fill_with(&t, |i| Aligned16::new(places.get(first + i).copied().unwrap_or([0.0; 4])));
            let all = t.publish(tile);
            for other in all.iter() {
                let d = [other[0] - own[0], other[1] - own[1], other[2] - own[2]];
                let distance = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01;
                let factor = other[3] / (distance * distance.sqrt());
                for k in 0..3 { pull[k] += factor * d[k]; }
            }
            tile = t.reclaim(all);
        }
        if let Some(place) = pulls.get_mut(t.index()) { *place = pull; }
    }
    #[kernel(block = 64)]
    pub fn fourier_by_stages(t: Thread<1>, x: &[[f32; 2]], y: &[DeviceAtomic<f32>], mut re: Shared<[f32; 64]>, mut im: Shared<[f32; 64]>) {
        let rank = t.thread_rank() as usize;
        let mut own = x[(rank as u32).reverse_bits() as usize >> 26];
        let mut half = 1;
        while half < 64 {
            re.fill_with(&t, |_| own[0]);
            im.fill_with(&t, |_| own[1]);
            let all = t.publish((re, im));
            let angle = -core::f32::consts::PI * (rank % half) as f32 / half as f32;
            let (sin, cos) = (angle.sin(), angle.cos());
            let [low, high] = [rank & !half, rank | half].map(|i| [all.0[i], all.1[i]]);
            let turned = [high[0] * cos - high[1] * sin, high[0] * sin + high[1] * cos];
            let sign = if rank & half == 0 { 1.0 } else { -1.0 };
            own = [low[0] + sign * turned[0], low[1] + sign * turned[1]];
            (re, im) = t.reclaim(all);
            half *= 2;
        }
        y[rank].store(own[0], Relaxed);
    }
    #[kernel(block = 64)]
    pub fn walsh(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut tile: Shared<[f32; 64]>) {
        let rank = t.thread_rank() as usize;
        let mut own = x[rank];
        for stage in 0..6 {
            tile.fill_with(&t, |_| own);
            let all = t.publish(tile);
            let other = all[rank ^ 1 << stage];
            own = if rank >> stage & 1 == 0 { own + other } else { other - own };
            tile = t.reclaim(all);
        }
        y[rank].store(own, Relaxed);
    }
    #[kernel(block = 128)]
    pub fn haar_wavelet(t: Thread<1>, levels: u32, y: &[DeviceAtomic<f32>]) {
        let rank = t.thread_rank() as usize;
        let mut length = y.len() / 2;
        for _ in 0..levels {
            if length == 0 { break; }
            let pair = if rank < length { [y[2 * rank].load(Relaxed), y[2 * rank + 1].load(Relaxed)] } else { [0.0; 2] };
            t.sync_threads();
            if rank < length {
                y[rank].store(pair[0] + pair[1], Relaxed);
                y[length + rank].store(pair[0] - pair[1], Relaxed);
            }
            t.sync_threads();
            length /= 2;
        }
    }
    #[kernel(block = 256)]
    pub fn binomial_tree(t: Thread<1>, steps: u32, up: f32, y: &[DeviceAtomic<f32>], mut tile: Shared<[f32; 256]>) {
        let rank = t.thread_rank() as usize;
        let mut own = (rank as f32 * up - 1.0).max(0.0);
        for step in (0..steps).rev() {
            tile.fill_with(&t, |_| own);
            let all = t.publish(tile);
            if rank <= step as usize { own = 0.5 * (own + all[(rank + 1).min(255)]); }
            tile = t.reclaim(all);
        }
        if rank == 0 { y[t.block_idx()[0] as usize].store(own, Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn tridiagonal_by_halves(t: Thread<1>, y: &[DeviceAtomic<f32>], mut d: Shared<[Aligned16<[f32; 4]>; 64]>) {
        let rank = t.thread_rank() as usize;
        let mut own = [1.0, 4.0, 1.0, y[rank].load(Relaxed)];
        let mut distance = 1;
        while distance < 64 {
            d.fill_with(&t, |_| Aligned16::new(own));
            let all = t.publish(d);
            if rank >= distance {
                let above = *all[rank - distance];
                let k = own[0] / above[1];
                own = [-above[0] * k, own[1] - above[2] * k, own[2], own[3] - above[3] * k];
            }
            if rank + distance < 64 {
                let below = *all[rank + distance];
                let k = own[2] / below[1];
                own = [own[0], own[1] - below[0] * k, -below[2] * k, own[3] - below[3] * k];
            }
            d = t.reclaim(all);
            distance *= 2;
        }
        y[rank].store(own[3] / own[1], Relaxed);
    }
    #[kernel(block = [16, 16])]
    pub fn game_of_life(t: Thread<2>, x: Plane<u8>, mut y: DisjointSlice<u8, 2>, mut tile: Shared<[[u8; 18]; 18]>) {
        let [bx, by] = t.block_idx().map(|b| b as usize * 16);
        tile.fill_with(&t, |[r, c]| x.get((by + r).wrapping_sub(1), (bx + c).wrapping_sub(1)).copied().unwrap_or(0));
        let tile = t.publish(tile);
        let [c, r] = t.thread_idx().map(|i| i as usize);
        let mut alive = 0;
        for dr in 0..3 { for dc in 0..3 { alive += tile[r + dr][c + dc]; } }
        if let Some(y) = y.get_mut(t.index()) { *y = u8::from(alive == 3 || alive == 4 && tile[r + 1][c + 1] == 1); }
    }
}

/// Graphs and queues.
#[ferrogrid::module]
mod graphs {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel]
    pub fn breadth_first(t: Thread<1>, starts: &[u32], edges: &[u32], depth: &[DeviceAtomic<u32>]) {
        let mut level = 0;
        loop {
            let mut has_found = false;
            for v in t.block_stride(depth.len()) {
                if depth[v].load(Relaxed) != level { continue; }
                for e in starts[v]..starts[v + 1] {
                    let to = edges[e as usize] as usize;
                    if depth[to].compare_exchange(u32::MAX, level + 1, Relaxed, Relaxed).is_ok() { has_found = true; }
                }
            }
            if !t.sync_threads_or(has_found) { return; }
            level += 1;
        }
    }
    #[kernel]
    pub fn queue_of_a_block(t: Thread<1>, starts: &[u32], edges: &[u32], seen: &[DeviceAtomic<u32>], next: &[DeviceAtomic<u32>], mut queue: Shared<[DeviceAtomic<u32>; 256]>, mut count: Shared<[DeviceAtomic<u32>; 1]>) {
        queue.fill_with(&t, |_| DeviceAtomic::new(0));
        count.fill_with(&t, |_| DeviceAtomic::new(0));
        let (queue, count) = t.publish((queue, count));
        let v = t.index().get();
        if v + 1 < starts.len() {
            for e in starts[v]..starts[v + 1] {
                let to = edges[e as usize];
                if seen[to as usize].swap(1, Relaxed) == 0 {
                    let at = count[0].fetch_add(1, Relaxed) as usize;
                    if at < 256 { queue[at].store(to, Relaxed); }
                }
            }
        }
        t.sync_threads();
        let all = count[0].load(Relaxed).min(256);
        let first = t.broadcast(if t.thread_rank() == 0 { next[0].fetch_add(all, Relaxed) } else { 0 });
        for i in t.block_stride(all as usize) { next[1 + first as usize + i].store(queue[i].load(Relaxed), Relaxed); }
    }
    #[kernel]
    pub fn labels_of_parts(t: Thread<1>, edges: &[[u32; 2]], labels: &[DeviceAtomic<u32>]) {
        loop {
            let mut has_changed = false;
            for i in t.block_stride(edges.len()) {
                let [a, b] = edges[i].map(|v| v as usize);
                let least = labels[a].load(Relaxed).min(labels[b].load(Relaxed));
                has_changed |= labels[a].fetch_min(least, Relaxed) > least;
                has_changed |= labels[b].fetch_min(least, Relaxed) > least;
            }
            if !t.sync_threads_or(has_changed) { break; }
        }
    }
    #[kernel]
    pub fn page_rank_of_a_block(t: Thread<1>, starts: &[u32], edges: &[u32], limit: f32, ranks: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let v = t.thread_rank() as usize;
        loop {
            let mut own = 0.15;
            for e in starts[v]..starts[v + 1] { own += 0.85 * ranks[edges[e as usize] as usize].load(Relaxed); }
            let change = (own - ranks[v].load(Relaxed)).abs();
            t.sync_threads();
            ranks[v].store(own, Relaxed);
            if t.block_reduce(&mut s, change, f32::max) <= limit { break; }
        }
    }
    #[kernel(block = 128)]
    pub fn nearest_means(t: Thread<1>, x: &[f32], rounds: u32, y: &[DeviceAtomic<f32>], mut means: Shared<[f32; 8]>, mut s: Shared<Scratch<f32>>) {
        let own = x[t.index().get()];
        means.fill_with(&t, |k| x[k]);
        for _ in 0..rounds {
            let all = t.publish(means);
            let mut nearest = 0;
            for k in 1..8 { if (all[k] - own).abs() < (all[nearest] - own).abs() { nearest = k; } }
            let mut next = [0.0; 8];
            for (k, next) in next.iter_mut().enumerate() {
                let is_own = f32::from(u8::from(nearest == k));
                let sum = t.block_reduce(&mut s, is_own * own, |a, b| a + b);
                let count = t.block_reduce(&mut s, is_own, |a, b| a + b);
                *next = sum / count.max(1.0);
            }
            means = t.reclaim(all);
            means.fill_with(&t, |k| next[k]);
        }
        let all = t.publish(means);
        if t.thread_rank() < 8 { y[t.thread_rank() as usize].store(all[t.thread_rank() as usize], Relaxed); }
    }
}

/// Pieces of attention and of normal forms.
#[ferrogrid::module]
mod layers {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel(block = 128)]
    pub fn running_softmax_of_tiles(t: Thread<1>, scores: Plane<f32>, y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let row = t.block_idx()[0] as usize;
        let (mut greatest, mut sum) = (f32::MIN, 0.0);
        for first in (0..scores.width()).step_by(128) {
            let own = scores[row].get(first + t.thread_rank() as usize).copied().unwrap_or(f32::MIN);
            let next = greatest.max(t.block_reduce(&mut s, own, f32::max));
            sum = sum * (greatest - next).exp() + t.block_reduce(&mut s, (own - next).exp(), |a, b| a + b);
            greatest = next;
        }
        if t.thread_rank() == 0 { y[row].store(greatest + sum.ln(), Relaxed); }
    }
    #[kernel(block = 128)]
    pub fn clipped_by_the_norm(t: Thread<1>, limit: f32, x: &[f32], mut y: DisjointSlice<f32>, mut s: Shared<Scratch<f32>>) {
        let own = x.get(t.index().get()).copied().unwrap_or(0.0);
        let mut norm = t.block_reduce(&mut s, own * own, |a, b| a + b).sqrt();
        if norm > limit { norm = t.block_reduce(&mut s, own.abs(), f32::max); }
        if let Some(y) = y.get_mut(t.index()) { *y = own / norm; }
    }
    #[kernel(block = 64)]
    pub fn greatest_few(t: Thread<1>, k: u32, x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        let mut own = x[t.index().get()];
        for place in 0..k as usize {
            let greatest = t.block_reduce(&mut s, own, f32::max);
            if own == greatest { own = f32::MIN; }
            if t.thread_rank() == 0 { y[place].store(greatest, Relaxed); }
        }
    }
    #[kernel(block = 64)]
    pub fn embedding_sum(t: Thread<1>, words: &[u32], table: Plane<f32>, y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        for &word in words {
            let own: f32 = t.block_stride(table.width()).map(|c| table[word as usize][c]).sum();
            let sum = t.block_reduce(&mut s, own, |a, b| a + b);
            if t.thread_rank() == 0 { y[word as usize].fetch_add(sum, Relaxed); }
        }
    }
}
