//! The shape of a launch: numbers of blocks and threads, with the rank in the type, checked against a
//! device's limits. `shape` is the shape that was checked.

mod shape;
#[cfg(test)]
pub(crate) mod tests;

use shape::{
    check_block, check_clusters, check_grid, checked_block, checked_cluster, cut, default_block, pad,
};

use crate::backend::{LaunchAttributes, LaunchConfig, Limits};
use crate::error::{Axis, Error, LaunchError, Result};
use crate::kernel::Kernel;
use crate::kernel::dimensions::Dimensions;

/// The shape of a launch of rank `R` (1, 2 or 3): the elements to cover, or the exact blocks.
///
/// Axis x comes first and is the fastest: neighbouring threads differ in x.
///
/// ```
/// use ferrogrid_host::Grid;
///
/// let line = Grid::cover(1_000_000);               // one thread per element, blocks of 256
/// let image = Grid::cover([1920, 1080]);           // one thread per pixel, blocks of 32 x 8
/// let tiles = Grid::cover([4096, 4096]).with_block([16, 16]);
/// let exact = Grid::new(132, 1024);                // 132 blocks of 1024 threads
/// # let _: (Grid<1>, Grid<2>, Grid<2>, Grid<1>) = (line, image, tiles, exact);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid<const R: usize> {
    size: Size<R>,
    block: Option<[u32; R]>,
    cluster: Option<[u32; R]>,
    /// The requested attributes: few, and small, because every launch copies its grid.
    attributes: Option<LaunchAttributes>,
    /// The first number that exceeds 32 bits, which no launch accepts.
    unfit: Option<Unfit>,
}

// Every launch copies its grid.
const _: () = assert!(size_of::<Grid<1>>() <= 96 && size_of::<Grid<3>>() <= 128);

/// A number of blocks or threads that has not 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Unfit {
    counted: Counted,
    axis: Axis,
    /// Not as an `i128`, which would be aligned to 16 bytes: every launch copies its grid.
    is_negative: bool,
    magnitude: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Blocks,
    Threads,
    BlocksOfCluster,
}

/// The maximum blocks of a cluster on any device.
const MAX_CLUSTER: u32 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Size<const R: usize> {
    Cover([usize; R]),
    Blocks([u32; R]),
    Clusters([u32; R]),
}

/// The argument of [`Grid::cover`]: `usize` for rank 1, `[usize; R]` for any rank.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Extent;
///
/// let image: Vec<f32> = vec![0.0; 640 * 480];
/// assert_eq!(image.len().extent(), [640 * 480]); // rank 1: the number
/// assert_eq!([640, 480].extent(), [640, 480]); // rank 2: width, height
/// let (line, plane): (Grid<1>, Grid<2>) = (Grid::cover(image.len()), Grid::cover([640, 480]));
/// # assert_ne!(line, Grid::cover(1));
/// # assert_ne!(plane, Grid::cover([1, 1]));
/// # Ok(()) }
/// ```
pub trait Extent<const R: usize> {
    /// Elements along each axis, x first.
    fn extent(self) -> [usize; R];
}

impl Extent<1> for usize {
    fn extent(self) -> [usize; 1] {
        [self]
    }
}

impl<const R: usize> Extent<R> for [usize; R] {
    fn extent(self) -> [usize; R] {
        self
    }
}

/// The numbers in 32 bits, and the first that exceeds them or is negative, which is replaced by 0.
fn narrow<const R: usize>(numbers: [i128; R], counted: Counted) -> ([u32; R], Option<Unfit>) {
    let mut unfit = None;
    let narrow = std::array::from_fn(|axis| {
        let value = numbers[axis];
        u32::try_from(value).unwrap_or_else(|_| {
            let axis = *Axis::ALL.get(axis).unwrap_or(&Axis::Z);
            // Of a type with at most 64 bits.
            let (is_negative, magnitude) = (value < 0, value.unsigned_abs() as u64);
            unfit = unfit.or(Some(Unfit { counted, axis, is_negative, magnitude }));
            0
        })
    });
    (narrow, unfit)
}

impl<const R: usize> Grid<R> {
    /// At least one thread for each of `extent` elements, x first: `n`, `[width, height]` or
    /// `[width, height, depth]`.
    ///
    /// Blocks have the shape that the kernel fixes, else 256, 32 x 8 or 8 x 8 x 8 threads (fewer for a
    /// kernel with `max_threads`), unless set by [`Grid::with_block`]. The
    /// last block along an axis may reach over the end; the kernel's own bounds check is for that.
    /// Covering 0 elements launches nothing, and is not an error. For a kernel with clusters the number of blocks is
    /// raised to whole clusters.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// #[kernel]
    /// pub fn double(t: Thread<1>, mut x: DisjointSlice<u32>) {
    ///     if let Some(x) = x.get_mut(t.index()) { // there are more threads than elements
    ///         *x *= 2;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&[1, 2, 3])?;
    /// kernels::double(&stream, Grid::cover(x.len()), &mut x)?; // one block of 256 threads
    /// kernels::double(&stream, Grid::cover(x.len()).with_block(32), &mut x)?;
    /// assert_eq!(stream.download(&x)?, [4, 8, 12]);
    /// # Ok(()) }
    /// ```
    pub fn cover(extent: impl Extent<R>) -> Self {
        Grid::of(Size::Cover(extent.extent()))
    }

    /// Exactly `blocks` blocks of `threads_per_block` threads, x first, each `u32` or `usize`, for rank 2 and 3 an array.
    /// 0 blocks along an axis launch nothing, and are not an error, as for [`Grid::cover`]: `n.div_ceil(256)` may be 0.
    ///
    /// ```
    /// use ferrogrid_host::Grid;
    ///
    /// let x = vec![0.0_f32; 1000];
    /// let line: Grid<1> = Grid::new(x.len().div_ceil(256), 256);
    /// let plane: Grid<2> = Grid::new([4, 2], [32, 8]);
    /// ```
    ///
    /// # Errors
    /// None here; the error of the launch names the number and the device's limit.
    pub fn new(blocks: impl Dimensions<R>, threads_per_block: impl Dimensions<R>) -> Self {
        let grid = Grid::blocks(blocks);
        let (block, unfit_block) = narrow(threads_per_block.dimensions(), Counted::Threads);
        // Threads may still be replaced.
        Grid { block: Some(block), unfit: grid.unfit.or(unfit_block), ..grid }
    }

    /// Exactly `blocks` blocks, x first, of the shape that [`Grid::cover`] uses: that of the kernel, otherwise 256, 32 x 8 or
    /// 8 x 8 x 8 threads.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// const TILE: usize = 64;
    ///
    /// /// The sum of each row.
    /// #[kernel(block = TILE)]
    /// pub fn sums(t: Thread<1>, x: Plane<f32>, mut y: DisjointRows<f32>, mut scratch: Shared<Scratch<f32>>) {
    ///     let row = &x[t.block_idx()[0] as usize];
    ///     let mine = t.block_stride(row.len()).map(|i| row[i]).sum();
    ///     let sum = t.block_reduce(&mut scratch, mine, |a, b| a + b);
    ///     y.fill_with(&t, |_| sum);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (x, mut sums) = (stream.fill(0.5_f32, 3000)?, stream.zeros(3)?);
    /// kernels::sums(&stream, Grid::blocks(3), x.view_2d(1000, 3)?, sums.view_2d_mut(1, 3)?)?;
    /// assert_eq!(stream.download(&sums)?, [500.0; 3]);
    /// assert_eq!(kernels::sums::grid(3), Grid::new(3, 64)); // with the block of the kernel
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None here; the error of the launch names the number and the device's limit.
    pub fn blocks(blocks: impl Dimensions<R>) -> Self {
        let (blocks, unfit) = narrow(blocks.dimensions(), Counted::Blocks);
        Grid { unfit, ..Grid::of(Size::Blocks(blocks)) }
    }

    /// Exactly `clusters` clusters of `blocks_per_cluster` blocks of `threads_per_block` threads, x first: as cuda.core's
    /// `LaunchConfig(grid=.., cluster=.., block=..)` counts. CUDA itself counts blocks:
    /// `Grid::new(clusters * blocks_per_cluster, threads_per_block).with_cluster(blocks_per_cluster)` is the same.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Blocks in the grid, and in a cluster.
    /// #[kernel(cluster)]
    /// pub fn count(t: Thread<1>, mut y: DisjointSlice<[u32; 2]>) {
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = [t.grid_dim()[0], t.cluster_blocks()];
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.upload(&[[0; 2]])?;
    /// kernels::count(&stream, Grid::of_clusters(5, 2, 32), &mut y)?;
    /// assert_eq!(stream.download(&y)?, [[10, 2]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None here; those of the launch are as for [`Grid::new`] and [`Grid::with_cluster`].
    pub fn of_clusters(
        clusters: impl Dimensions<R>,
        blocks_per_cluster: impl Dimensions<R>,
        threads_per_block: impl Dimensions<R>,
    ) -> Self {
        let blocks = Grid::new(clusters, threads_per_block);
        let size = match blocks.size {
            Size::Blocks(clusters) => Size::Clusters(clusters),
            other => other,
        };
        Grid { size, ..blocks }.with_cluster(blocks_per_cluster)
    }

    fn of(size: Size<R>) -> Self {
        Grid { size, block: None, cluster: None, attributes: None, unfit: None }
    }

    /// The same with blocks of `threads` threads, x first.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn threads(t: Thread<1>, mut y: DisjointSlice<u32>) {
    /// #     if let Some(y) = y.get_mut(t.index()) {
    /// #         *y = t.block_dim()[0];
    /// #     }
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut y = stream.zeros(3)?;
    /// kernels::threads(&stream, Grid::cover(3).with_block(64), &mut y)?; // each thread tells how many a block has
    /// assert_eq!(stream.download(&y)?, [64; 3]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_block(self, threads: impl Dimensions<R>) -> Self {
        let (block, unfit) = narrow(threads.dimensions(), Counted::Threads);
        let unfit = self.unfit.filter(|unfit| unfit.counted != Counted::Threads).or(unfit);
        Grid { block: Some(block), unfit, ..self }
    }

    /// The same, whose blocks form clusters of `blocks` blocks, x first (`CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`). The grid is still
    /// counted in blocks, and is made of whole clusters: [`Grid::cover`] adds blocks for that, [`Grid::new`] must have them;
    /// [`Grid::of_clusters`] counts clusters.
    ///
    /// The kernel must be declared `#[kernel(cluster)]`. One with `#[kernel(cluster = [x, y])]` supports that size only. Kernels
    /// that were loaded support what they were compiled for. Every GPU with clusters supports up to 8 blocks, if their shared
    /// memory and registers allow it; [`Kernel::max_potential_cluster_size`](crate::Kernel::max_potential_cluster_size) returns the limit.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Each thread writes the sum of its cluster's elements.
    /// #[kernel(cluster, block = 32)]
    /// pub fn sums(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut own: Shared<[u32; 32]>) {
    ///     let i = t.index();
    ///     own.fill_with(&t, |_| x.get(i.get()).copied().unwrap_or(0));
    ///     let all = t.publish_cluster(own);
    ///     let sum = (0..t.cluster_blocks()).map(|rank| all.block(&t, rank).iter().sum::<u32>()).sum();
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = sum;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (x, mut y) = (stream.fill(1_u32, 96)?, stream.zeros(96)?);
    /// kernels::sums(&stream, Grid::cover(96), &x, &mut y)?; // three blocks, each by itself
    /// assert_eq!(stream.download(&y)?, [32; 96]);
    /// kernels::sums(&stream, Grid::cover(96).with_cluster(3), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?, [96; 96]);
    /// let refused = kernels::sums(&stream, Grid::new(3, 32).with_cluster(2), &x, &mut y);
    /// // `LaunchError::PartialCluster`: 3 blocks are no whole number of clusters.
    /// assert!(matches!(refused, Err(Error::Launch(_))), "{refused:?}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None here; the launch returns [`LaunchError::ClusterMismatch`], [`LaunchError::PartialCluster`],
    /// [`LaunchError::ClusterSize`], [`LaunchError::ClusterTooLarge`], [`LaunchError::NoClusters`] or
    /// [`LaunchError::NoClusterCode`].
    #[must_use]
    pub fn with_cluster(self, blocks: impl Dimensions<R>) -> Self {
        let (cluster, unfit) = narrow(blocks.dimensions(), Counted::BlocksOfCluster);
        let unfit = self.unfit.filter(|unfit| unfit.counted != Counted::BlocksOfCluster).or(unfit);
        Grid { cluster: Some(cluster), unfit, ..self }
    }

    pub(crate) fn with_attributes(mut self, change: impl FnOnce(&mut LaunchAttributes)) -> Self {
        change(self.attributes.get_or_insert_default());
        self
    }

    /// The same with clusters of that size, unless it has some itself.
    pub(crate) fn or_cluster(self, cluster: [u32; 3]) -> Self {
        match self.cluster {
            None if cluster != [1; 3] => Grid { cluster: Some(cut(cluster)), ..self },
            _ => self,
        }
    }

    /// The configured launch, without shared memory; `None` if there is nothing to cover.
    ///
    /// # Errors
    /// Those of `configure`.
    #[track_caller]
    pub(crate) fn resolve(&self, kernel: &Kernel, limits: &Limits) -> Result<Option<LaunchConfig>> {
        let mut config = LaunchConfig::new(0);
        Ok(self.configure(kernel, limits, &mut config)?.then_some(config))
    }

    /// Gives `config` the sizes and the attributes of a launch of `kernel`, in place: a result would be copied. `false` where
    /// there is nothing to cover.
    ///
    /// Every launch comes here, so each check covers all axes at once, and is examined only if it fails.
    ///
    /// # Errors
    /// For a size of 0 or over `limits`, with `kernel`, the axis, the value and the limit.
    #[inline]
    pub(crate) fn configure(
        &self,
        kernel: &Kernel,
        limits: &Limits,
        config: &mut LaunchConfig,
    ) -> Result<bool> {
        if let Some(unfit) = self.unfit {
            return Err(unfit.error(kernel.name(), limits));
        }
        let block = match (self.block, kernel.block()) {
            (block, Some(fixed)) => checked_block(kernel, fixed, block.unwrap_or(cut(fixed)))?,
            (Some(block), None) => block,
            (None, None) => cut(default_block::<R>(kernel.max_threads())),
        };
        let most = kernel.max_threads().unwrap_or(u32::MAX).min(limits.max_threads_per_block);
        let threads = block.iter().fold(1, |all: u64, threads| all.wrapping_mul((*threads).into()));
        if !fits(block.map(u64::from), limits.max_block) || threads > u64::from(most) {
            check_block(kernel.name(), pad(block), &limits.with_max_threads(kernel.max_threads()))?;
        }
        let mut blocks: [u64; R] = match self.size {
            Size::Cover(extent) => {
                std::array::from_fn(|axis| (extent[axis] as u64).div_ceil(u64::from(block[axis])))
            }
            Size::Blocks(blocks) | Size::Clusters(blocks) => blocks.map(u64::from),
        };
        let has_clusters = self.cluster.is_some() || kernel.cluster().is_some();
        let cluster = if has_clusters { self.add_clusters(kernel, &mut blocks)? } else { [1; 3] };
        if blocks.contains(&0) {
            return Ok(false);
        }
        if !fits(blocks, limits.max_grid) {
            check_grid(kernel.name(), blocks, limits)?;
        }
        // Within the limits, so below 2^32.
        (config.grid, config.block) = (pad(blocks.map(|blocks| blocks as u32)), pad(block));
        if has_clusters {
            check_clusters(kernel.name(), config.grid, cluster)?;
            config.cluster = cluster;
        }
        if has_clusters || self.attributes.is_some() || kernel.descriptor().dependent_launch {
            self.add_attributes(kernel, config);
        }
        Ok(true)
    }

    /// The cluster of a launch of `kernel`, of which `blocks` becomes whole ones.
    #[cold]
    fn add_clusters(&self, kernel: &Kernel, blocks: &mut [u64; R]) -> Result<[u32; 3]> {
        let cluster = match self.cluster {
            None => kernel.cluster().unwrap_or([1; 3]),
            Some(cluster) => checked_cluster(kernel, pad(cluster))?,
        };
        for (blocks, cluster) in blocks.iter_mut().zip(cluster.map(u64::from)) {
            match self.size {
                Size::Cover(_) => *blocks = blocks.checked_next_multiple_of(cluster).unwrap_or(u64::MAX),
                Size::Blocks(_) => {}
                Size::Clusters(_) => *blocks *= cluster,
            }
        }
        Ok(cluster)
    }

    /// Adds the attributes of a launch, if any.
    #[cold]
    fn add_attributes(&self, kernel: &Kernel, config: &mut LaunchConfig) {
        let mut attributes = self.attributes.unwrap_or_default();
        attributes.dependent_launch = kernel.descriptor().dependent_launch;
        let is_plain = attributes == LaunchAttributes::default() && config.stated_cluster(kernel).is_none();
        config.attributes = (!is_plain).then_some(attributes);
    }
}

impl Unfit {
    #[cold]
    fn error(self, kernel: &'static str, limits: &Limits) -> Error {
        let Unfit { counted, axis, is_negative, magnitude } = self;
        let negative = 0_i64.saturating_sub_unsigned(magnitude);
        Error::Launch(match (counted, is_negative) {
            (Counted::Blocks, false) => {
                let limit = limits.max_grid[axis as usize];
                LaunchError::GridTooLarge { kernel, axis, value: magnitude, limit }
            }
            (Counted::Threads, false) => {
                let limit = limits.max_block[axis as usize];
                LaunchError::BlockTooLarge { kernel, axis, value: magnitude, limit }
            }
            (Counted::Blocks, true) => LaunchError::GridNegative { kernel, axis, value: negative },
            (Counted::Threads, true) => LaunchError::BlockEmpty { kernel, axis, value: negative },
            (Counted::BlocksOfCluster, _) => {
                let value = if is_negative { negative } else { i64::try_from(magnitude).unwrap_or(i64::MAX) };
                LaunchError::ClusterSize { kernel, axis, value, limit: MAX_CLUSTER }
            }
        })
    }
}

/// Whether each extent is at least 1 and within `limits`.
#[inline]
fn fits<const R: usize>(sizes: [u64; R], limits: [u32; 3]) -> bool {
    (0..R).all(|axis| sizes[axis].wrapping_sub(1) < u64::from(limits[axis]))
}

/// A grid argument for the launch of a kernel of rank `R`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # /// y <- i + 1
/// # #[kernel]
/// # pub fn number(t: Thread<1>, mut y: DisjointSlice<u32>) {
/// #     let i = t.index();
/// #     if let Some(y) = y.get_mut(i) {
/// #         *y = i.get() as u32 + 1;
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::IntoGrid;
///
/// /// A custom launch function with the grid parameter of generated ones.
/// fn number(stream: &Stream, grid: impl IntoGrid<1>) -> ferrogrid::Result<Vec<u32>> {
///     let mut y = stream.zeros(3)?;
///     kernels::number(stream, grid.into_grid().with_block(32), &mut y)?;
///     stream.download(&y)
/// }
/// assert_eq!(number(&stream, Grid::cover(3))?, [1, 2, 3]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "the kernel runs over a grid of rank {R}, and `{Self}` is not one",
    label = "expected a `Grid<{R}>`",
    note = "the rank is that of the kernel's `Thread<{R}>`; `Grid::cover(n)` has rank 1, `Grid::cover([width, height])` rank 2, `Grid::cover([width, height, depth])` rank 3"
)]
pub trait IntoGrid<const R: usize> {
    /// The grid.
    fn into_grid(self) -> Grid<R>;
}

impl<const R: usize> IntoGrid<R> for Grid<R> {
    fn into_grid(self) -> Grid<R> {
        self
    }
}
