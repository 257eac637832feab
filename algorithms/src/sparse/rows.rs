//! The kernel of products of sparse matrices and vectors.

/// The kernel. The order in which the products of a row are added depends on its length and the lanes alone.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;
    use crate::segmented::segments::kernels::{Offsets, expect_segment};

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The most elements of a row for each of its lanes: longer rows get the whole block.
    pub const LONGEST: usize = 64;

    /// A row's products, of the elements `first`, `first + step` and so on before `end`, added.
    #[inline(always)]
    fn dot<T: Element>((columns, values, x): (&[u32], &[T], &[T]), [first, step, end]: [usize; 3]) -> T {
        let (mut sum, mut next, mut greatest) = (T::ZERO, first, 0);
        while next < end {
            // First all loads. LLVM does not unroll a loop of so much code.
            let four = |item: fn(usize, usize) -> usize| [0, 1, 2, 3].map(|k| item(next, k * step));
            let places = four(|next, offset| next + offset);
            let column =
                places.map(|i| if i < end { columns.get(i).copied().unwrap_or(0) } else { 0 } as usize);
            let value =
                places.map(|i| if i < end { values.get(i).copied().unwrap_or(T::ZERO) } else { T::ZERO });
            greatest = column.into_iter().fold(greatest, usize::max);
            let item = column.map(|column| x.get(column).copied().unwrap_or(T::ZERO));
            // Not a product of what is left out: 0 times infinity is NaN.
            let product = |k: usize| if places[k] < end { value[k].multiply(item[k]) } else { T::ZERO };
            sum = sum.add(product(0).add(product(1)).add(product(2).add(product(3))));
            next += 4 * step;
        }
        assert!(
            first >= end || greatest < x.len(),
            "a column is beyond the width of the matrix, the number of elements of x"
        );
        sum
    }

    /// y <- alpha A x + beta y. A row has `1 << shift` lanes of a warp.
    #[kernel(block = THREADS, wide, T = [f32, f64])]
    pub fn multiply_sparse<T: Element + atomic::AtomicLoadStore>(
        t: Thread<1>,
        alpha: T,
        beta: T,
        shift: u32,
        short: &[u32],
        long: &[u64],
        columns: &[u32],
        values: &[T],
        x: &[T],
        y: &[DeviceAtomic<T>],
        mut counts: Shared<Scratch<u32>>,
        mut scratch: Shared<Scratch<T>>,
    ) {
        let (rank, lanes, offsets) =
            (t.thread_rank() as usize % THREADS, 1_usize << shift, Offsets { short, long });
        let (rows, matrix) = (THREADS >> shift, (columns, values, x));
        let first = t.block_idx()[0] as usize * rows;
        let row = first + (rank >> shift);
        let (begin, end) = (offsets.get(row), offsets.get(row + 1));
        expect_segment(begin, end, values.len());
        let is_long = end - begin > LONGEST * lanes;
        let mut sum = dot(matrix, [begin + rank % lanes, lanes, if is_long { begin } else { end }]);
        let (warp, mut distance) = (t.warp(), 1);
        while distance < lanes {
            let other = warp.shuffle_xor(sum, distance as u32);
            sum = if rank & distance == 0 { sum.add(other) } else { other.add(sum) };
            distance *= 2;
        }
        if t.block_reduce(&mut counts, u32::from(is_long), u32::max) > 0 {
            for number in 0..rows {
                let (begin, end) = (offsets.get(first + number), offsets.get(first + number + 1));
                if end > begin && end - begin > LONGEST * lanes {
                    let own = dot(matrix, [begin + rank, THREADS, end]);
                    let total = t.block_reduce(&mut scratch, own, T::add);
                    sum = if rank >> shift == number { total } else { sum };
                }
            }
        }
        if rank % lanes == 0
            && let Some(y) = y.get(row)
        {
            let product = alpha.multiply(sum);
            // Without beta y is not read: it may be NaN.
            let is_read = !beta.is_same(T::ZERO);
            let sum =
                if is_read { product.add(beta.multiply(y.load(atomic::Ordering::Relaxed))) } else { product };
            y.store(sum, atomic::Ordering::Relaxed);
        }
    }
}
