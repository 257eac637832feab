//! Listings of the chapter "The signature is the contract".

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    // ANCHOR: struct
    /// A particle, by value and as an element: the same bytes on both sides.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Particle {
        pub position: [f32; 3],
        pub mass: f32,
    }

    /// Moves each particle by `step` times `velocity`.
    #[kernel]
    pub fn drift(t: Thread<1>, step: f32, velocity: [f32; 3], mut all: DisjointSlice<Particle>) {
        if let Some(particle) = all.get_mut(t.index()) {
            for (x, v) in particle.position.iter_mut().zip(velocity) {
                *x += step * v;
            }
        }
    }
    // ANCHOR_END: struct

    // ANCHOR: tuple
    /// Moves the values from `range.0` up to `range.1`.
    #[kernel]
    pub fn move_between(t: Thread<1>, range: (f32, f32), by: f32, mut x: DisjointSlice<f32>) {
        let (low, high) = range;
        if let Some(x) = x.get_mut(t.index()).filter(|x| (low..high).contains(*x)) {
            *x += by;
        }
    }
    // ANCHOR_END: tuple

    // ANCHOR: derived
    #[derive(Debug, Clone, Copy, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Complex<T> {
        pub re: T,
        pub im: T,
    }

    /// The sum of each block's numbers, and the place of the one with the greatest real part.
    #[kernel(block = 128)]
    pub fn sums(
        t: Thread<1>,
        x: &[Complex<f32>],
        mut y: DisjointRows<(Complex<f32>, u32)>,
        mut numbers: Shared<Scratch<Complex<f32>>>,
        mut places: Shared<Scratch<(f32, u32)>>,
    ) {
        let i = t.index();
        let mine = x.get(i.get()).copied().unwrap_or(Complex { re: 0.0, im: 0.0 });
        let add = |a: Complex<f32>, b: Complex<f32>| Complex { re: a.re + b.re, im: a.im + b.im };
        let sum = t.block_reduce(&mut numbers, mine, add);
        let greatest =
            t.block_reduce(&mut places, (mine.re, i.get32()), |a, b| if b.0 > a.0 { b } else { a });
        y.fill_with(&t, |_| (sum, greatest.1));
    }
    // ANCHOR_END: derived

    // ANCHOR: constant_block
    const TILE: usize = 32;

    /// The transpose of a matrix, a tile of 32 x 32 elements to a block of 32 x 8 threads.
    #[kernel(block = [TILE, 8])]
    pub fn transpose(
        t: Thread<2>,
        x: Plane<f32>,
        mut y: DisjointTiles<f32, TILE, TILE>,
        mut tile: Shared<Padded<f32, TILE, TILE>>,
    ) {
        let [first_row, first_column] = t.block_idx().map(|block| block as usize * TILE);
        tile.fill_with(&t, |[row, column]| {
            x.get(first_row + row, first_column + column).copied().unwrap_or(0.0)
        });
        let tile = t.publish(tile);
        y.fill_with(&t, |[row, column]| tile[column - first_row][row - first_column]);
    }
    // ANCHOR_END: constant_block

    // ANCHOR: rank_2
    /// c = a + the transpose of b, for matrices of n x n.
    #[kernel]
    pub fn add_transposed(t: Thread<2>, n: usize, a: &[f32], b: &[f32], mut c: DisjointSlice<f32, 2>) {
        let i = t.index();
        if let Some(c) = c.get_mut(i) {
            *c = a[i.y() * n + i.x()] + b[i.x() * n + i.y()];
        }
    }
    // ANCHOR_END: rank_2

    // ANCHOR: stride
    /// y <- a*x + y, for slices of any length with a grid of any size.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        for i in t.grid_stride(y.len()) {
            if let Some(y) = y.get_mut(i) {
                *y += a * x[i.get()];
            }
        }
    }
    // ANCHOR_END: stride

    // ANCHOR: same_shape
    /// The value of each amount after a number of years at a rate.
    #[kernel(same_shape(amount, rate, years, out))]
    pub fn discount(t: Thread<1>, amount: &[f32], rate: &[f32], years: &[f32], mut out: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            let i = i.get();
            *out = amount[i] * (-rate[i] * years[i]).exp();
        }
    }
    // ANCHOR_END: same_shape

    // ANCHOR: generic
    /// x[i] <- the N-th power of x[i].
    #[kernel(T = [f32, f64], N = [2, 3])]
    pub fn power<T: DeviceCopy + Float, const N: usize>(t: Thread<1>, mut x: DisjointSlice<T>) {
        if let Some(x) = x.get_mut(t.index()) {
            let base = *x;
            for _ in 1..N {
                *x *= base;
            }
        }
    }
    // ANCHOR_END: generic

    // ANCHOR: scatter
    /// Puts each particle at the start of its cell plus its rank in the cell.
    #[kernel]
    pub fn reorder(
        t: Thread<1>,
        particles: &[Particle],
        cells: &[u32],
        cell_starts: &[u32],
        ranks: &[u32],
        sorted: ScatterSlice<Particle>,
    ) {
        let i = t.index().get();
        if let (Some(particle), Some(&cell)) = (particles.get(i), cells.get(i)) {
            let place = cell_starts[cell as usize] + ranks[i];
            sorted.set(place as usize, *particle); // panics if another thread has written there
        }
    }
    // ANCHOR_END: scatter

    // ANCHOR: micro_tiles
    /// C = A * B: a block of 64 threads computes 32 x 32 elements, each thread 4 x 4 of them in registers.
    #[kernel(block = [64, 1])]
    pub fn product(t: Thread<2>, a: Plane<f32>, b: Plane<f32>, mut c: DisjointTiles<f32, 32, 32, 4, 4>) {
        let Some([row, column]) = c.micro_tile(&t) else { return };
        let mut sums = [[0.0; 4]; 4];
        for k in 0..a.width() {
            let of_a: [f32; 4] = core::array::from_fn(|i| a.get(row + i, k).copied().unwrap_or(0.0));
            let of_b: [f32; 4] = core::array::from_fn(|j| b.get(k, column + j).copied().unwrap_or(0.0));
            for i in 0..4 {
                for j in 0..4 {
                    sums[i][j] += of_a[i] * of_b[j];
                }
            }
        }
        c.fill_micro_tiles(&t, |_| sums); // what is beyond the edges is left out
    }
    // ANCHOR_END: micro_tiles

    // ANCHOR: atomic
    /// Counts how often each remainder modulo `counts.len()` occurs.
    #[kernel(block = 128)]
    pub fn remainders(t: Thread<1>, x: &[u32], counts: &[DeviceAtomic<u32>]) {
        use atomic::Ordering::Relaxed;
        if let Some(x) = x.get(t.index().get()) {
            counts[*x as usize % counts.len()].fetch_add(1, Relaxed);
        }
    }
    // ANCHOR_END: atomic

    // ANCHOR: raw
    /// x[i] <- x[n - 1 - i]: each thread swaps two elements that no other thread touches.
    ///
    /// # Safety
    /// `x` points to `n` elements that nothing else uses meanwhile.
    #[kernel]
    pub unsafe fn reverse(t: Thread<1>, n: usize, x: *mut u32) {
        let i = t.index().get();
        if i < n / 2 {
            // SAFETY: both are below n, and this thread's own.
            unsafe { core::ptr::swap(x.add(i), x.add(n - 1 - i)) };
        }
    }
    // ANCHOR_END: raw
}

#[test]
fn structs_are_passed_by_value_and_as_elements() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: struct_launch
    let particle = kernels::Particle { position: [0.0; 3], mass: 1.0 };
    let mut all = stream.upload(&[particle; 100])?;
    kernels::drift(&stream, Grid::cover(all.len()), 0.5, [1.0, 2.0, 3.0], &mut all)?;
    assert_eq!(stream.download(&all)?[99].position, [0.5, 1.0, 1.5]);
    // ANCHOR_END: struct_launch
    assert_eq!(stream.download(&all)?[0].mass, 1.0);
    Ok(())
}

#[test]
fn a_derive_is_enough() -> ferrogrid::Result<()> {
    use kernels::Complex;
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: derived_launch
    let x = stream.upload(&[1.0_f32, 0.5, 4.0, 0.5, 2.0, 0.5])?; // real and imaginary parts in turn
    let mut y = stream.zeros::<(Complex<f32>, u32)>(1)?;
    kernels::sums(&stream, Grid::blocks(1), x.view().cast::<Complex<f32>>()?, y.view_2d_mut(1, 1)?)?;
    assert_eq!(stream.download(&y)?, [(Complex { re: 7.0, im: 1.5 }, 1)]);
    // ANCHOR_END: derived_launch
    Ok(())
}

#[test]
fn the_grid_is_the_kernels() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: constant_block_launch
    let (width, height) = (100, 50);
    let x = stream.upload(&(0..width * height).map(|x| x as f32).collect::<Vec<_>>())?;
    let mut y = stream.zeros::<f32>(width * height)?;
    let grid = kernels::transpose::grid([height, width]); // a block for each tile of `y`
    assert_eq!(grid, Grid::new([2, 4], [32, 8]));
    kernels::transpose(&stream, grid, x.view_2d(width, height)?, y.view_2d_mut(height, width)?)?;
    assert_eq!(stream.download(&y)?[..3], [0.0, 100.0, 200.0]);
    // ANCHOR_END: constant_block_launch
    Ok(())
}

#[test]
fn tuples_are_passed_by_value() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut x = stream.upload(&[0.0_f32, 1.0, 2.0, 3.0])?;
    // ANCHOR: tuple_launch
    kernels::move_between(&stream, Grid::cover(4), (1.0, 3.0), 0.5, &mut x)?;
    assert_eq!(stream.download(&x)?, [0.0, 1.5, 2.5, 3.0]);
    // ANCHOR_END: tuple_launch
    Ok(())
}

#[test]
fn ranks_agree() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: rank_2_launch
    let n = 3;
    let a = stream.upload(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
    let mut c = stream.zeros::<f32>(n * n)?;
    kernels::add_transposed(&stream, Grid::cover([n, n]), n, &a, &a, c.view_2d_mut(n, n)?)?;
    assert_eq!(stream.download(&c)?, [0.0, 4.0, 8.0, 4.0, 8.0, 12.0, 8.0, 12.0, 16.0]);
    // ANCHOR_END: rank_2_launch
    Ok(())
}

#[test]
fn one_grid_serves_any_length() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: stride_launch
    let x = stream.fill(1.0_f32, 10_000)?;
    let mut y = stream.zeros::<f32>(10_000)?;
    kernels::saxpy(&stream, Grid::new(4, 128), 2.0, &x, &mut y)?; // 512 threads
    kernels::saxpy(&stream, Grid::cover(10_000_usize), 2.0, &x, &mut y)?; // a thread for each element
    assert_eq!(stream.download(&y)?, [4.0; 10_000]);
    // ANCHOR_END: stride_launch
    Ok(())
}

#[test]
fn slices_of_the_same_shape_are_compared_by_the_launch() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: same_shape_launch
    let (amount, rate) = (stream.fill(100.0_f32, 50)?, stream.fill(0.05_f32, 50)?);
    let (years, few) = (stream.fill(0.0_f32, 50)?, stream.fill(0.0_f32, 49)?);
    let mut out = stream.zeros::<f32>(50)?;
    kernels::discount(&stream, Grid::cover(50), &amount, &rate, &years, &mut out)?;
    assert_eq!(stream.download(&out)?, [100.0; 50]);
    let error = kernels::discount(&stream, Grid::cover(50), &amount, &rate, &few, &mut out).unwrap_err();
    assert!(error.to_string().contains("`amount` has 50 elements and `years` 49"));
    // ANCHOR_END: same_shape_launch
    Ok(())
}

#[test]
fn instances_are_chosen_at_the_launch() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: generic_launch
    let mut x = stream.upload(&[2.0_f64, 3.0])?;
    kernels::power::<f64, 3>(&stream, Grid::cover(2), &mut x)?;
    assert_eq!(stream.download(&x)?, [8.0, 27.0]);
    // ANCHOR_END: generic_launch
    Ok(())
}

// ANCHOR: instance
/// The N-th powers of what was uploaded, for all numbers that the kernel is compiled for.
fn powers<T, const N: usize>(stream: &Stream, x: &mut DeviceBuffer<T>) -> ferrogrid::Result<Vec<T>>
where
    T: kernels::power::Instance<N>,
{
    kernels::power::<T, N>(stream, kernels::power::grid(x.len()), &mut *x)?;
    stream.download(&*x)
}
// ANCHOR_END: instance

#[test]
fn generic_functions_launch_generic_kernels() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: instance_launch
    assert_eq!(powers::<f32, 2>(&stream, &mut stream.upload(&[2.0, 3.0])?)?, [4.0, 9.0]);
    assert_eq!(powers::<f64, 3>(&stream, &mut stream.upload(&[2.0, 3.0])?)?, [8.0, 27.0]);
    // ANCHOR_END: instance_launch
    Ok(())
}

#[test]
fn atomics_are_shared() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: atomic_launch
    let x = stream.upload(&(0..1000).collect::<Vec<u32>>())?;
    let mut counts = stream.zeros::<u32>(3)?;
    kernels::remainders(&stream, Grid::cover(x.len()), &x, counts.as_atomic())?;
    assert_eq!(stream.download(&counts)?, [334, 333, 333]);
    // ANCHOR_END: atomic_launch
    Ok(())
}

#[test]
fn raw_pointers_need_unsafe() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: raw_launch
    let mut x = stream.upload(&[1_u32, 2, 3, 4, 5])?;
    let n = x.len();
    // SAFETY: the buffer has n elements, lives until the kernel has run (it is downloaded below), and is
    // used by this stream alone.
    unsafe { kernels::reverse(&stream, Grid::cover(n), n, x.as_device_ptr_mut())? };
    assert_eq!(stream.download(&x)?, [5, 4, 3, 2, 1]);
    // ANCHOR_END: raw_launch
    Ok(())
}

#[test]
fn a_kernel_reports_its_name_and_code() -> ferrogrid::Result<()> {
    // ANCHOR: companion
    let kernel = kernels::remainders::kernel();
    assert_eq!((kernel.rank(), kernel.block()), (1, Some([128, 1, 1])));
    assert!(kernel.ptx().unwrap().contains(".reqntid 128"));
    let occupancy = Device::best()?.occupancy(kernel, 128, 0)?;
    println!("{occupancy}"); // how many blocks a multiprocessor runs, and what limits them
    // ANCHOR_END: companion
    Ok(())
}

#[test]
fn particles_are_reordered() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let particle = |x| kernels::Particle { position: [x; 3], mass: 1.0 };
    let particles = stream.upload(&[1.0, 2.0, 3.0].map(particle))?;
    let cells = stream.upload(&[1, 0, 1])?;
    let (cell_starts, ranks) = (stream.upload(&[0, 1])?, stream.upload(&[1, 0, 0])?);
    let mut sorted = stream.upload(&[particle(9.0); 3])?;
    kernels::reorder(&stream, Grid::cover(3), &particles, &cells, &cell_starts, &ranks, &mut sorted)?;
    let sorted = stream.download(&sorted)?;
    assert_eq!(sorted.iter().map(|it| it.position[0]).collect::<Vec<_>>(), [2.0, 3.0, 1.0]);
    Ok(())
}

#[test]
fn threads_own_micro_tiles() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let a = stream.fill(2.0_f32, 40 * 10)?;
    let b = stream.fill(0.5_f32, 10 * 50)?;
    let mut c = stream.zeros::<f32>(40 * 50)?;
    let grid = Grid::new([2, 2], [64, 1]);
    kernels::product(&stream, grid, a.view_2d(10, 40)?, b.view_2d(50, 10)?, c.view_2d_mut(50, 40)?)?;
    assert_eq!(stream.download(&c)?, [10.0; 40 * 50]);
    Ok(())
}
