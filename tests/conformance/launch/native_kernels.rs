//! Kernels with native bodies. The bodies do what kernels cannot, so that a case sees which of them ran.

/// The kernels.
#[ferrogrid::module]
pub(crate) mod natives {
    use ferrogrid::device::prelude::*;

    /// y[i] <- factor * x[i]; the native body adds one.
    #[kernel(same_shape(x, y), native = super::bodies::natively_scaled, T = [u32, f64])]
    pub(crate) fn natively_scaled<
        T: DeviceCopy + core::ops::Mul<Output = T> + core::ops::Add<Output = T> + From<u8>,
    >(
        t: Thread<1>,
        x: &[T],
        factor: T,
        mut y: DisjointSlice<T>,
    ) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = factor * x[t.index().get()];
        }
    }

    /// y <- the sums of each block's elements, and `none.0` for blocks without any; the native body also writes `blocks`.
    #[kernel(block = 64, wide, native = super::bodies::natively_summed)]
    pub(crate) fn natively_summed(
        t: Thread<1>,
        order: BlockOrder<u32>,
        none: (u32, u8),
        x: &[u32],
        counted: &[DeviceAtomic<u32>],
        mut y: DisjointChunks<u32, 1>,
        mut scratch: Shared<Scratch<u32>>,
    ) {
        let own = x.get(t.index().get()).copied().unwrap_or(0);
        let sum = t.block_reduce(&mut scratch, own, |a, b| a + b);
        let _earlier = order.publish(&t, sum);
        if t.thread_rank() == 0 {
            counted[0].fetch_add(1, atomic::Ordering::Relaxed);
        }
        let is_empty = t.block_idx()[0] as usize * 64 >= x.len();
        y.fill_with(&t, |_| if is_empty { none.0 } else { sum });
    }

    /// x[0] <- 1; the native body panics if it is 7.
    #[kernel(native = super::bodies::natively_failing)]
    pub(crate) fn natively_failing(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = 1;
        }
    }
}

mod bodies {
    use std::ops::{Add, Mul};

    use ferrogrid::device::prelude::*;

    pub(super) fn natively_scaled<T: DeviceCopy + Mul<Output = T> + Add<Output = T> + From<u8>>(
        _: [u32; 1],
        x: &[T],
        factor: T,
        y: &mut [T],
    ) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = factor * *x + 1.into());
    }

    pub(super) fn natively_summed(
        [blocks]: [u32; 1],
        (none, _unit): (u32, u8),
        x: &[u32],
        counted: &[DeviceAtomic<u32>],
        y: &mut [u32],
    ) {
        y.fill(none);
        x.chunks(64).zip(y).for_each(|(x, y)| *y = x.iter().sum());
        counted[0].fetch_add(blocks, atomic::Ordering::Relaxed);
        counted[1].store(blocks, atomic::Ordering::Relaxed);
    }

    pub(super) fn natively_failing(_: [u32; 1], x: &mut [u32]) {
        assert!(x[0] != 7, "element 0 is {}", x[0]);
        x[0] = 2;
    }
}
