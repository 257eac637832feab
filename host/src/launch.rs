//! The launch of a kernel. This file has the steps: check the shape, order the memory, enqueue.
//!
//! `grid` is the shape and its limits; `attributes`, `access_policy` and `event` are what a launch asks for
//! beyond it. `enqueue` calls the backend. `host_slice` says for what slices of the host may stand. `shared`
//! lays out shared memory, and `extent` checks lengths. `block_output`, `claim_bits`, `order_state` and `sized_params`
//! serve single kinds of parameter.

pub(crate) mod access_policy;
pub(crate) mod attributes;
pub(crate) mod block_output;
pub(crate) mod claim_bits;
mod enqueue;
pub(crate) mod event;
pub(crate) mod extent;
pub(crate) mod grid;
pub(crate) mod host_slice;
pub(crate) mod order_state;
pub(crate) mod shared;
pub(crate) mod sized_params;
pub(crate) mod zeros;

use std::ffi::c_void;
use std::panic::Location;
use std::sync::Arc;

use crate::backend::Prepared;
use crate::device::Device;
use crate::error::{Axis, Error, Result};
use crate::kernel::Kernel;
use crate::kernel::loaded::LoadedKernel;
use crate::launch::attributes::LaunchAttributes;
use crate::launch::grid::{Grid, LaunchShape, Sizes};
use crate::memory::access::Access;
use crate::memory::constant;
use crate::stream::announcing::Announcing;
use crate::stream::{Stream, StreamInner};

/// What each block of a launch needs beyond threads.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Resources {
    /// Bytes of shared memory for each block.
    pub shared_bytes: usize,
    /// Whether all blocks must be resident at the same time, for barriers of the grid.
    pub cooperative: bool,
}

/// Enqueues `kernel` on `stream` (`cuLaunchKernel`), with `resources` for each block. `params` has the address of each
/// flattened parameter, read before this returns; `accesses` names the memory they lead to. Errors of the kernel name the
/// caller's place as that of the launch.
///
/// A launch finds little of what it reads and runs in the processor's first cache, after the driver's last one. So what
/// all launches need is in few places, and what few need is in others.
///
/// # Errors
/// For a shape over the device's limits, memory of another device, device code that does not load,
/// and a driver that refuses. Failures of the kernel itself come at the next synchronisation.
///
/// # Safety
/// - `R` is the kernel's rank, and `resources` are what it relies on.
/// - `params` has as many addresses as the descriptor has parameters, each of a value of the size and
///   alignment stated there, of the type that the kernel takes.
/// - `accesses` has the access of every view among the parameters, and those views are borrowed
///   until this returns. What raw pointers lead to is the caller's business, until the kernel has run.
#[doc(hidden)]
#[inline]
#[track_caller]
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
    let Some(sizes) = grid.sizes(kernel, stream.device().limits())? else {
        return check_devices(accesses, stream);
    };
    let Sizes { grid: blocks, block, cluster } = sizes;
    check_threads(kernel, blocks, block)?;
    let Resources { shared_bytes, cooperative } = resources;
    let site = Location::caller();
    let mut shape = LaunchShape { grid: blocks, block, cluster, shared_bytes, attributes: None, site };
    if cooperative || grid.may_have_attributes(kernel) {
        add_attributes(&mut shape, cooperative, &grid, kernel);
    }
    // SAFETY: the caller vouches for the parameters and the borrows; `shape` is within the device's limits, but for
    // what is checked there.
    unsafe { enqueue(kernel, stream, &shape, params, accesses) }
}

/// Gives a launch the attributes that it has beside its sizes.
#[cold]
fn add_attributes<const R: usize>(
    shape: &mut LaunchShape,
    cooperative: bool,
    grid: &Grid<R>,
    kernel: &'static Kernel,
) {
    let attributes = grid.launch_attributes(kernel, shape.cluster);
    shape.attributes = LaunchAttributes { cooperative, ..attributes }.if_any();
}

/// Checks what a launch asks for beyond a grid, orders its memory, and enqueues it.
///
/// # Safety
/// As for [`launch_with`]; `shape` is within the device's limits, but for shared memory and attributes.
#[inline(never)]
unsafe fn enqueue(
    kernel: &'static Kernel,
    stream: &Arc<StreamInner>,
    shape: &LaunchShape,
    params: &[*const c_void],
    accesses: &[Access<'_>],
) -> Result<()> {
    if shape.shared_bytes > 0 {
        check_shared_memory(kernel, stream, shape)?;
    }
    let prepared = stream.backend().prepare(kernel)?;
    if shape.attributes.is_some() {
        check_attributes(stream.device(), kernel, prepared, shape)?;
    }
    if !kernel.descriptor().constants.is_empty() {
        // SAFETY: passed on; `prepared` is this kernel on this stream.
        return unsafe { enqueue_with_constants(prepared, kernel, stream, shape, params, accesses) };
    }
    let mut names_writers = prepared.may_panic;
    for access in accesses {
        if let Err(error) = access.begin(stream) {
            return refused(stream, error);
        }
        names_writers |= access.names_writers();
    }
    // SAFETY: the caller vouches for the parameters and the borrows; the memory has been ordered, on
    // this device; `shape` is within the device's limits; `prepared` is this kernel on this stream.
    unsafe { stream.launch(prepared, kernel, shape, params, accesses, names_writers) }
}

/// After a launch that was refused: it leaves no trace in a recording.
#[cold]
fn refused(stream: &StreamInner, error: Error) -> Result<()> {
    drop(Announcing::on(stream));
    Err(error)
}

/// The end of `enqueue` for a kernel that may read constants: enters that into their order first.
///
/// # Safety
/// As for `enqueue`; `prepared` is this kernel on this stream.
#[inline(never)]
unsafe fn enqueue_with_constants(
    prepared: Prepared,
    kernel: &'static Kernel,
    stream: &Arc<StreamInner>,
    shape: &LaunchShape,
    params: &[*const c_void],
    accesses: &[Access<'_>],
) -> Result<()> {
    // Held until the launch is enqueued.
    let _announcing = Announcing::on(stream);
    let _enqueueing = constant::begin_launch(kernel.descriptor().constants, stream)?;
    for access in accesses {
        access.begin(stream)?;
    }
    // SAFETY: passed on; the memory has been ordered, on this device.
    unsafe {
        stream.launch_slow(prepared, kernel, *shape, (params, kernel.descriptor().params), accesses.iter())
    }
}

#[cold]
fn check_devices(accesses: &[Access<'_>], stream: &Arc<StreamInner>) -> Result<()> {
    accesses.iter().try_for_each(|access| access.check_device(stream))
}

#[inline(never)]
fn check_shared_memory(kernel: &'static Kernel, stream: &StreamInner, shape: &LaunchShape) -> Result<()> {
    let limit = kernel.shared_memory_limit(stream.device().shared_memory_per_block());
    let bytes = shape.shared_bytes;
    if bytes > limit {
        let device = stream.device().to_string().into();
        return Err(Error::SharedMemoryTooLarge { kernel: kernel.name(), bytes, device, limit });
    }
    Ok(())
}

/// Whether `device` takes the attributes of a launch of `kernel`, which is loaded there.
#[cold]
pub(crate) fn check_attributes(
    device: &Device,
    kernel: &'static Kernel,
    prepared: Prepared,
    shape: &LaunchShape,
) -> Result<()> {
    let LaunchAttributes { cluster, priority, access_policy_window, completion_event, .. } =
        shape.attributes();
    if let Some(priority) = priority {
        device.check_priority(priority)?;
    }
    if cluster != [1; 3] {
        LoadedKernel::foreign(device, kernel, prepared).allow_cluster(cluster)?;
    }
    if let Some(event) = completion_event {
        event.checked(kernel.name(), device)?;
    }
    device.check_access_policy_window(access_policy_window)
}

/// Indices of threads are 32 bits wide on a device, and no index may be that of two threads.
#[inline]
fn check_threads(kernel: &'static Kernel, grid: [u32; 3], block: [u32; 3]) -> Result<()> {
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
