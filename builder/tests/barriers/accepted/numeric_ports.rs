//! Kernels of the kinds that CUDA's samples show: matrices, stencils, graphs and attention.

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
