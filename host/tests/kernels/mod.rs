//! Kernels as the macros would write them, by hand, for tests of the runtime alone: native bodies,
//! descriptors, launch functions.

#![allow(dead_code, reason = "each test binary uses some of the kernels")]

use std::ffi::c_void;
use std::ptr::from_ref;

use ferrogrid_host::__private::device::native::Block;
use ferrogrid_host::__private::device::prelude::*;
use ferrogrid_host::__private::{
    EmbeddedImage, Entries, Kernel, KernelDescriptor, ModuleImage, check_params, launch_with,
};
use ferrogrid_host::{DeviceInput, DeviceOutput, Grid, Result, Stream, SurfaceViewMut, TextureView};

/// The PTX of kernels that may panic and print.
macro_rules! ptx {
    ($head:literal) => {
        concat!(
            $head,
            ".visible .global .align 8 .u64 __ferrogrid_output = 0;\n",
            ".visible .entry saxpy_5eed(\n\t.param .u64 __ferrogrid_record\n)\n{\n\tret;\n}\n",
            ".visible .entry mix_5eed(\n\t.param .u64 __ferrogrid_record\n)\n{\n\tret;\n}\n",
            ".visible .entry fail_5eed(\n\t.param .u64 __ferrogrid_record\n)\n{\n\tret;\n}\n",
        )
    };
}

static IMAGES: &[EmbeddedImage] = &[EmbeddedImage {
    id: 0x5eed,
    codes: &[
        ("sm_75", 6, 3, ptx!("// PTX for sm_75\n.version 6.3\n.target sm_75\n"), &[]),
        ("sm_90", 7, 8, ptx!("// PTX for sm_90\n.version 7.8\n.target sm_90\n"), &[]),
        ("sm_90a", 8, 0, ptx!("// PTX for sm_90a\n.version 8.0\n.target sm_90a\n"), &[]),
    ],
    links: &[],
}];
const ENTRIES: Entries =
    &[("saxpy_5eed", SAXPY, &[]), ("mix_5eed", SAXPY, &[]), ("missing_5eed", SAXPY, &[])];
const SAXPY: &[(usize, usize)] = &[(4, 4), (8, 8), (8, 8), (8, 8), (8, 8)];
const FAIL: &[(usize, usize)] = &[(4, 4), (4, 4), (8, 8), (8, 8), (8, 8), (8, 8)];
const OUTPUT: &[(usize, usize)] = &[(8, 8), (8, 8)];
const OUTPUT_2D: &[(usize, usize)] = &[(8, 8), (8, 8), (8, 8)];

/// Of a kernel that does neither.
static SILENT_IMAGES: &[EmbeddedImage] = &[EmbeddedImage {
    id: 0x51e7,
    codes: &[("sm_75", 6, 3, ".version 6.3\n.target sm_75\n", &[])],
    links: &[],
}];

static SILENT_IMAGE: ModuleImage = ModuleImage::embedded(SILENT_IMAGES, 0);
pub(crate) static IMAGE: ModuleImage = ModuleImage::embedded(IMAGES, 0);
static HOST_ONLY: ModuleImage = ModuleImage::host_only();

const _: () = check_params(ENTRIES, "saxpy_5eed", SAXPY);

/// Reads parameter `index` as a `T`.
///
/// # Safety
/// It is one.
unsafe fn param<T: Copy>(params: *const *const c_void, index: usize) -> T {
    // SAFETY: the caller vouches for the type.
    unsafe { params.add(index).read().cast::<T>().read() }
}

/// `y <- a*x + y`.
fn saxpy_body(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    let i = t.index();
    if let Some(y) = y.get_mut(i) {
        *y += a * x[i.get()];
    }
}

/// The kernel on the CPU device.
///
/// # Safety
/// `params` has the parameters of the kernel.
unsafe fn saxpy_cpu(block: &Block, params: *const *const c_void) {
    // SAFETY: these are the parameters of `SAXPY`.
    unsafe {
        let a = param::<f32>(params, 0);
        let x = std::slice::from_raw_parts(param::<*const f32>(params, 1), param(params, 2));
        let (y, len) = (param::<*mut f32>(params, 3), param(params, 4));
        block.for_each_thread::<1>(|t| saxpy_body(t, a, x, DisjointSlice::from_raw_parts(y, [len])));
    }
}

pub(crate) static SAXPY_KERNEL: Kernel = Kernel::new(KernelDescriptor {
    name: "saxpy",
    entry: "saxpy_5eed",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: true,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: SAXPY,
    image: &IMAGE,
    constants: &[],
    cpu: saxpy_cpu,
    file: file!(),
    line: line!(),
});

static SILENT_SAXPY: Kernel = Kernel::new(KernelDescriptor {
    name: "silent_saxpy",
    entry: "saxpy_51e7",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: SAXPY,
    image: &SILENT_IMAGE,
    constants: &[],
    cpu: saxpy_cpu,
    file: file!(),
    line: line!(),
});

static DEPENDENT_SAXPY: Kernel = Kernel::new(KernelDescriptor {
    name: "dependent_saxpy",
    entry: "saxpy_51e7",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: true,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: SAXPY,
    image: &SILENT_IMAGE,
    constants: &[],
    cpu: saxpy_cpu,
    file: file!(),
    line: line!(),
});

/// Launches a kernel of an `f32` and slices of them, or of a `u32` and such: numbers of the size that `SAXPY` states.
#[track_caller]
fn launch_on_slices<'a, T: DeviceCopy>(
    kernel: &'static Kernel,
    stream: &Stream,
    grid: Grid<1>,
    number: T,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'a, T>,
) -> Result<()> {
    const { assert!(size_of::<T>() == SAXPY[0].0) };
    let (x, y) = (x.into_input(), y.into_output());
    let ([x0, x1, ..], [y0, y1, ..]) = (x.params(), y.params());
    let params = [from_ref(&number).cast(), x0, x1, y0, y1];
    // SAFETY: these are the parameters of `SAXPY`, of the kernel's types, and the accesses of the views among them.
    unsafe { launch_with(kernel, stream, &grid, 0, false, &params, &[x.access(), y.access()]) }
}

#[track_caller]
pub(crate) fn saxpy<'a>(
    stream: &Stream,
    grid: Grid<1>,
    a: f32,
    x: impl DeviceInput<'a, f32>,
    y: impl DeviceOutput<'a, f32>,
) -> Result<()> {
    launch_on_slices(&SAXPY_KERNEL, stream, grid, a, x, y)
}

/// The same where `x` is a texture, which the fake driver's kernel reads by its object. The CPU device cannot run it.
#[track_caller]
pub(crate) fn saxpy_of_texture<'a>(
    stream: &Stream,
    grid: Grid<1>,
    a: f32,
    x: TextureView<'_, f32, 1>,
    y: impl DeviceOutput<'a, f32>,
) -> Result<()> {
    let (x, y, len) = (x.on(stream)?, y.into_output(), x.extent()[0]);
    let params = [from_ref(&a).cast(), x.params()[0], from_ref(&len).cast(), y.params()[0], y.params()[1]];
    // SAFETY: these are the parameters that the fake driver's kernel takes, and the accesses of the views among them.
    unsafe { launch_with(&SAXPY_KERNEL, stream, &grid, 0, false, &params, &[x.access(), y.access()]) }
}

/// The same where `y` is a surface.
#[track_caller]
pub(crate) fn saxpy_to_surface<'a>(
    stream: &Stream,
    grid: Grid<1>,
    a: f32,
    x: impl DeviceInput<'a, f32>,
    y: SurfaceViewMut<'_, f32, 1>,
) -> Result<()> {
    let (x, len) = (x.into_input(), y.extent()[0]);
    let y = y.on(stream)?;
    let params = [from_ref(&a).cast(), x.params()[0], x.params()[1], y.params()[0], from_ref(&len).cast()];
    // SAFETY: as above.
    unsafe { launch_with(&SAXPY_KERNEL, stream, &grid, 0, false, &params, &[x.access(), y.access()]) }
}

/// The same of a module that cannot panic or print.
#[track_caller]
pub(crate) fn silent_saxpy<'a>(
    stream: &Stream,
    grid: Grid<1>,
    a: f32,
    x: impl DeviceInput<'a, f32>,
    y: impl DeviceOutput<'a, f32>,
) -> Result<()> {
    launch_on_slices(&SILENT_SAXPY, stream, grid, a, x, y)
}

/// `y <- a*x + y`, whose launches may begin before those before them have ended.
#[track_caller]
pub(crate) fn dependent_saxpy<'a>(
    stream: &Stream,
    grid: Grid<1>,
    a: f32,
    x: impl DeviceInput<'a, f32>,
    y: impl DeviceOutput<'a, f32>,
) -> Result<()> {
    launch_on_slices(&DEPENDENT_SAXPY, stream, grid, a, x, y)
}

/// `y <- y*factor + x`.
///
/// # Safety
/// `params` has the parameters of the kernel.
unsafe fn mix_cpu(block: &Block, params: *const *const c_void) {
    // SAFETY: these are the parameters of `SAXPY`, whose number has the size of this one.
    unsafe {
        let factor = param::<u32>(params, 0);
        let x = std::slice::from_raw_parts(param::<*const u32>(params, 1), param(params, 2));
        let (y, len) = (param::<*mut u32>(params, 3), param(params, 4));
        block.for_each_thread::<1>(|t| {
            let mut y = DisjointSlice::from_raw_parts(y, [len]);
            let i = t.index();
            if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
                *y = y.wrapping_mul(factor).wrapping_add(*x);
            }
        });
    }
}

static MIX_KERNEL: Kernel = Kernel::new(KernelDescriptor {
    name: "mix",
    entry: "mix_5eed",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: SAXPY,
    image: &IMAGE,
    constants: &[],
    cpu: mix_cpu,
    file: file!(),
    line: line!(),
});

#[track_caller]
pub(crate) fn mix<'a>(
    stream: &Stream,
    grid: Grid<1>,
    factor: u32,
    x: impl DeviceInput<'a, u32>,
    y: impl DeviceOutput<'a, u32>,
) -> Result<()> {
    launch_on_slices(&MIX_KERNEL, stream, grid, factor, x, y)
}

/// As `mix_cpu`; but if its second number is not 0, a thread panics, and names it.
///
/// # Safety
/// `params` has the parameters of the kernel.
unsafe fn fail_cpu(block: &Block, params: *const *const c_void) {
    // SAFETY: these are the parameters of `FAIL`.
    unsafe {
        let (factor, number) = (param::<u32>(params, 0), param::<u32>(params, 1));
        let x = std::slice::from_raw_parts(param::<*const u32>(params, 2), param(params, 3));
        let (y, len) = (param::<*mut u32>(params, 4), param(params, 5));
        block.for_each_thread::<1>(|t| {
            let mut y = DisjointSlice::from_raw_parts(y, [len]);
            let i = t.index();
            assert!(number == 0 || i.get() != 77, "failure {number}");
            if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
                *y = y.wrapping_mul(factor).wrapping_add(*x);
            }
        });
    }
}

static FAIL_KERNEL: Kernel = Kernel::new(KernelDescriptor {
    name: "may_fail",
    entry: "fail_5eed",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: FAIL,
    image: &IMAGE,
    constants: &[],
    cpu: fail_cpu,
    file: file!(),
    line: line!(),
});

#[track_caller]
pub(crate) fn may_fail<'a>(
    stream: &Stream,
    grid: Grid<1>,
    (factor, number): (u32, u32),
    x: impl DeviceInput<'a, u32>,
    y: impl DeviceOutput<'a, u32>,
) -> Result<()> {
    let (x, y) = (x.into_input(), y.into_output());
    let ([x0, x1, ..], [y0, y1, ..]) = (x.params(), y.params());
    let params = [from_ref(&factor).cast(), from_ref(&number).cast(), x0, x1, y0, y1];
    // SAFETY: these are the parameters of `FAIL`, and the accesses of the views among them.
    unsafe { launch_with(&FAIL_KERNEL, stream, &grid, 0, false, &params, &[x.access(), y.access()]) }
}

static SILENT_MIX: Kernel = Kernel::new(KernelDescriptor {
    name: "silent_mix",
    entry: "mix_51e7",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: SAXPY,
    image: &SILENT_IMAGE,
    constants: &[],
    cpu: mix_cpu,
    file: file!(),
    line: line!(),
});

/// `mix` of a module that cannot panic or print.
#[track_caller]
pub(crate) fn silent_mix<'a>(
    stream: &Stream,
    grid: Grid<1>,
    factor: u32,
    x: impl DeviceInput<'a, u32>,
    y: impl DeviceOutput<'a, u32>,
) -> Result<()> {
    launch_on_slices(&SILENT_MIX, stream, grid, factor, x, y)
}

/// A kernel whose entry is in no image that a driver would load.
pub(crate) static MISSING_KERNEL: Kernel = Kernel::new(KernelDescriptor {
    name: "missing",
    entry: "missing_5eed",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: SAXPY,
    image: &IMAGE,
    constants: &[],
    cpu: saxpy_cpu,
    file: file!(),
    line: line!(),
});

pub(crate) fn missing<'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, f32>,
    y: impl DeviceOutput<'a, f32>,
) -> Result<()> {
    launch_on_slices(&MISSING_KERNEL, stream, Grid::cover(1), 1.0, x, y)
}

/// Adds 1 to each element, slowly, so that a missing wait reads old values.
///
/// # Safety
/// `params` has the parameters of the kernel.
unsafe fn slow_cpu(block: &Block, params: *const *const c_void) {
    // SAFETY: these are the parameters of `OUTPUT`.
    unsafe {
        let (y, len) = (param::<*mut u32>(params, 0), param(params, 1));
        std::thread::sleep(std::time::Duration::from_millis(20));
        block.for_each_thread::<1>(|t| {
            let mut y = DisjointSlice::from_raw_parts(y, [len]);
            if let Some(y) = y.get_mut(t.index()) {
                *y += 1;
            }
        });
    }
}

static SLOW_KERNEL: Kernel = Kernel::new(KernelDescriptor {
    name: "slow_increment",
    entry: "slow_increment_0",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: OUTPUT,
    image: &HOST_ONLY,
    constants: &[],
    cpu: slow_cpu,
    file: file!(),
    line: line!(),
});

pub(crate) fn slow_increment<'a>(
    stream: &Stream,
    grid: Grid<1>,
    y: impl DeviceOutput<'a, u32>,
) -> Result<()> {
    let y = y.into_output();
    // SAFETY: these are the parameters of `OUTPUT`, and the access of the view among them.
    unsafe { launch_with(&SLOW_KERNEL, stream, &grid, 0, false, &y.params()[..2], &[y.access()]) }
}

/// Panics where an element is 13.
///
/// # Safety
/// `params` has the parameters of the kernel.
unsafe fn unlucky_cpu(block: &Block, params: *const *const c_void) {
    // SAFETY: these are the parameters of `OUTPUT`.
    unsafe {
        let (y, len) = (param::<*mut u32>(params, 0), param(params, 1));
        block.for_each_thread::<1>(|t| {
            let mut y = DisjointSlice::from_raw_parts(y, [len]);
            let i = t.index();
            let Some(y) = y.get_mut(i) else { return };
            assert!(*y != 13, "element {} is 13", i.get());
        });
    }
}

static UNLUCKY_KERNEL: Kernel = Kernel::new(KernelDescriptor {
    name: "unlucky",
    entry: "unlucky_0",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: OUTPUT,
    image: &HOST_ONLY,
    constants: &[],
    cpu: unlucky_cpu,
    file: file!(),
    line: line!(),
});

pub(crate) fn unlucky<'a>(stream: &Stream, grid: Grid<1>, y: impl DeviceOutput<'a, u32>) -> Result<()> {
    let y = y.into_output();
    // SAFETY: these are the parameters of `OUTPUT`, and the access of the view among them.
    unsafe { launch_with(&UNLUCKY_KERNEL, stream, &grid, 0, false, &y.params()[..2], &[y.access()]) }
}

/// Writes `1000 * y + x` at (x, y).
///
/// # Safety
/// `params` has the parameters of the kernel.
unsafe fn coordinates_cpu(block: &Block, params: *const *const c_void) {
    // SAFETY: these are the parameters of `OUTPUT_2D`.
    unsafe {
        let out = param::<*mut u32>(params, 0);
        let extent = [param::<usize>(params, 1), param(params, 2)];
        block.for_each_thread::<2>(|t| {
            let (x, y) = (t.index().x(), t.index().y());
            let mut out = DisjointSlice::<u32, 2>::from_raw_parts(out, extent);
            if let Some(out) = out.get_mut(t.index()) {
                *out = (1000 * y + x) as u32;
            }
        });
    }
}

static COORDINATES_KERNEL: Kernel = Kernel::new(KernelDescriptor {
    name: "coordinates",
    entry: "coordinates_0",
    rank: 2,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: OUTPUT_2D,
    image: &HOST_ONLY,
    constants: &[],
    cpu: coordinates_cpu,
    file: file!(),
    line: line!(),
});

pub(crate) fn coordinates<'a>(
    stream: &Stream,
    grid: Grid<2>,
    out: impl DeviceOutput<'a, u32, 2>,
) -> Result<()> {
    let out = out.into_output();
    // SAFETY: these are the parameters of `OUTPUT_2D`, and the access of the view among them.
    unsafe { launch_with(&COORDINATES_KERNEL, stream, &grid, 0, false, &out.params()[..3], &[out.access()]) }
}
