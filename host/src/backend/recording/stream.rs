//! The operations of a recording's stream: copies and fills become nodes, and operations that no graph can contain are
//! refused. Its events never complete.

use std::sync::Arc;

use super::refusal::{allocation, host_memory, not_recordable, waiting};
use super::{RecordedEvent, RecordingStream};
use crate::backend::cuda::RawPool;
use crate::backend::event::BackendEvent;
use crate::backend::external::ExternalStream;
use crate::backend::operation::fill::MANY_WORDS;
use crate::backend::operation::{Fill, MemoryCopy, Operation, Place, Side, ValueCondition};
use crate::backend::stream::{BackendStream, StreamMemory};
use crate::backend::{AccessPolicyWindow, Account, Contents, HostFn, MemorySyncDomain, Signal};
use crate::error::graph::GraphError;
use crate::error::{Error, Result};

impl BackendStream for RecordingStream {
    fn is_nonblocking(&self) -> Result<bool> {
        Ok(true)
    }

    fn is_complete(&self) -> Result<bool> {
        Err(waiting("a query"))
    }

    fn host_fn(&self, _: HostFn) -> Result<()> {
        Err(not_recordable(
            "a function that is called once",
            "a graph may be launched many times; use `Capture::launch_host_func`",
        ))
    }

    fn synchronize(&self) -> Result<()> {
        Err(waiting("to synchronise"))
    }

    fn drain(&self) -> Result<()> {
        self.synchronize()
    }

    fn set_access_policy_window(&self, _: Option<AccessPolicyWindow>) -> Result<()> {
        Err(not_recordable(
            "a stream's access policy window",
            "nodes have those of their launches: `Grid::with_access_policy_window`",
        ))
    }

    fn set_memory_sync_domain(&self, _: MemorySyncDomain) -> Result<()> {
        Err(not_recordable(
            "a stream's memory-synchronisation domain",
            "nodes have those of their launches: `Grid::with_memory_sync_domain`",
        ))
    }
}

/// All of it is refused.
impl ExternalStream for RecordingStream {}

impl StreamMemory for RecordingStream {
    fn allocate(&self, _: Option<RawPool>, _: usize, _: Contents) -> Result<*mut u8> {
        Err(allocation())
    }

    /// It has allocated nothing.
    unsafe fn free(&self, _: *mut u8, _: usize, _: &Arc<Account>) {}

    /// Copies between buffers of the graph, some of which are memory of the host.
    unsafe fn copy(&self, copy: MemoryCopy) -> Result<()> {
        self.with(|state| {
            let placed = |side| match side {
                Side::Memory(place, start) => match state.place_of(start.0) {
                    Place::Device if place == Place::Host => Err(host_memory("a copy from or to the host")),
                    known => Ok(Side::Memory(known, start)),
                },
                Side::Array(_) => Ok(side),
            };
            let copy = MemoryCopy { target: placed(copy.target)?, source: placed(copy.source)?, ..copy };
            state.add(self.line, Operation::Copy(copy));
            Ok(())
        })
    }

    unsafe fn copy_from_host(&self, copy: MemoryCopy) -> Result<()> {
        Err(host_memory(if copy.has_array() { "an upload to a texture array" } else { "an upload" }))
    }

    unsafe fn copy_to_host(&self, copy: MemoryCopy) -> Result<()> {
        Err(host_memory(if copy.has_array() { "a download of a texture array" } else { "a download" }))
    }

    /// A node for each of its words.
    unsafe fn fill(&self, fill: Fill<'_>) -> Result<()> {
        let mut words = fill.words().peekable();
        if words.len() > MANY_WORDS {
            let word = words.peek().map_or(0, |word| word.value.len());
            let (bytes, limit) = (fill.value.len(), MANY_WORDS * word);
            return Err(GraphError::LargeFill { bytes, limit }.into());
        }
        for (index, word) in words.enumerate() {
            self.add_like_last(index > 0, Operation::Fill(word.into_owned()))?;
        }
        Ok(())
    }

    fn has_prefetches(&self) -> Result<bool> {
        Err(not_recordable("a prefetch", "CUDA has no such node"))
    }

    unsafe fn write_value(&self, _: *mut u8, _: u64, _: bool) -> Result<()> {
        Err(no_value_node("to write a value"))
    }

    unsafe fn wait_value(&self, _: *const u8, _: ValueCondition) -> Result<()> {
        Err(no_value_node("to wait for a value"))
    }
}

impl BackendEvent for RecordedEvent {
    fn launch_event_refusal(&self) -> Option<&'static str> {
        Some("it is of a recording")
    }

    fn synchronize(&self) -> Result<()> {
        Err(waiting("to wait for an event"))
    }

    fn is_complete(&self) -> Result<bool> {
        Err(waiting("to ask for an event"))
    }

    fn notify(&self, _: Arc<Signal>) -> Result<()> {
        self.synchronize()
    }
}

#[cold]
fn no_value_node(operation: &'static str) -> Error {
    not_recordable(operation, "launches of a graph are ordered by its buffers and by event nodes")
}

#[cfg(test)]
mod tests {
    use crate::backend::operation::Place;
    use crate::backend::recording::Recorder;
    use crate::device::Device;
    use crate::memory::{Memory, Origin};

    /// The handle of an array may be any number: as an address it would lie just before the memory of the host.
    #[test]
    fn no_address_is_in_an_array() {
        let stream = Device::cpu().new_stream().unwrap();
        let host = stream.device().pinned_zeros::<u32>(4).unwrap().into_memory(stream.inner()).unwrap();
        let handle = host.pointer().wrapping_sub(8);
        // SAFETY: it stands for the handle of an array, which nothing uses.
        let array = unsafe { Memory::owned(stream.inner(), Origin::Array, handle, 1 << 20, Box::new(())) };
        let recorder = Recorder::new(stream.device().backend());
        recorder.admit(&array, true).unwrap();
        recorder.admit(&host, true).unwrap();
        let place = recorder.with(0, |state| Ok(state.place_of(host.pointer()))).unwrap();
        assert_eq!(place, Place::Host);
    }
}
