//! Uniform values that resemble the sources of divergence in `refused/sources.rs`.

#[ferrogrid::module]
mod places {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn first_axis(t: Thread<3>) {
        if t.block_idx()[0] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn second_axis(t: Thread<3>) {
        if t.block_idx()[1] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn third_axis(t: Thread<3>) {
        if t.block_idx()[2] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn size_of_the_block(t: Thread<3>) {
        if t.block_dim()[1] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn threads_of_the_block(t: Thread<2>) {
        for _ in 0..t.block_threads() / 32 { t.sync_threads(); }
    }
    #[kernel]
    pub fn size_of_the_grid(t: Thread<2>) {
        if t.grid_dim()[0] * t.grid_dim()[1] > 9 { t.sync_threads(); }
    }
    #[kernel]
    pub fn first_index_of_the_block(t: Thread<1>, n: u32) {
        if t.block_idx()[0] * t.block_dim()[0] < n { t.sync_threads(); }
    }
    #[kernel]
    pub fn last_block(t: Thread<1>) {
        if t.block_idx()[0] + 1 == t.grid_dim()[0] { t.sync_threads(); }
    }
    #[kernel(cluster = 2)]
    pub fn rank_of_the_cluster_at_a_block(t: Thread<1>) {
        if t.cluster_rank() == 1 { t.sync_threads(); }
    }
    #[kernel(cluster = 2)]
    pub fn size_of_the_cluster(t: Thread<1>) {
        for _ in 0..t.cluster_blocks() { t.sync_cluster(); }
    }
    #[kernel(cluster = 2)]
    pub fn index_of_the_cluster(t: Thread<1>) {
        if t.cluster_idx()[0] & 1 == 0 { t.sync_cluster(); }
    }
    #[kernel(cooperative)]
    pub fn size_of_the_grid_at_the_grid(t: Thread<1>, n: u32) {
        if t.grid_dim()[0] < n { t.sync_grid(); }
    }
    #[kernel(cooperative)]
    pub fn element_at_the_grid(t: Thread<1>, x: &[u32]) {
        if x[5] > 3 { t.sync_grid(); }
    }
    #[kernel]
    pub fn texture_at_one_place(t: Thread<1>, x: Texture<f32, 2>, at: f32) {
        if x.sample(at, 0.5) > 3.0 { t.sync_threads(); }
    }
    #[kernel]
    pub fn element_of_a_texture(t: Thread<1>, x: Texture<[u8; 2]>, i: u32) {
        let [first, second] = x.sample(i as f32 + 0.5);
        if first > second { t.sync_threads(); }
    }
    #[kernel]
    pub fn extents_of_textures(t: Thread<1>, x: Texture<f32, 3>, y: Surface<f32, 2>) {
        if x.depth() > y.width() { t.sync_threads(); }
    }
    #[kernel(cooperative)]
    pub fn rounds_of_the_grid(t: Thread<1>, n: u32) {
        for _ in 0..n { t.sync_threads(); t.sync_grid(); }
    }
    #[kernel]
    pub fn index_less_itself(t: Thread<1>) {
        let (own, end) = (t.index().get(), t.index().get() + 8);
        for _ in own..end { t.sync_threads(); }
    }
    #[kernel]
    pub fn guarded_work_and_a_barrier(t: Thread<2>, width: usize, y: &[DeviceAtomic<u32>]) {
        if t.index().x() < width { y[0].store(1, atomic::Ordering::Relaxed); }
        t.sync_threads();
    }
}

#[ferrogrid::module]
mod votes {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn count(t: Thread<1>, x: &[u32]) {
        if t.sync_threads_count(x[t.index().get()] > 3) > 9 { t.sync_threads(); }
    }
    #[kernel]
    pub fn and(t: Thread<1>, x: &[u32]) {
        if t.sync_threads_and(x[t.index().get()] > 3) { t.sync_threads(); }
    }
    #[kernel]
    pub fn or(t: Thread<1>, x: &[u32]) {
        while t.sync_threads_or(x[t.index().get()] > 3) { t.sync_threads(); }
    }
    #[kernel]
    pub fn shuffle_and_broadcast(t: Thread<1>, x: &[u32]) {
        if t.broadcast(t.warp().shuffle(x[t.index().get()], 3)) > 9 { t.sync_threads(); }
    }
    #[kernel]
    pub fn ballot_and_broadcast(t: Thread<1>, x: &[u32]) {
        if t.broadcast(t.warp().ballot(x[t.index().get()] > 3)) == 7 { t.sync_threads(); }
    }
    #[kernel]
    pub fn vote_of_the_warp_and_of_the_block(t: Thread<1>, x: &[u32]) {
        if t.sync_threads_or(t.warp().any(x[t.index().get()] > 3)) { t.sync_threads(); }
    }
    #[kernel]
    pub fn sum_of_warps_and_of_the_block(t: Thread<1>, x: &[u32], mut s: Shared<Scratch<u32>>) {
        let of_warp = t.warp().reduce(x[t.index().get()], |a, b| a + b);
        if t.block_reduce(&mut s, of_warp, |a, b| a + b) > 9 { t.sync_threads(); }
    }
    #[kernel]
    pub fn reduction_of_floats(t: Thread<1>, x: &[f32], mut s: Shared<Scratch<f32>>) {
        let mut error = 9.0;
        while error > 0.5 { error = t.block_reduce(&mut s, error - x[t.index().get()], f32::max); }
    }
    #[kernel]
    pub fn elected_thread_works(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if t.warp().elect() { y[0].fetch_add(1, atomic::Ordering::Relaxed); }
        t.sync_threads();
    }
    #[kernel]
    pub fn lanes_at_work(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if t.warp().lane() < 7 { y[0].fetch_add(1, atomic::Ordering::Relaxed); } else { y[1].store(3, atomic::Ordering::Relaxed); }
        t.sync_threads();
    }
}

#[ferrogrid::module]
mod memory {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::random::Philox4x32;
    use atomic::Ordering::Relaxed;
    use core::sync::atomic::AtomicU32;

    static COUNT: AtomicU32 = AtomicU32::new(0);

    #[kernel]
    pub fn element_of_a_slice(t: Thread<1>, x: &[u32]) {
        if x[3] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn element_of_the_block(t: Thread<1>, starts: &[u32]) {
        let block = t.block_idx()[0] as usize;
        for _ in starts[block]..starts[block + 1] { t.sync_threads(); }
    }
    #[kernel]
    pub fn element_of_an_element(t: Thread<1>, x: &[u32]) {
        if x[x[x[0] as usize] as usize] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn element_of_a_plane(t: Thread<1>, x: Plane<u32>) {
        if x[0][t.block_idx()[0] as usize] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn shape_of_a_plane(t: Thread<1>, x: Plane<u32>) {
        for _ in 0..x.width() * x.height() { t.sync_threads(); }
    }
    #[kernel]
    pub fn length_of_a_part(t: Thread<1>, x: &[u32], n: usize) {
        let part = &x[n..];
        if part.len() > 64 { t.sync_threads(); }
    }
    #[kernel]
    pub fn length_of_what_is_written(t: Thread<1>, y: DisjointSlice<u32>) {
        for _ in 0..y.len().div_ceil(64) { t.sync_threads(); }
    }
    #[kernel]
    pub fn work_on_what_is_written(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) { *y += 1; }
        t.sync_threads();
    }
    #[kernel]
    pub fn ticket_of_the_first_thread(t: Thread<1>) {
        let ticket = if t.thread_rank() == 0 { COUNT.fetch_add(1, Relaxed) } else { 0 };
        if t.broadcast(ticket) < 5 { t.sync_threads(); }
    }
    #[kernel]
    pub fn work_list(t: Thread<1>, next: &[DeviceAtomic<u32>], n: u32, y: &[DeviceAtomic<u32>]) {
        loop {
            let item = t.broadcast(if t.thread_rank() == 0 { next[0].fetch_add(1, Relaxed) } else { 0 });
            if item >= n { break; }
            y[item as usize].fetch_add(t.thread_rank(), Relaxed);
        }
    }
    #[kernel]
    pub fn relaxed_load_and_vote(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        while t.sync_threads_and(y[0].load(Relaxed) < 3) { t.sync_threads(); }
    }
    #[kernel]
    pub fn shared_element(t: Thread<1>, x: &[u32], mut s: Shared<[u32; 64]>) {
        s.fill_with(&t, |i| x[i]);
        let s = t.publish(s);
        if s[9] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn shared_element_of_a_round(t: Thread<1>, x: &[u32], mut s: Shared<[u32; 64]>) {
        s.fill_with(&t, |i| x[i]);
        let s = t.publish(s);
        for i in 0..64 { if s[i] > 3 { t.sync_threads(); } }
    }
    #[kernel]
    pub fn shared_element_of_an_element(t: Thread<1>, x: &[u32], mut s: Shared<[u32; 64]>) {
        s.fill_with(&t, |i| x[i]);
        let s = t.publish(s);
        if s[s[9] as usize % 64] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn shared_slice(t: Thread<1>, x: &[u32], mut s: SharedSlice<u32>) {
        s.fill_with(&t, |i| x[i]);
        let s = t.publish(s);
        for _ in 0..s.len() { t.sync_threads(); }
        if s[0] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn last_of_a_scan(t: Thread<1>, x: &[u32], mut s: Shared<Scratch<u32>>, mut last: Shared<[u32; 1]>) {
        let sum = t.block_inclusive_scan(&mut s, x[t.index().get()], |a, b| a + b);
        last.fill_with(&t, |_| sum);
        let last = t.publish(last);
        if last[0] > 3 { t.sync_threads(); }
    }
    #[kernel(block = 64)]
    pub fn sorts_in_rounds(t: Thread<1>, x: &[u32], n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<SortScratch<u32, 64, 1>>) {
        let mut keys = [x[t.index().get()]];
        for _ in 0..n { keys = t.block_radix_sort(&mut s, keys.map(|k| k ^ 0x55), sort::Ascending); }
        y[0].store(keys[0], Relaxed);
    }
    #[kernel]
    pub fn random_numbers_of_the_block(t: Thread<1>, seed: u64) {
        let mut random = Philox4x32::new(seed, u64::from(t.block_idx()[0]), 0);
        if random.next_u32x4()[0] > 1 << 31 { t.sync_threads(); }
    }
    #[kernel]
    pub fn random_walk_of_the_block(t: Thread<1>, seed: u64) {
        let mut random = Philox4x32::new(seed, u64::from(t.block_idx()[0]), 0);
        let mut height = 9.0;
        while height > 0.0 { height += random.next_uniform_f32x4()[0] - 0.6; t.sync_threads(); }
    }
    #[kernel]
    pub fn grid_stride_and_a_barrier(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(x.len()) { y[0].fetch_add(x[i.get()], Relaxed); }
        t.sync_threads();
    }
    #[kernel]
    pub fn block_stride_and_a_barrier(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        for i in t.block_stride(x.len()) { y[0].fetch_add(x[i], Relaxed); }
        t.sync_threads();
    }
    #[kernel]
    pub fn places_of_ones_own_in_shared_memory(t: Thread<1>, mut s: Shared<[u32; 100]>, y: &[DeviceAtomic<u32>]) {
        for (_, v) in s.iter_mut(&t) { *v = 1; }
        let s = t.publish(s);
        y[0].store(s[99], Relaxed);
    }
    #[kernel]
    pub fn array_of_the_threads_own(t: Thread<1>, x: &[u32], n: u32, y: &[DeviceAtomic<u32>]) {
        let mut own = [0_u32; 8];
        for round in 0..n {
            own[x[t.index().get()] as usize & 7] += round;
            t.sync_threads();
        }
        y[0].store(own[3], Relaxed);
    }
}
