//! Kernels for rows of a matrix: a block has a row, in registers where it fits.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    use crate::rows::operations::operations::{Norm, RowElement, RowOperation, Softmax};

    /// The groups of 16 bytes that a thread has in registers.
    pub const QUADS: usize = 8;
    /// The most threads of a block.
    pub const THREADS: usize = 1024;

    /// Four elements.
    type Quad<T> = Aligned16<[T; 4]>;

    /// The results of `f` for the number of each four. LLVM does not unroll a long loop, and its items would go to memory.
    #[inline(always)]
    pub fn each<T>(mut f: impl FnMut(usize) -> T) -> [T; QUADS] {
        [f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)]
    }

    /// The results of `f` for the columns of a four.
    #[inline(always)]
    pub fn by_columns(mut f: impl FnMut(usize) -> f32) -> [f32; 4] {
        [f(0), f(1), f(2), f(3)]
    }

    /// A thread's own part of a slice, whose items follow each other by the number of threads. The numbers of items are
    /// then the same for all threads, and take no registers of a thread.
    #[inline(always)]
    pub fn own<'x, T>(t: &Thread<'_, 1>, all: &'x [T]) -> &'x [T] {
        all.get(t.thread_rank() as usize..).unwrap_or(&[])
    }

    /// Row `b` of y <- the operation on row `b` of x, for block `b`. A thread has up to [`QUADS`] fours: every
    /// element is read once.
    #[inline(always)]
    fn in_registers<T: RowElement, O: RowOperation, const ID: usize>(
        t: &Thread<'_, 1>,
        epsilon: f32,
        x: Plane<'_, Quad<T>>,
        [weight, bias]: [&[Quad<T>]; 2],
        mut y: DisjointRows<'_, Quad<T>>,
        mut scratch: Shared<'_, Scratch<f32>, ID>,
    ) {
        let (x, threads) = (&x[t.block_idx()[0] as usize], t.block_threads() as usize);
        let width = (4 * x.len()) as f32;
        let (x, weight, bias) = (own(t, x), own(t, weight), own(t, bias));
        let mut items =
            each(|k| x.get(k * threads).map_or([O::NOTHING; 4], |quad| quad.into_inner().map(T::widen)));
        let mut centre = 0.0;
        if O::HAS_FIRST {
            let mut total = [O::NOTHING; 4];
            each(|k| total = by_columns(|j| O::combine(total[j], items[k][j])));
            let [a, b, c, d] = total;
            let own = O::combine(O::combine(a, b), O::combine(c, d));
            centre = O::centre(t.block_reduce(&mut scratch, own, O::combine), width);
        }
        let mut total = [0.0; 4];
        each(|k| {
            let is_there = k * threads < x.len();
            total = by_columns(|j| {
                let part = O::advance(&mut items[k][j], centre);
                if is_there { total[j] + part } else { total[j] }
            });
        });
        let own = (total[0] + total[1]) + (total[2] + total[3]);
        let scale = O::scale(t.block_reduce(&mut scratch, own, |a, b| a + b), width, epsilon);
        let mut outputs = y.iter_mut(t);
        each(|k| {
            if let Some((_, output)) = outputs.next() {
                let weight = weight.get(k * threads).map_or([1.0; 4], |quad| quad.into_inner().map(T::widen));
                let bias = bias.get(k * threads).map_or([0.0; 4], |quad| quad.into_inner().map(T::widen));
                let items = by_columns(|j| O::finish(items[k][j], scale, weight[j], bias[j]));
                *output = items.map(T::narrow).into();
            }
        });
    }

    /// As [`in_registers`], for rows of any width and place: each step reads the row again, which caches shorten.
    #[inline(always)]
    pub fn in_passes<T: RowElement, O: RowOperation, const ID: usize>(
        t: &Thread<'_, 1>,
        epsilon: f32,
        x: Plane<'_, T>,
        [weight, bias]: [&[T]; 2],
        mut y: DisjointRows<'_, T>,
        mut scratch: Shared<'_, Scratch<f32>, ID>,
    ) {
        let row = &x[t.block_idx()[0] as usize];
        let (width, own) = (row.len() as f32, || t.block_stride(row.len()).map(|column| row[column].widen()));
        let mut centre = 0.0;
        if O::HAS_FIRST {
            let total = t.block_reduce(&mut scratch, own().fold(O::NOTHING, O::combine), O::combine);
            centre = O::centre(total, width);
        }
        let own = own().fold(0.0, |total, mut x| total + O::advance(&mut x, centre));
        let scale = O::scale(t.block_reduce(&mut scratch, own, |a, b| a + b), width, epsilon);
        y.fill_with(t, |column| {
            let mut x = row[column].widen();
            O::advance(&mut x, centre);
            let [weight, bias] = [(weight, T::ONE), (bias, T::default())]
                .map(|(all, without)| all.get(column).copied().unwrap_or(without).widen());
            T::narrow(O::finish(x, scale, weight, bias))
        });
    }

    /// Rows in registers, of `f32`.
    #[kernel(
        max_threads = 1024,
        wide,
        same_shape(x, y),
        T = [f32],
        O = [Softmax<false>, Softmax<true>, Norm<true>, Norm<false>]
    )]
    pub fn rows_in_registers<T: RowElement, O: RowOperation>(
        t: Thread<1>,
        epsilon: f32,
        x: Plane<Aligned16<[T; 4]>>,
        weight: &[Aligned16<[T; 4]>],
        bias: &[Aligned16<[T; 4]>],
        y: DisjointRows<Aligned16<[T; 4]>>,
        scratch: Shared<Scratch<f32>>,
    ) {
        in_registers::<T, O, _>(&t, epsilon, x, [weight, bias], y, scratch);
    }

    /// Rows in passes, of `f32`.
    #[kernel(
        max_threads = 1024,
        wide,
        same_shape(x, y),
        T = [f32],
        O = [Softmax<false>, Softmax<true>, Norm<true>, Norm<false>]
    )]
    pub fn rows_in_passes<T: RowElement, O: RowOperation>(
        t: Thread<1>,
        epsilon: f32,
        x: Plane<T>,
        weight: &[T],
        bias: &[T],
        y: DisjointRows<T>,
        scratch: Shared<Scratch<f32>>,
    ) {
        in_passes::<T, O, _>(&t, epsilon, x, [weight, bias], y, scratch);
    }
}
