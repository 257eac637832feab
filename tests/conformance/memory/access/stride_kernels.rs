//! Kernels with grid-stride loops and elements of 16 bytes.

/// Loops over more elements than threads.
#[ferrogrid::module]
pub mod strided {
    use ferrogrid::device::prelude::*;

    /// Adds one to each element.
    #[kernel]
    pub fn increment(t: Thread<1>, mut data: DisjointSlice<u32>) {
        for i in t.grid_stride(data.len()) {
            if let Some(value) = data.get_mut(i) {
                *value += 1;
            }
        }
    }

    /// Adds to each element its number, with an end far beyond the last.
    #[kernel]
    pub fn first_of_many(t: Thread<1>, end: usize, mut data: DisjointSlice<u32>) {
        for i in t.grid_stride(end).take(2) {
            if let Some(value) = data.get_mut(i) {
                *value += 1 + i.get() as u32;
            }
        }
    }

    /// Adds to each element of a plane its number.
    #[kernel]
    pub fn number_plane(t: Thread<2>, mut plane: DisjointSlice<u32, 2>) {
        let width = plane.width();
        for i in t.grid_stride(width, plane.height()) {
            if let Some(value) = plane.get_mut(i) {
                *value += (i.y() * width + i.x()) as u32;
            }
        }
    }
}

/// Rows of a plane, and slices too long for 32 bits.
#[ferrogrid::module]
pub mod planes {
    use core::mem::MaybeUninit;

    use ferrogrid::device::prelude::*;

    /// The sum of each row, wrapping; one block a row.
    #[kernel]
    pub fn sum_rows(
        t: Thread<1>,
        x: &[u32],
        width: usize,
        mut sums: DisjointRows<u32>,
        mut scratch: Shared<Scratch<u32>>,
    ) {
        let row = t.block_idx()[0] as usize;
        let x = Plane::new(x, width, sums.height()).expect("a row for each sum");
        let row = &x[row];
        let own = t.block_stride(width).map(|column| row[column]).fold(0, u32::wrapping_add);
        let total = t.block_reduce(&mut scratch, own, u32::wrapping_add);
        sums.fill_with(&t, |_| total);
    }

    /// The mean of each element's neighbours to the left and right of it, above and below; itself at the border.
    #[kernel]
    pub fn blur(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
        let (i, width, height) = (t.index(), x.width(), x.height());
        let Some(y) = y.get_mut(i) else { return };
        let (column, row) = (i.x(), i.y());
        let is_inside = column > 0 && row > 0 && column + 1 < width && row + 1 < height;
        *y = if is_inside {
            (x[row - 1][column] + x[row + 1][column] + x[row][column - 1] + x[row][column + 1]) / 4.0
        } else {
            x.get(row, column).copied().unwrap_or(f32::NAN)
        };
    }

    /// The sum of each row, by one thread for each.
    #[kernel]
    pub fn sums_of_rows(t: Thread<1>, x: Plane<u32>, mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let (Some(row), Some(y)) = (x.row(i.get()), y.get_mut(i)) {
            *y = row.iter().sum();
        }
    }

    /// The number of rows and columns, and the greatest of each row: a barrier for each.
    #[kernel(wide, block = 32)]
    pub fn greatest_of_rows(
        t: Thread<1>,
        x: Plane<u32>,
        shape: &[DeviceAtomic<u64>],
        y: &[DeviceAtomic<u32>],
    ) {
        for row in 0..x.height() {
            if let (Some(value), Some(y)) = (x.get(row, t.thread_rank() as usize), y.get(row)) {
                y.fetch_max(*value, atomic::Ordering::Relaxed);
            }
            t.sync_threads();
        }
        if t.index().get() == 0 {
            shape[0].store(x.width() as u64, atomic::Ordering::Relaxed);
            shape[1].store(x.height() as u64, atomic::Ordering::Relaxed);
        }
    }

    /// A row that may not exist.
    #[kernel]
    pub fn first_of_row(t: Thread<1>, x: &[u32], row: usize, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = Plane::new(x, 4, x.len() / 4).map_or(0, |x| x[row][0]);
        }
    }

    /// y <- x + y, with a panic in the code unless the compiler knows that the shapes are equal.
    #[kernel(same_shape(x, y))]
    pub fn add(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += x[i.get()];
        }
    }

    /// The same by rows, of planes of any size; the third plane has any shape.
    #[kernel(wide, same_shape(x, y))]
    pub fn add_planes(t: Thread<2>, x: Plane<u32>, other: Plane<u32>, mut y: DisjointSlice<u32, 2>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += x[i.y()][i.x()] + other.get(0, 0).copied().unwrap_or(0);
        }
    }

    /// Each element of a plane, from its neighbour below or from itself; places of 32 bits.
    #[kernel(same_shape(x, y))]
    pub fn pull_up(t: Thread<2>, x: Plane<u32>, mut y: DisjointSlice<u32, 2>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x.get(i.y() + 1, i.x()).copied().unwrap_or(x[i.y()][i.x()]);
        }
    }

    /// The number of rows of a plane.
    #[kernel]
    pub fn rows(t: Thread<1>, data: DisjointSlice<MaybeUninit<u8>, 2>, mut answer: DisjointSlice<u32>) {
        if let Some(answer) = answer.get_mut(t.index()) {
            *answer = data.height() as u32;
        }
    }

    /// The same of planes of any size.
    #[kernel(wide)]
    pub fn rows_widely(
        t: Thread<1>,
        data: DisjointSlice<MaybeUninit<u8>, 2>,
        mut answer: DisjointSlice<u32>,
    ) {
        if let Some(answer) = answer.get_mut(t.index()) {
            *answer = data.height() as u32;
        }
    }

    /// Whether there is a place `at`.
    #[kernel]
    pub fn reaches(
        t: Thread<1>,
        at: usize,
        data: DisjointSlice<MaybeUninit<u8>>,
        mut answer: DisjointSlice<u32>,
    ) {
        if let Some(answer) = answer.get_mut(t.index()) {
            *answer = u32::from(at < data.len());
        }
    }

    /// The same of slices of any length.
    #[kernel(wide)]
    pub fn reaches_widely(
        t: Thread<1>,
        at: usize,
        data: DisjointSlice<MaybeUninit<u8>>,
        mut answer: DisjointSlice<u32>,
    ) {
        if let Some(answer) = answer.get_mut(t.index()) {
            *answer = u32::from(at < data.len());
        }
    }
}

/// Elements of 16 bytes.
#[ferrogrid::module]
pub mod grouped {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[Aligned16<[f32; 4]>], mut y: DisjointSlice<Aligned16<[f32; 4]>>) {
        for i in t.grid_stride(y.len()) {
            if let Some(y) = y.get_mut(i) {
                for k in 0..4 {
                    y[k] += a * x[i.get()][k];
                }
            }
        }
    }

    /// output <- input.
    #[kernel]
    pub fn copy(t: Thread<1>, input: &[Aligned16<[u16; 8]>], mut output: DisjointSlice<Aligned16<[u16; 8]>>) {
        let i = t.index();
        if let Some(group) = output.get_mut(i) {
            *group = input[i.get()];
        }
    }

    /// Turns each pair around, and multiplies it by a pair.
    #[kernel]
    pub fn swap_pairs(t: Thread<1>, by: Aligned16<[f64; 2]>, mut pairs: DisjointSlice<Aligned16<[f64; 2]>>) {
        if let Some(pair) = pairs.get_mut(t.index()) {
            let [first, second] = pair.into_inner();
            *pair = Aligned16::new([second * by[0], first * by[1]]);
        }
    }
}
