//! The macros' expansions cause no lints: the strictest lints are denied here, `unsafe` is forbidden, and
//! kernels of all kinds compile. `cargo clippy` and rustc check this.

#![forbid(unsafe_code)]
#![deny(
    clippy::pedantic,
    clippy::all,
    future_incompatible,
    let_underscore,
    missing_debug_implementations,
    nonstandard_style,
    rust_2018_idioms,
    rust_2021_compatibility,
    rust_2024_compatibility,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unreachable_pub,
    unused,
    unused_lifetimes,
    unused_qualifications,
    warnings
)]

use ferrogrid::prelude::*;
use kernels::Point;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::atomic::Ordering;
    use ferrogrid::device::prelude::*;

    /// An element of a buffer.
    #[derive(Debug, Clone, Copy, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub(crate) struct Point {
        pub(crate) x: f32,
        pub(crate) y: f32,
    }

    #[constant]
    pub(crate) static WEIGHTS: Constant<[f32; 4]> = Constant::new([1.0; 4]);

    /// Slices, a struct by value, a panic.
    #[kernel]
    pub(crate) fn shift(t: Thread<1>, by: Point, x: &[Point], mut y: DisjointSlice<Point>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            let x = x[i.get()];
            *y = Point { x: x.x + by.x, y: x.y + by.y };
        }
    }

    /// Instances, and a launch bound.
    #[kernel(block = 64, T = [f32, u32], N = [1, 2])]
    pub(crate) fn fill<T: DeviceCopy, const N: usize>(t: Thread<1>, value: T, mut y: DisjointSlice<T>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = value;
        }
    }

    /// Shared memory, barriers, constants, atomic counters.
    #[kernel(block = 64)]
    pub(crate) fn sums(
        t: Thread<1>,
        x: &[f32],
        count: &[DeviceAtomic<u32>],
        mut sums: DisjointRows<f32>,
        mut tile: Shared<[f32; 64]>,
    ) {
        tile.fill_with(&t, |_| x.get(t.index().get()).copied().unwrap_or(0.0) * WEIGHTS[0]);
        count[0].fetch_add(1, Ordering::Relaxed);
        let tile = t.publish(tile);
        let total: f32 = tile.iter().sum();
        sums.fill_with(&t, |_| total);
    }
}

#[test]
fn kernels_of_all_kinds_run() -> ferrogrid::Result<()> {
    for device in Device::all() {
        let stream = device.new_stream()?;
        let points = stream.upload(&[Point { x: 1.0, y: 2.0 }; 100])?;
        let mut shifted = stream.upload(&[Point { x: 0.0, y: 0.0 }; 100])?;
        kernels::shift(&stream, Grid::cover(100), Point { x: 1.0, y: 1.0 }, &points, &mut shifted)?;
        assert_eq!(stream.download(&shifted)?, [Point { x: 2.0, y: 3.0 }; 100]);
        let mut x = stream.zeros::<f32>(128)?;
        kernels::fill::<f32, 2>(&stream, Grid::new(2, 64), 1.5, &mut x)?;
        let mut count = stream.zeros::<u32>(1)?;
        let mut sums = stream.zeros::<f32>(2)?;
        let rows = sums.view_2d_mut(1, 2)?;
        kernels::sums(&stream, Grid::new(2, 64), &x, count.as_atomic(), rows)?;
        assert_eq!(stream.download(&sums)?, [96.0; 2]);
        assert_eq!(stream.download(&count)?, [128]);
    }
    Ok(())
}
