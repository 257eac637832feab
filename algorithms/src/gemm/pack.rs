//! Factors as the kernels of products read them: rows without gaps, of whole groups of 16 bytes; and as `tf32` where no kernel rounds to it.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::narrow::tf32;
    use ferrogrid::device::prelude::*;

    /// Where a factor is.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Source {
        /// The rows and the elements of each of a batch's matrix, as it is written.
        pub extents: [u64; 2],
        /// The elements from the start of a row to that of the next, as it is read.
        pub pitch: u64,
        /// The row of all batches that is written first.
        pub first_row: u64,
        /// Whether rows are written as columns: 0 or 1.
        pub is_transposed: u64,
    }

    impl Source {
        /// The element for row `row`, of those of all batches, and column `column`; zero beyond its matrix.
        #[inline(always)]
        fn read<T: Copy + Default>(&self, x: &[T], row: usize, column: usize) -> T {
            let ([rows, columns], pitch) = (self.extents.map(|it| it as usize), self.pitch as usize);
            if column >= columns {
                return T::default();
            }
            let row = self.first_row as usize + row;
            let place = match self.is_transposed {
                0 => row * pitch + column,
                _ => (row / rows * columns + column) * pitch + row % rows,
            };
            x.get(place).copied().unwrap_or_default()
        }
    }

    /// y <- x, rounded to `tf32`
    #[kernel(block = 256, wide, same_shape(x, y))]
    pub fn round(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = tf32::from_f32(x[i.get()]).to_f32();
        }
    }

    /// y <- the rows of `x`, or its columns as rows, with zeros up to the width of `y`
    #[kernel(block = [32, 8], wide, T = [u16, u32, u64])]
    pub fn pack<T: DeviceCopy + Default + SharedElement>(
        t: Thread<2>,
        from: Source,
        x: &[T],
        mut y: DisjointTiles<T, 32, 32>,
        mut tile: Shared<Padded<T, 32, 32>>,
    ) {
        let [first_column, first_row] = t.block_idx().map(|block| block as usize * 32);
        if from.is_transposed == 0 {
            y.fill_with(&t, |[row, column]| from.read(x, row, column));
        } else {
            // Neighbouring threads read neighbouring elements of `x`.
            tile.fill_with(&t, |[column, row]| from.read(x, first_row + row, first_column + column));
            let tile = t.publish(tile);
            y.fill_with(&t, |[row, column]| tile[column - first_column][row - first_row]);
        }
    }
}
