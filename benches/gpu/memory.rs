//! Memory-bound kernels: saxpy, copies of 16 bytes, the 5-point stencil, the padded transpose.

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::duel::{Arena, near, random};

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(same_shape(x, y))]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = a.mul_add(x[i.get()], *y);
        }
    }

    #[kernel(same_shape(x, y))]
    pub fn copy(t: Thread<1>, x: &[Aligned16<[f32; 4]>], mut y: DisjointSlice<Aligned16<[f32; 4]>>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()];
        }
    }

    /// Inside, the weighted sum of each element and its neighbours; at the border, the element.
    #[kernel(block = [32, 8], same_shape(x, y))]
    pub fn stencil(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
        let i = t.index();
        let (width, height, column, row) = (x.width(), x.height(), i.x(), i.y());
        let Some(y) = y.get_mut(i) else { return };
        let own = x[row][column];
        let is_inside = column > 0 && row > 0 && column + 1 < width && row + 1 < height;
        *y = if is_inside {
            let sum = x[row - 1][column] + x[row][column - 1] + x[row][column + 1] + x[row + 1][column];
            0.125_f32.mul_add(sum, 0.5 * own)
        } else {
            own
        };
    }

    #[kernel(block = [32, 8])]
    pub fn transpose(
        t: Thread<2>,
        input: Plane<f32>,
        mut output: DisjointTiles<f32, 32, 32>,
        mut tile: Shared<Padded<f32, 32, 32>>,
    ) {
        let [first_row, first_column] = t.block_idx().map(|it| (it * 32) as usize);
        tile.fill_with(&t, |[i, j]| {
            // Elements outside the plane are not read back.
            input.get(first_row + i, first_column + j).copied().unwrap_or(0.0)
        });
        let tile = t.publish(tile);
        output.fill_with(&t, |[row, column]| tile[(column - first_row) % 32][(row - first_column) % 32]);
    }
}

pub fn saxpy(arena: &Arena) -> Outcome<()> {
    let n = 1 << 27;
    let (x, y) = (random(n, -1.0..1.0), random(n, -1.0..1.0));
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("saxpy")?;
    let grid = Grid::new(n as u32 / 256, 256);
    arena.duel(
        "saxpy",
        &y,
        |out| kernels::saxpy(arena.stream, grid, 0.7, &input, out),
        // SAFETY: `saxpy(int n, float a, const float* x, float* y)`, both of n elements.
        |out| unsafe { cpp.launch(arena.stream, grid, (n as i32, 0.7_f32, &input, out)) },
        |found| near(found, |i| 0.7_f64.mul_add(f64::from(x[i]), f64::from(y[i])), 1e-6),
    )
}

pub fn copy(arena: &Arena) -> Outcome<()> {
    let n = 1 << 27;
    let x = random(n, -1.0..1.0);
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("copy")?;
    let grid = Grid::new(n as u32 / 1024, 256);
    arena.duel(
        "copy_v4",
        &vec![f32::NAN; n],
        |out| kernels::copy(arena.stream, grid, input.view().as_aligned16()?, out.view_mut().as_aligned16()?),
        // SAFETY: `copy(int groups, const float4* x, float4* y)`, both of n floats.
        |out| unsafe { cpp.launch(arena.stream, grid, ((n / 4) as i32, &input, out)) },
        |found| near(found, |i| f64::from(x[i]), 0.0),
    )
}

pub fn stencil(arena: &Arena) -> Outcome<()> {
    const N: usize = 8192;
    let x = random(N * N, -1.0..1.0);
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("stencil")?;
    let grid = Grid::new([N as u32 / 32, N as u32 / 8], [32, 8]);
    let exact = |i: usize| {
        let at = |i: usize| f64::from(x[i]);
        let (row, column) = (i / N, i % N);
        if row == 0 || column == 0 || row == N - 1 || column == N - 1 {
            return at(i);
        }
        0.5 * at(i) + 0.125 * (at(i - N) + at(i - 1) + at(i + 1) + at(i + N))
    };
    arena.duel(
        "stencil_5",
        &vec![f32::NAN; N * N],
        |out| kernels::stencil(arena.stream, grid, input.view_2d(N, N)?, out.view_2d_mut(N, N)?),
        // SAFETY: `stencil(int width, int height, const float* x, float* y)`, both of that plane.
        |out| unsafe { cpp.launch(arena.stream, grid, (N as i32, N as i32, &input, out)) },
        |found| near(found, exact, 1e-6),
    )
}

pub fn transpose(arena: &Arena) -> Outcome<()> {
    const N: usize = 8192;
    let x = random(N * N, -1.0..1.0);
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("transpose")?;
    let grid = Grid::new([N as u32 / 32; 2], [32, 8]);
    arena.duel(
        "transpose_padded",
        &vec![f32::NAN; N * N],
        |out| kernels::transpose(arena.stream, grid, input.view_2d(N, N)?, out.view_2d_mut(N, N)?),
        // SAFETY: `transpose(int width, int height, const float* in, float* out)`, both of that plane.
        |out| unsafe { cpp.launch(arena.stream, grid, (N as i32, N as i32, &input, out)) },
        |found| near(found, |i| f64::from(x[i % N * N + i / N]), 0.0),
    )
}
