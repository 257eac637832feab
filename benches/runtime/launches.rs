//! The host cost of typed launches beside `cuLaunchKernel` for the same kernel, and the number of their
//! allocations.

use std::ffi::c_void;
use std::ptr::from_ref;
use std::time::Instant;

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::counting;
use crate::cpp::Cpp;
use crate::kernels::device as kernels;
use crate::turns::duel;

/// Launches of one round: fewer than a stream's queue holds, so that the host never waits for the device.
const BATCH: u32 = 400;
const ROUNDS: usize = 301;
const THREADS: usize = 256;

/// A slice as a kernel takes it.
#[repr(C)]
pub struct Flat {
    start: u64,
    length: usize,
}

impl Flat {
    fn read(buffer: &DeviceBuffer<f32>) -> Self {
        Flat { start: buffer.as_device_ptr().as_raw().addr() as u64, length: buffer.len() }
    }

    fn params(&self) -> [*const c_void; 2] {
        [from_ref(&self.start).cast(), from_ref(&self.length).cast()]
    }
}

/// After the parameters of kernels that may panic: no record.
const NO_RECORD: u64 = 0;

fn param<T>(value: &T) -> *const c_void {
    from_ref(value).cast()
}

/// Seconds of `work` alone, without the wait for the work that it enqueued.
fn enqueueing(streams: &[&Stream], work: impl FnOnce() -> ferrogrid::Result<()>) -> Outcome<f64> {
    let start = Instant::now();
    work()?;
    let seconds = start.elapsed().as_secs_f64();
    wait(streams)?;
    Ok(seconds)
}

fn wait(streams: &[&Stream]) -> Outcome<()> {
    Ok(streams.iter().try_for_each(|stream| stream.synchronize())?)
}

pub fn launches(device: &Device, cpp: &Cpp) -> Outcome<()> {
    let stream = &device.new_stream()?;
    let streams = &[stream];
    let grid = Grid::new(1, THREADS as u32);

    let (x, mut y) = (stream.fill(1.0_f32, THREADS)?, stream.fill(1.0_f32, THREADS)?);
    let raw = cpp.kernel(kernels::saxpy::kernel())?;
    let (a, from, to) = (1.0_f32, Flat::read(&x), Flat::read(&y));
    let params = [&[param(&a)][..], &from.params(), &to.params(), &[param(&NO_RECORD)]].concat();
    let ours =
        || enqueueing(streams, || (0..BATCH).try_for_each(|_| kernels::saxpy(stream, grid, 1.0, &x, &mut y)));
    let theirs = || {
        // SAFETY: the flattened parameters of `saxpy` and a record; each round is waited for.
        let seconds = unsafe { cpp.launches(&raw, streams, &[&params], BATCH)? };
        wait(streams)?;
        Ok(seconds)
    };
    duel("launch_3_arguments", ROUNDS, BATCH.into(), ours, theirs)?;

    let inputs: [_; 4] = [stream.zeros(THREADS)?, stream.zeros(THREADS)?, stream.zeros(THREADS)?, x];
    let mut outputs: [_; 4] = [stream.zeros(THREADS)?, stream.zeros(THREADS)?, stream.zeros(THREADS)?, y];
    let raw = cpp.kernel(kernels::sixteen::kernel())?;
    let (a, e, g) = (1.0_f32, 1_u32, 1_u64);
    let flat: Vec<Flat> = inputs.iter().chain(&outputs).map(Flat::read).collect();
    let mut params = vec![param(&a); 4];
    params.extend([param(&e), param(&e), param(&g), param(&g)]);
    params.extend(flat.iter().flat_map(Flat::params));
    params.push(param(&NO_RECORD));
    let mut ours = || {
        let ([x0, x1, x2, x3], [y0, y1, y2, y3]) = (&inputs, &mut outputs);
        enqueueing(streams, || {
            (0..BATCH).try_for_each(|_| {
                let (y0, y1, y2, y3) = (&mut *y0, &mut *y1, &mut *y2, &mut *y3);
                kernels::sixteen(stream, grid, a, a, a, a, e, e, g, g, x0, x1, x2, x3, y0, y1, y2, y3)
            })
        })
    };
    let theirs = || {
        // SAFETY: the flattened parameters of `sixteen` and a record; each round is waited for.
        let seconds = unsafe { cpp.launches(&raw, streams, &[&params], BATCH)? };
        wait(streams)?;
        Ok(seconds)
    };
    duel("launch_16_arguments", ROUNDS, BATCH.into(), &mut ours, theirs)?;
    let slices: &[Flat; 8] = flat.as_slice().try_into()?;
    let theirs = || {
        // SAFETY: the kernel is `sixteen`, of four scalars and eight slices of live memory; each round is waited for.
        let seconds = unsafe { cpp.launches_of_sixteen(&raw, stream, &[a; 4], slices, BATCH)? };
        wait(streams)?;
        Ok(seconds)
    };
    duel("launch_16_arguments_by_value", ROUNDS, BATCH.into(), ours, theirs)
}

/// One input that two streams read, each with its own output.
pub fn launches_of_two_streams(device: &Device, cpp: &Cpp) -> Outcome<()> {
    let streams = &[&device.new_stream()?, &device.new_stream()?];
    let [one, two] = streams;
    let grid = Grid::new(1, THREADS as u32);
    let (x, mut y, mut z) = (one.zeros(THREADS)?, one.zeros(THREADS)?, two.zeros(THREADS)?);
    let raw = cpp.kernel(kernels::saxpy::kernel())?;
    let (a, from, first, second) = (1.0_f32, Flat::read(&x), Flat::read(&y), Flat::read(&z));
    let params = [&first, &second]
        .map(|to| [&[param(&a)][..], &from.params(), &to.params(), &[param(&NO_RECORD)]].concat());
    let ours = || {
        enqueueing(streams, || {
            (0..BATCH / 2).try_for_each(|_| {
                kernels::saxpy(one, grid, 1.0, &x, &mut y)?;
                kernels::saxpy(two, grid, 1.0, &x, &mut z)
            })
        })
    };
    let theirs = || {
        // SAFETY: the flattened parameters of `saxpy` and a record for each stream; each round is waited for.
        let seconds = unsafe { cpp.launches(&raw, streams, &[&params[0], &params[1]], BATCH)? };
        wait(streams)?;
        Ok(seconds)
    };
    duel("launch_2_streams_1_input", ROUNDS, BATCH.into(), ours, theirs)
}

/// The number of host allocations of launches: on one stream, and on two that share an input.
pub fn allocations(device: &Device, _cpp: &Cpp) -> Outcome<()> {
    let (one, two) = (device.new_stream()?, device.new_stream()?);
    let grid = Grid::new(1, THREADS as u32);
    let (x, mut y, mut z) = (one.zeros(THREADS)?, one.zeros(THREADS)?, two.zeros(THREADS)?);
    let mut launch = || {
        kernels::saxpy(&one, grid, 1.0, &x, &mut y)?;
        kernels::saxpy(&two, grid, 1.0, &x, &mut z)
    };
    // The first loads the kernel and enters both streams as readers.
    launch()?;
    let before = counting::allocations();
    (0..5000).try_for_each(|_| launch())?;
    let allocations = counting::allocations() - before;
    println!("{{\"name\": \"launch_allocations\", \"allocations\": {allocations}, \"launches\": 10000}}");
    Ok(())
}
