//! Times on a GPU what benches/cuda/baseline.cu times in CUDA C++, in the same way: saxpy at several
//! sizes, and the cost of a typed launch beside that of the driver's `cuLaunchKernel` for the same
//! kernel in the same process. One JSON line per figure. It must not judge: benches/compare.py does.

use std::ffi::{CString, c_void};
use std::time::Instant;

use cudarc::driver::{result, sys};
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y, one element per thread.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    /// The same, 16 bytes at a time.
    #[kernel]
    pub fn saxpy_v4(
        t: Thread<1>,
        a: f32,
        x: &[Aligned16<[f32; 4]>],
        mut y: DisjointSlice<Aligned16<[f32; 4]>>,
    ) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            for k in 0..4 {
                y[k] += a * x[i.get()][k];
            }
        }
    }

    /// How often each byte occurs, by atomics in global memory.
    #[kernel]
    pub fn histogram(t: Thread<1>, bytes: &[u8], counts: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(bytes.len()) {
            counts[usize::from(bytes[i.get()])].fetch_add(1, atomic::Ordering::Relaxed);
        }
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // `cargo test --benches` runs this too; there is nothing to check where there is no GPU.
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no GPU to measure: {error}");
            return Ok(());
        }
    };
    let stream = device.new_stream()?;
    for log in [20, 24, 28] {
        report(&format!("saxpy_2^{log}"), saxpy(&stream, 1 << log)?);
    }
    report("saxpy_v4_2^28", saxpy_v4(&stream, 1 << 28)?);
    report("histogram_2^26", histogram(&stream, 1 << 26)?);
    launches(&stream)
}

fn report(name: &str, seconds: f64) {
    println!("{{\"name\": \"{name}\", \"seconds\": {seconds:.9e}}}");
}

/// The median over `rounds` of the time per launch, the launches of a round queued back to back.
fn per_launch(
    rounds: usize,
    count: u32,
    stream: &Stream,
    mut launch: impl FnMut() -> Outcome<()>,
) -> Outcome<f64> {
    launch()?;
    stream.synchronize()?;
    let mut seconds = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..count {
            launch()?;
        }
        stream.synchronize()?;
        seconds.push(start.elapsed().as_secs_f64() / f64::from(count));
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[rounds / 2])
}

fn saxpy(stream: &Stream, n: usize) -> Outcome<f64> {
    let mut random = fastrand::Rng::new();
    let host: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
    let x = stream.upload(&host)?;
    let mut y = stream.upload(&host)?;
    per_launch(15, 20, stream, || Ok(kernels::saxpy(stream, Grid::cover(n), 1e-6, &x, &mut y)?))
}

fn saxpy_v4(stream: &Stream, n: usize) -> Outcome<f64> {
    let mut random = fastrand::Rng::new();
    let host: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
    let x = stream.upload(&host)?;
    let mut y = stream.upload(&host)?;
    let (x, mut y) = (x.view().as_aligned16::<4>()?, y.view_mut().as_aligned16::<4>()?);
    let grid = Grid::cover(n / 4);
    per_launch(15, 20, stream, || Ok(kernels::saxpy_v4(stream, grid, 1e-6, x, y.reborrow())?))
}

fn histogram(stream: &Stream, n: usize) -> Outcome<f64> {
    let mut random = fastrand::Rng::new();
    let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(n).collect();
    let bytes = stream.upload(&bytes)?;
    let mut counts = stream.zeros::<u32>(256)?;
    let counts = counts.as_atomic();
    per_launch(15, 5, stream, || Ok(kernels::histogram(stream, Grid::new(1056, 256), &bytes, counts)?))
}

/// Typed and raw launches of one kernel on one thread block, in turns.
fn launches(stream: &Stream) -> Outcome<()> {
    let x = stream.upload(&[1.0_f32; 256])?;
    let mut y = stream.upload(&[1.0_f32; 256])?;
    let raw = Raw::load()?;
    let (mut typed_seconds, mut raw_seconds) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let typed = || Ok(kernels::saxpy(stream, Grid::new(1, 256), 1.0, &x, &mut y)?);
        typed_seconds.push(per_launch(1, 20_000, stream, typed)?);
        let (from, to) = (x.as_device_ptr().as_raw() as u64, y.as_device_ptr_mut().as_raw() as u64);
        raw_seconds.push(raw.per_launch(20_000, from, to)?);
    }
    for (name, mut seconds) in [("launch_typed", typed_seconds), ("launch_raw", raw_seconds)] {
        seconds.sort_by(f64::total_cmp);
        report(name, seconds[2]);
    }
    Ok(())
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
        let (a, n) = (1.0_f32, 256_usize);
        let mut params = [
            std::ptr::from_ref(&a).cast_mut().cast::<c_void>(),
            std::ptr::from_ref(&x).cast_mut().cast(),
            std::ptr::from_ref(&n).cast_mut().cast(),
            std::ptr::from_ref(&y).cast_mut().cast(),
            std::ptr::from_ref(&n).cast_mut().cast(),
        ];
        let mut launch = || {
            // SAFETY: five parameters of the types that the entry takes; both buffers have 256
            // elements, outlive the synchronisation below, and nobody else uses them meanwhile.
            unsafe {
                result::launch_kernel(self.function, (1, 1, 1), (256, 1, 1), 0, self.stream, &mut params)
            }
        };
        launch()?;
        // SAFETY: the stream is ours and alive.
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
