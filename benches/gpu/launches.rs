//! The cost of a typed launch beside the driver's `cuLaunchKernel` for the same kernel in the same process.

use std::ffi::{CString, c_void};
use std::time::Instant;

use cudarc::driver::{result, sys};
use ferrogrid::prelude::*;

use crate::Outcome;
use crate::duel::median;
use crate::memory::kernels;

/// Typed and raw launches of one kernel on one thread block, alternating.
pub fn launches(stream: &Stream) -> Outcome<()> {
    let x = stream.upload(&[1.0_f32; 256])?;
    let mut y = stream.upload(&[1.0_f32; 256])?;
    let raw = Raw::load()?;
    let (mut typed_seconds, mut raw_seconds) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        typed_seconds.push(typed(20_000, stream, &x, &mut y)?);
        let (from, to) = (x.as_device_ptr().as_raw() as u64, y.as_device_ptr_mut().as_raw() as u64);
        raw_seconds.push(raw.per_launch(20_000, from, to)?);
    }
    let (typed, raw) = (median(typed_seconds), median(raw_seconds));
    println!("{{\"name\": \"launch\", \"typed\": {typed:.9e}, \"raw\": {raw:.9e}}}");
    Ok(())
}

/// Seconds per launch, of `count` back to back.
fn typed(count: u32, stream: &Stream, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Outcome<f64> {
    kernels::saxpy(stream, Grid::new(1, 256), 1.0, x, &mut *y)?;
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..count {
        kernels::saxpy(stream, Grid::new(1, 256), 1.0, x, &mut *y)?;
    }
    stream.synchronize()?;
    Ok(start.elapsed().as_secs_f64() / f64::from(count))
}

/// The same kernel, loaded and launched by the driver's own calls on a stream of its own.
struct Raw {
    function: sys::CUfunction,
    stream: sys::CUstream,
}

impl Raw {
    fn load() -> Outcome<Self> {
        let ptx = kernels::saxpy::kernel().ptx().ok_or("no PTX")?;
        let entry = kernels::saxpy::kernel().entry();
        let image = CString::new(ptx)?;
        // SAFETY: the context of the device above is current on this thread; the image is text that
        // ends in a zero byte, and the entry is one that it names.
        unsafe {
            let module = result::module::load_data(image.as_ptr().cast())?;
            let function = result::module::get_function(module, CString::new(entry)?)?;
            let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
            Ok(Raw { function, stream })
        }
    }

    fn per_launch(&self, count: u32, x: u64, y: u64) -> Outcome<f64> {
        // The last one is for kernels that may panic: no record.
        let (a, n, record) = (1.0_f32, 256_usize, 0_u64);
        let mut params = [
            std::ptr::from_ref(&a).cast_mut().cast::<c_void>(),
            std::ptr::from_ref(&x).cast_mut().cast(),
            std::ptr::from_ref(&n).cast_mut().cast(),
            std::ptr::from_ref(&y).cast_mut().cast(),
            std::ptr::from_ref(&n).cast_mut().cast(),
            std::ptr::from_ref(&record).cast_mut().cast(),
        ];
        let mut launch = || {
            // SAFETY: all parameters of the types that the entry takes; both buffers have 256
            // elements, outlive the synchronisation below, and are not used elsewhere meanwhile.
            unsafe {
                result::launch_kernel(self.function, (1, 1, 1), (256, 1, 1), 0, self.stream, &mut params)
            }
        };
        launch()?;
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.stream)? };
        let start = Instant::now();
        for _ in 0..count {
            launch()?;
        }
        // SAFETY: as above.
        unsafe { result::stream::synchronize(self.stream)? };
        Ok(start.elapsed().as_secs_f64() / f64::from(count))
    }
}
