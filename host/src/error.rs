//! What can go wrong on the host side. This file has [`Error`], each variant with the names, values and
//! limits at fault.
//!
//! `axis`, `launched` and `divergence` are parts of errors that users can read; `graph`, `foreign` and
//! `dlpack` are the errors of those modules; `display` formats parts for messages.

use std::panic::Location;

mod axis;
mod display;
pub(crate) mod divergence;
pub(crate) mod dlpack;
pub(crate) mod foreign;
pub(crate) mod graph;
mod launched;
#[cfg(test)]
mod tests;

pub use axis::Axis;
pub use launched::{LaunchSites, LaunchedKernel};

use crate::device::Device;
use crate::dlpack::DlpackError;
use crate::error::divergence::{Divergence, LaneFault, SourcePlace, WaitingThreads};
use crate::error::graph::GraphError;
use crate::foreign::ForeignError;
use crate::memory::ipc::IpcError;
use display::{ClustersOf, Extents, Free, LaunchedSince, List, On, OneThread, Place, Shape};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The oldest CUDA driver API version (major, minor) that works.
pub const NEEDED_DRIVER: (u32, u32) = (12, 0);

/// An error of the host runtime.
///
/// It is cheap to clone, can be sent between threads, and its text stands alone: it names the
/// kernel, device or buffer at fault, the value, and the limit. `Debug` shows that text, too, for `unwrap` and for a `main`
/// or a test that returns a [`Result`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[kernel]
/// pub fn half(t: Thread<1>, mut x: DisjointSlice<u32>) {
///     if let Some(x) = x.get_mut(t.index()) {
///         assert!(*x % 2 == 0, "{x} is odd");
///         *x /= 2;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[2, 4, 7])?;
/// kernels::half(&stream, Grid::cover(3), &mut x)?;
/// match stream.download(&x) {
///     Err(Error::KernelPanic { message, thread, .. }) => {
///         assert_eq!((&*message, thread), ("7 is odd", [2, 0, 0]));
///     }
///     other => panic!("{other:?}"),
/// }
/// let refused = kernels::half(&stream, Grid::new(1, 2000), &mut x);
/// assert!(matches!(refused, Err(Error::BlockTooLarge { .. })), "{refused:?}");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The CUDA driver library could not be opened.
    #[error(
        "no CUDA driver: {reason}; install the NVIDIA driver (525 or newer; it brings libcuda.so.1, on Windows nvcuda.dll), or use the CPU device (`Device::cpu()`, FERROGRID_DEVICE=cpu)"
    )]
    NoDriver {
        /// What the system's loader said.
        reason: Box<str>,
    },
    /// The driver works, but there is no CUDA device that it can use.
    #[error(
        "no CUDA device: the driver is there but finds no GPU (CUDA_VISIBLE_DEVICES hides devices; containers need the GPU passed in)"
    )]
    NoDevice,
    /// The installed driver is older than this crate needs.
    #[error(
        "the CUDA driver is too old: it supports CUDA {}.{}, this crate requires {}.{} or newer (driver 525 or newer)",
        found.0, found.1, needed.0, needed.1
    )]
    DriverTooOld {
        /// The CUDA version (major, minor) that the driver supports.
        found: (u32, u32),
        /// The version that is needed.
        needed: (u32, u32),
    },
    /// The driver lacks a function that this crate calls.
    #[error(
        "the CUDA driver (CUDA {}.{}) lacks the function `{symbol}`; install a driver for CUDA {}.{} or newer",
        found.0, found.1, needed.0, needed.1
    )]
    MissingSymbol {
        /// The function's name in the driver library.
        symbol: &'static str,
        /// The CUDA version (major, minor) that the driver says it supports.
        found: (u32, u32),
        /// The version that is needed.
        needed: (u32, u32),
    },
    /// There is no CUDA device of that number.
    #[error("there is no CUDA device {ordinal}: the driver has {count}, numbered from 0")]
    InvalidDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// An environment variable has a value that means nothing.
    #[error("the environment variable {variable} is {value:?}; expected {expected}")]
    Environment {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: Box<str>,
        /// What it may be.
        expected: &'static str,
    },
    /// A CPU device was asked for that cannot be made.
    #[error("a CPU device cannot have {value} as `{option}`; expected {expected}")]
    CpuOption {
        /// The function of `CpuOptions` that was given the value.
        option: &'static str,
        /// The value.
        value: usize,
        /// What it may be.
        expected: &'static str,
    },
    /// A call of the CUDA driver failed.
    #[error("{operation} failed{}: {name} ({code}): {text}", On(object))]
    Driver {
        /// The driver function.
        operation: &'static str,
        /// The kernel, device or size that it was called for; may be empty.
        object: Box<str>,
        /// The driver's error number.
        code: u32,
        /// The driver's name for it.
        name: Box<str>,
        /// The driver's text for it.
        text: Box<str>,
    },
    /// A kernel failed on a CUDA device after its launch had returned: it reached memory that is not its
    /// own, ran too long, or trapped. The device cannot be used again in this
    /// process: see [`Device::reset`](crate::Device::reset).
    #[error(
        "a kernel failed on the device, noticed at {operation}: {name} ({code}): {text}; {}; the device cannot be used again in this process",
        LaunchedSince(kernels)
    )]
    LaunchFailed {
        /// The kernels launched since the last successful synchronisation, oldest first; at most
        /// the last eight of each stream.
        kernels: Vec<LaunchedKernel>,
        /// The call that noticed it.
        operation: &'static str,
        /// The driver's error number.
        code: u32,
        /// The driver's name for it.
        name: Box<str>,
        /// The driver's text for it.
        text: Box<str>,
    },
    /// A kernel panicked. The device goes on: buffers keep their contents, other threads of the kernel
    /// ran to their end, and later launches work.
    ///
    /// On a GPU it is reported once, at the next call that waits for the device, on whichever stream;
    /// threads that panicked after the first and before that call are not reported. (Modules built with
    /// `PanicStrategy::Trap` give [`Error::LaunchFailed`] instead.)
    #[error(
        "kernel `{kernel}`{launched} panicked at {file}:{line}:{column} in block {}, thread {}: {message}",
        Place(block),
        Place(thread)
    )]
    KernelPanic {
        /// The kernel's name. On a GPU, all names that it may be, joined by ` or `, where several kernels
        /// launched since the last synchronisation have code of that line.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The panic's message.
        message: Box<str>,
        /// The source file of the panic; that of the kernel if a foreign panic hook hid it.
        file: Box<str>,
        /// The line, from 1.
        line: u32,
        /// The column, from 1; 0 if a foreign panic hook hid it.
        column: u32,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// The thread's index in the block, x first.
        thread: [u32; 3],
    },
    /// A kernel called a function of other device code, which has no native counterpart (CPU device). The stream goes on.
    #[error(
        "kernel `{kernel}`{launched} calls `{function}`, which is code for GPUs: name a function that the CPU device calls in its place at the declaration, `#[native(path)]`"
    )]
    NoNativeFunction {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The function's name in the code that is linked.
        function: &'static str,
    },
    /// A thread of a kernel has used up its stack, by calling too deep or by variables that are too large (CPU
    /// device; on a GPU that is [`Error::LaunchFailed`] or wrong values).
    ///
    /// The thread was left where it was: its variables are leaked, not dropped. The device goes on, and what the
    /// launch was to write holds any values. (Other systems than x86-64 Linux end the process, with a message.)
    #[error(
        "kernel `{kernel}`{launched} at {file}:{line} has used up the stack of {} KiB of {} in block {}; FERROGRID_CPU_STACK sets another size (in KiB)",
        bytes / 1024,
        OneThread(thread),
        Place(block)
    )]
    KernelStackOverflow {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The kernel's source file.
        file: &'static str,
        /// The line of the kernel, from 1.
        line: u32,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// The thread's index in the block, x first; `None` for a kernel that never waits in a build without debug
        /// assertions, where its threads run as one fast loop that keeps no account of them.
        thread: Option<[u32; 3]>,
        /// The size of the stack in bytes.
        bytes: usize,
    },
    /// Some threads of a block wait at a barrier that others never reach, because these have exited or wait
    /// elsewhere (CPU device; on a GPU such a kernel hangs or computes nonsense).
    #[error(
        "kernel `{kernel}`{launched}, block {}: its threads do not all reach the same barrier: {}",
        Place(block),
        Divergence(waiting, exited)
    )]
    BarrierDivergence {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// Who waits where.
        waiting: Vec<WaitingThreads>,
        /// The places in the block of the threads that have exited, x first.
        exited: Vec<[u32; 3]>,
    },
    /// Some blocks of a cooperative launch wait at a barrier of the grid after others have ended (CPU
    /// device; a GPU hangs).
    #[error(
        "kernel `{kernel}`{launched}: {waiting_blocks} blocks, the first {}, wait at the grid barrier at {place}, but {ended_blocks} blocks, the first {}, have ended",
        Place(waiting),
        Place(ended)
    )]
    GridBarrierDivergence {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// Where the first block waits.
        place: SourcePlace,
        /// The first block that waits, x first.
        waiting: [u32; 3],
        /// How many wait.
        waiting_blocks: u32,
        /// The first block that has ended, x first.
        ended: [u32; 3],
        /// How many have ended.
        ended_blocks: u32,
    },
    /// Some blocks of a cluster wait at its barrier after others have ended (CPU device; on a GPU such a kernel
    /// hangs or computes nonsense).
    #[error(
        "kernel `{kernel}`{launched}: {waiting_blocks} blocks, the first {}, wait at the cluster barrier at {place}, but {ended_blocks} blocks of the cluster, the first {}, have ended",
        Place(waiting),
        Place(ended)
    )]
    ClusterBarrierDivergence {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// Where the first block waits.
        place: SourcePlace,
        /// The first block that waits, x first.
        waiting: [u32; 3],
        /// How many wait.
        waiting_blocks: u32,
        /// The first block that has ended, x first.
        ended: [u32; 3],
        /// How many have ended.
        ended_blocks: u32,
    },
    /// Threads of a block bring different values to `Thread::assume_uniform`, or different regions of shared memory to one
    /// barrier (CPU device; on a GPU such a kernel hangs or computes nonsense).
    #[error(
        "kernel `{kernel}`{launched}, block {}, thread {}: it passes something else to {place} than other threads of the block: `assume_uniform` requires the same value of all threads, a barrier the same regions of shared memory",
        Place(block),
        Place(thread)
    )]
    Disagreement {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// The place in the block of a thread that brings something else, or nothing, x first.
        thread: [u32; 3],
        /// The call.
        place: SourcePlace,
    },
    /// Lanes of a warp do not come together to the warp operation that names them in its mask (CPU device;
    /// on a GPU that is an [`Error::KernelPanic`]).
    #[error(
        "kernel `{kernel}`{launched}, block {}, thread {}: the warp operation at {place} with mask {mask:#010x} needs lane {lane}, {fault}",
        Place(block),
        Place(thread)
    )]
    WarpDivergence {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// The place in the block of a thread that waits in vain, x first.
        thread: [u32; 3],
        /// Its mask.
        mask: u32,
        /// Where it waits.
        place: SourcePlace,
        /// The lane of its warp that keeps it from going on.
        lane: u32,
        /// How.
        fault: LaneFault,
    },
    /// A kernel waits for the whole grid, but its launch was not cooperative.
    #[error(
        "kernel `{kernel}`{launched} waits for the whole grid at {place}, but was not launched as a cooperative kernel"
    )]
    NotCooperative {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// Where.
        place: SourcePlace,
    },
    /// A cooperative launch has more threads than can be resident at the same time.
    #[error(
        "kernel `{kernel}`: a cooperative launch of {blocks} blocks of {threads} threads is too large: all must be resident at the same time, and {device} takes {limit} such blocks"
    )]
    TooManyResidentBlocks {
        /// The kernel's name.
        kernel: &'static str,
        /// The device.
        device: Box<str>,
        /// The blocks of the launch.
        blocks: u64,
        /// The threads of each.
        threads: u32,
        /// The most blocks of so many threads.
        limit: u64,
    },
    /// A block asks for more shared memory than the device has for one.
    #[error("kernel `{kernel}` needs {bytes} bytes of shared memory for a block, but {device} has {limit}")]
    SharedMemoryTooLarge {
        /// The kernel's name.
        kernel: &'static str,
        /// The device.
        device: Box<str>,
        /// The bytes requested.
        bytes: usize,
        /// The most that a block can have.
        limit: usize,
    },
    /// The CPU device got no memory for the stacks of a block's threads.
    #[error(
        "kernel `{kernel}`{launched}: no memory for the stack of another thread beside {stacks} others: {reason}; lower FERROGRID_CPU_STACK or FERROGRID_CPU_THREADS, or raise the system's limits (on Linux: vm.max_map_count)"
    )]
    ThreadStacks {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The stacks that this worker has.
        stacks: usize,
        /// What the system said.
        reason: Box<str>,
    },
    /// The buffer for printed text has a size already: kernels that print have been loaded.
    #[error(
        "the output buffer is in use, with {capacity} bytes: set its size before kernels that print are launched"
    )]
    OutputInUse {
        /// Its size in bytes.
        capacity: usize,
    },
    /// The buffer for printed text cannot have that size.
    #[error("an output buffer cannot have {bytes} bytes; expected {least} to {most}")]
    OutputCapacity {
        /// The bytes requested.
        bytes: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// There is not enough memory on the device.
    #[error("{device} is out of memory: {requested} bytes requested{}", Free(free, total))]
    OutOfMemory {
        /// The device.
        device: Box<str>,
        /// The bytes requested.
        requested: u64,
        /// The bytes free, where the device tells.
        free: Option<u64>,
        /// The bytes that the device has, where it tells.
        total: Option<u64>,
    },
    /// An allocation would go over the limit that was set for the device's memory pool.
    #[error(
        "{device}: {requested} bytes requested, but {used} of at most {limit} are in use (`MemoryPool::set_limit`)"
    )]
    MemoryLimit {
        /// The device.
        device: Box<str>,
        /// The bytes requested.
        requested: u64,
        /// The bytes in use.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// A pointer cannot be the start of a buffer, or a handle of the driver.
    #[error("the address {address:#x} cannot be taken over: {reason}")]
    InvalidPointer {
        /// The address.
        address: usize,
        /// Why not.
        reason: &'static str,
    },
    /// A view was to be taken apart in parts of no elements.
    #[error("a view cannot be split into chunks of 0 elements")]
    ZeroChunk,
    /// A view cannot be one of elements of another type.
    #[error("{length} elements of type `{from}` cannot be viewed as `{to}`: {reason}")]
    ViewCast {
        /// How many elements there are.
        length: usize,
        /// Their type.
        from: &'static str,
        /// The other type.
        to: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// A length times its element size does not fit in memory addresses.
    #[error("{length} elements of {element_size} bytes are more bytes than an address can count")]
    SizeOverflow {
        /// The number of elements.
        length: usize,
        /// The size of one in bytes.
        element_size: usize,
    },
    /// Two lengths that must agree do not.
    #[error("{operation}: the source has {source_length} elements, the target {target_length}")]
    LengthMismatch {
        /// What was to be done.
        operation: &'static str,
        /// The source's length in elements.
        source_length: usize,
        /// The target's length in elements.
        target_length: usize,
    },
    /// A view reaches over the end of what it views.
    #[error("the range {start}..{end} does not lie in {length} elements")]
    OutOfRange {
        /// The first element asked for.
        start: usize,
        /// One past the last.
        end: usize,
        /// How many there are.
        length: usize,
    },
    /// A 2-D view has more elements than its buffer.
    #[error("a view of {width} x {height} elements does not fit in {length} elements")]
    ViewTooLarge {
        /// The width asked for, in elements.
        width: usize,
        /// The height asked for, in rows.
        height: usize,
        /// How many elements there are.
        length: usize,
    },
    /// Rows with a pitch overlap, or reach over the end of what they are in.
    #[error(
        "{height} rows of {width} elements that start {pitch} apart do not lie side by side in {length} elements"
    )]
    PitchedView {
        /// The elements in a row.
        width: usize,
        /// The number of rows.
        height: usize,
        /// The elements from the start of a row to that of the next.
        pitch: usize,
        /// How many elements there are.
        length: usize,
    },
    /// A texture array cannot have these extents, or kernels cannot write it.
    #[error(
        "a {what} on {device} has 1 to {limit} elements along {axis} (CU_DEVICE_ATTRIBUTE_{attribute}), not {value}"
    )]
    TextureExtent {
        /// `texture array` or `surface`.
        what: &'static str,
        /// The device.
        device: Box<str>,
        /// The axis.
        axis: Axis,
        /// Elements along it.
        value: usize,
        /// The most that there may be.
        limit: u32,
        /// The attribute that has the limit, without `CU_DEVICE_ATTRIBUTE_`.
        attribute: &'static str,
    },
    /// A texture cannot be read by such a sampler.
    #[error("a texture cannot be read with this sampler: {reason}")]
    TextureSampler {
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// Two shapes that must agree do not.
    #[error(
        "{operation}: the source has {} rows of {} elements, the target {} of {}",
        from[1], from[0], to[1], to[0]
    )]
    ShapeMismatch {
        /// What was to be done.
        operation: &'static str,
        /// Width and height of the source, in elements.
        from: [usize; 2],
        /// Width and height of the target, in elements.
        to: [usize; 2],
    },
    /// A length does not divide into groups.
    #[error(
        "{length} elements cannot be viewed in groups of {group}: {} would be left over; take a slice without them",
        length % group
    )]
    UnevenGroups {
        /// How many elements there are.
        length: usize,
        /// How many make a group.
        group: usize,
    },
    /// A view does not start where a group may.
    #[error(
        "a view cannot be in groups of {group} elements: it starts {excess} bytes after a multiple of 16; let it start at a multiple of {group} elements of the buffer"
    )]
    UnalignedGroups {
        /// How many elements make a group.
        group: usize,
        /// The bytes from the multiple of 16 before it.
        excess: usize,
    },
    /// A buffer was used on a stream of another device.
    #[error(
        "a buffer of {buffer} was used on a stream of {stream}: copy it there first (`Stream::copy_peer`, `Stream::duplicate_peer`)"
    )]
    DeviceMismatch {
        /// The buffer's device.
        buffer: Box<str>,
        /// The stream's device.
        stream: Box<str>,
    },
    /// A device cannot reach the memory of another.
    #[error(
        "{device} cannot use the memory of {peer} in place; copies between them work (`Stream::copy_peer`)"
    )]
    NoPeerAccess {
        /// The device.
        device: Box<str>,
        /// The device whose memory it was to use.
        peer: Box<str>,
    },
    /// A grid has more blocks along an axis than the device takes.
    #[error("kernel `{kernel}`: the grid has {value} blocks along {axis}, the device's limit is {limit}")]
    GridTooLarge {
        /// The kernel's name.
        kernel: &'static str,
        /// The axis.
        axis: Axis,
        /// Blocks along it.
        value: u64,
        /// The device's limit.
        limit: u32,
    },
    /// A grid has more threads along an axis than a kernel's indices can number.
    #[error(
        "kernel `{kernel}`: the grid has {threads} threads along {axis}, and a kernel numbers at most {limit}: launch fewer, each for several elements (`t.grid_stride(..)`)"
    )]
    GridTooWide {
        /// The kernel's name.
        kernel: &'static str,
        /// The axis.
        axis: Axis,
        /// Threads along it.
        threads: u64,
        /// The most that there may be.
        limit: u32,
    },
    /// A slice has more elements than a kernel indexes that is not declared `wide`.
    #[error(
        "kernel `{kernel}`: `{argument}` has {length} elements, and the kernel indexes at most {limit}: declare it `#[kernel(wide)]` for more"
    )]
    SliceTooLong {
        /// The kernel's name.
        kernel: &'static str,
        /// The kernel's parameter.
        argument: &'static str,
        /// The elements.
        length: usize,
        /// The most that there may be.
        limit: u32,
    },
    /// Slices have different shapes of which the kernel says that they have the same.
    #[error(
        "kernel `{kernel}`: `{}` has {} elements and `{}` {}: the kernel requires the same shape, `same_shape({}, {})`",
        .arguments[0], Extents(&.shapes[0]), .arguments[1], Extents(&.shapes[1]), .arguments[0], .arguments[1]
    )]
    ShapesDiffer {
        /// The kernel's name.
        kernel: &'static str,
        /// Two of the kernel's parameters.
        arguments: [&'static str; 2],
        /// Elements along each axis of each of them, x first; 1 above the rank.
        shapes: [[usize; 3]; 2],
    },
    /// A launch has more blocks than an output has rows (`DisjointRows`), one of which belongs to each block: what the
    /// others compute would be lost.
    #[error(
        "kernel `{kernel}`: {blocks} blocks, and `{argument}` has a row for {rows}: each block needs a row of its own; \
         `view_2d_mut(width, height)` takes the length of a row first, then the number of rows"
    )]
    MoreBlocksThanRows {
        /// The kernel's name.
        kernel: &'static str,
        /// The parameter's name.
        argument: &'static str,
        /// Blocks of the grid.
        blocks: u32,
        /// Rows of the output.
        rows: usize,
    },
    /// A launch has more blocks along an axis than an output has tiles (`DisjointTiles`), one of which belongs to each
    /// block: what the others compute would be lost.
    #[error(
        "kernel `{kernel}`: {blocks} blocks along {axis}, and `{argument}` has tiles for {tiles}: each block needs a tile of \
         its own"
    )]
    MoreBlocksThanTiles {
        /// The kernel's name.
        kernel: &'static str,
        /// The parameter's name.
        argument: &'static str,
        /// The axis.
        axis: Axis,
        /// Blocks of the grid along it.
        blocks: u32,
        /// Tiles of the output along it, the last one perhaps cut off.
        tiles: usize,
    },
    /// A grid made with `Grid::new` or `Grid::blocks` has a negative number of blocks along an axis.
    #[error("kernel `{kernel}`: the grid has {value} blocks along {axis}; a grid has 0 or more")]
    GridNegative {
        /// The kernel's name.
        kernel: &'static str,
        /// The axis.
        axis: Axis,
        /// Blocks along it.
        value: i64,
    },
    /// A block is longer along an axis than the device takes.
    #[error("kernel `{kernel}`: a block has {value} threads along {axis}, the device's limit is {limit}")]
    BlockTooLarge {
        /// The kernel's name.
        kernel: &'static str,
        /// The axis.
        axis: Axis,
        /// Threads along it.
        value: u64,
        /// The device's limit.
        limit: u32,
    },
    /// A block has no threads along an axis.
    #[error("kernel `{kernel}`: a block has {value} threads along {axis}; it needs at least 1")]
    BlockEmpty {
        /// The kernel's name.
        kernel: &'static str,
        /// The axis.
        axis: Axis,
        /// Threads along it, 0 or a negative number.
        value: i64,
    },
    /// A block has another shape than the kernel's `#[kernel(block = ...)]` says.
    #[error(
        "kernel `{kernel}` is compiled for blocks of {} and no others, but this launch has blocks of {}",
        Shape(required),
        Shape(found)
    )]
    BlockMismatch {
        /// The kernel's name.
        kernel: &'static str,
        /// The shape that it is compiled for, x first.
        required: [u32; 3],
        /// The shape of the launch, x first.
        found: [u32; 3],
    },
    /// A grid has a number of blocks along an axis that does not divide into the clusters of the kernel.
    #[error(
        "kernel `{kernel}`: the grid has {blocks} blocks along {axis}, which is no multiple of the {cluster} blocks that make a cluster"
    )]
    PartialCluster {
        /// The kernel's name.
        kernel: &'static str,
        /// The axis.
        axis: Axis,
        /// Blocks of the grid along it.
        blocks: u32,
        /// Blocks of a cluster along it.
        cluster: u32,
    },
    /// A launch asks for clusters of another size than the kernel is compiled for, or for any where it takes none.
    #[error("kernel `{kernel}` {}; the launch asks for clusters of {}", ClustersOf(required), Shape(found))]
    ClusterMismatch {
        /// The kernel's name.
        kernel: &'static str,
        /// The blocks of a cluster that it is compiled for, x first; `None` if it is not compiled for clusters.
        required: Option<[u32; 3]>,
        /// The blocks that the launch asks for, x first.
        found: [u32; 3],
    },
    /// A launch asks for clusters with an impossible number of blocks along an axis.
    #[error("kernel `{kernel}`: {value} blocks of a cluster along {axis}; there can be 1 to {limit}")]
    ClusterSize {
        /// The kernel's name.
        kernel: &'static str,
        /// The axis.
        axis: Axis,
        /// The number asked for.
        value: i64,
        /// The most blocks of a cluster on any device.
        limit: u32,
    },
    /// A kernel with clusters was launched on a device that has none.
    #[error(
        "kernel `{kernel}` has clusters of {}, which need compute capability 9.0; {device} has {}.{}",
        Shape(cluster), capability.0, capability.1
    )]
    NoClusters {
        /// The kernel's name.
        kernel: &'static str,
        /// Blocks of a cluster, x first.
        cluster: [u32; 3],
        /// The device.
        device: Box<str>,
        /// Its compute capability (major, minor).
        capability: (u32, u32),
    },
    /// A kernel with clusters was compiled for architectures only that have none.
    #[error(
        "kernel `{kernel}` has clusters, but the code that runs on {device} was compiled for sm_{architecture}: build for sm_90 or a later architecture, too (FERROGRID_ARCH=sm_75,sm_90)"
    )]
    NoClusterCode {
        /// The kernel's name.
        kernel: &'static str,
        /// The device.
        device: Box<str>,
        /// The architecture that the code was compiled for: 75 for `sm_75`.
        architecture: u32,
    },
    /// A device does not take clusters of so many blocks, of this kernel with so much shared memory.
    #[error(
        "kernel `{kernel}`: {device} takes clusters of {limit} such blocks at most, not of {}",
        Shape(cluster)
    )]
    ClusterTooLarge {
        /// The kernel's name.
        kernel: &'static str,
        /// The device.
        device: Box<str>,
        /// Blocks of a cluster, x first.
        cluster: [u32; 3],
        /// The most blocks that it can have.
        limit: u32,
    },
    /// A block has more threads than the device (or the kernel, by its use of registers) takes.
    #[error("kernel `{kernel}`: a block of {} has {threads} threads, the limit is {limit}", Shape(block))]
    TooManyThreads {
        /// The kernel's name.
        kernel: &'static str,
        /// The block's shape, x first.
        block: [u32; 3],
        /// Its threads.
        threads: u64,
        /// The limit.
        limit: u32,
    },
    /// A volume needs more elements than there are.
    #[error(
        "a view of {width} x {height} x {depth} elements is larger than the {length} elements that there are"
    )]
    VolumeTooLarge {
        /// Elements per row.
        width: usize,
        /// Rows per layer.
        height: usize,
        /// Layers.
        depth: usize,
        /// The elements that there are.
        length: usize,
    },
    /// A kernel of a module without device code was launched on a CUDA device.
    #[error(
        "kernel `{kernel}` has no device code, and runs on CPU devices only: {}",
        reason.unwrap_or("its module is `host_only`; drop that, and build with build.rs")
    )]
    NoDeviceCode {
        /// The kernel's name.
        kernel: &'static str,
        /// Why the build step could not compile it; none if it was not asked to.
        reason: Option<&'static str>,
    },
    /// None of the compiled architectures runs on the device.
    #[error(
        "kernel `{kernel}` was compiled for {}, but {device} has compute capability {}.{}",
        List(available), capability.0, capability.1
    )]
    NoImageForDevice {
        /// The kernel's name.
        kernel: &'static str,
        /// The architectures that it was compiled for.
        available: Vec<&'static str>,
        /// The device.
        device: Box<str>,
        /// Its compute capability (major, minor).
        capability: (u32, u32),
    },
    /// A `#[constant]` has another size on the device than on the host.
    #[error(
        "constant `{constant}` has {bytes} bytes on the host, but {found} on the device: check for a `cfg` that differs between the two"
    )]
    ConstantSize {
        /// The constant's name.
        constant: &'static str,
        /// Its bytes on the host.
        bytes: usize,
        /// Its bytes on the device.
        found: usize,
    },
    /// The driver refused the compiled module.
    #[error("the device code of kernel `{kernel}` does not load on {device}:\n{log}")]
    ModuleLoad {
        /// The kernel that was to be launched.
        kernel: &'static str,
        /// The device.
        device: Box<str>,
        /// For each architecture tried: the driver's error and its compiler's log.
        log: Box<str>,
    },
    /// A thread of the CPU device could not be started.
    #[error("the CPU device cannot start a thread: {reason}")]
    WorkerThread {
        /// What the system said.
        reason: Box<str>,
    },
    /// A function of the host in a stream panicked.
    #[error("a host function in a stream panicked: {message}")]
    HostFnPanic {
        /// The panic's message.
        message: Box<str>,
    },
    /// A stream or a launch cannot have this priority.
    #[error(
        "a stream or launch cannot have the priority {priority}: the device has {greatest} (first) to {least} (last)"
    )]
    PriorityOutOfRange {
        /// The priority asked for.
        priority: i32,
        /// The least priority, which is the highest number.
        least: i32,
        /// The greatest priority, which is the lowest number.
        greatest: i32,
    },
    /// Work was to be enqueued on the default stream of another thread.
    #[error(
        "this is the default stream of another thread on {device}, which alone can enqueue work there: use `Device::per_thread_stream` in each thread, or share a stream of `Device::new_stream`"
    )]
    StreamOfOtherThread {
        /// The device.
        device: Box<str>,
    },
    /// The part of an access policy window that is to be hits is no part of it.
    #[error("the hit ratio of an access policy window is {ratio}; expected 0 to 1")]
    HitRatio {
        /// The ratio asked for.
        ratio: Box<str>,
    },
    /// An access policy window has more bytes than the device takes.
    #[error(
        "an access policy window has {bytes} bytes: {device} takes {limit} at most (MAX_ACCESS_POLICY_WINDOW_SIZE); give it a slice of the memory"
    )]
    AccessPolicyWindowTooLarge {
        /// Its bytes.
        bytes: usize,
        /// The device.
        device: Box<str>,
        /// The most bytes.
        limit: usize,
    },
    /// A launch cannot record the event that it names.
    #[error("kernel `{kernel}`: a launch cannot record this event: {reason}")]
    LaunchEvent {
        /// The kernel's name.
        kernel: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// An event was recorded on a stream of another device.
    #[error("an event of {event} was recorded on a stream of {stream}: make one of that device")]
    EventDevice {
        /// The event's device.
        event: Box<str>,
        /// The stream's device.
        stream: Box<str>,
    },
    /// A context, or a stream of another library, is not of the context that this crate uses.
    #[error("the handle is not of the primary context of {device}; this crate uses no other context")]
    ForeignContext {
        /// The device.
        device: Box<str>,
    },
    /// No block of a kernel fits on a multiprocessor of the device.
    #[error("kernel `{kernel}`: no block with these resources fits on a multiprocessor of {device}")]
    NoBlockFits {
        /// The kernel's name.
        kernel: &'static str,
        /// The device.
        device: Box<str>,
    },
    /// Code that this program did not compile could not be used.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// A graph could not be recorded, updated or launched.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Memory or an event could not be shared with other processes.
    #[error(transparent)]
    Ipc(#[from] IpcError),
    /// Kernels from text could not be compiled or launched.
    #[cfg(feature = "jit")]
    #[error(transparent)]
    Source(#[from] crate::source::SourceError),
    /// A tensor of another library cannot be taken over, or a buffer not be given away as one.
    #[error(transparent)]
    Dlpack(#[from] DlpackError),
    /// NVIDIA's management library is absent, or failed.
    #[cfg(feature = "nvml")]
    #[error("NVML failed: {reason}; it comes with the NVIDIA driver (libnvidia-ml.so.1)")]
    Nvml {
        /// What it said.
        reason: Box<str>,
    },
    /// A device attribute has no such name.
    #[error(
        "there is no device attribute `{name}`; the names are those of `CUdevice_attribute`, such as `MULTIPROCESSOR_COUNT`"
    )]
    UnknownAttribute {
        /// The name asked for.
        name: Box<str>,
    },
    /// A device does not have what was asked for.
    #[error("{operation} is not supported on {device}: {reason}")]
    Unsupported {
        /// What was asked for.
        operation: &'static str,
        /// The device.
        device: Box<str>,
        /// Why there is no such thing.
        reason: &'static str,
    },
    /// A handle is from before a [reset](crate::Device::reset) of its device: what it stood for is gone.
    #[error(
        "{device} has been reset: use the device that `Device::reset` or `Device::cuda` returns, and create its streams and buffers again"
    )]
    DeviceReset {
        /// The device.
        device: Box<str>,
    },
    /// A device cannot be reset while the host has memory that would go with it.
    #[error(
        "{device} cannot be reset: drop {pinned} allocations of page-locked and {managed} of managed memory first"
    )]
    HostMemoryInUse {
        /// The device.
        device: Box<str>,
        /// How many allocations of page-locked memory there are ([`PinnedBuffer`](crate::PinnedBuffer)).
        pinned: usize,
        /// How many of managed memory ([`ManagedBuffer`](crate::ManagedBuffer)).
        managed: usize,
    },
    /// A buffer that grows has room for fewer elements.
    #[error("a buffer that can grow to {max_len} elements has no room for {len}")]
    CapacityExceeded {
        /// The number of elements asked for.
        len: usize,
        /// The most that it can have.
        max_len: usize,
    },
    /// Two events cannot be compared in time.
    #[error("the time between these events is not known: {reason}")]
    EventTime {
        /// Why not.
        reason: &'static str,
    },
}

impl Error {
    /// The same, of a kernel that was launched there.
    pub(crate) fn launched_at(mut self, site: &'static Location<'static>) -> Self {
        match &mut self {
            Error::KernelPanic { launched, .. }
            | Error::NoNativeFunction { launched, .. }
            | Error::KernelStackOverflow { launched, .. }
            | Error::BarrierDivergence { launched, .. }
            | Error::GridBarrierDivergence { launched, .. }
            | Error::ClusterBarrierDivergence { launched, .. }
            | Error::Disagreement { launched, .. }
            | Error::WarpDivergence { launched, .. }
            | Error::NotCooperative { launched, .. }
            | Error::ThreadStacks { launched, .. } => *launched = LaunchSites::from_iter([site]),
            _ => {}
        }
        self
    }

    /// That memory or a graph of one device was to be used on another.
    #[cold]
    pub(crate) fn device_mismatch(owner: &Device, user: &Device) -> Self {
        let mut devices = [owner, user].into_iter();
        // Two may have one name, where one is from before a reset.
        if let Some(error) = devices.find_map(|device| device.backend().was_reset()) {
            return error;
        }
        Error::DeviceMismatch { buffer: owner.to_string().into(), stream: user.to_string().into() }
    }

    /// Whether a device that says so runs nothing more of what it was given.
    pub(crate) fn ends_all_work(&self) -> bool {
        matches!(self, Error::LaunchFailed { .. } | Error::DeviceReset { .. })
    }

    pub(crate) fn unsupported(operation: &'static str, device: &Device, reason: &'static str) -> Self {
        Error::Unsupported { operation, device: device.to_string().into(), reason }
    }
}
