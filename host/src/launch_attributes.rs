//! What a launch asks for beyond a grid: residence at the same time, clusters, priority. It must not know how the driver
//! is told.

/// The attributes of a launch (`CUlaunchAttribute`), as far as the kernel itself does not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchAttributes {
    pub(crate) cooperative: bool,
    /// Blocks of a cluster along each axis; 1 each where there are none, or the kernel was compiled for clusters.
    pub(crate) cluster: [u32; 3],
    /// In place of the stream's.
    pub(crate) priority: Option<i32>,
}

impl LaunchAttributes {
    pub(crate) const NONE: LaunchAttributes =
        LaunchAttributes { cooperative: false, cluster: [1; 3], priority: None };
}
