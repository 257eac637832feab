//! The kernels of rows for 16-bit floats, which are computed in `f32`.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::rows::kernels::kernels::{in_passes, in_registers};
    use crate::rows::operations::operations::{Norm, RowElement, RowOperation, Softmax};

    macro_rules! halves {
        ($($t:ident),*) => {
            $(impl RowElement for $t {
                type Group = Aligned16<[$t; 8]>;
                const QUADS: usize = 2;
                const ONE: Self = $t::ONE;
                #[inline(always)]
                fn widen(self) -> f32 {
                    self.to_f32()
                }
                #[inline(always)]
                fn narrow(x: f32) -> Self {
                    $t::from_f32(x)
                }
                #[inline(always)]
                fn quads(group: Self::Group) -> [[f32; 4]; 2] {
                    let [a, b, c, d, e, f, g, h] = group.into_inner().map($t::to_f32);
                    [[a, b, c, d], [e, f, g, h]]
                }
                #[inline(always)]
                fn group([[a, b, c, d], [e, f, g, h]]: [[f32; 4]; 2]) -> Self::Group {
                    [a, b, c, d, e, f, g, h].map($t::from_f32).into()
                }
            })*
        };
    }
    halves!(f16, bf16);

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
        x: Plane<<T as RowElement>::Group>,
        weight: &[<T as RowElement>::Group],
        bias: &[<T as RowElement>::Group],
        y: DisjointRows<<T as RowElement>::Group>,
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
