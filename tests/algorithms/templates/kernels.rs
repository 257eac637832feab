//! The templates of these cases.

#[ferrogrid::module]
pub(crate) mod templates {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y
    #[elementwise]
    pub(crate) fn axpy(a: f32, x: &f32, y: &mut f32) {
        *y += a * x;
    }

    /// The sum of an element and its number: 16 elements a thread.
    #[elementwise]
    pub(crate) fn add_index(#[index] i: usize, x: &u8) -> u8 {
        x.wrapping_add(i as u8)
    }

    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Span {
        pub least: f32,
        pub greatest: f32,
        pub rank: u8,
    }

    /// Inputs of several sizes, a whole slice, a tuple, and three outputs; one element a thread.
    #[elementwise]
    pub(crate) fn spans(
        bounds: (f32, f32),
        x: &f32,
        names: &u16,
        table: &[f32],
        count: &mut u64,
        sum: &mut f64,
    ) -> Span {
        *count += u64::from(*names);
        *sum = f64::from(*x) + f64::from(table[usize::from(*names) % table.len()]);
        Span { least: x.min(bounds.0), greatest: x.max(bounds.1), rank: *names as u8 }
    }

    #[constant]
    pub(crate) static OFFSET: Constant<f64> = Constant::new(0.5);

    /// x <- |x| + N + the constant, for listed types.
    #[elementwise(T = [f32, f64], N = [1, 2], fast_math)]
    pub(crate) fn magnitudes<T: Float + DeviceCopy, const N: u8>(x: &mut T)
    where
        f64: From<T>,
    {
        if f64::from(*x) < 0.0 {
            *x = -*x;
        }
        for _ in 0..N {
            *x += T::ONE;
        }
        if *OFFSET > 1.0 {
            *x = T::ZERO;
        }
    }

    /// The sum of all elements, in the order of the ready-made one.
    #[reduction(identity = 0.0, combine = |a, b| a + b)]
    pub(crate) fn sum(x: &f32) -> f32 {
        *x
    }

    /// The Euclidean norm of the differences.
    #[reduction(identity = 0.0, combine = |a, b| a + b, finish = |sum: f64| sum.sqrt())]
    pub(crate) fn distance(scale: f64, x: &f32, y: &f32) -> f64 {
        let difference = scale * (f64::from(*x) - f64::from(*y));
        difference * difference
    }

    /// Count, mean and the sum of squared deviations: 24 bytes.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Moments {
        pub count: u64,
        pub mean: f64,
        pub deviations: f64,
    }

    impl Moments {
        const NONE: Moments = Moments { count: 0, mean: 0.0, deviations: 0.0 };

        fn merge(self, other: Moments) -> Moments {
            if self.count == 0 {
                return other;
            }
            if other.count == 0 {
                return self;
            }
            let count = self.count + other.count;
            let (share, distance) = (other.count as f64 / count as f64, other.mean - self.mean);
            let deviations =
                self.deviations + other.deviations + distance * distance * self.count as f64 * share;
            Moments { count, mean: self.mean + distance * share, deviations }
        }
    }

    #[reduction(identity = Moments::NONE, combine = Moments::merge)]
    pub(crate) fn moments(x: &f64) -> Moments {
        Moments { count: 1, mean: *x, deviations: 0.0 }
    }

    /// The last element that is not less than all before it, by its number; and a result of another type.
    #[reduction(
        identity = (i32::MIN, u32::MAX),
        combine = |a, b| if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a },
        finish = |found| -> u32 { found.1 }
    )]
    pub(crate) fn first_greatest(#[index] i: usize, x: &i32) -> (i32, u32) {
        (*x, i as u32)
    }

    /// The product of the elements that a table keeps, wrapping.
    #[reduction(T = [u8, u32], identity = T::from(1), combine = |a, b| a * b)]
    pub(crate) fn product<T>(kept: &[u8], #[index] i: usize, x: &T) -> T
    where
        T: DeviceCopy + SharedElement + From<u8> + core::ops::Mul<Output = T>,
    {
        if kept[i % kept.len()] != 0 { *x } else { T::from(1) }
    }

    /// Running totals of products from `start` on.
    #[scan(identity = 0, combine = |a, b| a + b, finish = |total| start + total)]
    pub(crate) fn balances(start: i64, x: &i32, y: &u8) -> i64 {
        i64::from(*x) * i64::from(*y)
    }

    /// How many elements before each one are among those to find.
    #[scan(exclusive, identity = 0, combine = |a, b| a + b)]
    pub(crate) fn places(found: &[u8], x: &u8) -> u32 {
        u32::from(found.contains(x))
    }

    /// The functions `x -> factor * x + step`, one after the other: they do not commute.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Affine {
        pub factor: u64,
        pub step: u64,
    }

    impl Affine {
        pub const NONE: Affine = Affine { factor: 1, step: 0 };

        pub fn then(self, next: Affine) -> Affine {
            let step = next.factor.wrapping_mul(self.step).wrapping_add(next.step);
            Affine { factor: self.factor.wrapping_mul(next.factor), step }
        }
    }

    #[scan(identity = Affine::NONE, combine = Affine::then, finish = |all: Affine| -> u64 { all.step })]
    pub(crate) fn chained(x: &Affine, #[index] i: usize) -> Affine {
        Affine { factor: x.factor, step: x.step.wrapping_add(i as u64) }
    }

    /// The greatest element so far, for listed types.
    #[scan(T = [u8, f64], identity = T::from(0), combine = |a, b| if b > a { b } else { a })]
    pub(crate) fn greatest<T>(x: &T) -> T
    where
        T: DeviceCopy + Exchange + SharedElement + From<u8> + PartialOrd,
    {
        *x
    }

    /// A record that is compared by a part of it: 12 bytes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Record {
        pub key: i16,
        pub name: [u16; 5],
    }

    #[comparison]
    pub(crate) fn by_key(a: &Record, b: &Record) -> bool {
        a.key < b.key
    }

    #[comparison(merge_sort)]
    pub(crate) fn descending(a: &f32, b: &f32) -> bool {
        a.total_cmp(b).is_gt()
    }
}
