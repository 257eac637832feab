//! Factors as the kernels of products read them: rows without gaps, of whole groups of 16 bytes, rounded or wider; and what becomes of sums of
//! wider factors.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};
    use ferrogrid::device::prelude::*;

    use crate::gemm::kernels::kernels::scaled;
    use crate::number::numbers::Element;

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

    /// What is packed.
    pub trait Packed: DeviceCopy + Default + SharedElement {
        /// As it is written: a `f32` rounded to `tf32`, bits as they are.
        fn packed(self) -> Self;
    }

    macro_rules! bits {
        ($($t:ident),*) => { $(
            impl Packed for $t {
                #[inline(always)]
                fn packed(self) -> Self {
                    self
                }
            }
        )* };
    }
    bits!(u8, u16, u32, u64);

    impl Packed for f32 {
        #[inline(always)]
        fn packed(self) -> f32 {
            tf32::from_f32(self).to_f32()
        }
    }

    /// y <- the rows of `x`, or its columns as rows, with zeros up to the width of `y`
    #[kernel(block = [32, 8], wide, T = [u8, u16, u32, u64, f32])]
    pub fn pack<T: Packed>(
        t: Thread<2>,
        from: Source,
        x: &[T],
        mut y: DisjointTiles<T, 32, 32>,
        mut tile: Shared<Padded<T, 32, 32>>,
    ) {
        let [first_column, first_row] = t.block_idx().map(|block| block as usize * 32);
        if from.is_transposed == 0 {
            y.fill_with(&t, |[row, column]| from.read(x, row, column).packed());
        } else {
            // Neighbouring threads read neighbouring elements of `x`.
            tile.fill_with(&t, |[column, row]| from.read(x, first_row + row, first_column + column));
            let tile = t.publish(tile);
            y.fill_with(&t, |[row, column]| tile[column - first_column][row - first_row].packed());
        }
    }

    /// An element of which wider ones have all numbers, and sums of all products.
    pub trait Narrow: DeviceCopy {
        /// The wider one.
        type Wide: DeviceCopy;

        /// The same number.
        fn wide(self) -> Self::Wide;
    }

    macro_rules! narrow {
        ($($t:ident as $wide:ident: $widen:expr;)*) => { $(
            impl Narrow for $t {
                type Wide = $wide;

                #[inline(always)]
                fn wide(self) -> $wide {
                    $widen(self)
                }
            }
        )* };
    }
    narrow! {
        i8 as f64: f64::from;
        f8e4m3 as f32: f8e4m3::to_f32;
        f8e5m2 as f32: f8e5m2::to_f32;
    }

    /// y <- x
    #[kernel(block = 256, wide, same_shape(x, y), T = [i8, f8e4m3, f8e5m2])]
    pub fn copy_wider<T: Narrow>(t: Thread<1>, x: &[T], mut y: DisjointSlice<<T as Narrow>::Wide>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()].wide();
        }
    }

    /// Where sum number `i` is stored, in rows of `columns` elements that begin `pitch` elements after each other.
    #[inline(always)]
    fn place(i: usize, [columns, pitch]: [u64; 2]) -> usize {
        i / columns as usize * pitch as usize + i % columns as usize
    }

    /// Whether row `row` is of a group, if there are any.
    #[inline(always)]
    fn is_of_group(row: usize, offsets: &[u32]) -> bool {
        let [Some(first), Some(end)] = [offsets.first(), offsets.last()] else { return true };
        (*first as usize..*end as usize).contains(&row)
    }

    /// An element of results, by sums of products.
    pub trait Summed: AtomicLoadStore + DeviceCopy {
        /// What products are added up in, and scaled by.
        type Sum: Element;

        /// `alpha` times the sum and `beta` times what was there before, rounded once.
        fn stored(scales: [Self::Sum; 2], sum: Self::Sum, before: impl FnOnce() -> Self) -> Self;
    }

    impl Summed for f32 {
        type Sum = f32;

        #[inline(always)]
        fn stored(scales: [f32; 2], sum: f32, before: impl FnOnce() -> f32) -> f32 {
            scaled(scales, sum, before)
        }
    }

    impl Summed for i32 {
        type Sum = i32;

        #[inline(always)]
        fn stored([alpha, beta]: [i32; 2], sum: i32, before: impl FnOnce() -> i32) -> i32 {
            let before = if beta == 0 { 0 } else { beta.wrapping_mul(before()) };
            alpha.wrapping_mul(sum).wrapping_add(before)
        }
    }

    #[cfg(feature = "half")]
    macro_rules! halves {
        ($($t:ident),*) => { $(
            impl Summed for $t {
                type Sum = f32;

                #[inline(always)]
                fn stored(scales: [f32; 2], sum: f32, before: impl FnOnce() -> $t) -> $t {
                    $t::from_f32(scaled(scales, sum, || before().to_f32()))
                }
            }
        )* };
    }
    #[cfg(feature = "half")]
    halves!(f16, bf16);

    /// c <- alpha sums + beta c, with whole sums, in rows of groups, if there are any; integers wrap around.
    #[kernel(block = 256, wide)]
    pub fn store_integers(
        t: Thread<1>,
        width: [u64; 2],
        alpha: i32,
        beta: i32,
        offsets: &[u32],
        sums: &[f64],
        c: &[DeviceAtomic<i32>],
    ) {
        let i = t.index().get();
        if let Some(sum) = sums.get(i)
            && is_of_group(i / width[0] as usize, offsets)
        {
            let c = &c[place(i, width)];
            c.store(i32::stored([alpha, beta], *sum as i64 as i32, || c.load(Relaxed)), Relaxed);
        }
    }

    /// c <- alpha sums + beta c, with the sums of so many parts, below each other, added in order, in rows of groups, if there are any.
    /// Rows of sums begin `pitch` elements after each other.
    #[kernel(block = 256, wide, C = [f32, i32, #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16])]
    pub fn store_sums<C: Summed>(
        t: Thread<1>,
        width: [u64; 2],
        pitch: u64,
        parts: u64,
        alpha: <C as Summed>::Sum,
        beta: <C as Summed>::Sum,
        offsets: &[u32],
        sums: &[<C as Summed>::Sum],
        c: &[DeviceAtomic<C>],
    ) {
        let (i, of_part) = (t.index().get(), sums.len() / parts as usize);
        let at = place(i, [width[0], pitch]);
        if at >= of_part || !is_of_group(i / width[0] as usize, offsets) {
            return;
        }
        let sum = (0..parts as usize)
            .filter_map(|part| sums.get(part * of_part + at).copied())
            .reduce(Element::add)
            .unwrap_or(Element::ZERO);
        let c = &c[place(i, width)];
        c.store(C::stored([alpha, beta], sum, || c.load(Relaxed)), Relaxed);
    }
}
