//! Kernels with each kind of parameter, for the tests of `cargo ferrogrid export`.

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    const TILE: usize = 16;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Point {
        pub x: f32,
        pub y: f32,
    }

    /// y <- a*x + y: with a \ and """.
    ///
    /// On all elements.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    #[kernel(same_shape(x, y), max_threads = 64)]
    pub fn copied(t: Thread<1>, x: &[i64], mut y: DisjointSlice<i64>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x.get(i.get()).copied().unwrap_or(0);
        }
    }

    #[kernel]
    pub fn luma(t: Thread<1>, colour: &[[u8; 3]], mut grey: DisjointSlice<u8>) {
        let i = t.index();
        if let (Some(grey), Some(colour)) = (grey.get_mut(i), colour.get(i.get())) {
            *grey = colour[1];
        }
    }

    #[kernel]
    pub fn count(t: Thread<1>, data: &[Aligned16<[u8; 16]>], counts: &[DeviceAtomic<u32>], more: &[DeviceAtomic<u32>]) {
        if let (Some(data), Some(count), Some(more)) = (data.get(t.index().get()), counts.first(), more.first()) {
            count.fetch_add(u32::from(data[0]), Ordering::Relaxed);
            more.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[kernel(block = 64)]
    pub fn sums(t: Thread<1>, x: Plane<f32>, mut y: DisjointRows<f32>, mut scratch: Shared<Scratch<f32>>) {
        let row = &x[t.block_idx()[0] as usize];
        let mine = t.block_stride(row.len()).map(|i| row[i]).sum();
        let sum = t.block_reduce(&mut scratch, mine, |a, b| a + b);
        y.fill_with(&t, |_| sum);
    }

    #[kernel(block = [TILE, 4], P = [0, 1])]
    pub fn tiles<const P: u32>(t: Thread<2>, mut y: DisjointTiles<u32, TILE, 8>) {
        y.fill_with(&t, |_| P);
    }

    #[kernel]
    pub fn chosen(t: Thread<1>, mut y: DisjointSlice<f32>, scratch: SharedSlice<f32>, more: SharedSlice<u8>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = (scratch.len() + more.len()) as f32;
        }
    }

    #[kernel(wide)]
    pub fn numbers(
        t: Thread<1>,
        a: bool,
        b: i8,
        c: u16,
        d: f64,
        r#in: usize,
        // A number with a keyword's name, and one with a launch's.
        stream: i32,
        mut y: DisjointSlice<f64>,
    ) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = if a { f64::from(b) } else { d } + f64::from(c) + r#in as f64 + f64::from(stream);
        }
    }

    #[kernel]
    pub fn plane(t: Thread<2>, x: Plane<f32>, mut y: DisjointSlice<f32, 2>) {
        let i = t.index();
        let value = x.get(i.y(), i.x()).copied().unwrap_or(0.0);
        if let Some(y) = y.get_mut(i) {
            *y = value;
        }
    }

    #[kernel]
    pub fn picked(t: Thread<1>, mask: &[bool], mut y: DisjointSlice<u8>) {
        let i = t.index();
        if let (Some(y), Some(true)) = (y.get_mut(i), mask.get(i.get()).copied()) {
            *y = 1;
        }
    }

    #[kernel(cooperative)]
    pub fn together(t: Thread<1>, mut y: DisjointSlice<u32>) {
        t.sync_grid();
        if let Some(y) = y.get_mut(t.index()) {
            *y = 1;
        }
    }

    #[elementwise]
    pub fn half(x: &f32) -> f32 {
        x / 2.0
    }

    #[kernel(T = [f32, f64])]
    pub fn doubled<T: Float + DeviceCopy>(t: Thread<1>, mut x: DisjointSlice<T>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = *x + *x;
        }
    }

    #[kernel]
    pub fn located(t: Thread<1>, place: Point, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = place.x + place.y;
        }
    }

    /// # Safety
    /// `x` is the address of a number.
    #[kernel]
    pub unsafe fn raw(t: Thread<1>, x: *mut f32) {
        if t.index().get() == 0 {
            // SAFETY: one thread; the caller vouches for the address.
            unsafe { *x = 1.0 };
        }
    }

    #[kernel]
    pub fn pairs(t: Thread<1>, pair: (f32, u32), mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = pair.0;
        }
    }
}
