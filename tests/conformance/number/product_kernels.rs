//! Kernels that multiply matrices by fragments.

#[ferrogrid::module]
pub mod multiplying {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{Accumulator, COLUMNS, FragmentA, FragmentB, MatrixElement, ROWS};
    use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};
    use ferrogrid::device::prelude::*;

    /// c[row][column] += a b, whose size is a multiple of a fragment's: each warp has a part of `c`.
    #[kernel(block = 64, T = [i8, u8, f64, tf32, f8e4m3, f8e5m2, f16, bf16])]
    pub fn multiply<T: MatrixElement<Sum: AtomicLoadStore>>(
        t: Thread<1>,
        a: Plane<T>,
        b: Plane<T>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
    ) {
        let warp = t.warp();
        let (depth, columns) = (a.width(), b.width());
        let part = t.index().get() / 32;
        let [first_row, first_column] =
            [part / (columns / COLUMNS) * ROWS, part % (columns / COLUMNS) * COLUMNS];
        if first_row >= a.height() {
            return;
        }
        let place = |row: usize, column: usize| (first_row + row) * columns + first_column + column;
        let mut sums = Accumulator::<T>::from_fn(&warp, |row, column| c[place(row, column)].load(Relaxed));
        for k in (0..depth).step_by(T::DEPTH) {
            let own_a = FragmentA::from_fn(&warp, |row, column| a[first_row + row][k + column]);
            let own_b = FragmentB::from_fn(&warp, |row, column| b[k + row][first_column + column]);
            sums.add_product(&warp, &own_a, &own_b);
        }
        sums.for_each(&warp, |row, column, sum| c[place(row, column)].store(sum, Relaxed));
    }

    /// c <- the product of 16 rows of `a` from a row on, by 8 rows of `b`, its columns, from a column on; both begin at a `k`.
    #[kernel(block = 32, T = [i8, u8, f64, tf32, f8e4m3, f16, bf16])]
    pub fn multiply_loaded<T: MatrixElement<Sum: AtomicLoadStore>>(
        t: Thread<1>,
        place: [u32; 3],
        a: Plane<T>,
        b: Plane<T>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
        mut rows: Shared<[[T; 80]; 40]>,
        mut columns: Shared<[[T; 80]; 20]>,
    ) {
        rows.fill_with(&t, |[row, k]| a[row][k]);
        columns.fill_with(&t, |[column, k]| b[column][k]);
        let (rows, columns) = t.publish((rows, columns));
        let warp = t.warp();
        let [row, column, k] = place.map(|it| it as usize);
        let mut sums = Accumulator::<T>::zero();
        let own_a = FragmentA::load(&warp, &rows[..], [row, k]);
        let own_b = FragmentB::load_transposed(&warp, &columns[..], [column, k]);
        sums.add_product(&warp, &own_a, &own_b);
        sums.for_each(&warp, |row, column, sum| c[row * COLUMNS + column].store(sum, Relaxed));
    }

    /// As `multiply_loaded`, with `b` as it is.
    #[kernel(block = 32, T = [f16, bf16])]
    pub fn multiply_untransposed<T: MatrixElement<Sum = f32>>(
        t: Thread<1>,
        place: [u32; 3],
        a: Plane<T>,
        b: Plane<T>,
        c: &[DeviceAtomic<f32>],
        mut rows: Shared<[[T; 80]; 40]>,
        mut columns: Shared<[[T; 24]; 80]>,
    ) {
        rows.fill_with(&t, |[row, k]| a[row][k]);
        columns.fill_with(&t, |[k, column]| b[k][column]);
        let (rows, columns) = t.publish((rows, columns));
        let warp = t.warp();
        let [row, column, k] = place.map(|it| it as usize);
        let mut sums = Accumulator::<T>::zero();
        let own_b = FragmentB::load(&warp, &columns[..], [k, column]);
        sums.add_product(&warp, &FragmentA::load(&warp, &rows[..], [row, k]), &own_b);
        sums.for_each(&warp, |row, column, sum| c[row * COLUMNS + column].store(sum, Relaxed));
    }

    /// c[row][column] += the product of `16 * M` rows of `a` by `8 * N` columns of `b`, from places of 32 x 32 elements: of `a` by its rows or
    /// its columns, and of `b` by its rows or its columns.
    #[kernel(block = 32, T = [i8, f64, tf32, f16, bf16], M = [3], N = [4, 5])]
    pub fn multiply_many<T: MatrixElement<Sum: AtomicLoadStore>, const M: usize, const N: usize>(
        t: Thread<1>,
        are_turned: [bool; 2],
        a: Plane<T>,
        b: Plane<T>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
        mut of_a: Shared<Padded<T, 64, 64, 16>>,
        mut of_b: Shared<Padded<T, 64, 64, 16>>,
    ) {
        of_a.fill_with(&t, |[row, column]| a[row][column]);
        of_b.fill_with(&t, |[row, column]| b[row][column]);
        let (of_a, of_b) = t.publish((of_a, of_b));
        let (warp, place) = (t.warp(), |row: usize, column: usize| row * COLUMNS * N + column);
        let mut sums =
            Accumulator::<T, M, N>::from_fn(&warp, |row, column| c[place(row, column)].load(Relaxed));
        let [a_is_turned, b_is_turned] = are_turned;
        for k in (0..64).step_by(T::DEPTH) {
            let a = match a_is_turned {
                true => FragmentA::load_transposed(&warp, of_a.rows(), [k, 16]),
                false => FragmentA::load(&warp, of_a.rows(), [16, k]),
            };
            let b = match b_is_turned {
                true => FragmentB::load_transposed(&warp, of_b.rows(), [16, k]),
                false => FragmentB::load(&warp, of_b.rows(), [k, 16]),
            };
            sums.add_product(&warp, &a, &b);
        }
        sums.for_each_pair(&warp, |row, column, [left, right]| {
            c[place(row, column)].store(left, Relaxed);
            c[place(row, column + 1)].store(right, Relaxed);
        });
    }

    /// A product by each warp of a block of any size.
    #[kernel]
    pub fn multiply_ones(t: Thread<1>, c: &[DeviceAtomic<i32>]) {
        let warp = t.warp();
        let mut sums = Accumulator::<i8>::zero();
        sums.add_product(&warp, &FragmentA::from_fn(&warp, |_, _| 1), &FragmentB::from_fn(&warp, |_, _| 1));
        sums.for_each(&warp, |row, column, sum| c[row * COLUMNS + column].store(sum, Relaxed));
    }

    /// Products by the lower half of each warp.
    #[kernel(block = 32)]
    pub fn multiply_in_a_branch(t: Thread<1>, c: &[DeviceAtomic<i32>]) {
        let warp = t.warp();
        let mut sums = Accumulator::<i8>::zero();
        let (a, b) = (FragmentA::from_fn(&warp, |_, _| 1), FragmentB::from_fn(&warp, |_, _| 1));
        if warp.lane() < 16 {
            sums.add_product(&warp, &a, &b);
        }
        sums.for_each(&warp, |row, column, sum| c[row * COLUMNS + column].store(sum, Relaxed));
    }

    /// One lane panics, and the others load fragments and multiply, many times.
    #[kernel(block = 64)]
    pub fn panic_before_products(
        t: Thread<1>,
        rank: u32,
        c: &[DeviceAtomic<f32>],
        mut tile: Shared<Padded<f16, 64, 64, 8>>,
    ) {
        tile.fill_with(&t, |_| f16::ONE);
        let (tile, warp) = (t.publish(tile), t.warp());
        assert!(t.thread_rank() != rank, "one lane before a product");
        let mut sums = Accumulator::<f16>::zero();
        for k in (0..64).step_by(f16::DEPTH) {
            let a = FragmentA::load(&warp, tile.rows(), [16, k]);
            sums.add_product(&warp, &a, &FragmentB::load(&warp, tile.rows(), [k, 16]));
        }
        sums.for_each(&warp, |row, column, sum| c[row * COLUMNS + column].store(sum, Relaxed));
    }
}
