//! Kernels that do next to nothing, or a known amount of arithmetic.

#[ferrogrid::module]
pub mod device {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn empty(_t: Thread<1>) {}

    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            *y += a * x;
        }
    }

    /// Sixteen arguments.
    #[kernel]
    pub fn sixteen(
        t: Thread<1>,
        a: f32,
        b: f32,
        c: f32,
        d: f32,
        e: u32,
        f: u32,
        g: u64,
        h: u64,
        x0: &[f32],
        x1: &[f32],
        x2: &[f32],
        x3: &[f32],
        mut y0: DisjointSlice<f32>,
        mut y1: DisjointSlice<f32>,
        mut y2: DisjointSlice<f32>,
        mut y3: DisjointSlice<f32>,
    ) {
        let i = t.index();
        let at = |x: &[f32]| x.get(i.get()).copied().unwrap_or(0.0);
        let more = (e + f) as f32 + (g + h) as f32;
        let set = |y: Option<&mut f32>, sum: f32| {
            if let Some(y) = y {
                *y = sum + more;
            }
        };
        set(y0.get_mut(i), a * at(x0));
        set(y1.get_mut(i), b * at(x1));
        set(y2.get_mut(i), c * at(x2));
        set(y3.get_mut(i), d * at(x3));
    }

    /// `rounds` dependent multiplications and additions for each element.
    #[kernel]
    pub fn chain(t: Thread<1>, rounds: u32, a: f32, b: f32, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            let mut value = *y;
            for _ in 0..rounds {
                value = value.mul_add(a, b);
            }
            *y = value;
        }
    }
}
