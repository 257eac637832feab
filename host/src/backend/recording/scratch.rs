//! Memory that a graph allocates for one recorded launch: values of the host, and scratch memory that a node fills at
//! each launch of the graph.

use std::sync::{Arc, PoisonError};

use ferrogrid_device::DeviceCopy;

use super::node::Node;
use super::refusal::not_recordable;
use super::{Adopted, RecordingStream};
use crate::device::Device;
use crate::error::Result;
use crate::memory::buffer::DeviceBuffer;
use crate::memory::{Contents, Memory};
use crate::stream::{Stream, StreamInner};
use crate::view::{DeviceView, DeviceViewMut};

/// Memory of one recorded launch. If the launch is refused, the node that fills the memory becomes an empty one.
pub(crate) struct Scratch {
    stream: Arc<StreamInner>,
    memory: Arc<Memory>,
    /// The number of the node that fills it.
    filled: usize,
}

impl Scratch {
    /// Zeroed at each launch.
    pub(crate) fn zeros(stream: &Stream, bytes: usize) -> Result<Self> {
        Self::filled_by(stream, bytes, |memory| {
            stream.fill_into(0_u8, DeviceViewMut::whole(memory.pointer(), bytes, memory))
        })
    }

    /// A copy of `source`, made at each launch.
    pub(crate) fn copy<T: DeviceCopy>(stream: &Stream, source: DeviceView<'_, T>) -> Result<Self> {
        let len = source.len();
        Self::filled_by(stream, len * size_of::<T>(), |memory| {
            stream.copy(source, DeviceViewMut::<T>::whole(memory.pointer().cast(), len, memory))
        })
    }

    /// `bytes`, which the node that `fill` records writes.
    fn filled_by(stream: &Stream, bytes: usize, fill: impl FnOnce(&Memory) -> Result<()>) -> Result<Self> {
        let recording = stream.inner().recording().expect("a stream of a recording");
        let memory = recording.keep_scratch(stream.device(), bytes)?;
        let filled = recording.with(|state| Ok(state.nodes.len()))?;
        fill(&memory)?;
        recording.with(|state| {
            state.nodes.iter_mut().skip(filled).for_each(|node| node.prepares = true);
            Ok(())
        })?;
        Ok(Scratch { stream: stream.inner().clone(), memory, filled })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The `len` elements.
    pub(crate) fn view<T: DeviceCopy>(&self, len: usize) -> DeviceView<'_, T> {
        DeviceView::whole(self.memory.pointer().cast(), len, &self.memory)
    }

    /// The same to write.
    pub(crate) fn view_mut<T: DeviceCopy>(&mut self, len: usize) -> DeviceViewMut<'_, T> {
        DeviceViewMut::whole(self.memory.pointer().cast(), len, &self.memory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nodes do not list memory of no bytes.
        let Some(recording) = self.stream.recording().filter(|_| self.memory.bytes() > 0) else { return };
        // Once the recording has ended, nothing can be undone.
        let _ended = recording.with(|state| {
            let Some(buffer) = state.find(&self.memory) else { return Ok(()) };
            let uses = |node: &Node| node.uses.iter().any(|&(used, _)| used == buffer);
            if !state.nodes.iter().skip(self.filled + 1).any(uses) {
                state.empty_from(self.filled);
            }
            Ok(())
        });
    }
}

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
    fn keep_scratch(&self, device: &Device, bytes: usize) -> Result<Arc<Memory>> {
        if !self.recorder.adopts {
            return Err(not_recordable(
                "memory of a launch's own in an update",
                "a node of its own prepares it for the kernel, and an update changes the kernel only; record the graph anew, and take it over by `graph.update`",
            ));
        }
        let allocate = |stream: &Stream| DeviceBuffer::<u8>::allocate(stream, bytes, Contents::Uninitialised);
        self.keep_as(device, true, Adopted::Scratch, |stream| Ok(allocate(stream)?.into_memory()))
    }

    fn keep_as(
        &self,
        device: &Device,
        may_write: bool,
        adopted: fn(Arc<Memory>) -> Adopted,
        stage: impl FnOnce(&Stream) -> Result<Memory>,
    ) -> Result<Arc<Memory>> {
        self.with(|state| {
            let mut staging = self.recorder.staging.lock().unwrap_or_else(PoisonError::into_inner);
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
}
