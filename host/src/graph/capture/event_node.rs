//! Event nodes: real events that each launch of a graph records, or waits for.

use std::sync::Arc;

use super::{Capture, recording};
use crate::backend::operation::Operation;
use crate::backend::recording::RecordingStream;
use crate::backend::recording::refusal::not_recordable;
use crate::error::{Error, Result};
use crate::graph::GraphNode;
use crate::stream::event::Event;

impl Capture<'_, '_> {
    /// Adds a node that records `event` at each launch, once the nodes before it on this stream have run
    /// (`cuGraphAddEventRecordNode`). Outside the graph it is an event like any other: streams wait for it, the host queries
    /// it, and it has a time.
    ///
    /// [`Stream::record`](crate::Stream::record) on a recording is different: a point of the graph itself, for its
    /// own streams.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use std::sync::Arc;
    ///
    /// use ferrogrid::EventOptions;
    ///
    /// let event = || stream.device().new_event(EventOptions::new()).map(Arc::new);
    /// let (start, end) = (event()?, event()?);
    /// let mut data = stream.zeros::<u32>(1000)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     capture.record_event(&start)?;
    ///     capture.fill_into(7, &mut capture.write(&mut data)?)?;
    ///     capture.record_event(&end)?;
    ///     Ok(())
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// end.synchronize()?;
    /// println!("the fill took {:?}", end.elapsed_since(&start)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::EventDevice`] if it is of another device, [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) for
    /// an event of a recording.
    pub fn record_event(&self, event: &Arc<Event>) -> Result<GraphNode> {
        self.add_event(recording(self), event, Operation::Record)
    }

    /// As [`Capture::record_event`], after the nodes `after` and nothing else.
    ///
    /// # Errors
    /// As [`Capture::record_event`] and [`Capture::node`].
    pub fn event_record_node(&self, after: &[GraphNode], event: &Arc<Event>) -> Result<GraphNode> {
        self.add_event(&self.line(after)?, event, Operation::Record)
    }

    /// Adds a node that waits for `event` at each launch (`cuGraphAddEventWaitNode`): for what it was last recorded for when
    /// the launch was enqueued. Later nodes on this stream come after it.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use std::sync::Arc;
    ///
    /// use ferrogrid::EventOptions;
    ///
    /// let other = stream.device().new_stream()?;
    /// let ready = Arc::new(stream.device().new_event(EventOptions::new().without_timing())?);
    /// let (graph, ()) = stream.capture(|capture| {
    ///     capture.wait_event(&ready)?;
    ///     capture.launch_host_func(|| println!("after the work of the other stream")).map(drop)
    /// })?;
    /// let mut graph = graph.instantiate()?;
    /// other.launch_host_func(|| println!("work"))?;
    /// other.record_into(&ready)?;
    /// graph.launch(&stream)?;
    /// # stream.synchronize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Capture::record_event`].
    pub fn wait_event(&self, event: &Arc<Event>) -> Result<GraphNode> {
        self.add_event(recording(self), event, Operation::Wait)
    }

    /// As [`Capture::wait_event`], after the nodes `after` and nothing else.
    ///
    /// # Errors
    /// As [`Capture::record_event`] and [`Capture::node`].
    pub fn event_wait_node(&self, after: &[GraphNode], event: &Arc<Event>) -> Result<GraphNode> {
        self.add_event(&self.line(after)?, event, Operation::Wait)
    }

    fn add_event(
        &self,
        line: &RecordingStream,
        event: &Arc<Event>,
        operation: fn(Arc<Event>) -> Operation,
    ) -> Result<GraphNode> {
        if event.backend().is_recorded() {
            return Err(not_recordable(
                "an event node of a recorded event",
                "it never happens outside the graph",
            ));
        }
        if event.device() != self.device() {
            let (event, stream) = (event.device().to_string().into(), self.device().to_string().into());
            return Err(Error::EventDevice { event, stream });
        }
        Ok(self.name(line.add(operation(event.clone()))?))
    }
}
