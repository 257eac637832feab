//! The programs of `refused/operations.rs`, where all threads reach each operation.

#[ferrogrid::module]
mod barriers {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn sync_threads(t: Thread<1>) {
        if t.block_idx()[0] > 7 { t.sync_threads(); }
    }
    #[kernel]
    pub fn sync_threads_count(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>]) {
        if t.block_idx()[0] > 7 { y[0].store(t.sync_threads_count(n > 3), atomic::Ordering::Relaxed); }
    }
    #[kernel]
    pub fn sync_threads_and(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>]) {
        if t.block_idx()[0] > 7 && t.sync_threads_and(n > 3) { y[0].store(1, atomic::Ordering::Relaxed); }
    }
    #[kernel]
    pub fn sync_threads_or(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>]) {
        if t.block_idx()[0] > 7 && t.sync_threads_or(n > 3) { y[0].store(1, atomic::Ordering::Relaxed); }
    }
    #[kernel]
    pub fn broadcast(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        if t.block_idx()[0] > 7 { y[0].store(t.broadcast(x[0]), atomic::Ordering::Relaxed); }
    }
    #[kernel]
    pub fn in_two_axes(t: Thread<2>) {
        if t.block_idx()[0] > 7 { t.sync_threads(); }
    }
    #[kernel(cooperative)]
    pub fn sync_grid(t: Thread<1>) {
        if t.grid_dim()[0] > 7 { t.sync_grid(); }
    }
    #[kernel(cluster = 2)]
    pub fn sync_cluster(t: Thread<1>) {
        if t.cluster_idx()[0] > 7 { t.sync_cluster(); }
    }
}

#[ferrogrid::module]
mod regions {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn publish(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        if t.block_idx()[0] > 7 { y[0].store(t.publish(a)[9], atomic::Ordering::Relaxed); }
    }
    #[kernel]
    pub fn publish_two(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>, mut b: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        b.fill_with(&t, |i| i as u32);
        if t.block_idx()[0] > 7 {
            let (a, b) = t.publish((a, b));
            y[0].store(a[9] + b[8], atomic::Ordering::Relaxed);
        }
    }
    #[kernel]
    pub fn publish_a_slice(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: SharedSlice<u32>) {
        a.fill_with(&t, |i| i as u32);
        if t.block_idx()[0] > 7 { y[0].store(t.publish(a)[9], atomic::Ordering::Relaxed); }
    }
    #[kernel]
    pub fn reclaim(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        let read = t.publish(a);
        y[0].store(read[3], atomic::Ordering::Relaxed);
        if t.block_idx()[0] > 7 { t.reclaim(read).fill_with(&t, |_| 1); }
    }
    #[kernel]
    pub fn publish_and_reclaim(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>, mut b: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        b.fill_with(&t, |i| i as u32);
        let a = t.publish(a);
        if t.block_idx()[0] > 7 {
            let (b, _a) = t.publish_and_reclaim(b, a);
            y[0].store(b[9], atomic::Ordering::Relaxed);
        }
    }
    #[kernel]
    pub fn with_published(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        if t.block_idx()[0] > 7 {
            y[0].store(t.with_published(&mut a, |a| a[5]), atomic::Ordering::Relaxed);
        }
    }
    #[kernel(block = 64)]
    pub fn chosen_by_a_thread(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>, mut b: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        b.fill_with(&t, |i| i as u32);
        let value = if t.block_idx()[0] > 7 {
            t.publish(a)[63]
        } else {
            t.publish(b)[0]
        };
        y[0].store(value, atomic::Ordering::Relaxed);
    }
    #[kernel(cluster = 2)]
    pub fn publish_cluster(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        if t.cluster_idx()[0] > 7 { y[0].store(t.publish_cluster(a)[9], atomic::Ordering::Relaxed); }
    }
    #[kernel(cluster = 2)]
    pub fn reclaim_cluster(t: Thread<1>, y: &[DeviceAtomic<u32>], mut a: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        let read = t.publish_cluster(a);
        y[0].store(read[3], atomic::Ordering::Relaxed);
        if t.cluster_idx()[0] > 7 { t.reclaim_cluster(read).fill_with(&t, |_| 1); }
    }
}

#[ferrogrid::module]
mod algorithms {
    use ferrogrid::device::prelude::*;
    use atomic::Ordering::Relaxed;

    #[kernel]
    pub fn block_reduce(t: Thread<1>, y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_reduce(&mut s, 1, |a, b| a + b), Relaxed); }
    }
    #[kernel]
    pub fn block_inclusive_scan(t: Thread<1>, y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_inclusive_scan(&mut s, 1, |a, b| a + b), Relaxed); }
    }
    #[kernel]
    pub fn block_exclusive_scan(t: Thread<1>, y: &[DeviceAtomic<u32>], mut s: Shared<Scratch<u32>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_exclusive_scan(&mut s, 1, 0, |a, b| a + b), Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn blocked_to_striped(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<ExchangeScratch<u32, 64, 2>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_blocked_to_striped(&mut s, [n; 2])[1], Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn striped_to_blocked(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<ExchangeScratch<u32, 64, 2>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_striped_to_blocked(&mut s, [n; 2])[1], Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn scatter_to_blocked(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<ExchangeScratch<u32, 64, 1>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_scatter_to_blocked(&mut s, [n], [n & 63])[0], Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn scatter_to_striped(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<ExchangeScratch<u32, 64, 1>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_scatter_to_striped(&mut s, [n], [n & 63])[0], Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn radix_sort(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<SortScratch<u32, 64, 1>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_radix_sort(&mut s, [n], sort::Ascending)[0], Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn radix_sort_to_striped(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<SortScratch<u32, 64, 1>>) {
        if t.block_idx()[0] > 7 { y[0].store(t.block_radix_sort_to_striped(&mut s, [n], sort::Descending)[0], Relaxed); }
    }
    #[kernel(block = 64)]
    pub fn radix_sort_pairs(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>], mut s: Shared<SortScratch<u32, 64, 1, f32>>) {
        if t.block_idx()[0] > 7 {
            y[0].store(t.block_radix_sort_pairs(&mut s, [n], [1.0], sort::Ascending).0[0], Relaxed);
        }
    }
}
