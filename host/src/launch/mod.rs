//! The launch of a kernel. This file has the steps: check the shape, order the memory, enqueue.
//!
//! `grid` is the shape and its limits, and `attributes` what a launch asks for beyond it. `enqueue` calls the backend.
//! `host_slice` says what slices of the host may stand for, `extent` checks lengths, and `parameter` has what single kinds of
//! parameter need. `temporary` is memory of streams and recordings that launches use. `reduction` has the two steps of a
//! reduction, `ordered` what a comparison's functions launch, and `matmul` what is around the kernels of a product.

pub(crate) mod attributes;
mod enqueue;
pub(crate) mod extent;
pub(crate) mod grid;
pub(crate) mod host_slice;
pub(crate) mod matmul;
pub(crate) mod ordered;
pub(crate) mod parameter;
pub(crate) mod reduction;
pub(crate) mod temporary;

use std::ffi::c_void;
use std::sync::Arc;

use crate::backend::{Launch, LaunchAttributes, LaunchConfig};
use crate::error::{Axis, Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::launch::grid::Grid;
use crate::memory::access::Access;
use crate::memory::constant;
use crate::order::OrderedStream;
use crate::profile;
use crate::stream::announcing::Announcing;
use crate::stream::{Stream, StreamInner};

/// Enqueues `kernel` on `stream` (`cuLaunchKernel`), with `shared_bytes` of shared memory for each block; `cooperative` if all
/// blocks must be resident at the same time, for barriers of the grid. `params` has the address of each flattened parameter,
/// read before this returns; `accesses` names the memory they lead to. Errors of the kernel name the caller's place as that
/// of the launch.
///
/// A launch finds little of what it reads and runs in the processor's first cache, after the driver's last one. So what
/// all launches need is in few places, and what few need is in others.
///
/// # Errors
/// For a shape over the device's limits, memory of another device, device code that does not load,
/// and a driver that refuses. Failures of the kernel itself come at the next synchronisation.
///
/// # Safety
/// - `R` is the kernel's rank, and it relies on no more than `shared_bytes` and `cooperative` say.
/// - `params` has as many addresses as the descriptor has parameters, each of a value of the size and
///   alignment stated there, of the type that the kernel takes.
/// - `accesses` has the access of every view among the parameters, and those views are borrowed
///   until this returns. The caller is responsible for the targets of raw pointers until the kernel has run.
#[doc(hidden)]
#[inline]
#[track_caller]
pub unsafe fn launch_with<const R: usize>(
    kernel: &'static Kernel,
    stream: &Stream,
    grid: &Grid<R>,
    shared_bytes: usize,
    cooperative: bool,
    params: &[*const c_void],
    accesses: &[Access<'_>],
) -> Result<()> {
    debug_assert_eq!(R, kernel.rank(), "rank of kernel `{}`", kernel.name());
    let stream = stream.inner();
    let mut config = LaunchConfig::new(shared_bytes);
    if !grid.configure(kernel, stream.device().limits(), &mut config)? {
        return check_devices(accesses, stream);
    }
    check_threads::<R>(kernel, config.grid, config.block)?;
    if cooperative {
        config.attributes.get_or_insert_default().cooperative = true;
    }
    // SAFETY: the caller vouches for the parameters and the borrows; `config` is within the device's limits, but for
    // what is checked there.
    unsafe { enqueue(kernel, stream, &config, params, accesses) }
}

/// Checks the attributes of a launch, orders its memory, and enqueues it: of any kernel, of this program or foreign.
///
/// # Errors
/// As for [`launch_with`].
///
/// # Safety
/// As for [`launch_with`]; `config` is within the device's limits, but for shared memory and attributes.
#[inline(always)] // A call would pass on all that `launch_with` is given.
pub(crate) unsafe fn enqueue(
    kernel: &'static Kernel,
    stream: &Arc<StreamInner>,
    config: &LaunchConfig,
    params: &[*const c_void],
    accesses: &[Access<'_>],
) -> Result<()> {
    debug_assert_eq!(params.len(), kernel.descriptor().params.len(), "parameters of `{}`", kernel.name());
    if config.shared_bytes > 0 {
        check_shared_memory(kernel, stream, config)?;
    }
    let is_plain = config.attributes.is_none() && kernel.descriptor().constants.is_empty();
    if is_plain
        && !profile::is_observed()
        && let Some((driver_stream, prepared)) = stream.backend().driver_launch(kernel)
    {
        let launch = Launch { kernel, prepared, config, params };
        let mut concerns = 0;
        for access in accesses {
            concerns |= access.concerns(stream.id());
        }
        if concerns == 0 && !prepared.may_panic {
            // SAFETY: the caller vouches for the parameters and the borrows; the memory is ordered, on this device;
            // `config` is within the device's limits; `prepared` is this kernel on this stream.
            return unsafe { driver_stream.launch(launch) };
        }
        accesses.iter().try_for_each(|access| access.begin(stream))?;
        // SAFETY: as above.
        return unsafe { driver_stream.launch_watched(launch, accesses.iter().map(Access::effect)) };
    }
    // SAFETY: passed on.
    unsafe { enqueue_slow(kernel, stream, config, params, accesses) }
}

/// The slow path of `enqueue`: on a CPU or recorded, profiled, with attributes, the first launch of a kernel on its device, or
/// of one that may read constants.
///
/// # Safety
/// As for `enqueue`.
#[inline(never)]
unsafe fn enqueue_slow(
    kernel: &'static Kernel,
    stream: &Arc<StreamInner>,
    config: &LaunchConfig,
    params: &[*const c_void],
    accesses: &[Access<'_>],
) -> Result<()> {
    let prepared = stream.backend().prepare(kernel)?;
    if let Some(attributes) = &config.attributes {
        check_attributes(kernel, stream, config, attributes)?;
    }
    // Held until the launch is enqueued.
    let _announcing = Announcing::on(stream);
    let _enqueueing = constant::begin_launch(kernel.descriptor().constants, stream)?;
    accesses.iter().try_for_each(|access| access.begin(stream))?;
    // SAFETY: passed on; the memory has been ordered, on this device.
    unsafe { stream.launch(Launch { kernel, prepared, config, params }, accesses) }
}

/// For an empty launch: memory of another device is still an error.
#[cold]
pub(crate) fn check_devices(accesses: &[Access<'_>], stream: &Arc<StreamInner>) -> Result<()> {
    accesses.iter().try_for_each(|access| access.check_device(stream))
}

#[inline(never)]
fn check_shared_memory(kernel: &'static Kernel, stream: &StreamInner, config: &LaunchConfig) -> Result<()> {
    let limit = kernel.shared_memory_limit(stream.device().shared_memory_per_block());
    let bytes = config.shared_bytes;
    if bytes > limit {
        let device = stream.device().to_string().into();
        return Err(Error::Launch(LaunchError::SharedMemoryTooLarge {
            kernel: kernel.name(),
            bytes,
            device,
            limit,
        }));
    }
    Ok(())
}

/// Checks whether the stream's device supports the attributes of a launch of `kernel`.
fn check_attributes(
    kernel: &'static Kernel,
    stream: &StreamInner,
    config: &LaunchConfig,
    attributes: &LaunchAttributes,
) -> Result<()> {
    let device = stream.device();
    if let Some(priority) = attributes.priority {
        device.check_priority(priority)?;
    }
    if let Some(cluster) = config.stated_cluster(kernel) {
        device.backend().allow_cluster(kernel, cluster)?;
    }
    if let Some(event) = attributes.completion_event {
        event.checked(kernel.name(), device.backend())?;
    }
    device.check_access_policy_window(attributes.access_policy_window)
}

/// Indices of threads are 32 bits wide on a device, and no index may be that of two threads.
#[inline]
fn check_threads<const R: usize>(kernel: &'static Kernel, grid: [u32; 3], block: [u32; 3]) -> Result<()> {
    let threads = |axis: usize| u64::from(grid[axis]) * u64::from(block[axis]);
    // Above the rank are one block and one thread.
    if (0..R).all(|axis| threads(axis) <= u64::from(u32::MAX)) {
        return Ok(());
    }
    Err(too_wide(kernel, std::array::from_fn(threads)))
}

#[cold]
fn too_wide(kernel: &'static Kernel, threads: [u64; 3]) -> Error {
    let limit = u32::MAX;
    let wide = Axis::ALL.into_iter().zip(threads).find(|(_, threads)| *threads > u64::from(limit));
    let (axis, threads) = wide.unwrap_or((Axis::X, threads[0]));
    Error::Launch(LaunchError::GridTooWide { kernel: kernel.name(), axis, threads, limit })
}
