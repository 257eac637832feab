//! Kernels with warp operations. The build proves for those called `proven_..` that all lanes reach them
//! together. It adds checks to those called `checked_..`, at the lines that end in `//~`, and compares masks
//! in those with `mask` in their names.

#[ferrogrid::module]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn proven_straight(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        y[0].store(t.warp().reduce(x[t.index().get()], |a, b| a + b), Relaxed);
    }

    #[kernel]
    pub fn proven_behind_a_guard_of_the_work(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = x.get(t.index().get()).copied().unwrap_or(0);
        y[0].store(t.warp().inclusive_scan(own, |a, b| a + b), Relaxed);
    }

    #[kernel]
    pub fn proven_first_warp(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if t.thread_rank() < 32 {
            y[0].store(t.warp().reduce_add(t.thread_rank()), Relaxed);
        }
    }

    #[kernel]
    pub fn proven_by_number_of_the_warp(t: Thread<1>, which: u32, y: &[DeviceAtomic<u32>]) {
        if t.thread_rank() / 32 == which {
            y[0].store(t.warp().ballot(t.thread_rank() % 3 == 0), Relaxed);
        }
    }

    #[kernel]
    pub fn proven_return_of_warps(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if t.thread_rank() >= 64 {
            return;
        }
        y[0].store(t.warp().shuffle(t.thread_rank(), 3), Relaxed);
    }

    #[kernel]
    pub fn proven_loop_of_each_warp(t: Thread<1>, rows: u32, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let mut row = t.thread_rank() / 32;
        while row < rows {
            let sum = t.warp().reduce(x[(row * 32 + t.warp().lane()) as usize], |a, b| a + b);
            y[row as usize].store(sum, Relaxed);
            row += 4;
        }
    }

    #[kernel]
    pub fn proven_lengths_that_a_warp_reads(t: Thread<1>, starts: &[u32], x: &[u32], y: &[DeviceAtomic<u32>]) {
        let row = (t.thread_rank() / 32) as usize;
        let (mut at, end, mut sum) = (starts[row], starts[row + 1], 0);
        while at < end {
            let own = x.get((at + t.warp().lane()) as usize).copied().unwrap_or(0);
            sum += t.warp().reduce(own, |a, b| a + b);
            at += 32;
        }
        y[row].store(sum, Relaxed);
    }

    #[kernel(block = [16, 16])]
    pub fn proven_warps_of_two_rows(t: Thread<2>, y: &[DeviceAtomic<u32>]) {
        if t.thread_idx()[1] / 2 == 3 {
            y[0].store(t.warp().reduce_max(t.thread_rank()), Relaxed);
        }
    }

    #[kernel(block = [32, 4])]
    pub fn proven_warps_that_are_rows(t: Thread<2>, y: &[DeviceAtomic<u32>]) {
        if t.thread_idx()[1] == 3 {
            y[0].store(t.warp().reduce_max(t.thread_rank()), Relaxed);
        }
    }

    #[kernel]
    pub fn proven_votes_decide(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let mut own = x[t.index().get()];
        while t.warp().any(own > 1) {
            own /= 2;
            y[0].fetch_add(t.warp().shuffle_down(own, 1), Relaxed);
        }
    }

    #[kernel]
    pub fn proven_reductions_by_the_first_lane(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let first = t.warp().broadcast(x[t.index().get()]);
        if first > 7 {
            t.warp().sync();
            y[0].store(first, Relaxed);
        }
    }

    #[kernel]
    pub fn proven_tiles(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = x[t.index().get()];
        let (warp, i) = (t.warp(), t.index().get());
        y[i].store(warp.tile::<16>().reduce(own, |a, b| a + b), Relaxed);
        y[i].store(warp.tile::<8>().reduce_add(own), Relaxed);
        y[i].store(u32::from(warp.tile::<4>().any(own > 3)), Relaxed);
        y[i].store(warp.tile::<2>().shuffle_xor(own, 1), Relaxed);
        warp.tile::<1>().sync();
    }

    #[kernel(block = 256)]
    pub fn proven_block_reduction(t: Thread<1>, x: &[f32], y: &[DeviceAtomic<f32>], mut s: Shared<Scratch<f32>>) {
        y[0].store(t.block_reduce(&mut s, x[t.index().get()], |a, b| a + b), Relaxed);
    }

    #[kernel]
    pub fn proven_halves_of_a_warp_meet(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let mut own = x[t.index().get()];
        if t.warp().lane() < 16 {
            y[1].fetch_add(own, Relaxed);
            own = y[2].load(Relaxed);
        }
        y[0].store(t.warp().reduce_add(own), Relaxed);
    }

    #[kernel]
    pub fn proven_panics_do_not_count(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = x[t.index().get()];
        assert!(own != 17, "{own}");
        y[0].store(t.warp().reduce_add(own), Relaxed);
    }

    #[kernel]
    pub fn proven_partition(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let group = t.warp().binary_partition(x[t.index().get()] > 3);
        y[t.index().get()].store(group.rank(), Relaxed);
    }

    #[kernel]
    pub fn checked_half_a_warp(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if t.warp().lane() < 16 {
            y[0].store(t.warp().shuffle_xor(t.thread_rank(), 1), Relaxed); //~
        }
    }

    #[kernel]
    pub fn checked_both_halves(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = if t.warp().lane() < 16 {
            t.warp().shuffle_xor(t.thread_rank(), 1) //~
        } else {
            t.warp().shuffle_xor(t.thread_rank(), 2) //~
        };
        y[0].store(own, Relaxed);
    }

    #[kernel]
    pub fn checked_guard(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let Some(&own) = x.get(t.index().get()) else { return };
        y[0].store(t.warp().reduce_add(own), Relaxed); //~
    }

    #[kernel]
    pub fn checked_bound_within_a_warp(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if t.thread_rank() < 48 {
            y[0].store(t.warp().reduce_min(t.thread_rank()), Relaxed); //~
        }
    }

    #[kernel]
    pub fn checked_bound_of_the_launch(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>]) {
        if t.thread_rank() < n {
            y[0].store(u32::from(t.warp().all(t.thread_rank() > 3)), Relaxed); //~
        }
    }

    #[kernel]
    pub fn checked_loop_that_lanes_leave(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        for _ in 0..x[t.index().get()] {
            y[0].fetch_add(t.warp().ballot(true), Relaxed); //~
        }
    }

    #[kernel]
    pub fn checked_grid_stride(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(x.len()) {
            y[0].fetch_add(t.warp().reduce_max(x[i.get()]), Relaxed); //~
        }
    }

    #[kernel]
    pub fn checked_memory_that_others_write(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        if y[0].load(Relaxed) == 0 {
            t.warp().sync(); //~
            y[1].store(1, Relaxed);
        }
    }

    #[kernel]
    pub fn checked_rows_of_any_width(t: Thread<2>, y: &[DeviceAtomic<u32>]) {
        if t.thread_idx()[1] == 3 {
            y[0].store(t.warp().match_any(t.thread_idx()[0]), Relaxed); //~
        }
    }

    #[kernel(block = [24, 4])]
    pub fn checked_warps_that_are_no_rows(t: Thread<2>, y: &[DeviceAtomic<u32>]) {
        if t.thread_idx()[1] == 3 {
            y[0].store(u32::from(t.warp().match_all(t.thread_idx()[0])), Relaxed); //~
        }
    }

    /// Shuffles from other lanes than the first are divergent.
    #[kernel]
    pub fn checked_neighbours_decide(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let other = t.warp().shuffle_up(x[t.index().get()], 1);
        if other > 7 {
            t.warp().sync(); //~
            y[0].store(other, Relaxed);
        }
    }

    #[kernel]
    pub fn checked_tile(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        if t.thread_rank() / 8 % 2 == 1 {
            y[t.index().get()].store(t.warp().tile::<8>().reduce_add(x[t.index().get()]), Relaxed); //~
        }
    }

    #[kernel]
    pub fn checked_masked(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        if let Some(group) = t.warp().masked(0x3333_3333) {
            y[t.index().get()].store(u32::from(group.all(x[t.index().get()] > 3)), Relaxed); //~
        }
    }

    #[kernel]
    pub fn checked_masks_of_labels(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let group = t.warp().labeled_partition(x[t.index().get()]);
        y[t.index().get()].store(u32::from(group.any(t.thread_rank() == 9)), Relaxed); //~
    }

    #[kernel]
    pub fn checked_coalesced_mask(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        if x[t.index().get()] > 3 {
            let group = t.warp().coalesced();
            y[t.index().get()].store(group.shuffle(x[0], 0), Relaxed); //~
        }
    }
}

fn main() {}
