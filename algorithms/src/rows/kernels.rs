//! Kernels for rows of a matrix: a block has a row, in registers where it fits.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    /// The groups of 16 bytes that a thread has in registers.
    pub const GROUPS: usize = 8;
    /// The most threads of a block.
    pub const THREADS: usize = 1024;
    /// Elements of 16 bytes.
    pub type Group = Aligned16<[f32; 4]>;

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

    /// exp(x - max) / the sum of these
    #[derive(Clone, Copy, Debug)]
    pub struct Softmax;

    impl RowOperation for Softmax {
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
            *x = FastMath::fast_exp(*x - centre);
            *x
        }
        #[inline(always)]
        fn scale(total: f32, _: f32, _: f32) -> f32 {
            1.0 / total
        }
        #[inline(always)]
        fn finish(x: f32, scale: f32, _: f32, _: f32) -> f32 {
            x * scale
        }
    }

    /// x - max - ln(the sum of exp(x - max))
    #[derive(Clone, Copy, Debug)]
    pub struct LogSoftmax;

    impl RowOperation for LogSoftmax {
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
            FastMath::fast_exp(*x)
        }
        #[inline(always)]
        fn scale(total: f32, _: f32, _: f32) -> f32 {
            Float::ln(total)
        }
        #[inline(always)]
        fn finish(x: f32, scale: f32, _: f32, _: f32) -> f32 {
            x - scale
        }
    }

    /// (x - mean) / sqrt(variance + epsilon) * weight + bias
    #[derive(Clone, Copy, Debug)]
    pub struct LayerNorm;

    impl RowOperation for LayerNorm {
        const HAS_FIRST: bool = true;
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
            *x -= centre;
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

    /// x / sqrt(mean of squares + epsilon) * weight + bias
    #[derive(Clone, Copy, Debug)]
    pub struct RmsNorm;

    impl RowOperation for RmsNorm {
        const HAS_FIRST: bool = false;
        const NOTHING: f32 = 0.0;
        #[inline(always)]
        fn combine(a: f32, b: f32) -> f32 {
            a + b
        }
        #[inline(always)]
        fn centre(_: f32, _: f32) -> f32 {
            0.0
        }
        #[inline(always)]
        fn advance(x: &mut f32, _: f32) -> f32 {
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

    /// The results of `f` for the number of each group. LLVM does not unroll a long loop, and its items would go to memory.
    #[inline(always)]
    fn each<T>(mut f: impl FnMut(usize) -> T) -> [T; GROUPS] {
        [f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)]
    }

    /// The results of `f` for the four columns of a group.
    #[inline(always)]
    fn by_columns(mut f: impl FnMut(usize) -> f32) -> [f32; 4] {
        [f(0), f(1), f(2), f(3)]
    }

    /// Weight and bias of four columns; 1 and 0 without them.
    #[inline(always)]
    fn affine(weight: &[Group], bias: &[Group], column: usize) -> ([f32; 4], [f32; 4]) {
        let [weight, bias] = [(weight, 1.0), (bias, 0.0)]
            .map(|(all, without)| all.get(column).copied().unwrap_or(Group::new([without; 4])).into_inner());
        (weight, bias)
    }

    /// Row `b` of y <- the operation on row `b` of x, for block `b`. A thread has up to `GROUPS` groups: every
    /// element is read once.
    #[kernel(
        max_threads = 1024,
        wide,
        same_shape(x, y),
        O = [Softmax, LogSoftmax, LayerNorm, RmsNorm]
    )]
    pub fn rows_in_registers<O: RowOperation>(
        t: Thread<1>,
        epsilon: f32,
        x: Plane<Group>,
        weight: &[Group],
        bias: &[Group],
        mut y: DisjointRows<Group>,
        mut scratch: Shared<Scratch<f32>>,
    ) {
        let ([row], rank, threads) = (t.block_idx(), t.thread_rank() as usize, t.block_threads() as usize);
        let width = 4.0 * x.width() as f32;
        let column = |k: usize| k * threads + rank;
        let mut items = each(|k| {
            x.get(row as usize, column(k)).copied().unwrap_or(Group::new([O::NOTHING; 4])).into_inner()
        });
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
            let is_there = column(k) < x.width();
            total = by_columns(|j| {
                let part = O::advance(&mut items[k][j], centre);
                if is_there { total[j] + part } else { total[j] }
            });
        });
        let own = (total[0] + total[1]) + (total[2] + total[3]);
        let scale = O::scale(t.block_reduce(&mut scratch, own, |a, b| a + b), width, epsilon);
        let mut outputs = y.iter_mut(&t);
        each(|k| {
            if let Some((_, output)) = outputs.next() {
                let (weight, bias) = affine(weight, bias, column(k));
                *output = Group::new(by_columns(|j| O::finish(items[k][j], scale, weight[j], bias[j])));
            }
        });
    }

    /// As `rows_in_registers`, for rows of any width and place: each step reads the row again, which caches shorten.
    #[kernel(
        max_threads = 1024,
        wide,
        same_shape(x, y),
        O = [Softmax, LogSoftmax, LayerNorm, RmsNorm]
    )]
    pub fn rows_in_passes<O: RowOperation>(
        t: Thread<1>,
        epsilon: f32,
        x: Plane<f32>,
        weight: &[f32],
        bias: &[f32],
        mut y: DisjointRows<f32>,
        mut scratch: Shared<Scratch<f32>>,
    ) {
        let row = &x[t.block_idx()[0] as usize];
        let (width, own) = (row.len() as f32, || t.block_stride(row.len()).map(|column| row[column]));
        let mut centre = 0.0;
        if O::HAS_FIRST {
            let total = t.block_reduce(&mut scratch, own().fold(O::NOTHING, O::combine), O::combine);
            centre = O::centre(total, width);
        }
        let own = own().fold(0.0, |total, mut x| total + O::advance(&mut x, centre));
        let scale = O::scale(t.block_reduce(&mut scratch, own, |a, b| a + b), width, epsilon);
        y.fill_with(&t, |column| {
            let mut x = row[column];
            O::advance(&mut x, centre);
            let [weight, bias] = [(weight, 1.0), (bias, 0.0)]
                .map(|(all, without)| all.get(column).copied().unwrap_or(without));
            O::finish(x, scale, weight, bias)
        });
    }
}
