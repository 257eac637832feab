//! Matrix products: one thread for each element, without and with tiles in shared memory.

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::duel::{Arena, near_sampled, random};

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    /// An element, 0 beyond the end: a load under a condition, not a branch.
    #[inline(always)]
    fn at(x: &[f32], place: usize) -> f32 {
        x.get(place).copied().unwrap_or(0.0)
    }

    #[kernel(block = [16, 16])]
    pub fn naive(t: Thread<2>, n: u32, a: &[f32], b: &[f32], mut c: DisjointSlice<f32, 2>) {
        let n = n as usize;
        let [column, row] = t.index().position();
        let (Some(a), Some(b)) = (Plane::new(a, n, n), Plane::new(b, n, n)) else { return };
        if column >= n || row >= n {
            return;
        }
        let mut sum = 0.0;
        for k in 0..n {
            sum = a[row][k].mul_add(b[k][column], sum);
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }

    #[kernel(block = [16, 16])]
    pub fn tiled_16(
        t: Thread<2>,
        n: usize,
        a: &[f32],
        b: &[f32],
        mut c: DisjointSlice<f32, 2>,
        mut tile_a: Shared<[[f32; 16]; 16]>,
        mut tile_b: Shared<[[f32; 16]; 16]>,
    ) {
        let [x, y] = t.thread_idx().map(|it| it as usize);
        let [column, row] = t.index().position();
        let mut sum = 0.0_f32;
        for step in 0..n / 16 {
            tile_a.fill_with(&t, |[i, k]| at(a, (row - y + i) * n + step * 16 + k));
            tile_b.fill_with(&t, |[k, j]| at(b, (step * 16 + k) * n + column - x + j));
            let (a, b) = t.publish((tile_a, tile_b));
            for k in 0..16 {
                sum = a[y][k].mul_add(b[k][x], sum);
            }
            (tile_a, tile_b) = t.reclaim((a, b));
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }

    #[kernel(block = [32, 32])]
    pub fn tiled_32(
        t: Thread<2>,
        n: usize,
        a: &[f32],
        b: &[f32],
        mut c: DisjointSlice<f32, 2>,
        mut tile_a: Shared<[[f32; 32]; 32]>,
        mut tile_b: Shared<[[f32; 32]; 32]>,
    ) {
        let [x, y] = t.thread_idx().map(|it| it as usize);
        let [column, row] = t.index().position();
        let mut sum = 0.0_f32;
        for step in 0..n / 32 {
            tile_a.fill_with(&t, |[i, k]| at(a, (row - y + i) * n + step * 32 + k));
            tile_b.fill_with(&t, |[k, j]| at(b, (step * 32 + k) * n + column - x + j));
            let (a, b) = t.publish((tile_a, tile_b));
            for k in 0..32 {
                sum = a[y][k].mul_add(b[k][x], sum);
            }
            (tile_a, tile_b) = t.reclaim((a, b));
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }
}

/// Elements along each side: a multiple of all tiles.
const N: usize = 2048;

pub fn naive(arena: &Arena) -> Outcome<()> {
    product(arena, "matmul_naive", 16, |stream, grid, n, a, b, c| {
        kernels::naive(stream, grid, n as u32, a, b, c)
    })
}

pub fn tiled_16(arena: &Arena) -> Outcome<()> {
    product(arena, "matmul_tiled_16", 16, |stream, grid, n, a, b, c| {
        kernels::tiled_16(stream, grid, n, a, b, c)
    })
}

pub fn tiled_32(arena: &Arena) -> Outcome<()> {
    product(arena, "matmul_tiled_32", 32, |stream, grid, n, a, b, c| {
        kernels::tiled_32(stream, grid, n, a, b, c)
    })
}

type Launch = for<'a> fn(
    &Stream,
    Grid<2>,
    usize,
    &'a DeviceBuffer<f32>,
    &'a DeviceBuffer<f32>,
    DeviceViewMut<'a, f32, 2>,
) -> ferrogrid::Result<()>;

fn product(arena: &Arena, name: &str, side: u32, rust: Launch) -> Outcome<()> {
    let (a, b) = (random(N * N, -1.0..1.0), random(N * N, -1.0..1.0));
    let (left, right) = (arena.stream.upload(&a)?, arena.stream.upload(&b)?);
    let cpp = arena.cpp(name)?;
    let grid = Grid::new([N as u32 / side; 2], [side; 2]);
    let exact = |i: usize| {
        let (row, column) = (i / N, i % N);
        (0..N).map(|k| f64::from(a[row * N + k]) * f64::from(b[k * N + column])).sum::<f64>()
    };
    arena.duel(
        name,
        &vec![f32::NAN; N * N],
        |out| rust(arena.stream, grid, N, &left, &right, out.view_2d_mut(N, N)?),
        // SAFETY: `(int n, const float* a, const float* b, float* c)`, all of n * n elements.
        |out| unsafe { cpp.launch(arena.stream, grid, (N as i32, &left, &right, out)) },
        |found| near_sampled(found, exact, 2e-4),
    )
}
