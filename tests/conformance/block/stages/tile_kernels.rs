//! Kernels whose shared memory has stages with tiles of planes.

#[ferrogrid::module]
pub mod copying {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::bf16;
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB};
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::TileStages;

    /// The rows of a tile.
    pub const HEIGHT: usize = 9;

    /// y <- the tiles of `x` at each of the places, whose columns count in 16 bytes, of block `b` at those `b` rows further down and `b`
    /// columns further left.
    #[inline(always)]
    fn windows<T: DeviceCopy + SharedElement + Into<u64>, const W: usize, const S: usize, const ID: usize>(
        t: &Thread<3>,
        places: &[[i32; 2]],
        x: TensorMap<T, W, HEIGHT>,
        y: &[DeviceAtomic<u64>],
        tiles: Shared<TileStages<T, W, HEIGHT, S>, ID>,
    ) {
        let (mut tiles, block) = (tiles.into_stages(), t.block_idx()[0] as usize);
        for step in 0..places.len() + S - 1 {
            // Those of the last turns are never waited for.
            let [row, column] = places.get(step).copied().unwrap_or_default();
            let (by, group) = (block as isize, 16 / size_of::<T>() as isize);
            tiles.copy(t, x, [row as isize + by, (column as isize - by) * group]);
            if step + 1 >= S {
                let (tile, tile_number) = (tiles.current(), block * places.len() + step + 1 - S);
                for number in (t.thread_rank() as usize..W * HEIGHT).step_by(48) {
                    let element = tile[[number / W, number % W]].into();
                    y[tile_number * W * HEIGHT + number].store(element, Relaxed);
                }
            }
            t.advance(&mut tiles);
        }
    }

    /// As `windows`.
    #[kernel(block = [8, 3, 2], W = [16, 128, 256], S = [2, 5])]
    pub fn bytes<const W: usize, const S: usize>(
        t: Thread<3>,
        places: &[[i32; 2]],
        x: TensorMap<u8, W, HEIGHT>,
        y: &[DeviceAtomic<u64>],
        tiles: Shared<TileStages<u8, W, HEIGHT, S>>,
    ) {
        windows(&t, places, x, y, tiles);
    }

    /// As `windows`.
    #[kernel(block = [8, 3, 2], W = [8, 64], S = [2, 5])]
    pub fn halves<const W: usize, const S: usize>(
        t: Thread<3>,
        places: &[[i32; 2]],
        x: TensorMap<u16, W, HEIGHT>,
        y: &[DeviceAtomic<u64>],
        tiles: Shared<TileStages<u16, W, HEIGHT, S>>,
    ) {
        windows(&t, places, x, y, tiles);
    }

    /// As `windows`.
    #[kernel(block = [8, 3, 2], W = [4, 32, 36], S = [2, 5])]
    pub fn words<const W: usize, const S: usize>(
        t: Thread<3>,
        places: &[[i32; 2]],
        x: TensorMap<u32, W, HEIGHT>,
        y: &[DeviceAtomic<u64>],
        tiles: Shared<TileStages<u32, W, HEIGHT, S>>,
    ) {
        windows(&t, places, x, y, tiles);
    }

    /// As `windows`.
    #[kernel(block = [8, 3, 2], W = [2, 16], S = [2, 5])]
    pub fn longs<const W: usize, const S: usize>(
        t: Thread<3>,
        places: &[[i32; 2]],
        x: TensorMap<u64, W, HEIGHT>,
        y: &[DeviceAtomic<u64>],
        tiles: Shared<TileStages<u64, W, HEIGHT, S>>,
    ) {
        windows(&t, places, x, y, tiles);
    }

    /// y[i] <- the sum over the steps of products of `x[9 step][i]`, copied at every other step, and `z[16 step + i % 16]`.
    #[kernel(block = 32)]
    pub fn multiply_together(
        t: Thread<1>,
        steps: usize,
        x: TensorMap<u32, 32, HEIGHT>,
        z: &[u32],
        mut y: DisjointSlice<u32>,
        of_x: Shared<TileStages<u32, 32, HEIGHT, 4>>,
        of_z: Shared<Stages<[u32; 16], 2>>,
    ) {
        let (mut of_x, mut of_z, mut sum) = (of_x.into_stages(), of_z.into_stages(), 0);
        for step in 0..steps + 3 {
            if step % 2 == 0 {
                of_x.copy(&t, x, [(HEIGHT * step) as isize, 0]);
            }
            if step >= 3 && (step - 3) % 2 == 0 {
                let rank = t.thread_rank() as usize;
                sum += of_x.current()[[0, rank]] * of_z.current()[rank % 16];
            }
            // Read one turn later, three turns later than `x`.
            of_z.copy_with(&t, |place| z.get((step + 1).checked_sub(3)? * 16 + place));
            t.advance((&mut of_z, &mut of_x));
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }

    /// c <- a b^T, of 64 and 32 rows with 64 elements, by two warps: of swizzled tiles and of others.
    #[kernel(block = 64, W = [16, 64])]
    pub fn multiply<const W: usize>(
        t: Thread<1>,
        a: TensorMap<bf16, W, 64>,
        b: TensorMap<bf16, W, 32>,
        c: &[DeviceAtomic<f32>],
        of_a: Shared<TileStages<bf16, W, 64, 3>>,
        of_b: Shared<TileStages<bf16, W, 32, 3>>,
    ) {
        let (mut of_a, mut of_b) = (of_a.into_stages(), of_b.into_stages());
        let (warp, first) = (t.warp(), t.thread_rank() as usize / 32 * 32);
        let mut sums = Accumulator::<bf16, 2, 4>::zero();
        for step in 0..64 / W + 2 {
            of_a.copy(&t, a, [0, (step * W) as isize]);
            of_b.copy(&t, b, [0, (step * W) as isize]);
            if step >= 2 {
                for k in (0..W).step_by(16) {
                    let of_a = FragmentA::load(&warp, of_a.current(), [first, k]);
                    let of_b = FragmentB::load_transposed(&warp, of_b.current(), [0, k]);
                    sums.add_product(&warp, &of_a, &of_b);
                }
            }
            t.advance((&mut of_a, &mut of_b));
        }
        sums.for_each(&warp, |row, column, sum| c[(first + row) * 32 + column].store(sum, Relaxed));
    }

    /// Panics while copies are in flight.
    #[kernel(block = 64)]
    pub fn panicking(
        t: Thread<1>,
        kind: u32,
        x: TensorMap<u32, 32, 64>,
        of_x: Shared<TileStages<u32, 32, 64, 2>>,
        twice: Shared<TileStages<u32, 32, 64, 2>>,
    ) {
        let (mut of_x, mut twice, rank) = (of_x.into_stages(), twice.into_stages(), t.thread_rank());
        for step in 0..4 {
            of_x.copy(&t, x, [0, 0]);
            twice.copy(&t, x, [if kind == 4 { 1 << 31 } else { 64 * step }, if kind == 5 { 2 } else { 32 }]);
            if step == 2 {
                match kind {
                    0 => assert!(rank != 0, "the thread that copies"),
                    1 => assert!(rank != 63, "another thread"),
                    2 => panic!("all threads"),
                    3 => twice.copy(&t, x, [0, 0]),
                    _ => (),
                }
            }
            t.advance((&mut of_x, &mut twice));
        }
    }
}
