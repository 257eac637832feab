//! Kernels for dependent launches, and ordinary ones between them.

/// Without `unsafe`.
#[ferrogrid::module]
pub mod dependents {
    use ferrogrid::device::prelude::*;

    /// The next value of an element, from itself and another.
    #[inline(always)]
    fn mixed(own: u32, other: u32) -> u32 {
        own.wrapping_mul(3).wrapping_add(other).wrapping_add(1)
    }

    /// Loops for a while; the end is an odd number that no compiler knows.
    #[inline(always)]
    fn spin(rounds: u32, mut value: u32) -> u32 {
        for _ in 0..rounds {
            value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        }
        value | 1
    }

    /// y[i] = 3 x[i] + x[i + shift] + 1; the first block takes longer, after it has let the next launch begin.
    #[kernel(dependent_launch)]
    pub fn step(t: Thread<1>, shift: usize, while_away: [u32; 2], x: &[u32], mut y: DisjointSlice<u32>) {
        let [rounds, even] = while_away;
        t.launch_dependents();
        let i = t.index();
        let late = if t.block_idx()[0] == 0 { spin(rounds, x[0]) } else { 1 };
        if let Some(y) = y.get_mut(i) {
            let (own, other) = (x[i.get()], x[(i.get() + shift) % x.len()]);
            *y = if late == even { 0 } else { mixed(own, other) };
        }
    }

    /// The same without an early start.
    #[kernel]
    pub fn plain(t: Thread<1>, shift: usize, x: &[u32], mut y: DisjointSlice<u32>) {
        t.launch_dependents();
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = mixed(x[i.get()], x[(i.get() + shift) % x.len()]);
        }
    }

    /// The sums of blocks, each added to the previous value, in clusters.
    #[kernel(dependent_launch, block = 64, cluster = 2)]
    pub fn add_sums(t: Thread<1>, x: &[u32], sums: &[DeviceAtomic<u32>], mut own: Shared<[u32; 64]>) {
        let i = t.index();
        own.fill_with(&t, |_| x.get(i.get()).copied().unwrap_or(0));
        let all = t.publish_cluster(own);
        if t.cluster_rank() == 0 && t.thread_rank() == 0 {
            let sum = (0..2).flat_map(|rank| all.block(&t, rank)).fold(0_u32, |sum, x| sum.wrapping_add(*x));
            sums[t.cluster_idx()[0] as usize].fetch_add(sum, atomic::Ordering::Relaxed);
        }
    }
}
