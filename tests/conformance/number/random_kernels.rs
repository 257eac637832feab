//! Kernels that generate random numbers.

#[ferrogrid::module]
pub mod philox {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::random::Philox4x32;

    /// Each thread's own subsequence, from group `offset` on.
    fn of(t: &Thread<1>, seed: u64, offset: u64) -> Philox4x32 {
        Philox4x32::new(seed, t.index().get() as u64, offset)
    }

    #[kernel]
    pub fn words(t: Thread<1>, seed: u64, offset: u64, mut out: DisjointSlice<[u32; 8]>) {
        let mut random = of(&t, seed, offset);
        if let Some(out) = out.get_mut(t.index()) {
            let ([a, b, c, d], [e, f, g, h]) = (random.next_u32x4(), random.next_u32x4());
            *out = [a, b, c, d, e, f, g, h];
        }
    }

    #[kernel]
    pub fn uniform(
        t: Thread<1>,
        seed: u64,
        offset: u64,
        mut single: DisjointSlice<[f32; 4]>,
        mut double: DisjointSlice<[f64; 2]>,
    ) {
        let mut random = of(&t, seed, offset);
        if let (Some(single), Some(double)) = (single.get_mut(t.index()), double.get_mut(t.index())) {
            *single = random.next_uniform_f32x4();
            *double = random.next_uniform_f64x2();
        }
    }

    #[kernel]
    pub fn normal(
        t: Thread<1>,
        seed: u64,
        offset: u64,
        mut single: DisjointSlice<[f32; 4]>,
        mut double: DisjointSlice<[f64; 2]>,
    ) {
        let mut random = of(&t, seed, offset);
        if let (Some(single), Some(double)) = (single.get_mut(t.index()), double.get_mut(t.index())) {
            *single = random.next_normal_f32x4();
            *double = random.next_normal_f64x2();
        }
    }
}
