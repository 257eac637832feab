//! What becomes of a row: softmax and normalisations.

/// Device code.
#[ferrogrid::module]
pub mod operations {
    use ferrogrid::device::prelude::*;

    /// What becomes of a row, in steps: a total of all elements, another total with the first one known, and the elements.
    pub trait RowOperation {
        /// Whether there is a first total.
        const HAS_FIRST: bool;
        /// What leaves the totals as they are, for places beyond the end; with the second total it is not asked.
        const NOTHING: f32;
        /// The first total of two parts.
        fn combine(a: f32, b: f32) -> f32;
        /// What the second step needs of the first total.
        fn centre(total: f32, width: f32) -> f32;
        /// Moves an element on, and returns what it adds to the second total.
        fn advance(x: &mut f32, centre: f32) -> f32;
        /// What the last step needs of the second total.
        fn scale(total: f32, width: f32, epsilon: f32) -> f32;
        /// The result for an element that has been moved on.
        fn finish(x: f32, scale: f32, weight: f32, bias: f32) -> f32;
    }

    /// exp(x - max) over the sum of these, or its logarithm.
    #[derive(Clone, Copy, Debug)]
    pub struct Softmax<const LOGARITHM: bool>;

    impl<const LOGARITHM: bool> RowOperation for Softmax<LOGARITHM> {
        const HAS_FIRST: bool = true;
        const NOTHING: f32 = f32::NEG_INFINITY;
        #[inline(always)]
        fn combine(a: f32, b: f32) -> f32 {
            a.max(b)
        }
        #[inline(always)]
        fn centre(total: f32, _: f32) -> f32 {
            total
        }
        #[inline(always)]
        fn advance(x: &mut f32, centre: f32) -> f32 {
            *x -= centre;
            let power = FastMath::fast_exp(*x);
            if !LOGARITHM {
                *x = power;
            }
            power
        }
        #[inline(always)]
        fn scale(total: f32, _: f32, _: f32) -> f32 {
            if LOGARITHM { Float::ln(total) } else { 1.0 / total }
        }
        #[inline(always)]
        fn finish(x: f32, scale: f32, _: f32, _: f32) -> f32 {
            if LOGARITHM { x - scale } else { x * scale }
        }
    }

    /// x / sqrt(mean of squares + epsilon) * weight + bias, of x - mean if it is centred.
    #[derive(Clone, Copy, Debug)]
    pub struct Norm<const CENTRED: bool>;

    impl<const CENTRED: bool> RowOperation for Norm<CENTRED> {
        const HAS_FIRST: bool = CENTRED;
        const NOTHING: f32 = 0.0;
        #[inline(always)]
        fn combine(a: f32, b: f32) -> f32 {
            a + b
        }
        #[inline(always)]
        fn centre(total: f32, width: f32) -> f32 {
            total / width
        }
        #[inline(always)]
        fn advance(x: &mut f32, centre: f32) -> f32 {
            if CENTRED {
                *x -= centre;
            }
            *x * *x
        }
        #[inline(always)]
        fn scale(total: f32, width: f32, epsilon: f32) -> f32 {
            1.0 / Float::sqrt(total / width + epsilon)
        }
        #[inline(always)]
        fn finish(x: f32, scale: f32, weight: f32, bias: f32) -> f32 {
            x * scale * weight + bias
        }
    }

    /// A number in memory; rows are computed in `f32`.
    pub trait RowElement: DeviceCopy + Default {
        /// Elements of 16 bytes.
        type Group: DeviceCopy;
        /// The fours of elements in a group, one or two.
        const QUADS: usize;
        /// 1, the weight of columns without one.
        const ONE: Self;
        /// As `f32`, exactly.
        fn widen(self) -> f32;
        /// The nearest number; of two the even one.
        fn narrow(x: f32) -> Self;
        /// The elements of a group. A second four that it lacks has any values.
        fn quads(group: Self::Group) -> [[f32; 4]; 2];
        /// The group of these elements.
        fn group(quads: [[f32; 4]; 2]) -> Self::Group;
    }

    impl RowElement for f32 {
        type Group = Aligned16<[f32; 4]>;
        const QUADS: usize = 1;
        const ONE: Self = 1.0;
        #[inline(always)]
        fn widen(self) -> f32 {
            self
        }
        #[inline(always)]
        fn narrow(x: f32) -> Self {
            x
        }
        #[inline(always)]
        fn quads(group: Self::Group) -> [[f32; 4]; 2] {
            [group.into_inner(); 2]
        }
        #[inline(always)]
        fn group([quad, _]: [[f32; 4]; 2]) -> Self::Group {
            quad.into()
        }
    }
}
