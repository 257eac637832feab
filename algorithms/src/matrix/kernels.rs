//! The kernels that combine the elements of rows and of columns.

/// The kernels. The order in which elements are combined depends on the numbers in [`Matrix`] but for the pitch.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::accumulate::accumulations::{Accumulation, Least, SumFloats, SumIntegers};
    use crate::number::numbers::Element;

    /// The threads of a block.
    pub const THREADS: usize = 256;

    /// Rows of elements, and how a launch divides them.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Matrix {
        /// The elements of a row.
        pub width: u64,
        /// The number of rows.
        pub height: u64,
        /// The elements from the start of a row to that of the next.
        pub pitch: u64,
        /// The elements of a row or column that a block combines.
        pub length: u64,
        /// The parts of a row or column, of a block each.
        pub parts: u32,
        /// The logarithm of the threads for a row, up to a warp's or all; or of the columns of a block.
        pub shift: u32,
    }

    /// The elements `first`, `first + step` and so on before `end`, combined. Element `i` is at `place(i)`.
    #[inline(always)]
    fn fold_strided<A: Accumulation>(
        a: A,
        x: &[A::Item],
        [first, step, end]: [usize; 3],
        place: impl Fn(usize) -> usize,
    ) -> A::Sum {
        let none = a.item(a.identity());
        let load = |i: usize| if i < end { x.get(place(i)).copied().unwrap_or(none) } else { none };
        let (mut sum, mut next) = (a.identity(), first);
        while next < end {
            // First all loads: LLVM unrolls no loop of so much code.
            let item = |k: usize| load(next + k * step);
            let items = [item(0), item(1), item(2), item(3), item(4), item(5), item(6), item(7)];
            let [p, q, r, s, t, u, v, w] = items.map(|item| a.sum(item));
            let (p, r) =
                (a.combine(a.combine(p, q), a.combine(r, s)), a.combine(a.combine(t, u), a.combine(v, w)));
            sum = a.combine(sum, a.combine(p, r));
            next += 8 * step;
        }
        sum
    }

    /// The part of a row or column with `end` elements that the block has, and its number among those of the grid.
    #[inline(always)]
    fn part(t: &Thread<'_, 1>, m: Matrix, end: u64) -> (usize, [usize; 3]) {
        let [block] = t.block_idx();
        let begin = u64::from(block % m.parts) * m.length;
        let number = (block / m.parts) as usize;
        (number, [(block % m.parts) as usize, begin as usize, end.min(begin + m.length) as usize])
    }

    /// y[r * parts + p] <- the elements of part `p` of row `r`, combined
    #[kernel(
        block = THREADS,
        wide,
        A = [
            SumIntegers<u8>, SumIntegers<u16>, SumIntegers<u32>, SumIntegers<u64>, SumFloats<f32>, SumFloats<f64>,
            #[cfg(feature = "half")] SumFloats<f16>, #[cfg(feature = "half")] SumFloats<bf16>,
            Least<u8>, Least<u16>, Least<u32>, Least<u64>
        ]
    )]
    pub fn combine_rows<A: Accumulation>(
        t: Thread<1>,
        a: A,
        m: Matrix,
        x: &[<A as Accumulation>::Item],
        y: &[DeviceAtomic<<A as Accumulation>::Total>],
        mut scratch: Shared<Scratch<<A as Accumulation>::Sum>>,
    ) {
        let (rank, lanes) = (t.thread_rank() as usize % THREADS, 1_usize << m.shift);
        let (number, [part, begin, end]) = part(&t, m, m.width);
        let row = (number * THREADS + rank) >> m.shift;
        let end = if row < m.height as usize { end } else { 0 };
        let own = [begin + rank % lanes, lanes, end];
        let mut sum = fold_strided(a, x, own, |column| row * m.pitch as usize + column);
        if lanes == THREADS {
            sum = t.block_reduce(&mut scratch, sum, |p, q| a.combine(p, q));
        } else {
            let (warp, mut distance) = (t.warp(), 1);
            while distance < lanes {
                let other = warp.shuffle_xor(sum, distance as u32);
                sum = if rank & distance == 0 { a.combine(sum, other) } else { a.combine(other, sum) };
                distance *= 2;
            }
        }
        if rank % lanes == 0
            && let Some(y) = y.get(row * m.parts as usize + part)
        {
            y.store(a.total(sum), Ordering::Relaxed);
        }
    }

    /// y[p * width + c] <- the elements of part `p` of column `c`, combined
    #[kernel(
        block = THREADS,
        wide,
        A = [
            SumIntegers<u8>, SumIntegers<u16>, SumIntegers<u32>, SumIntegers<u64>, SumFloats<f32>, SumFloats<f64>,
            #[cfg(feature = "half")] SumFloats<f16>, #[cfg(feature = "half")] SumFloats<bf16>,
            Least<u8>, Least<u16>, Least<u32>, Least<u64>
        ]
    )]
    pub fn combine_columns<A: Accumulation>(
        t: Thread<1>,
        a: A,
        m: Matrix,
        x: &[<A as Accumulation>::Item],
        y: &[DeviceAtomic<<A as Accumulation>::Total>],
        mut sums: Shared<[<A as Accumulation>::Sum; 256]>,
    ) {
        let (rank, columns) = (t.thread_rank() as usize % THREADS, 1_usize << m.shift);
        let (number, [part, begin, end]) = part(&t, m, m.height);
        let (column, width) = (number * columns + rank % columns, m.width as usize);
        let end = if column < width { end } else { 0 };
        let own = [begin + (rank >> m.shift), THREADS >> m.shift, end];
        let sum = fold_strided(a, x, own, |row| row * m.pitch as usize + column);
        sums.fill_with(&t, |_| sum);
        let sums = t.publish(sums);
        if rank < columns && column < width {
            let (mut sum, mut next) = (sums[rank], rank + columns);
            while next < THREADS {
                sum = a.combine(sum, sums[next]);
                next += columns;
            }
            if let Some(y) = y.get(part * width + column) {
                y.store(a.total(sum), Ordering::Relaxed);
            }
        }
    }

    /// y[i] <- x[i] / divisor
    #[kernel(block = THREADS, wide, same_shape(x, y), T = [i64, u64, f32, f64])]
    pub fn quotients<T: Element>(t: Thread<1>, divisor: f64, x: &[T], mut y: DisjointSlice<f64>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()].real() / divisor;
        }
    }
}
