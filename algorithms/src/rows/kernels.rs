//! Kernels for rows of a matrix: a block has a row, in registers where it fits.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    use crate::rows::operations::operations::{Norm, RowElement, RowOperation, Softmax};

    /// The fours of elements that a thread has in registers.
    pub const QUADS: usize = 8;
    /// The most threads of a block.
    pub const THREADS: usize = 1024;

    /// The results of `f` for the number of each four. LLVM does not unroll a long loop, and its items would go to memory.
    #[inline(always)]
    fn each<T>(mut f: impl FnMut(usize) -> T) -> [T; QUADS] {
        [f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)]
    }

    /// The results of `f` for the columns of a four.
    #[inline(always)]
    fn by_columns(mut f: impl FnMut(usize) -> f32) -> [f32; 4] {
        [f(0), f(1), f(2), f(3)]
    }

    /// A thread's own part of a slice, whose items follow each other by the number of threads. The numbers of items are
    /// then the same for all threads, and take no registers of a thread.
    #[inline(always)]
    fn own<'x, T>(t: &Thread<'_, 1>, all: &'x [T]) -> &'x [T] {
        all.get(t.thread_rank() as usize..).unwrap_or(&[])
    }

    /// Row `b` of y <- the operation on row `b` of x, for block `b`. A thread has up to [`QUADS`] fours: every
    /// element is read once.
    #[inline(always)]
    pub fn in_registers<T: RowElement, O: RowOperation, const ID: usize>(
        t: &Thread<'_, 1>,
        epsilon: f32,
        x: Plane<'_, T::Group>,
        [weight, bias]: [&[T::Group]; 2],
        mut y: DisjointRows<'_, T::Group>,
        mut scratch: Shared<'_, Scratch<f32>, ID>,
    ) {
        let (x, threads) = (&x[t.block_idx()[0] as usize], t.block_threads() as usize);
        let width = (4 * T::QUADS * x.len()) as f32;
        let (x, weight, bias) = (own(t, x), own(t, weight), own(t, bias));
        let is_group = |number: usize| number * T::QUADS < QUADS;
        let groups = each(|number| match x.get(number * threads) {
            Some(group) if is_group(number) => T::quads(*group),
            _ => [[O::NOTHING; 4]; 2],
        });
        let mut items = each(|k| groups[k / T::QUADS][k % T::QUADS]);
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
            let is_there = k / T::QUADS * threads < x.len();
            total = by_columns(|j| {
                let part = O::advance(&mut items[k][j], centre);
                if is_there { total[j] + part } else { total[j] }
            });
        });
        let own = (total[0] + total[1]) + (total[2] + total[3]);
        let scale = O::scale(t.block_reduce(&mut scratch, own, |a, b| a + b), width, epsilon);
        let mut outputs = y.iter_mut(t);
        each(|number| {
            if is_group(number)
                && let Some((_, output)) = outputs.next()
            {
                let weight = weight.get(number * threads).map_or([[1.0; 4]; 2], |group| T::quads(*group));
                let bias = bias.get(number * threads).map_or([[0.0; 4]; 2], |group| T::quads(*group));
                *output = T::group([0, 1].map(|q| {
                    let items = items[(number * T::QUADS + q) % QUADS];
                    by_columns(|j| O::finish(items[j], scale, weight[q][j], bias[q][j]))
                }));
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
        x: Plane<<T as RowElement>::Group>,
        weight: &[<T as RowElement>::Group],
        bias: &[<T as RowElement>::Group],
        y: DisjointRows<<T as RowElement>::Group>,
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
