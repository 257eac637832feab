//! Kernels that change `#[device]` statics of their module.

#[ferrogrid::module]
pub(crate) mod statics {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    #[device]
    pub static TOTAL: DeviceAtomic<u64> = DeviceAtomic::new(7);

    /// By remainder, then by parity.
    #[device]
    pub static COUNTS: [[DeviceAtomic<u32>; 2]; 3] = [const { [const { DeviceAtomic::new(0) }; 2] }; 3];

    #[device]
    pub(crate) static GREATEST: DeviceAtomic<f32, atomic::System> = DeviceAtomic::new(-1.5);

    fn note(x: u32) {
        COUNTS[x as usize % 3][x as usize % 2].fetch_add(1, Relaxed);
        GREATEST.fetch_max(x as f32 * 0.5, Relaxed);
    }

    /// Adds all elements up, and counts them.
    #[kernel]
    pub fn add(t: Thread<1>, x: &[u32]) {
        if let Some(&x) = x.get(t.index().get()) {
            TOTAL.fetch_add(x.into(), Relaxed);
            note(x);
        }
    }

    /// Adds twice, then fails if the total is greater than `limit`.
    #[kernel]
    pub fn add_twice(t: Thread<1>, x: &[u32], limit: u64) {
        if let Some(&x) = x.get(t.index().get()) {
            let total = TOTAL.fetch_add(2 * u64::from(x), Relaxed);
            assert!(total <= limit, "the total is too great");
        }
    }

    /// The current value when it runs.
    #[kernel]
    pub fn look(t: Thread<1>, mut y: DisjointSlice<u64>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = TOTAL.load(Relaxed);
        }
    }
}
