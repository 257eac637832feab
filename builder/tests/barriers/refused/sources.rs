//! Sources of divergence: values that may differ between any two threads. `accepted/sources.rs` has similar
//! uniform values.

#[ferrogrid::module]
mod places {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn first_axis(t: Thread<3>) {
        if t.thread_idx()[0] > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn second_axis(t: Thread<3>) {
        if t.thread_idx()[1] > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn third_axis(t: Thread<3>) {
        if t.thread_idx()[2] > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn rank_in_two_axes(t: Thread<2>) {
        if t.thread_rank() == 1 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn index_in_the_grid(t: Thread<2>, width: usize) {
        if t.index().x() < width { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn row_in_the_grid(t: Thread<2>, height: usize) {
        if t.index().y() < height { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn layer_in_the_grid(t: Thread<3>, depth: usize) {
        if t.index().z() < depth { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn texture_at_its_place(t: Thread<1>, x: Texture<f32>) {
        if x.sample(t.index().get() as f32) > 3.0 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn element_of_a_texture(t: Thread<1>, x: Texture<u8, 2>) {
        if x.sample(t.index().get() as f32, 0.5) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn surface(t: Thread<1>, x: Surface<u32>) {
        if x.get(t.index()) == Some(3) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn surface_at_one_place(t: Thread<1>, x: Surface<u32>) {
        let first: u32 = unsafe { x.read::<ferrogrid::device::surface::Zero>([0]) };
        if first == 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn lane(t: Thread<1>) {
        if t.warp().lane() == 0 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn warp_number(t: Thread<1>) {
        if t.thread_rank() / 32 == 1 { t.sync_threads(); } //~ block
    }
    #[kernel(block = 256)]
    pub fn warp_number_of_a_known_block(t: Thread<1>) {
        if t.thread_rank() >> 5 < 4 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn rank_of_a_tile(t: Thread<1>) {
        if t.warp().tile::<8>().rank() == 0 { t.sync_threads(); } //~ block
    }
    #[kernel(cluster = 2)]
    pub fn block_of_a_cluster(t: Thread<1>) {
        if t.cluster_block_idx()[0] == 1 { t.sync_cluster(); } //~ cluster
    }
    #[kernel(cluster = 2)]
    pub fn index_of_a_block_at_a_cluster(t: Thread<1>) {
        if t.block_idx()[0] & 1 == 0 { t.sync_cluster(); } //~ cluster
    }
    #[kernel(cooperative)]
    pub fn index_of_a_block_at_the_grid(t: Thread<1>, n: u32) {
        if t.block_idx()[0] < n { t.sync_grid(); } //~ grid
    }
    #[kernel(cooperative)]
    pub fn element_of_a_block_at_the_grid(t: Thread<1>, x: &[u32]) {
        if x[t.block_idx()[0] as usize] > 3 { t.sync_grid(); } //~ grid
    }
    #[kernel(cooperative)]
    pub fn count_of_a_block_at_the_grid(t: Thread<1>, x: &[u32]) {
        if t.sync_threads_count(x[t.index().get()] > 3) > 5 { t.sync_grid(); } //~ grid
    }
}

#[ferrogrid::module]
mod warps {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn shuffle(t: Thread<1>, x: &[u32]) {
        if t.warp().shuffle(x[t.index().get()], 3) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn shuffle_up(t: Thread<1>, x: &[u32]) {
        if t.warp().shuffle_up(x[t.index().get()], 1) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn shuffle_down(t: Thread<1>, x: &[u32]) {
        if t.warp().shuffle_down(x[t.index().get()], 1) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn shuffle_xor(t: Thread<1>, x: &[u32]) {
        if t.warp().shuffle_xor(x[t.index().get()], 1) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn ballot(t: Thread<1>, x: &[u32]) {
        if t.warp().ballot(x[t.index().get()] > 3) == 7 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn all(t: Thread<1>, x: &[u32]) {
        if t.warp().all(x[t.index().get()] > 3) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn any(t: Thread<1>, x: &[u32]) {
        if t.warp().any(x[t.index().get()] > 3) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn match_any(t: Thread<1>, x: &[u32]) {
        if t.warp().match_any(x[t.index().get()]) == 1 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn match_all(t: Thread<1>, x: &[u32]) {
        if t.warp().match_all(x[t.index().get()]) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn elect(t: Thread<1>) {
        if t.warp().elect() { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn active_mask(t: Thread<1>) {
        if t.warp().active_mask() == u32::MAX { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn reduction(t: Thread<1>, x: &[u32]) {
        if t.warp().reduce(x[t.index().get()], |a, b| a ^ b) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn reduction_in_one_instruction(t: Thread<1>, x: &[u32]) {
        if t.warp().reduce_add(x[t.index().get()]) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn scan(t: Thread<1>) {
        if t.warp().inclusive_scan(1, |a, b| a + b) > 9 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn sum_of_a_tile(t: Thread<1>, x: &[u32]) {
        if t.warp().tile::<8>().reduce(x[t.index().get()], |a, b| a + b) > 9 { t.sync_threads(); } //~ block
    }
}

#[ferrogrid::module]
mod memory {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::random::Philox4x32;
    use atomic::Ordering::{Acquire, Relaxed};
    use core::sync::atomic::AtomicU32;

    static COUNT: AtomicU32 = AtomicU32::new(0);

    #[kernel]
    pub fn element_of_a_slice(t: Thread<1>, x: &[u32]) {
        if x[t.index().get()] > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn element_of_a_plane(t: Thread<1>, x: Plane<u32>) {
        if x[0][t.thread_rank() as usize] > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn row_of_a_plane(t: Thread<1>, x: Plane<u32>) {
        if x[t.thread_rank() as usize][0] > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn length_of_a_part(t: Thread<1>, x: &[u32]) {
        let part = &x[t.thread_rank() as usize..];
        if part.len() > 64 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn element_that_is_written(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let own = y.get_mut(t.index()).map_or(0, |y| { *y += 1; *y });
        if own > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn place_in_a_slice_or_not(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if y.get_mut(t.index()).is_some() { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn fetch_add(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if y[0].fetch_add(1, Relaxed) == 0 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn fetch_max(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if y[0].fetch_max(1, Relaxed) == 0 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn swap(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if y[0].swap(1, Relaxed) == 0 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn compare_exchange(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if y[0].compare_exchange(0, 1, Relaxed, Relaxed).is_ok() { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn relaxed_load(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if y[0].load(Relaxed) > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn acquire_load(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if y[0].load(Acquire) > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn ticket_of_a_static(t: Thread<1>) {
        if COUNT.fetch_add(1, Relaxed) < 5 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn ticket_in_shared_memory(t: Thread<1>, mut s: Shared<[DeviceAtomic<u32>; 4]>) {
        s.fill_with(&t, |_| DeviceAtomic::new(0));
        let s = t.publish(s);
        if s[0].fetch_add(1, Relaxed) < 5 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn load_of_an_atomic_in_shared_memory(t: Thread<1>, mut s: Shared<[DeviceAtomic<u32>; 4]>) {
        s.fill_with(&t, |_| DeviceAtomic::new(0));
        let s = t.publish(s);
        s[1].fetch_add(1, Relaxed);
        if s[1].load(Relaxed) < 5 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn shared_element_of_ones_own(t: Thread<1>, x: &[u32], mut s: Shared<[u32; 64]>) {
        s.fill_with(&t, |i| x[i]);
        let s = t.publish(s);
        if s[t.thread_rank() as usize] > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn inclusive_scan(t: Thread<1>, x: &[u32], mut s: Shared<Scratch<u32>>) {
        if t.block_inclusive_scan(&mut s, x[t.index().get()], |a, b| a + b) > 3 { t.sync_threads(); } //~ block
    }
    #[kernel(block = 64)]
    pub fn key_of_a_sort(t: Thread<1>, x: &[u32], mut s: Shared<SortScratch<u32, 64, 1>>) {
        let [key] = t.block_radix_sort(&mut s, [x[t.index().get()]], sort::Ascending);
        if key > 3 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn random_numbers(t: Thread<1>, seed: u64) {
        let mut random = Philox4x32::new(seed, t.index().get() as u64, 0);
        if random.next_u32x4()[0] > 1 << 31 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn random_walk(t: Thread<1>, seed: u64) {
        let mut random = Philox4x32::new(seed, t.index().get() as u64, 0);
        let mut height = 9.0;
        while height > 0.0 { height += random.next_uniform_f32x4()[0] - 0.6; t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn elements_of_a_grid_stride(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(x.len()) {
            y[0].fetch_add(x[i.get()], Relaxed);
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn elements_of_a_block_stride(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        for i in t.block_stride(x.len()) {
            y[0].fetch_add(x[i], Relaxed);
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn elements_of_ones_own_in_shared_memory(t: Thread<1>, mut s: Shared<[u32; 100]>) {
        for (_, v) in s.iter_mut(&t) {
            *v = 1;
            t.sync_threads(); //~ block
        }
    }
}
