//! The roof of a device, measured: bytes per second of a copy with 16 bytes per thread, and `f32` operations
//! per second of independent multiply-adds. Other instructions may do more: tensor cores on a GPU, and on the
//! CPU code that vectorises better.

use ferrogrid::{DeviceBuffer, Grid, Stream};

use crate::Outcome;
use crate::measure::{Effort, sample};
use crate::report::Roof;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn copy(t: Thread<1>, x: &[Aligned16<[f32; 4]>], mut y: DisjointSlice<Aligned16<[f32; 4]>>) {
        let i = t.index();
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            *y = *x;
        }
    }

    /// One multiplication and one addition. On the CPU a fused one may be a function call.
    fn step(x: f32, a: f32) -> f32 {
        if cfg!(target_arch = "nvptx64") { x.mul_add(a, 0.5) } else { x * a + 0.5 }
    }

    /// Eight independent numbers for each thread, so that no operation waits for another.
    #[kernel]
    pub fn multiply_add(t: Thread<1>, steps: u32, a: f32, mut y: DisjointSlice<f32>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let first = i.get() as f32;
        let mut x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|x: f32| first + x);
        for _ in 0..steps {
            // Four at a time, so that the loop costs little.
            for _ in 0..4 {
                x = x.map(|x| step(x, a));
            }
        }
        *y = x.iter().sum();
    }
}

/// Operations of a thread of `multiply_add` per step.
const OPERATIONS: f64 = 2.0 * 8.0 * 4.0;

/// Measures both roofs.
pub(crate) fn measure(stream: &Stream, quick: bool) -> Outcome<Roof> {
    let device = stream.device();
    let effort = Effort::new(quick, device.is_cuda());
    let free =
        device.memory_info()?.map_or(usize::MAX, |memory| usize::try_from(memory.free).unwrap_or(usize::MAX));
    let wanted = match (device.is_cuda(), cfg!(debug_assertions)) {
        (true, _) => 1 << 26,
        (false, false) => 1 << 23,
        // Without optimisation the roof means nothing; this only has to be fast.
        (false, true) => 1 << 16,
    };
    let elements = if quick { 1 << 12 } else { wanted.min(free / 64).max(4) & !3 };
    let x = stream.fill(1.0_f32, elements)?;
    let mut y = stream.zeros::<f32>(elements)?;
    let time = sample(stream, effort, || {
        let (x, y) = (x.view().as_aligned16::<4>()?, y.view_mut().as_aligned16::<4>()?);
        kernels::copy(stream, Grid::cover(elements / 4), x, y)
    })?;
    Ok(Roof {
        bytes_per_second: 8.0 * elements as f64 / time.median,
        flops_per_second: operations(stream, effort, quick, &mut y)?,
    })
}

fn operations(stream: &Stream, effort: Effort, quick: bool, y: &mut DeviceBuffer<f32>) -> Outcome<f64> {
    let (threads, steps) = match (quick, stream.device().is_cuda()) {
        (true, _) => (256, 4),
        (false, true) => (1 << 21, 128),
        (false, false) if cfg!(debug_assertions) => (1 << 10, 8),
        (false, false) => (1 << 14, 64),
    };
    let threads = threads.min(y.len());
    let time = sample(stream, effort, || {
        kernels::multiply_add(stream, Grid::cover(threads), steps, 0.75, y.slice_mut(..threads)?)
    })?;
    Ok(OPERATIONS * f64::from(steps) * threads as f64 / time.median)
}
