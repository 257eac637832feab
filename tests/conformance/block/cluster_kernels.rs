//! Kernels with clusters.

/// Without `unsafe`.
#[ferrogrid::module]
pub mod clusters {
    use ferrogrid::device::prelude::*;

    /// Where each block is: cluster, place in the cluster, rank, blocks of a cluster, along x and y.
    #[kernel(block = [8, 2], cluster = [3, 2])]
    pub fn places(t: Thread<2>, mut out: DisjointSlice<[u32; 8], 2>) {
        let ([cx, cy], [bx, by], [dx, dy]) = (t.cluster_idx(), t.cluster_block_idx(), t.cluster_dim());
        if let Some(out) = out.get_mut(t.index()) {
            *out = [cx, cy, bx, by, dx, dy, t.cluster_rank(), t.cluster_blocks()];
        }
    }

    /// The rank of each block in its cluster of three dimensions.
    #[kernel(cluster = [2, 3, 2])]
    pub fn ranks(t: Thread<3>, mut out: DisjointSlice<u32, 3>) {
        if let Some(out) = out.get_mut(t.index()) {
            *out = t.cluster_rank();
        }
    }

    /// The same as `places` of a kernel without clusters.
    #[kernel]
    pub fn places_without(t: Thread<1>, mut out: DisjointSlice<[u32; 5]>) {
        let ([cluster], [block], [dim]) = (t.cluster_idx(), t.cluster_block_idx(), t.cluster_dim());
        if let Some(out) = out.get_mut(t.index()) {
            *out = [cluster, block, dim, t.cluster_rank(), t.cluster_blocks()];
        }
    }

    /// In each step every thread adds the value of its neighbour in the next block of the cluster.
    #[kernel(block = 64, cluster = 4)]
    pub fn ring(t: Thread<1>, steps: u32, mut out: DisjointSlice<u32>, mut values: Shared<[u32; 64]>) {
        let (rank, own) = (t.cluster_rank(), t.thread_rank() as usize);
        values.fill_with(&t, |i| rank * 100 + i as u32);
        for _ in 0..steps {
            let read = t.publish_cluster(values);
            let next = read.block(&t, (rank + 1) % t.cluster_blocks())[(own + 1) % 64];
            let sum = read[own] + next;
            values = t.reclaim_cluster(read);
            values.fill_with(&t, |_| sum);
        }
        let values = t.publish(values);
        if let Some(out) = out.get_mut(t.index()) {
            *out = values[own];
        }
    }

    /// The parts of a slice in each block of the cluster, one after the other; two regions, one barrier.
    #[kernel(cluster = 2)]
    pub fn slices(
        t: Thread<1>,
        mut out: DisjointSlice<u32>,
        mut part: SharedSlice<u16>,
        mut marks: Shared<[u32; 1]>,
    ) {
        let rank = t.cluster_rank();
        part.fill_with(&t, |i| (rank as usize * 1000 + i) as u16);
        marks.fill_with(&t, |_| 7 + rank);
        let (part, marks) = t.publish_cluster((part, marks));
        let mut sum = 0;
        for rank in 0..t.cluster_blocks() {
            sum += part.block(&t, rank).iter().map(|&it| u32::from(it)).sum::<u32>();
            sum += marks.block(&t, rank)[0];
        }
        if let Some(out) = out.get_mut(t.index()) {
            *out = sum;
        }
    }

    /// A histogram whose bins are spread over the blocks of a cluster: block r has the bins from 64 r on.
    #[kernel(block = 128, cluster = 4)]
    pub fn histogram(
        t: Thread<1>,
        data: &[u8],
        counts: &[DeviceAtomic<u32>],
        mut bins: Shared<[DeviceAtomic<u32>; 64]>,
    ) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish_cluster(bins);
        for i in t.grid_stride(data.len()) {
            let bin = usize::from(data[i.get()]);
            bins.block(&t, bin as u32 / 64)[bin % 64].fetch_add(1, atomic::Ordering::Relaxed);
        }
        t.sync_cluster();
        let (first, own) = (t.cluster_rank() as usize * 64, t.thread_rank() as usize);
        if own < 64 {
            let count = bins[own].load(atomic::Ordering::Relaxed);
            counts[first + own].fetch_add(count, atomic::Ordering::Relaxed);
        }
    }

    /// Blocks exchange numbers through global memory.
    #[kernel(cluster = [1, 2])]
    pub fn tell(t: Thread<2>, told: &[DeviceAtomic<u32>], mut out: DisjointSlice<u32, 2>) {
        let [[bx, by], [_, y]] = [t.block_idx(), t.cluster_block_idx()];
        let width = t.grid_dim()[0];
        let place = |y: u32| ((by - by % 2 + y) * width + bx) as usize;
        if t.thread_rank() == 0 {
            told[place(y)].store(bx * 10 + by + 1, atomic::Ordering::Relaxed);
        }
        t.sync_cluster();
        if let Some(out) = out.get_mut(t.index()) {
            *out = told[place(1 - y)].load(atomic::Ordering::Relaxed);
        }
    }

    /// As `places`, in clusters of the launch's size.
    #[kernel(cluster)]
    pub fn places_of_launch(t: Thread<2>, mut out: DisjointSlice<[u32; 8], 2>) {
        let ([cx, cy], [bx, by], [dx, dy]) = (t.cluster_idx(), t.cluster_block_idx(), t.cluster_dim());
        t.sync_cluster();
        if let Some(out) = out.get_mut(t.index()) {
            *out = [cx, cy, bx, by, dx, dy, t.cluster_rank(), t.cluster_blocks()];
        }
    }

    /// The sum of the parts of `x` in the blocks of the cluster, with the launch's cluster size.
    #[kernel(block = 32, cluster)]
    pub fn sums(t: Thread<1>, x: &[u32], mut out: DisjointSlice<u32>, mut own: Shared<[u32; 32]>) {
        let i = t.index();
        own.fill_with(&t, |_| x[i.get()]);
        let all = t.publish_cluster(own);
        let sum = (0..t.cluster_blocks()).map(|rank| all.block(&t, rank).iter().sum::<u32>()).sum();
        if let Some(out) = out.get_mut(i) {
            *out = sum;
        }
    }

    /// Accesses the block of that rank.
    #[kernel(block = 32, cluster = 2)]
    pub fn of_rank(t: Thread<1>, rank: u32, mut out: DisjointSlice<u32>, mut values: Shared<[u32; 32]>) {
        let own = t.cluster_rank();
        values.fill_with(&t, |_| own);
        let values = t.publish_cluster(values);
        if let Some(out) = out.get_mut(t.index()) {
            *out = values.block(&t, rank)[0];
        }
    }

    /// A cluster of more blocks than every device supports.
    #[kernel(block = 64, cluster = 16)]
    pub fn large(t: Thread<1>, mut out: DisjointSlice<u32>, mut values: Shared<[u32; 64]>) {
        let rank = t.cluster_rank();
        values.fill_with(&t, |_| rank);
        let values = t.publish_cluster(values);
        let sum = (0..t.cluster_blocks()).map(|rank| values.block(&t, rank)[0]).sum();
        if let Some(out) = out.get_mut(t.index()) {
            *out = sum;
        }
    }
}

/// Kernels with faults. For a GPU it would not compile.
#[ferrogrid::module(host_only)]
pub mod faulty {
    use ferrogrid::device::prelude::*;

    /// Only the first block of each cluster waits for it.
    #[kernel(cluster = 2)]
    pub fn half_waits(t: Thread<1>) {
        if t.cluster_rank() == 0 {
            t.sync_cluster();
        }
    }
}
