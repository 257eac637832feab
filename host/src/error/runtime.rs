//! [`Error`], which every fallible function of this crate returns.

use super::display::{coordinates, for_object, free_of, suspects};
use super::dlpack::DlpackError;
use super::foreign::ForeignError;
use super::graph::GraphError;
use super::ipc::IpcError;
use super::nccl::NcclError;
#[cfg(feature = "jit")]
use super::source::SourceError;
use super::{Axis, KernelError, LaunchError, LaunchSites, LaunchedKernel};

/// An error of the host runtime.
///
/// It is cheap to clone, can be sent between threads, and its text is complete: it names the
/// kernel, device or buffer at fault, the value, and the limit. `Debug` shows that text, too, for `unwrap` and for a `main`
/// or a test that returns a [`Result`](super::Result).
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
/// use ferrogrid::LaunchError;
///
/// let mut x = stream.upload(&[2, 4, 7])?;
/// kernels::half(&stream, Grid::cover(3), &mut x)?;
/// match stream.download(&x) {
///     Err(Error::KernelPanic { message, thread, .. }) => {
///         assert_eq!((&*message, thread), ("7 is odd", [2, 0, 0]));
///     }
///     other => panic!("{other:?}"),
/// }
/// let refused = kernels::half(&stream, Grid::new(1, 2000), &mut x);
/// assert!(matches!(refused, Err(Error::Launch(LaunchError::BlockTooLarge { .. }))), "{refused:?}");
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
        /// The loader's message.
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
        /// The CUDA version (major, minor) that the driver supports.
        found: (u32, u32),
        /// The version that is needed.
        needed: (u32, u32),
    },
    /// There is no CUDA device of that number.
    #[error("there is no CUDA device {ordinal}: the driver has {count}, numbered from 0")]
    InvalidDevice {
        /// The requested number.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// An environment variable has an invalid value.
    #[error("the environment variable {variable} is {value:?}; expected {expected}")]
    Environment {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: Box<str>,
        /// What it may be.
        expected: &'static str,
    },
    /// A CPU device was requested with an impossible option.
    #[error("a CPU device cannot have {value} as `{option}`; expected {expected}")]
    CpuOption {
        /// The function of `CpuOptions` that got the value.
        option: &'static str,
        /// The value.
        value: usize,
        /// What it may be.
        expected: &'static str,
    },
    /// A call of the CUDA driver failed.
    #[error("{operation} failed{}: {name} ({code}): {text}", for_object(object))]
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
    /// A kernel failed on a CUDA device after its launch had returned: it accessed memory illegally,
    /// ran too long, or trapped. The device cannot be used again in this
    /// process: see [`Device::reset`](crate::Device::reset).
    #[error(
        "a kernel failed on the device, noticed at {operation}: {name} ({code}): {text}; {}; the device cannot be used again in this process",
        suspects(kernels)
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
    /// A kernel panicked. The device remains usable: buffers keep their contents, other threads of the
    /// kernel ran to completion, and later launches work.
    ///
    /// On a GPU it is reported once, at the next call that waits for the device, on whichever stream;
    /// threads that panicked after the first and before that call are not reported. (Modules built with
    /// `PanicStrategy::Trap` give [`Error::LaunchFailed`] instead.)
    #[error(
        "kernel `{kernel}`{launched} panicked at {file}:{line}:{column} in block {}, thread {}: {message}",
        coordinates(block),
        coordinates(thread)
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
    #[error("{device} is out of memory: {requested} bytes requested{}", free_of(free, total))]
    OutOfMemory {
        /// The device.
        device: Box<str>,
        /// The bytes requested.
        requested: u64,
        /// The free bytes, if the device reports them.
        free: Option<u64>,
        /// The bytes of the device, if it reports them.
        total: Option<u64>,
    },
    /// An allocation would exceed the limit of the device's memory pool.
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
    /// A view cannot be split into chunks of no elements.
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
    /// An array of ndarray is no argument as it is.
    #[cfg(feature = "ndarray")]
    #[error(
        "an array of shape {shape:?} with strides {strides:?} is not in standard layout, row after row; pass a copy by `as_standard_layout()`"
    )]
    ArrayLayout {
        /// The array's shape.
        shape: Box<[usize]>,
        /// Its strides, in elements.
        strides: Box<[isize]>,
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
    /// A function cannot work with the value of an argument.
    #[error("`{function}`: {argument} is {value}; expected {expected}")]
    Argument {
        /// The function.
        function: &'static str,
        /// The argument, or what is wrong about it.
        argument: &'static str,
        /// The value.
        value: Box<str>,
        /// What it may be.
        expected: &'static str,
    },
    /// A view extends beyond the end of its buffer.
    #[error("the range {start}..{end} does not lie in {length} elements")]
    OutOfRange {
        /// The requested first element.
        start: usize,
        /// One past the last.
        end: usize,
        /// How many there are.
        length: usize,
    },
    /// A 2-D view has more elements than its buffer.
    #[error("a view of {width} x {height} elements does not fit in {length} elements")]
    ViewTooLarge {
        /// The requested width, in elements.
        width: usize,
        /// The requested height, in rows.
        height: usize,
        /// How many elements there are.
        length: usize,
    },
    /// Rows with a pitch overlap, or extend beyond the end of their buffer.
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
    /// The axes of a permutation do not name each axis once.
    #[error("{axes:?} is no permutation of {} axes: each number from 0 on must be there once", axes.len())]
    NoPermutation {
        /// What was given.
        axes: Box<[usize]>,
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
    /// A volume needs more elements than are available.
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
        /// The available elements.
        length: usize,
    },
    /// A view of other than two or three axes needs more elements than are available.
    #[error("a view of {extent:?} elements is larger than the {length} elements that there are")]
    TensorTooLarge {
        /// The elements along each axis, the rows' first.
        extent: Vec<usize>,
        /// The available elements.
        length: usize,
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
        /// The system's message.
        reason: Box<str>,
    },
    /// A host function in a stream panicked.
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
        /// The requested priority.
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
    /// The hit ratio of an access policy window is not between 0 and 1.
    #[error("the hit ratio of an access policy window is {ratio}; expected 0 to 1")]
    HitRatio {
        /// The requested ratio.
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
    /// A launch was refused before any part of it ran.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The CPU device found a fault in a kernel that was running.
    #[error(transparent)]
    Kernel(#[from] KernelError),
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
    Source(#[from] SourceError),
    /// A tensor of another library cannot be taken over, or a buffer not be given away as one.
    #[error(transparent)]
    Dlpack(#[from] DlpackError),
    /// Devices could not communicate.
    #[error(transparent)]
    Nccl(#[from] NcclError),
    /// NVIDIA's management library is absent, or failed.
    #[cfg(feature = "nvml")]
    #[error("NVML failed: {reason}; it comes with the NVIDIA driver (libnvidia-ml.so.1)")]
    Nvml {
        /// NVML's message.
        reason: Box<str>,
    },
    /// A device attribute has no such name.
    #[error(
        "there is no device attribute `{name}`; the names are those of `CUdevice_attribute`, such as `MULTIPROCESSOR_COUNT`"
    )]
    UnknownAttribute {
        /// The requested name.
        name: Box<str>,
    },
    /// The device does not support an operation.
    #[error("{operation} is not supported on {device}: {reason}")]
    Unsupported {
        /// The operation.
        operation: &'static str,
        /// The device.
        device: Box<str>,
        /// Why it is not supported.
        reason: &'static str,
    },
    /// A handle is from before a [reset](crate::Device::reset) of its device: its object is gone.
    #[error(
        "{device} has been reset: use the device that `Device::reset` or `Device::cuda` returns, and create its streams and buffers again"
    )]
    DeviceReset {
        /// The device.
        device: Box<str>,
    },
    /// A device cannot be reset while the host has memory that the reset would free.
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
        /// The requested number of elements.
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
