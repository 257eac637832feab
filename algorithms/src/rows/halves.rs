//! The kernels of rows for 16-bit floats, which are computed in `f32`.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::rows::kernels::kernels::{by_columns, each, in_passes, own};
    use crate::rows::operations::operations::{Norm, RowElement, RowOperation, Softmax};

    macro_rules! halves {
        ($($t:ident),*) => {
            $(impl RowElement for $t {
                const ONE: Self = $t::ONE;
                #[inline(always)]
                fn widen(self) -> f32 {
                    self.to_f32()
                }
                #[inline(always)]
                fn narrow(x: f32) -> Self {
                    $t::from_f32(x)
                }
            })*
        };
    }
    halves!(f16, bf16);

    /// Eight elements.
    type Group<T> = Aligned16<[T; 8]>;

    /// The elements of a group, as two fours.
    #[inline(always)]
    fn widened<T: RowElement>(group: Group<T>) -> [[f32; 4]; 2] {
        let [a, b, c, d, e, f, g, h] = group.into_inner().map(T::widen);
        [[a, b, c, d], [e, f, g, h]]
    }

    /// As for `f32`, but a thread keeps its groups as they are in memory, and widens them for each step. So as many rows are there
    /// at a time as of `f32`, of twice the elements.
    #[inline(always)]
    fn in_registers<T: RowElement, O: RowOperation, const ID: usize>(
        t: &Thread<'_, 1>,
        epsilon: f32,
        x: Plane<'_, Group<T>>,
        [weight, bias]: [&[Group<T>]; 2],
        mut y: DisjointRows<'_, Group<T>>,
        mut scratch: Shared<'_, Scratch<f32>, ID>,
    ) {
        let (x, threads) = (&x[t.block_idx()[0] as usize], t.block_threads() as usize);
        let width = (8 * x.len()) as f32;
        let (x, weight, bias) = (own(t, x), own(t, weight), own(t, bias));
        let mut groups = each(|k| x.get(k * threads).copied().unwrap_or_default());
        let mut centre = 0.0;
        if O::HAS_FIRST {
            let mut total = [O::NOTHING; 4];
            each(|k| {
                if k * threads < x.len() {
                    let [p, q] = widened(groups[k]);
                    total = by_columns(|j| O::combine(total[j], O::combine(p[j], q[j])));
                }
            });
            let [a, b, c, d] = total;
            let own = O::combine(O::combine(a, b), O::combine(c, d));
            centre = O::centre(t.block_reduce(&mut scratch, own, O::combine), width);
        }
        let mut total = [0.0; 4];
        each(|k| {
            groups[k] = groups[k].opaque();
            if k * threads < x.len() {
                let [mut p, mut q] = widened(groups[k]);
                total = by_columns(|j| total[j] + (O::advance(&mut p[j], centre) + O::advance(&mut q[j], centre)));
            }
        });
        let own = (total[0] + total[1]) + (total[2] + total[3]);
        let scale = O::scale(t.block_reduce(&mut scratch, own, |a, b| a + b), width, epsilon);
        let mut outputs = y.iter_mut(t);
        each(|k| {
            if let Some((_, output)) = outputs.next() {
                let weight = weight.get(k * threads).map_or([[1.0; 4]; 2], |group| widened(*group));
                let bias = bias.get(k * threads).map_or([[0.0; 4]; 2], |group| widened(*group));
                let mut items = widened(groups[k].opaque());
                let [p, q] = [0, 1].map(|half| {
                    by_columns(|j| {
                        O::advance(&mut items[half][j], centre);
                        O::finish(items[half][j], scale, weight[half][j], bias[half][j])
                    })
                });
                *output = [p[0], p[1], p[2], p[3], q[0], q[1], q[2], q[3]].map(T::narrow).into();
            }
        });
    }

    /// Rows in registers, of 16-bit floats.
    #[kernel(
        max_threads = 1024,
        wide,
        same_shape(x, y),
        T = [f16, bf16],
        O = [Softmax<false>, Softmax<true>, Norm<true>, Norm<false>]
    )]
    pub fn half_rows_in_registers<T: RowElement, O: RowOperation>(
        t: Thread<1>,
        epsilon: f32,
        x: Plane<Aligned16<[T; 8]>>,
        weight: &[Aligned16<[T; 8]>],
        bias: &[Aligned16<[T; 8]>],
        y: DisjointRows<Aligned16<[T; 8]>>,
        scratch: Shared<Scratch<f32>>,
    ) {
        in_registers::<T, O, _>(&t, epsilon, x, [weight, bias], y, scratch);
    }

    /// Rows in passes, of 16-bit floats.
    #[kernel(
        max_threads = 1024,
        wide,
        same_shape(x, y),
        T = [f16, bf16],
        O = [Softmax<false>, Softmax<true>, Norm<true>, Norm<false>]
    )]
    pub fn half_rows_in_passes<T: RowElement, O: RowOperation>(
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
