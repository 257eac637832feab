//! 2.13 pipeline: a block goes down an image, and tiles arrive while earlier ones are at work.
//!
//! Shows: `TileStages`, stages of shared memory that the hardware fills with tiles of a plane, halo and zeros beyond the
//! edges included (TMA, on GPUs of compute capability 9.0), beside `Stages`, to which each thread copies elements.
//! Look at: the two kernels, of which one has no address and no edge in it; and the times. On an H200 both take three quarters of the direct
//! one's: reads of shared memory limit them, 49 for each result, not the copies.
//!
//! `cargo ferrogrid run pipeline`

use ferrogrid::prelude::*;

#[ferrogrid::module(arch = ["sm_75", "sm_80", "sm_90a"])]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::TileStages;

    /// How far the window reaches to each side.
    pub const RADIUS: usize = 3;
    /// Width and height of the blocks of all kernels.
    pub const BLOCK: [usize; 2] = [64, 8];
    /// What a tile begins to the left of the windows: 16 bytes, of which copies of tiles begin at multiples.
    const LEFT: usize = 4;
    const WIDTH: usize = 64 + 2 * LEFT; // of a tile
    const HEIGHT: usize = 8 + 2 * RADIUS;

    /// y <- the greatest of the 7 x 7 elements of `x` around each one.
    #[kernel(block = [64, 8])]
    pub fn dilate_direct(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
        let i = t.index();
        let ([column, row], Some(y)) = (i.position(), y.get_mut(i)) else { return };
        let at =
            |i: usize, j: usize| x.get((row + i).wrapping_sub(RADIUS), (column + j).wrapping_sub(RADIUS));
        *y = greatest(|i, j| at(i, j).copied().unwrap_or(0.0));
    }

    /// The same: the block's threads copy the tile of the step after the next one.
    #[kernel(block = [64, 8])]
    pub fn dilate_by_threads(
        t: Thread<2>,
        x: Plane<f32>,
        mut y: DisjointSlice<f32, 2>,
        tiles: Shared<Stages<[[f32; WIDTH]; HEIGHT], 3>>,
    ) {
        let [column, row] = t.thread_idx().map(|axis| axis as usize);
        let ([first, down], parts) = (t.block_idx().map(|axis| axis as usize), t.grid_dim()[1] as usize);
        let (mut tiles, mut places) = (tiles.into_stages(), t.grid_stride(x.width(), x.height()));
        for step in 0..x.height().div_ceil(BLOCK[1] * parts) + 2 {
            let above = BLOCK[1] * (step * parts + down);
            let at = |i: usize, j: usize| {
                x.get((above + i).wrapping_sub(RADIUS), (BLOCK[0] * first + j).wrapping_sub(LEFT))
            };
            tiles.copy_with(&t, |[i, j]| at(i, j));
            if step >= 2 {
                let tile = tiles.current();
                let greatest = greatest(|i, j| tile[row + i][column + LEFT - RADIUS + j]);
                if let Some(y) = places.next().and_then(|place| y.get_mut(place)) {
                    *y = greatest;
                }
            }
            t.advance(&mut tiles);
        }
    }

    /// The same: one copy for each tile.
    #[kernel(block = [64, 8])]
    pub fn dilate_by_tiles(
        t: Thread<2>,
        x: TensorMap<f32, WIDTH, HEIGHT>,
        mut y: DisjointSlice<f32, 2>,
        tiles: Shared<TileStages<f32, WIDTH, HEIGHT, 3>>,
    ) {
        let [column, row] = t.thread_idx().map(|axis| axis as usize);
        let ([first, down], parts) = (t.block_idx().map(|axis| axis as usize), t.grid_dim()[1] as usize);
        let (mut tiles, mut places) = (tiles.into_stages(), t.grid_stride(x.width(), x.height()));
        for step in 0..x.height().div_ceil(BLOCK[1] * parts) + 2 {
            let [above, left] =
                [BLOCK[1] * (step * parts + down), BLOCK[0] * first].map(|axis| axis as isize);
            tiles.copy(&t, x, [above - RADIUS as isize, left - LEFT as isize]);
            if step >= 2 {
                let tile = tiles.current();
                let greatest = greatest(|i, j| tile[[row + i, column + LEFT - RADIUS + j]]);
                if let Some(y) = places.next().and_then(|place| y.get_mut(place)) {
                    *y = greatest;
                }
            }
            t.advance(&mut tiles);
        }
    }

    /// The greatest of a window's elements.
    #[inline(always)]
    pub fn greatest(mut at: impl FnMut(usize, usize) -> f32) -> f32 {
        let mut greatest = 0.0_f32;
        for i in 0..2 * RADIUS + 1 {
            for j in 0..2 * RADIUS + 1 {
                greatest = greatest.max(at(i, j));
            }
        }
        greatest
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let [width, height] = if device.is_cuda() { [8000, 6001] } else { [200, 151] };
    let mut random = fastrand::Rng::with_seed(13);
    let x: Vec<f32> = (0..width * height).map(|_| random.f32()).collect();
    println!("device      {}", device.name());
    println!("image       {width} x {height}");

    let device_x = stream.upload(&x)?;
    let plane = device_x.view_2d(width, height)?;
    let [across, down] = [width.div_ceil(kernels::BLOCK[0]), height.div_ceil(kernels::BLOCK[1])];
    let strips = Grid::new([across as u32, down.min(8) as u32], [64, 8]);
    let mut y = stream.fill(f32::NAN, x.len())?;
    for (name, kind) in [("direct", 0), ("by threads", 1), ("by tiles", 2)] {
        stream.fill_into(f32::NAN, &mut y)?;
        let time = stream.time(5, |stream| {
            let y = y.view_2d_mut(width, height)?;
            match kind {
                0 => {
                    kernels::dilate_direct(stream, Grid::new([across as u32, down as u32], [64, 8]), plane, y)
                }
                1 => kernels::dilate_by_threads(stream, strips, plane, y),
                _ => kernels::dilate_by_tiles(stream, strips, plane, y),
            }
        })?;
        check(name, &x, &stream.download(&y)?, width)?;
        println!("{name:<10}  {:.3} ms", time.median().as_secs_f64() * 1e3);
    }
    println!("PASS");
    Ok(())
}

/// Compares the rows at the edges, and some elements of the others, with windows of the host.
fn check(name: &str, x: &[f32], y: &[f32], width: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (height, edge) = (x.len() / width, kernels::RADIUS * width);
    for place in (0..edge).chain((edge..x.len() - edge).step_by(97)).chain(x.len() - edge..x.len()) {
        let expected = kernels::greatest(|i, j| {
            let [i, j] =
                [place / width + i, place % width + j].map(|axis| axis.wrapping_sub(kernels::RADIUS));
            if i < height && j < width { x[i * width + j] } else { 0.0 }
        });
        if y[place] != expected {
            return Err(format!("{name}: element {place} is {}, expected {expected}", y[place]).into());
        }
    }
    Ok(())
}
