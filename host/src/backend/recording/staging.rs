//! Memory that a graph allocates for one recorded launch: values of the host, and scratch memory that a node fills at
//! each launch of the graph.

use std::sync::Arc;

use super::refusal::not_recordable;
use super::{Adopted, RecordingStream};
use crate::backend::Contents;
use crate::backend::operation::Node;
use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;
use crate::stream::Stream;
use crate::sync::lock;

impl RecordingStream {
    /// Lets nodes read the memory that `stage` fills on a real stream of `device`. The graph owns it.
    pub(crate) fn keep(
        &self,
        device: &Device,
        stage: impl FnOnce(&Stream) -> Result<Memory>,
    ) -> Result<Arc<Memory>> {
        if !self.recorder.adopts {
            return Err(not_recordable(
                "a new value of the host's in an update",
                "the graph keeps those that it was recorded with; record the kernel with a buffer of the graph, and write that between launches",
            ));
        }
        self.keep_as(device, false, Adopted::Value, stage)
    }

    /// Lets nodes write `bytes`, which the graph owns. A node fills them before others read them.
    pub(crate) fn keep_scratch(&self, device: &Device, bytes: usize) -> Result<Arc<Memory>> {
        if !self.recorder.adopts {
            return Err(not_recordable(
                "memory of a launch's own in an update",
                "a node of its own prepares it for the kernel, and an update changes the kernel only; record the graph anew, and take it over by `graph.update`",
            ));
        }
        self.keep_as(device, true, Adopted::Scratch, |stream| {
            Memory::allocate(stream.inner(), None, bytes, Contents::Uninitialised)
        })
    }

    fn keep_as(
        &self,
        device: &Device,
        may_write: bool,
        adopted: fn(Arc<Memory>) -> Adopted,
        stage: impl FnOnce(&Stream) -> Result<Memory>,
    ) -> Result<Arc<Memory>> {
        self.with(|state| {
            let mut staging = lock(&self.recorder.staging);
            let stream = match staging.take() {
                Some(stream) => stream,
                None => device.new_stream()?,
            };
            let memory = Arc::new(stage(staging.insert(stream))?);
            state.admit(&memory, may_write);
            self.recorder.adopt(adopted(memory.clone()));
            Ok(memory)
        })
    }

    /// Calls `fill`, whose nodes prepare memory of the launch after them; the number of the first.
    pub(crate) fn preparing(&self, fill: impl FnOnce() -> Result<()>) -> Result<usize> {
        let first = self.with(|state| Ok(state.nodes.len()))?;
        fill()?;
        self.with(|state| {
            state.nodes.iter_mut().skip(first).for_each(|node| node.prepares = true);
            Ok(first)
        })
    }

    /// Makes the nodes from number `filled` on, the first of which fills `memory`, empty ones if none after it uses that.
    pub(crate) fn empty_unless_used(&self, memory: &Memory, filled: usize) {
        // Once the recording has ended, nothing can be undone.
        let _ended = self.with(|state| {
            let Some(buffer) = state.find(memory) else { return Ok(()) };
            let uses = |node: &Node| node.uses.iter().any(|&(used, _)| used == buffer);
            if !state.nodes.iter().skip(filled + 1).any(uses) {
                state.empty_from(filled);
            }
            Ok(())
        });
    }
}
