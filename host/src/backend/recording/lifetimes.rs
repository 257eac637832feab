//! Nodes that allocate memory, and those that free it: one for each, after all nodes that use it.

use std::sync::Arc;

use super::{Allocated, GRAPH, Recorder, RecordingStream, State};
use crate::backend::MemoryNodes;
use crate::backend::operation::{Address, Allocation, Operation};
use crate::backend::recording::refusal::not_recordable;
use crate::error::graph::GraphError;
use crate::error::{Error, Result};
use crate::order::Use;

/// What a node has allocated. When this is dropped it is freed, or at the end of the recording where that cannot be.
pub(crate) struct Lifetime {
    recorder: Arc<Recorder>,
    /// The stream where it was allocated.
    line: usize,
    buffer: usize,
}

impl RecordingStream {
    /// Where the `bytes` (not 0) are that the next node here is to allocate, and what must be there as long as the graph
    /// can run. Nothing is recorded before `allocate`.
    pub(crate) fn new_memory(&self, bytes: usize) -> Result<(Address, Box<dyn Send>)> {
        let device = self.recorder.device;
        self.recorder.with_graph(|state| {
            let memory = match &mut state.memory {
                Some(memory) => memory,
                none => none.insert(MemoryNodes::new(device)?),
            };
            memory.allocate(bytes)
        })
    }

    /// Adds the node that allocates `buffer`, whose memory is from `new_memory`; its number.
    pub(crate) fn allocate(&self, buffer: usize, allocation: Allocation) -> Result<(usize, Lifetime)> {
        let node = self.recorder.with_graph(|state| {
            let operation = Operation::Allocate(allocation);
            let node = state.add_with(self.line, operation, vec![(buffer, Use::Write)]);
            state.allocated.push(Allocated { buffer, node });
            Ok(node)
        })?;
        Ok((node, Lifetime { recorder: self.recorder.clone(), line: self.line, buffer }))
    }

    /// Adds the node that frees what has that lifetime; its number.
    pub(crate) fn free(&self, lifetime: &Lifetime) -> Result<usize> {
        if !Arc::ptr_eq(&self.recorder, &lifetime.recorder) {
            return Err(GraphError::OtherGraph { what: "buffer" }.into());
        }
        self.recorder.with_graph(|state| {
            // What has a lifetime has not been freed.
            state.free(self.line, lifetime.buffer).ok_or_else(|| GraphError::Ended.into())
        })
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        // Where this is refused, the end of the recording does it.
        let _refused = self.recorder.with(GRAPH, |state| Ok(state.free(self.line, self.buffer)));
    }
}

impl Recorder {
    /// Calls `work` with the graph itself, where memory is allocated.
    fn with_graph<R>(&self, work: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        self.with(GRAPH, work).map_err(|error| match error {
            Error::Graph(GraphError::OtherBody) => not_recordable(
                "to allocate or free in the body of a conditional node",
                "CUDA takes no such nodes there: do it before and after the conditional node",
            ),
            error => error,
        })
    }
}

impl State {
    /// Adds the node that frees `buffer`, unless there is one.
    fn free(&mut self, line: usize, buffer: usize) -> Option<usize> {
        let place = self.allocated.iter().position(|known| known.buffer == buffer)?;
        let allocation = self.allocated.swap_remove(place).node;
        Some(self.add_with(line, Operation::Free { allocation }, vec![(buffer, Use::Write)]))
    }

    /// Frees what no node has freed, after the last node that uses it.
    pub(super) fn free_rest(&mut self) {
        for buffer in self.allocated.iter().map(|allocated| allocated.buffer).collect::<Vec<_>>() {
            let line = self.new_line(Vec::new());
            self.free(line, buffer);
        }
    }
}
