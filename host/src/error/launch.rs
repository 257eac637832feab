//! Errors of refused launches.

use super::Axis;
use super::display::{architectures, clusters_of, dimensions, extents};

/// Why a launch was refused, before anything of it ran.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # #[kernel(max_threads = 128)]
/// # pub fn few(_t: Thread<1>) {}
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::LaunchError;
///
/// // `#[kernel(max_threads = 128)]`
/// let refused = kernels::few(&stream, Grid::new(1, 200));
/// let Err(Error::Launch(LaunchError::TooManyThreads { threads: 200, limit, .. })) = refused else { panic!() };
/// assert_eq!(limit, 128);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
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
        .arguments[0], extents(&.shapes[0]), .arguments[1], extents(&.shapes[1]), .arguments[0], .arguments[1]
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
        /// Tiles of the output along it; the last one may be incomplete.
        tiles: usize,
    },
    /// The rows of what is copied by a tensor map (`TensorMap`, `BoxMap`) do not all begin at a multiple of 16 bytes.
    #[error(
        "kernel `{kernel}`: rows of `{argument}` begin {row} bytes after each other, and the first one {start} bytes after a multiple of 16: \
         a tensor map needs rows that begin at multiples of 16 bytes"
    )]
    TensorMapUnaligned {
        /// The kernel's name.
        kernel: &'static str,
        /// The parameter's name.
        argument: &'static str,
        /// The bytes from the start of a row to that of the next.
        row: usize,
        /// The bytes from a multiple of 16 to the first row.
        start: usize,
    },
    /// The rows to which a tensor map (`TensorMapMut`, `BoxMapMut`) stores do not end at a multiple of 16 bytes.
    #[error(
        "kernel `{kernel}`: rows of `{argument}` have {row} bytes: a tensor map stores to rows with multiples of 16 bytes, because \
         what is next to them would change, too"
    )]
    TensorMapPartial {
        /// The kernel's name.
        kernel: &'static str,
        /// The parameter's name.
        argument: &'static str,
        /// The bytes of a row.
        row: usize,
    },
    /// A plane or a tensor that is copied by a tensor map (`TensorMap`, `BoxMap`) has too many elements along an axis.
    #[error(
        "kernel `{kernel}`: `{argument}` has {value} elements along axis {axis}, and a tensor map at most {limit}"
    )]
    TensorMapTooLarge {
        /// The kernel's name.
        kernel: &'static str,
        /// The parameter's name.
        argument: &'static str,
        /// The axis: 0 is that of the elements of a row.
        axis: usize,
        /// Elements along it.
        value: usize,
        /// The most that there may be.
        limit: usize,
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
        dimensions(required),
        dimensions(found)
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
    #[error(
        "kernel `{kernel}` {}; the launch asks for clusters of {}",
        clusters_of(required),
        dimensions(found)
    )]
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
        /// The requested number.
        value: i64,
        /// The most blocks of a cluster on any device.
        limit: u32,
    },
    /// A kernel with clusters was launched on a device that has none.
    #[error(
        "kernel `{kernel}` has clusters of {}, which need compute capability 9.0; {device} has {}.{}",
        dimensions(cluster), capability.0, capability.1
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
        "kernel `{kernel}` has clusters, but the code that runs on {device} was compiled for sm_{architecture}: build for sm_90 or a later architecture, too (in the module's `arch = [..]`, if it has one, or by FERROGRID_ARCH=sm_75,sm_90)"
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
        dimensions(cluster)
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
    #[error(
        "kernel `{kernel}`: a block of {} has {threads} threads, the limit is {limit}",
        dimensions(block)
    )]
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
        architectures(available), capability.0, capability.1
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
    /// A launch cannot record the event that it names.
    #[error("kernel `{kernel}`: a launch cannot record this event: {reason}")]
    LaunchEvent {
        /// The kernel's name.
        kernel: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// No block of a kernel fits on a multiprocessor of the device.
    #[error("kernel `{kernel}`: no block with these resources fits on a multiprocessor of {device}")]
    NoBlockFits {
        /// The kernel's name.
        kernel: &'static str,
        /// The device.
        device: Box<str>,
    },
}
