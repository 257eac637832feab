//! Kernels that read constant memory.

#[ferrogrid::module]
pub(crate) mod constants {
    use ferrogrid::device::prelude::*;

    /// A struct with named fields.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Line {
        pub slope: f64,
        pub start: i32,
        pub upwards: bool,
    }

    const fn squares() -> [u32; 64] {
        let mut all = [0; 64];
        let mut i = 0;
        while i < 64 {
            all[i] = (i * i) as u32;
            i += 1;
        }
        all
    }

    #[constant]
    pub static WEIGHTS: Constant<[f32; 5]> = Constant::new([1.0, 2.0, 4.0, 8.0, 16.0]);

    #[constant]
    pub static LINE: Constant<Line> = Constant::new(Line { slope: 0.5, start: -3, upwards: true });

    #[constant]
    static SQUARES: Constant<[u32; 64]> = Constant::new(squares());

    #[constant]
    pub(crate) static STEPS: Constant<u32> = Constant::new(3);

    #[constant]
    pub static ZERO: Constant<[u64; 3]> = Constant::new([0; 3]);

    fn weight(i: usize) -> f32 {
        WEIGHTS[i % WEIGHTS.len()]
    }

    #[kernel]
    pub fn weights(t: Thread<1>, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = weight(t.index().get());
        }
    }

    /// Constants of several kinds, through references and iterators.
    #[kernel]
    pub fn everything(t: Thread<1>, mut y: DisjointSlice<[f64; 4]>) {
        let i = t.index();
        let sum = |all: &[f32; 5]| all.iter().map(|&it| f64::from(it)).sum::<f64>();
        if let Some(y) = y.get_mut(i) {
            let sign = if LINE.upwards { 1.0 } else { -1.0 };
            let line = sign * (f64::from(LINE.start) + LINE.slope * i.get() as f64);
            *y = [sum(&WEIGHTS), line, f64::from(SQUARES[i.get() % 64]), ZERO.iter().sum::<u64>() as f64];
        }
    }

    /// A barrier may depend on a constant: all threads read the same value.
    #[kernel(block = 64)]
    pub fn doubled(t: Thread<1>, mut y: DisjointSlice<u32>, mut cells: Shared<[u32; 64]>) {
        cells.fill_with(&t, |_| 1);
        for _ in 0..*STEPS {
            let read = t.publish(cells);
            let other = read[63 - t.thread_rank() as usize];
            cells = t.reclaim(read);
            cells.iter_mut(&t).for_each(|(_, value)| *value += other);
        }
        let read = t.publish(cells);
        if let Some(y) = y.get_mut(t.index()) {
            *y = read[t.thread_rank() as usize];
        }
    }

    /// Takes long, so that another stream would overtake it without ordering.
    #[kernel]
    pub fn late(t: Thread<1>, rounds: u32, mut y: DisjointSlice<u64>) {
        let before = ZERO[0];
        let mut x = t.index().get() as u32 | 1;
        for _ in 0..rounds {
            x = x.rotate_left(5).wrapping_mul(2_654_435_761);
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = if x == 0 { u64::MAX } else { before + ZERO[0] };
        }
    }

    #[kernel(T = [f32, f64])]
    pub fn scaled<T: Float>(t: Thread<1>, mut y: DisjointSlice<T>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y *= T::from_f64(LINE.slope);
        }
    }
}
