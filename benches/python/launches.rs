//! The kernels of `overhead.py` and `check.py`: `src/lib.rs` of a crate `launches` with the feature `half` of `ferrogrid`, which `cargo ferrogrid export`
//! writes as the Python package that both import. `check.py` also imports the exported examples.

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::prelude::*;

    /// z <- a*x + y; it cannot panic.
    #[kernel]
    pub fn touch(t: Thread<1>, a: f32, x: &[f32], y: &[f32], mut z: DisjointSlice<f32>) {
        let i = t.index();
        if let (Some(x), Some(y), Some(z)) = (x.get(i.get()), y.get(i.get()), z.get_mut(i)) {
            *z = a * x + y;
        }
    }

    /// The same; it panics if x or y is shorter.
    #[kernel]
    pub fn touch_checked(t: Thread<1>, a: f32, x: &[f32], y: &[f32], mut z: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(z) = z.get_mut(i) {
            *z = a * x[i.get()] + y[i.get()];
        }
    }

    /// Panics with a message at the element that is negative.
    #[kernel]
    pub fn roots(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let (Some(&x), Some(y)) = (x.get(i.get()), y.get_mut(i)) {
            assert!(x >= 0.0, "no root of {x:?} at {:>4}, {:#x}", i.get(), 255);
            *y = x.sqrt();
        }
    }

    /// Panics with a text.
    #[kernel]
    pub fn constant_message(t: Thread<1>, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = Option::<f32>::None.expect("nothing is there");
        }
    }

    /// All number types.
    #[kernel]
    pub fn numbers(
        t: Thread<1>,
        a: bool,
        b: i8,
        c: u16,
        d: f64,
        e: usize,
        f: i32,
        g: f16,
        h: bf16,
        mut y: DisjointSlice<f64>,
    ) {
        let values = [
            if a { 1.0 } else { 0.0 },
            f64::from(b),
            f64::from(c),
            d,
            e as f64,
            f64::from(f),
            f64::from(g.to_f32()),
            f64::from(h.to_f32()),
        ];
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = values[i.get() % 8];
        }
    }

    /// y[i] <- the number of blocks that passed the barrier, and elements of shared memory.
    #[kernel(cooperative)]
    pub fn together(t: Thread<1>, counter: &[DeviceAtomic<u32>], mut y: DisjointSlice<u32>) {
        if t.thread_rank() == 0 {
            counter[0].fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        }
        t.sync_grid();
        if let Some(y) = y.get_mut(t.index()) {
            *y = counter[0].load(core::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Reverses each block's elements through shared memory of a length that the launch chooses.
    #[kernel]
    pub fn reversed(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: SharedSlice<f32>) {
        let first = t.block_idx()[0] as usize * t.block_dim()[0] as usize;
        tile.fill_with(&t, |i| x.get(first + i).copied().unwrap_or(0.0));
        let tile = t.publish(tile);
        let own = t.thread_rank() as usize;
        if let Some(y) = y.get_mut(t.index()) {
            *y = tile[tile.len() - 1 - own];
        }
    }
}
