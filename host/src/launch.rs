//! The launch of a kernel: check the shape, order the memory, enqueue. It must not know how a
//! backend runs it.

use std::ffi::c_void;
use std::sync::Arc;

use crate::constant::{self, Enqueueing};
use crate::error::{Axis, Error, Result};
use crate::grid::{Grid, LaunchShape};
use crate::kernel::Kernel;
use crate::memory::Access;
use crate::stream::{Stream, StreamInner};

/// Enqueues `kernel` on `stream` (`cuLaunchKernel`). `params` has the address of each flattened
/// parameter, read before this returns; `accesses` names the memory they lead to.
///
/// # Errors
/// For a shape over the device's limits, memory of another device, device code that does not load,
/// and a driver that refuses. Failures of the kernel itself come at the next synchronisation.
///
/// # Safety
/// - `R` is the kernel's rank.
/// - `params` has as many addresses as the descriptor has parameters, each of a value of the size and
///   alignment stated there, of the type that the kernel takes.
/// - `accesses` has the access of every view among the parameters, and those views are borrowed
///   until this returns. What raw pointers lead to is the caller's business, until the kernel has run.
#[doc(hidden)]
#[inline]
pub unsafe fn launch<const R: usize>(
    kernel: &'static Kernel,
    stream: &Stream,
    grid: Grid<R>,
    params: &[*const c_void],
    accesses: &[Access<'_>],
) -> Result<()> {
    // SAFETY: passed on.
    unsafe { launch_with(Resources::default(), kernel, stream, grid, params, accesses) }
}

/// What each block of a launch needs beyond threads.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Resources {
    /// Bytes of shared memory for each block.
    pub shared_bytes: usize,
    /// Whether all blocks must be resident at the same time, for barriers of the grid.
    pub cooperative: bool,
}

/// [`launch`] with `resources` for each block.
///
/// # Errors
/// As for [`launch`].
///
/// # Safety
/// As for [`launch`]; and `resources` are what the kernel relies on.
#[doc(hidden)]
#[inline]
pub unsafe fn launch_with<const R: usize>(
    resources: Resources,
    kernel: &'static Kernel,
    stream: &Stream,
    grid: Grid<R>,
    params: &[*const c_void],
    accesses: &[Access<'_>],
) -> Result<()> {
    debug_assert_eq!(R, kernel.rank(), "rank of kernel `{}`", kernel.name());
    debug_assert_eq!(params.len(), kernel.descriptor().params.len(), "parameters of `{}`", kernel.name());
    let stream = stream.inner();
    let Some(shape) = grid.resolve(kernel, stream.device().limits())? else {
        return accesses.iter().try_for_each(|access| access.check_device(stream));
    };
    check_threads(kernel, &shape)?;
    let Resources { shared_bytes, cooperative } = resources;
    let limit = stream.device().shared_memory_per_block();
    if shared_bytes > limit {
        let device = stream.device().to_string().into();
        return Err(Error::SharedMemoryTooLarge {
            kernel: kernel.name(),
            bytes: shared_bytes,
            device,
            limit,
        });
    }
    if let Some(priority) = shape.priority {
        stream.device().check_priority(priority)?;
    }
    let shape = LaunchShape { shared_bytes, cooperative, ..shape };
    let prepared = stream.prepare(kernel)?;
    // Held until the launch is enqueued.
    let _enqueueing = begin_constants(kernel, stream)?;
    for access in accesses {
        access.begin(stream)?;
    }
    // SAFETY: the caller vouches for the parameters and the borrows; the memory has been ordered, on
    // this device; `shape` is within the device's limits; `prepared` is this kernel on this stream.
    unsafe { stream.launch(prepared, kernel, shape, params) }
}

/// Enters into the order that `kernel` may read its constants, if it has any.
#[inline]
fn begin_constants(kernel: &'static Kernel, stream: &Arc<StreamInner>) -> Result<Option<Enqueueing>> {
    match kernel.descriptor().constants {
        [] => Ok(None),
        constants => constant::begin_launch(constants, stream).map(Some),
    }
}

/// Indices of threads are 32 bits wide on a device, and no index may be that of two threads.
#[inline]
fn check_threads(kernel: &'static Kernel, shape: &LaunchShape) -> Result<()> {
    let (grid, block) = (shape.grid, shape.block);
    let threads: [u64; 3] = std::array::from_fn(|axis| u64::from(grid[axis]) * u64::from(block[axis]));
    if (threads[0] | threads[1] | threads[2]) <= u64::from(u32::MAX) {
        return Ok(());
    }
    Err(too_wide(kernel, threads))
}

#[cold]
fn too_wide(kernel: &'static Kernel, threads: [u64; 3]) -> Error {
    let limit = u32::MAX;
    let wide = Axis::ALL.into_iter().zip(threads).find(|(_, threads)| *threads > u64::from(limit));
    let (axis, threads) = wide.unwrap_or((Axis::X, threads[0]));
    Error::GridTooWide { kernel: kernel.name(), axis, threads, limit }
}
