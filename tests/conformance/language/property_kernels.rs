//! Further kernels for random inputs.

/// Tiles and atomics under random control flow.
#[ferrogrid::module]
pub mod random {
    use ferrogrid::device::prelude::*;

    /// Each thread reads from the lane of its tile that `from` names. Only tiles whose bit (their number
    /// in the block, modulo 32) is in `tiles` take part; others write 0.
    #[kernel(N = [1, 2, 4, 8, 16, 32])]
    pub fn shuffled<const N: usize>(
        t: Thread<1>,
        tiles: u32,
        held: &[u32],
        from: &[u32],
        mut output: DisjointSlice<[u32; 3]>,
    ) {
        let tile = t.warp().tile::<N>();
        let i = t.index().get();
        let mut found = [0; 3];
        if tiles >> (t.thread_rank() / N as u32 % 32) & 1 == 1 {
            let shuffled = tile.shuffle(held[i], from[i]);
            found = [shuffled, tile.reduce(held[i], u32::wrapping_add), tile.ballot(held[i] % 2 == 1)];
        }
        if let Some(output) = output.get_mut(t.index()) {
            *output = found;
        }
    }

    /// Each element updates the cells of its bin: sum, minimum, maximum and bits.
    #[kernel]
    pub fn gathered(
        t: Thread<1>,
        data: &[u32],
        sums: &[DeviceAtomic<u32>],
        greatest: &[DeviceAtomic<u32>],
        least: &[DeviceAtomic<u32>],
        parities: &[DeviceAtomic<u64>],
    ) {
        for i in t.grid_stride(data.len()) {
            let value = data[i.get()];
            let bin = value as usize % sums.len();
            sums[bin].fetch_add(value, atomic::Ordering::Relaxed);
            greatest[bin].fetch_max(value, atomic::Ordering::Relaxed);
            least[bin].fetch_min(value, atomic::Ordering::Relaxed);
            parities[bin].fetch_xor(u64::from(value) << (value % 32), atomic::Ordering::Relaxed);
        }
    }

    /// Sums of each block in the order of its threads, by reduction and scan.
    #[kernel]
    pub fn float_sums(
        t: Thread<1>,
        x: &[f32],
        mut output: DisjointSlice<[f32; 2]>,
        mut scratch: Shared<Scratch<f32>>,
    ) {
        let value = x[t.index().get()];
        let sum = t.block_reduce(&mut scratch, value, |a, b| a + b);
        let scan = t.block_inclusive_scan(&mut scratch, value, |a, b| a + b);
        if let Some(output) = output.get_mut(t.index()) {
            *output = [sum, scan];
        }
    }
}
