//! Memory that a graph has for one recorded launch, and that a node fills at each launch of the graph.

use std::sync::Arc;

use ferrogrid_device::DeviceCopy;

use crate::error::Result;
use crate::memory::Memory;
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
        let filled = recording.preparing(|| fill(&memory))?;
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
        recording.empty_unless_used(&self.memory, self.filled);
    }
}
