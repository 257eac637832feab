//! Launch attributes of foreign kernels: cooperative launches, clusters, priority, programmatic dependent
//! launch.

use super::ForeignFunction;
use crate::error::foreign::ForeignError;
use crate::error::{Error, Result};
use crate::properties::attribute::DeviceAttribute;

impl ForeignFunction {
    /// The same kernel, all of whose blocks are resident at the same time in its launches
    /// (`CU_LAUNCH_ATTRIBUTE_COOPERATIVE`), so that they can wait for each other. A grid with more blocks than
    /// the device holds is refused at the launch ([`LaunchError::TooManyResidentBlocks`](crate::LaunchError::TooManyResidentBlocks)).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cuda(0)?;
    /// let stream = device.new_stream()?;
    /// // extern "C" __global__ void solve(float* x, int n), which calls cooperative_groups::this_grid().sync()
    /// let solve = device.load_file("solve.cubin")?.function("solve")?.with_cooperative_launch()?;
    /// let mut x = stream.zeros::<f32>(1 << 20)?;
    /// let blocks = solve.max_active_blocks_per_multiprocessor(256)? * device.properties()?.multiprocessor_count; // at most
    /// // SAFETY: these are its types, and it keeps to `n` elements.
    /// unsafe { solve.launch(&stream, Grid::new(blocks, 256), (&mut x, 1_i32 << 20))? };
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the device has no cooperative launches; or if the driver fails.
    pub fn with_cooperative_launch(mut self) -> Result<Self> {
        let device = &self.entry.device;
        if device.attribute(DeviceAttribute::COOPERATIVE_LAUNCH)? == 0 {
            return Err(Error::unsupported("a cooperative launch", device, "it has none"));
        }
        self.attributes.cooperative = true;
        Ok(self)
    }

    /// The same kernel, whose blocks form clusters of `cluster` blocks along each axis in its launches
    /// (`CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`; more than 8 blocks are opted in to). Grids must be made of
    /// whole clusters. [`Grid::with_cluster`](crate::Grid::with_cluster) says it for one launch.
    ///
    /// ```no_run
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{Device, Grid};
    ///
    /// let device = Device::cuda(0)?;
    /// let stream = device.new_stream()?;
    /// let stencil = device.load_file("stencil.ptx")?.function("stencil")?.with_clusters([4])?;
    /// let mut data = stream.zeros::<f32>(1 << 20)?;
    /// // SAFETY: extern "C" __global__ void stencil(float* data, unsigned n)
    /// unsafe { stencil.launch(&stream, Grid::new(4096, 256), (&mut data, 1_u32 << 20))? };
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`LaunchError::NoClusters`](crate::LaunchError::NoClusters) before compute capability 9.0; [`ForeignError::ClusterSize`] for a cluster
    /// of no blocks, or of more than can be counted; or if the driver fails.
    pub fn with_clusters<const R: usize>(self, cluster: [u32; R]) -> Result<Self> {
        const { assert!(1 <= R && R <= 3, "clusters have 1, 2 or 3 axes") };
        let cluster = std::array::from_fn(|axis| cluster.get(axis).copied().unwrap_or(1));
        let blocks = cluster.iter().try_fold(1_u32, |all, axis| all.checked_mul(*axis));
        if blocks.is_none_or(|blocks| blocks == 0) {
            return Err(ForeignError::ClusterSize { kernel: self.name(), cluster }.into());
        }
        self.entry.device.backend().allow_cluster(&self.entry.kernel, cluster)?;
        Ok(ForeignFunction { cluster, ..self })
    }

    /// The same kernel with this priority in its launches (`CU_LAUNCH_ATTRIBUTE_PRIORITY`), whatever
    /// that of the stream is: a lower number goes first.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cuda(0)?;
    /// let (_, greatest) = device.stream_priority_range()?;
    /// let urgent = device.load_file("step.ptx")?.function("step")?.with_priority(greatest)?;
    /// println!("{} goes first", urgent.name());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::PriorityOutOfRange`] outside [`Device::stream_priority_range`](crate::Device::stream_priority_range).
    pub fn with_priority(mut self, priority: i32) -> Result<Self> {
        self.entry.device.check_priority(priority)?;
        self.attributes.priority = Some(priority);
        Ok(self)
    }

    /// The same kernel, whose launches may begin before the launch before them on the stream has ended
    /// (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`, programmatic dependent launch), where the device has compute capability 9.0 and
    /// the code is for that. Nodes of graphs begin after those before them all the same. Kernels in Rust say
    /// `#[kernel(dependent_launch)]`.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cuda(0)?;
    /// let step = device.load_file("step.cubin")?.function("step")?;
    /// // SAFETY: it calls cudaGridDependencySynchronize() first.
    /// let step = unsafe { step.with_dependent_launch() };
    /// println!("{} overlaps with what is before it", step.name());
    /// # Ok(()) }
    /// ```
    ///
    /// # Safety
    /// Each thread of the kernel waits for the grids before it (`cudaGridDependencySynchronize()`, `griddepcontrol.wait`), also if it has
    /// nothing to do, and before that uses no memory but its parameters, shared and local memory: neither what the launch is
    /// given nor variables of the module.
    #[must_use]
    pub unsafe fn with_dependent_launch(mut self) -> Self {
        self.attributes.dependent_launch = true;
        self
    }
}
