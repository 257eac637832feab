//! A kernel whose threads run a function that a test passes as a parameter: so tests of the
//! executor need no language on top. They run on the CPU device only.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::ffi::c_void;
use std::panic::Location;
use std::ptr::from_ref;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrogrid_host::__private::device::native::Block;
use ferrogrid_host::__private::{Kernel, KernelDescriptor, ModuleImage, launch_with};
use ferrogrid_host::{CpuOptions, Device, DeviceOutput, Grid, Result, Stream};

/// One thread of a test's kernel.
pub(crate) struct Here<'a> {
    block: &'a Block<'a>,
    /// Its place in the block, its number there, and how many threads the block has.
    pub(crate) place: [u32; 3],
    pub(crate) number: u32,
    pub(crate) threads: u32,
    /// Its block's number in the grid.
    pub(crate) block_number: u32,
    /// The output buffer.
    pub(crate) out: &'a [AtomicU32],
}

pub(crate) type Body = fn(&Here<'_>);

/// What waits is inlined, as in a kernel.
impl Here<'_> {
    /// Its number in the whole grid.
    pub(crate) fn global(&self) -> usize {
        (self.block_number * self.threads + self.number) as usize
    }

    #[track_caller]
    #[inline(always)]
    pub(crate) fn barrier(&self) {
        self.block.barrier(self.place);
    }

    #[track_caller]
    #[inline(always)]
    pub(crate) fn barrier_count(&self, vote: bool) -> u32 {
        self.block.barrier_count(self.place, vote)
    }

    #[track_caller]
    #[inline(always)]
    pub(crate) fn exchange(&self, mask: u32, value: u128) -> [u128; 32] {
        self.block.warp_exchange(self.place, mask, value, |values| *values)
    }

    #[track_caller]
    #[inline(always)]
    pub(crate) fn active_mask(&self) -> u32 {
        self.block.active_mask(self.place)
    }

    #[track_caller]
    #[inline(always)]
    pub(crate) fn grid_barrier(&self) {
        self.block.grid_barrier(self.place);
    }

    /// Says that all threads of the block have this word.
    #[track_caller]
    pub(crate) fn agree(&self, word: u64) {
        self.block.agree(self.place, word, Location::caller());
    }

    pub(crate) fn shared(&self) -> (*mut u8, usize) {
        self.block.shared()
    }

    pub(crate) fn set(&self, index: usize, value: u32) {
        self.out[index].store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, index: usize) -> u32 {
        self.out[index].load(Ordering::Relaxed)
    }
}

/// Runs the body in the parameters for each thread, which may wait if `WAITING`.
///
/// # Safety
/// `params` has the parameters of the kernel.
unsafe fn entry<const WAITING: bool>(block: &Block<'_>, params: *const *const c_void) {
    // SAFETY: these are the parameters that `run_on` passes; atomics may be shared between threads.
    let (body, out) = unsafe {
        let body = params.read().cast::<Body>().read();
        let start = params.add(1).read().cast::<*const AtomicU32>().read();
        let length = params.add(2).read().cast::<usize>().read();
        (body, std::slice::from_raw_parts(start, length))
    };
    let at = |place: [u32; 3], dim: [u32; 3]| place[0] + dim[0] * (place[1] + dim[1] * place[2]);
    // SAFETY: one block of a launch of rank 3, run once; the slice is of atomics.
    unsafe {
        if WAITING {
            block.for_each_waiting_thread::<3>(|t| {
                let (place, threads) = (t.thread_idx(), t.block_dim().iter().product());
                let (number, block_number) = (at(place, t.block_dim()), at(t.block_idx(), t.grid_dim()));
                body(&Here { block, place, number, threads, block_number, out });
            });
        } else {
            block.for_each_thread::<3>(|t| {
                let (place, threads) = (t.thread_idx(), t.block_dim().iter().product());
                let (number, block_number) = (at(place, t.block_dim()), at(t.block_idx(), t.grid_dim()));
                body(&Here { block, place, number, threads, block_number, out });
            });
        }
    }
}

static IMAGE: ModuleImage = ModuleImage::host_only();

const fn probe(cpu: unsafe fn(&Block<'_>, *const *const c_void)) -> Kernel {
    Kernel::new(KernelDescriptor {
        name: "probe",
        entry: "probe_0",
        rank: 3,
        block: None,
        max_threads: None,
        cluster: None,
        cluster_at_launch: false,
        dependent_launch: false,
        in_order: false,
        shared_bytes: 0,
        uses_shared_memory: false,
        params: &[(8, 8), (8, 8), (8, 8)],
        image: &IMAGE,
        constants: &[],
        cpu,
        file: file!(),
        line: line!(),
    })
}

static WAITING: Kernel = probe(entry::<true>);
static NEVER_WAITING: Kernel = probe(entry::<false>);

/// What a launch needs beyond its grid: bytes of shared memory, and whether it is cooperative.
pub(crate) type Resources = (usize, bool);

pub(crate) fn resources(shared_bytes: usize, cooperative: bool) -> Resources {
    (shared_bytes, cooperative)
}

/// Enqueues `body` for each thread of `grid`.
pub(crate) fn enqueue<'a>(
    stream: &Stream,
    grid: Grid<3>,
    resources: Resources,
    out: impl DeviceOutput<'a, u32>,
    body: Body,
) -> Result<()> {
    enqueue_kernel(&WAITING, stream, grid, resources, out, body)
}

/// The same with a kernel that is run as one that never waits.
pub(crate) fn enqueue_never_waiting<'a>(
    stream: &Stream,
    grid: Grid<3>,
    out: impl DeviceOutput<'a, u32>,
    body: Body,
) -> Result<()> {
    enqueue_kernel(&NEVER_WAITING, stream, grid, resources(0, false), out, body)
}

/// The same in a cooperative launch.
pub(crate) fn enqueue_never_waiting_together<'a>(
    stream: &Stream,
    grid: Grid<3>,
    out: impl DeviceOutput<'a, u32>,
    body: Body,
) -> Result<()> {
    enqueue_kernel(&NEVER_WAITING, stream, grid, resources(0, true), out, body)
}

fn enqueue_kernel<'a>(
    kernel: &'static Kernel,
    stream: &Stream,
    grid: Grid<3>,
    (shared_bytes, cooperative): Resources,
    out: impl DeviceOutput<'a, u32>,
    body: Body,
) -> Result<()> {
    let out = out.into_output();
    let [start, length, ..] = out.params();
    let params = [from_ref(&body).cast(), start, length];
    // SAFETY: these are the parameters that `entry` reads, and the access of the view among them; `entry`
    // makes no promise about resources.
    unsafe { launch_with(kernel, stream, &grid, shared_bytes, cooperative, &params, &[out.access()]) }
}

/// A device with so many worker threads; the same device for the same number.
pub(crate) fn device(workers: usize) -> Device {
    use std::sync::Mutex;
    static DEVICES: Mutex<Vec<(usize, Device)>> = Mutex::new(Vec::new());
    let mut devices = DEVICES.lock().unwrap();
    if let Some((_, device)) = devices.iter().find(|(count, _)| *count == workers) {
        return device.clone();
    }
    let device = Device::cpu_with(CpuOptions::new().workers(workers)).unwrap();
    devices.push((workers, device.clone()));
    device
}

/// The numbers of workers that results must not depend on.
pub(crate) const WORKERS: [usize; 3] = [1, 2, 16];

/// What `body` leaves in `length` zeros, run by `blocks` blocks of `threads` threads on each number of
/// workers: the same, and an error or not.
pub(crate) fn run(blocks: u32, threads: u32, length: usize, body: Body) -> Result<Vec<u32>> {
    run_with(resources(0, false), blocks, [threads, 1, 1], length, body)
}

/// The same with resources and a shape.
pub(crate) fn run_with(
    resources: Resources,
    blocks: u32,
    block: [u32; 3],
    length: usize,
    body: Body,
) -> Result<Vec<u32>> {
    let results = WORKERS.map(|workers| {
        let stream = device(workers).new_stream()?;
        let mut out = stream.zeros::<u32>(length)?;
        enqueue(&stream, Grid::new([blocks, 1, 1], block), resources, &mut out, body)?;
        stream.download(&out)
    });
    let [first, others @ ..] = results;
    for (workers, other) in WORKERS[1..].iter().zip(others) {
        assert_eq!(first, other, "1 worker and {workers} workers");
    }
    first
}

/// The text of an error of a kernel of this file, which says where it was launched: without that.
#[track_caller]
pub fn text_without_site(error: &ferrogrid_host::Error) -> String {
    let text = error.to_string();
    let (before, rest) = text.split_once(" (launched at ").expect("where it was launched");
    let (site, after) = rest.split_once(')').expect("the end of the place");
    assert!(site.starts_with(file!()), "{text}");
    format!("{before}{after}")
}
