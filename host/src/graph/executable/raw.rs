//! Conversion of instantiated graphs to and from raw driver handles.

use std::ffi::c_void;

use super::{ExecutableGraph, Replay};
use crate::backend::GraphBackend;
use crate::backend::recording::Recorder;
use crate::device::Device;
use crate::device::context::{gpu, not_null};
use crate::error::Result;
use crate::graph::slot::Slots;

impl ExecutableGraph<'static> {
    /// A graph that another library instantiated on `device`: `raw` is its `CUgraphExec` (a `cudaGraphExec_t` is the
    /// same). It is launched and uploaded like any other. It has no nodes or buffers that are known here, so it is not
    /// updated, and it is not destroyed when this handle is dropped.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// use ferrogrid::ExecutableGraph;
    ///
    /// /// Launches what a library has captured (`cudaStreamEndCapture`, `cudaGraphInstantiate`).
    /// ///
    /// /// # Safety
    /// /// `theirs` is such a graph, and nothing else uses its memory until the launch has run.
    /// unsafe fn run(stream: &Stream, theirs: *mut std::ffi::c_void) -> ferrogrid::Result<()> {
    ///     // SAFETY: the caller vouches for it.
    ///     let mut graph = unsafe { ExecutableGraph::from_raw(stream.device(), theirs)? };
    ///     graph.launch(stream)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device;
    /// [`Error::InvalidPointer`](crate::Error::InvalidPointer) if `raw` is null.
    ///
    /// # Safety
    /// - `raw` is an instance of a graph of the primary context of `device`, and is not destroyed before this handle is
    ///   dropped, nor launched or changed by another thread while this handle is used.
    /// - At every launch by this handle its memory is there until the launch has run, and nothing else uses that memory
    ///   except in an order that the caller ensures: the buffers of this crate do not know of it.
    /// - No kernel of this program that may panic is in it: its failure would not be reported.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Self> {
        let (cuda, raw) = (gpu(device, "ExecutableGraph::from_raw")?, not_null(raw)?);
        // SAFETY: passed on.
        let backend = unsafe { GraphBackend::foreign(cuda, raw)? };
        let id = Recorder::new(device.backend()).id();
        Ok(ExecutableGraph { id, slots: Slots::default(), replay: Replay::new(device, Vec::new(), backend) })
    }
}

impl ExecutableGraph<'_> {
    /// The driver's handle (`CUgraphExec`), for other libraries, valid as long as this graph. `None` on the CPU device.
    ///
    /// A launch by that handle is unknown to this crate: the buffers of the graph are not ordered with it.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let stream = Device::best()?.new_stream()?;
    /// let (graph, ()) = stream.capture(|capture| capture.launch_host_func(|| ()).map(drop))?;
    /// let graph = graph.instantiate()?;
    /// assert_eq!(graph.as_raw().is_some(), stream.device().is_cuda());
    /// assert_eq!(graph.definition_as_raw().is_some(), stream.device().is_cuda());
    /// # Ok(()) }
    /// ```
    pub fn as_raw(&self) -> Option<*mut c_void> {
        self.replay.backend.as_raw().0
    }

    /// The driver's handle of the graph that it was instantiated from (`CUgraph`), for calls such as `cuGraphGetNodes` and
    /// `cuGraphDebugDotPrint`; valid as long as this graph. `None` on the CPU device, and of a graph that came in by
    /// [`ExecutableGraph::from_raw`]. After [`ExecutableGraph::update`] it is still the first one.
    pub fn definition_as_raw(&self) -> Option<*mut c_void> {
        self.replay.backend.as_raw().1
    }
}
